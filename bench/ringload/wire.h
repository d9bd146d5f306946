/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire.h - a client's connection, as lean as it can be: sending and receiving are
 * submitted together, and nothing stays armed between two answers.
 *
 * io/conn.h is a server's: its multishot receive holds no buffer while idle, and asks
 * the socket after 10 ms whether a FIN was lost, which a client that waits for the FIN
 * as the answer's end would measure. Here one receive brings one piece into the caller's
 * memory, and loses nothing. Fibers only.
 */
#ifndef BENCH_WIRE_H
#define BENCH_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/attr.h"
#include "base/slice.h"
#include "ring/op.h"

struct carrier;
struct fiber;

/* Zeroed, it is closed. */
struct wire {
    struct carrier *carrier; /* NULL: closed */
    int fd;
    /* the ring's while in flight */
    struct op *recv_op;
    struct op *send_op;
    struct slice sending; /* what is not sent yet */
    /* the fiber's */
    struct fiber *fiber; /* parked in wire_recv or wire_close */
    int received;        /* result of the last receive */
    int send_error;      /* -errno of a send */
};

/*
 * wire_connect - connect, from a source address or from what the kernel chooses (NULL).
 *
 * Returns  0; -ETIMEDOUT, -ECONNREFUSED, -EADDRNOTAVAIL (no port is free), -EMFILE …;
 *          -ECANCELED. The wire is closed then
 * Parks    yes
 */
int wire_connect(struct wire *wire, const struct sys_address *address,
                 const struct sys_address *source, uint64_t deadline_ns) WARN_UNUSED;

bool wire_is_open(const struct wire *wire);

/*
 * wire_send - begin to send; an error shows in wire_recv or wire_is_sending.
 *
 * Returns  0; -ENOMEM
 * Parks    no
 * Owner    src must live until wire_is_sending says no, or wire_close returned
 */
int wire_send(struct wire *wire, struct slice src) WARN_UNUSED;

/* wire_is_sending - not all is sent, or sending failed. */
bool wire_is_sending(const struct wire *wire);

/*
 * wire_recv - wait for one piece.
 *
 * Returns  > 0 bytes; 0 the peer finished; -ETIMEDOUT; -ECONNRESET …; -ECANCELED
 * Parks    yes
 */
ssize_t wire_recv(struct wire *wire, struct op_room room, uint64_t deadline_ns) WARN_UNUSED;

/* wire_is_quiet - an idle connection is still good: no FIN, no error, no bytes. One system call. */
bool wire_is_quiet(const struct wire *wire);

/* wire_close - end it, by a reset if so asked. Parks while something is in flight. */
void wire_close(struct wire *wire, bool reset);

#endif
