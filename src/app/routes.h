/* SPDX-License-Identifier: Apache-2.0 */
/*
 * routes.h - the route tables, and the handlers that they name.
 *
 * Every handler is written as if it might block: on a fiber its calls park, on a
 * platform thread they block. The context of each is a struct app.
 */
#ifndef APP_ROUTES_H
#define APP_ROUTES_H

#include "http/router.h"

extern const struct router routes_app;    /* server.port, loomylin.port.* */
extern const struct router routes_remote; /* remote.port */

http_handler current_thread_handle;   /* current_thread.c */
http_handler blocking_handle;         /* blocking.c */
http_handler computational_handle;    /* computational.c */
http_handler wait_blocking_handle;    /* wait.c */
http_handler wait_async_handle;       /* wait.c */
http_handler echo_report_handle;      /* echo_report.c */
http_handler pinned_handle;           /* pinned.c */
http_handler pinned_report_handle;    /* pinned_report.c */
http_handler scheduler_report_handle; /* scheduler_report.c */
http_handler product_handle;          /* product.c */
http_handler product_v2_handle;       /* product.c */
http_handler fanout_handle;           /* fanout.c */
http_handler directory_get_handle;    /* directory_routes.c */
http_handler directory_put_handle;    /* directory_routes.c */
http_handler directory_delete_handle; /* directory_routes.c */
http_handler directory_find_handle;   /* directory_routes.c */
http_handler remote_handle;           /* remote.c */
http_handler product_info_handle;     /* product_remote.c */
http_handler product_reviews_handle;  /* product_remote.c */
http_handler product_delivery_handle; /* product_remote.c */
http_handler health_handle;           /* health.c */
http_handler health_liveness_handle;  /* health.c */
http_handler health_readiness_handle; /* health.c */

/* directory_key_check, directory_find_check - 400 for a key, an attribute that cannot be. */
bool directory_key_check(struct http_exchange *exchange);
bool directory_find_check(struct http_exchange *exchange);

/* pinned_check - a 404 without ringspun.demo.pinned; a 400 for another lock or absurd milliseconds. */
bool pinned_check(struct http_exchange *exchange) WARN_UNUSED;

#endif
