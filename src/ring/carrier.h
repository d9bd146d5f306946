/* SPDX-License-Identifier: Apache-2.0 */
/*
 * carrier.h - one OS thread with one ring, one scheduler and one inbox: the loop.
 *
 *   turn: run ready fibers -> inbox -> what completions deferred -> enter the
 *         kernel (submit, wait only when nothing is ready) -> reap: completions
 *         wake fibers -> due timers -> ...
 *
 * Hop of the data path: the carrier runs the fiber, outside the reap loop. The
 * kernel is entered on each turn, ready fibers or not: with DEFER_TASKRUN nothing
 * else brings completions, and a busy fiber would starve everyone's I/O.
 */
#ifndef RING_CARRIER_H
#define RING_CARRIER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/list.h"
#include "base/time.h"
#include "fiber/fiber.h"
#include "ring/op.h"
#include "ring/ring.h"

/* Something for a carrier to run between fibers. Embedded in a struct of the sender's. */
struct message {
    struct message *next; /* the inbox's, until it runs */
    void (*run)(
        struct message *
            message); /* on the carrier's thread, in the loop: must not park; may free the message */
};

/*
 * Something to be run on the own carrier behind the reaping of this turn. Embedded, its node
 * initialised; who ends before it has run takes it off the list with list_remove.
 *
 * What is armed anew from within a completion may complete at once, and where the completion
 * queue is in overflow that goes on for ever: see conn.c.
 */
struct deferred {
    struct list node;
    void (*run)(struct deferred *deferred); /* in the loop: must not park; must not defer */
};

/* What others see of a carrier's sleep: whether it is to be woken by event_fd. */
enum carrier_sleep {
    CARRIER_AWAKE,
    CARRIER_SLEEPS,
    CARRIER_SLEEPS_FOR_GOOD /* nothing but a message ends it; only where stuck.h watches */
};

/* Whether carrier_join waits, or need not any more. */
enum carrier_joining { CARRIER_RUNS, CARRIER_IS_JOINED, CARRIER_HAS_ENDED };

struct carrier_setup {
    unsigned number; /* from 0 */
    size_t stack_bytes;
    bool force_mprotect;    /* guard stacks the old way (tests) */
    struct ring_setup ring; /* zeroes: the defaults */
};

struct carrier {
    /* set once */
    struct carrier_setup setup;
    pthread_t thread;
    int thread_id; /* of the OS */
    char name[16]; /* "carrier-0" */
    /* the thread's own */
    struct ring ring;
    struct ops ops;
    struct sched sched;
    struct op *event_op; /* the read of event_fd that ends a sleep */
    uint64_t event_count;
    uint64_t tidy_at_ns;
    char date[TIME_HTTP_SIZE]; /* see carrier_date */
    uint64_t date_until_ns;
    uint64_t wall_offset_ns; /* wall clock minus monotonic clock, as of the date */
    uint64_t turns;          /* read by other threads (atomic, relaxed) */
    bool stopping;
    struct message stop; /* carrier_stop's */
    struct message told; /* has sched_deliver called */
    struct list deferred;
    /* reached from other threads */
    _Alignas(64) _Atomic(struct message *) inbox; /* newest first */
    atomic_uint sleeping;                         /* enum carrier_sleep, announced */
    atomic_uint joining;                          /* enum carrier_joining */
    atomic_bool nudged;                           /* told is in the inbox */
    int event_fd;
    atomic_uint connections; /* live connections served here, for the balance */
};

/*
 * carrier_start - run a carrier on a thread of its own; waits until its ring is up.
 *
 * Returns  0; what ring_init and sched_init return; -EAGAIN no thread
 * Owner    the struct is the caller's and must stay where it is until carrier_free
 */
int carrier_start(struct carrier *carrier, const struct carrier_setup *setup) WARN_UNUSED;

/* carrier_stop - any thread, once: the loop ends when no fiber lives any more. */
void carrier_stop(struct carrier *carrier);

/* carrier_join - wait for the loop's end; blocks the calling OS thread. */
void carrier_join(struct carrier *carrier);

/*
 * carrier_free - close what other threads may reach: once every thread that
 * posts to the carrier has ended, the other carriers and the pools included.
 */
void carrier_free(struct carrier *carrier);

/* carrier_post - any thread: have message run on the carrier. The sender keeps the memory alive until then. */
void carrier_post(struct carrier *carrier, struct message *message);

/* carrier_defer - from a completion, on its own carrier: have deferred run in the next turn, before the ring is entered. */
void carrier_defer(struct carrier *carrier, struct deferred *deferred);

/* carrier_current - the carrier of the calling thread, NULL on any other thread. */
struct carrier *carrier_current(void);

/* carrier_date - the Date of now, TIME_HTTP_SIZE - 1 characters; formatted once a second. */
const char *carrier_date(struct carrier *carrier);

/* carrier_wall_ns - nanoseconds since 1970 as of the last switch; reads the clock once a second. */
uint64_t carrier_wall_ns(struct carrier *carrier);

/* The loop in parts, for threads that drive it themselves (tests, simulation). */
int carrier_init(struct carrier *carrier, const struct carrier_setup *setup) WARN_UNUSED;
void carrier_turn(struct carrier *carrier);
bool carrier_done(const struct carrier *carrier);
void carrier_fini(struct carrier *carrier);

#endif
