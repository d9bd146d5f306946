/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blocking.c - GET /blocking/{n}: call the remote, wait, pass its answer on.
 *
 * The handler that this program exists for: straight-line blocking code, the
 * same on a fiber and on a platform thread.
 */
#include <errno.h>
#include <string.h>

#include "app/app.h"
#include "app/delay.h"
#include "app/routes.h"
#include "base/must.h"
#include "base/time.h"
#include "http/client.h"
#include "ring/sys.h"

#define CONNECT_TIMEOUT_NS (2 * NS_PER_S)
#define ANSWER_PATIENCE_NS (5 * NS_PER_S) /* beyond the delay that was asked for */
#define REPLY_BODY_MAX ((uint64_t)1 << 20)

/* fail - the status that tells the client whose fault it was. */
static void fail(struct http_exchange *exchange, int error, const char *failure)
{
    int status = 502;
    const char *reason = failure;

    switch (error) {
    case -ETIMEDOUT:
        status = 504;
        reason = "the remote did not answer in time";
        break;
    case -EMFILE:
    case -ENFILE:
        status = 503;
        reason = "no file descriptor left for a connection to the remote";
        break;
    case -ENOMEM:
    case -ENOBUFS:
        status = 503;
        reason = "no memory for a call to the remote";
        break;
    case -EADDRNOTAVAIL:
        status = 503;
        reason = "no local port left for a connection to the remote";
        break;
    case -ENOENT:
    case -EAGAIN:
        reason = "the remote's name does not resolve";
        break;
    case -ECONNREFUSED:
        reason = "the remote refused the connection";
        break;
    case -ECONNRESET:
    case -EPIPE:
        reason = "the remote closed the connection before it answered";
        break;
    default:
        if (reason == NULL) {
            reason = strerrordesc_np(-error);
        }
    }
    http_respond_error(exchange, status, slice_of(reason), sys_wall_ns());
}

void blocking_handle(struct http_exchange *exchange)
{
    struct app *app = exchange->context;
    struct slice n = exchange->params[0];
    uint64_t delay_ns;

    int result = delay_parse(n, &delay_ns);
    must(result == 0); /* delay_check has seen it */
    struct http_call call = {
        .path = arena_printf(exchange->arena, "/remote/%.*s", (int)n.length, n.at),
        .connect_timeout_ns = CONNECT_TIMEOUT_NS,
        .answer_timeout_ns = delay_ns + ANSWER_PATIENCE_NS,
        .body_bytes_max = REPLY_BODY_MAX,
        .arena = exchange->arena,
    };
    result = call.path.at != NULL ? client_get(app->remote, &call) : -ENOMEM;
    if (result == -ECANCELED) {
        return; /* our own client reset: nobody reads an answer */
    }
    if (result < 0) {
        fail(exchange, result, call.failure);
        return;
    }
    if (call.reply.status != 200) {
        struct slice message =
            arena_printf(exchange->arena, "the remote answered with status %d", call.reply.status);
        /* A remote without room is not broken: its client is told the same as ours. */
        int status = call.reply.status == 503 ? 503 : 502;
        http_respond_error(exchange, status, message.at != NULL ? message : SLICE(""),
                           sys_wall_ns());
        return;
    }
    http_respond_text(exchange, call.reply.body);
}
