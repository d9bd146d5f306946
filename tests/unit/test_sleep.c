/* SPDX-License-Identifier: Apache-2.0 */
/* links: scripted kernel */
/*
 * Property: a sleep ends at its deadline or up to a tick later, never earlier; a
 * cancel ends it at once; a platform thread blocks instead. Method: the virtual
 * clock, random deadlines.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>

#include "base/time.h"
#include "fiber/timer.h"
#include "io/sleep.h"
#include "kernel.h"
#include "ring/carrier.h"

#define SLEEPERS 200
#define TICK_NS (UINT64_C(1) << TIMER_TICK_BITS)

struct sleeper {
    uint64_t deadline_ns, over_ns;
    int result;
    bool over;
    struct fiber *fiber;
};

static struct sleeper sleepers[SLEEPERS];

static void run_sleep(void *argument)
{
    struct sleeper *sleeper = argument;
    sleeper->result = sleep_until(sleeper->deadline_ns);
    sleeper->over_ns = kernel_now_ns();
    sleeper->over = true;
}

static void test_sleeps_end_in_time_and_never_early(void **state)
{
    (void)state;
    kernel_start(0);
    drive_start(1);
    uint64_t began_ns = kernel_now_ns();
    for (int i = 0; i < SLEEPERS; i++) {
        uint64_t spans[] = {1000, NS_PER_MS, NS_PER_S, 3600 * NS_PER_S};
        sleepers[i] =
            (struct sleeper){.deadline_ns = began_ns + kernel_random(spans[kernel_random(4)])};
        sleepers[i].fiber = drive_spawn("sleeper", run_sleep, &sleepers[i]);
    }
    drive_pass(3600 * NS_PER_S);
    for (int i = 0; i < SLEEPERS; i++) {
        assert_true(sleepers[i].over);
        assert_int_equal(sleepers[i].result, 0);
        assert_in_range(sleepers[i].over_ns, sleepers[i].deadline_ns,
                        sleepers[i].deadline_ns + TICK_NS);
    }
    drive_stop();
}

static void test_a_past_deadline_does_not_park(void **state)
{
    (void)state;
    kernel_start(0);
    drive_start(1);
    uint64_t parked = drive_carriers()[0].sched.switches;
    sleepers[0] = (struct sleeper){.deadline_ns = kernel_now_ns()};
    drive_spawn("sleeper", run_sleep, &sleepers[0]);
    drive_run();
    assert_true(sleepers[0].over);
    assert_int_equal(sleepers[0].result, 0);
    assert_int_equal(drive_carriers()[0].sched.switches, parked + 1);
    drive_stop();
}

static void test_a_cancel_ends_a_sleep_at_once(void **state)
{
    (void)state;
    kernel_start(0);
    drive_start(1);
    uint64_t deadline_ns = kernel_now_ns() + 10 * NS_PER_S;
    for (int i = 0; i < 2; i++) {
        sleepers[i] = (struct sleeper){.deadline_ns = deadline_ns};
        sleepers[i].fiber = drive_spawn("sleeper", run_sleep, &sleepers[i]);
    }
    drive_pass(NS_PER_S);
    uint64_t cancelled_ns = kernel_now_ns();
    fiber_cancel(sleepers[0].fiber);
    drive_pass(NS_PER_S);
    assert_true(sleepers[0].over);
    assert_int_equal(sleepers[0].result, -ECANCELED);
    assert_int_equal(sleepers[0].over_ns, cancelled_ns);
    assert_false(sleepers[1].over);
    drive_pass(9 * NS_PER_S);
    assert_int_equal(sleepers[1].result, 0);
    drive_stop();
}

static void *thread_sleep(void *argument)
{
    run_sleep(argument);
    return NULL;
}

static bool thread_sleeps(void *unused)
{
    (void)unused;
    return kernel_blocked_threads() == 1;
}

static void test_a_platform_thread_blocks(void **state)
{
    (void)state;
    pthread_t thread;
    kernel_start(0);
    drive_start(1);
    sleepers[0] = (struct sleeper){.deadline_ns = kernel_now_ns() + NS_PER_S};
    assert_int_equal(pthread_create(&thread, NULL, thread_sleep, &sleepers[0]), 0);
    drive_until(thread_sleeps, NULL);
    drive_pass(NS_PER_S / 2);
    drive_until(thread_sleeps, NULL);
    drive_pass(NS_PER_S / 2);
    pthread_join(thread, NULL);
    assert_true(sleepers[0].over);
    assert_int_equal(sleepers[0].result, 0);
    assert_int_equal(sleepers[0].over_ns, sleepers[0].deadline_ns);
    drive_stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sleeps_end_in_time_and_never_early),
        cmocka_unit_test(test_a_past_deadline_does_not_park),
        cmocka_unit_test(test_a_cancel_ends_a_sleep_at_once),
        cmocka_unit_test(test_a_platform_thread_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
