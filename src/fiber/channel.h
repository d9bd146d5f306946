/* SPDX-License-Identifier: Apache-2.0 */
/*
 * channel.h - a bounded queue of pointers, first in first out, whose senders wait
 * while it is full and whose receivers wait while it is empty, each in turn; for
 * fibers of any carrier and for platform threads.
 */
#ifndef FIBER_CHANNEL_H
#define FIBER_CHANNEL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/list.h"

struct channel {
    const char *name; /* static text, for dumps */
    size_t capacity;  /* items, at least 1 */
    void **items;     /* a ring */
    pthread_mutex_t guard;
    /* under it */
    size_t first, count;
    bool closed;
    struct list senders;   /* of tasks, oldest first; only while it is full */
    struct list receivers; /* only while it is empty */
};

/* channel_init - empty, with room for capacity items (at least 1). Returns 0; -ENOMEM. */
int channel_init(struct channel *channel, const char *name, size_t capacity) WARN_UNUSED;

/* channel_fini - must(nobody waits). Items that are left are the caller's to have received. */
void channel_fini(struct channel *channel);

/*
 * channel_send - put an item behind the others.
 *
 * @deadline_ns  CLOCK_MONOTONIC; 0 means none
 *
 * Returns  0; -EPIPE it is closed; -ETIMEDOUT; -ECANCELED: then the item is the caller's still
 * Parks    while it is full; on a platform thread it blocks that thread
 */
int channel_send(struct channel *channel, void *item, uint64_t deadline_ns) WARN_UNUSED;

/*
 * channel_receive - take the oldest item.
 *
 * Returns  0; -EPIPE it is closed, and empty; -ETIMEDOUT; -ECANCELED
 * Parks    while it is empty; on a platform thread it blocks that thread
 */
int channel_receive(struct channel *channel, void **item, uint64_t deadline_ns) WARN_UNUSED;

/*
 * channel_close - nothing more can be sent; what is in it can be received. Whoever
 * waits to send or to receive gets -EPIPE. Anybody, also twice; does not park.
 */
void channel_close(struct channel *channel);

#endif
