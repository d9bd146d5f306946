/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client_pool.h - keep-alive connections to one remote.
 *
 * A connection belongs to the carrier it was opened on, so each carrier has a
 * lane of idle ones, and the platform threads share one more. The bound counts
 * over all lanes: idle, busy and being opened.
 *
 *   take: idle one in my lane -> it
 *         below the bound     -> open one
 *         else                -> queue; an idle one of another lane is closed for it
 *   put:  somebody waits in my lane -> hand it over; in another -> close it, that one opens
 *         nobody waits              -> idle, newest first; closed after 30 s
 */
#ifndef HTTP_CLIENT_POOL_H
#define HTTP_CLIENT_POOL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/list.h"
#include "base/slice.h"
#include "io/conn.h"
#include "io/resolve.h"
#include "ring/carrier.h"

struct client_pool;
struct fiber;
struct pool;

struct client_pool_setup {
    const char *url; /* "http://host[:port][/path]" */
    unsigned bound;  /* connections; 0: no bound */
    struct pool *offload;
    struct carrier *carriers;
    unsigned carrier_count;
};

#define CLIENT_PATH_MAX 255 /* bytes of a path in the URL */

/* One connection, from malloc; in a lane's list or in the hands of one call. */
struct upstream {
    struct conn conn;
    struct client_pool *pool;
    struct client_lane *lane;
    struct list link; /* client_lane.idle */
    uint64_t idle_since_ns;
    unsigned generation; /* client_pool.generation when it was opened */
    bool reused;         /* it has served a call before */
};

struct client_lane {
    struct client_pool *pool;
    struct carrier *carrier; /* of its fibers; NULL: the platform threads' lane */
    struct carrier *sweeps;  /* where its sweeper runs */
    struct list idle;        /* under the pool's mutex; newest first */
    unsigned idle_count;
    unsigned evict; /* idle ones to be closed for a waiter of another lane, or for clients */
    struct fiber *
        sweeper; /* closes what is dead, too old or to be evicted; lives while there are idle ones */
    bool closing;         /* under the mutex: nothing is kept any more */
    bool nudged;          /* under the mutex: nudge is on its way */
    struct message nudge; /* starts or wakes the sweeper */
};

struct client_pool {
    /* set once */
    struct client_pool_setup setup;
    char host[RESOLVE_HOST_MAX + 1]; /* without brackets */
    uint16_t port;
    char authority[RESOLVE_HOST_MAX + 16]; /* value of Host */
    char path[CLIENT_PATH_MAX + 1];        /* goes before each call's own path */
    /* under mutex */
    pthread_mutex_t mutex;
    unsigned open;                   /* idle, busy, and places for those being opened */
    struct list waiters;             /* oldest first */
    struct resolve_result addresses; /* what worked last; count 0: ask the resolver */
    struct client_lane *lanes;       /* one a carrier, then the platform threads' */
    /* Counts the times that the remote's host was found gone: older connections lead nowhere. */
    atomic_uint generation;
};

/*
 * client_pool_init - parse the URL; connects to nothing.
 *
 * Returns  0; -EINVAL not such a URL; -ENOMEM
 */
int client_pool_init(struct client_pool *pool, const struct client_pool_setup *setup) WARN_UNUSED;

/*
 * client_pool_trim - descriptors are needed elsewhere: have all idle connections closed. Any
 * thread; does not park. Returns true when there are any, or some that are not closed yet.
 */
bool client_pool_trim(struct client_pool *pool);

/* client_pool_close - any thread, once, when no call is in work: close all idle connections. */
void client_pool_close(struct client_pool *pool);

/* client_pool_fini - after the carriers have ended. */
void client_pool_fini(struct client_pool *pool);

/*
 * client_pool_take - an idle connection or a new one; waits for a place when there is a bound.
 *
 * Returns  0; what connecting or resolving returned; -ECANCELED; -ENOMEM
 * Parks    yes
 */
int client_pool_take(struct client_pool *pool, uint64_t connect_timeout_ns,
                     struct upstream **taken) WARN_UNUSED;

/* client_pool_renew - replace a stale connection by a fresh one in the same place. On failure it is gone. */
int client_pool_renew(struct upstream *upstream, uint64_t connect_timeout_ns) WARN_UNUSED;

/* client_pool_put - the call is over; keep it for the next one if reusable. Parks when it closes. */
void client_pool_put(struct upstream *upstream, bool reusable);

/* client_pool_abort - the call failed half way: reset the connection. Parks. */
void client_pool_abort(struct upstream *upstream);

#endif
