/* SPDX-License-Identifier: Apache-2.0 */
/*
 * channel.c - see channel.h. A sender hands its item straight to a receiver that
 * waits; a receiver that makes room puts the item of the oldest waiting sender in.
 */
#include "fiber/channel.h"

#include <errno.h>
#include <stdlib.h>

#include "base/must.h"
#include "fiber/fiber.h"

int channel_init(struct channel *channel, const char *name, size_t capacity)
{
    must(capacity > 0);
    *channel = (struct channel){
        .name = name, .capacity = capacity, .guard = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP};
    channel->items = calloc(capacity, sizeof(*channel->items));
    if (channel->items == NULL) {
        return -ENOMEM;
    }
    list_init(&channel->senders);
    list_init(&channel->receivers);
    return 0;
}

void channel_fini(struct channel *channel)
{
    /* Whoever came last may not have let go of the guard yet. */
    pthread_mutex_lock(&channel->guard);
    must(list_empty(&channel->senders) && list_empty(&channel->receivers) &&
         "a channel is destroyed while others wait for it");
    pthread_mutex_unlock(&channel->guard);
    pthread_mutex_destroy(&channel->guard);
    free(channel->items);
}

static void put(struct channel *channel, void *item)
{
    must(channel->count < channel->capacity);
    channel->items[(channel->first + channel->count++) % channel->capacity] = item;
}

static void *take(struct channel *channel)
{
    void *item = channel->items[channel->first];
    channel->first = (channel->first + 1) % channel->capacity;
    channel->count--;
    return item;
}

/* leave - let the guard go and tell the one that was chosen, if any. */
static void leave(struct channel *channel, struct task *chosen)
{
    pthread_mutex_unlock(&channel->guard);
    if (chosen != NULL) {
        task__tell(chosen);
    }
}

/* wait_in - in one of the two queues, guard held. Returns 0; -EPIPE closed meanwhile; what task__wait does. */
static int wait_in(struct channel *channel, struct list *queue, uint64_t deadline_ns)
{
    struct task *self = task__self();
    struct task_wait wait = {.guard = &channel->guard,
                             .queue = queue,
                             .waiting_for = channel->name,
                             .deadline_ns = deadline_ns};
    int result = task__wait(self, &wait);
    if (result != 0) {
        pthread_mutex_unlock(&channel->guard);
        return result;
    }
    return self->refused ? -EPIPE : 0;
}

int channel_send(struct channel *channel, void *item, uint64_t deadline_ns)
{
    pthread_mutex_lock(&channel->guard);
    if (channel->closed) {
        leave(channel, NULL);
        return -EPIPE;
    }
    struct task *receiver = task__choose(&channel->receivers);
    if (receiver != NULL) {
        receiver->item = item;
        leave(channel, receiver);
        return 0;
    }
    if (channel->count < channel->capacity) {
        put(channel, item);
        leave(channel, NULL);
        return 0;
    }
    task__self()->item = item;
    return wait_in(channel, &channel->senders, deadline_ns);
}

int channel_receive(struct channel *channel, void **item, uint64_t deadline_ns)
{
    pthread_mutex_lock(&channel->guard);
    if (channel->count > 0) {
        *item = take(channel);
        struct task *sender = task__choose(&channel->senders);
        if (sender != NULL) {
            put(channel, sender->item);
        }
        leave(channel, sender);
        return 0;
    }
    if (channel->closed) {
        leave(channel, NULL);
        return -EPIPE;
    }
    int result = wait_in(channel, &channel->receivers, deadline_ns);
    if (result == 0) {
        *item = task__self()->item;
    }
    return result;
}

void channel_close(struct channel *channel)
{
    struct task *waiting = NULL;
    struct task *next;
    pthread_mutex_lock(&channel->guard);
    channel->closed = true;
    while ((next = task__choose(&channel->senders)) != NULL ||
           (next = task__choose(&channel->receivers)) != NULL) {
        next->refused = true;
        next->told_next = waiting;
        waiting = next;
    }
    pthread_mutex_unlock(&channel->guard);
    while (waiting != NULL) {
        next = waiting->told_next; /* once told it may be gone */
        task__tell(waiting);
        waiting = next;
    }
}
