/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mutex.h - a lock, and a condition to wait for under it, for fibers of any carrier
 * and for platform threads.
 *
 *   word:  0 free  |  its owner (struct task)  |  its owner + 1: somebody waits
 *
 * Without a waiter both lock and unlock are one compare-and-swap. With waiters the
 * unlock hands the lock to the one that has waited longest: nobody overtakes a
 * waiter, so none starves. The new owner goes to the front of its carrier's run
 * queue, since all the others wait for it. Whoever finds a lock held by another
 * thread, and nobody waiting, looks for some microseconds before it queues: a
 * fiber seldom holds a lock for longer, and a park costs both more than that.
 *
 * A wait that would close a cycle of owners is refused: -EDEADLK, and the log
 * names the owners and locks of the cycle.
 */
#ifndef FIBER_MUTEX_H
#define FIBER_MUTEX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/list.h"

struct sched;

struct mutex {
    atomic_uintptr_t word;
    _Atomic(const struct sched *) sched; /* its owner's, a hint; NULL: a platform thread's */
    const char *name;                    /* static text, for dumps and the log */
    struct list waiters;                 /* of tasks, oldest first */
};

struct condition {
    struct mutex *mutex; /* the one that is held */
    struct list waiters;
};

/* mutex_init - free. name outlives it. */
void mutex_init(struct mutex *mutex, const char *name);

/* mutex_fini - must(nobody holds it or waits for it). */
void mutex_fini(struct mutex *mutex);

/*
 * mutex_lock - wait until it is the caller's.
 *
 * @deadline_ns  CLOCK_MONOTONIC; 0 means none. A free lock is taken also after it
 *
 * Returns  0; -ETIMEDOUT; -ECANCELED; -EDEADLK the wait would never end (the caller's
 *          own lock included)
 * Parks    when another one has it; on a platform thread it blocks that thread
 */
int mutex_lock(struct mutex *mutex) WARN_UNUSED;
int mutex_lock_until(struct mutex *mutex, uint64_t deadline_ns) WARN_UNUSED;

/* mutex_try_lock - take it if it is free. */
bool mutex_try_lock(struct mutex *mutex) WARN_UNUSED;

/* mutex_unlock - must(the caller holds it). Does not park. */
void mutex_unlock(struct mutex *mutex);

/* mutex_is_mine - does the calling fiber or thread hold it? */
bool mutex_is_mine(struct mutex *mutex);

/* condition_init - mutex is the one that all its waiters hold. */
void condition_init(struct condition *condition, struct mutex *mutex);

/* condition_fini - must(nobody waits). */
void condition_fini(struct condition *condition);

/*
 * condition_wait - let the mutex go, wait for a signal, and hold the mutex again:
 * whatever it returns. There are no spurious wake-ups; what was signalled may have been
 * changed by others that held the mutex meanwhile.
 *
 * Returns  0 signalled; -ETIMEDOUT; -ECANCELED
 * Parks    yes
 */
int condition_wait(struct condition *condition, uint64_t deadline_ns) WARN_UNUSED;

/*
 * condition_signal - the one that waits longest goes on, once it has the mutex, for
 * which it queues like others. condition_broadcast: all of them. The caller holds the mutex.
 */
void condition_signal(struct condition *condition);
void condition_broadcast(struct condition *condition);

#endif
