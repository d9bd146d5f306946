/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parser.h - bytes become a request (or, for the client, a reply).
 *
 * llhttp finds the tokens, this module enforces what llhttp lets through and the
 * limits. It never waits, never runs a handler and knows no socket. The bytes of
 * a head are copied into the arena once, so a received buffer can go back at once.
 *
 *   feed -> MORE ... -> [HEAD when a body follows] -> MORE ... -> MESSAGE -> parser_next
 *                  \-> REFUSED: parser->refusal says why; nothing more is parsed
 *
 * Memory: nothing is taken from the arena before the first byte of a message.
 *
 *   arena  [head: "GET /x HTTP/1.1\r\nHost: a\r\n\r\n" .... free][fields][body if it is kept]
 *                  ^target            ^name ^value
 *
 * A head that outgrows its block moves into a larger one, and the slices with it.
 */
#ifndef HTTP_PARSER_H
#define HTTP_PARSER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/attr.h"
#include "base/slice.h"
#include "http/message.h"

enum parser_event {
    PARSER_MORE,    /* all bytes consumed, the message is not complete */
    PARSER_HEAD,    /* a valid head is complete and a body follows; feed on to read it */
    PARSER_MESSAGE, /* the message is complete; the rest belongs to the next one */
    PARSER_REFUSED  /* see refusal */
};

struct parser_limits {
    size_t head_bytes_max;   /* request line and header fields together */
    uint64_t body_bytes_max; /* after the chunked coding is taken off */
};

struct parser_refusal {
    int status;          /* requests: 400 413 414 417 431 501 503 505; replies: 502 503; 0 none */
    const char *message; /* static text for people */
};
/* After a refusal request.path is the path if the request line was sound, else empty. */

/* How far an unknown method has been read; see parser.c. */
enum parser_method { PARSER_METHOD_PLAIN, PARSER_METHOD_SEEKING, PARSER_METHOD_REPLACED };

struct parser {
    /* set once */
    struct parser_limits limits;
    struct arena *arena; /* the caller's, who resets it between messages */
    bool reads_replies;  /* a client's parser */

    /* the message in work; the caller may read these */
    bool keep_body; /* set by the caller after HEAD (a client's parser: always): bytes are kept */
    uint64_t body_max; /* likewise: of this body, where that is less than the limit; 0: the limit */
    bool started;      /* some byte of it has come (leading empty lines do not count) */
    bool head_complete; /* request or reply is filled, but for its body */
    bool complete;      /* MESSAGE was returned */
    union {
        struct http_request request;
        struct http_reply reply;
    };
    struct parser_refusal refusal;
    size_t head_bytes;   /* of its head, as far as it has come */
    uint64_t body_bytes; /* of its body, as far as it has come */

    /* the parser's own */
    bool answers_head;    /* the reply in work has no body whatever its fields say */
    bool chunked;         /* Transfer-Encoding: chunked */
    bool version_seen;    /* the request line has come as far as its version */
    bool in_name;         /* the last field has a name and no value yet */
    uint8_t method_state; /* enum parser_method */
    uint8_t blank_bytes;  /* of empty lines before the request line */
    uint8_t interim;      /* 1xx replies skipped */
    uint8_t trailer_name; /* characters of a trailer's name that match one we refuse */
    uint8_t field_capacity;
    uint8_t field_count;
    uint32_t head_capacity;
    uint32_t framing_bytes; /* chunk framing and trailers since the last chunk's data began */
    uint32_t framing_total; /* what exceeded the allowance of each chunk */
    struct http_field *fields;
    char *head;
    size_t body_capacity;
    uint64_t body_expected; /* Content-Length, or 0 */
    _Alignas(8) unsigned char llhttp[112];
};

/* parser_init_requests, parser_init_replies - ready for the first message, kept in arena. */
void parser_init_requests(struct parser *parser, const struct parser_limits *limits,
                          struct arena *arena);
void parser_init_replies(struct parser *parser, const struct parser_limits *limits,
                         struct arena *arena);

/*
 * parser_feed - consume bytes up to the next event.
 *
 * @bytes     what came; may be empty
 * @consumed  how many of them were used; never beyond the end of a message
 *
 * Returns  the event; after MESSAGE call parser_next first, after REFUSED it stays REFUSED
 * Parks    no
 * Owner    keeps nothing of bytes
 * Source   RFC 9112; llhttp 9.2 strict mode and the checks that it lacks
 */
enum parser_event parser_feed(struct parser *parser, struct slice bytes,
                              size_t *consumed) WARN_UNUSED;

/*
 * parser_finish - the peer finished sending.
 *
 * Returns  MESSAGE when that ends a reply's body; MORE when nothing of a message
 *          had come; else REFUSED
 */
enum parser_event parser_finish(struct parser *parser) WARN_UNUSED;

/* parser_next - forget the message and be ready for the next; the caller resets the arena. */
void parser_next(struct parser *parser);

/*
 * parser_pack - copy a complete request without a kept body, and what the exchange's
 * params point at, into another arena, as small as they are.
 *
 * The request's slices and the params point there then; the old arena may be reset
 * or given away, and nothing is fed until parser_next.
 *
 * Returns  0; -ENOMEM @to is used up: nothing has changed but what was taken from it
 */
int parser_pack(struct parser *parser, struct http_exchange *exchange,
                struct arena *to) WARN_UNUSED;

/* parser_expect_no_body - a client's parser: the reply in work answers a HEAD. */
void parser_expect_no_body(struct parser *parser);

/* parser_is_head_request - the request in work, refused or not, is a HEAD: its answer has no body. */
bool parser_is_head_request(const struct parser *parser);

/* parser_version - "9.2.1": of the llhttp that is linked. Static text. */
const char *parser_version(void);

#endif
