/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sched.c - the loop's side of the fibers: run, expire, tidy. Called by the
 * carrier's loop, which stands on the thread's own stack.
 */
#include "fiber/sched.h"

#include <errno.h>
#include <string.h>

#include "base/must.h"
#include "base/time.h"
#include "fiber/fiber.h"
#include "fiber/task.h"

/* How long a fiber is idle, or a stack free, before its pages go back. */
#define TIDY_AFTER_NS NS_PER_S
/* Idle fibers are trimmed together twice a second, not each on a turn of its own. */
#define TIDY_STEP_NS (NS_PER_S / 2)
/* Stacks trimmed a call: some 200 µs of work. */
#define TIDY_BATCH 256
/* Fibers that may go before others in a turn. */
#define HURRY_MAX 64

_Thread_local struct sched *sched__of_thread;

int sched_init(struct sched *sched, const struct sched_setup *setup)
{
    must(sched__of_thread == NULL);
    must(setup->clock_ns != NULL);
    memset(sched, 0, sizeof *sched);
    sched->setup = *setup;
    sched->held_after_ns = UINT64_MAX;
    int result = stack_pool_init(&sched->stacks, setup->stack_bytes, setup->force_mprotect);
    if (result != 0) {
        return result;
    }
    list_init(&sched->ready);
    list_init(&sched->live);
    list_init(&sched->idle);
    sched->now_ns = setup->clock_ns();
    timer_wheel_init(&sched->timers, sched->now_ns);
    switch_adopt(&sched->loop);
    sched__of_thread = sched;
    __atomic_store_n(&must_describe, fiber__describe_current, __ATOMIC_RELAXED);
    return 0;
}

void sched_fini(struct sched *sched)
{
    must(sched == sched__of_thread);
    must(sched->live_count == 0 && list_empty(&sched->live) && list_empty(&sched->ready));
    must(sched->timers.armed == 0);
    must(atomic_load(&sched->told) == NULL);
    stack_pool_fini(&sched->stacks);
    sched__of_thread = NULL;
}

/* After the last switch out of a fiber: its struct goes back along with its stack. */
static void release(struct sched *sched, struct fiber *fiber)
{
    must(fiber->state == FIBER_DONE);
    list_remove(&fiber->live_link);
    sched->live_count--;
    switch_forget(&fiber->context);
    stack_put(&sched->stacks, fiber->stack);
}

/* From another thread's sched_watch: the function is there once the time is. */
static void count_held(struct sched *sched, const struct fiber *fiber, uint64_t held_ns)
{
    __atomic_store_n(&sched->held_count, sched->held_count + 1, __ATOMIC_RELAXED);
    sched->held(sched, fiber, held_ns);
}

void sched_watch(struct sched *sched, uint64_t held_after_ns, sched_held *held)
{
    if (held != NULL) {
        sched->held = held;
    }
    __atomic_store_n(&sched->held_after_ns, held_after_ns, __ATOMIC_RELEASE);
}

void sched__ready(struct sched *sched, struct fiber *fiber)
{
    fiber->state = FIBER_READY;
    fiber->ready_ns = sched->kernel_entered ? UINT64_MAX : sched->now_ns;
    list_append(&sched->ready, &fiber->run_link);
    __atomic_store_n(&sched->ready_count, sched->ready_count + 1, __ATOMIC_RELAXED);
}

/* count_wait - see struct sched. A fiber is never ready before it last let the carrier go. */
static void count_wait(struct sched *sched, const struct fiber *fiber, uint64_t start_ns)
{
    uint64_t since_ns = fiber->ready_ns != UINT64_MAX ? fiber->ready_ns : sched->turn_ns;
    since_ns = since_ns > fiber->state_since_ns ? since_ns : fiber->state_since_ns;
    latency_record(&sched->ready_wait, start_ns > since_ns ? start_ns - since_ns : 0);
}

/* One fiber's turn, from sched->now_ns on, which is brought up to date at its end. */
static void run_one(struct sched *sched, struct fiber *fiber)
{
    uint64_t start_ns = sched->now_ns;
    must(fiber->state == FIBER_READY);
    fiber->state = FIBER_RUNNING;
    fiber->switches++;
    count_wait(sched, fiber, start_ns);
    fiber->parked_ns += start_ns - fiber->state_since_ns;
    fiber->state_since_ns = start_ns;
    __atomic_store_n(&sched->switches, sched->switches + 1, __ATOMIC_RELAXED);
    __atomic_store_n(&sched->ready_count, sched->ready_count - 1, __ATOMIC_RELAXED);
    sched->current = fiber;
    __atomic_store_n(&sched->run_fiber_id, fiber->id, __ATOMIC_RELAXED);
    __atomic_store_n(&sched->run_started_ns, start_ns, __ATOMIC_RELAXED);

    switch_to(&sched->loop, &fiber->context);

    sched->current = NULL;
    sched->now_ns = sched->setup.clock_ns();
    uint64_t run_ns = sched->now_ns - start_ns;
    if (unlikely(run_ns >= __atomic_load_n(&sched->held_after_ns, __ATOMIC_ACQUIRE))) {
        count_held(sched, fiber, run_ns);
    }
    if (sched->finished != NULL) {
        must(sched->finished == fiber);
        sched->finished = NULL;
        release(sched, fiber);
        return;
    }
    must(fiber->state != FIBER_RUNNING);
    fiber->run_ns += run_ns;
    fiber->state_since_ns = sched->now_ns;
}

void sched_deliver(struct sched *sched)
{
    struct task *newest = atomic_exchange_explicit(&sched->told, NULL, memory_order_acquire);
    struct task *oldest = NULL;
    while (newest != NULL) {
        struct task *next = newest->told_next;
        newest->told_next = oldest;
        oldest = newest;
        newest = next;
    }
    while (oldest != NULL) {
        struct task *next = oldest->told_next;
        task__deliver(oldest);
        oldest = next;
    }
}

void sched__tell(struct sched *sched, struct task *task)
{
    void (*nudge)(struct sched *) = sched->setup.nudge;
    must(nudge != NULL);
    struct task *head = atomic_load_explicit(&sched->told, memory_order_relaxed);
    do {
        task->told_next = head;
    } while (!atomic_compare_exchange_weak(&sched->told, &head, task));
    if (head == NULL) {
        nudge(sched); /* else the one before us has, and the loop has not come to it yet */
    }
}

void sched__hurry(struct sched *sched, struct fiber *fiber)
{
    if (sched->hurried < HURRY_MAX) {
        sched->hurried++;
        list_remove(&fiber->run_link);
        list_append(sched->ready.next, &fiber->run_link); /* before the first: at the front */
    }
}

/*
 * While one fiber runs, fetch the stack of the next, and its struct on the way.
 * With 10 000 fibers in turn a park then costs 47 ns instead of 66.
 */
static void prefetch_stack(const struct list *run_link)
{
    __builtin_prefetch(container_of(run_link, struct fiber, run_link)->context.stack_pointer);
}

size_t sched_run(struct sched *sched)
{
    must(sched == sched__of_thread && sched->current == NULL);
    if (list_empty(&sched->ready)) {
        return 0;
    }
    /* no fiber leaves the queue but here: this one ends what is ready now */
    const struct list *last = sched->ready.previous;
    const struct list *node;
    size_t ran = 0;
    sched->hurried = 0;
    sched->turn_ns = sched->now_ns;
    do {
        node = sched->ready.next;
        struct fiber *fiber = container_of(node, struct fiber, run_link);
        list_remove(&fiber->run_link);
        if (node != last) {
            prefetch_stack(sched->ready.next);
        }
        run_one(sched, fiber);
        ran++;
        if (unlikely(atomic_load_explicit(&sched->told, memory_order_relaxed) != NULL)) {
            sched_deliver(sched);
        }
    } while (node != last);
    __atomic_store_n(&sched->run_started_ns, 0, __ATOMIC_RELAXED);
    return ran;
}

size_t sched_expire(struct sched *sched, uint64_t now_ns)
{
    must(sched == sched__of_thread && sched->current == NULL);
    size_t woken = 0;
    sched_now(sched, now_ns);
    for (;;) {
        struct timer *timer = timer_wheel_take(&sched->timers, now_ns);
        if (timer == NULL) {
            return woken;
        }
        struct fiber *fiber = container_of(timer, struct fiber, timer);
        if (fiber->state != FIBER_PARKED || fiber->deadline_ns == 0) {
            continue; /* left armed by an earlier park, see fiber.c */
        }
        if (fiber->deadline_ns > now_ns) {
            timer_arm(&sched->timers, timer, fiber->deadline_ns);
            continue;
        }
        fiber__unpark(fiber, -ETIMEDOUT);
        woken++;
    }
}

/* When the fiber that is idle for longest shall be trimmed; TIMER_NEVER when none is idle. */
static uint64_t idle_due_ns(const struct sched *sched)
{
    if (list_empty(&sched->idle)) {
        return TIMER_NEVER;
    }
    const struct fiber *oldest = container_of(sched->idle.next, struct fiber, idle_link);
    uint64_t due_ns = oldest->idle_listed_ns + TIDY_AFTER_NS;
    return (due_ns + TIDY_STEP_NS - 1) / TIDY_STEP_NS * TIDY_STEP_NS;
}

/* Trim the fibers that have been idle for long enough, oldest first. */
static void trim_idle(struct sched *sched, uint64_t now_ns)
{
    for (unsigned i = 0; i < TIDY_BATCH && !list_empty(&sched->idle); i++) {
        struct fiber *fiber = container_of(sched->idle.next, struct fiber, idle_link);
        if (fiber->idle_listed_ns + TIDY_AFTER_NS > now_ns) {
            return;
        }
        list_remove(&fiber->idle_link);
        if (fiber->state != FIBER_PARKED || !fiber->resting) {
            continue; /* at work: it comes back when it rests again */
        }
        if (fiber->idle_since_ns + TIDY_AFTER_NS > now_ns) {
            fiber->idle_listed_ns = fiber->idle_since_ns; /* it has worked meanwhile */
            list_append(&sched->idle, &fiber->idle_link);
            continue;
        }
        stack_trim(&fiber->stack, switch_stack_pointer(&fiber->context));
    }
}

uint64_t sched_tidy(struct sched *sched, uint64_t now_ns)
{
    must(sched == sched__of_thread && sched->current == NULL);
    if (idle_due_ns(sched) <= now_ns) {
        trim_idle(sched, now_ns);
    }
    if (stack_pool_dirty(&sched->stacks) == 0) {
        sched->tidy_ns = 0;
    } else if (sched->tidy_ns == 0) {
        sched->tidy_ns = now_ns + TIDY_AFTER_NS;
    } else if (sched->tidy_ns <= now_ns && !stack_pool_trim(&sched->stacks, TIDY_BATCH)) {
        sched->tidy_ns = 0;
    }
    uint64_t idle_ns = idle_due_ns(sched);
    uint64_t free_ns = sched->tidy_ns == 0 ? TIMER_NEVER : sched->tidy_ns;
    return idle_ns < free_ns ? idle_ns : free_ns;
}
