/* SPDX-License-Identifier: Apache-2.0 */
/*
 * semaphore.h - so many permits, given out in the order in which they are asked for;
 * for fibers of any carrier and for platform threads.
 */
#ifndef FIBER_SEMAPHORE_H
#define FIBER_SEMAPHORE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/list.h"

struct semaphore {
    const char *name; /* static text, for dumps */
    pthread_mutex_t guard;
    /* under it */
    uint64_t permits;    /* above 0 only while nobody waits */
    struct list waiters; /* of tasks, oldest first */
};

/* semaphore_init - with so many permits. name outlives it. */
void semaphore_init(struct semaphore *semaphore, const char *name, uint64_t permits);

/* semaphore_fini - must(nobody waits). */
void semaphore_fini(struct semaphore *semaphore);

/*
 * semaphore_take - one permit.
 *
 * @deadline_ns  CLOCK_MONOTONIC; 0 means none. A permit that is there is taken also after it
 *
 * Returns  0; -ETIMEDOUT; -ECANCELED
 * Parks    when there is none; on a platform thread it blocks that thread
 */
int semaphore_take(struct semaphore *semaphore, uint64_t deadline_ns) WARN_UNUSED;

/* semaphore_try_take - a permit if one is there. Does not park. */
bool semaphore_try_take(struct semaphore *semaphore) WARN_UNUSED;

/* semaphore_give - one permit more: to the one that waits longest, if somebody does. Anybody; does not park. */
void semaphore_give(struct semaphore *semaphore);

#endif
