/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server.h - one port: its listener, its sessions and, where the policy says so,
 * its platform threads.
 */
#ifndef APP_SERVER_H
#define APP_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "app/app.h"
#include "app/config.h"
#include "app/echo.h"
#include "base/attr.h"
#include "http/service.h"
#include "io/listener.h"
#include "io/pool.h"

/* When a server is drained: the remote serves until nobody in front of it calls any more. */
enum server_place { SERVER_FRONT, SERVER_REMOTE };

struct server_setup {
    enum server_place place;
    const char *name;            /* "http": of its log lines, fibers and threads */
    const char *announce;        /* "ringspun": what the log says has started */
    uint16_t port;               /* 0: a free one */
    int inherited;               /* see listener_setup */
    unsigned threads;            /* platform threads that run the handlers; 0: fibers do */
    unsigned connections_max;    /* of this port alone */
    const struct router *router; /* NULL: not HTTP but the echo profile's */
    bool greets;                 /* then: greets and closes, else echoes */
    struct connection_limit *limits[LISTENER_LIMITS - 1]; /* that it shares with others */
    struct carrier *carriers;
    unsigned carrier_count;
    const struct config *config;
    struct app *app;
};

struct server {
    struct server_setup setup;
    struct service service; /* with a router */
    struct echo echo;       /* without */
    struct listener listener;
    struct pool pool;
    struct connection_limit limit; /* its own share; .live counts its connections */
};

/*
 * server_open - bind the port; nothing is accepted before server_start.
 *
 * Returns  0; what listener_open returns; -ENOMEM
 */
int server_open(struct server *server, const struct server_setup *setup) WARN_UNUSED;

/* server_start - accept, and log the line that says so. */
void server_start(struct server *server);

/* server_drain - serve what waits, close what is idle; server_is_drained tells when all is done. */
void server_drain(struct server *server);
bool server_is_drained(struct server *server);

/* server_close - after the drain (or before the start), when the carriers have ended: end the platform threads, free everything. */
void server_close(struct server *server);

#endif
