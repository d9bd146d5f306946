/* SPDX-License-Identifier: Apache-2.0 */
/*
 * task.h - who waits for somebody else, or owns something: a fiber or a platform thread.
 *
 *   WAITS (queued, under a guard) --chosen: taken off the queue--> TOLD
 *     |                                          by its own carrier's loop, or by futex
 *     +-- deadline, cancel: takes the guard and itself off the queue, or finds
 *         that it has been chosen, and then sees the wake through
 *
 * A task waits for one thing at a time, so one node each is enough; it lies in
 * struct fiber, or in memory of the thread, and not among the parked frames.
 * Whoever has told a task must not touch it again: it may have gone on and ended.
 *
 * A platform thread waits on a futex of its own, a word that nobody else waits on:
 * told with one system call, none when it does not sleep yet. A cancel must end
 * that wait and one in ppoll(2), so it rings the word and sends TASK_WAKE_SIGNAL,
 * which threads keep blocked everywhere but in ppoll.
 */
#ifndef FIBER_TASK_H
#define FIBER_TASK_H

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/list.h"

struct fiber;
struct mutex;
struct sched;
struct scope;

#define TASK_WAKE_SIGNAL SIGURG

/* Room for what task_describe writes, with its NUL. */
#define TASK_DESCRIBE_SIZE 160

enum task_state {
    TASK_WAITS = 1,
    TASK_WAITS_FOR_GOOD, /* a platform thread, without a deadline; only where able.h watches */
    TASK_NUDGED,
    TASK_TOLD
};

struct task {
    /* set once */
    struct fiber *fiber; /* NULL: a platform thread */
    const char *name;    /* of a platform thread, its own memory */
    pthread_t thread;    /* of a platform thread */
    bool counted;        /* a platform thread's: it runs a job or child that able.h counts */
    /* its own */
    unsigned held;       /* mutexes that it owns */
    struct scope *scope; /* the innermost that it has opened */
    /* under the guard of what it waits for */
    struct list link;    /* that one's queue; empty: in none */
    struct mutex *wants; /* whose queue, if it is a mutex's */
    void *item;          /* what a channel hands over */
    bool first;          /* it owns a lock when it is told: before others that are ready */
    bool refused;        /* the channel was closed meanwhile */
    /* the waker's, from then on the own carrier's */
    struct task *told_next; /* sched->told */
    /* reached from everywhere */
    atomic_uint state;     /* enum task_state; the futex of a platform thread */
    atomic_bool cancelled; /* a platform thread's; a fiber has its own flag */
};

/* task_init - of a fiber that is being spawned. */
void task_init(struct task *task, struct fiber *fiber);

/*
 * task_end - what ends holds no lock and has no open scope: else neither could
 * ever be given back.
 */
void task_end(const struct task *task);

/* task_current - the calling fiber's or platform thread's own. must(not in a carrier's loop). */
struct task *task_current(void);

/* task_cancelled - has the calling fiber or platform thread been cancelled? */
bool task_cancelled(void);

/*
 * task_cancel_thread - a platform thread's wait in work, and all later ones, return
 * -ECANCELED. The caller sees to it that the thread lives.
 */
void task_cancel_thread(struct task *task);

/* task_uncancel_thread - the calling platform thread may wait again. */
void task_uncancel_thread(struct task *task);

/* task_describe - "Fiber[#61,worker-2]", "Thread[http-8080-exec-1]": what never changes, from any thread. */
size_t task_describe(const struct task *task, char *dst, size_t size);

/*
 * Shared inside fiber/.
 *
 * task__wait - queue and wait until told.
 *
 * @guard        held on entry; protects the queue
 * @queue        appended to
 * @waiting_for  static text for dumps
 *
 * Returns  0 told, guard not held any more; -ETIMEDOUT, -ECANCELED taken off the
 *          queue, guard held
 * Parks    yes
 */
struct task_wait {
    pthread_mutex_t *guard;
    struct list *queue;
    const char *waiting_for;
    uint64_t deadline_ns; /* CLOCK_MONOTONIC; 0: none */
};
int task__wait(struct task *self, const struct task_wait *wait) WARN_UNUSED;

/* task__wait_through - after task__wait failed: queue again, and ignore cancels. guard held on entry, not on return. */
void task__wait_through(struct task *self, const struct task_wait *wait);

/* task__choose - the oldest of a queue, taken off it; NULL when it is empty. Guard held. */
struct task *task__choose(struct list *queue);

/* task__tell - end the wait of a task that has been chosen. Any thread, with or without the guard. */
void task__tell(struct task *task);

/* task__deliver - the part of task__tell that the task's own carrier does. */
void task__deliver(struct task *task);

#endif
