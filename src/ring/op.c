/* SPDX-License-Identifier: Apache-2.0 */
/*
 * op.c - operations in flight: prepare an SQE, find the record of a CQE, retire it.
 *
 * Called by io/ (conn, listener) and carrier.c. Does not submit: the carrier's
 * next ring_enter takes everything that was prepared in one system call.
 */
#include "ring/op.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/must.h"
#include "fiber/fiber.h"
#include "ring/ring.h"

#define OPS_PER_CHUNK 256u

/* user_data 0 is nobody's: cancel requests carry it. So indices start at 1. */
#define NOBODY UINT64_C(0)

void ops_init(struct ops *ops, struct ring *ring)
{
    memset(ops, 0, sizeof(*ops));
    ops->ring = ring;
}

void ops_fini(struct ops *ops)
{
    must(ops->live == 0);
    for (uint32_t i = 0; i < ops->chunk_count; i++) {
        free(ops->chunks[i]);
    }
    free(ops->chunks);
    free(ops->free);
}

static struct op *record_at(struct ops *ops, uint32_t index)
{
    if (index == 0 || index > ops->chunk_count * OPS_PER_CHUNK) {
        return NULL;
    }
    return &ops->chunks[(index - 1) / OPS_PER_CHUNK][(index - 1) % OPS_PER_CHUNK];
}

/* grow - one more chunk; its records go on the free list. */
static bool grow(struct ops *ops)
{
    uint32_t capacity = (ops->chunk_count + 1) * OPS_PER_CHUNK;
    struct op *chunk = calloc(OPS_PER_CHUNK, sizeof(*chunk));
    struct op **chunks = realloc(ops->chunks, (ops->chunk_count + 1) * sizeof(struct op *));
    if (chunks != NULL) {
        ops->chunks = chunks;
    }
    uint32_t *free_list = realloc(ops->free, capacity * sizeof(*free_list));
    if (free_list != NULL) {
        ops->free = free_list;
    }
    if (chunk == NULL || chunks == NULL || free_list == NULL) {
        free(chunk);
        return false;
    }
    uint32_t first = ops->chunk_count * OPS_PER_CHUNK + 1;
    ops->chunks[ops->chunk_count++] = chunk;
    for (uint32_t i = OPS_PER_CHUNK; i-- > 0;) {
        chunk[i].index = first + i;
        ops->free[ops->free_count++] = first + i;
    }
    return true;
}

static struct op *record_take(struct ops *ops, struct op_target target)
{
    if (unlikely(ops->free_count == 0) && !grow(ops)) {
        return NULL;
    }
    struct op *op = record_at(ops, ops->free[--ops->free_count]);
    must(!op->in_flight);
    op->in_flight = true;
    op->cancelling = false;
    op->deliver = target.deliver;
    op->owner = target.owner;
    op->fiber = NULL;
    ops->live++;
    return op;
}

static void record_retire(struct ops *ops, struct op *op)
{
    must(!op->in_flight && ops->live > 0);
    op->generation++;
    op->deliver = NULL;
    ops->free[ops->free_count++] = op->index;
    ops->live--;
}

/* The one place that writes user_data, after the entry was prepared: io_uring_prep_* clear it. */
static void submit_as(struct io_uring_sqe *sqe, const struct op *op)
{
    io_uring_sqe_set_data64(sqe, (uint64_t)op->generation << 32 | op->index);
}

void ops_dispatch(struct ops *ops, const struct ring_event *event)
{
    if (event->user_data == NOBODY) {
        return; /* a cancel that found its target gone: the target's own completion tells */
    }
    struct op *op = record_at(ops, (uint32_t)event->user_data);
    must(op != NULL);
    if (unlikely(op->generation != (uint32_t)(event->user_data >> 32) || !op->in_flight)) {
        ops->stale++;
        return;
    }
    struct op_event told = {
        .result = event->result,
        .has_buffer = (event->flags & IORING_CQE_F_BUFFER) != 0,
        .buffer = (uint16_t)(event->flags >> IORING_CQE_BUFFER_SHIFT),
        .final = (event->flags & IORING_CQE_F_MORE) == 0,
    };
    if (told.final) {
        op->in_flight = false;
    }
    bool awaited = op->owner == op;
    op->deliver(op, &told, op->owner);
    /* An awaited record is retired by its fiber, once it has read the result. */
    if (told.final && !awaited) {
        record_retire(ops, op);
    }
}

static void deliver_awaited(struct op *op, const struct op_event *event, void *owner)
{
    (void)owner;
    must(event->final && !event->has_buffer); /* awaited ops are one-shot, into memory of ours */
    op->result = event->result;
    if (op->fiber != NULL) {
        fiber_wake(op->fiber);
    }
}

/* awaited - a record whose completion wakes the running fiber. */
static struct op *awaited(struct ops *ops)
{
    must(fiber_current() != NULL);
    struct op *op = record_take(ops, (struct op_target){.deliver = deliver_awaited});
    if (op != NULL) {
        op->owner = op;
        op->fiber = fiber_current();
    }
    return op;
}

/*
 * op_await - park until the op is over and collect its result.
 *
 * At the deadline, or when the fiber is cancelled, the op is cancelled too, but
 * its memory is the kernel's until the final completion: wait for that.
 */
static int op_await(struct ops *ops, struct op *op, const char *what, uint64_t deadline_ns)
{
    int reason = 0;
    while (op->in_flight) {
        if (reason != 0) {
            (void)fiber_park_through(what, 0);
            continue;
        }
        reason = fiber_park(what, deadline_ns);
        if (reason != 0 && op->in_flight) {
            op_cancel(ops, op);
        }
    }
    int result = op->result;
    record_retire(ops, op);
    /* Cancelled by us: say why. Whatever else it ended with counts, also when it raced the cancel. */
    return result == -ECANCELED && reason != 0 ? reason : result;
}

void op_cancel(struct ops *ops, struct op *op)
{
    must(op->in_flight);
    if (op->cancelling) {
        return;
    }
    op->cancelling = true;
    struct io_uring_sqe *sqe = ring_sqe(ops->ring);
    io_uring_prep_cancel64(sqe, (uint64_t)op->generation << 32 | op->index, 0);
    io_uring_sqe_set_flags(sqe, IOSQE_CQE_SKIP_SUCCESS);
    io_uring_sqe_set_data64(sqe, NOBODY);
}

ssize_t op_send(struct ops *ops, int fd, struct op_bytes bytes, uint64_t deadline_ns)
{
    struct op *op = awaited(ops);
    if (op == NULL) {
        return -ENOMEM;
    }
    struct io_uring_sqe *sqe = ring_sqe(ops->ring);
    io_uring_prep_send(sqe, fd, bytes.src, bytes.length, MSG_WAITALL | MSG_NOSIGNAL);
    submit_as(sqe, op);
    return op_await(ops, op, "send", deadline_ns);
}

int op_connect(struct ops *ops, int fd, const struct sys_address *address, uint64_t deadline_ns)
{
    struct op *op = awaited(ops);
    if (op == NULL) {
        return -ENOMEM;
    }
    struct io_uring_sqe *sqe = ring_sqe(ops->ring);
    io_uring_prep_connect(sqe, fd, (const struct sockaddr *)&address->storage, address->length);
    submit_as(sqe, op);
    return op_await(ops, op, "connect", deadline_ns);
}

struct op *op_recv_arm(struct ops *ops, int fd, size_t cap_bytes, struct op_target target)
{
    struct op *op = record_take(ops, target);
    if (op == NULL) {
        return NULL;
    }
    struct io_uring_sqe *sqe = ring_sqe(ops->ring);
    if (ops->ring->recv_cap) {
        io_uring_prep_recv_multishot(sqe, fd, NULL, 0, 0);
        sqe->optlen = (uint32_t)cap_bytes;
    } else {
        io_uring_prep_recv(sqe, fd, NULL, 0, 0);
    }
    sqe->flags |= IOSQE_BUFFER_SELECT;
    sqe->buf_group = RING_BUFFER_GROUP;
    submit_as(sqe, op);
    return op;
}

struct op *op_recv_into_arm(struct ops *ops, int fd, struct op_room room, struct op_target target)
{
    struct op *op = record_take(ops, target);
    if (op == NULL) {
        return NULL;
    }
    struct io_uring_sqe *sqe = ring_sqe(ops->ring);
    io_uring_prep_recv(sqe, fd, room.dst, room.capacity, 0);
    submit_as(sqe, op);
    return op;
}

struct op *op_send_arm(struct ops *ops, int fd, struct op_bytes bytes, struct op_target target)
{
    struct op *op = record_take(ops, target);
    if (op == NULL) {
        return NULL;
    }
    struct io_uring_sqe *sqe = ring_sqe(ops->ring);
    io_uring_prep_send(sqe, fd, bytes.src, bytes.length, MSG_WAITALL | MSG_NOSIGNAL);
    submit_as(sqe, op);
    return op;
}

struct op *op_poll_arm(struct ops *ops, int fd, unsigned events, struct op_target target)
{
    struct op *op = record_take(ops, target);
    if (op == NULL) {
        return NULL;
    }
    struct io_uring_sqe *sqe = ring_sqe(ops->ring);
    io_uring_prep_poll_multishot(sqe, fd, events);
    submit_as(sqe, op);
    return op;
}

struct op *op_poll_one_arm(struct ops *ops, int fd, unsigned events, struct op_target target)
{
    struct op *op = record_take(ops, target);
    if (op == NULL) {
        return NULL;
    }
    struct io_uring_sqe *sqe = ring_sqe(ops->ring);
    io_uring_prep_poll_add(sqe, fd, events | EPOLLEXCLUSIVE);
    submit_as(sqe, op);
    return op;
}

struct op *op_read_arm(struct ops *ops, int fd, uint64_t *count, struct op_target target)
{
    struct op *op = record_take(ops, target);
    if (op == NULL) {
        return NULL;
    }
    struct io_uring_sqe *sqe = ring_sqe(ops->ring);
    io_uring_prep_read(sqe, fd, count, sizeof(*count), 0);
    submit_as(sqe, op);
    return op;
}

char *op_buffer(struct ops *ops, uint16_t id)
{
    return ring_buffer(ops->ring, id);
}

void op_buffer_give(struct ops *ops, uint16_t id)
{
    ring_buffer_give(ops->ring, id);
}

int op_accept_direct(struct ops *ops, int listener)
{
    struct op *op = ops->ring->direct_slots ? awaited(ops) : NULL;
    if (op == NULL) {
        return -ENFILE;
    }
    struct io_uring_sqe *sqe = ring_sqe(ops->ring);
    io_uring_prep_accept_direct(sqe, listener, NULL, NULL, 0, IORING_FILE_INDEX_ALLOC);
    submit_as(sqe, op);
    /* A ring's accept waits, also on a non-blocking listener (IORING_ACCEPT_DONTWAIT is of 6.10).
     * A deadline in the past cancels it behind its one attempt. */
    int slot = op_await(ops, op, "accept a refusal", 1);
    return slot == -ETIMEDOUT ? -EAGAIN : slot;
}

ssize_t op_send_direct(struct ops *ops, int slot, struct op_bytes bytes, uint64_t deadline_ns)
{
    struct op *op = awaited(ops);
    if (op == NULL) {
        return -ENOMEM;
    }
    struct io_uring_sqe *sqe = ring_sqe(ops->ring);
    io_uring_prep_send(sqe, slot, bytes.src, bytes.length, MSG_WAITALL | MSG_NOSIGNAL);
    sqe->flags |= IOSQE_FIXED_FILE;
    submit_as(sqe, op);
    return op_await(ops, op, "send", deadline_ns);
}

ssize_t op_recv_direct(struct ops *ops, int slot, struct op_room room)
{
    struct op *op = awaited(ops);
    if (op == NULL) {
        return -ENOMEM;
    }
    struct io_uring_sqe *sqe = ring_sqe(ops->ring);
    io_uring_prep_recv(sqe, slot, room.dst, room.capacity, MSG_DONTWAIT);
    sqe->flags |= IOSQE_FIXED_FILE;
    submit_as(sqe, op);
    return op_await(ops, op, "recv", 0);
}

int op_close_direct(struct ops *ops, int slot)
{
    struct op *op = awaited(ops);
    if (op == NULL) {
        return -ENOMEM;
    }
    struct io_uring_sqe *sqe = ring_sqe(ops->ring);
    io_uring_prep_close_direct(sqe, (unsigned)slot);
    submit_as(sqe, op);
    return op_await(ops, op, "close", 0);
}
