/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parser_llhttp.c - what llhttp tells: callbacks at the ends of a version, a head, a chunk's
 * size line and a message, and its errors as refusals. The callbacks that keep bytes are in
 * parser_store.c. Its quirks that we guard against are named where we do.
 */
#include "http/parser_llhttp.h"

enum http_method parser__method_of(const llhttp_t *llhttp)
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
    request->method = replaced ? HTTP_METHOD_UNKNOWN : parser__method_of(llhttp);
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

const llhttp_settings_t parser__request_callbacks = {
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

const llhttp_settings_t parser__reply_callbacks = {
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

enum parser_event parser__refuse_for_llhttp(struct parser *parser, enum llhttp_errno error)
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
