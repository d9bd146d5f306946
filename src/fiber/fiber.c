/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fiber.c - a fiber's life: spawned, run, parked, woken, cancelled. Hop: a
 * completion wakes its fiber here, and sched_run gives it the carrier.
 *
 * Each park is one switch to the loop and one back. Nothing here allocates but
 * fiber_spawn, and nothing makes a system call but its stack and its first entry.
 */
#include "fiber/fiber.h"

#include <errno.h>
#include <string.h>

#include "base/must.h"

/* No byte of it is 0 or printable, so that text and zeroes that run over it are seen. */
#define CANARY UINT64_C(0x8fb5e3a197c2d684)

/*
 * Between fiber_park and the switch there shall be no frame: the processor
 * predicts returns from its stack of calls, a switch leaves that stack another
 * fiber's, and so each return after a switch costs a misprediction (5 ns).
 */
#define PARK_INLINE static inline __attribute__((always_inline))

/* struct fiber, and so the stack's first byte, begins at a multiple of this. */
#define FIBER_ALIGN 64

_Static_assert(sizeof(struct fiber) <= 2048, "half of the first page is left to the stack");

enum park_kind { PARK_PLAIN, PARK_THROUGH, PARK_IDLE };

static uint64_t last_id; /* atomic, relaxed: all carriers number from it */

struct fiber *fiber_current(void)
{
    struct sched *sched = sched_current();
    return sched == NULL ? NULL : sched->current;
}

/* The running fiber, seen to be sound. */
PARK_INLINE struct fiber *running_fiber(void)
{
    struct fiber *fiber = fiber_current();
    must(fiber != NULL);
    must(fiber->canary == CANARY);
    must(fiber->state == FIBER_RUNNING);
    return fiber;
}

/* The first function of each fiber. */
static void run_entry(void)
{
    struct fiber *fiber = fiber_current();
    fiber->entry(fiber->argument);

    must(fiber == running_fiber());
    task_end(&fiber->task);
    timer_disarm(&fiber->sched->timers, &fiber->timer);
    list_remove(&fiber->idle_link);
    fiber->state = FIBER_DONE;
    /* it cannot free the stack it stands on: the loop does */
    fiber->sched->finished = fiber;
    switch_leave(&fiber->context, &fiber->sched->loop);
}

struct fiber *fiber_spawn(struct sched *sched, struct fiber_name name, void (*entry)(void *),
                          void *argument)
{
    must(sched == sched_current());
    struct stack stack;
    if (stack_get(&sched->stacks, &stack) != 0) {
        return NULL;
    }
    uintptr_t top = (uintptr_t)stack.base + stack.size;
    struct fiber *fiber = (void *)((top - sizeof *fiber) & ~(uintptr_t)(FIBER_ALIGN - 1));
    char *low = stack_low(stack);
    *fiber = (struct fiber){
        .canary = CANARY,
        .sched = sched,
        .id = __atomic_add_fetch(&last_id, 1, __ATOMIC_RELAXED),
        .name = name,
        .entry = entry,
        .argument = argument,
        .stack = stack,
        .state_since_ns = sched->now_ns,
    };
    switch_prepare(&fiber->context, low, (size_t)((char *)fiber - low), run_entry);
    timer_init(&fiber->timer);
    task_init(&fiber->task, fiber);
    list_init(&fiber->idle_link);
    list_append(&sched->live, &fiber->live_link);
    sched__ready(sched, fiber);
    sched->live_count++;
    sched->spawned++;
    return fiber;
}

/* Give the carrier away until somebody made this fiber ready and its turn has come. */
PARK_INLINE void switch_out(struct fiber *fiber)
{
    switch_to(&fiber->context, &fiber->sched->loop);
    must(fiber->canary == CANARY);
    must(fiber->state == FIBER_RUNNING);
}

/*
 * The pages below the frames of the park in work may go once it has lasted. A wake
 * leaves the fiber on the list, so that a busy connection does not touch its
 * neighbours' nodes for each request: sched_tidy sorts out who has really rested.
 */
PARK_INLINE void rest(struct fiber *fiber)
{
    fiber->idle_since_ns = fiber->sched->now_ns;
    if (list_empty(&fiber->idle_link)) {
        fiber->idle_listed_ns = fiber->idle_since_ns;
        list_append(&fiber->sched->idle, &fiber->idle_link);
    }
}

PARK_INLINE int park(const char *waiting_for, uint64_t deadline_ns, enum park_kind kind)
{
    struct fiber *fiber = running_fiber();
    struct sched *sched = fiber->sched;
    if (fiber->cancelled && kind != PARK_THROUGH) {
        return -ECANCELED;
    }
    /* A wake leaves the timer armed: most parks of a connection end long before their deadline,
     * and the next one's is later. Firing early costs one look in sched_expire. */
    fiber->deadline_ns = deadline_ns == TIMER_NEVER ? 0 : deadline_ns;
    if (fiber->deadline_ns != 0 &&
        (!timer_armed(&fiber->timer) || fiber->timer.deadline_ns > deadline_ns)) {
        timer_disarm(&sched->timers, &fiber->timer);
        timer_arm(&sched->timers, &fiber->timer, deadline_ns);
    }
    fiber->resting = kind == PARK_IDLE || !fiber->stack.clean;
    if (fiber->resting) {
        rest(fiber);
    }
    fiber->through = kind == PARK_THROUGH;
    fiber->waiting_for = waiting_for;
    fiber->state = FIBER_PARKED;
    switch_out(fiber);
    return fiber->park_result;
}

int fiber_park(const char *waiting_for, uint64_t deadline_ns)
{
    return park(waiting_for, deadline_ns, PARK_PLAIN);
}

int fiber_park_through(const char *waiting_for, uint64_t deadline_ns)
{
    return park(waiting_for, deadline_ns, PARK_THROUGH);
}

int fiber_park_idle(const char *waiting_for, uint64_t deadline_ns)
{
    return park(waiting_for, deadline_ns, PARK_IDLE);
}

void fiber_yield(void)
{
    struct fiber *fiber = running_fiber();
    sched__ready(fiber->sched, fiber);
    switch_out(fiber);
}

int fiber_sleep_until(uint64_t deadline_ns)
{
    struct fiber *fiber = running_fiber();
    struct sched *sched = fiber->sched;
    bool slept = false;
    if (fiber->cancelled) {
        return -ECANCELED;
    }
    /* now_ns is when this fiber got the carrier: the clock reads at least that */
    while (sched->now_ns < deadline_ns) {
        if (park("sleep", deadline_ns, PARK_PLAIN) == -ECANCELED) {
            return -ECANCELED;
        }
        slept = true;
    }
    if (slept) {
        latency_record(&sched->lateness, sched->now_ns - deadline_ns);
    }
    return 0;
}

void fiber__unpark(struct fiber *fiber, int result)
{
    struct sched *sched = fiber->sched;
    must(fiber->state == FIBER_PARKED);
    must(fiber->canary == CANARY);
    fiber->park_result = result;
    sched__ready(sched, fiber);
}

void fiber_wake(struct fiber *fiber)
{
    struct sched *sched = fiber->sched;
    if (unlikely(sched != sched_current())) {
        must(sched->setup.wake_remote != NULL);
        sched->setup.wake_remote(sched, fiber);
    } else if (fiber->state == FIBER_PARKED) {
        fiber__unpark(fiber, 0);
    }
}

void fiber_cancel(struct fiber *fiber)
{
    must(fiber->sched == sched_current());
    fiber->cancelled = true;
    if (fiber->state == FIBER_PARKED && !fiber->through) {
        fiber__unpark(fiber, -ECANCELED);
    }
}

void fiber_populate(struct fiber *fiber)
{
    must(fiber == fiber_current());
    stack_populate(&fiber->stack);
}
