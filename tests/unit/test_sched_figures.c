/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property: the scheduler counts how long each ready fiber waited, with no more than
 * the bias that sched.h tells, how many are ready, and which held the carrier too
 * long. Method: one scheduler on a virtual clock; the only wait that is not short is
 * the one asked for, so that the maximum shows it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "fiber/fiber.h"
#include "fiber_kit.h"

#define MS UINT64_C(1000000)

static struct sched sched;
static char held[512]; /* what was told to on_held */

static int setup(void **state)
{
    (void)state;
    held[0] = '\0';
    kit_virtual_now_ns = 1000000 * MS;
    struct sched_setup with = {.stack_bytes = 65536, .clock_ns = kit_virtual_ns};
    return sched_init(&sched, &with);
}

static int teardown(void **state)
{
    (void)state;
    assert_int_equal(sched.live_count, 0);
    assert_int_equal(sched.ready_count, 0);
    sched_fini(&sched);
    return 0;
}

static struct fiber *spawn(const char *name, void (*entry)(void *), void *argument)
{
    struct fiber *fiber = fiber_spawn(&sched, (struct fiber_name){name, 0}, entry, argument);
    assert_non_null(fiber);
    return fiber;
}

/* The loop behind its reaping. Returns how many ran. */
static size_t turn(void)
{
    (void)sched_expire(&sched, kit_virtual_now_ns);
    return sched_run(&sched);
}

static void park_once(void *argument)
{
    (void)argument;
    assert_int_equal(fiber_park("test", 0), 0);
}

static void compute(void *ns)
{
    kit_virtual_now_ns += *(const uint64_t *)ns;
}

static void test_a_fiber_waits_while_others_run(void **state)
{
    (void)state;
    static const uint64_t long_ns = 7 * MS;
    spawn("busy", compute, (void *)&long_ns);
    spawn("waits", compute, (void *)&long_ns);
    assert_int_equal(sched.ready_count, 2);
    assert_int_equal(turn(), 2);
    assert_int_equal(sched.ready_count, 0);
    assert_int_equal(sched.switches, 2);
    assert_int_equal(latency_count(&sched.ready_wait), 2);
    assert_int_equal(sched.ready_wait.max, 7 * MS);
    assert_in_range(latency_percentile(&sched.ready_wait, 50000), 0, 1);
}

static void test_the_loops_sleep_is_no_wait_of_those_it_wakes(void **state)
{
    (void)state;
    struct fiber *fiber = spawn("parked", park_once, NULL);
    assert_int_equal(turn(), 1);
    kit_virtual_now_ns += 10000 * MS; /* in the kernel */
    sched_entered(&sched);
    fiber_wake(fiber);
    kit_virtual_now_ns += MS; /* reaping: not counted, as told */
    assert_int_equal(turn(), 1);
    assert_int_equal(latency_count(&sched.ready_wait), 2);
    assert_int_equal(sched.ready_wait.max, 0);
}

static void test_one_that_the_loop_wakes_by_its_clock_waits_from_then_on(void **state)
{
    (void)state;
    struct fiber *fiber = spawn("parked", park_once, NULL);
    assert_int_equal(turn(), 1);
    sched_entered(&sched);
    kit_virtual_now_ns += 10000 * MS;
    sched_now(&sched, kit_virtual_now_ns);
    fiber_wake(fiber);
    kit_virtual_now_ns += 3 * MS;
    assert_int_equal(turn(), 1);
    assert_int_equal(sched.ready_wait.max, 3 * MS);
}

static void compute_and_wake(void *fiber)
{
    kit_virtual_now_ns += 2 * MS;
    fiber_wake(fiber);
    kit_virtual_now_ns += 3 * MS;
}

static void test_one_woken_by_a_fiber_counts_from_the_start_of_its_run(void **state)
{
    (void)state;
    struct fiber *fiber = spawn("parked", park_once, NULL);
    assert_int_equal(turn(), 1);
    spawn("waker", compute_and_wake, fiber);
    assert_int_equal(turn(), 1);
    assert_int_equal(turn(), 1);
    assert_int_equal(sched.ready_wait.max, 5 * MS); /* 3 in truth, 2 the bias */
}

static void compute_and_yield(void *ns)
{
    kit_virtual_now_ns += *(const uint64_t *)ns;
    fiber_yield();
}

static void test_one_that_yields_does_not_count_its_own_run(void **state)
{
    (void)state;
    static const uint64_t long_ns = 9 * MS;
    spawn("yields", compute_and_yield, (void *)&long_ns);
    assert_int_equal(turn(), 1);
    assert_int_equal(sched.ready_count, 1);
    assert_int_equal(turn(), 1);
    assert_int_equal(latency_count(&sched.ready_wait), 2);
    assert_int_equal(sched.ready_wait.max, 0);
}

static void on_held(struct sched *of, const struct fiber *fiber, uint64_t held_ns)
{
    char name[FIBER_NAME_SIZE];
    size_t length = strlen(held);
    assert_ptr_equal(of, &sched);
    (void)fiber_format_name(fiber, name, sizeof(name));
    (void)snprintf(held + length, sizeof(held) - length, "%s %u;", name, (unsigned)(held_ns / MS));
}

static void test_who_holds_the_carrier_too_long_is_told(void **state)
{
    (void)state;
    static const uint64_t short_ns = 20 * MS - 1, long_ns = 20 * MS, longer_ns = 500 * MS;
    spawn("before", compute, (void *)&longer_ns);
    assert_int_equal(turn(), 1);
    assert_string_equal(held, ""); /* nobody watches yet */
    sched_watch(&sched, 20 * MS, on_held);
    spawn("short", compute, (void *)&short_ns);
    spawn("long", compute, (void *)&long_ns); /* ends: its stack is still there when it is told */
    spawn("longer", compute_and_yield, (void *)&longer_ns);
    assert_int_equal(turn(), 3);
    assert_int_equal(turn(), 1);
    assert_string_equal(held, "long 20;longer 500;");
    assert_int_equal(sched.held_count, 2);
    sched_watch(&sched, UINT64_MAX, NULL);
    spawn("after", compute, (void *)&longer_ns);
    assert_int_equal(turn(), 1);
    assert_int_equal(sched.held_count, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_fiber_waits_while_others_run, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_loops_sleep_is_no_wait_of_those_it_wakes, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(
            test_one_that_the_loop_wakes_by_its_clock_waits_from_then_on, setup, teardown),
        cmocka_unit_test_setup_teardown(test_one_woken_by_a_fiber_counts_from_the_start_of_its_run,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_one_that_yields_does_not_count_its_own_run, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_who_holds_the_carrier_too_long_is_told, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
