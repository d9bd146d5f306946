/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client_pool.c - take, wait, put back, sweep. Called by client.c; client_connect.c opens.
 */
#include "http/client_pool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/must.h"
#include "fiber/fiber.h"
#include "fiber/semaphore.h"
#include "http/client_connect.h"
#include "ring/sys.h"

#define IDLE_MAX_NS (30 * NS_PER_S)
#define SWEEP_INTERVAL_NS (5 * NS_PER_S)

/* A call that found no place; from malloc, since another thread reaches it. */
struct waiter {
    struct list link; /* client_pool.waiters */
    struct client_lane *lane;
    struct semaphore grant; /* one permit, when it is granted */
    /* under the pool's mutex */
    bool granted;           /* taken off the list: there is a place, or a connection */
    struct upstream *given; /* a connection of the same lane; NULL: open one */
};

static struct client_lane *own_lane(struct client_pool *pool)
{
    unsigned index = pool->setup.carrier_count;
    if (fiber_current() != NULL) {
        index = carrier_current()->setup.number;
    }
    return &pool->lanes[index];
}

/* grant - under the mutex: the oldest waiter gets a connection, or the place of one. */
static void grant(struct client_pool *pool, struct upstream *given)
{
    struct waiter *waiter = container_of(pool->waiters.next, struct waiter, link);
    list_remove(&waiter->link);
    waiter->granted = true;
    waiter->given = given;
    semaphore_give(&waiter->grant);
}

/* place_free - a place became free: the oldest waiter's, or nobody's. */
static void place_free(struct client_pool *pool)
{
    pthread_mutex_lock(&pool->mutex);
    if (list_empty(&pool->waiters)) {
        must(pool->open > 0);
        pool->open--;
    } else {
        grant(pool, NULL);
    }
    pthread_mutex_unlock(&pool->mutex);
}

/* idle_pop - under the mutex: the newest idle connection of a lane, or NULL. */
static struct upstream *idle_pop(struct client_lane *lane)
{
    if (list_empty(&lane->idle)) {
        return NULL;
    }
    struct upstream *upstream = container_of(lane->idle.next, struct upstream, link);
    list_remove(&upstream->link);
    lane->idle_count--;
    return upstream;
}

static void nudge(struct client_lane *lane)
{
    if (!lane->nudged) {
        lane->nudged = true;
        carrier_post(lane->sweeps, &lane->nudge);
    }
}

/*
 * make_room - under the mutex, a call is about to wait: have an idle connection
 * of another lane closed. Returns one of the platform threads', which anyone may close.
 */
static struct upstream *make_room(struct client_pool *pool)
{
    struct client_lane *platform = &pool->lanes[pool->setup.carrier_count];
    struct upstream *upstream = idle_pop(platform);
    for (unsigned i = 0; upstream == NULL && i < pool->setup.carrier_count; i++) {
        struct client_lane *lane = &pool->lanes[i];
        if (lane->idle_count > lane->evict) {
            lane->evict++;
            nudge(lane);
            break;
        }
    }
    return upstream;
}

static struct waiter *waiter_new(struct client_lane *lane)
{
    struct waiter *waiter = calloc(1, sizeof(*waiter));
    if (waiter != NULL) {
        list_init(&waiter->link);
        waiter->lane = lane;
        semaphore_init(&waiter->grant, "remote pool", 0);
    }
    return waiter;
}

/* wait_grant - queued already: wait until there is a place. Returns 0; -ECANCELED. */
static int wait_grant(struct client_pool *pool, struct waiter *waiter)
{
    int result = semaphore_take(&waiter->grant, 0);
    if (result < 0) {
        pthread_mutex_lock(&pool->mutex);
        if (waiter->granted) {
            result = 0; /* in the same moment: the place is ours to use or to give back */
        } else {
            list_remove(&waiter->link);
        }
        pthread_mutex_unlock(&pool->mutex);
    }
    return result;
}

/*
 * take_place - an idle connection, or leave to open one.
 *
 * Returns  0, *taken NULL when a place was taken to open one; -ECANCELED; -ENOMEM
 */
static int take_place(struct client_pool *pool, struct upstream **taken)
{
    struct client_lane *lane = own_lane(pool);
    struct waiter *waiter = NULL;
    struct upstream *unwanted = NULL;

    *taken = NULL;
    pthread_mutex_lock(&pool->mutex);
    if (list_empty(&pool->waiters)) {
        *taken = idle_pop(lane);
        if (*taken != NULL || pool->setup.bound == 0 || pool->open < pool->setup.bound) {
            pool->open += *taken == NULL;
            pthread_mutex_unlock(&pool->mutex);
            return 0;
        }
    }
    waiter = waiter_new(lane);
    if (waiter != NULL) {
        list_append(&pool->waiters, &waiter->link);
        unwanted = make_room(pool);
    }
    pthread_mutex_unlock(&pool->mutex);
    if (waiter == NULL) {
        return -ENOMEM;
    }
    if (unwanted != NULL) {
        conn_close(&unwanted->conn);
        free(unwanted);
        place_free(pool);
    }
    int result = wait_grant(pool, waiter);
    *taken = waiter->given;
    semaphore_fini(&waiter->grant);
    free(waiter);
    return result;
}

/* discard - close and forget; its place is not given back. */
static void discard(struct upstream *upstream, bool reset)
{
    if (reset) {
        conn_abort(&upstream->conn);
    } else {
        conn_close(&upstream->conn);
    }
    free(upstream);
}

int client_pool_take(struct client_pool *pool, uint64_t connect_timeout_ns, struct upstream **taken)
{
    for (;;) {
        int result = take_place(pool, taken);
        if (result < 0) {
            return result;
        }
        if (*taken == NULL) {
            break;
        }
        /* Bytes that nobody asked for would be taken for the answer to this call: ask the kernel too. */
        if ((*taken)->generation == atomic_load(&pool->generation) &&
            !conn_is_dead(&(*taken)->conn) && !conn_has_pending(&(*taken)->conn)) {
            return 0;
        }
        discard(*taken, false);
        place_free(pool);
    }
    struct upstream *upstream = calloc(1, sizeof(*upstream));
    int result = upstream == NULL ? -ENOMEM : 0;
    if (result == 0) {
        list_init(&upstream->link);
        upstream->pool = pool;
        upstream->lane = own_lane(pool);
        result = client_connect(pool, &upstream->conn, connect_timeout_ns);
    }
    if (result == -EMFILE || result == -ENFILE) {
        (void)client_pool_trim(pool); /* another lane's may be in the next call's way */
    }
    if (result < 0) {
        free(upstream);
        place_free(pool);
        return result;
    }
    upstream->generation = atomic_load(&pool->generation);
    *taken = upstream;
    return 0;
}

int client_pool_renew(struct upstream *upstream, uint64_t connect_timeout_ns)
{
    struct client_pool *pool = upstream->pool;
    conn_close(&upstream->conn);
    int result = client_connect(pool, &upstream->conn, connect_timeout_ns);
    if (result < 0) {
        free(upstream);
        place_free(pool);
        return result;
    }
    upstream->generation = atomic_load(&pool->generation);
    upstream->reused = false;
    return 0;
}

/* sweep_one - under the mutex: an idle connection of the lane that is to be closed, or NULL. */
static struct upstream *sweep_one(struct client_lane *lane, uint64_t now_ns)
{
    for (struct list *at = lane->idle.previous; at != &lane->idle; at = at->previous) {
        struct upstream *upstream = container_of(at, struct upstream, link);
        bool evict = lane->evict > 0;
        if (evict || lane->closing || conn_is_dead(&upstream->conn) ||
            now_ns - upstream->idle_since_ns >= IDLE_MAX_NS) {
            lane->evict -= evict;
            lane->idle_count--;
            list_remove(&upstream->link);
            return upstream;
        }
    }
    lane->evict = 0; /* what was to be evicted has been taken by a call meanwhile */
    return NULL;
}

static void sweeper_run(void *argument)
{
    struct client_lane *lane = argument;
    struct client_pool *pool = lane->pool;
    for (;;) {
        uint64_t now_ns = sys_clock_ns();
        pthread_mutex_lock(&pool->mutex);
        struct upstream *upstream = sweep_one(lane, now_ns);
        bool empty = list_empty(&lane->idle);
        if (upstream == NULL && empty) {
            lane->sweeper = NULL;
        }
        pthread_mutex_unlock(&pool->mutex);
        if (upstream != NULL) {
            discard(upstream, false);
            place_free(pool);
        } else if (empty) {
            return;
        } else {
            (void)fiber_park("sweep", now_ns + SWEEP_INTERVAL_NS);
        }
    }
}

static void run_nudge(struct message *message)
{
    struct client_lane *lane = container_of(message, struct client_lane, nudge);
    pthread_mutex_lock(&lane->pool->mutex);
    lane->nudged = false;
    if (lane->sweeper != NULL) {
        fiber_wake(lane->sweeper);
    } else if (!list_empty(&lane->idle)) {
        /* Without memory for it they stay until the next nudge. */
        lane->sweeper =
            fiber_spawn(&lane->sweeps->sched, (struct fiber_name){.prefix = "remote-sweeper"},
                        sweeper_run, lane);
    }
    pthread_mutex_unlock(&lane->pool->mutex);
}

/* keep - under the mutex: put it on its lane's idle list. False when the pool is closing. */
static bool keep(struct upstream *upstream)
{
    struct client_lane *lane = upstream->lane;
    if (lane->closing) {
        return false;
    }
    upstream->idle_since_ns = sys_clock_ns();
    /* Newest first: the head is the warmest, and the tail ages. */
    list_append(lane->idle.next, &upstream->link);
    lane->idle_count++;
    if (lane->sweeper == NULL) {
        nudge(lane);
    }
    return true;
}

void client_pool_put(struct upstream *upstream, bool reusable)
{
    struct client_pool *pool = upstream->pool;
    bool kept = false;

    upstream->reused = true;
    if (reusable && !conn_is_dead(&upstream->conn)) {
        pthread_mutex_lock(&pool->mutex);
        if (list_empty(&pool->waiters)) {
            kept = keep(upstream);
        } else {
            struct waiter *oldest = container_of(pool->waiters.next, struct waiter, link);
            kept = oldest->lane == upstream->lane;
            if (kept) {
                grant(pool, upstream);
            }
        }
        pthread_mutex_unlock(&pool->mutex);
    }
    if (!kept) {
        discard(upstream, false);
        place_free(pool);
    }
}

void client_pool_abort(struct upstream *upstream)
{
    struct client_pool *pool = upstream->pool;
    discard(upstream, true);
    place_free(pool);
}

bool client_pool_trim(struct client_pool *pool)
{
    bool any = false;
    pthread_mutex_lock(&pool->mutex);
    for (unsigned i = 0; i <= pool->setup.carrier_count; i++) {
        struct client_lane *lane = &pool->lanes[i];
        if (lane->idle_count > 0) {
            any = true;
            lane->evict = lane->idle_count;
            nudge(lane);
        }
    }
    pthread_mutex_unlock(&pool->mutex);
    return any;
}

void client_pool_close(struct client_pool *pool)
{
    pthread_mutex_lock(&pool->mutex);
    for (unsigned i = 0; i <= pool->setup.carrier_count; i++) {
        pool->lanes[i].closing = true;
        nudge(&pool->lanes[i]);
    }
    pthread_mutex_unlock(&pool->mutex);
}

int client_pool_init(struct client_pool *pool, const struct client_pool_setup *setup)
{
    memset(pool, 0, sizeof(*pool));
    pool->setup = *setup;
    int result = client_set_url(pool, setup->url);
    if (result < 0) {
        return result;
    }
    pool->lanes = calloc(setup->carrier_count + 1, sizeof(*pool->lanes));
    if (pool->lanes == NULL) {
        return -ENOMEM;
    }
    pthread_mutex_init(&pool->mutex, NULL);
    list_init(&pool->waiters);
    for (unsigned i = 0; i <= setup->carrier_count; i++) {
        struct client_lane *lane = &pool->lanes[i];
        lane->pool = pool;
        lane->carrier = i < setup->carrier_count ? &setup->carriers[i] : NULL;
        lane->sweeps = &setup->carriers[i < setup->carrier_count ? i : 0];
        lane->nudge.run = run_nudge;
        list_init(&lane->idle);
    }
    return 0;
}

void client_pool_fini(struct client_pool *pool)
{
    must(pool->open == 0 && list_empty(&pool->waiters));
    free(pool->lanes);
    pthread_mutex_destroy(&pool->mutex);
}
