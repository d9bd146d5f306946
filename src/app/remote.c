/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remote.c - GET /remote/{n}: the slow service that /blocking/{n} calls.
 */
#include "app/app.h"
#include "app/delay.h"
#include "app/routes.h"
#include "base/log.h"
#include "base/must.h"
#include "io/sleep.h"
#include "ring/sys.h"

void remote_handle(struct http_exchange *exchange)
{
    struct app *app = exchange->context;
    struct slice n = exchange->params[0];
    uint64_t asked_ns =
        sys_clock_ns(); /* the delay counts from the request, not from our work on it */
    uint64_t delay_ns;

    int result = delay_parse(n, &delay_ns);
    must(result == 0); /* delay_check has seen it */
    uint64_t count =
        atomic_fetch_add_explicit(&app->remote_invocations, 1, memory_order_relaxed) + 1;
    log_debug("app.remote", "invokeCount : %llu", (unsigned long long)count);
    if (sleep_until(asked_ns + delay_ns) < 0) {
        return; /* the client reset: nobody reads an answer */
    }
    /* no printf, whose frames would fault in a second page for each of many that wake at once */
    const struct slice parts[] = {SLICE("Hello, delayed by "), n, SLICE(" seconds.")};
    struct slice body = arena_join(exchange->arena, parts, sizeof(parts) / sizeof(parts[0]));
    if (body.at == NULL) {
        http_respond_error(exchange, 503, SLICE("no memory for the answer"), sys_wall_ns());
        return;
    }
    http_respond_text(exchange, body);
}
