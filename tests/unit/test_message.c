/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property: an error body is Spring's, byte for byte, and stays valid JSON
 * whatever path and message hold; fields are found by name in any case; without
 * memory the answer is still an answer. Method: fixed clock, literal bodies.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/time.h"
#include "http/message.h"

/* 2026-11-30T15:58:44.030Z */
#define WALL_NS (UINT64_C(1796054324) * NS_PER_S + 30 * NS_PER_MS)

static void assert_body(const struct http_response *response, const char *wanted)
{
    char text[1024];
    assert_in_range(response->body.length, 0, sizeof(text) - 1);
    memcpy(text, response->body.at, response->body.length);
    text[response->body.length] = '\0';
    assert_string_equal(text, wanted);
}

static void an_error_body_is_springs(void **state)
{
    (void)state;
    char memory[2048];
    struct arena arena;
    arena_init(&arena, memory, sizeof(memory), sizeof(memory));
    struct http_request request = {.path = SLICE("/nope")};
    struct http_response response = {.status = 0};
    struct http_exchange exchange = {.request = &request, .response = &response, .arena = &arena};

    http_respond_error(&exchange, 404, SLICE(""), WALL_NS);
    assert_int_equal(response.status, 404);
    assert_true(slice_equal(response.content_type, HTTP_TYPE_JSON));
    assert_body(&response, "{\"timestamp\":\"2026-11-30T15:58:44.030+00:00\",\"status\":404,"
                           "\"error\":\"Not Found\",\"path\":\"/nope\"}");

    request.path = SLICE("/a\"b\\\xff\n");
    http_respond_error(&exchange, 400, SLICE("n is \"x\""), WALL_NS);
    assert_body(&response, "{\"timestamp\":\"2026-11-30T15:58:44.030+00:00\",\"status\":400,"
                           "\"error\":\"Bad Request\",\"message\":\"n is \\\"x\\\"\","
                           "\"path\":\"/a\\\"b\\\\\xef\xbf\xbd\\n\"}");

    request.path = (struct slice){0}; /* nothing of the request was understood */
    http_respond_error(&exchange, 599, SLICE(""), WALL_NS);
    assert_body(&response, "{\"timestamp\":\"2026-11-30T15:58:44.030+00:00\",\"status\":599,"
                           "\"error\":\"\",\"path\":\"\"}");
    arena_reset(&arena);
}

static void without_memory_the_status_still_goes_out(void **state)
{
    (void)state;
    struct http_request request = {.path = SLICE("/nope")};
    for (size_t size = 0; size < 300; size++) {
        char *memory = malloc(size > 0 ? size : 1);
        struct arena arena;
        arena_init(&arena, memory, size, size);
        struct http_response response = {.body = SLICE("old")};
        struct http_exchange exchange = {
            .request = &request, .response = &response, .arena = &arena};
        http_respond_error(&exchange, 503, SLICE("no room"), WALL_NS);
        assert_int_equal(response.status, 503);
        if (response.body.length == 0) {
            assert_int_equal(response.content_type.length, 0);
        } else {
            assert_int_equal(response.body.at[response.body.length - 1], '}');
        }
        arena_reset(&arena);
        free(memory);
    }
}

static void fields_are_found_in_any_case(void **state)
{
    (void)state;
    const struct http_field fields[] = {
        {SLICE("Host"), SLICE("a")},
        {SLICE("X-Twice"), SLICE("first")},
        {SLICE("x-twice"), SLICE("second")},
    };
    const struct slice *found = http_field_find(fields, 3, SLICE("X-TWICE"));
    assert_ptr_equal(found, &fields[1].value);
    assert_ptr_equal(http_field_find(fields, 3, SLICE("hOST")), &fields[0].value);
    assert_null(http_field_find(fields, 3, SLICE("Hos")));
    assert_null(http_field_find(fields, 1, SLICE("X-Twice")));
    assert_null(http_field_find(NULL, 0, SLICE("Host")));
}

static void every_status_we_send_has_its_phrase(void **state)
{
    (void)state;
    static const struct {
        int status;
        const char *reason;
    } cases[] = {
        {100, "Continue"},
        {200, "OK"},
        {201, "Created"},
        {204, "No Content"},
        {304, "Not Modified"},
        {400, "Bad Request"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {408, "Request Timeout"},
        {413, "Content Too Large"},
        {414, "URI Too Long"},
        {431, "Request Header Fields Too Large"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {502, "Bad Gateway"},
        {503, "Service Unavailable"},
        {504, "Gateway Timeout"},
        {505, "HTTP Version Not Supported"},
        {507, "Insufficient Storage"},
        {0, ""},
        {99, ""},
        {299, ""},
        {418, ""},
        {506, ""},
        {-1, ""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_string_equal(http_reason(cases[i].status), cases[i].reason);
    }
    int known = 0;
    for (int status = 0; status < 1000; status++) { /* a table out of order would lose some */
        known += http_reason(status)[0] != '\0';
    }
    assert_int_equal(known, 48);
}

static void responses_are_filled_in(void **state)
{
    (void)state;
    struct http_response response = {.status = 0};
    struct http_exchange exchange = {.response = &response};
    http_respond_text(&exchange, SLICE("Hello, World"));
    assert_int_equal(response.status, 200);
    assert_true(slice_equal(response.content_type, SLICE("text/plain;charset=UTF-8")));
    assert_body(&response, "Hello, World");
    http_respond_json(&exchange, 503, SLICE("{\"status\":\"OUT_OF_SERVICE\"}"));
    assert_int_equal(response.status, 503);
    assert_true(slice_equal(response.content_type, SLICE("application/json")));
    assert_body(&response, "{\"status\":\"OUT_OF_SERVICE\"}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_error_body_is_springs),
        cmocka_unit_test(without_memory_the_status_still_goes_out),
        cmocka_unit_test(fields_are_found_in_any_case),
        cmocka_unit_test(every_status_we_send_has_its_phrase),
        cmocka_unit_test(responses_are_filled_in),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
