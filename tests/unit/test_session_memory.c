/* SPDX-License-Identifier: Apache-2.0 */
/* links: scripted kernel */
/*
 * Property: a session holds a desk only while bytes of a request, or of answers that
 * its pocket is too small for, lie in it, and what it keeps without one is not
 * touched by the requests of others. Method: the scripted kernel, one carrier, so
 * that all sessions are lent the same desk in turn; under AddressSanitizer a desk
 * that was given back is poisoned.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/time.h"
#include "http/parser.h"
#include "http/session_parts.h"
#include "kernel_server.h"

#define HOST "Host: a\r\n"
#define CLIENTS 40

static struct kernel_server server;
static struct answer answer;

static void start_world(unsigned round)
{
    kernel_start(round);
    kernel_knobs.recv_cap = round % 2 == 0;
    kernel_knobs.chop_percent = kernel_knobs.break_percent = 0;
    drive_start(1);
    server_start_on(&server, 1, 1000);
}

static size_t desks_held(void)
{
    return server.service.lanes[0].desks.live_count;
}

static void expect(struct kernel_file *client, const char *body)
{
    const char *heard = peer_heard(client);
    assert_true(answer_next(&heard, &answer));
    assert_int_equal(answer.status, 200);
    assert_string_equal(answer.body, body);
}

/* Of head lines so many bytes more. */
static const char *padding(size_t bytes)
{
    static char text[6000];
    size_t length = 0;
    text[0] = '\0';
    while (length + 120 < bytes) {
        length += (size_t)snprintf(text + length, sizeof(text) - length, "X-%zu: %0100d\r\n",
                                   length, (int)length);
    }
    return text;
}

static void test_a_sleeping_request_holds_no_desk_and_keeps_its_bytes(void **state)
{
    (void)state;
    /* within the pocket, beyond it, beyond the desk's block */
    static const size_t paddings[] = {0, 300, 900, 3000, 5500};
    for (unsigned round = 0; round < 10; round++) {
        struct kernel_file *clients[CLIENTS];
        start_world(round);
        for (unsigned i = 0; i < CLIENTS; i++) {
            char text[7000];
            clients[i] = kernel_connect(SERVER_PORT);
            snprintf(text, sizeof(text), "GET /slow/%s%02u HTTP/1.1\r\n" HOST "%s\r\n",
                     i % 2 == 0 ? "%31%30" : "10", i, padding(paddings[i % 5]));
            peer_say(clients[i], text);
            drive_run();
        }
        assert_int_equal(live_connections(&server), CLIENTS);
        assert_int_equal(desks_held(), 0);
        /* somebody else writes over the desk */
        struct kernel_file *other = kernel_connect(SERVER_PORT);
        peer_say(other, "GET /big/3000 HTTP/1.1\r\n" HOST "\r\n");
        drive_run();
        assert_int_equal(desks_held(), 0);
        drive_pass(NS_PER_S);
        assert_int_equal(live_connections(&server), CLIENTS + 1);
        drive_pass(NS_PER_S);
        for (unsigned i = 0; i < CLIENTS; i++) {
            char expected[16];
            snprintf(expected, sizeof(expected), "10%02u", i);
            expect(clients[i], expected);
        }
        assert_int_equal(desks_held(), 0);
        server_stop(&server);
    }
}

static void test_a_head_that_has_not_come_whole_keeps_its_desk(void **state)
{
    (void)state;
    start_world(0);
    struct kernel_file *half = kernel_connect(SERVER_PORT);
    struct kernel_file *other = kernel_connect(SERVER_PORT);
    peer_say(half, "GET /quick/123 HT");
    drive_run();
    assert_int_equal(desks_held(), 1);
    peer_say(other, "GET /quick/456 HTTP/1.1\r\n" HOST "\r\n");
    drive_run();
    expect(other, "456");
    assert_int_equal(desks_held(), 1);
    peer_say(half, "TP/1.1\r\n" HOST "\r\n");
    drive_run();
    expect(half, "123");
    assert_int_equal(desks_held(), 0);
    peer_say(half, "GET /sl");
    drive_run();
    assert_int_equal(desks_held(), 1);
    peer_reset(half);
    drive_run();
    assert_int_equal(desks_held(), 0);
    server_stop(&server);
}

static void test_a_desk_whose_answer_is_not_taken_goes_when_it_is(void **state)
{
    (void)state;
    start_world(0);
    struct kernel_file *slow = kernel_connect(SERVER_PORT);
    struct kernel_file *other = kernel_connect(SERVER_PORT);
    drive_run();
    peer_window(slow, 100);
    peer_say(slow, "GET /big/2000 HTTP/1.1\r\n" HOST "\r\n");
    drive_run();
    assert_int_equal(desks_held(), 1); /* it sends, though its fiber is idle */
    peer_say(other, "GET /big/1000 HTTP/1.1\r\n" HOST "\r\n");
    drive_run();
    assert_int_equal(desks_held(), 1);
    peer_window(slow, 1 << 20);
    drive_run();
    assert_int_equal(desks_held(), 0); /* without a further request */
    const char *heard = peer_heard(slow);
    assert_true(answer_next(&heard, &answer));
    assert_int_equal(answer.body_length, 2000);
    for (size_t i = 0; i < answer.body_length; i++) {
        assert_int_equal(answer.body[i], answer.body[0]);
    }

    /* and one that never is taken goes with its connection */
    peer_window(other, 0);
    peer_say(other, "GET /big/2000 HTTP/1.1\r\n" HOST "\r\n");
    drive_run();
    assert_int_equal(desks_held(), 1);
    peer_reset(other);
    drive_run();
    assert_int_equal(desks_held(), 0);
    server_stop(&server);
}

static void test_many_answers_at_once_outgrow_the_pocket_and_come_whole(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 10; round++) {
        char text[4000];
        size_t length = 0;
        start_world(round);
        struct kernel_file *client = kernel_connect(SERVER_PORT);
        peer_window(client, 1000);
        for (unsigned i = 0; i < 60; i++) {
            length += (size_t)snprintf(text + length, sizeof(text) - length,
                                       i % 10 == 9 ? "GET /slow/%u HTTP/1.1\r\n" HOST "\r\n"
                                                   : "GET /quick/%u HTTP/1.1\r\n" HOST "\r\n",
                                       i);
        }
        peer_say(client, text);
        drive_run();
        peer_window(client, 1 << 20);
        drive_pass(2 * NS_PER_S);
        const char *heard = peer_heard(client);
        for (unsigned i = 0; i < 60; i++) {
            char expected[16];
            snprintf(expected, sizeof(expected), "%u", i);
            assert_true(answer_next(&heard, &answer));
            assert_string_equal(answer.body, expected);
        }
        assert_string_equal(heard, "");
        assert_int_equal(desks_held(), 0);
        server_stop(&server);
    }
}

/* ------------------------------------------------------------ packing alone */

static void assert_slice(struct slice s, const char *text)
{
    assert_int_equal(s.length, strlen(text));
    assert_memory_equal(s.at, text, s.length);
}

static void test_a_packed_request_is_the_same_elsewhere(void **state)
{
    (void)state;
    static const struct parser_limits limits = {.head_bytes_max = 8192, .body_bytes_max = 1000};
    static const char text[] = "GET /slow/%35x?q=1 HTTP/1.1\r\nHost: a.example\r\nEmpty:\r\n"
                               "X-Long: value of it\r\n\r\n";
    bool fitted = false;
    for (size_t room = 0; room < 600; room++) {
        static char from[4096];
        static char to[600];
        char decoded[] = "5x";
        struct arena arena, packed;
        struct parser parser;
        struct http_exchange exchange = {.param_count = 2};
        size_t consumed;
        arena_init(&arena, from, sizeof(from), sizeof(from));
        parser_init_requests(&parser, &limits, &arena);
        assert_int_equal(
            parser_feed(&parser, (struct slice){.at = text, .length = sizeof(text) - 1}, &consumed),
            PARSER_MESSAGE);
        exchange.params[0] = (struct slice){.at = decoded, .length = 2};
        exchange.params[1] = parser.request.path;

        arena_init(&packed, to, room, room);
        int result = parser_pack(&parser, &exchange, &packed);
        if (result < 0) {
            assert_int_equal(result, -ENOMEM);
            assert_false(fitted);
            assert_ptr_equal(exchange.params[0].at, decoded); /* as it was */
        } else {
            fitted = true;
            memset(from, 'z', sizeof(from));
            memset(decoded, 'z', sizeof(decoded));
        }
        const struct http_request *request = &parser.request;
        assert_slice(exchange.params[0], "5x");
        assert_slice(exchange.params[1], "/slow/%35x");
        assert_slice(request->method_text, "GET");
        assert_slice(request->target, "/slow/%35x?q=1");
        assert_slice(request->path, "/slow/%35x");
        assert_slice(request->query, "q=1");
        assert_slice(request->host, "a.example");
        assert_int_equal(request->field_count, 3);
        assert_slice(*http_field_find(request->fields, 3, SLICE("empty")), "");
        assert_slice(*http_field_find(request->fields, 3, SLICE("x-long")), "value of it");
        parser_next(&parser);
    }
    assert_true(fitted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_sleeping_request_holds_no_desk_and_keeps_its_bytes),
        cmocka_unit_test(test_a_head_that_has_not_come_whole_keeps_its_desk),
        cmocka_unit_test(test_a_desk_whose_answer_is_not_taken_goes_when_it_is),
        cmocka_unit_test(test_many_answers_at_once_outgrow_the_pocket_and_come_whole),
        cmocka_unit_test(test_a_packed_request_is_the_same_elsewhere),
    };
    return cmocka_run_group_tests_name("session_memory", tests, NULL, NULL);
}
