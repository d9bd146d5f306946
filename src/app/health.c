/* SPDX-License-Identifier: Apache-2.0 */
/*
 * health.c - GET /actuator/health, and /liveness and /readiness below it.
 *
 * Liveness is UP for as long as the process answers; the others say
 * OUT_OF_SERVICE from SIGTERM on, so that a load balancer turns away.
 */
#include "app/app.h"
#include "app/routes.h"

static void respond(struct http_exchange *exchange, bool up)
{
    if (up) {
        http_respond_json(exchange, 200, SLICE("{\"status\":\"UP\"}"));
    } else {
        http_respond_json(exchange, 503, SLICE("{\"status\":\"OUT_OF_SERVICE\"}"));
    }
}

static bool is_ready(const struct http_exchange *exchange)
{
    struct app *app = exchange->context;
    return atomic_load_explicit(&app->life, memory_order_relaxed) == LIFE_UP;
}

void health_handle(struct http_exchange *exchange)
{
    respond(exchange, is_ready(exchange));
}

void health_liveness_handle(struct http_exchange *exchange)
{
    respond(exchange, true);
}

void health_readiness_handle(struct http_exchange *exchange)
{
    respond(exchange, is_ready(exchange));
}
