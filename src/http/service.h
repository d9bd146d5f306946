/* SPDX-License-Identifier: Apache-2.0 */
/*
 * service.h - the sessions of one HTTP port: begun for each accepted connection, and
 * ended together when the server drains. A session is a fiber that reads requests,
 * has them handled and writes the responses, until one side has enough.
 *
 *   accepted -> read request -> route -> handle -> write -> read ... -> close
 *                    |                     |
 *               refused: error,       on this fiber, or on a platform
 *               linger, close         thread while this fiber is parked
 */
#ifndef HTTP_SERVICE_H
#define HTTP_SERVICE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/list.h"
#include "base/slab.h"
#include "http/parser.h"
#include "http/router.h"
#include "io/listener.h"
#include "ring/carrier.h"

struct pool;

struct service_setup {
    const char *name;     /* "http": the first word of its fibers' names */
    struct router router; /* static */
    struct parser_limits limits;
    uint64_t head_timeout_ns; /* a whole request head, and each write, in this time */
    uint64_t keep_alive_timeout_ns;
    struct pool *pool; /* runs the handlers; NULL: the connection's own fiber does */
    bool access_log;
    void *context; /* of the handlers, see struct http_exchange */
    struct carrier *carriers;
    unsigned carrier_count;
    /* any thread: a session ended while draining, look again whether all have */
    void (*on_ended)(void *context);
};

/* The sessions of a service on one carrier; touched by that carrier alone. */
struct service_lane {
    struct service *service;
    struct slab slab;
    struct slab desks; /* working memory of the requests in work, see session_parts.h */
    struct list sessions;
    struct message drain;
    uint64_t requests; /* handled so far */
};

/* What the sessions of one server share. */
struct service {
    struct service_setup setup;
    char fiber_prefix[48]; /* "http-8080-conn-" */
    atomic_uint_fast64_t last_number;
    atomic_bool draining;
    struct service_lane *lanes; /* one a carrier */
};

/* service_init - port is part of the fibers' names. Returns 0; -ENOMEM. */
int service_init(struct service *service, const struct service_setup *setup,
                 uint16_t port) WARN_UNUSED;

/* service_fini - when no session lives and the carriers have ended. */
void service_fini(struct service *service);

/*
 * service_drain - any thread, once: idle connections close, requests in work and
 * those already sent are answered with Connection: close.
 */
void service_drain(struct service *service);

/* service_serve - the serve function for a listener whose context is a service. */
int service_serve(struct listener *listener, int fd) WARN_UNUSED;

/* service_refusal - a 503 with Retry-After for a client that finds no place. */
size_t service_refusal(char *dst, size_t capacity);

#endif
