/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fork_join.c - what a scope costs: opened, so many children forked and joined, closed,
 * on fibers of one carrier; and on platform threads, where a fork is a thread.
 */
#include <stdint.h>

#include "base/must.h"
#include "fiber/fiber.h"
#include "fiber/scope.h"
#include "ring/sys.h"
#include "rounds.h"

#define CHILDREN_MAX 1000
#define FORKS 2000 /* a round, all scopes together */
#define THREAD_FORKS 200

static struct sched sched;
static struct scope_child children[CHILDREN_MAX];
static unsigned count; /* children of a scope */
static unsigned forks;
static double measured_ns;

static int do_nothing(void *unused)
{
    (void)unused;
    return 0;
}

static int yield(void *unused)
{
    (void)unused;
    fiber_yield();
    return 0;
}

static void fork_and_join(void *run)
{
    int (*child)(void *) = run == NULL ? do_nothing : yield;
    uint64_t start_ns = sys_clock_ns();
    for (unsigned done = 0; done < forks; done += count) {
        struct scope scope;
        scope_open(&scope, "bench-", SCOPE_FAIL_FAST);
        for (unsigned i = 0; i < count; i++) {
            must(scope_fork(&scope, &children[i], child, NULL) == 0);
        }
        must(scope_join(&scope) == 0);
        scope_close(&scope);
    }
    measured_ns = (double)(sys_clock_ns() - start_ns) / forks;
}

static double on_fibers(unsigned children_count, void *run)
{
    count = children_count;
    forks = FORKS;
    must(fiber_spawn(&sched, (struct fiber_name){"owner", 0}, fork_and_join, run) != NULL);
    while (sched_run(&sched) > 0) {
    }
    return measured_ns;
}

static void *run_thread(void *argument)
{
    fork_and_join(argument);
    return NULL;
}

static double on_threads(unsigned children_count)
{
    pthread_t thread;
    count = children_count;
    forks = THREAD_FORKS;
    must(pthread_create(&thread, NULL, run_thread, NULL) == 0);
    pthread_join(thread, NULL);
    return measured_ns;
}

int main(void)
{
    struct rounds rounds[] = {
        {.name = "fork and join, 1 child"},
        {.name = "fork and join, 10 children, each"},
        {.name = "fork and join, 1000 children, each"},
        {.name = "the same, each yields once"},
        {.name = "on platform threads, 10 children, each"},
    };
    struct sched_setup setup = {.stack_bytes = 65536, .clock_ns = sys_clock_ns};
    must(sched_init(&sched, &setup) == 0);
    for (unsigned round = 0; round < ROUNDS; round++) {
        rounds_add(&rounds[0], on_fibers(1, NULL));
        rounds_add(&rounds[1], on_fibers(10, NULL));
        rounds_add(&rounds[2], on_fibers(CHILDREN_MAX, NULL));
        rounds_add(&rounds[3], on_fibers(CHILDREN_MAX, &sched));
        rounds_add(&rounds[4], on_threads(10));
    }
    rounds_print_head("fork-join");
    for (size_t i = 0; i < sizeof(rounds) / sizeof(rounds[0]); i++) {
        rounds_print(&rounds[i]);
    }
    sched_fini(&sched);
    return 0;
}
