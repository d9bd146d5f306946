/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conn.h - one TCP connection: peek, consume, write, close.
 *
 * On a fiber the calls park and the ring does the work; on a platform thread the
 * same calls make ordinary system calls and block that thread.
 *
 * Receiving on a fiber: the carrier's provided buffers, at most two of them held
 * by a connection that does not read.
 *
 *     peek: nothing held, nothing armed -> arm recv (ends by itself after two buffers)
 *     ring delivers -> held[0..1] -> wakes the reader -> consume gives the buffer back
 *
 * An armed recv stays armed across requests; an idle connection holds no buffer.
 * One thread owns a connection from open to close.
 */
#ifndef IO_CONN_H
#define IO_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/attr.h"
#include "base/slice.h"
#include "ring/carrier.h"
#include "ring/sys.h"

struct fiber;
struct op;

/* Received and not yet consumed. */
struct conn_piece {
    char *at;        /* next unread byte */
    uint32_t length; /* unread bytes */
    int32_t buffer;  /* id of the provided buffer, or CONN_OWN_BUFFER */
};

#define CONN_OWN_BUFFER (-1)
#define CONN_PIECES_MAX 2

struct conn {
    /* set once */
    int fd;
    struct carrier *carrier; /* NULL: a platform thread's */
    /* the ring's while in flight */
    struct op *recv_op;          /* receiving */
    struct op *watch_op;         /* waiting for a reset while nothing receives */
    struct op *send_op;          /* of conn_write_start */
    struct slice sending;        /* what of it is not sent yet */
    struct deferred watch_again; /* the kernel ended the watch for want of room */
    /* the owner's; called in the loop when the ring has let go of what was started; may be NULL */
    void (*sent)(struct conn *conn);
    /* the fiber's */
    struct fiber *reader; /* parked in conn_peek, conn_write_settle or conn_close */
    struct fiber *bound;  /* to be cancelled when the peer resets, see conn_bind */
    struct conn_piece held[CONN_PIECES_MAX];
    char *own_buffer; /* heap: a platform thread's, or of a recv that found no provided buffer */
    uint8_t held_count;
    bool starved;     /* the last recv found no provided buffer: use one of our own */
    bool finished;    /* the peer finished sending */
    bool interrupted; /* see conn_interrupt */
    bool settling;    /* the reader is in conn_write_settle or conn_close */
    bool probed;      /* keep-alive probes are on */
    int error;        /* -errno that ended receiving */
    int send_error;   /* -errno of a write that was started */
};

/* conn_open - take over a connected descriptor on the calling fiber's carrier. */
void conn_open(struct conn *conn, int fd);

/*
 * conn_connect - connect to an address.
 *
 * Returns  0; -ETIMEDOUT; -ECONNREFUSED, -EMFILE, … (the conn is not open then); -ECANCELED
 * Parks    yes
 * Source   connect(2); io_uring_prep_connect(3)
 */
int conn_connect(struct conn *conn, const struct sys_address *address,
                 uint64_t deadline_ns) WARN_UNUSED;

/*
 * conn_peek - wait for unread bytes and look at them; conn_consume takes them away.
 *
 * @bytes        out: the bytes, borrowed until conn_consume or conn_close
 * @deadline_ns  CLOCK_MONOTONIC; 0 means none
 *
 * Returns  > 0 how many; 0 the peer finished sending; -ETIMEDOUT; -ECONNRESET;
 *          -ECANCELED; -ENOMEM
 * Parks    when nothing is held
 * Source   io_uring_prep_recv_multishot(3); RFC 9112 section 9.5
 */
ssize_t conn_peek(struct conn *conn, struct slice *bytes, uint64_t deadline_ns) WARN_UNUSED;

/*
 * conn_peek_idle - the same between two requests: conn_interrupt ends it with
 * -ECANCELED unless bytes have come, be it into the socket only.
 */
ssize_t conn_peek_idle(struct conn *conn, struct slice *bytes, uint64_t deadline_ns) WARN_UNUSED;

/* conn_consume - the first length bytes of what conn_peek showed are done with. */
void conn_consume(struct conn *conn, size_t length);

/* conn_has_unread - bytes are held that nobody consumed. */
bool conn_has_unread(const struct conn *conn);

/*
 * conn_write - send all of it.
 *
 * Returns  0; -ETIMEDOUT; -ECONNRESET, -EPIPE; -ECANCELED
 * Parks    yes
 * Owner    src stays the caller's and must live until the return
 */
int conn_write(struct conn *conn, struct slice src, uint64_t deadline_ns) WARN_UNUSED;

/*
 * conn_write_start - begin to send, and go on while the ring does it. Fibers only.
 *
 * One at a time: conn_write_settle comes before the next write, and before the
 * bytes are changed. conn->sent, if it is set, is called when the ring has let go of them.
 *
 * Returns  0; -ENOMEM
 * Parks    no
 * Owner    src stays the caller's and must live until conn_write_settle or conn_close
 */
int conn_write_start(struct conn *conn, struct slice src) WARN_UNUSED;

/* conn_is_writing - what was started is not all sent. */
bool conn_is_writing(const struct conn *conn);

/*
 * conn_write_settle - wait until what was started is sent.
 *
 * Returns  0; -ETIMEDOUT (cancelled: some of it may be out); -ECONNRESET, -EPIPE …
 * Parks    unless it has been sent already
 */
int conn_write_settle(struct conn *conn, uint64_t deadline_ns) WARN_UNUSED;

/*
 * conn_linger - after an error answer: finish writing, then read and drop what
 * still comes, so that the client can read the answer before our close becomes a reset.
 *
 * Parks    up to deadline_ns, or until bytes_max have been dropped
 * Source   RFC 9112 section 9.6
 */
void conn_linger(struct conn *conn, size_t bytes_max, uint64_t deadline_ns);

/*
 * conn_close - shut down, see every op in flight to its end, close the descriptor.
 * conn_abort - the same with a reset, so that the peer stops at once.
 *
 * Parks    until the ring has let go of the connection
 */
void conn_close(struct conn *conn);
void conn_abort(struct conn *conn);

/*
 * conn_bind - while fiber is bound it is cancelled as soon as the peer resets.
 * NULL unbinds. A FIN alone does not cancel; from then on keep-alive probes find
 * a peer that is gone. Does not park. Nothing on a platform thread.
 */
void conn_bind(struct conn *conn, struct fiber *fiber);

/* conn_interrupt - end a conn_peek_idle now or later. Carrier's thread; does not park. */
void conn_interrupt(struct conn *conn);

/* conn_is_dead - an idle connection that the peer ended or that has unexpected bytes, as far as is known. Does not park. */
bool conn_is_dead(const struct conn *conn);

/*
 * conn_has_more - bytes are held, or wait in the socket: conn_close would be a reset. At most
 * one system call, none while a recv is armed, which takes them before the close. Does not park.
 */
bool conn_has_more(const struct conn *conn);

/* conn_has_pending - bytes, a FIN or an error wait in the socket: one system call. Does not park. */
bool conn_has_pending(const struct conn *conn);

#endif
