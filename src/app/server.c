/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server.c - put listener, sessions and thread policy of one port together.
 *
 * Called by servers.c for each port that is configured.
 */
#include "app/server.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "ring/sys.h"

static void wake_main(void *context)
{
    struct app *app = context;
    sys_eventfd_signal(app->wake_fd);
}

static void on_listener_closed(struct listener *listener)
{
    wake_main(container_of(listener, struct server, listener)->setup.app);
}

/* Connections to the remote that wait for a call may go before a client is refused. */
static bool on_shortage(struct listener *listener)
{
    return client_pool_trim(container_of(listener, struct server, listener)->setup.app->remote);
}

/* open_http - what answers the connections: sessions, and the pool that runs their handlers. */
static int open_http(struct server *server)
{
    const struct server_setup *setup = &server->setup;
    const struct config *config = setup->config;
    char prefix[POOL_PREFIX_SIZE];
    int result;

    if (setup->threads > 0) {
        snprintf(prefix, sizeof(prefix), "%s-%u-exec-", setup->name, server->listener.port);
        result = pool_init(&server->pool, prefix, setup->threads);
        if (result < 0) {
            return result;
        }
    }
    struct service_setup service = {
        .name = setup->name,
        .router = *setup->router,
        .limits = {.head_bytes_max = config->header_bytes_max,
                   .body_bytes_max = config->body_bytes_max},
        .head_timeout_ns = config->connection_timeout_ns,
        .keep_alive_timeout_ns = config->keep_alive_timeout_ns,
        .pool = setup->threads > 0 ? &server->pool : NULL,
        .access_log = config->access_log,
        .context = setup->app,
        .carriers = setup->carriers,
        .carrier_count = setup->carrier_count,
        .on_ended = wake_main,
    };
    result = service_init(&server->service, &service, server->listener.port);
    if (result < 0 && setup->threads > 0) {
        pool_fini(&server->pool);
    }
    return result;
}

static int open_echo(struct server *server)
{
    struct echo_setup echo = {
        .name = server->setup.name,
        .greets = server->setup.greets,
        .platform = server->setup.threads > 0,
        .live = &server->limit.live,
        .context = server->setup.app,
        .carriers = server->setup.carriers,
        .carrier_count = server->setup.carrier_count,
        .on_ended = wake_main,
    };
    return echo_init(&server->echo, &echo, &server->listener);
}

int server_open(struct server *server, const struct server_setup *setup)
{
    bool http = setup->router != NULL;

    memset(server, 0, sizeof(*server));
    server->setup = *setup;
    server->limit.max = setup->connections_max;
    struct listener_setup listener = {
        .name = setup->name,
        .address = setup->config->server_address,
        .port = setup->port,
        .inherited = setup->inherited,
        .carriers = setup->carriers,
        .carrier_count = setup->carrier_count,
        .limits = {&server->limit, setup->limits[0], setup->limits[1]},
        .wakes_one = !http,
        .serve = http ? service_serve : echo_serve,
        .refusal = http ? service_refusal : echo_refusal,
        .context = http ? (void *)&server->service : (void *)&server->echo,
    };
    int result = listener_open(&server->listener, &listener);
    if (result < 0) {
        return result;
    }
    server->listener.on_closed = on_listener_closed;
    server->listener.on_shortage = on_shortage;
    result = http ? open_http(server) : open_echo(server);
    if (result < 0) {
        listener_fini(&server->listener);
    }
    return result;
}

void server_start(struct server *server)
{
    const struct server_setup *setup = &server->setup;
    bool http = setup->router != NULL;
    char policy[64];
    char logger[32];

    snprintf(policy, sizeof(policy), "fibers");
    if (setup->threads > 0 && http) {
        snprintf(policy, sizeof(policy), "at most %u platform threads", setup->threads);
    } else if (setup->threads > 0) {
        snprintf(policy, sizeof(policy), "a new platform thread for each connection");
    }
    snprintf(logger, sizeof(logger), "%s.listener", setup->name);
    listener_start(&server->listener);
    log_info(logger, "%s started on port %u (%s), %s, %u carrier%s%s", setup->announce,
             server->listener.port, http ? "http" : "tcp", policy, setup->carrier_count,
             setup->carrier_count == 1 ? "" : "s",
             setup->inherited > 0 ? ", on a socket passed by the service manager" : "");
}

void server_drain(struct server *server)
{
    if (server->setup.router != NULL) {
        service_drain(&server->service);
    } else {
        echo_drain(&server->echo);
    }
    listener_drain(&server->listener);
}

bool server_is_drained(struct server *server)
{
    return atomic_load(&server->listener.open_acceptors) == 0 &&
           atomic_load(&server->limit.live) == 0;
}

void server_close(struct server *server)
{
    if (server->setup.router == NULL) {
        echo_fini(&server->echo);
    } else {
        if (server->setup.threads > 0) {
            pool_fini(&server->pool);
        }
        service_fini(&server->service);
    }
    listener_fini(&server->listener);
}
