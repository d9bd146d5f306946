/* SPDX-License-Identifier: Apache-2.0 */
/*
 * servers.c - the table of servers, and what is done with all of them.
 */
#include "app/servers.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "app/routes.h"
#include "app/run.h"

/* Connections that the remote leaves to the others, where an eighth of all is not fewer. */
#define FRONT_PLACES 64u

/* Where the remote is when it is not served here. */
#define REMOTE_PORT_ELSEWHERE 8085

/* What is fixed about a server; the rest is configuration. */
struct row {
    enum config_profile profile;
    enum server_place place;
    const char *name;
    const char *announce;
    const char *port_key;
    size_t port_offset; /* an int of struct config; negative: not served */
    const struct router *router;
};

static const struct row rows[] = {
    {CONFIG_SPRING, SERVER_FRONT, "http", "ringspun", "server.port",
     offsetof(struct config, server_port), &routes_app},
    {CONFIG_SPRING, SERVER_REMOTE, "remote", "remote", "remote.port",
     offsetof(struct config, remote_port), &routes_remote},
};

#define ROW_COUNT (sizeof(rows) / sizeof(rows[0]))

static_assert(ROW_COUNT <= SERVERS_MAX, "the process has a place for each");

static int port_of(const struct row *row, const struct config *config)
{
    int port;
    memcpy(&port, (const char *)config + row->port_offset, sizeof(port));
    return port;
}

static bool is_wanted(const struct row *row, const struct config *config)
{
    return (config->profiles & row->profile) != 0 && port_of(row, config) >= 0;
}

unsigned servers_wanted(const struct config *config)
{
    unsigned wanted = 0;
    for (size_t i = 0; i < ROW_COUNT; i++) {
        wanted += is_wanted(&rows[i], config);
    }
    return wanted;
}

static int open_failed(const char *key, int port, int error)
{
    switch (error) {
    case -EADDRINUSE:
        return process_refuse(RUN_FAILED,
                              "port %d is already in use: stop what holds it ('ss -ltnp sport = "
                              ":%d' shows it) or choose another with --%s=PORT",
                              port, port, key);
    case -EACCES:
        return process_refuse(RUN_FAILED,
                              "no right to bind port %d: choose one above 1023 with --%s=PORT",
                              port, key);
    case -EADDRNOTAVAIL:
        return process_refuse(
            RUN_FAILED, "server.address is no address of this host ('ip address' shows them)");
    default:
        return process_refuse(RUN_FAILED, "cannot listen on port %d (--%s): %s", port, key,
                              strerrordesc_np(-error));
    }
}

/* share - how many of all connections a server may have. */
static unsigned share(enum server_place place, unsigned total)
{
    if (place == SERVER_FRONT) {
        return total > 1 ? total / 2 : 1; /* a /blocking costs three descriptors in this process */
    }
    /* A few places are kept, so that clients of the remote cannot shut the app out. */
    return total - (total / 8 < FRONT_PLACES ? total / 8 : FRONT_PLACES);
}

static unsigned threads_of(const struct row *row, const struct config *config)
{
    if (row->place == SERVER_REMOTE || config->virtual_threads) {
        return 0;
    }
    return (unsigned)config->threads_max;
}

int servers_open(struct process *process)
{
    const struct config *config = process->config;

    for (size_t i = 0; i < ROW_COUNT; i++) {
        const struct row *row = &rows[i];
        if (!is_wanted(row, config)) {
            continue;
        }
        struct server_setup setup = {
            .place = row->place,
            .name = row->name,
            .announce = row->announce,
            .port = (uint16_t)port_of(row, config),
            .threads = threads_of(row, config),
            .connections_max = share(row->place, process->total.max),
            .router = row->router,
            .total = &process->total,
            .carriers = process->carriers,
            .carrier_count = process->carrier_count,
            .config = config,
            .app = &process->app,
        };
        int result = server_open(&process->servers[process->server_count], &setup);
        if (result < 0) {
            servers_close(process);
            return open_failed(row->port_key, port_of(row, config), result);
        }
        process->server_count++;
    }
    return 0;
}

void servers_start(struct process *process)
{
    for (unsigned i = 0; i < process->server_count; i++) {
        server_start(&process->servers[i]);
    }
}

void servers_drain(struct process *process, enum server_place place)
{
    for (unsigned i = 0; i < process->server_count; i++) {
        if (process->servers[i].setup.place == place) {
            server_drain(&process->servers[i]);
        }
    }
}

bool servers_are_drained(struct process *process, enum server_place place)
{
    bool drained = true;
    for (unsigned i = 0; i < process->server_count; i++) {
        struct server *server = &process->servers[i];
        drained = drained && (server->setup.place != place || server_is_drained(server));
    }
    return drained;
}

void servers_close(struct process *process)
{
    for (unsigned i = process->server_count; i > 0; i--) {
        server_close(&process->servers[i - 1]);
    }
    process->server_count = 0;
}

int servers_remote_port(const struct process *process)
{
    for (unsigned i = 0; i < process->server_count; i++) {
        if (process->servers[i].setup.place == SERVER_REMOTE) {
            return process->servers[i].listener.port;
        }
    }
    return REMOTE_PORT_ELSEWHERE;
}
