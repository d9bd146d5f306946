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
#include "base/latency.h"
#include "base/list.h"
#include "fiber/stack.h"
#include "fiber/switch.h"
#include "fiber/timer.h"

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

/* sched_held - a fiber has let the carrier go (parked, or ended) that it held for so long; on the loop's stack. */
typedef void sched_held(struct sched *sched, const struct fiber *fiber, uint64_t held_ns);

struct sched {
    /* set once */
    struct sched_setup setup;
    /* scheduling */
    struct switch_context loop; /* the thread's own context */
    struct fiber *current;
    struct fiber *finished; /* its stack goes back once the loop stands on its own */
    struct list ready;      /* the run queue, first in first out */
    bool kernel_entered;    /* now_ns is from before the loop has slept, perhaps; see ready_wait */
    unsigned hurried;       /* fibers that went to its front in this turn */
    struct list live;       /* every fiber, oldest first */
    struct list idle;       /* parked idle and not yet trimmed, oldest first */
    struct timer_wheel timers;
    struct stack_pool stacks;
    uint64_t now_ns;  /* the clock as of the last switch or sched_expire */
    uint64_t turn_ns; /* the clock when sched_run began */
    uint64_t tidy_ns; /* when free stacks are trimmed next; 0: there was nothing to trim */
    /* figures */
    size_t live_count;
    uint64_t spawned;
    /* read by other threads (atomic, relaxed) */
    uint64_t switches;
    uint64_t ready_count;    /* fibers in the run queue */
    uint64_t run_started_ns; /* 0: no fiber on the carrier */
    uint64_t run_fiber_id;
    uint64_t held_count; /* runs of held_after_ns or longer */
    /*
     * How long fibers that were ready waited for the carrier. Costs no read of the clock,
     * so it takes what was read before: a fiber woken by another one counts from the
     * start of that one's run (too long, by less than that run), one woken by a
     * completion from the clock behind the reaping (too short, by that). One that yielded
     * counts from its yield.
     */
    struct latency ready_wait;
    struct latency lateness; /* of fiber_sleep_until: when it went on, less its deadline */
    /* set by sched_watch, from another thread */
    uint64_t held_after_ns;
    sched_held *held;
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

/*
 * sched_entered - the loop has been in the kernel, and sched->now_ns is old until it
 * says what the clock reads (sched_now, sched_expire).
 */
static inline void sched_entered(struct sched *sched)
{
    sched->kernel_entered = true;
}
static inline void sched_now(struct sched *sched, uint64_t now_ns)
{
    sched->now_ns = now_ns;
    sched->kernel_entered = false;
}

/* sched_watch - any thread: have held called from now on; UINT64_MAX: not any more. */
void sched_watch(struct sched *sched, uint64_t held_after_ns, sched_held *held);

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
 * sched__ready - into the run queue.
 * sched__hurry - a fiber that has just been made ready runs next: it owns a lock
 * that others wait for. So many times a turn, so that two that hand a lock to and
 * fro do not keep the loop from the kernel.
 */
void sched__tell(struct sched *sched, struct task *task);
void sched__ready(struct sched *sched, struct fiber *fiber);
void sched__hurry(struct sched *sched, struct fiber *fiber);

#endif
