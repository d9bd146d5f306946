/* SPDX-License-Identifier: Apache-2.0 */
/* links: scripted kernel */
/*
 * Property: messages run in order and between fibers; a fiber that only yields keeps
 * no completion from anybody; the loop is done only when it was stopped and nobody
 * lives; the Date is right to the second; a failed start leaves nothing. Method: the
 * scripted kernel, turn by turn. What needs two threads is in test_carrier_threads.c.
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

static struct carrier *carrier(void)
{
    return &drive_carriers()[0];
}

/* ------------------------------------------------------------ inbox */

#define MESSAGES 300

struct numbered {
    struct message message;
    unsigned number;
    bool posts; /* another one when it runs */
};

static struct numbered numbered[2 * MESSAGES];
static unsigned arrived[2 * MESSAGES], arrived_count;

static void run_numbered(struct message *message)
{
    struct numbered *self = container_of(message, struct numbered, message);
    arrived[arrived_count++] = self->number;
    if (self->posts) {
        struct numbered *next = self + MESSAGES;
        *next =
            (struct numbered){.message = {.run = run_numbered}, .number = self->number + MESSAGES};
        carrier_post(carrier(), &next->message);
    }
    memset(message, 0x5a, sizeof(*message)); /* it may be freed while it runs */
}

static void test_messages_run_once_and_in_order(void **state)
{
    (void)state;
    kernel_start(0);
    drive_start(1);
    arrived_count = 0;
    for (unsigned i = 0; i < MESSAGES; i++) {
        numbered[i] =
            (struct numbered){.message = {.run = run_numbered}, .number = i, .posts = true};
        carrier_post(carrier(), &numbered[i].message);
        if (kernel_random(20) == 0) {
            carrier_turn(carrier());
        }
    }
    drive_run();
    assert_int_equal(arrived_count, 2 * MESSAGES);
    unsigned next = 0, next_posted = MESSAGES;
    for (unsigned i = 0; i < arrived_count; i++) {
        unsigned *expected = arrived[i] < MESSAGES ? &next : &next_posted;
        assert_int_equal(arrived[i], *expected);
        (*expected)++;
    }
    drive_stop();
}

static void test_a_failed_read_of_the_eventfd_is_armed_again(void **state)
{
    (void)state;
    static const int errors[] = {-EINTR, -EAGAIN, -ECANCELED};
    for (unsigned i = 0; i < 3; i++) {
        kernel_start(i);
        drive_start(1);
        kernel_fail(KERNEL_READ, 1, 3, errors[i]);
        drive_run();
        drive_pass(NS_PER_S);
        assert_non_null(carrier()->event_op);
        assert_in_range(kernel_count(KERNEL_READ), 4, 10);
        sys_eventfd_signal(carrier()->event_fd);
        drive_run();
        assert_non_null(carrier()->event_op);
        drive_stop();
    }
}

/* ------------------------------------------------------------ fairness */

static bool heard;

static void run_yielder(void *argument)
{
    uint64_t *yields = argument;
    while (!heard && *yields < 100000) {
        (*yields)++;
        fiber_yield();
    }
}

static void run_listener(void *argument)
{
    struct conn *conn = argument;
    struct slice bytes;
    heard = conn_peek(conn, &bytes, 0) == 1;
    conn_close(conn);
}

static void test_a_fiber_that_only_yields_starves_no_completion(void **state)
{
    (void)state;
    struct conn conn;
    struct kernel_file *peer;
    uint64_t yields = 0;
    kernel_start(0);
    drive_start(1);
    conn_open(&conn, kernel_pair(&peer));
    heard = false;
    drive_spawn("listener", run_listener, &conn);
    drive_spawn("yielder", run_yielder, &yields);
    carrier_turn(carrier());
    carrier_turn(carrier());
    peer_say(peer, "x");
    drive_run();
    assert_true(heard);
    assert_in_range(yields, 2, 100);
    drive_stop();
}

static void run_ticker(void *argument)
{
    unsigned *ticks = argument;
    for (int i = 0; i < 10; i++) {
        (void)sleep_for(NS_PER_MS);
        (*ticks)++;
    }
    heard = true;
}

static void test_a_fiber_that_only_yields_starves_no_timer(void **state)
{
    (void)state;
    unsigned ticks = 0;
    uint64_t yields = 0;
    kernel_start(0);
    drive_start(1);
    heard = false;
    drive_spawn("ticker", run_ticker, &ticks);
    drive_spawn("yielder", run_yielder, &yields);
    for (int i = 0; i < 200 && ticks < 10; i++) {
        kernel_pass(200 * NS_PER_US);
        carrier_turn(carrier());
    }
    assert_int_equal(ticks, 10);
    drive_run();
    drive_stop();
}

/* ------------------------------------------------------------ start and end */

static void run_long(void *unused)
{
    (void)unused;
    (void)sleep_for(5 * NS_PER_S);
}

static void test_a_stopped_loop_is_done_when_nobody_lives(void **state)
{
    (void)state;
    kernel_start(0);
    drive_start(1);
    drive_spawn("long", run_long, NULL);
    drive_run();
    assert_false(carrier_done(carrier()));
    carrier_stop(carrier());
    drive_pass(4 * NS_PER_S);
    assert_true(carrier()->stopping);
    assert_false(carrier_done(carrier()));
    drive_pass(2 * NS_PER_S);
    assert_true(carrier_done(carrier()));
    numbered[0] = (struct numbered){.message = {.run = run_numbered}};
    arrived_count = 0;
    carrier_post(carrier(), &numbered[0].message);
    assert_false(carrier_done(carrier())); /* a message is still to be run */
    drive_run();
    assert_int_equal(arrived_count, 1);
    assert_true(carrier_done(carrier()));
    drive_stop();
}

static void test_a_failed_start_leaves_nothing(void **state)
{
    (void)state;
    static struct carrier failing;
    struct carrier_setup setup = {.stack_bytes = 65536};
    kernel_start(0);
    kernel_fail(KERNEL_SYS_EVENTFD, 1, 1, -EMFILE);
    assert_int_equal(carrier_init(&failing, &setup), -EMFILE);
    kernel_fail(KERNEL_RING_INIT, 1, 1, -ENOSYS);
    assert_int_equal(carrier_init(&failing, &setup), -ENOSYS);
    setup.stack_bytes = 1;
    assert_int_equal(carrier_init(&failing, &setup), -EINVAL);
    assert_null(carrier_current());
    kernel_stop();
}

/*
 * A thread tells a task, and is held up before it nudges. The loop looks for itself
 * after each fiber, finds the task, and everybody ends: the nudge comes late.
 */
static void test_a_nudge_that_comes_after_the_last_fiber_ended_harms_nobody(void **state)
{
    (void)state;
    static struct carrier late;
    struct carrier_setup setup = {.stack_bytes = 65536};
    kernel_start(0);
    assert_int_equal(carrier_init(&late, &setup), 0);
    late.sched.setup.nudge(&late.sched);
    carrier_fini(&late);
    carrier_free(&late);
    kernel_stop();
}

/* ------------------------------------------------------------ date */

static void test_the_date_is_right_to_the_second(void **state)
{
    (void)state;
    char expected[TIME_HTTP_SIZE];
    kernel_start(0);
    drive_start(1);
    for (int i = 0; i < 2000; i++) {
        drive_pass(kernel_random(kernel_random(2) == 0 ? NS_PER_MS : 3 * NS_PER_S));
        uint64_t wall_ns = sys_wall_ns();
        time_format_http(expected, wall_ns);
        assert_string_equal(carrier_date(carrier()), expected);
        assert_int_equal(carrier_wall_ns(carrier()), wall_ns);
    }
    drive_stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages_run_once_and_in_order),
        cmocka_unit_test(test_a_failed_read_of_the_eventfd_is_armed_again),
        cmocka_unit_test(test_a_fiber_that_only_yields_starves_no_completion),
        cmocka_unit_test(test_a_fiber_that_only_yields_starves_no_timer),
        cmocka_unit_test(test_a_stopped_loop_is_done_when_nobody_lives),
        cmocka_unit_test(test_a_failed_start_leaves_nothing),
        cmocka_unit_test(test_a_nudge_that_comes_after_the_last_fiber_ended_harms_nobody),
        cmocka_unit_test(test_the_date_is_right_to_the_second),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
