/* SPDX-License-Identifier: Apache-2.0 */
/*
 * message.h - what an HTTP request and response are, once the bytes are parsed
 * and before they are bytes again. Pure data.
 */
#ifndef HTTP_MESSAGE_H
#define HTTP_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/slice.h"

#define HTTP_FIELDS_MAX 100  /* header fields of one message; more is a 431 */
#define HTTP_TARGET_MAX 8000 /* bytes of a request target; more is a 414 */
#define HTTP_PARAMS_MAX 4    /* {placeholders} in one route */
#define HTTP_EXTRA_FIELDS_MAX 6

/* The methods we know; everything else is a 501. */
enum http_method {
    HTTP_GET,
    HTTP_HEAD,
    HTTP_POST,
    HTTP_PUT,
    HTTP_DELETE,
    HTTP_OPTIONS,
    HTTP_PATCH,
    HTTP_TRACE,
    HTTP_CONNECT,
    HTTP_METHOD_UNKNOWN
};

struct http_field {
    struct slice name;
    struct slice value; /* without white space at either end */
};

/*
 * A request whose head is complete and valid. The slices live in the arena of
 * the session until the response is written.
 */
struct http_request {
    enum http_method method;
    int version_minor;        /* 0 or 1: HTTP/1.0 or HTTP/1.1 */
    bool keep_alive;          /* the client lets the connection persist */
    bool expect_continue;     /* Expect: 100-continue, only true with HTTP/1.1 */
    bool has_body;            /* Content-Length above 0, or chunked */
    struct slice method_text; /* as it was sent */
    struct slice target;      /* as it was sent */
    struct slice path;        /* of the target, percent-decoding not applied; "*" for OPTIONS * */
    struct slice query;       /* after the '?', or empty */
    struct slice host;        /* value of Host, or of the absolute-form target */
    struct http_field *fields;
    size_t field_count;
    struct slice body; /* only where the parser was asked to keep it */
};

/* What a client reads. */
struct http_reply {
    int status; /* 200 to 999; 1xx are skipped by the parser */
    int version_minor;
    bool keep_alive; /* the server lets the connection persist, and the framing allows it */
    struct http_field *fields;
    size_t field_count;
    struct slice body;
};

/* What a handler fills in. Zeroed, it is an empty 200. */
struct http_response {
    int status;                /* 0 stands for 200 */
    struct slice content_type; /* empty: no Content-Type */
    struct slice body;         /* lives in the arena of the exchange, or is static */
    struct http_field extra[HTTP_EXTRA_FIELDS_MAX];
    size_t extra_count;
    bool close; /* the connection ends after this response */
};

struct http_exchange;

typedef void http_handler(struct http_exchange *exchange);

/*
 * One request and its response on their way through a handler. The same struct
 * is handed to a handler on a fiber and on a platform thread.
 */
struct http_exchange {
    const struct http_request *request;
    struct http_response *response;
    struct arena *arena;                  /* the request's; handlers allocate from it */
    struct slice params[HTTP_PARAMS_MAX]; /* the {placeholders} of the route, percent-decoded */
    size_t param_count;
    void *context; /* the server's: what its handlers need beside the request */
    /*
     * A handler of a ROUTE_PARKS route that sets this answers later: its thread goes
     * back, and this runs on the connection's fiber, where it may park and responds.
     */
    http_handler *later;
};

#define HTTP_TYPE_TEXT SLICE("text/plain;charset=UTF-8")
#define HTTP_TYPE_JSON SLICE("application/json")

/* http_field_find - value of the first field of that name (any case), or NULL. */
const struct slice *http_field_find(const struct http_field *fields, size_t count,
                                    struct slice name);

/* http_reason - the reason phrase of a status, "" when it is unknown. Source: RFC 9110 section 15. */
const char *http_reason(int status);

/* http_respond_text - status 200 and a text/plain body (borrowed until the response is written). */
void http_respond_text(struct http_exchange *exchange, struct slice body);

/* http_respond_json - the given status and an application/json body (borrowed likewise). */
void http_respond_json(struct http_exchange *exchange, int status, struct slice body);

/*
 * http_respond_error - Spring's error body: timestamp, status, error, path and,
 * unless it is empty, message. When the arena is used up the body stays empty.
 *
 * @wall_ns  now, nanoseconds since 1970, for the timestamp
 */
void http_respond_error(struct http_exchange *exchange, int status, struct slice message,
                        uint64_t wall_ns);

#endif
