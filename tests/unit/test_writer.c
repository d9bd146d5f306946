/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property: a response is written exactly as HTTP/1.1 wants it, never beyond the
 * capacity, and no value of a field can split it.
 *
 * Method: whole texts are compared; every capacity from 0 up to the needed one is
 * tried in front of guard bytes; what is written is read back by the parser.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "http/parser.h"
#include "http/writer.h"

#define DATE "Sun, 06 Nov 1994 08:49:37 GMT"
#define GUARD 0x5a

static const struct writer_framing keeps = {.version_minor = 1, .keep_alive = true, .date = DATE};

/* The response as a string; every smaller capacity must give 0 and leave the guard alone. */
static const char *written(const struct http_response *response,
                           const struct writer_framing *framing)
{
    static char text[2048];
    memset(text, GUARD, sizeof(text));
    size_t length = writer_response(text, sizeof(text) - 1, response, framing);
    assert_in_range(length, 1, sizeof(text) - 1);
    for (size_t capacity = 0; capacity <= length; capacity++) {
        char small[2048];
        memset(small, GUARD, sizeof(small));
        assert_int_equal(writer_response(small, capacity, response, framing),
                         capacity == length ? length : 0);
        for (size_t i = capacity; i < sizeof(small); i++) {
            assert_int_equal(small[i], GUARD);
        }
    }
    text[length] = '\0';
    return text;
}

static void test_usual(void **state)
{
    (void)state;
    struct http_response response = {.content_type = HTTP_TYPE_TEXT, .body = SLICE("Hello, World")};
    assert_string_equal(written(&response, &keeps),
                        "HTTP/1.1 200 OK\r\nDate: " DATE "\r\n"
                        "Content-Type: text/plain;charset=UTF-8\r\nContent-Length: 12\r\n\r\n"
                        "Hello, World");
}

static void test_empty(void **state)
{
    (void)state;
    struct http_response response = {.status = 0};
    assert_string_equal(written(&response, &keeps),
                        "HTTP/1.1 200 OK\r\nDate: " DATE "\r\nContent-Length: 0\r\n\r\n");
}

static void test_persistence(void **state)
{
    (void)state;
    static const struct {
        int version_minor;
        bool keep_alive, close;
        const char *line;
    } cases[] = {
        {1, true, false, ""},
        {1, false, false, "Connection: close\r\n"},
        {1, true, true, "Connection: close\r\n"},
        {0, true, false, "Connection: keep-alive\r\n"},
        {0, false, false, "Connection: close\r\n"},
        {0, true, true, "Connection: close\r\n"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct http_response response = {.close = cases[i].close};
        struct writer_framing framing = {.version_minor = cases[i].version_minor,
                                         .keep_alive = cases[i].keep_alive,
                                         .date = DATE};
        char expected[256];
        snprintf(expected, sizeof(expected),
                 "HTTP/1.1 200 OK\r\nDate: " DATE "\r\nContent-Length: 0\r\n%s\r\n", cases[i].line);
        assert_string_equal(written(&response, &framing), expected);
    }
}

static void test_statuses(void **state)
{
    (void)state;
    static const struct {
        int status;
        const char *text;
    } cases[] = {
        {404, "HTTP/1.1 404 Not Found\r\nDate: " DATE "\r\nContent-Length: 1\r\n\r\nx"},
        {503, "HTTP/1.1 503 Service Unavailable\r\nDate: " DATE "\r\nContent-Length: 1\r\n\r\nx"},
        {299, "HTTP/1.1 299 \r\nDate: " DATE "\r\nContent-Length: 1\r\n\r\nx"},
        {204, "HTTP/1.1 204 No Content\r\nDate: " DATE "\r\n\r\n"},
        {304, "HTTP/1.1 304 Not Modified\r\nDate: " DATE "\r\n\r\n"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct http_response response = {.status = cases[i].status, .body = SLICE("x")};
        assert_string_equal(written(&response, &keeps), cases[i].text);
    }
}

static void test_head_request(void **state)
{
    (void)state;
    struct http_response response = {.content_type = HTTP_TYPE_JSON, .body = SLICE("{}")};
    struct writer_framing framing = keeps;
    framing.head_only = true;
    assert_string_equal(written(&response, &framing),
                        "HTTP/1.1 200 OK\r\nDate: " DATE
                        "\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n");
    assert_int_equal(writer_body_length(&response, &framing), 0);
    assert_int_equal(writer_body_length(&response, &keeps), 2);
}

static void test_lengths(void **state)
{
    (void)state;
    static const size_t lengths[] = {9, 10, 99, 100, 1048576, SIZE_MAX};
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        struct http_response response = {.body = {.at = "", .length = lengths[i]}};
        char text[WRITER_HEAD_MAX + 1];
        char expected[256];
        size_t length = writer_head(text, sizeof(text) - 1, &response, &keeps);
        text[length] = '\0';
        snprintf(expected, sizeof(expected),
                 "HTTP/1.1 200 OK\r\nDate: " DATE "\r\nContent-Length: %zu\r\n\r\n", lengths[i]);
        assert_string_equal(text, expected);
    }
}

static void test_extra_fields(void **state)
{
    (void)state;
    struct http_response response = {.status = 405, .extra_count = 2};
    response.extra[0] = (struct http_field){SLICE("Allow"), SLICE("GET, HEAD")};
    response.extra[1] = (struct http_field){SLICE("Retry-After"), SLICE("1")};
    assert_string_equal(written(&response, &keeps),
                        "HTTP/1.1 405 Method Not Allowed\r\nDate: " DATE
                        "\r\nContent-Length: 0\r\nAllow: GET, HEAD\r\nRetry-After: 1\r\n\r\n");
}

static void test_values_cannot_split(void **state)
{
    (void)state;
    struct http_response response = {.content_type = SLICE("a\r\nX: y"), .extra_count = 1};
    response.extra[0] =
        (struct http_field){SLICE("B"), SLICE("c\r\n\r\nHTTP/1.1 200\n\0\x7f\t\xc3\xa4")};
    assert_string_equal(written(&response, &keeps),
                        "HTTP/1.1 200 OK\r\nDate: " DATE
                        "\r\nContent-Type: a  X: y\r\nContent-Length: 0"
                        "\r\nB: c    HTTP/1.1 200   \t\xc3\xa4\r\n\r\n");
}

static void test_longest_head_fits(void **state)
{
    (void)state;
    struct http_response response = {.status = 431, .content_type = HTTP_TYPE_TEXT, .close = true};
    response.body.length = SIZE_MAX;
    char text[WRITER_HEAD_MAX];
    assert_in_range(writer_head(text, sizeof(text), &response, &keeps), 1, WRITER_HEAD_MAX);
}

static void test_request(void **state)
{
    (void)state;
    static const char expected[] = "GET /remote/2 HTTP/1.1\r\nHost: h:8085\r\n\r\n";
    char text[128];
    size_t needed = sizeof(expected) - 1;
    for (size_t capacity = 0; capacity <= needed; capacity++) {
        size_t length = writer_request(text, capacity, SLICE("h:8085"), SLICE("/remote/2"));
        assert_int_equal(length, capacity == needed ? needed : 0);
    }
    assert_memory_equal(text, expected, needed);
    static const char *const bad[] = {"", "/a b", "/a\r\nX:", "/\x7f", "/\xc3\xa4", "/\t"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(writer_request(text, sizeof(text), SLICE("h"), slice_of(bad[i])), 0);
        assert_int_equal(writer_request(text, sizeof(text), slice_of(bad[i]), SLICE("/")), 0);
    }
}

/* Our own parsers take what we write. */
static void test_round_trip(void **state)
{
    (void)state;
    static _Alignas(16) char memory[4096];
    char text[1024];
    struct arena arena;
    struct parser parser;
    struct parser_limits limits = {.head_bytes_max = 1024, .body_bytes_max = 1024};
    size_t used;
    arena_init(&arena, memory, sizeof(memory), sizeof(memory));
    parser_init_requests(&parser, &limits, &arena);
    size_t length = writer_request(text, sizeof(text), SLICE("h"), SLICE("/a"));
    assert_int_equal(parser_feed(&parser, (struct slice){text, length}, &used), PARSER_MESSAGE);
    assert_int_equal(used, length);
    assert_true(slice_equal(parser.request.path, SLICE("/a")));

    arena_reset(&arena);
    parser_init_replies(&parser, &limits, &arena);
    struct slice interim = writer_continue();
    assert_int_equal(parser_feed(&parser, interim, &used), PARSER_MORE);
    struct http_response response = {
        .status = 404, .content_type = HTTP_TYPE_JSON, .body = SLICE("{}")};
    length = writer_response(text, sizeof(text), &response, &keeps);
    struct slice rest = {text, length};
    assert_int_equal(parser_feed(&parser, rest, &used), PARSER_HEAD);
    rest.at += used;
    rest.length -= used;
    assert_int_equal(parser_feed(&parser, rest, &used), PARSER_MESSAGE);
    assert_int_equal(used, 2);
    assert_int_equal(parser.reply.status, 404);
    assert_true(parser.reply.keep_alive);
    assert_true(slice_equal(parser.reply.body, SLICE("{}")));
    arena_reset(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_usual),
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_persistence),
        cmocka_unit_test(test_statuses),
        cmocka_unit_test(test_head_request),
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_extra_fields),
        cmocka_unit_test(test_values_cannot_split),
        cmocka_unit_test(test_longest_head_fits),
        cmocka_unit_test(test_request),
        cmocka_unit_test(test_round_trip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
