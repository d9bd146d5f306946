/* SPDX-License-Identifier: Apache-2.0 */
/*
 * url.h - the parts of an http URL that names a server. Pure.
 */
#ifndef HTTP_URL_H
#define HTTP_URL_H

#include <stdint.h>

#include "base/attr.h"
#include "base/slice.h"

/* Borrowed from the text that was parsed. */
struct url {
    struct slice host;      /* name or address, an IPv6 address without its brackets */
    struct slice authority; /* host and port as they are written: the value of Host */
    uint16_t port;          /* 80 where none is written */
    struct slice
        path; /* goes before a request's own path: empty or "/..." without a '/' at its end */
};

/*
 * url_parse - take http://host[:port][/path] apart.
 *
 * Returns  0; -EINVAL: another scheme, no host, user info, query or fragment, a
 *          port that is none, or a character that a URL cannot hold
 * Source   RFC 9110 section 4.2.1, RFC 3986 section 3
 */
int url_parse(struct slice text, struct url *url) WARN_UNUSED;

#endif
