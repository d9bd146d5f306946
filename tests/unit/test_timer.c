/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property: the wheel gives each timer at the first look at or after its deadline
 * rounded up to a tick, never before it, in the order of ticks; what is disarmed
 * does not come; timer_wheel_next never lies after that. Method: random operations
 * against a model that is searched from end to end, with times from nanoseconds
 * to centuries and a printed seed; then the boundaries by hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/attr.h"
#include "fiber/timer.h"
#include "fiber_kit.h"

#define TICK_NS (UINT64_C(1) << TIMER_TICK_BITS)
#define SECOND_NS UINT64_C(1000000000)

static struct timer_wheel wheel;

static uint64_t due_tick(uint64_t deadline_ns)
{
    return deadline_ns / TICK_NS + (deadline_ns % TICK_NS != 0);
}

/* ------------------------------------------------------------ model */

#define TIMERS 150

struct model {
    struct timer timers[TIMERS];
    bool armed[TIMERS];
    bool past[TIMERS]; /* its tick had passed when it was armed */
    uint64_t now_ns;
    uint64_t random;
    size_t taken;
};

/* The armed timer of the earliest tick, of those past when armed or the others; -1 for none. */
static int model_first(const struct model *model, bool past)
{
    int first = -1;
    for (int i = 0; i < TIMERS; i++) {
        if (model->armed[i] && model->past[i] == past &&
            (first < 0 ||
             due_tick(model->timers[i].deadline_ns) < due_tick(model->timers[first].deadline_ns))) {
            first = i;
        }
    }
    return first;
}

/* A span of any order of magnitude up to 2^bits ns. */
static uint64_t random_span(struct model *model, unsigned bits)
{
    unsigned shift = 64 - 1 - (unsigned)(kit_random(&model->random) % bits);
    return kit_random(&model->random) >> shift;
}

static void look(struct model *model)
{
    for (;;) {
        bool past = model_first(model, true) >= 0;
        int first = model_first(model, false);
        bool due =
            first >= 0 && due_tick(model->timers[first].deadline_ns) <= model->now_ns / TICK_NS;
        struct timer *timer = timer_wheel_take(&wheel, model->now_ns);
        if (!past && !due) {
            assert_null(timer);
            break;
        }
        assert_non_null(timer);
        long index = timer - model->timers;
        assert_in_range(index, 0, TIMERS - 1);
        assert_true(model->armed[index]);
        assert_false(timer_armed(timer));
        /* not early; the past ones before all others, and those in the order of ticks */
        assert_in_range(timer->deadline_ns, 0, model->now_ns);
        assert_int_equal(model->past[index], past);
        if (!past) {
            assert_int_equal(due_tick(timer->deadline_ns),
                             due_tick(model->timers[first].deadline_ns));
        }
        model->armed[index] = false;
        model->taken++;
    }
    uint64_t next_ns = timer_wheel_next(&wheel);
    int first = model_first(model, false);
    if (first < 0) {
        assert_int_equal(next_ns, TIMER_NEVER);
        assert_int_equal(wheel.armed, 0);
    } else if (due_tick(model->timers[first].deadline_ns) <= UINT64_MAX / TICK_NS) {
        /* after now, or the loop would spin; at most the tick of the first */
        assert_in_range(next_ns, model->now_ns + 1,
                        due_tick(model->timers[first].deadline_ns) * TICK_NS);
    }
}

static void step(struct model *model)
{
    unsigned i = (unsigned)(kit_random(&model->random) % TIMERS);
    switch (kit_random(&model->random) % 8) {
    case 0:
    case 1:
    case 2:
    case 3:
        if (!model->armed[i]) {
            uint64_t span = random_span(model, 52);
            bool past = kit_random(&model->random) % 16 == 0 && span <= model->now_ns;
            timer_arm(&wheel, &model->timers[i],
                      past ? model->now_ns - span : model->now_ns + span);
            model->armed[i] = true;
            model->past[i] = due_tick(model->timers[i].deadline_ns) <= wheel.now_tick;
        }
        break;
    case 4:
    case 5:
        timer_disarm(&wheel, &model->timers[i]);
        model->armed[i] = false;
        assert_false(timer_armed(&model->timers[i]));
        break;
    case 6:
        model->now_ns += random_span(model, 45);
        look(model);
        break;
    case 7: {
        /* as the loop does: exactly until next */
        uint64_t next_ns = timer_wheel_next(&wheel);
        if (next_ns != TIMER_NEVER && next_ns > model->now_ns) {
            model->now_ns = next_ns;
        }
        look(model);
        break;
    }
    }
}

static void test_random_operations_agree_with_a_model(void **state)
{
    (void)state;
    static struct model model;
    uint64_t seed = kit_seed("timer");
    size_t taken = 0;
    for (int round = 0; round < 40; round++) {
        model = (struct model){.random = seed + (uint64_t)round};
        model.now_ns = random_span(&model, 62);
        timer_wheel_init(&wheel, model.now_ns);
        for (int i = 0; i < TIMERS; i++) {
            timer_init(&model.timers[i]);
        }
        for (int i = 0; i < 5000; i++) {
            step(&model);
        }
        for (int i = 0; i < TIMERS; i++) {
            timer_disarm(&wheel, &model.timers[i]);
        }
        assert_int_equal(wheel.armed, 0);
        assert_int_equal(timer_wheel_next(&wheel), TIMER_NEVER);
        taken += model.taken;
    }
    assert_in_range(taken, 1000, SIZE_MAX);
}

/* ------------------------------------------------------------ by hand */

/* Drive the clock by timer_wheel_next alone and return when the timer came. */
static uint64_t fired_at(uint64_t start_ns, uint64_t deadline_ns)
{
    struct timer timer;
    timer_init(&timer);
    timer_wheel_init(&wheel, start_ns);
    timer_arm(&wheel, &timer, deadline_ns);
    uint64_t now_ns = start_ns;
    for (int looks = 0; looks < 64; looks++) {
        struct timer *taken = timer_wheel_take(&wheel, now_ns);
        if (taken != NULL) {
            assert_ptr_equal(taken, &timer);
            assert_int_equal(wheel.armed, 0);
            return now_ns;
        }
        uint64_t next_ns = timer_wheel_next(&wheel);
        assert_in_range(next_ns, now_ns + 1, UINT64_MAX - 1);
        now_ns = next_ns;
    }
    fail_msg("not fired: start %llu deadline %llu", (unsigned long long)start_ns,
             (unsigned long long)deadline_ns);
    return 0;
}

static void test_each_level_boundary_fires_at_its_tick(void **state)
{
    (void)state;
    static const uint64_t starts[] = {0,
                                      1,
                                      TICK_NS - 1,
                                      TICK_NS,
                                      31 * TICK_NS,
                                      32 * TICK_NS,
                                      63 * TICK_NS + 5,
                                      1023 * TICK_NS,
                                      1024 * TICK_NS,
                                      UINT64_C(123456789012345),
                                      UINT64_C(1) << 50,
                                      (UINT64_C(1) << 50) - 1};
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++) {
        for (unsigned bits = 0; bits < 62; bits++) {
            for (int around = -1; around <= 1; around++) {
                uint64_t deadline_ns = starts[i] + (UINT64_C(1) << bits) + (uint64_t)around;
                assert_int_equal(fired_at(starts[i], deadline_ns),
                                 deadline_ns == starts[i] && starts[i] % TICK_NS == 0
                                     ? starts[i]
                                     : due_tick(deadline_ns) * TICK_NS);
            }
        }
    }
}

static void test_a_day_a_year_and_five_centuries(void **state)
{
    (void)state;
    static const uint64_t spans[] = {86400 * SECOND_NS, 86400 * 365 * SECOND_NS,
                                     UINT64_C(86400) * 365 * 500 * SECOND_NS};
    uint64_t start_ns = UINT64_C(98765432123456789);
    for (size_t i = 0; i < sizeof spans / sizeof spans[0]; i++) {
        assert_int_equal(fired_at(start_ns, start_ns + spans[i]),
                         due_tick(start_ns + spans[i]) * TICK_NS);
    }
}

static void test_never_does_not_fire_and_does_not_overflow(void **state)
{
    (void)state;
    struct timer never;
    struct timer last;
    timer_init(&never);
    timer_init(&last);
    timer_wheel_init(&wheel, 5 * SECOND_NS);
    timer_arm(&wheel, &never, TIMER_NEVER);
    assert_null(timer_wheel_take(&wheel, UINT64_C(86400) * SECOND_NS));
    timer_arm(&wheel, &last, UINT64_MAX / TICK_NS * TICK_NS);
    assert_ptr_equal(timer_wheel_take(&wheel, UINT64_MAX - 1), &last);
    assert_null(timer_wheel_take(&wheel, UINT64_MAX));
    assert_int_equal(timer_wheel_next(&wheel), TIMER_NEVER);
    assert_true(timer_armed(&never));
    timer_disarm(&wheel, &never);
    assert_int_equal(wheel.armed, 0);
}

static void test_a_deadline_in_the_past_fires_at_the_next_look(void **state)
{
    (void)state;
    uint64_t now_ns = 100 * SECOND_NS + 12345;
    struct timer past[3];
    timer_wheel_init(&wheel, now_ns);
    assert_null(timer_wheel_take(&wheel, now_ns));
    static const uint64_t ago[] = {99 * SECOND_NS, SECOND_NS, 0};
    for (int i = 0; i < 3; i++) {
        timer_init(&past[i]);
    }
    timer_arm(&wheel, &past[0], now_ns - ago[0]);
    timer_arm(&wheel, &past[1], now_ns - ago[1]);
    timer_arm(&wheel, &past[2], 0);
    assert_int_equal(timer_wheel_next(&wheel), 0);
    /* within the same tick */
    for (int i = 0; i < 3; i++) {
        assert_ptr_equal(timer_wheel_take(&wheel, now_ns), &past[i]);
    }
    assert_null(timer_wheel_take(&wheel, now_ns));
    /* one that is due may still be disarmed */
    timer_arm(&wheel, &past[0], now_ns - SECOND_NS);
    timer_disarm(&wheel, &past[0]);
    timer_disarm(&wheel, &past[0]);
    assert_null(timer_wheel_take(&wheel, now_ns));
    assert_int_equal(wheel.armed, 0);
}

static void test_a_clock_that_goes_back_changes_nothing(void **state)
{
    (void)state;
    struct timer timer;
    timer_init(&timer);
    timer_wheel_init(&wheel, 50 * SECOND_NS);
    timer_arm(&wheel, &timer, 51 * SECOND_NS);
    assert_null(timer_wheel_take(&wheel, 50 * SECOND_NS + 5));
    assert_null(timer_wheel_take(&wheel, SECOND_NS));
    assert_null(timer_wheel_take(&wheel, 0));
    assert_null(timer_wheel_take(&wheel, 51 * SECOND_NS - 1));
    assert_ptr_equal(timer_wheel_take(&wheel, 51 * SECOND_NS + TICK_NS), &timer);
}

static void test_timers_of_one_tick_come_as_they_were_armed(void **state)
{
    (void)state;
    enum { COUNT = 1000 };
    static struct timer timers[COUNT];
    timer_wheel_init(&wheel, 0);
    for (int i = 0; i < COUNT; i++) {
        timer_init(&timers[i]);
        timer_arm(&wheel, &timers[i], 7 * SECOND_NS);
    }
    assert_int_equal(wheel.armed, COUNT);
    for (int i = 0; i < COUNT; i++) {
        assert_ptr_equal(timer_wheel_take(&wheel, 8 * SECOND_NS), &timers[i]);
    }
    assert_null(timer_wheel_take(&wheel, 8 * SECOND_NS));
}

/*
 * Twenty thousand sleepers in two slots of a high level: when the loop turns once
 * a tick, no turn moves more than a small batch of them, and all are on time.
 */
static void test_a_crowded_slot_is_spread_a_few_at_a_time(void **state)
{
    (void)state;
    enum { COUNT = 20000, BATCH_MAX = 400 };
    struct timer *timers = calloc(COUNT, sizeof *timers);
    uint16_t *slots = calloc(COUNT, sizeof *slots);
    assert_non_null(timers);
    assert_non_null(slots);
    uint64_t random = kit_seed("crowd");
    timer_wheel_init(&wheel, 0);
    for (int i = 0; i < COUNT; i++) {
        timer_init(&timers[i]);
        timer_arm(&wheel, &timers[i], SECOND_NS + kit_random(&random) % (SECOND_NS / 5));
        slots[i] = timers[i].slot;
    }
    size_t taken = 0;
    for (uint64_t now_ns = 0; wheel.armed > 0; now_ns += TICK_NS) {
        struct timer *timer;
        while ((timer = timer_wheel_take(&wheel, now_ns)) != NULL) {
            assert_in_range(now_ns - timer->deadline_ns, 0, TICK_NS - 1);
            taken++;
        }
        size_t moved = 0;
        for (int i = 0; i < COUNT; i++) {
            moved += timers[i].slot != slots[i];
            slots[i] = timers[i].slot;
        }
        assert_in_range(moved, 0, BATCH_MAX);
    }
    assert_int_equal(taken, COUNT);
    free(timers);
    free(slots);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_operations_agree_with_a_model),
        cmocka_unit_test(test_each_level_boundary_fires_at_its_tick),
        cmocka_unit_test(test_a_day_a_year_and_five_centuries),
        cmocka_unit_test(test_never_does_not_fire_and_does_not_overflow),
        cmocka_unit_test(test_a_deadline_in_the_past_fires_at_the_next_look),
        cmocka_unit_test(test_a_clock_that_goes_back_changes_nothing),
        cmocka_unit_test(test_timers_of_one_tick_come_as_they_were_armed),
        cmocka_unit_test(test_a_crowded_slot_is_spread_a_few_at_a_time),
    };
    return cmocka_run_group_tests_name("timer", tests, NULL, NULL);
}
