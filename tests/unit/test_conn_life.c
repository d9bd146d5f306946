/* SPDX-License-Identifier: Apache-2.0 */
/* links: scripted kernel */
/*
 * Property: a peer's reset cancels the bound fiber and a FIN alone does not; an
 * interrupt ends idling but loses no byte; an idle connection that is of no use any
 * more is seen. Method: the scripted kernel, many seeds, both modes of receiving.
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

/* ------------------------------------------------------------ bound to a handler */

/* Reads a request of four bytes, then handles it by sleeping for a minute. */
struct handling {
    bool entered, over;
    int slept;
    uint64_t over_ns;
    int written;
};

static void run_handler(void *argument)
{
    struct handling *handling = argument;
    struct slice bytes;
    size_t length = 0;
    while (length < 4) {
        ssize_t got = conn_peek(&conn, &bytes, 0);
        if (got <= 0) {
            break;
        }
        size_t taken = bytes.length < 4 - length ? bytes.length : 4 - length;
        length += taken;
        conn_consume(&conn, taken);
    }
    handling->entered = true;
    conn_bind(&conn, fiber_current());
    handling->slept = sleep_for(60 * NS_PER_S);
    conn_bind(&conn, NULL);
    handling->over_ns = kernel_now_ns();
    handling->written = conn_write(&conn, SLICE("answer"), 0);
    handling->over = true;
    conn_close(&conn);
}

/* What the peer sends beside its four bytes: nothing, a little, or more than is held. */
static void send_request(struct kernel_file *peer)
{
    char more[9000];
    peer_say(peer, "ping");
    memset(more, 'x', sizeof(more));
    size_t lengths[] = {0, 10, sizeof(more)};
    (void)peer_send(peer, more, lengths[kernel_random(3)]);
}

static void test_a_reset_cancels_the_handler_at_once(void **state)
{
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct handling handling = {.over = false};
        struct kernel_file *peer = start_world(round);
        drive_spawn("handler", run_handler, &handling);
        send_request(peer);
        if (kernel_random(2) == 0) {
            drive_pass(NS_PER_S);
            assert_true(handling.entered);
        }
        uint64_t reset_ns = kernel_now_ns();
        peer_reset(peer);
        drive_run();
        assert_true(handling.over);
        assert_int_equal(handling.slept, -ECANCELED);
        assert_int_equal(handling.over_ns, reset_ns);
        stop_world();
    }
}

static void test_a_fin_alone_does_not_cancel_and_a_later_reset_does(void **state)
{
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct handling handling = {.over = false};
        struct kernel_file *peer = start_world(round);
        drive_spawn("handler", run_handler, &handling);
        send_request(peer);
        bool early = kernel_random(2) == 0;
        if (early) {
            peer_finish(peer);
        }
        drive_pass(NS_PER_S);
        if (!early) {
            peer_finish(peer);
            drive_pass(NS_PER_S);
        }
        assert_true(handling.entered);
        assert_false(handling.over);
        if (kernel_random(2) == 0) {
            drive_pass(60 * NS_PER_S); /* it gets its answer */
            assert_int_equal(handling.slept, 0);
            assert_int_equal(handling.written, 0);
        } else {
            assert_true(peer_probed(peer));
            bool vanishes = kernel_random(2) == 0;
            if (vanishes) {
                peer_vanish(peer);
            } else {
                peer_reset(peer);
            }
            drive_run();
            assert_int_equal(handling.slept, -ECANCELED);
        }
        assert_true(handling.over);
        stop_world();
    }
}

static void test_a_half_closed_peer_does_not_make_the_loop_turn(void **state)
{
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct handling handling = {.over = false};
        struct kernel_file *peer = start_world(round);
        drive_spawn("handler", run_handler, &handling);
        peer_say(peer, "ping");
        peer_finish(peer);
        drive_pass(5 * NS_PER_S);
        uint64_t turns = drive_turns();
        drive_pass(50 * NS_PER_S);
        /* the timer wheel looks now and then, nobody else does */
        assert_in_range(drive_turns() - turns, 0, 200);
        drive_pass(10 * NS_PER_S);
        assert_true(handling.over);
        assert_int_equal(handling.slept, 0);
        assert_string_equal(peer_heard(peer), "answer");
        stop_world();
    }
}

static void run_linger(void *argument)
{
    bool *over = argument;
    struct slice bytes;
    assert_true(conn_peek(&conn, &bytes, 0) > 0);
    conn_bind(&conn, fiber_current());
    assert_int_equal(sleep_for(NS_PER_S), 0);
    conn_bind(&conn, NULL);
    conn_linger(&conn, 1 << 20, kernel_now_ns() + NS_PER_S);
    *over = true;
}

static void test_the_end_of_both_sides_was_taken_for_a_reset_that_cut_the_lingering(void **state)
{
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        static const char more[30000];
        bool over = false;
        struct kernel_file *peer = start_world(round);
        drive_spawn("handler", run_linger, &over);
        assert_int_equal(peer_send(peer, more, sizeof(more)), sizeof(more));
        peer_finish(peer);
        drive_pass(3 * NS_PER_S);
        assert_true(over);
        assert_int_equal(conn.error, 0);
        assert_true(conn.finished);
        stop_world();
        assert_false(peer_got_reset(peer));
    }
}

/* ------------------------------------------------------------ idling */

struct idling {
    ssize_t result;
    bool over;
};

static void run_idle(void *argument)
{
    struct idling *idling = argument;
    struct slice bytes;
    idling->result = conn_peek_idle(&conn, &bytes, kernel_now_ns() + 10 * NS_PER_S);
    idling->over = true;
}

static void test_an_interrupt_ends_idling_but_loses_no_byte(void **state)
{
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct idling idling = {.over = false};
        struct kernel_file *peer = start_world(round);
        bool before = kernel_random(2) == 0, says = kernel_random(2) == 0;
        if (before) {
            conn_interrupt(&conn);
        }
        drive_spawn("idle", run_idle, &idling);
        drive_run();
        if (!before) {
            assert_false(idling.over);
            if (says) {
                peer_say(peer, "x");
            }
            conn_interrupt(&conn);
            drive_run();
        }
        assert_true(idling.over);
        assert_int_equal(idling.result, says && !before ? 1 : -ECANCELED);
        stop_world();
    }
}

static void test_idling_ends_at_its_deadline(void **state)
{
    (void)state;
    struct idling idling = {.over = false};
    (void)start_world(0);
    drive_spawn("idle", run_idle, &idling);
    drive_pass(10 * NS_PER_S - NS_PER_MS);
    assert_false(idling.over);
    drive_pass(2 * NS_PER_MS);
    assert_true(idling.over);
    assert_int_equal(idling.result, -ETIMEDOUT);
    stop_world();
}

static void run_take_answer(void *argument)
{
    bool *over = argument;
    struct slice bytes;
    size_t length = 0;
    while (length < 6 && conn_peek(&conn, &bytes, 0) > 0) {
        length += bytes.length;
        conn_consume(&conn, bytes.length);
    }
    *over = length == 6;
}

static void test_an_idle_connection_of_no_use_is_seen_whether_it_receives_or_not(void **state)
{
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        bool over = false;
        struct kernel_file *peer = start_world(round);
        drive_spawn("answer", run_take_answer, &over);
        peer_say(peer, "answer");
        drive_run();
        assert_true(over);
        assert_false(conn_is_dead(&conn));
        switch (kernel_random(3)) {
        case 0:
            peer_finish(peer);
            break;
        case 1:
            peer_reset(peer);
            break;
        default:
            peer_say(peer, "what nobody asked for");
        }
        drive_run();
        assert_true(conn_is_dead(&conn));
        stop_world();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_reset_cancels_the_handler_at_once),
        cmocka_unit_test(test_a_fin_alone_does_not_cancel_and_a_later_reset_does),
        cmocka_unit_test(test_a_half_closed_peer_does_not_make_the_loop_turn),
        cmocka_unit_test(test_the_end_of_both_sides_was_taken_for_a_reset_that_cut_the_lingering),
        cmocka_unit_test(test_an_interrupt_ends_idling_but_loses_no_byte),
        cmocka_unit_test(test_idling_ends_at_its_deadline),
        cmocka_unit_test(test_an_idle_connection_of_no_use_is_seen_whether_it_receives_or_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
