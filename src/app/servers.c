/* SPDX-License-Identifier: Apache-2.0 */
/*
 * servers.c - the table of servers, and what is done with all of them.
 */
#include "app/servers.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
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
    size_t port_offset;          /* an int of struct config; negative: not served */
    int threads;                 /* platform threads, THREADS_AS_CONFIGURED, or 0: fibers */
    const struct router *router; /* NULL: of the echo profile */
    bool greets;
};

#define THREADS_AS_CONFIGURED (-1)

static const struct row rows[] = {
    {CONFIG_SPRING, SERVER_FRONT, "http", "ringspun", "server.port",
     offsetof(struct config, server_port), THREADS_AS_CONFIGURED, &routes_app, false},
    {CONFIG_LOOMYLIN, SERVER_FRONT, "http", "loomylin", "loomylin.port.pool4",
     offsetof(struct config, loomylin_ports[0]), 4, &routes_app, false},
    {CONFIG_LOOMYLIN, SERVER_FRONT, "http", "loomylin", "loomylin.port.pool32",
     offsetof(struct config, loomylin_ports[1]), 32, &routes_app, false},
    {CONFIG_LOOMYLIN, SERVER_FRONT, "http", "loomylin", "loomylin.port.fibers",
     offsetof(struct config, loomylin_ports[2]), 0, &routes_app, false},
    {CONFIG_ECHO, SERVER_FRONT, "greeter", "greeter", "echo.port.greeter",
     offsetof(struct config, greeter_port), THREADS_AS_CONFIGURED, NULL, true},
    {CONFIG_ECHO, SERVER_FRONT, "echo", "echo", "echo.port.echo",
     offsetof(struct config, echo_port), THREADS_AS_CONFIGURED, NULL, false},
    {CONFIG_SPRING, SERVER_REMOTE, "remote", "remote", "remote.port",
     offsetof(struct config, remote_port), 0, &routes_remote, false},
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

static unsigned threads_of(const struct row *row, const struct config *config)
{
    if (row->threads != THREADS_AS_CONFIGURED) {
        return (unsigned)row->threads;
    }
    if (row->router == NULL) {
        return config->echo_threads == CONFIG_PLATFORM;
    }
    return config->virtual_threads ? 0 : (unsigned)config->threads_max;
}

unsigned servers_threads(const struct config *config)
{
    unsigned threads = 0;
    for (size_t i = 0; i < ROW_COUNT; i++) {
        /* An echo port on threads starts one a connection: no pool, and no number. */
        if (is_wanted(&rows[i], config) && rows[i].router != NULL) {
            threads += threads_of(&rows[i], config);
        }
    }
    return threads;
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

/* share_out - how many of all connections each kind of server may have. */
static void share_out(struct process *process)
{
    const struct config *config = process->config;
    unsigned total = process->total.max;
    bool serves_app = false;

    for (size_t i = 0; i < ROW_COUNT; i++) {
        serves_app = serves_app || (rows[i].router == &routes_app && is_wanted(&rows[i], config));
    }
    /* A /blocking costs three descriptors in this process: clients that do nothing, be it on an
     * echo port, must not starve the calls. */
    process->front.max = serves_app && total > 1 ? total / 2 : total;
}

/* share_of - and how many one of them. */
static unsigned share_of(const struct row *row, const struct process *process)
{
    unsigned total = process->total.max;
    if (row->place == SERVER_FRONT) {
        return process->front.max;
    }
    /* A few places are kept, so that clients of the remote cannot shut the app out. */
    return total - (total / 8 < FRONT_PLACES ? total / 8 : FRONT_PLACES);
}

/* claim: the socket that was passed for it, or NULL */
static int open_row(struct process *process, const struct row *row,
                    const struct systemd_listener *claim)
{
    const struct config *config = process->config;
    struct server *server = &process->servers[process->server_count];
    struct server_setup setup = {
        .place = row->place,
        .name = row->name,
        .announce = row->announce,
        .port = claim != NULL ? claim->port : (uint16_t)port_of(row, config),
        .inherited = claim != NULL ? claim->fd : 0,
        .threads = threads_of(row, config),
        .connections_max = share_of(row, process),
        .router = row->router,
        .greets = row->greets,
        .limits = {&process->total, row->place == SERVER_FRONT ? &process->front : NULL},
        .carriers = process->carriers,
        .carrier_count = process->carrier_count,
        .config = config,
        .app = &process->app,
    };
    int result = server_open(server, &setup);
    if (result == 0) {
        process->server_count++;
        if (row->router == NULL) {
            process->app.echoes[process->app.echo_count++] = &server->echo;
        }
    }
    return result;
}

/*
 * claim_listeners - who listens on which of the sockets that were passed: first
 * those that a socket unit named after a server and that have its port (several
 * servers may have one name), then those with its name, then those with its port.
 *
 * Returns  0; an exit code: one that nobody accepts from would let its clients
 *          connect and wait for ever, which is worse than no start
 * Owner    claims begins as NULLs
 */
static int claim_listeners(struct process *process, struct systemd_listener *claims[ROW_COUNT])
{
    struct systemd *systemd = &process->systemd;

    for (int pass = 0; pass < 3; pass++) {
        for (size_t i = 0; i < ROW_COUNT; i++) {
            const struct row *row = &rows[i];
            if (claims[i] == NULL && is_wanted(row, process->config)) {
                claims[i] = systemd_claim(systemd, pass < 2 ? row->name : NULL,
                                          pass != 1 ? port_of(row, process->config) : -1);
            }
        }
    }
    const struct systemd_listener *stray = systemd_unclaimed(systemd);
    if (stray == NULL) {
        return 0;
    }
    return process_refuse(CONFIG_EXIT_CONFIG,
                          "the socket passed as descriptor %d (name '%.*s', port %u) fits no "
                          "server here: make its ListenStream= the port of one, or its "
                          "FileDescriptorName= the name, or take it out of ringspun.socket",
                          stray->fd, (int)(stray->name.length < 64 ? stray->name.length : 64),
                          stray->name.at, stray->port);
}

int servers_open(struct process *process)
{
    const struct config *config = process->config;
    struct systemd_listener *claims[ROW_COUNT] = {NULL};

    int code = claim_listeners(process, claims);
    if (code != 0) {
        return code;
    }
    share_out(process);
    for (size_t i = 0; i < ROW_COUNT; i++) {
        const struct row *row = &rows[i];
        int result = is_wanted(row, config) ? open_row(process, row, claims[i]) : 0;
        if (result < 0) {
            servers_close(process);
            return open_failed(row->port_key, port_of(row, config), result);
        }
    }
    return 0;
}

void servers_start(struct process *process)
{
    for (unsigned i = 0; i < process->server_count; i++) {
        server_start(&process->servers[i]);
    }
}

bool servers_failed(const struct process *process)
{
    bool failed = false;
    for (unsigned i = 0; i < process->server_count; i++) {
        failed = failed || atomic_load(&process->servers[i].listener.failed);
    }
    return failed;
}

void servers_describe(const struct process *process, char *dst, size_t size)
{
    size_t length = 0;

    for (unsigned i = 0; i < process->server_count && length < size; i++) {
        const struct server *server = &process->servers[i];
        length += (size_t)snprintf(dst + length, size - length, "%s%u %s", i > 0 ? ", " : "",
                                   server->listener.port, server->setup.name);
    }
    if (length < size) {
        snprintf(dst + length, size - length, "; %u carrier%s", process->carrier_count,
                 process->carrier_count == 1 ? "" : "s");
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
