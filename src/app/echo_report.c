/* SPDX-License-Identifier: Apache-2.0 */
/*
 * echo_report.c - GET /actuator/echo: how long connections of the echo profile
 * waited to be accepted, each listener by itself.
 */
#include <inttypes.h>

#include "app/app.h"
#include "app/echo.h"
#include "app/routes.h"
#include "ring/sys.h"

static struct slice describe(struct arena *arena, const struct echo *echo)
{
    const struct echo_wait *wait = &echo->wait;
    uint64_t average_ns = echo_wait_average_ns(wait);
    uint64_t max_ns = atomic_load(&wait->max_ns);

    return arena_printf(arena,
                        "{\"name\":\"%s\",\"port\":%u,\"threads\":\"%s\",\"connections\":%" PRIu64
                        ",\"live\":%u,\"averageMillis\":%.6f,\"maxMillis\":%.6f}",
                        echo->setup.name, echo->port, echo->setup.platform ? "platform" : "fibers",
                        (uint64_t)atomic_load(&wait->connections), atomic_load(echo->setup.live),
                        (double)average_ns / (double)NS_PER_MS, (double)max_ns / (double)NS_PER_MS);
}

void echo_report_handle(struct http_exchange *exchange)
{
    const struct app *app = exchange->context;
    struct slice listeners[APP_ECHOES_MAX] = {SLICE(""), SLICE("")};

    for (unsigned i = 0; i < app->echo_count; i++) {
        listeners[i] = describe(exchange->arena, app->echoes[i]);
    }
    struct slice body = arena_printf(
        exchange->arena, "{\"listeners\":[%.*s%s%.*s]}", (int)listeners[0].length, listeners[0].at,
        app->echo_count > 1 ? "," : "", (int)listeners[1].length, listeners[1].at);
    if (body.at == NULL || listeners[0].at == NULL || listeners[1].at == NULL) {
        http_respond_error(exchange, 503, SLICE("no memory for the answer"), sys_wall_ns());
        return;
    }
    http_respond_json(exchange, 200, body);
}
