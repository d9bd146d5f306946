/* SPDX-License-Identifier: Apache-2.0 */
/* links: scripted kernel */
/*
 * Property: a session's time limits hold to the tick; refusals can be read; a reset
 * ends the handler and nobody else; a drain serves what was sent and closes what is
 * idle. Method: the scripted kernel with listener, sessions and test routes; the
 * virtual clock passes minutes in no time.
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
#include "kernel_server.h"

#define ROUNDS 60
#define HOST "Host: a\r\n"

static struct kernel_server server;

static void start_world(unsigned round)
{
    kernel_start_uneven(round);
    drive_start(1);
    server_start_on(&server, 1, 1000);
}

/* ------------------------------------------------------------ time */

static void test_a_head_that_does_not_arrive_in_time_is_a_408_however_it_drips(void **state)
{
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        start_world(round);
        struct kernel_file *client = kernel_connect(SERVER_PORT);
        if (round % 2 == 0) { /* of a later request, too */
            peer_say(client, "GET /quick/0 HTTP/1.1\r\n" HOST "\r\n");
            drive_pass(5 * NS_PER_S);
            answer_expect_only(client, 200, "0");
        }
        const char *head = "GET /quick/1 HTTP/1.1\r\nHost: a\r\nX-Very-Slow: yes\r\n";
        drive_run();
        for (int second = 0; second < 19; second++) {
            peer_send(client, head + second, 1); /* a byte a second renews nothing */
            drive_pass(NS_PER_S);
        }
        drive_pass(NS_PER_S - NS_PER_MS);
        assert_string_equal(peer_heard(client), "");
        drive_pass(2 * NS_PER_MS);
        assert_true(answer_has(answer_expect_only(client, 408, NULL), "Connection: close"));
        assert_true(peer_is_closed(client));
        drive_pass(3 * NS_PER_S);
        assert_int_equal(live_connections(&server), 0);
        server_stop(&server);
    }
}

static void test_a_body_that_does_not_arrive_in_time_is_a_408(void **state)
{
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        start_world(round);
        struct kernel_file *client = kernel_connect(SERVER_PORT);
        peer_say(client, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 10\r\n\r\nabc");
        drive_pass(20 * NS_PER_S - NS_PER_MS);
        assert_string_equal(peer_heard(client), "");
        drive_pass(2 * NS_PER_MS);
        answer_expect_only(client, 408, NULL);
        server_stop(&server);
    }
}

static void test_idle_connections_are_closed_in_silence(void **state)
{
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        start_world(round);
        struct kernel_file *fresh = kernel_connect(SERVER_PORT);
        struct kernel_file *kept = kernel_connect(SERVER_PORT);
        peer_say(kept, "GET /quick/1 HTTP/1.1\r\n" HOST "\r\n");
        drive_pass(20 * NS_PER_S - NS_PER_MS);
        assert_false(peer_got_fin(fresh));
        drive_pass(25 * NS_PER_MS);
        assert_true(peer_is_closed(fresh));
        assert_string_equal(peer_heard(fresh), "");
        answer_expect_only(kept, 200, "1");
        drive_pass(39 * NS_PER_S);
        peer_say(kept, "GET /quick/2 HTTP/1.1\r\n" HOST "\r\n"); /* counts anew from here */
        drive_pass(59 * NS_PER_S);
        answer_expect_only(kept, 200, "2");
        assert_false(peer_got_fin(kept));
        drive_pass(NS_PER_S + 25 * NS_PER_MS);
        assert_true(peer_is_closed(kept));
        assert_string_equal(peer_heard(kept), "");
        server_stop(&server);
    }
}

/* ------------------------------------------------------------ the end */

static void test_a_refusal_can_be_read_though_the_client_goes_on_sending(void **state)
{
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        static char more[30000];
        start_world(round);
        struct kernel_file *client = kernel_connect(SERVER_PORT);
        peer_say(client, "BAD\x01 REQUEST\r\n\r\n");
        memset(more, 'x', sizeof(more));
        for (int i = 0; i < 10; i++) {
            assert_true(peer_send(client, more, sizeof(more)) >= 0); /* no reset meets it */
            drive_run();
        }
        answer_expect_only(client, 400, NULL);
        assert_true(peer_is_closed(client));
        assert_int_equal(live_connections(&server), 1);
        if (kernel_random(2) == 0) {
            peer_finish(client);
            drive_run();
        } else {
            drive_pass(2 * NS_PER_S + 25 * NS_PER_MS);
        }
        assert_int_equal(live_connections(&server), 0);
        assert_false(peer_got_reset(client));
        server_stop(&server);
    }
}

static void test_bytes_behind_the_last_request_do_not_cost_the_client_its_answer(void **state)
{
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        start_world(round);
        struct kernel_file *client = kernel_connect(SERVER_PORT);
        bool drains = round % 4 == 1;
        peer_say(client, drains ? "GET /slow/50 HTTP/1.1\r\n" HOST "\r\n"
                                : "GET /slow/50 HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n");
        drive_pass(10 * NS_PER_MS);
        peer_say(client, "GET /quick/2 HTTP/1.1\r\n" HOST "\r\n"); /* unread when it closes */
        if (drains) {
            server_drain_begin(&server);
        }
        drive_pass(100 * NS_PER_MS);
        answer_expect_only(client, 200, "50");
        assert_false(peer_got_reset(client));
        peer_finish(client);
        drive_run();
        assert_true(peer_is_closed(client));
        server_stop(&server);
    }
}

static void test_an_answer_that_cannot_be_sent_ends_the_connection(void **state)
{
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        start_world(round);
        struct kernel_file *client = kernel_connect(SERVER_PORT);
        peer_say(client, round % 2 == 0 ? "GET /quick/1 HTTP/1.1\r\n" HOST "\r\n"
                                        : "GET /quick/1 HTTP/1.1\r\n" HOST
                                          "\r\nGET /slow/5000 HTTP/1.1\r\n" HOST "\r\n");
        kernel_fail(KERNEL_SEND, 1, 1, -ENOBUFS);
        drive_pass(NS_PER_S); /* not a minute, which is the patience with who is idle */
        assert_string_equal(peer_heard(client), "");
        assert_true(peer_got_fin(client) || peer_got_reset(client));
        assert_int_equal(live_connections(&server), 0);
        server_stop(&server);
    }
}

static void test_a_reset_ends_the_handler_and_nobody_else(void **state)
{
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        start_world(round);
        struct kernel_file *leaving = kernel_connect(SERVER_PORT);
        struct kernel_file *staying = kernel_connect(SERVER_PORT);
        peer_say(leaving, "GET /slow/9000 HTTP/1.1\r\n" HOST "\r\n");
        peer_say(staying, "GET /slow/9000 HTTP/1.1\r\n" HOST "\r\n");
        drive_pass(NS_PER_S);
        peer_reset(leaving);
        drive_run();
        assert_int_equal(server.cancelled, 1);
        assert_int_equal(live_connections(&server), 1);
        drive_pass(8 * NS_PER_S + 2 * NS_PER_MS);
        answer_expect_only(staying, 200, "9000");
        server_stop(&server);
    }
}

static void test_drain_serves_what_was_sent_and_closes_what_is_idle(void **state)
{
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        start_world(round);
        struct kernel_file *idle = kernel_connect(SERVER_PORT);
        struct kernel_file *sending = kernel_connect(SERVER_PORT);
        struct kernel_file *working = kernel_connect(SERVER_PORT);
        struct kernel_file *silent = kernel_connect(SERVER_PORT);
        peer_say(idle, "GET /quick/1 HTTP/1.1\r\n" HOST "\r\n");
        peer_say(sending, "GET /quick/1 HTTP/1.1\r\n" HOST "\r\n");
        peer_say(working, "GET /slow/5000 HTTP/1.1\r\n" HOST "\r\n");
        drive_pass(2 * NS_PER_S);
        answer_expect_only(idle, 200, "1");
        answer_expect_only(sending, 200, "1");
        /* accepted in the moment of the drain: these get a second to send something */
        struct kernel_file *fresh = kernel_connect(SERVER_PORT);
        struct kernel_file *late = kernel_connect(SERVER_PORT);
        if (kernel_random(2) == 0) {
            drive_run();
        }
        struct kernel_file *queued = kernel_connect(SERVER_PORT);
        peer_say(queued, "GET /slow/3000 HTTP/1.1\r\n" HOST "\r\n");
        peer_say(sending, "GET /quick/2 HTTP/1.1\r\n" HOST "\r\n");
        server_drain_begin(&server);
        drive_run();
        assert_null(kernel_connect(SERVER_PORT));
        assert_true(peer_is_closed(idle));
        assert_string_equal(peer_heard(idle), "");
        assert_true(peer_is_closed(silent));
        assert_true(answer_has(answer_expect_only(sending, 200, "2"), "Connection: close"));
        assert_true(peer_is_closed(sending));
        drive_pass(500 * NS_PER_MS);
        assert_false(peer_is_closed(fresh));
        peer_say(late, "GET /quick/7 HTTP/1.1\r\n" HOST "\r\n");
        drive_run();
        answer_expect_only(late, 200, "7");
        drive_pass(600 * NS_PER_MS);
        assert_true(peer_is_closed(fresh));
        assert_string_equal(peer_heard(fresh), "");
        drive_pass(2 * NS_PER_S);
        assert_true(answer_has(answer_expect_only(queued, 200, "3000"), "Connection: close"));
        drive_pass(4 * NS_PER_S);
        assert_true(answer_has(answer_expect_only(working, 200, "5000"), "Connection: close"));
        drive_run();
        assert_int_equal(live_connections(&server), 0);
        assert_int_equal(server.closed, 1);
        server_stop(&server);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_head_that_does_not_arrive_in_time_is_a_408_however_it_drips),
        cmocka_unit_test(test_a_body_that_does_not_arrive_in_time_is_a_408),
        cmocka_unit_test(test_idle_connections_are_closed_in_silence),
        cmocka_unit_test(test_a_refusal_can_be_read_though_the_client_goes_on_sending),
        cmocka_unit_test(test_bytes_behind_the_last_request_do_not_cost_the_client_its_answer),
        cmocka_unit_test(test_an_answer_that_cannot_be_sent_ends_the_connection),
        cmocka_unit_test(test_a_reset_ends_the_handler_and_nobody_else),
        cmocka_unit_test(test_drain_serves_what_was_sent_and_closes_what_is_idle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
