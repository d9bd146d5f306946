/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property: average and maximum of the waits between hand-overs are those of the
 * times noted, in whatever order two threads came. Method: times by hand, then
 * threads that note drawn times and a sum that must come out.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>

#include "app/echo_wait.h"

#define THREADS 4
#define NOTES 50000

static void waits_are_from_one_hand_over_to_the_next(void **state)
{
    (void)state;
    struct echo_wait wait = {0};
    assert_int_equal(echo_wait_average_ns(&wait), 0);
    assert_int_equal(echo_wait_note(&wait, 5000), 1);
    assert_int_equal(echo_wait_average_ns(&wait), 0); /* nobody was before it */
    assert_int_equal(wait.max_ns, 0);
    assert_int_equal(echo_wait_note(&wait, 5010), 2);
    assert_int_equal(echo_wait_note(&wait, 5100), 3);
    assert_int_equal(echo_wait_note(&wait, 5101), 4);
    assert_int_equal(wait.max_ns, 90);
    assert_int_equal(echo_wait_average_ns(&wait), 101 / 3);
}

static void a_carrier_that_noted_late_does_not_turn_the_clock_back(void **state)
{
    (void)state;
    struct echo_wait wait = {0};
    echo_wait_note(&wait, 1000);
    echo_wait_note(&wait, 1050);
    echo_wait_note(&wait, 1040); /* accepted before the last, noted after it */
    echo_wait_note(&wait, 1060);
    assert_int_equal(wait.max_ns, 50);
    assert_int_equal(echo_wait_average_ns(&wait), 20);
}

static struct echo_wait shared;
static atomic_uint_fast64_t clock_ns;

static void *note_many(void *argument)
{
    (void)argument;
    for (unsigned i = 0; i < NOTES; i++) {
        echo_wait_note(&shared, atomic_fetch_add(&clock_ns, 3) + 3);
    }
    return NULL;
}

static void nothing_is_lost_between_threads(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, note_many, NULL), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_int_equal(shared.connections, THREADS * NOTES);
    assert_int_equal(shared.last_ns, 3 * THREADS * NOTES);
    assert_true(shared.max_ns >= 3 && shared.max_ns < shared.last_ns);
    uint64_t average_ns = echo_wait_average_ns(&shared);
    assert_true(average_ns == 2 || average_ns == 3); /* the first noted need not be the earliest */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waits_are_from_one_hand_over_to_the_next),
        cmocka_unit_test(a_carrier_that_noted_late_does_not_turn_the_clock_back),
        cmocka_unit_test(nothing_is_lost_between_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
