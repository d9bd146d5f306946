/* SPDX-License-Identifier: Apache-2.0 */
/*
 * url.c - see url.h. Called for remote.url, by the configuration to check it and by
 * client_connect.c to call it, for the healthcheck, and by the load generator. What it
 * lets through can stand in a request line and in Host as it is.
 */
#include "http/url.h"

#include <errno.h>
#include <stdbool.h>

static bool url_is_alphanumeric(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

/* Are all bytes letters, digits or of this set? */
static bool url_only(struct slice s, const char *others)
{
    for (size_t i = 0; i < s.length; i++) {
        char c = s.at[i];
        if (c == '\0' || (!url_is_alphanumeric(c) && strchr(others, c) == NULL)) {
            return false;
        }
    }
    return true;
}

static struct slice url_cut(struct slice s, size_t from, size_t to)
{
    return (struct slice){.at = s.at + from, .length = to - from};
}

/* Where c first stands in s; its length when nowhere. */
static size_t url_find(struct slice s, char c)
{
    const char *found = s.length > 0 ? memchr(s.at, c, s.length) : NULL;
    return found != NULL ? (size_t)(found - s.at) : s.length;
}

static int url_parse_authority(struct slice authority, struct url *url)
{
    size_t host_end;
    bool bracketed = slice_starts_with(authority, SLICE("["));
    if (bracketed) {
        size_t close = url_find(authority, ']');
        if (close == authority.length) {
            return -EINVAL;
        }
        url->host = url_cut(authority, 1, close);
        host_end = close + 1;
    } else {
        host_end = url_find(authority, ':');
        url->host = url_cut(authority, 0, host_end);
    }
    /* No '%': neither zone identifiers nor encoded names. */
    if (url->host.length == 0 || url->host.length > 253 ||
        !url_only(url->host, bracketed ? ":." : "-._")) {
        return -EINVAL;
    }

    url->port = 80;
    struct slice rest = url_cut(authority, host_end, authority.length);
    if (rest.length == 0) {
        return 0;
    }
    uint64_t port;
    if (rest.at[0] != ':' || slice_to_u64(url_cut(rest, 1, rest.length), &port) != 0) {
        return -EINVAL;
    }
    if (port == 0 || port > UINT16_MAX) {
        return -EINVAL;
    }
    url->port = (uint16_t)port;
    return 0;
}

int url_parse(struct slice text, struct url *url)
{
    struct slice scheme = SLICE("http://");
    if (text.length < scheme.length ||
        !slice_equal_nocase(url_cut(text, 0, scheme.length), scheme)) {
        return -EINVAL;
    }
    struct slice rest = url_cut(text, scheme.length, text.length);
    size_t authority_end = url_find(rest, '/');
    url->authority = url_cut(rest, 0, authority_end);
    url->path = url_cut(rest, authority_end, rest.length);
    while (url->path.length > 0 && url->path.at[url->path.length - 1] == '/') {
        url->path.length--;
    }
    if (!url_only(url->path, "/-._~!$&'()*+,;=:@%")) {
        return -EINVAL;
    }
    return url_parse_authority(url->authority, url);
}
