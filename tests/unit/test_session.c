/* SPDX-License-Identifier: Apache-2.0 */
/* links: scripted kernel */
/*
 * Property: every request that came whole is answered once, in order, whatever the
 * segmentation, and no answer is cut off by the end of its connection. Method: the
 * scripted kernel with listener, sessions and test routes, many seeds.
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

/* ------------------------------------------------------------ requests and answers */

static void test_pipelined_requests_are_answered_in_order_however_they_are_cut(void **state)
{
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        static char text[8192];
        size_t length = 0, sent = 0;
        unsigned count = 1 + (unsigned)kernel_random(30);
        start_world(round);
        struct kernel_file *client = kernel_connect(SERVER_PORT);
        for (unsigned i = 0; i < count; i++) {
            static const char *formats[] = {
                "GET /quick/%u HTTP/1.1\r\n" HOST "\r\n",
                "GET /slow/%u HTTP/1.1\r\n" HOST "\r\n",
                "POST /drop HTTP/1.1\r\n" HOST "Content-Length: 10\r\n\r\n0123456789",
                "POST /echo HTTP/1.1\r\n" HOST
                "Transfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n2\r\nef\r\n0\r\n\r\n",
            };
            length +=
                (size_t)snprintf(text + length, sizeof(text) - length, formats[(i + round) % 4], i);
        }
        while (sent < length) {
            size_t piece = 1 + kernel_random(round % 3 == 0 ? 4 : length);
            piece = piece < length - sent ? piece : length - sent;
            sent += (size_t)peer_send(client, text + sent, piece);
            if (kernel_random(3) == 0) {
                drive_run();
            }
        }
        drive_pass(2 * NS_PER_S);
        const char *heard = peer_heard(client);
        for (unsigned i = 0; i < count; i++) {
            char expected[16];
            snprintf(expected, sizeof(expected), "%u", i);
            unsigned kind = (i + round) % 4;
            answer_expect(&heard, 200, kind < 2 ? expected : kind == 2 ? "dropped" : "abcdef");
        }
        assert_string_equal(heard, "");
        server_stop(&server);
        assert_true(peer_is_closed(client));
    }
}

static void test_answers_in_hand_leave_in_one_send(void **state)
{
    (void)state;
    start_world(0);
    kernel_knobs.late_percent = kernel_knobs.chop_percent = kernel_knobs.break_percent = 0;
    struct kernel_file *client = kernel_connect(SERVER_PORT);
    drive_run();
    uint64_t sends = kernel_count(KERNEL_SEND);
    for (int i = 0; i < 10; i++) {
        peer_say(client, "GET /quick/1 HTTP/1.1\r\n" HOST "\r\n");
    }
    drive_run();
    assert_int_equal(kernel_count(KERNEL_SEND), sends + 1);
    const char *heard = peer_heard(client);
    for (int i = 0; i < 10; i++) {
        answer_expect(&heard, 200, "1");
    }
    server_stop(&server);
}

static void test_answers_in_hand_do_not_wait_for_a_slow_handler(void **state)
{
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        start_world(round);
        struct kernel_file *client = kernel_connect(SERVER_PORT);
        peer_say(client, "GET /quick/1 HTTP/1.1\r\n" HOST "\r\nGET /slow/500 HTTP/1.1\r\n" HOST
                         "\r\nGET /quick/3 HTTP/1.1\r\n" HOST "\r\n");
        drive_run();
        answer_expect_only(client, 200, "1");
        drive_pass(499 * NS_PER_MS);
        assert_string_equal(peer_heard(client), "");
        drive_pass(2 * NS_PER_MS);
        const char *heard = peer_heard(client);
        answer_expect(&heard, 200, "500");
        answer_expect(&heard, 200, "3");
        server_stop(&server);
    }
}

static void test_a_client_that_half_closes_gets_its_answers(void **state)
{
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        start_world(round);
        struct kernel_file *client = kernel_connect(SERVER_PORT);
        peer_say(client,
                 "GET /slow/3000 HTTP/1.1\r\n" HOST "\r\nGET /quick/2 HTTP/1.1\r\n" HOST "\r\n");
        peer_finish(client);
        drive_pass(3 * NS_PER_S + 2 * NS_PER_MS);
        const char *heard = peer_heard(client);
        answer_expect(&heard, 200, "3000");
        answer_expect(&heard, 200, "2");
        assert_true(peer_is_closed(client));
        assert_int_equal(live_connections(&server), 0);
        server_stop(&server);
    }
}

static void test_answers_still_leaving_are_not_cut_off_by_the_end(void **state)
{
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        char got[4096];
        size_t length = 0;
        unsigned how = round % 4;
        start_world(round);
        struct kernel_file *client = kernel_connect(SERVER_PORT);
        drive_run();
        peer_window(client, 20 + kernel_random(300)); /* it reads slowly */
        peer_say(client,
                 "GET /quick/1 HTTP/1.1\r\n" HOST "\r\nGET /slow/1 HTTP/1.1\r\n" HOST "\r\n");
        peer_say(client, how == 0 ? "GET /quick/3 HTTP/1.0\r\n\r\n"
                                  : "GET /quick/3 HTTP/1.1\r\n" HOST "\r\n");
        if (how == 1) {
            peer_finish(client);
        }
        for (int turn = 0; turn < 500; turn++) {
            drive_pass(2 * NS_PER_MS);
            if (how == 2 && turn == 5) {
                server_drain_begin(&server);
            }
            ssize_t now = peer_receive(client, got + length, 1 + kernel_random(50));
            length += now > 0 ? (size_t)now : 0;
        }
        got[length] = '\0';
        const char *heard = got;
        answer_expect(&heard, 200, "1");
        answer_expect(&heard, 200, "1");
        answer_expect(&heard, 200, "3");
        assert_string_equal(heard, "");
        assert_int_equal(peer_is_closed(client), how != 3);
        server_stop(&server);
    }
}

static void test_expect_continue_is_answered_before_the_body_and_not_when_refused(void **state)
{
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        const char *continues = "HTTP/1.1 100 Continue\r\n\r\n";
        start_world(round);
        struct kernel_file *client = kernel_connect(SERVER_PORT);
        peer_say(client, "POST /echo HTTP/1.1\r\n" HOST
                         "Expect: 100-continue\r\nContent-Length: 4\r\n\r\n");
        drive_run();
        assert_string_equal(peer_heard(client), continues);
        peer_say(client, "body");
        drive_run();
        answer_expect_only(client, 200, "body");

        /* never to 1.0 */
        peer_say(client,
                 "POST /echo HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n");
        drive_run();
        assert_string_equal(peer_heard(client), "");
        peer_say(client, "body");
        drive_run();
        answer_expect_only(client, 200, "body");
        assert_true(peer_is_closed(client));

        /* refused anyway: no 100, and the connection ends, for the body may follow or not */
        client = kernel_connect(SERVER_PORT);
        peer_say(client, "POST /nope HTTP/1.1\r\n" HOST
                         "Expect: 100-continue\r\nContent-Length: 4\r\n\r\n");
        drive_run();
        assert_true(answer_has(answer_expect_only(client, 404, NULL), "Connection: close"));
        peer_say(client, "body"); /* it does */
        drive_pass(3 * NS_PER_S);
        assert_true(peer_is_closed(client));
        server_stop(&server);
    }
}

static void test_a_big_answer_waits_for_its_client_and_not_for_ever(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 10; round++) {
        static char taken[1 << 16];
        size_t heard = 0;
        start_world(round);
        struct kernel_file *client = kernel_connect(SERVER_PORT);
        peer_window(client, 30000);
        peer_say(client,
                 "GET /big/700000 HTTP/1.1\r\n" HOST "\r\nGET /quick/1 HTTP/1.1\r\n" HOST "\r\n");
        for (ssize_t got = 1; got > 0;) {
            drive_pass(10 * NS_PER_MS);
            got = peer_receive(client, taken, sizeof(taken));
            heard += got > 0 ? (size_t)got : 0;
        }
        assert_in_range(heard, 700000, 701000);
        assert_int_equal(server.handled, 2);

        peer_say(client, "GET /big/700000 HTTP/1.1\r\n" HOST "\r\n"); /* and does not read it */
        drive_pass(19 * NS_PER_S);
        assert_int_equal(live_connections(&server), 1);
        drive_pass(2 * NS_PER_S);
        assert_int_equal(live_connections(&server), 0);
        server_stop(&server);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pipelined_requests_are_answered_in_order_however_they_are_cut),
        cmocka_unit_test(test_answers_in_hand_leave_in_one_send),
        cmocka_unit_test(test_answers_in_hand_do_not_wait_for_a_slow_handler),
        cmocka_unit_test(test_a_client_that_half_closes_gets_its_answers),
        cmocka_unit_test(test_answers_still_leaving_are_not_cut_off_by_the_end),
        cmocka_unit_test(test_expect_continue_is_answered_before_the_body_and_not_when_refused),
        cmocka_unit_test(test_a_big_answer_waits_for_its_client_and_not_for_ever),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
