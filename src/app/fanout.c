/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fanout.c - GET /fanout/{k}/{n}: k calls of /remote/{n} side by side.
 *
 *   {"count":100,"succeeded":100,"failed":0,"slowest":1.003,"sum":100.174,"total":1.004}
 *
 * slowest is the longest call, sum all of them together, total what the whole took, in
 * seconds. Each call fails for itself: it is counted, and the others go on. Only when
 * none succeeds is the answer that of the first failure.
 *
 * One small request costs the server k fibers or threads and 2 k descriptors, for as long
 * as n: the calls of all requests together are bounded, and one that would pass the bound
 * is a 503 at once.
 */
#include "app/fanout.h"

#include <errno.h>
#include <inttypes.h>

#include "app/app.h"
#include "app/call.h"
#include "app/delay.h"
#include "app/routes.h"
#include "base/must.h"
#include "base/time.h"
#include "fiber/fiber.h"
#include "fiber/scope.h"
#include "fiber/task.h"
#include "ring/sys.h"

/* Forked without letting others run: each takes some ten microseconds. */
#define FORKS_PER_TURN 16

#define BRANCH_BYTES_MAX ((size_t)4 * 1024 * 1024)

/* One call, and the child that makes it. */
struct branch {
    struct scope_child child;
    struct fanout *fanout;
    bool succeeded;
    uint64_t took_ns;
    int status; /* of the failure */
};

/* One request in work; in its arena, where the children reach it. */
struct fanout {
    struct app *app;
    struct slice n; /* as it was asked */
    uint64_t delay_ns;
    size_t count;
    struct branch branches[];
};

bool fanout_check(struct http_exchange *exchange)
{
    uint64_t count;
    if (slice_to_u64(exchange->params[0], &count) < 0 || count == 0 || count > FANOUT_CALLS_MAX) {
        http_respond_error(exchange, 400, SLICE("the number of calls is 1 to 1000"), sys_wall_ns());
        return false;
    }
    return delay_check_text(exchange, exchange->params[1]);
}

static int run_branch(void *argument)
{
    struct branch *branch = argument;
    const struct fanout *fanout = branch->fanout;
    struct arena arena; /* its own: on a platform server the branches are threads */
    struct call_failure failure;
    uint64_t began_ns = sys_clock_ns();

    call_arena(&arena, BRANCH_BYTES_MAX);
    struct http_call call = {
        .path = arena_printf(&arena, "/remote/%.*s", (int)fanout->n.length, fanout->n.at),
        .arena = &arena,
    };
    int result = call_remote(fanout->app, &call, fanout->delay_ns, &failure);
    branch->took_ns = sys_clock_ns() - began_ns;
    branch->succeeded = result == 0;
    branch->status = failure.status;
    arena_reset(&arena);
    return result;
}

static void respond(struct http_exchange *exchange, const struct fanout *fanout, uint64_t total_ns)
{
    uint64_t succeeded = 0, slowest_ns = 0, sum_ns = 0;
    int status = 503; /* without a failure of the remote: no fiber or thread */
    for (size_t i = 0; i < fanout->count; i++) {
        const struct branch *branch = &fanout->branches[i];
        succeeded += branch->succeeded;
        sum_ns += branch->took_ns;
        slowest_ns = branch->took_ns > slowest_ns ? branch->took_ns : slowest_ns;
        status = branch->status != 0 ? branch->status : status;
    }
    if (succeeded == 0) {
        http_respond_error(exchange, status, SLICE("none of the calls succeeded"), sys_wall_ns());
        return;
    }
    uint64_t slowest_ms = slowest_ns / NS_PER_MS, sum_ms = sum_ns / NS_PER_MS;
    uint64_t total_ms = total_ns / NS_PER_MS;
    struct slice body = arena_printf(
        exchange->arena,
        "{\"count\":%zu,\"succeeded\":%" PRIu64 ",\"failed\":%" PRIu64 ",\"slowest\":%" PRIu64
        ".%03" PRIu64 ",\"sum\":%" PRIu64 ".%03" PRIu64 ",\"total\":%" PRIu64 ".%03" PRIu64 "}",
        fanout->count, succeeded, fanout->count - succeeded, slowest_ms / 1000, slowest_ms % 1000,
        sum_ms / 1000, sum_ms % 1000, total_ms / 1000, total_ms % 1000);
    if (body.at == NULL) {
        http_respond_error(exchange, 503, SLICE("no memory for the answer"), sys_wall_ns());
        return;
    }
    http_respond_json(exchange, 200, body);
}

/* places_take - room for the calls of one more request, or a 503. */
static bool places_take(struct http_exchange *exchange, struct app *app, unsigned count)
{
    unsigned others = atomic_load(&app->fanout_calls);
    do {
        if (count > app->fanout_calls_max || others > app->fanout_calls_max - count) {
            struct slice message = arena_printf(
                exchange->arena, "no room for %u more calls: at most %u of all fan-outs together",
                count, app->fanout_calls_max);
            http_respond_error(exchange, 503, message.at != NULL ? message : SLICE(""),
                               sys_wall_ns());
            return false;
        }
    } while (!atomic_compare_exchange_weak(&app->fanout_calls, &others, others + count));
    return true;
}

/* run_scope - fork a child a call and wait for all. Returns what the join does. */
static int run_scope(struct fanout *fanout)
{
    struct scope scope;
    int forked = 0;
    scope_open(&scope, "fanout-", SCOPE_EACH);
    for (size_t i = 0; i < fanout->count && forked == 0 && !task_cancelled(); i++) {
        struct branch *branch = &fanout->branches[i];
        branch->fanout = fanout;
        forked = scope_fork(&scope, &branch->child, run_branch, branch);
        if (i % FORKS_PER_TURN == FORKS_PER_TURN - 1 && fiber_current() != NULL) {
            fiber_yield();
        }
    }
    /* What could not be forked has failed, for itself as well. */
    int joined = scope_join(&scope);
    scope_close(&scope);
    return joined;
}

void fanout_handle(struct http_exchange *exchange)
{
    struct app *app = exchange->context;
    uint64_t count, delay_ns, began_ns = sys_clock_ns();
    must(slice_to_u64(exchange->params[0], &count) == 0); /* fanout_check has seen them */
    must(delay_parse(exchange->params[1], &delay_ns) == 0);
    if (!places_take(exchange, app, (unsigned)count)) {
        return;
    }
    size_t bytes = sizeof(struct fanout) + count * sizeof(struct branch);
    struct fanout *fanout = arena_alloc(exchange->arena, bytes);
    int joined = 0;
    if (fanout == NULL) {
        http_respond_error(exchange, 503, SLICE("no memory for the calls"), sys_wall_ns());
    } else {
        memset(fanout, 0, bytes);
        fanout->app = app;
        fanout->n = exchange->params[1];
        fanout->delay_ns = delay_ns;
        fanout->count = count;
        joined = run_scope(fanout);
    }
    atomic_fetch_sub(&app->fanout_calls, (unsigned)count);
    if (fanout != NULL && joined != -ECANCELED) { /* else our own client reset: nobody reads it */
        respond(exchange, fanout, sys_clock_ns() - began_ns);
    }
}
