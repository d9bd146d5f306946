/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blocking.c - GET /blocking/{n}: call the remote, wait, pass its answer on.
 *
 * The handler that this program exists for: straight-line blocking code, the
 * same on a fiber and on a platform thread.
 */
#include <errno.h>

#include "app/app.h"
#include "app/call.h"
#include "app/delay.h"
#include "app/routes.h"
#include "base/must.h"
#include "ring/sys.h"

void blocking_handle(struct http_exchange *exchange)
{
    struct app *app = exchange->context;
    struct slice n = exchange->params[0];
    uint64_t delay_ns;

    int result = delay_parse(n, &delay_ns);
    must(result == 0); /* delay_check has seen it */
    struct http_call call = {
        .path = arena_printf(exchange->arena, "/remote/%.*s", (int)n.length, n.at),
        .arena = exchange->arena,
    };
    struct call_failure failure;
    result = call_remote(app, &call, delay_ns, &failure);
    if (result == -ECANCELED) {
        return; /* our own client reset: nobody reads an answer */
    }
    if (result < 0) {
        http_respond_error(exchange, failure.status, failure.message, sys_wall_ns());
        return;
    }
    http_respond_text(exchange, call.reply.body);
}
