/* SPDX-License-Identifier: Apache-2.0 */
/*
 * writer.c - see writer.h. The hop from a response to bytes; called by session.c
 * and client.c, which send them. Copies literals and formats integers by hand:
 * this runs for each response.
 */
#include "http/writer.h"

#include "base/must.h"

#define DECIMAL_MAX 20 /* digits of UINT64_MAX */

/* Where the next byte goes. Once something did not fit, nothing more is written. */
struct cursor {
    char *start;
    char *at;
    char *end;
    bool overflowed;
};

static void put(struct cursor *cursor, const char *bytes, size_t length)
{
    if (unlikely(length > (size_t)(cursor->end - cursor->at))) {
        cursor->overflowed = true;
        cursor->end = cursor->at;
        return;
    }
    /* An empty slice may have no address. */
    if (length > 0) {
        memcpy(cursor->at, bytes, length);
        cursor->at += length;
    }
}

#define put_literal(cursor, literal) put((cursor), (literal), sizeof(literal) - 1)

static void put_decimal(struct cursor *cursor, uint64_t value)
{
    char digits[DECIMAL_MAX];
    size_t first = sizeof(digits);
    do {
        digits[--first] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    put(cursor, digits + first, sizeof(digits) - first);
}

static bool is_control(char c)
{
    return ((unsigned char)c < ' ' && c != '\t') || c == 0x7f;
}

/* A field's value, in which a control character can end nothing. */
static void put_value(struct cursor *cursor, struct slice value)
{
    char *from = cursor->at;
    put(cursor, value.at, value.length);
    for (; from < cursor->at; from++) {
        if (unlikely(is_control(*from))) {
            *from = ' ';
        }
    }
}

/* Field names are ours, never the network's. */
static void put_field(struct cursor *cursor, const struct http_field *field)
{
    must(field->name.length > 0);
    for (size_t i = 0; i < field->name.length; i++) {
        unsigned char c = (unsigned char)field->name.at[i];
        must(c > ' ' && c < 0x7f && c != ':');
    }
    put(cursor, field->name.at, field->name.length);
    put_literal(cursor, ": ");
    put_value(cursor, field->value);
    put_literal(cursor, "\r\n");
}

static int status_of(const struct http_response *response)
{
    return response->status == 0 ? 200 : response->status;
}

static bool has_length(int status)
{
    return status >= 200 && status != 204 && status != 304;
}

static void put_status_line(struct cursor *cursor, int status)
{
    must(status >= 100 && status <= 999);
    const char *reason = http_reason(status);
    put_literal(cursor, "HTTP/1.1 ");
    put_decimal(cursor, (uint64_t)status);
    put_literal(cursor, " ");
    put(cursor, reason, strlen(reason));
    put_literal(cursor, "\r\n");
}

size_t writer_head(char *dst, size_t capacity, const struct http_response *response,
                   const struct writer_framing *framing)
{
    struct cursor cursor = {.start = dst, .at = dst, .end = dst + capacity};
    int status = status_of(response);
    if (likely(status == 200)) {
        put_literal(&cursor, "HTTP/1.1 200 OK\r\nDate: ");
    } else {
        put_status_line(&cursor, status);
        put_literal(&cursor, "Date: ");
    }
    put(&cursor, framing->date, TIME_HTTP_SIZE - 1);
    put_literal(&cursor, "\r\n");
    if (response->content_type.length > 0) {
        put_literal(&cursor, "Content-Type: ");
        put_value(&cursor, response->content_type);
        put_literal(&cursor, "\r\n");
    }
    if (has_length(status)) {
        put_literal(&cursor, "Content-Length: ");
        put_decimal(&cursor, response->body.length);
        put_literal(&cursor, "\r\n");
    }
    if (!framing->keep_alive || response->close) {
        put_literal(&cursor, "Connection: close\r\n");
    } else if (framing->version_minor == 0) {
        put_literal(&cursor, "Connection: keep-alive\r\n");
    }
    must(response->extra_count <= HTTP_EXTRA_FIELDS_MAX);
    for (size_t i = 0; i < response->extra_count; i++) {
        put_field(&cursor, &response->extra[i]);
    }
    put_literal(&cursor, "\r\n");
    return cursor.overflowed ? 0 : (size_t)(cursor.at - cursor.start);
}

size_t writer_body_length(const struct http_response *response,
                          const struct writer_framing *framing)
{
    return framing->head_only || !has_length(status_of(response)) ? 0 : response->body.length;
}

size_t writer_response(char *dst, size_t capacity, const struct http_response *response,
                       const struct writer_framing *framing)
{
    size_t head = writer_head(dst, capacity, response, framing);
    size_t body = writer_body_length(response, framing);
    if (head == 0 || body > capacity - head) {
        return 0;
    }
    if (body > 0) {
        memcpy(dst + head, response->body.at, body);
    }
    return head + body;
}

struct slice writer_continue(void)
{
    return SLICE("HTTP/1.1 100 Continue\r\n\r\n");
}

static bool is_printable(struct slice s)
{
    for (size_t i = 0; i < s.length; i++) {
        unsigned char c = (unsigned char)s.at[i];
        if (c <= ' ' || c >= 0x7f) {
            return false;
        }
    }
    return s.length > 0;
}

size_t writer_request(char *dst, size_t capacity, struct slice host, struct slice path)
{
    if (!is_printable(host) || !is_printable(path)) {
        return 0;
    }
    struct cursor cursor = {.start = dst, .at = dst, .end = dst + capacity};
    put_literal(&cursor, "GET ");
    put(&cursor, path.at, path.length);
    put_literal(&cursor, " HTTP/1.1\r\nHost: ");
    put(&cursor, host.at, host.length);
    put_literal(&cursor, "\r\n\r\n");
    return cursor.overflowed ? 0 : (size_t)(cursor.at - cursor.start);
}
