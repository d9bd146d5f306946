/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_op.c - the scripted kernel executes requests.
 *
 * A request is tried when it is submitted and again at each enter, in an order
 * that the seed draws, until it has its final completion. Doing it late (bytes
 * still in the socket, no completion yet) is what a kernel with DEFER_TASKRUN does.
 */
#include "kernel_parts.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#define RECVS_PER_WAKE 32

bool kernel__is_multishot(const struct kernel_op *op)
{
    return (op->sqe.opcode == IORING_OP_RECV && (op->sqe.ioprio & IORING_RECV_MULTISHOT) != 0) ||
           (op->sqe.opcode == IORING_OP_POLL_ADD && (op->sqe.len & IORING_POLL_ADD_MULTI) != 0);
}

static bool takes_buffer(const struct kernel_op *op)
{
    return (op->sqe.flags & IOSQE_BUFFER_SELECT) != 0;
}

static unsigned poll_result(const struct kernel_op *op)
{
    /* IO_POLL_UNMASK of the kernel's poll.c: POLLRDHUP is told unasked, as poll(2) never does. */
    return kernel__ready(op->file) & (op->sqe.poll32_events | POLLERR | POLLHUP | POLLRDHUP);
}

bool kernel__op_is_ready(const struct kernel_ring *ring, const struct kernel_op *op)
{
    const struct kernel_file *file = op->file;
    switch (op->sqe.opcode) {
    case IORING_OP_RECV:
        return (kernel__ready(file) & POLLIN) != 0 || (op->sqe.msg_flags & MSG_DONTWAIT) != 0 ||
               (op->first && takes_buffer(op) && ring->buffers_free == 0);
    case IORING_OP_SEND:
        return (kernel__ready(file) & (POLLOUT | POLLERR | POLLHUP)) != 0 ||
               (file->connected && file->other->closed);
    case IORING_OP_CONNECT:
        return op->first || file->connected || file->error != 0;
    case IORING_OP_POLL_ADD:
        return poll_result(op) != 0 &&
               (!kernel__is_multishot(op) || op->first || op->seen_wakes != file->wakes);
    case IORING_OP_READ:
        return file->count > 0;
    case IORING_OP_ACCEPT:
        return file->queue_first != NULL; /* it waits, on a non-blocking listener too */
    default:
        return true;
    }
}

static bool waits_slowly(const struct kernel_op *op)
{
    return kernel_knobs.slow_percent > 0 && op->not_before_ns > kernel_now_ns();
}

bool kernel__op_can_run(const struct kernel_ring *ring, const struct kernel_op *op)
{
    return !waits_slowly(op) &&
           (op->cancelled || op->forced_error != 0 || kernel__op_is_ready(ring, op));
}

/* is_slow - what can run is drawn to be slow, once. */
static bool is_slow(struct kernel_op *op)
{
    if (kernel_knobs.slow_percent == 0 || op->slowness_drawn ||
        op->sqe.opcode == IORING_OP_ACCEPT) { /* of which the first attempt counts */
        return false;
    }
    op->slowness_drawn = true;
    if (!kernel__fault("!slow", kernel_knobs.slow_percent)) {
        return false;
    }
    op->not_before_ns = kernel_now_ns() + 1 + kernel_random(kernel_knobs.slow_ns);
    return true;
}

uint64_t kernel__next_op_ns(const struct kernel_ring *ring)
{
    uint64_t next_ns = UINT64_MAX;
    for (size_t i = 0; i < ring->op_count; i++) {
        const struct kernel_op *op = ring->ops[i];
        if (waits_slowly(op) && op->not_before_ns < next_ns) {
            next_ns = op->not_before_ns;
        }
    }
    return next_ns;
}

static bool finish(struct kernel_ring *ring, const struct kernel_op *op, int result)
{
    kernel__complete(ring, op->sqe.user_data, result, 0);
    return true;
}

static void *address_of(uint64_t address)
{
    return (void *)(uintptr_t)address; /* NOLINT: as the program gave it */
}

/* recv_piece - one completion of a recv. Returns true when it was the final one. */
static bool recv_piece(struct kernel_ring *ring, struct kernel_op *op)
{
    struct kernel_file *file = op->file;
    bool multishot = kernel__is_multishot(op);
    char *dst = address_of(op->sqe.addr);
    size_t capacity = op->sqe.len;
    unsigned id = 0, flags = 0;

    if (takes_buffer(op)) {
        if (ring->buffers_free == 0) {
            return finish(ring, op, -ENOBUFS);
        }
        capacity = RING_BUFFER_BYTES;
    }
    if (op->cap_left < capacity && !kernel__chance(kernel_knobs.uncut_percent)) {
        capacity = op->cap_left;
    }
    if (op->forced_short < capacity) {
        capacity = op->forced_short;
    } else if (file->rx_length > 1 && kernel__fault("!short recv", kernel_knobs.chop_percent)) {
        size_t most = file->rx_length < capacity ? file->rx_length : capacity;
        capacity = 1 + kernel_random(most);
    }
    op->forced_short = SIZE_MAX;
    if (file->rx_length == 0) {
        ssize_t result = kernel__recv(file, NULL, 0, false);
        if (result == 0 && takes_buffer(op) && kernel__chance(10)) {
            /* Seen before 6.5: the end of the stream takes a buffer along. */
            flags = IORING_CQE_F_BUFFER | kernel__buffer_take(ring) << IORING_CQE_BUFFER_SHIFT;
        }
        kernel__complete(ring, op->sqe.user_data, (int)result, flags);
        return true;
    }
    if (takes_buffer(op)) {
        id = kernel__buffer_take(ring);
        dst = ring->buffers[id];
        flags = IORING_CQE_F_BUFFER | id << IORING_CQE_BUFFER_SHIFT;
    }
    ssize_t got = kernel__recv(file, dst, capacity, false);
    if (op->cap_left != SIZE_MAX) {
        op->cap_left -= (size_t)got < op->cap_left ? (size_t)got : op->cap_left;
    }
    bool more = multishot && op->cap_left > 0 && ring->cq_count < kernel_knobs.cq_entries &&
                !kernel__fault("!multishot ends", kernel_knobs.break_percent);
    kernel__complete(ring, op->sqe.user_data, (int)got, flags | (more ? IORING_CQE_F_MORE : 0));
    return !more;
}

static bool run_recv(struct kernel_ring *ring, struct kernel_op *op)
{
    for (int i = 0; i < RECVS_PER_WAKE && kernel__op_is_ready(ring, op); i++) {
        op->first = false;
        if ((op->sqe.msg_flags & MSG_DONTWAIT) != 0 && (kernel__ready(op->file) & POLLIN) == 0) {
            return finish(ring, op, -EAGAIN);
        }
        if (recv_piece(ring, op)) {
            return true;
        }
    }
    op->first = false;
    return false;
}

static bool run_send(struct kernel_ring *ring, struct kernel_op *op)
{
    const char *src = address_of(op->sqe.addr);
    size_t length = op->sqe.len - op->done;
    bool is_short = op->forced_short < length;

    if (is_short) {
        length = op->forced_short;
    } else if (length > 1 && kernel__fault("!send in pieces", kernel_knobs.chop_percent)) {
        length = 1 + kernel_random(length); /* the rest at a later enter */
    }
    ssize_t sent = kernel__send(op->file, src + op->done, length);
    if (sent == -EAGAIN) {
        return false;
    }
    if (sent < 0) {
        return finish(ring, op, op->done > 0 ? (int)op->done : (int)sent);
    }
    op->done += (size_t)sent;
    if (op->done == op->sqe.len || is_short || (op->sqe.msg_flags & MSG_WAITALL) == 0) {
        return finish(ring, op, (int)op->done);
    }
    return false;
}

static bool run_connect(struct kernel_ring *ring, struct kernel_op *op)
{
    struct kernel_file *file = op->file;
    int result = 0;
    if (op->first) {
        struct sys_address address = {.length = (socklen_t)op->sqe.off};
        memcpy(&address.storage, address_of(op->sqe.addr), address.length);
        result = kernel__connect(file, &address);
        op->first = false;
    } else if (!file->connected) {
        result = file->error != 0 ? file->error : -EINPROGRESS;
        file->error = 0;
    }
    return result != -EINPROGRESS && finish(ring, op, result);
}

static bool run_poll(struct kernel_ring *ring, struct kernel_op *op)
{
    unsigned ready = poll_result(op);
    op->first = false;
    op->seen_wakes = op->file->wakes;
    if (ready == 0) {
        return false;
    }
    /* A multishot does not go into the overflow: it ends with what finds no place. */
    bool more = kernel__is_multishot(op) && ring->cq_count < kernel_knobs.cq_entries &&
                !kernel__fault("!multishot ends", kernel_knobs.break_percent);
    kernel__complete(ring, op->sqe.user_data, (int)ready, more ? IORING_CQE_F_MORE : 0);
    return !more;
}

static bool run_read(struct kernel_ring *ring, struct kernel_op *op)
{
    if (op->file->kind != KERNEL_EVENTFD || op->sqe.len != sizeof(uint64_t)) {
        kernel_violation("read of descriptor %d", op->sqe.fd);
    }
    if (op->file->count == 0) {
        return false;
    }
    memcpy(address_of(op->sqe.addr), &op->file->count, sizeof(uint64_t));
    op->file->count = 0;
    return finish(ring, op, (int)sizeof(uint64_t));
}

static bool run_accept_direct(struct kernel_ring *ring, struct kernel_op *op)
{
    unsigned slot = 0;
    while (slot < RING_DIRECT_SLOTS && ring->slots[slot] != NULL) {
        slot++;
    }
    struct kernel_file *accepted = kernel__accept(op->file);
    if (slot == RING_DIRECT_SLOTS) { /* the slot is looked for when it is too late */
        kernel__release(accepted);
        return finish(ring, op, -ENFILE);
    }
    ring->slots[slot] = accepted;
    accepted->slot = (int)slot;
    return finish(ring, op, (int)slot);
}

static bool run_close_direct(struct kernel_ring *ring, struct kernel_op *op)
{
    if (op->file->ops > 1) {
        kernel_violation("direct slot %d is closed with %u ops in flight on it", op->file->slot,
                         op->file->ops - 1);
    }
    ring->slots[op->file->slot] = NULL;
    op->file->slot = -1;
    kernel__release(op->file);
    return finish(ring, op, 0);
}

bool kernel__op_run(struct kernel_ring *ring, struct kernel_op *op)
{
    if (op->forced_error != 0) {
        return finish(ring, op, op->forced_error);
    }
    if (op->cancelled) {
        if (!op->races || !kernel__op_is_ready(ring, op)) {
            return finish(ring, op, op->done > 0 ? (int)op->done : -ECANCELED);
        }
        op->races = false; /* what is ready wins; a multishot op then ends next time */
    }
    if (!kernel__op_is_ready(ring, op)) {
        op->first = op->first && op->sqe.opcode != IORING_OP_RECV;
        return false;
    }
    switch (op->sqe.opcode) {
    case IORING_OP_RECV:
        return run_recv(ring, op);
    case IORING_OP_SEND:
        return run_send(ring, op);
    case IORING_OP_CONNECT:
        return run_connect(ring, op);
    case IORING_OP_POLL_ADD:
        return run_poll(ring, op);
    case IORING_OP_READ:
        return run_read(ring, op);
    case IORING_OP_ACCEPT:
        return run_accept_direct(ring, op);
    case IORING_OP_CLOSE:
        return run_close_direct(ring, op);
    default: /* IORING_OP_SHUTDOWN */
        kernel__shutdown(op->file, (int)op->sqe.len);
        return finish(ring, op, 0);
    }
}

void kernel__op_forget(struct kernel_ring *ring, struct kernel_op *op)
{
    for (size_t i = 0; i < ring->op_count; i++) {
        if (ring->ops[i] == op) {
            ring->ops[i] = ring->ops[--ring->op_count];
            break;
        }
    }
    op->file->ops--;
    free(op);
}

void kernel__run_ops(struct kernel_ring *ring)
{
    size_t count = ring->op_count;
    struct kernel_op **turn = malloc((count + 1) * sizeof(struct kernel_op *));
    if (turn == NULL) {
        abort();
    }
    for (size_t i = 0; i < count; i++) { /* a random permutation of them */
        size_t j = kernel_random(i + 1);
        turn[i] = turn[j];
        turn[j] = ring->ops[i];
    }
    for (size_t i = 0; i < count; i++) {
        if (kernel__op_can_run(ring, turn[i]) && !is_slow(turn[i]) &&
            !kernel__fault("!late", kernel_knobs.late_percent) && kernel__op_run(ring, turn[i])) {
            kernel__op_forget(ring, turn[i]);
        }
    }
    free(turn);
}
