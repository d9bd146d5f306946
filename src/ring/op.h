/* SPDX-License-Identifier: Apache-2.0 */
/*
 * op.h - one request in flight on the ring, from submission to its last completion.
 *
 *   FREE --prepare--> IN FLIGHT --final CQE (no F_MORE)--> FREE (generation + 1)
 *                       |    ^
 *                       +----+ multishot: a CQE with F_MORE
 *
 * A record lives until its final CQE, cancelled or not. user_data is never a
 * pointer: it holds index and generation, so a completion that comes for a retired
 * record is told apart. One function writes it, after the entry is prepared.
 *
 * Two kinds of calls: op_NAME parks the fiber until the op is over; op_NAME_arm
 * returns at once and the ring calls deliver for each completion, in the loop,
 * where nothing may park. All belong to the thread that owns the ring.
 */
#ifndef RING_OP_H
#define RING_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/attr.h"
#include "ring/sys.h"

struct op;
struct ring;
struct ring_event;
struct fiber;

/* What a completion brought. */
struct op_event {
    int32_t result;  /* >= 0, or -errno */
    uint16_t buffer; /* id of the provided buffer, when has_buffer */
    bool has_buffer; /* the receiver must hand it back with op_buffer_give */
    bool final;      /* the record is retired as soon as deliver returns */
};

/* op_deliver - called in the loop, must not park; after a final event the op pointer is void. */
typedef void op_deliver(struct op *op, const struct op_event *event, void *owner);

/* Whom the completions of an armed op are delivered to. */
struct op_target {
    op_deliver *deliver;
    void *owner;
};

/* Bytes to send, and room to receive into: the caller's, until the op is over. */
struct op_bytes {
    const void *src;
    size_t length;
};

struct op_room {
    void *dst;
    size_t capacity;
};

struct op {
    uint32_t index;
    uint32_t generation;
    bool in_flight;
    bool cancelling; /* op_cancel has been submitted */
    op_deliver *deliver;
    void *owner;
    struct fiber *fiber; /* parked in op_await */
    int32_t result;      /* of an awaited op */
};

/* The records of one ring: chunks that never move, and a free list of indices. */
struct ops {
    struct ring *ring;
    struct op **chunks;
    uint32_t chunk_count;
    uint32_t *free;
    uint32_t free_count;
    uint32_t live;  /* in flight, or awaited and not yet collected */
    uint64_t stale; /* completions for a retired record: dropped */
};

void ops_init(struct ops *ops, struct ring *ring);

/* ops_fini - must(live == 0). */
void ops_fini(struct ops *ops);

/* ops_dispatch - hop of the data path: a completion finds its op. Called by the loop. */
void ops_dispatch(struct ops *ops, const struct ring_event *event);

/*
 * op_send, op_connect - as send(2), connect(2) on one descriptor.
 *
 * @deadline_ns  CLOCK_MONOTONIC; 0 means none. At the deadline the op is
 *               cancelled and seen to its end: if it had succeeded meanwhile, that counts
 *
 * Returns  what the system call would, or -errno; -ETIMEDOUT; -ECANCELED the
 *          fiber was cancelled; -ENOMEM no record
 * Parks    yes
 * Owner    src stays the caller's and must live until the return
 * Source   io_uring_prep_send(3), io_uring_prep_connect(3), liburing 2.9
 */
ssize_t op_send(struct ops *ops, int fd, struct op_bytes bytes, uint64_t deadline_ns) WARN_UNUSED;
int op_connect(struct ops *ops, int fd, const struct sys_address *address,
               uint64_t deadline_ns) WARN_UNUSED;

/*
 * op_recv_arm - receive into provided buffers until cap_bytes have come.
 *
 * @cap_bytes  total for this op where the kernel can cap it (a multishot, final
 *             when they have come); elsewhere one piece a call
 *
 * Returns  the op; NULL no memory for a record
 * Events   result > 0 with a buffer; 0 the peer finished; -ENOBUFS; -ECONNRESET; -ECANCELED …
 */
struct op *op_recv_arm(struct ops *ops, int fd, size_t cap_bytes, struct op_target target);

/* op_recv_into_arm - one piece into memory of the caller, which must live until the final event. */
struct op *op_recv_into_arm(struct ops *ops, int fd, struct op_room room, struct op_target target);

/* op_send_arm - send; the bytes must live until the final event, whose result may be short. */
struct op *op_send_arm(struct ops *ops, int fd, struct op_bytes bytes, struct op_target target);

/* op_poll_arm - multishot poll: an event each time fd becomes ready (not while it stays so). */
struct op *op_poll_arm(struct ops *ops, int fd, unsigned events, struct op_target target);

/*
 * op_poll_one_arm - poll once, and of all who wait so for fd wake only one at a time.
 *
 * Source   EPOLLEXCLUSIVE in epoll_ctl(2); io_poll_parse_events in the kernel's poll.c keeps it
 */
struct op *op_poll_one_arm(struct ops *ops, int fd, unsigned events, struct op_target target);

/* op_read_arm - one read(2) of an eventfd. */
struct op *op_read_arm(struct ops *ops, int fd, uint64_t *count, struct op_target target);

/* op_cancel - ask the kernel to end it; its final event tells when. Asking twice does nothing. */
void op_cancel(struct ops *ops, struct op *op);

/* op_buffer, op_buffer_give - memory of a provided buffer; back to the kernel. */
char *op_buffer(struct ops *ops, uint16_t id);
void op_buffer_give(struct ops *ops, uint16_t id);

/*
 * Direct descriptors, for clients that come when no ordinary one is left: accept
 * into a slot of the ring's sparse table, and what can be done with it there.
 *
 * op_accept_direct returns the slot; -EAGAIN none is waiting; -ENFILE no slot free.
 * op_recv_direct never waits: -EAGAIN nothing is there. All park.
 */
int op_accept_direct(struct ops *ops, int listener) WARN_UNUSED;
ssize_t op_send_direct(struct ops *ops, int slot, struct op_bytes bytes,
                       uint64_t deadline_ns) WARN_UNUSED;
ssize_t op_recv_direct(struct ops *ops, int slot, struct op_room room) WARN_UNUSED;
int op_close_direct(struct ops *ops, int slot) WARN_UNUSED;

#endif
