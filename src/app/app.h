/* SPDX-License-Identifier: Apache-2.0 */
/*
 * app.h - what every handler may reach: the context of an exchange.
 */
#ifndef APP_APP_H
#define APP_APP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "http/client_pool.h"

struct carrier;
struct directory;
struct echo;

#define APP_ECHOES_MAX 2

/* How far the process is on its way out. */
enum life {
    LIFE_UP,
    LIFE_LEAVING, /* SIGTERM came: all is served, readiness says no */
    LIFE_DRAINING /* nothing new is accepted */
};

struct app {
    struct client_pool *remote; /* connections to remote.url */
    uint64_t started_ns;        /* CLOCK_MONOTONIC */
    _Atomic(enum life) life;
    atomic_uint_fast64_t remote_invocations;   /* of /remote/{n} */
    const struct echo *echoes[APP_ECHOES_MAX]; /* set once; the first echo_count of them */
    unsigned echo_count;
    atomic_uint fanout_calls; /* of all /fanout in work together */
    unsigned fanout_calls_max;
    struct directory *directory;
    const struct carrier *carriers; /* set once */
    unsigned carrier_count;
    bool demo_pinned;         /* set once: /pinned is served */
    atomic_uint pinned_runs;  /* of /pinned in work */
    atomic_bool pins_carrier; /* one of them holds its carrier */
    int wake_fd;              /* main's eventfd: look whether the drain is over */
};

#endif
