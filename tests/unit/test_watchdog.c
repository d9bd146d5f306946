/* SPDX-License-Identifier: Apache-2.0 */
/* links: scripted kernel */
/*
 * Property: a feed is due once per period, as soon as every carrier has ticked, and
 * never while one has not; without an interval nobody is asked. Method: the scripted
 * kernel, one to four carriers, a clock that the test moves.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "app/watchdog.h"
#include "base/time.h"
#include "kernel.h"
#include "ring/sys.h"

#define INTERVAL_NS (10 * NS_PER_S)

static struct watchdog watchdog;
static int wake_fd;

static void begin(unsigned round, unsigned carriers, uint64_t interval_ns)
{
    kernel_start(round);
    drive_start(carriers);
    wake_fd = sys_eventfd();
    struct watchdog_setup setup = {.carriers = drive_carriers(),
                                   .carrier_count = carriers,
                                   .interval_ns = interval_ns,
                                   .wake_fd = wake_fd};
    assert_int_equal(watchdog_init(&watchdog, &setup), 0);
}

static void end(void)
{
    drive_run();
    watchdog_fini(&watchdog);
    sys_close(wake_fd);
    drive_stop();
}

static void test_fed_once_a_period_when_all_have_ticked(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 8; round++) {
        begin(round, 1 + round % 4, INTERVAL_NS);
        for (unsigned period = 0; period < 20; period++) {
            uint64_t now_ns = kernel_now_ns();
            assert_false(watchdog_look(&watchdog, now_ns)); /* asks */
            assert_int_equal(watchdog_deadline_ns(&watchdog), 0);
            drive_run();
            assert_true(watchdog_look(&watchdog, now_ns));
            assert_int_equal(watchdog_deadline_ns(&watchdog), now_ns + INTERVAL_NS / 2);
            assert_false(watchdog_look(&watchdog, now_ns));
            assert_false(watchdog_look(&watchdog, now_ns + INTERVAL_NS / 2 - 1));
            drive_pass(INTERVAL_NS / 2);
        }
        end();
    }
}

static void test_not_fed_while_one_carrier_is_stuck(void **state)
{
    (void)state;
    begin(0, 1, INTERVAL_NS);
    assert_false(watchdog_look(&watchdog, kernel_now_ns()));
    for (unsigned i = 0; i < 100; i++) { /* the carrier does not turn */
        kernel_pass(INTERVAL_NS);
        assert_false(watchdog_look(&watchdog, kernel_now_ns()));
        assert_int_equal(watchdog_deadline_ns(&watchdog), 0);
    }
    drive_run(); /* it was only slow: fed at once, and asked anew */
    assert_true(watchdog_look(&watchdog, kernel_now_ns()));
    drive_run();
    assert_true(watchdog_look(&watchdog, kernel_now_ns()));
    end();
}

static void test_the_last_tick_wakes_the_main_thread(void **state)
{
    (void)state;
    begin(0, 3, INTERVAL_NS);
    assert_int_equal(sys_wait(wake_fd, wake_fd, kernel_now_ns()), 0);
    assert_false(watchdog_look(&watchdog, kernel_now_ns()));
    drive_run();
    assert_int_equal(sys_wait(wake_fd, wake_fd, kernel_now_ns()), 3);
    assert_int_equal(atomic_load(&watchdog.outstanding), 0);
    end();
}

static void test_nobody_is_asked_without_an_interval(void **state)
{
    (void)state;
    begin(0, 2, 0);
    drive_run();
    uint64_t turns = drive_turns();
    for (unsigned i = 0; i < 10; i++) {
        kernel_pass(INTERVAL_NS);
        assert_false(watchdog_look(&watchdog, kernel_now_ns()));
        assert_int_equal(watchdog_deadline_ns(&watchdog), 0);
        assert_null(atomic_load(&drive_carriers()[0].inbox));
    }
    assert_int_equal(drive_turns(), turns);
    end();
}

static void test_a_tiny_interval_does_not_spin(void **state)
{
    (void)state;
    begin(0, 1, 1000);
    uint64_t now_ns = kernel_now_ns();
    assert_false(watchdog_look(&watchdog, now_ns));
    drive_run();
    assert_true(watchdog_look(&watchdog, now_ns));
    assert_int_equal(watchdog_deadline_ns(&watchdog), now_ns + NS_PER_MS);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fed_once_a_period_when_all_have_ticked),
        cmocka_unit_test(test_not_fed_while_one_carrier_is_stuck),
        cmocka_unit_test(test_the_last_tick_wakes_the_main_thread),
        cmocka_unit_test(test_nobody_is_asked_without_an_interval),
        cmocka_unit_test(test_a_tiny_interval_does_not_spin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
