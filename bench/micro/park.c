/* SPDX-License-Identifier: Apache-2.0 */
/*
 * park.c - what it costs to park a fiber and wake it again: run queue, two
 * switches, figures and the clock, without any I/O. One fiber, and as many as a
 * busy carrier has, taking turns, with the real clock and with one that is free.
 */
#include <stdint.h>

#include "base/must.h"
#include "fiber/fiber.h"
#include "ring/sys.h"
#include "rounds.h"

#define FIBERS_MAX 10000
#define PARKS 500000 /* a round, all fibers together */

static struct sched sched;
static struct fiber *fibers[FIBERS_MAX];
static bool ending;

static uint64_t free_clock_ns(void)
{
    static uint64_t now_ns = 1;
    return now_ns++;
}

static void park(void *argument)
{
    (void)argument;
    while (!ending) {
        (void)fiber_park("bench", 0);
    }
}

static void yield(void *argument)
{
    (void)argument;
    while (!ending) {
        fiber_yield();
    }
}

static void spawn(unsigned count, void (*entry)(void *))
{
    ending = false;
    for (unsigned i = 0; i < count; i++) {
        fibers[i] = fiber_spawn(&sched, (struct fiber_name){"bench-", i}, entry, NULL);
        must(fibers[i] != NULL);
    }
    (void)sched_run(&sched);
}

static void end(unsigned count)
{
    ending = true;
    for (unsigned i = 0; i < count; i++) {
        fiber_wake(fibers[i]);
    }
    while (sched_run(&sched) > 0) {
    }
    must(sched.live_count == 0);
}

static double measure_parks(unsigned count)
{
    spawn(count, park);
    uint64_t start_ns = sys_clock_ns();
    for (unsigned turn = 0; turn < PARKS / count; turn++) {
        for (unsigned i = 0; i < count; i++) {
            fiber_wake(fibers[i]);
        }
        must(sched_run(&sched) == count);
    }
    double ns = (double)(sys_clock_ns() - start_ns) / PARKS;
    end(count);
    return ns;
}

static double measure_yields(unsigned count)
{
    spawn(count, yield);
    uint64_t start_ns = sys_clock_ns();
    for (unsigned turn = 0; turn < PARKS / count; turn++) {
        must(sched_run(&sched) == count);
    }
    double ns = (double)(sys_clock_ns() - start_ns) / PARKS;
    end(count);
    return ns;
}

static double measure_clock(unsigned count)
{
    (void)count;
    uint64_t start_ns = sys_clock_ns();
    for (unsigned i = 0; i < PARKS; i++) {
        (void)sched.setup.clock_ns();
    }
    return (double)(sys_clock_ns() - start_ns) / PARKS;
}

static struct {
    double (*measure)(unsigned count);
    unsigned count;
    bool free_clock;
    struct rounds rounds;
} cases[] = {
    {measure_clock, 1, false, {.name = "the clock alone"}},
    {measure_yields, 1, true, {.name = "yield, 1 fiber, free clock"}},
    {measure_parks, 1, true, {.name = "park and wake, 1 fiber, free clock"}},
    {measure_parks, 1, false, {.name = "park and wake, 1 fiber (two clock reads)"}},
    {measure_parks, 100, false, {.name = "park and wake, 100 fibers (one clock read)"}},
    {measure_parks, FIBERS_MAX, false, {.name = "park and wake, 10 000 fibers"}},
};

#define CASES (sizeof cases / sizeof cases[0])

int main(void)
{
    struct sched_setup setup = {.stack_bytes = 65536, .clock_ns = sys_clock_ns};
    must(sched_init(&sched, &setup) == 0);
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < CASES; i++) {
            sched.setup.clock_ns = cases[i].free_clock ? free_clock_ns : sys_clock_ns;
            rounds_add(&cases[i].rounds, cases[i].measure(cases[i].count));
        }
    }
    rounds_print_head("park");
    for (size_t i = 0; i < CASES; i++) {
        rounds_print(&cases[i].rounds);
    }
    sched_fini(&sched);
    return 0;
}
