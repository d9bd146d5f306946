/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parser.c - see parser.h. The hop from received bytes to a request: drives llhttp,
 * whose callbacks only record. Called by session.c, client.c and the load generator.
 * The one file that knows <llhttp.h>; its quirks that we guard against are named
 * where we do.
 *
 * A head is parsed in the arena, block by block, so that what llhttp points at stays
 * where it is and in one piece; a body is parsed where it was received. llhttp pauses
 * at the end of a head that has a body, at each chunk's size line, and at the end of
 * the message; it is reset for each message rather than resumed, since after
 * "Connection: close" or an upgrade it would not go on.
 */
#include "http/parser.h"

#include <assert.h>

/* llhttp names its methods as message.h does ours; theirs get a name of their own here. */
#define HTTP_GET LLHTTP_GET
#define HTTP_HEAD LLHTTP_HEAD
#define HTTP_POST LLHTTP_POST
#define HTTP_PUT LLHTTP_PUT
#define HTTP_DELETE LLHTTP_DELETE
#define HTTP_OPTIONS LLHTTP_OPTIONS
#define HTTP_PATCH LLHTTP_PATCH
#define HTTP_TRACE LLHTTP_TRACE
#define HTTP_CONNECT LLHTTP_CONNECT
#include <llhttp.h>
#undef HTTP_GET
#undef HTTP_HEAD
#undef HTTP_POST
#undef HTTP_PUT
#undef HTTP_DELETE
#undef HTTP_OPTIONS
#undef HTTP_PATCH
#undef HTTP_TRACE
#undef HTTP_CONNECT

#include "base/must.h"
#include "http/parser_parts.h"

#define METHOD_BYTES_MAX 32 /* no method in use is longer */
#define INTERIM_MAX 16      /* 1xx replies before the one that counts */

static_assert(sizeof(llhttp_t) <= sizeof(((struct parser *)NULL)->llhttp),
              "struct parser has no room for this llhttp");
static_assert(_Alignof(llhttp_t) <= 8, "struct parser aligns llhttp to 8 bytes");
static_assert(sizeof(struct parser) <= 400, "sits in the first page of a fiber's stack");

static llhttp_t *llhttp_of(struct parser *parser)
{
    return (llhttp_t *)(void *)parser->llhttp;
}

static struct parser *parser_of(llhttp_t *llhttp)
{
    return container_of(llhttp, struct parser, llhttp);
}

static enum http_method method_of(const llhttp_t *llhttp)
{
    switch (llhttp->method) {
    case LLHTTP_GET:
        return HTTP_GET;
    case LLHTTP_HEAD:
        return HTTP_HEAD;
    case LLHTTP_POST:
        return HTTP_POST;
    case LLHTTP_PUT:
        return HTTP_PUT;
    case LLHTTP_DELETE:
        return HTTP_DELETE;
    case LLHTTP_OPTIONS:
        return HTTP_OPTIONS;
    case LLHTTP_PATCH:
        return HTTP_PATCH;
    case LLHTTP_TRACE:
        return HTTP_TRACE;
    case LLHTTP_CONNECT:
        return HTTP_CONNECT;
    default:
        return HTTP_METHOD_UNKNOWN;
    }
}

/* ------------------------------------ llhttp's callbacks (the others: parser_store.c) */

static int on_version_complete(llhttp_t *llhttp)
{
    struct parser *parser = parser_of(llhttp);
    /* llhttp takes 0.9 and 2.0 as well. */
    if (llhttp->http_major != 1 || llhttp->http_minor > 1) {
        return parser__refuse(parser, 505, "only HTTP/1.0 and HTTP/1.1 are spoken here");
    }
    /* After the method of HTTP/2's preface llhttp reads no fields. */
    if (!parser->reads_replies && llhttp->method == HTTP_PRI) {
        return parser__refuse(parser, 501, "method is unknown");
    }
    return 0;
}

static int reply_headers_complete(struct parser *parser, llhttp_t *llhttp)
{
    struct http_reply *reply = &parser->reply;
    reply->status = llhttp->status_code;
    reply->version_minor = llhttp->http_minor;
    if (parser__check_reply(parser) != 0) {
        return -1;
    }
    bool no_body =
        parser->answers_head || reply->status < 200 || reply->status == 204 || reply->status == 304;
    if (no_body) {
        return 1; /* tells llhttp to skip what the fields announce */
    }
    bool empty = (llhttp->flags & F_CONTENT_LENGTH) != 0 && llhttp->content_length == 0;
    return empty ? 0 : HPE_PAUSED;
}

static int request_headers_complete(struct parser *parser, llhttp_t *llhttp)
{
    struct http_request *request = &parser->request;
    bool replaced = parser->method_state == PARSER_METHOD_REPLACED;
    request->method = replaced ? HTTP_METHOD_UNKNOWN : method_of(llhttp);
    request->version_minor = llhttp->http_minor;
    if (parser__check_request(parser) != 0) {
        return -1;
    }
    return request->has_body ? HPE_PAUSED : 0;
}

static int on_headers_complete(llhttp_t *llhttp)
{
    struct parser *parser = parser_of(llhttp);
    parser->body_expected = llhttp->content_length;
    int result = parser->reads_replies ? reply_headers_complete(parser, llhttp)
                                       : request_headers_complete(parser, llhttp);
    /* Upgrade is ignored and CONNECT an ordinary message; llhttp would end the parsing. */
    llhttp->upgrade = 0;
    /* From here on the flag tells of trailers; llhttp sets it for Proxy-Connection too. */
    llhttp->flags &= (uint16_t)~F_CONNECTION_CLOSE;
    if (parser->chunked) {
        /* llhttp 9.2.1 does not know "chunked" that a tab follows. */
        llhttp->flags |= F_CHUNKED;
    }
    parser->head_complete = result != -1;
    parser->in_name = false;
    return result;
}

static int on_chunk_header(llhttp_t *llhttp)
{
    struct parser *parser = parser_of(llhttp);
    if (llhttp->content_length > parser__body_max(parser) - parser->body_bytes) {
        return parser__refuse(parser, 413, "body is too large");
    }
    return HPE_PAUSED;
}

static int on_message_complete(llhttp_t *llhttp)
{
    struct parser *parser = parser_of(llhttp);
    parser->complete = true;
    if ((llhttp->flags & F_CONNECTION_CLOSE) != 0) {
        if (parser->reads_replies) {
            parser->reply.keep_alive = false;
        } else {
            parser->request.keep_alive = false;
        }
    }
    return HPE_PAUSED;
}

static const llhttp_settings_t request_callbacks = {
    .on_url = parser__on_url,
    .on_url_complete = parser__on_url_complete,
    .on_version = parser__on_version,
    .on_version_complete = on_version_complete,
    .on_header_field = parser__on_header_field,
    .on_header_value = parser__on_header_value,
    .on_headers_complete = on_headers_complete,
    .on_body = parser__on_body,
    .on_chunk_header = on_chunk_header,
    .on_message_complete = on_message_complete,
};

static const llhttp_settings_t reply_callbacks = {
    .on_version = parser__on_version,
    .on_version_complete = on_version_complete,
    .on_header_field = parser__on_header_field,
    .on_header_value = parser__on_header_value,
    .on_headers_complete = on_headers_complete,
    .on_body = parser__on_body,
    .on_chunk_header = on_chunk_header,
    .on_message_complete = on_message_complete,
};

/* ------------------------------------------------------------------ llhttp's refusals */

static enum parser_event refuse_for_llhttp(struct parser *parser, enum llhttp_errno error)
{
    const llhttp_t *llhttp = llhttp_of(parser);
    switch (error) {
    case HPE_INVALID_URL:
        parser__refuse_target(parser, llhttp->error_pos);
        break;
    case HPE_INVALID_VERSION:
        parser__refuse_version(parser);
        break;
    case HPE_INVALID_CONSTANT:
        parser__refuse(parser, 400, "start line is malformed");
        break;
    case HPE_INVALID_TRANSFER_ENCODING:
        /* Beside Content-Length or after the body; else a list of codings. */
        if ((llhttp->flags & F_CONTENT_LENGTH) != 0 || parser->head_complete) {
            parser__refuse(parser, 400, "Transfer-Encoding is out of place");
        } else {
            parser__refuse(parser, 501, "transfer coding is not chunked");
        }
        break;
    case HPE_INVALID_CONTENT_LENGTH:
    case HPE_UNEXPECTED_CONTENT_LENGTH:
        parser__refuse(parser, 400, "Content-Length is malformed or out of place");
        break;
    case HPE_INVALID_CHUNK_SIZE:
        parser__refuse(parser, 400, "chunk size is malformed");
        break;
    default: /* ours, which is noted already; or one of several names for a bad byte */
        parser__refuse(parser, 400,
                       parser->head_complete ? "chunked body is malformed" : "header is malformed");
        break;
    }
    return PARSER_REFUSED;
}

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
        (error == HPE_INVALID_CONSTANT && method_of(llhttp) == HTTP_METHOD_UNKNOWN)) {
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
            return refuse_for_llhttp(parser, error);
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
            return refuse_for_llhttp(parser, error);
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
    llhttp_init(llhttp_of(parser), HTTP_REQUEST, &request_callbacks);
}

void parser_init_replies(struct parser *parser, const struct parser_limits *limits,
                         struct arena *arena)
{
    parser_init(parser, limits, arena);
    parser->reads_replies = true;
    parser->keep_body = true;
    llhttp_init(llhttp_of(parser), HTTP_RESPONSE, &reply_callbacks);
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
