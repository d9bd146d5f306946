/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call.c - see call.h. Called by blocking.c, product.c and fanout.c.
 */
#include "app/call.h"

#include <errno.h>
#include <string.h>

#include "app/app.h"
#include "base/time.h"
#include "fiber/fiber.h"

#define CONNECT_TIMEOUT_NS (2 * NS_PER_S)
#define ANSWER_PATIENCE_NS (5 * NS_PER_S) /* beyond the delay that was asked for */
#define REPLY_BODY_MAX ((uint64_t)1 << 20)

static void fail(struct call_failure *failure, int error, const char *why)
{
    int status = 502;
    const char *reason = why;

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
    *failure =
        (struct call_failure){.status = status, .message = slice_of(reason != NULL ? reason : "")};
}

void call_arena(struct arena *arena, size_t bytes_max)
{
    if (fiber_current() != NULL) {
        fiber_populate(fiber_current());
    }
    arena_init(arena, NULL, 0, bytes_max);
}

void call_fail(struct call_failure *failure, int error)
{
    fail(failure, error, NULL);
}

int call_remote(struct app *app, struct http_call *call, uint64_t delay_ns,
                struct call_failure *failure)
{
    call->connect_timeout_ns = CONNECT_TIMEOUT_NS;
    call->answer_timeout_ns = delay_ns + ANSWER_PATIENCE_NS;
    call->body_bytes_max = REPLY_BODY_MAX;
    *failure = (struct call_failure){.status = 0};
    int result = call->path.at != NULL ? client_get(app->remote, call) : -ENOMEM;
    if (result == -ECANCELED) {
        return result;
    }
    if (result < 0) {
        fail(failure, result, call->failure);
        return result;
    }
    if (call->reply.status != 200) {
        struct slice message =
            arena_printf(call->arena, "the remote answered with status %d", call->reply.status);
        /* A remote without room is not broken: its client is told the same as ours. */
        failure->status = call->reply.status == 503 ? 503 : 502;
        failure->message = message.at != NULL ? message : SLICE("");
        return -EREMOTEIO;
    }
    return 0;
}
