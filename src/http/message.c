/* SPDX-License-Identifier: Apache-2.0 */
/*
 * message.c - see message.h. The hop between a handler's answer and the writer:
 * fills struct http_response, allocates from the exchange's arena only, never
 * waits and reads no clock.
 */
#include "http/message.h"

#include "base/json.h"
#include "base/time.h"

struct http_status {
    int code;
    const char *reason;
};

/* Sorted by code. Source: RFC 9110 section 15, RFC 6585 (428, 429, 431), RFC 4918 (507). */
static const struct http_status http_statuses[] = {
    {100, "Continue"},
    {101, "Switching Protocols"},
    {200, "OK"},
    {201, "Created"},
    {202, "Accepted"},
    {203, "Non-Authoritative Information"},
    {204, "No Content"},
    {205, "Reset Content"},
    {206, "Partial Content"},
    {300, "Multiple Choices"},
    {301, "Moved Permanently"},
    {302, "Found"},
    {303, "See Other"},
    {304, "Not Modified"},
    {305, "Use Proxy"},
    {307, "Temporary Redirect"},
    {308, "Permanent Redirect"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {402, "Payment Required"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {406, "Not Acceptable"},
    {407, "Proxy Authentication Required"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {410, "Gone"},
    {411, "Length Required"},
    {412, "Precondition Failed"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {415, "Unsupported Media Type"},
    {416, "Range Not Satisfiable"},
    {417, "Expectation Failed"},
    {421, "Misdirected Request"},
    {422, "Unprocessable Content"},
    {426, "Upgrade Required"},
    {428, "Precondition Required"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {502, "Bad Gateway"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
    {505, "HTTP Version Not Supported"},
    {507, "Insufficient Storage"},
};

const struct slice *http_field_find(const struct http_field *fields, size_t count,
                                    struct slice name)
{
    for (size_t i = 0; i < count; i++) {
        if (slice_equal_nocase(fields[i].name, name)) {
            return &fields[i].value;
        }
    }
    return NULL;
}

const char *http_reason(int status)
{
    size_t low = 0;
    size_t high = sizeof(http_statuses) / sizeof(http_statuses[0]);
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (http_statuses[middle].code == status) {
            return http_statuses[middle].reason;
        }
        if (http_statuses[middle].code < status) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return "";
}

void http_respond_text(struct http_exchange *exchange, struct slice body)
{
    exchange->response->status = 200;
    exchange->response->content_type = HTTP_TYPE_TEXT;
    exchange->response->body = body;
}

void http_respond_json(struct http_exchange *exchange, int status, struct slice body)
{
    exchange->response->status = status;
    exchange->response->content_type = HTTP_TYPE_JSON;
    exchange->response->body = body;
}

/* The escaped form of s in the arena; .at is NULL when the arena is used up. */
static struct slice http_escaped(struct arena *arena, struct slice s)
{
    size_t length = json_escape(NULL, 0, s);
    char *at = arena_alloc(arena, length + 1);
    if (at == NULL) {
        return (struct slice){.at = NULL};
    }
    json_escape(at, length, s);
    return (struct slice){.at = at, .length = length};
}

void http_respond_error(struct http_exchange *exchange, int status, struct slice message,
                        uint64_t wall_ns)
{
    struct slice path = exchange->request->path;
    struct slice body = {.at = NULL};
    struct slice path_escaped = http_escaped(exchange->arena, path);
    struct slice message_escaped = http_escaped(exchange->arena, message);
    if (path_escaped.at != NULL && message_escaped.at != NULL) {
        char timestamp[TIME_JSON_SIZE];
        time_format_json(timestamp, wall_ns);
        /* Spring's order: the message, where there is one, stands before the path. */
        body = arena_printf(exchange->arena,
                            "{\"timestamp\":\"%s\",\"status\":%d,\"error\":\"%s\","
                            "%s%.*s%s\"path\":\"%.*s\"}",
                            timestamp, status, http_reason(status),
                            message.length > 0 ? "\"message\":\"" : "", (int)message_escaped.length,
                            message_escaped.at, message.length > 0 ? "\"," : "",
                            (int)path_escaped.length, path_escaped.at);
    }
    if (body.at == NULL) {
        exchange->response->status = status;
        exchange->response->content_type = (struct slice){.at = NULL};
        exchange->response->body = (struct slice){.at = NULL};
        return;
    }
    http_respond_json(exchange, status, body);
}
