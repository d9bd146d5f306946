/* SPDX-License-Identifier: Apache-2.0 */
/*
 * router.h - a request finds its handler in a const table. Pure: never waits.
 *
 * Segments match byte for byte once their percent codes are decoded, as in Spring;
 * "%2F" stays inside its segment, a slash at the end is another path, and an empty
 * segment fills no placeholder.
 */
#ifndef HTTP_ROUTER_H
#define HTTP_ROUTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "http/message.h"

enum route_flags {
    ROUTE_QUICK = 0, /* never waits: responses in hand may leave together with its own */
    ROUTE_PARKS =
        1, /* may wait: earlier responses leave first, and a client that resets cancels it */
    ROUTE_BODY = 2,   /* wants the request's body, of ROUTE_BODY_MAX bytes at most: else a 413 */
    ROUTE_SHALLOW = 4 /* with ROUTE_PARKS: its frames stay within the first page of the stack */
};

/* Bytes of a body that is kept for its handler. All others are read and dropped. */
#define ROUTE_BODY_MAX 4096u

struct route {
    enum http_method method; /* HTTP_GET serves HEAD as well */
    const char
        *pattern; /* "/blocking/{n}": literal segments and {placeholders} of one segment each */
    http_handler *handler;
    unsigned flags;
    /*
     * check - may refuse before the body is read and before a thread is taken: it
     * fills the response and returns false. Must not wait. NULL: nothing to check.
     */
    bool (*check)(struct http_exchange *exchange);
};

struct router {
    const struct route *routes; /* static; the first that matches counts */
    size_t count;
};

/*
 * router_find - the route of exchange->request, its params set (allocated from
 * the exchange's arena only where percent-decoding was needed).
 *
 * @wall_ns  for the timestamp of an error body
 *
 * Returns  the route, or NULL after exchange->response has been filled with
 *          OPTIONS's 200, 404, 405 (with Allow), 501, 400 (bad percent code) or
 *          503 (arena used up)
 */
const struct route *router_find(const struct router *router, struct http_exchange *exchange,
                                uint64_t wall_ns) WARN_UNUSED;

#endif
