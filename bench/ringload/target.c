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

/* format_line - Returns its length; -EINVAL a template is none. */
static ptrdiff_t format_line(char *dst, size_t size, struct target *target,
                             const struct options *options)
{
    /* "/?x" for the URL that has a query and no path */
    const char *slash = target->path.at[0] == '?' ? "/" : "";
    int start = snprintf(dst, size, "%s %s", options->method, slash);
    ptrdiff_t path = template_expand(&target->template, target->path, dst + start, (size_t)start);
    if (path < 0) {
        return path;
    }
    ptrdiff_t length = start + path;
    return length + snprintf(dst + length, size - (size_t)length, " HTTP/1.1\r\n");
}

static size_t format_fields(char *dst, size_t size, const struct target *target,
                            const struct options *options)
{
    int length = 0;
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
                           target->body_length);
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
    ptrdiff_t length = 0;
    struct template of_body = {.count = 0};
    char *body = bytes + capacity - options->body.length; /* moved to its place below */
    ptrdiff_t body_length = template_expand(&of_body, options->body, body, 0);
    if (body_length >= 0 && target->is_http) {
        length = format_line(bytes, capacity, target, options);
    }
    if (body_length < 0 || length < 0 ||
        target->template.count + of_body.count > TEMPLATE_PLACES_MAX) {
        free(bytes);
        return -EINVAL;
    }
    target->body_length = (size_t)body_length;
    if (target->is_http) {
        length +=
            (ptrdiff_t)format_fields(bytes + length, capacity - (size_t)length, target, options);
    }
    memmove(bytes + length, body, (size_t)body_length);
    for (size_t i = 0; i < of_body.count; i++) {
        of_body.places[i].offset += (size_t)length;
        target->template.places[target->template.count++] = of_body.places[i];
    }
    target->request = (struct slice){.at = bytes, .length = (size_t)(length + body_length)};
    return 0;
}

void target_free(struct target *target)
{
    free((char *)target->request.at);
    target->request = (struct slice){.at = NULL};
}
