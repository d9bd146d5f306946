/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pinned.c - GET /pinned?lock=carrier|fiber&ms=1000: ten counters, each of which one
 * child locks, sleeps for ms, counts and unlocks. With ringspun.demo.pinned only.
 *
 *   {"lock":"carrier","ms":1000,"total":10,"elapsed":10.004,"held":10}
 *
 * carrier: a lock and a sleep of the C library block the carrier, so that the ten take
 * ten times ms, and all others on it wait too. fiber: a fiber's lock and sleep park,
 * and the ten sleep at the same time. On platform threads nothing is pinned by either.
 * This is the only handler that blocks a carrier, and it does so on purpose.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>

#include "app/app.h"
#include "app/query.h"
#include "app/routes.h"
#include "base/must.h"
#include "base/time.h"
#include "fiber/fiber.h"
#include "fiber/mutex.h"
#include "fiber/scope.h"
#include "fiber/task.h"
#include "io/sleep.h"
#include "ring/sys.h"

#define COUNTERS 10
#define MS_MAX 1000

/* Requests in work; each costs ten fibers or threads for a second, or for ten. */
#define RUNS_MAX 100

/* A counter with a lock of each kind, and the child that counts. */
struct counter {
    struct scope_child child;
    struct pinned *pinned;
    unsigned number;
    pthread_mutex_t blocking;
    struct mutex parking;
    unsigned value; /* under the lock that the request names */
};

/* One request in work; in its arena. */
struct pinned {
    bool by_carrier; /* lock=carrier */
    uint64_t ms;
    unsigned counted; /* of lock=carrier on fibers: whose turn it is; all on one carrier */
    struct counter counters[COUNTERS];
};

/* parse - false when the query has no such lock, or absurd milliseconds. */
static bool parse(struct slice query, bool *by_carrier, uint64_t *ms)
{
    struct slice lock, text;
    *ms = MS_MAX;
    if (!query_find(query, SLICE("lock"), &lock) ||
        (query_find(query, SLICE("ms"), &text) && (slice_to_u64(text, ms) < 0 || *ms > MS_MAX))) {
        return false;
    }
    *by_carrier = slice_equal(lock, SLICE("carrier"));
    return *by_carrier || slice_equal(lock, SLICE("fiber"));
}

bool pinned_check(struct http_exchange *exchange)
{
    const struct app *app = exchange->context;
    bool by_carrier;
    uint64_t ms;
    if (!app->demo_pinned) {
        http_respond_error(exchange, 404, SLICE(""), sys_wall_ns());
        return false;
    }
    if (!parse(exchange->request->query, &by_carrier, &ms)) {
        http_respond_error(exchange, 400, SLICE("lock is carrier or fiber, ms is 0 to 1000"),
                           sys_wall_ns());
        return false;
    }
    return true;
}

/*
 * await_turn - the children of a carrier's lock go one by one, and the loop turns twice
 * between two of them: at the end of the first turn it learns that the client has reset,
 * and in the second the request's own fiber, which queues behind this one, cancels all
 * that are left.
 */
static bool await_turn(const struct counter *counter)
{
    if (fiber_current() == NULL) {
        return !task_cancelled();
    }
    while (counter->pinned->counted < counter->number && !task_cancelled()) {
        fiber_yield();
    }
    fiber_yield();
    fiber_yield();
    return !task_cancelled();
}

static int count_blocking(void *argument)
{
    struct counter *counter = argument;
    if (!await_turn(counter)) {
        return -ECANCELED;
    }
    pthread_mutex_lock(&counter->blocking);
    sys_sleep_until(sys_clock_ns() + counter->pinned->ms * NS_PER_MS); /* pins the carrier */
    counter->value++;
    pthread_mutex_unlock(&counter->blocking);
    if (fiber_current() != NULL) {
        counter->pinned->counted++;
    }
    return 0;
}

static int count_parking(void *argument)
{
    struct counter *counter = argument;
    int result = mutex_lock(&counter->parking);
    if (result < 0) {
        return result;
    }
    result = sleep_for(counter->pinned->ms * NS_PER_MS);
    counter->value += result == 0;
    mutex_unlock(&counter->parking);
    return result;
}

/* run_scope - a child for each counter, and wait for all. Returns 0; -errno, none runs any more. */
static int run_scope(struct pinned *pinned)
{
    struct scope scope;
    int result = 0;
    scope_open(&scope, "pinned-", SCOPE_FAIL_FAST);
    for (unsigned i = 0; i < COUNTERS && result == 0; i++) {
        struct counter *counter = &pinned->counters[i];
        counter->pinned = pinned;
        counter->number = i;
        pthread_mutex_init(&counter->blocking, NULL);
        mutex_init(&counter->parking, "counter");
        result = scope_fork(&scope, &counter->child,
                            pinned->by_carrier ? count_blocking : count_parking, counter);
    }
    if (result == 0) {
        result = scope_join(&scope);
    }
    scope_close(&scope);
    return result;
}

/* held_count - how often the carrier that this runs on was held for too long; 0 on a thread. */
static uint64_t held_count(void)
{
    const struct sched *sched = sched_current();
    return sched != NULL ? sched->held_count : 0;
}

static void respond(struct http_exchange *exchange, const struct pinned *pinned, uint64_t held,
                    uint64_t took_ns)
{
    unsigned total = 0;
    for (unsigned i = 0; i < COUNTERS; i++) {
        total += pinned->counters[i].value;
    }
    uint64_t took_ms = took_ns / NS_PER_MS;
    struct slice body =
        arena_printf(exchange->arena,
                     "{\"lock\":\"%s\",\"ms\":%" PRIu64 ",\"total\":%u,\"elapsed\":%" PRIu64
                     ".%03" PRIu64 ",\"held\":%" PRIu64 "}",
                     pinned->by_carrier ? "carrier" : "fiber", pinned->ms, total, took_ms / 1000,
                     took_ms % 1000, held);
    if (body.at == NULL) {
        http_respond_error(exchange, 503, SLICE("no memory for the answer"), sys_wall_ns());
        return;
    }
    http_respond_json(exchange, 200, body);
}

static void run(struct http_exchange *exchange, bool by_carrier, uint64_t ms)
{
    uint64_t held = held_count(), began_ns = sys_clock_ns();
    struct pinned *pinned = arena_alloc(exchange->arena, sizeof(*pinned));
    if (pinned == NULL) {
        http_respond_error(exchange, 503, SLICE("no memory for the counters"), sys_wall_ns());
        return;
    }
    memset(pinned, 0, sizeof(*pinned));
    pinned->by_carrier = by_carrier;
    pinned->ms = ms;
    int result = run_scope(pinned);
    if (result == 0) {
        respond(exchange, pinned, held_count() - held, sys_clock_ns() - began_ns);
    } else if (result != -ECANCELED) { /* else our own client reset: nobody reads it */
        http_respond_error(exchange, 503, SLICE("no fiber or thread for a counter"), sys_wall_ns());
    }
}

void pinned_handle(struct http_exchange *exchange)
{
    struct app *app = exchange->context;
    bool by_carrier;
    uint64_t ms;
    must(parse(exchange->request->query, &by_carrier, &ms)); /* pinned_check has seen it */

    bool pins = by_carrier && fiber_current() != NULL;
    if (atomic_fetch_add(&app->pinned_runs, 1) >= RUNS_MAX) {
        http_respond_error(exchange, 503, SLICE("at most 100 of these at the same time"),
                           sys_wall_ns());
    } else if (pins && atomic_exchange(&app->pins_carrier, true)) {
        http_respond_error(exchange, 503, SLICE("a carrier is pinned already: one at a time"),
                           sys_wall_ns());
    } else {
        run(exchange, by_carrier, ms);
        if (pins) {
            atomic_store(&app->pins_carrier, false);
        }
    }
    atomic_fetch_sub(&app->pinned_runs, 1);
}
