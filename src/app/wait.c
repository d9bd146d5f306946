/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wait.c - GET /wait-blocking and /wait-async: 100 ms pass, on a thread or on none.
 *
 * The same wait twice. /wait-blocking is a handler like any other, so that on a
 * platform server it holds one of the pool's threads. /wait-async gives the thread
 * back at once, and the connection's fiber waits: Spring's DeferredResult.
 */
#include "app/routes.h"
#include "base/time.h"
#include "io/sleep.h"

#define WAIT_NS (100 * NS_PER_MS)

void wait_blocking_handle(struct http_exchange *exchange)
{
    if (sleep_for(WAIT_NS) < 0) {
        return; /* the client reset: nobody reads an answer */
    }
    http_respond_text(exchange, SLICE("Hello, World"));
}

void wait_async_handle(struct http_exchange *exchange)
{
    exchange->later = wait_blocking_handle;
}
