/* SPDX-License-Identifier: Apache-2.0 */
/* links: scripted kernel */
/*
 * Property: a write goes on until all is sent, through short sends and full windows,
 * and ends at its deadline; one that was only started settles the same way;
 * lingering lets the client read the answer and is bounded. Method: the scripted
 * kernel, many seeds, both modes of receiving.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "base/time.h"
#include "io/conn.h"
#include "io/sleep.h"
#include "kernel.h"
#include "ring/carrier.h"

#define ROUNDS 100

static struct conn conn;

static struct kernel_file *start_world(unsigned round)
{
    struct kernel_file *peer;
    kernel_start_uneven(round);
    drive_start(1);
    conn_open(&conn, kernel_pair(&peer));
    return peer;
}

static void run_close(void *unused)
{
    (void)unused;
    conn_close(&conn);
}

static void stop_world(void)
{
    if (conn.fd >= 0) {
        drive_spawn("close", run_close, NULL);
    }
    drive_pass(NS_PER_S);
    drive_stop();
}

struct writing {
    size_t length;
    uint64_t deadline_ns;
    int result;
    bool over;
};

static char text[20000];

static void run_write(void *argument)
{
    struct writing *writing = argument;
    writing->result = conn_write(&conn, (struct slice){.at = text, .length = writing->length},
                                 writing->deadline_ns);
    writing->over = true;
}

static void test_a_write_goes_on_until_all_is_sent(void **state)
{
    (void)state;
    static char got[sizeof(text)];
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct kernel_file *peer = start_world(round);
        struct writing writing = {.length = 1 + kernel_random(sizeof(text))};
        size_t heard = 0;
        for (size_t i = 0; i < sizeof(text); i++) {
            text[i] = (char)kernel_random(256);
        }
        peer_window(peer, 1 + kernel_random(5000));
        kernel_short(KERNEL_SEND, 1 + (unsigned)kernel_random(3), 1 + kernel_random(50));
        kernel_fail(KERNEL_SEND, 1 + (unsigned)kernel_random(4), 1,
                    kernel_random(2) == 0 ? -EAGAIN : -EINTR);
        drive_spawn("write", run_write, &writing);
        while (heard < writing.length) {
            drive_run();
            ssize_t got_now = peer_receive(peer, got + heard, 1 + kernel_random(3000));
            assert_true(got_now > 0);
            heard += (size_t)got_now;
        }
        drive_run();
        assert_true(writing.over);
        assert_int_equal(writing.result, 0);
        assert_memory_equal(got, text, writing.length);
        stop_world();
    }
}

static void test_a_write_that_is_not_read_ends_at_its_deadline(void **state)
{
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct kernel_file *peer = start_world(round);
        struct writing writing = {.length = sizeof(text),
                                  .deadline_ns = kernel_now_ns() + NS_PER_S};
        peer_window(peer, kernel_random(5000));
        drive_spawn("write", run_write, &writing);
        drive_pass(NS_PER_S - NS_PER_MS);
        assert_false(writing.over);
        drive_pass(2 * NS_PER_MS);
        assert_true(writing.over);
        assert_int_equal(writing.result, -ETIMEDOUT);
        stop_world();
    }
}

static void test_a_write_to_a_peer_that_is_gone_fails(void **state)
{
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct kernel_file *peer = start_world(round);
        struct writing writing = {.length = 10};
        if (kernel_random(2) == 0) {
            peer_reset(peer);
        } else {
            peer_close(peer);
            kernel_knobs.chop_percent = 0; /* sent as one, and answered by a reset */
            drive_spawn("first", run_write, &writing);
            drive_run();
            assert_int_equal(writing.result, 0);
        }
        drive_spawn("write", run_write, &writing);
        drive_run();
        assert_true(writing.result == -EPIPE || writing.result == -ECONNRESET);
        stop_world();
    }
}

static void run_start_and_settle(void *argument)
{
    struct writing *writing = argument;
    writing->result =
        conn_write_start(&conn, (struct slice){.at = text, .length = writing->length});
    if (writing->result == 0) {
        (void)sleep_for(10 * NS_PER_MS);
        writing->result = conn_write_settle(&conn, writing->deadline_ns);
    }
    writing->over = true;
}

static void test_a_started_write_settles_whole_or_at_its_deadline(void **state)
{
    (void)state;
    static char got[sizeof(text)];
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct kernel_file *peer = start_world(round);
        struct writing writing = {.length = 1 + kernel_random(sizeof(text)),
                                  .deadline_ns = kernel_now_ns() + NS_PER_S};
        size_t heard = 0;
        bool reads = kernel_random(2) == 0;
        for (size_t i = 0; i < sizeof(text); i++) {
            text[i] = (char)kernel_random(256);
        }
        peer_window(peer, kernel_random(writing.length));
        kernel_short(KERNEL_SEND, 1 + (unsigned)kernel_random(3), 1 + kernel_random(50));
        kernel_fail(KERNEL_SEND, 1 + (unsigned)kernel_random(4), 1,
                    kernel_random(2) == 0 ? -EAGAIN : -EINTR);
        drive_spawn("write", run_start_and_settle, &writing);
        drive_run();
        if (reads) {
            peer_window(peer, 1 + kernel_random(3000));
        }
        for (int turn = 0; reads && !writing.over; turn++) {
            drive_pass(kernel_random(2) * NS_PER_MS);
            ssize_t now = peer_receive(peer, got + heard, sizeof(got) - heard);
            heard += now > 0 ? (size_t)now : 0;
            assert_in_range(turn, 0, 100000);
        }
        drive_pass(NS_PER_S + NS_PER_MS);
        assert_true(writing.over);
        assert_null(conn.send_op);
        if (reads) {
            ssize_t rest = peer_receive(peer, got + heard, sizeof(got) - heard);
            heard += rest > 0 ? (size_t)rest : 0;
            assert_memory_equal(got, text, heard);
            if (writing.result == 0) {
                assert_int_equal(heard, writing.length);
            } else { /* it was read too slowly */
                assert_int_equal(writing.result, -ETIMEDOUT);
            }
        } else {
            assert_int_equal(writing.result, -ETIMEDOUT);
        }
        stop_world();
    }
}

static void run_start_and_close(void *argument)
{
    struct writing *writing = argument;
    writing->result =
        conn_write_start(&conn, (struct slice){.at = text, .length = writing->length});
    conn_close(&conn);
    writing->over = true;
}

static void test_close_with_a_send_in_flight_leaves_nothing(void **state)
{
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct kernel_file *peer = start_world(round);
        struct writing writing = {.length = 1 + kernel_random(sizeof(text))};
        peer_window(peer, kernel_random(writing.length));
        drive_spawn("write", run_start_and_close, &writing);
        drive_pass(25 * NS_PER_MS);
        assert_true(writing.over);
        assert_int_equal(conn.fd, -1);
        stop_world();
    }
}

struct lingering {
    size_t bytes_max;
    bool over;
};

static void run_linger(void *argument)
{
    struct lingering *lingering = argument;
    conn_linger(&conn, lingering->bytes_max, kernel_now_ns() + 2 * NS_PER_S);
    conn_close(&conn);
    lingering->over = true;
}

static void test_lingering_lets_the_client_read_the_answer_and_is_bounded(void **state)
{
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct kernel_file *peer = start_world(round);
        struct writing writing = {.length = 6};
        struct lingering lingering = {.bytes_max = 100000};
        size_t sent = 0;
        unsigned how = (unsigned)kernel_random(3);
        memcpy(text, "answer", 6);
        (void)peer_send(peer, text, 5000); /* still on its way when we refuse */
        drive_spawn("write", run_write, &writing);
        drive_run();
        drive_spawn("linger", run_linger, &lingering);
        drive_run();
        assert_true(peer_got_fin(peer));
        if (how == 0) { /* it sends some more, reads, and closes */
            (void)peer_send(peer, text, 5000);
            drive_run();
            assert_string_equal(peer_heard(peer), "answer");
            peer_finish(peer);
            drive_run();
        } else if (how == 1) { /* it sends without end */
            while (!lingering.over && sent < 10 * lingering.bytes_max) {
                ssize_t now = peer_send(peer, text, sizeof(text));
                sent += now > 0 ? (size_t)now : 0;
                drive_run();
            }
            assert_in_range(sent, 1, lingering.bytes_max + 70000);
        } else { /* it is silent */
            drive_pass(2 * NS_PER_S - NS_PER_MS);
            assert_false(lingering.over);
            assert_string_equal(peer_heard(peer), "answer");
            drive_pass(30 * NS_PER_MS);
        }
        assert_true(lingering.over);
        stop_world();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_write_goes_on_until_all_is_sent),
        cmocka_unit_test(test_a_write_that_is_not_read_ends_at_its_deadline),
        cmocka_unit_test(test_a_write_to_a_peer_that_is_gone_fails),
        cmocka_unit_test(test_a_started_write_settles_whole_or_at_its_deadline),
        cmocka_unit_test(test_close_with_a_send_in_flight_leaves_nothing),
        cmocka_unit_test(test_lingering_lets_the_client_read_the_answer_and_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
