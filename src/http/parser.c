/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parser.c - see parser.h. The hop from received bytes to a request: drives llhttp,
 * whose callbacks (parser_llhttp.c, parser_store.c) only record. Called by session.c,
 * client.c and the load generator.
 *
 * A head is parsed in the arena, block by block, so that what llhttp points at stays
 * where it is and in one piece; a body is parsed where it was received. llhttp pauses
 * at the end of a head that has a body, at each chunk's size line, and at the end of
 * the message; it is reset for each message rather than resumed, since after
 * "Connection: close" or an upgrade it would not go on.
 */
#include "http/parser.h"

#include "base/must.h"
#include "http/parser_llhttp.h"

#define METHOD_BYTES_MAX 32 /* no method in use is longer */
#define INTERIM_MAX 16      /* 1xx replies before the one that counts */

/* ----------------------------------------------------------------------- reading a head */

/*
 * llhttp stops at a method that it does not know, though the message is sound and a
 * 501 needs no broken connection. So the method is read here, llhttp is told POST,
 * and goes on from there. The bytes of the head so far are in parser->head.
 *
 * Returns  HPE_OK also when the method is not complete yet
 */
static enum llhttp_errno replace_method(struct parser *parser)
{
    llhttp_t *llhttp = llhttp_of(parser);
    size_t length = 0;
    while (length < parser->head_bytes && parser__is_token_char(parser->head[length])) {
        length++;
    }
    parser->method_state = PARSER_METHOD_SEEKING;
    if (length > METHOD_BYTES_MAX) {
        parser__refuse(parser, 501, "method is unknown");
        return HPE_USER;
    }
    if (length == parser->head_bytes) {
        return HPE_OK;
    }
    if (length == 0 || parser->head[length] != ' ') {
        parser__refuse(parser, 400, "method is malformed");
        return HPE_USER;
    }
    parser->method_state = PARSER_METHOD_REPLACED;
    parser->request.target = (struct slice){.at = NULL};
    parser->version_seen = false;
    llhttp_reset(llhttp);
    enum llhttp_errno error = llhttp_execute(llhttp, "POST ", sizeof("POST ") - 1);
    must(error == HPE_OK);
    size_t rest = parser->head_bytes - length - 1;
    return rest == 0 ? HPE_OK : llhttp_execute(llhttp, parser->head + length + 1, rest);
}

/* Parse the last length bytes of parser->head. */
static enum llhttp_errno execute_head(struct parser *parser, size_t length)
{
    llhttp_t *llhttp = llhttp_of(parser);
    if (unlikely(parser->method_state == PARSER_METHOD_SEEKING)) {
        return replace_method(parser);
    }
    enum llhttp_errno error =
        llhttp_execute(llhttp, parser->head + parser->head_bytes - length, length);
    if (likely(error == HPE_OK || error == HPE_PAUSED) || parser->reads_replies ||
        parser->method_state == PARSER_METHOD_REPLACED) {
        return error;
    }
    /* Methods of RTSP are refused no sooner than at "HTTP/". */
    if (error == HPE_INVALID_METHOD ||
        (error == HPE_INVALID_CONSTANT && parser__method_of(llhttp) == HTTP_METHOD_UNKNOWN)) {
        return replace_method(parser);
    }
    return error;
}

/* Forget a 1xx reply; another follows. */
static int skip_interim(struct parser *parser)
{
    if (++parser->interim > INTERIM_MAX) {
        return parser__refuse(parser, 502, "too many interim replies");
    }
    llhttp_reset(llhttp_of(parser));
    memset(&parser->reply, 0, sizeof(parser->reply));
    parser->head_bytes = 0;
    parser->field_count = 0;
    parser->version_seen = false;
    parser->head_complete = false;
    parser->complete = false;
    parser->chunked = false;
    return 0;
}

static enum parser_event feed_head(struct parser *parser, const char **at, const char *end)
{
    if (!parser->started && parser__skip_blank(parser, at, end) != 0) {
        return PARSER_REFUSED;
    }
    while (*at < end) {
        if (parser__head_reserve(parser) != 0) {
            return PARSER_REFUSED;
        }
        size_t room = parser->head_capacity - parser->head_bytes;
        size_t length = (size_t)(end - *at);
        length = length > room ? room : length;
        char *block = parser->head + parser->head_bytes;
        memcpy(block, *at, length);
        parser->head_bytes += length;

        enum llhttp_errno error = execute_head(parser, length);
        if (error == HPE_OK) {
            *at += length;
            if (!parser->version_seen && parser__check_line_goes_on(parser) != 0) {
                return PARSER_REFUSED;
            }
            continue;
        }
        if (unlikely(error != HPE_PAUSED)) {
            return parser__refuse_for_llhttp(parser, error);
        }
        const char *stop = llhttp_of(parser)->error_pos;
        must(stop > block && stop <= block + length);
        *at += stop - block;
        parser->head_bytes = (size_t)(stop - parser->head);
        if (!parser->complete) {
            return PARSER_HEAD;
        }
        if (!parser->reads_replies || parser->reply.status >= 200) {
            return PARSER_MESSAGE;
        }
        if (skip_interim(parser) != 0) {
            return PARSER_REFUSED;
        }
    }
    return PARSER_MORE;
}

/* ----------------------------------------------------------------------- reading a body */

static enum parser_event feed_body(struct parser *parser, const char **at, const char *end)
{
    llhttp_t *llhttp = llhttp_of(parser);
    while (*at < end) {
        uint64_t body_before = parser->body_bytes;
        llhttp_resume(llhttp);
        enum llhttp_errno error = llhttp_execute(llhttp, *at, (size_t)(end - *at));
        if (unlikely(error != HPE_OK && error != HPE_PAUSED)) {
            return parser__refuse_for_llhttp(parser, error);
        }
        const char *stop = error == HPE_OK ? end : llhttp->error_pos;
        if (parser->chunked) {
            uint64_t data = parser->body_bytes - body_before;
            if (parser__count_framing(parser, (uint64_t)(stop - *at) - data) != 0) {
                return PARSER_REFUSED;
            }
        }
        *at = stop;
        if (parser->complete) {
            return PARSER_MESSAGE;
        }
        if (error == HPE_PAUSED) {
            parser__end_framing(parser);
        }
    }
    return PARSER_MORE;
}

/* -------------------------------------------------------------------------- the interface */

static void parser_init(struct parser *parser, const struct parser_limits *limits,
                        struct arena *arena)
{
    must(limits->head_bytes_max > 0 && limits->head_bytes_max <= INT32_MAX);
    memset(parser, 0, sizeof(*parser));
    parser->limits = *limits;
    parser->arena = arena;
}

void parser_init_requests(struct parser *parser, const struct parser_limits *limits,
                          struct arena *arena)
{
    parser_init(parser, limits, arena);
    llhttp_init(llhttp_of(parser), HTTP_REQUEST, &parser__request_callbacks);
}

void parser_init_replies(struct parser *parser, const struct parser_limits *limits,
                         struct arena *arena)
{
    parser_init(parser, limits, arena);
    parser->reads_replies = true;
    parser->keep_body = true;
    llhttp_init(llhttp_of(parser), HTTP_RESPONSE, &parser__reply_callbacks);
}

enum parser_event parser_feed(struct parser *parser, struct slice bytes, size_t *consumed)
{
    *consumed = 0;
    if (parser->refusal.status != 0) {
        return PARSER_REFUSED;
    }
    must(!parser->complete);
    if (bytes.length == 0) {
        return PARSER_MORE;
    }
    const char *at = bytes.at;
    const char *end = bytes.at + bytes.length;
    enum parser_event event =
        parser->head_complete ? feed_body(parser, &at, end) : feed_head(parser, &at, end);
    *consumed = (size_t)(at - bytes.at);
    return event;
}

enum parser_event parser_finish(struct parser *parser)
{
    if (parser->refusal.status != 0) {
        return PARSER_REFUSED;
    }
    must(!parser->complete);
    if (!parser->started) {
        return PARSER_MORE;
    }
    if (parser->head_complete && llhttp_message_needs_eof(llhttp_of(parser)) != 0) {
        parser->complete = true;
        return PARSER_MESSAGE;
    }
    parser__refuse(parser, 400, "message ended too early");
    return PARSER_REFUSED;
}

void parser_next(struct parser *parser)
{
    must(parser->complete || !parser->started);
    must(parser->refusal.status == 0);
    size_t from = offsetof(struct parser, keep_body);
    memset((char *)parser + from, 0, offsetof(struct parser, llhttp) - from);
    parser->keep_body = parser->reads_replies;
    llhttp_reset(llhttp_of(parser));
}

void parser_expect_no_body(struct parser *parser)
{
    must(parser->reads_replies && !parser->started);
    parser->answers_head = true;
}

bool parser_is_head_request(const struct parser *parser)
{
    static const char head[] = "HEAD ";
    return parser->request.method == HTTP_HEAD ||
           (!parser->head_complete && parser->head_bytes >= sizeof(head) - 1 &&
            memcmp(parser->head, head, sizeof(head) - 1) == 0);
}

#define TEXT_OF(number) #number
#define VERSION_TEXT(major, minor, patch) TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)

const char *parser_version(void)
{
    return VERSION_TEXT(LLHTTP_VERSION_MAJOR, LLHTTP_VERSION_MINOR, LLHTTP_VERSION_PATCH);
}
