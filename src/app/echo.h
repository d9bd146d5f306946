/* SPDX-License-Identifier: Apache-2.0 */
/*
 * echo.h - the two servers of the echo profile: one greets each connection and
 * closes it, one sends every byte back until the peer finishes (RFC 862).
 *
 *   accepted -> greeting and FIN in one segment -> close
 *   accepted -> peek -> write -> consume -> peek ... FIN or drain -> close
 *
 * Each connection is a fiber. With setup.platform a new OS thread makes ordinary
 * blocking calls for it, while the fiber is parked: see echo_thread.c.
 *
 * The counterpart of http/service.h for ports that do not speak HTTP.
 */
#ifndef APP_ECHO_H
#define APP_ECHO_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "app/echo_wait.h"
#include "base/attr.h"
#include "base/list.h"
#include "base/slab.h"
#include "io/listener.h"
#include "ring/carrier.h"

struct echo_setup {
    const char *name; /* "greeter": of its fibers, threads and figures */
    bool greets;      /* else echoes */
    bool platform;    /* an OS thread for each connection */
    const atomic_uint *live;
    struct carrier *carriers;
    unsigned carrier_count;
    /* any thread: a connection ended while draining, look again whether all have */
    void (*on_ended)(void *context);
    void *context;
};

/* The connections on one carrier; touched by that carrier alone. */
struct echo_lane {
    struct echo *echo;
    struct slab slab;
    struct list clients;
    struct message drain;
};

struct echo {
    struct echo_setup setup;
    uint16_t port;
    char fiber_prefix[48]; /* "echo-10007-conn-" */
    atomic_bool draining;
    atomic_uint threads;                /* OS threads that may still touch this */
    atomic_uint_fast64_t complained_ns; /* when the last line about threads was logged */
    struct echo_wait wait;
    struct echo_lane *lanes; /* one a carrier */
};

/* echo_init - for a listener that has been opened. Returns 0; -ENOMEM. */
int echo_init(struct echo *echo, const struct echo_setup *setup,
              const struct listener *listener) WARN_UNUSED;

/* echo_fini - when no connection lives and the carriers have ended; waits for OS threads on their last lines. */
void echo_fini(struct echo *echo);

/* echo_drain - any thread, once: idle connections close, those in work first send what was received. */
void echo_drain(struct echo *echo);

/* echo_serve - the serve function for a listener whose context is a struct echo. */
int echo_serve(struct listener *listener, int fd) WARN_UNUSED;

/* echo_refusal - a client without a place gets nothing but the close. */
size_t echo_refusal(char *dst, size_t capacity);

#endif
