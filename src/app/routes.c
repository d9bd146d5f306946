/* SPDX-License-Identifier: Apache-2.0 */
/*
 * routes.c - which path is whose.
 */
#include "app/routes.h"

#include "app/delay.h"
#include "app/fanout.h"
#include "app/product.h"

static const struct route app_routes[] = {
    {HTTP_GET, "/currentThread", current_thread_handle, ROUTE_QUICK, NULL},
    {HTTP_GET, "/blocking/{n}", blocking_handle, ROUTE_PARKS, delay_check},
    {HTTP_GET, "/computational", computational_handle, ROUTE_PARKS, NULL},
    {HTTP_GET, "/wait-blocking", wait_blocking_handle, ROUTE_PARKS | ROUTE_SHALLOW, NULL},
    {HTTP_GET, "/wait-async", wait_async_handle, ROUTE_PARKS | ROUTE_SHALLOW, NULL},
    {HTTP_GET, "/pinned", pinned_handle, ROUTE_PARKS, pinned_check},
    {HTTP_GET, "/actuator/pinned", pinned_report_handle, ROUTE_QUICK, NULL},
    {HTTP_GET, "/actuator/scheduler", scheduler_report_handle, ROUTE_QUICK, NULL},
    {HTTP_GET, "/actuator/echo", echo_report_handle, ROUTE_QUICK, NULL},
    {HTTP_GET, "/product/{id}", product_handle, ROUTE_PARKS, product_check},
    {HTTP_GET, "/v2/product/{id}", product_v2_handle, ROUTE_PARKS, product_v2_check},
    {HTTP_GET, "/fanout/{k}/{n}", fanout_handle, ROUTE_PARKS, fanout_check},
    {HTTP_GET, "/directory/{key}", directory_get_handle, ROUTE_PARKS, directory_key_check},
    {HTTP_PUT, "/directory/{key}", directory_put_handle, ROUTE_PARKS | ROUTE_BODY,
     directory_key_check},
    {HTTP_DELETE, "/directory/{key}", directory_delete_handle, ROUTE_PARKS, directory_key_check},
    {HTTP_GET, "/directory", directory_find_handle, ROUTE_PARKS, directory_find_check},
    {HTTP_GET, "/actuator/health", health_handle, ROUTE_QUICK, NULL},
    {HTTP_GET, "/actuator/health/liveness", health_liveness_handle, ROUTE_QUICK, NULL},
    {HTTP_GET, "/actuator/health/readiness", health_readiness_handle, ROUTE_QUICK, NULL},
};

static const struct route remote_routes[] = {
    {HTTP_GET, "/remote/{n}", remote_handle, ROUTE_PARKS | ROUTE_SHALLOW, delay_check},
    {HTTP_GET, "/productInfo/{id}", product_info_handle, ROUTE_PARKS, product_remote_check},
    {HTTP_GET, "/reviews/{id}", product_reviews_handle, ROUTE_PARKS, product_remote_check},
    {HTTP_GET, "/deliveryDetails/{id}", product_delivery_handle, ROUTE_PARKS, product_remote_check},
    {HTTP_GET, "/actuator/health", health_handle, ROUTE_QUICK, NULL},
    {HTTP_GET, "/actuator/health/liveness", health_liveness_handle, ROUTE_QUICK, NULL},
    {HTTP_GET, "/actuator/health/readiness", health_readiness_handle, ROUTE_QUICK, NULL},
};

const struct router routes_app = {.routes = app_routes,
                                  .count = sizeof(app_routes) / sizeof(app_routes[0])};

const struct router routes_remote = {.routes = remote_routes,
                                     .count = sizeof(remote_routes) / sizeof(remote_routes[0])};
