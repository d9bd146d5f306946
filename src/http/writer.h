/* SPDX-License-Identifier: Apache-2.0 */
/*
 * writer.h - a response (or the client's request) becomes bytes. Pure: writes
 * into the caller's buffer, never waits.
 *
 * Nothing that a handler puts into a field can split a response: CR, LF, NUL and
 * other control characters of a value are written as spaces.
 */
#ifndef HTTP_WRITER_H
#define HTTP_WRITER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/slice.h"
#include "base/time.h"
#include "http/message.h"

/* A head with the longest values we send fits into this many bytes, extra fields apart. */
#define WRITER_HEAD_MAX 512

struct writer_framing {
    int version_minor; /* the request's: 1.0 is told "keep-alive" when the connection persists */
    bool keep_alive;   /* the connection persists after this response */
    bool head_only;    /* the request was HEAD: no body, its length all the same */
    const char *date;  /* IMF-fixdate, TIME_HTTP_SIZE - 1 characters */
};

/*
 * writer_head - status line and fields up to and including the empty line.
 *
 * The status line always says HTTP/1.1. No Content-Length with 204 and 304 (and 1xx).
 * The connection persists only if both framing and response let it.
 *
 * Returns  bytes written; 0 when capacity is too small (nothing usable in dst)
 */
size_t writer_head(char *dst, size_t capacity, const struct http_response *response,
                   const struct writer_framing *framing) WARN_UNUSED;

/* writer_body_length - bytes of the body that follow the head: none for HEAD, 204 and 304. */
size_t writer_body_length(const struct http_response *response,
                          const struct writer_framing *framing);

/*
 * writer_response - the head and, behind it, the body.
 *
 * Returns  bytes written; 0 when capacity is too small for both (nothing usable in dst)
 */
size_t writer_response(char *dst, size_t capacity, const struct http_response *response,
                       const struct writer_framing *framing) WARN_UNUSED;

/* writer_continue - "HTTP/1.1 100 Continue" and its empty line, static. */
struct slice writer_continue(void);

/*
 * writer_request - a GET request of the client.
 *
 * @host  value of Host
 * @path  origin-form target, already encoded
 *
 * Returns  bytes written; 0 when capacity is too small, or host or path hold a
 *          byte that cannot stand there (white space, controls, non-ASCII)
 */
size_t writer_request(char *dst, size_t capacity, struct slice host, struct slice path) WARN_UNUSED;

#endif
