/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target.c - see target.h. Called by main.c before the load begins.
 */
#include "ringload/target.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/url.h"
#include "ringload/options.h"

/* Room for the fields that we add ourselves. */
#define REQUEST_BYTES_EXTRA 256

static const char tcp_scheme[] = "tcp://";

/* parse_authority - url_parse knows host and port; it is shown no more than that. */
static int parse_authority(struct target *target, struct slice authority, const char **why)
{
    char text[TARGET_HOST_SIZE + 64];
    struct url url;
    int length = snprintf(text, sizeof(text), "http://%.*s", (int)authority.length, authority.at);
    if (authority.length >= sizeof(text) - sizeof("http://") ||
        url_parse((struct slice){.at = text, .length = (size_t)length}, &url) != 0 ||
        url.host.length >= sizeof(target->host)) {
        *why = "the URL's host or port is none";
        return -EINVAL;
    }
    snprintf(target->host, sizeof(target->host), "%.*s", (int)url.host.length, url.host.at);
    target->authority = authority;
    target->port = url.port;
    return 0;
}

int target_parse(struct target *target, const char *url, const char **why)
{
    *target = (struct target){.is_http = strncmp(url, tcp_scheme, strlen(tcp_scheme)) != 0};
    const char *rest = strstr(url, "://");
    if (rest == NULL || (target->is_http && strncasecmp(url, "http://", 7) != 0)) {
        *why = "the URL begins with http:// or tcp://";
        return -EINVAL;
    }
    rest += 3;
    size_t length = strcspn(rest, "/?#");
    const char *path = rest + length;
    for (const char *at = path; *at != '\0'; at++) {
        if (*at <= ' ' || *at == 0x7f || *at == '#') {
            *why = "the URL's path holds a space, a control character or a fragment";
            return -EINVAL;
        }
    }
    if (!target->is_http && (*path != '\0' || memchr(rest, ':', length) == NULL)) {
        *why = "a tcp URL is tcp://host:port";
        return -EINVAL;
    }
    target->path = *path == '\0' ? SLICE("/") : slice_of(path);
    return parse_authority(target, (struct slice){.at = rest, .length = length}, why);
}

int target_resolve(struct target *target)
{
    int count = sys_parse_address(target->host, target->port, &target->addresses[0]);
    if (count == 0) {
        count = sys_resolve(target->host, target->port, target->addresses, TARGET_ADDRESSES_MAX);
    }
    if (count < 0) {
        return count;
    }
    target->address_count = (size_t)count;
    target->is_loopback = true;
    for (size_t i = 0; i < target->address_count; i++) {
        const struct sockaddr_in *four = (const void *)&target->addresses[i].storage;
        target->is_loopback = target->is_loopback && four->sin_family == AF_INET &&
                              ntohl(four->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    }
    return 0;
}

/* is_given - the user's own -H takes the place of a field of ours. */
static bool is_given(const struct options *options, const char *name)
{
    for (size_t i = 0; i < options->header_count; i++) {
        if (strncasecmp(options->headers[i], name, strlen(name)) == 0 &&
            options->headers[i][strlen(name)] == ':') {
            return true;
        }
    }
    return false;
}

static size_t format_head(char *dst, size_t size, const struct target *target,
                          const struct options *options)
{
    /* "/?x" for the URL that has a query and no path */
    const char *slash = target->path.at[0] == '?' ? "/" : "";
    int length = snprintf(dst, size, "%s %s%.*s HTTP/1.1\r\n", options->method, slash,
                          (int)target->path.length, target->path.at);
    if (!is_given(options, "Host")) {
        length += snprintf(dst + length, size - (size_t)length, "Host: %.*s\r\n",
                           (int)target->authority.length, target->authority.at);
    }
    if (!is_given(options, "User-Agent")) {
        length += snprintf(dst + length, size - (size_t)length,
                           "User-Agent: ringload/" RINGSPUN_VERSION "\r\n");
    }
    if (!is_given(options, "Accept")) {
        length += snprintf(dst + length, size - (size_t)length, "Accept: */*\r\n");
    }
    if (!options->keepalive && !is_given(options, "Connection")) {
        length += snprintf(dst + length, size - (size_t)length, "Connection: close\r\n");
    }
    if (options->has_body && !is_given(options, "Content-Length") &&
        !is_given(options, "Transfer-Encoding")) {
        length += snprintf(dst + length, size - (size_t)length, "Content-Length: %zu\r\n",
                           options->body.length);
    }
    for (size_t i = 0; i < options->header_count; i++) {
        length += snprintf(dst + length, size - (size_t)length, "%s\r\n", options->headers[i]);
    }
    length += snprintf(dst + length, size - (size_t)length, "\r\n");
    return (size_t)length;
}

int target_format(struct target *target, const struct options *options)
{
    size_t capacity = REQUEST_BYTES_EXTRA + strlen(options->method) + target->path.length +
                      target->authority.length + options->body.length;
    for (size_t i = 0; i < options->header_count; i++) {
        capacity += strlen(options->headers[i]) + 2;
    }
    char *bytes = malloc(capacity);
    if (bytes == NULL) {
        return -ENOMEM;
    }
    size_t length = target->is_http ? format_head(bytes, capacity, target, options) : 0;
    if (options->body.length > 0) {
        memcpy(bytes + length, options->body.at, options->body.length);
    }
    target->request = (struct slice){.at = bytes, .length = length + options->body.length};
    return 0;
}

void target_free(struct target *target)
{
    free((char *)target->request.at);
    target->request = (struct slice){.at = NULL};
}
