/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conn_parts.h - what conn.c, conn_receive.c and conn_send.c share. For these alone.
 */
#ifndef IO_CONN_PARTS_H
#define IO_CONN_PARTS_H

#include "fiber/fiber.h"
#include "io/conn.h"

static inline void conn__wake_reader(struct conn *conn)
{
    if (conn->reader != NULL) {
        fiber_wake(conn->reader);
    }
}

/* conn__fail - receiving has ended with an error, or is to: cancel the fiber that is bound. */
void conn__fail(struct conn *conn, int error);

/* conn__watch - notice a reset while nothing receives; with keep-alive probes, a peer that is gone. */
void conn__watch(struct conn *conn);

/* conn__release_piece - give its buffer back to where it came from. */
void conn__release_piece(struct conn *conn, const struct conn_piece *piece);

#endif
