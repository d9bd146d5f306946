/* SPDX-License-Identifier: Apache-2.0 */
/*
 * listener.h - accept connections on one port and spread them over the carriers.
 *
 * One non-blocking socket a port; on each carrier an acceptor fiber parks on a
 * multishot poll of it and takes at most 16 connections a turn with accept4(2).
 * A carrier keeps what it accepted while the live connections are even, else it
 * hands the descriptor's number to the carrier that has fewest, before anything
 * is armed on it. (Measured with two carriers: shared multishot accept gave one of
 * them all connections, SO_REUSEPORT let clients wait behind a busy carrier.)
 *
 * Beyond its limit, or out of descriptors, a client gets the refusal and a close.
 */
#ifndef IO_LISTENER_H
#define IO_LISTENER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "ring/carrier.h"

#define CARRIERS_MAX 256u
#define LISTENER_LIMITS 3

/* Connections that may live at the same time; several listeners may share one. */
struct connection_limit {
    atomic_uint live;
    unsigned max;
};

struct listener;

#define LISTENER_REFUSAL_BYTES 512

struct listener_setup {
    const char *name;    /* for logs: "http" */
    const char *address; /* numeric, or NULL for all */
    uint16_t port;       /* 0: a free one */
    int inherited;       /* a listening descriptor to take over, on that port; 0: bind it */
    /*
     * A connection wakes one carrier instead of all. Cheaper where connections are
     * short, but a lone one then waits for that carrier if a fiber holds it.
     */
    bool wakes_one;
    struct carrier *carriers;
    unsigned carrier_count;
    /* each connection counts in all of them; unused ones are NULL */
    struct connection_limit *limits[LISTENER_LIMITS];
    /*
     * serve - take over fd on the calling carrier: spawn its fiber. It must call
     * listener_release when the connection has ended. Called on a fiber, must not park.
     * Returns 0; -ENOMEM (the caller still owns fd then).
     */
    int (*serve)(struct listener *listener, int fd);
    /* refusal - write a whole response, of at most LISTENER_REFUSAL_BYTES, for a client without a place; returns its length. */
    size_t (*refusal)(char *dst, size_t capacity);
    void *context; /* of serve */
};

struct acceptor {
    struct listener *listener;
    struct carrier *carrier;
    struct message start; /* also asks for the drain */
    struct message drain;
    struct fiber *fiber;
    struct op *poll_op;
    bool ready; /* the poll said so, or there may be more than was taken */
    bool draining;
    unsigned refusals;      /* refusal fibers alive on this carrier */
    unsigned lost_in_a_row; /* connections that failed while they waited to be accepted */
    uint64_t complained_ns; /* when the last line about descriptors was logged */
};

struct listener {
    struct listener_setup setup;
    int fd;
    uint16_t port;
    atomic_uint open_acceptors; /* the last to end closes fd */
    atomic_uint_fast64_t accepted;
    atomic_uint_fast64_t refused;
    atomic_bool failed; /* no memory for an acceptor's fiber at the start */
    /* called on some carrier when the last acceptor has ended: nothing is accepted any more; and
     * when failed has been set */
    void (*on_closed)(struct listener *listener);
    /*
     * Called on an acceptor's fiber when no descriptor is left; NULL: none can be had. Must not
     * park. Returns true when some that nobody needs are on their way to be closed.
     */
    bool (*on_shortage)(struct listener *listener);
    struct acceptor *acceptors; /* one a carrier */
};

/*
 * listener_open - bind and listen; nothing is accepted yet.
 *
 * Returns  0; what sys_listen returns; -ENOMEM
 */
int listener_open(struct listener *listener, const struct listener_setup *setup) WARN_UNUSED;

/* listener_start - an acceptor fiber on each carrier. */
void listener_start(struct listener *listener);

/*
 * listener_drain - any thread, once: serve what waits in the accept queue, then
 * close the descriptor; on_closed tells. With that our own socket is gone; one that
 * we inherited lives on in whoever gave it, and who comes later waits there.
 */
void listener_drain(struct listener *listener);

/* listener_release - a connection that serve took over has ended. Any carrier's thread: the one that served it. */
void listener_release(struct listener *listener);

/* listener_fini - after on_closed, or before listener_start. */
void listener_fini(struct listener *listener);

#endif
