/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_server.h - listeners and sessions with a few test routes on the scripted
 * kernel, and a look at the answers that its clients get.
 *
 *   GET /quick/{id}     -> id, never waits
 *   GET /slow/{ms}      -> ms, after so many milliseconds
 *   GET /late/{ms}      -> the same, but holds no thread meanwhile
 *   GET /big/{n}        -> n bytes
 *   POST /echo          -> the body
 *   POST /drop          -> "dropped", does not want the body
 */
#ifndef KERNEL_SERVER_H
#define KERNEL_SERVER_H

#include <stdbool.h>
#include <stddef.h>

#include "http/service.h"
#include "io/listener.h"
#include "kernel.h"

#define SERVER_PORT 8080

struct kernel_server {
    struct listener listener;
    struct service service;
    struct connection_limit limit;
    unsigned closed;       /* times on_closed was called */
    unsigned ended;        /* times on_ended was called */
    atomic_uint handled;   /* pool threads count, too */
    atomic_uint cancelled; /* handlers that a client's reset ended */
};

/* server_start_on - between drive_start and drive_stop; so many connections at most. */
void server_start_on(struct kernel_server *server, unsigned carriers, unsigned connections_max);

/* server_drain_begin - as app/server.c does it. */
void server_drain_begin(struct kernel_server *server);

/* server_stop - drain, see that all has ended, and stop the world. */
void server_stop(struct kernel_server *server);

/* One answer, cut off what a client has heard. */
struct answer {
    int status;
    char head[2048];
    char body[4096]; /* its beginning */
    size_t body_length;
};

/* answer_next - cut the next whole answer off; false: none is there. Nonsense is a violation. */
bool answer_next(const char **heard, struct answer *answer);

/*
 * answer_expect - the next answer has this status and, unless it is NULL, this body; or
 * the test fails. answer_expect_only: likewise of all that a client has heard and not
 * been asked about, and nothing follows. Valid until the next call.
 */
const struct answer *answer_expect(const char **heard, int status, const char *body);
const struct answer *answer_expect_only(struct kernel_file *client, int status, const char *body);

/* peer_is_closed - by a FIN, so that all that was sent can be read. */
bool peer_is_closed(struct kernel_file *client);

/* answer_has - does its head have this line? */
bool answer_has(const struct answer *answer, const char *line);

/* live_connections - sessions that live. */
unsigned live_connections(struct kernel_server *server);

#endif
