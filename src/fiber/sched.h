/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sched.h - the fibers of one carrier, and what its loop does with them.
 *
 * A turn of the loop:
 *
 *   reap completions (fiber_wake) -> sched_expire -> sched_run -> sched_tidy
 *        ^                                                            |
 *        +--- wait, at most until timer_wheel_next(&sched->timers) ---+
 *             and what sched_tidy returned; not at all while ready
 *
 * One thread owns a scheduler; the fields named so may be read by others.
 */
#ifndef FIBER_SCHED_H
#define FIBER_SCHED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/list.h"
#include "fiber/stack.h"
#include "fiber/switch.h"
#include "fiber/timer.h"

#define SCHED_LATENESS_BUCKETS 24

struct fiber;
struct sched;
struct task;

/* What the carrier gives its scheduler. */
struct sched_setup {
    unsigned number;     /* of the carrier, from 0 */
    size_t stack_bytes;  /* of each fiber */
    bool force_mprotect; /* see stack_pool_init */
    uint64_t (*clock_ns)(void);
    /* called on a foreign thread to have fiber woken on its own; NULL where there is one thread */
    void (*wake_remote)(struct sched *sched, struct fiber *fiber);
    /* called on a foreign thread: have the loop call sched_deliver soon; as above */
    void (*nudge)(struct sched *sched);
};

struct sched {
    /* set once */
    struct sched_setup setup;
    /* scheduling */
    struct switch_context loop; /* the thread's own context */
    struct fiber *current;
    struct fiber *finished; /* its stack goes back once the loop stands on its own */
    struct list ready;      /* the run queue, first in first out */
    unsigned hurried;       /* fibers that went to its front in this turn */
    struct list live;       /* every fiber, oldest first */
    struct list idle;       /* parked idle and not yet trimmed, oldest first */
    struct timer_wheel timers;
    struct stack_pool stacks;
    uint64_t now_ns;  /* the clock as of the last switch or sched_expire */
    uint64_t tidy_ns; /* when free stacks are trimmed next; 0: there was nothing to trim */
    /* figures */
    size_t live_count;
    uint64_t spawned;
    uint64_t switches;
    /* how late fiber_sleep_until resumed: [0] below 1 µs, [n] below 2^n µs, the last one all the rest */
    uint64_t lateness_us_log2[SCHED_LATENESS_BUCKETS];
    /* read by the monitor thread (atomic, relaxed) */
    uint64_t run_started_ns; /* 0: no fiber on the carrier */
    uint64_t run_fiber_id;
    /* pushed to by foreign threads: fibers' tasks that were told, newest first */
    _Atomic(struct task *) told;
};

/*
 * sched_init - on the thread that will run it; one a thread.
 *
 * Returns  0; -EINVAL stack_bytes does not serve (stack_pool_init)
 */
int sched_init(struct sched *sched, const struct sched_setup *setup) WARN_UNUSED;

/* sched_fini - must(no live fiber). */
void sched_fini(struct sched *sched);

/*
 * sched_run - run every fiber that is ready now, once each.
 *
 * Fibers woken meanwhile wait for the next call, so that the loop can reap
 * between. Reads the clock at each one's end; the first begins when sched_expire said.
 *
 * Returns  how many ran
 */
size_t sched_run(struct sched *sched);

/*
 * sched_expire - wake the fibers whose deadline is due at now_ns; sets
 * sched->now_ns. Returns how many.
 */
size_t sched_expire(struct sched *sched, uint64_t now_ns);

/*
 * sched_tidy - give back stack pages: of fibers idle for over a second, and of
 * free stacks. Bounded work a call, and next to none when nothing is due: the
 * loop calls it on each turn.
 *
 * Returns  when to call again, CLOCK_MONOTONIC ns (now_ns or earlier: there is
 *          more to do at once); TIMER_NEVER when there is nothing to do
 */
uint64_t sched_tidy(struct sched *sched, uint64_t now_ns);

/*
 * sched_deliver - wake the fibers whose tasks foreign threads have told, in that
 * order. The loop's, after a nudge; sched_run does it between fibers as well.
 */
void sched_deliver(struct sched *sched);

/* sched_current - the scheduler of the calling thread, NULL on any other thread. */
extern _Thread_local struct sched *sched__of_thread;
static inline struct sched *sched_current(void)
{
    return sched__of_thread;
}

/*
 * sched_dump - one line for each fiber, oldest first, without line ends:
 *
 *   Fiber[#61,http-8080-conn-12]/parked(recv)@carrier-1 for 1500 ms, stack 64 KiB, 17 switches
 *
 * @line  takes a line, which lives during the call; it must not park, spawn or
 *        end a fiber
 *
 * Streams: nothing is allocated, however many there are.
 */
void sched_dump(struct sched *sched, void (*line)(void *sink, const char *text, size_t length),
                void *sink);

/*
 * Shared inside fiber/.
 *
 * sched__tell - from a foreign thread: the task's carrier shall deliver.
 * sched__hurry - a fiber that has just been made ready runs next: it owns a lock
 * that others wait for. So many times a turn, so that two that hand a lock to and
 * fro do not keep the loop from the kernel.
 */
void sched__tell(struct sched *sched, struct task *task);
void sched__hurry(struct sched *sched, struct fiber *fiber);

#endif
