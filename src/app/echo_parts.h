/* SPDX-License-Identifier: Apache-2.0 */
/*
 * echo_parts.h - what echo.c and echo_thread.c share. For these alone.
 */
#ifndef APP_ECHO_PARTS_H
#define APP_ECHO_PARTS_H

#include "app/echo.h"
#include "io/conn.h"

/* After the greeting: so much of what a client sends is dropped, for so long. */
#define ECHO__LINGER_BYTES ((size_t)1024 * 1024)
#define ECHO__LINGER_NS (2 * NS_PER_S)

/* What others reach of a connection: the ring its conn, the drain its link, a thread the rest. */
struct echo_client {
    struct conn conn; /* its descriptor is the fiber's to close, whoever makes the calls */
    struct list link; /* echo_lane.clients */
    struct echo *echo;
    struct echo_lane *lane;
    struct listener *listener;
    uint64_t number; /* of the connection, from 1 */
    /* with setup.platform */
    struct fiber *fiber;    /* parked until the thread is done */
    struct message message; /* from the thread to the carrier: it is done */
    bool done;
};

/* echo__greet - the greeting and our FIN; does not block. Returns true when the client has sent something: linger. */
bool echo__greet(int fd);

/*
 * echo__run_on_thread - serve a connection on an OS thread of its own.
 *
 * Parks    until the thread is done, or none could be started (then logged)
 */
void echo__run_on_thread(struct echo_client *client);

#endif
