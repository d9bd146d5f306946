/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_submit.c - the scripted kernel takes requests: what it would refuse, what
 * no program means, and cancels. kernel_op.c executes them.
 */
#include "kernel_parts.h"

#include <errno.h>
#include <stdlib.h>

static void cancel(struct kernel_ring *ring, const struct io_uring_sqe *sqe)
{
    int result = kernel__script(KERNEL_CANCEL, &(struct kernel_request){.sqe = sqe}, NULL);
    struct kernel_op *target = NULL;
    for (size_t i = 0; result == 0 && i < ring->op_count; i++) {
        if (ring->ops[i]->sqe.user_data == sqe->addr) {
            target = ring->ops[i];
        }
    }
    if (target == NULL) {
        result = result != 0 ? result : -ENOENT;
    } else if (target->cancelled) {
        result = -EALREADY;
    } else {
        target->cancelled = true;
        target->races = kernel__op_is_ready(ring, target) &&
                        kernel__fault("!done although cancelled", kernel_knobs.race_percent);
        /* What its own result says nothing about: the target has a completion of its own. */
        result = target->races && !kernel__is_multishot(target) ? -EALREADY : 0;
    }
    if (result != 0 || (sqe->flags & IOSQE_CQE_SKIP_SUCCESS) == 0) {
        kernel__complete(ring, sqe->user_data, result, 0);
    }
}

static enum kernel_call call_of(const struct io_uring_sqe *sqe)
{
    switch (sqe->opcode) {
    case IORING_OP_RECV:
        return KERNEL_RECV;
    case IORING_OP_SEND:
        return KERNEL_SEND;
    case IORING_OP_CONNECT:
        return KERNEL_CONNECT;
    case IORING_OP_POLL_ADD:
        return KERNEL_POLL;
    case IORING_OP_READ:
        return KERNEL_READ;
    case IORING_OP_ACCEPT:
        return KERNEL_ACCEPT_DIRECT;
    case IORING_OP_SHUTDOWN:
    case IORING_OP_CLOSE:
        return KERNEL_CALLS;
    default:
        kernel_violation("opcode %u is not known here", sqe->opcode);
    }
}

/* check - what the real one would refuse, or what no program means. */
static void check(const struct kernel_ring *ring, const struct io_uring_sqe *sqe)
{
    if (sqe->user_data == 0) {
        kernel_violation("opcode %u carries no user_data", sqe->opcode);
    }
    for (size_t i = 0; i < ring->op_count; i++) {
        if (ring->ops[i]->sqe.user_data == sqe->user_data) {
            kernel_violation("user_data %llx is in flight already",
                             (unsigned long long)sqe->user_data);
        }
    }
    if (sqe->opcode == IORING_OP_RECV) {
        bool multishot = (sqe->ioprio & IORING_RECV_MULTISHOT) != 0;
        bool buffers = (sqe->flags & IOSQE_BUFFER_SELECT) != 0;
        if ((multishot && (!buffers || sqe->len != 0)) ||
            (sqe->optlen != 0 && (!multishot || !kernel_knobs.recv_cap)) ||
            (buffers && sqe->buf_group != RING_BUFFER_GROUP) || (!buffers && sqe->addr == 0)) {
            kernel_violation("a recv that the kernel would refuse");
        }
    }
    if (sqe->opcode == IORING_OP_ACCEPT && sqe->file_index != IORING_FILE_INDEX_ALLOC) {
        kernel_violation("an accept for no direct slot");
    }
}

static struct kernel_file *file_of(const struct kernel_ring *ring, const struct io_uring_sqe *sqe)
{
    bool direct = (sqe->flags & IOSQE_FIXED_FILE) != 0;
    unsigned slot = (unsigned)sqe->fd;
    if (sqe->opcode == IORING_OP_CLOSE) {
        direct = true;
        slot = sqe->file_index - 1;
    }
    if (!direct) {
        return kernel__file_at(sqe->fd);
    }
    if (slot >= RING_DIRECT_SLOTS || ring->slots[slot] == NULL) {
        kernel_violation("direct slot %u is used but empty", slot);
    }
    return ring->slots[slot];
}

void kernel__submit(struct kernel_ring *ring, const struct io_uring_sqe *sqe)
{
    kernel__note("submit", sqe->opcode, (uint64_t)(int64_t)sqe->fd, sqe->user_data);
    if (sqe->opcode == IORING_OP_ASYNC_CANCEL) {
        cancel(ring, sqe);
        return;
    }
    check(ring, sqe);
    struct kernel_op *op = calloc(1, sizeof(*op));
    if (op == NULL) {
        abort();
    }
    op->sqe = *sqe;
    op->file = file_of(ring, sqe);
    op->first = true;
    op->cap_left = sqe->opcode == IORING_OP_RECV && sqe->optlen != 0 ? sqe->optlen : SIZE_MAX;
    op->forced_short = SIZE_MAX;
    enum kernel_call call = call_of(sqe);
    if (call != KERNEL_CALLS) {
        struct kernel_request request = {.file = op->file, .sqe = sqe};
        op->forced_error = kernel__script(call, &request, &op->forced_short);
    }
    if (ring->op_count == ring->op_capacity) {
        ring->op_capacity = ring->op_capacity * 2 + 64;
        ring->ops = realloc(ring->ops, ring->op_capacity * sizeof(struct kernel_op *));
        if (ring->ops == NULL) {
            abort();
        }
    }
    ring->ops[ring->op_count++] = op;
    op->file->ops++;
    /* An accept is always tried when it is submitted: a cancel right behind it does not beat it. */
    bool late =
        sqe->opcode != IORING_OP_ACCEPT &&
        (kernel_knobs.slow_percent > 0 || kernel__fault("!late", kernel_knobs.late_percent));
    if (!late && kernel__op_run(ring, op)) {
        kernel__op_forget(ring, op);
    }
}

unsigned kernel_ops_in_flight(void)
{
    size_t count = 0;
    kernel__lock();
    for (const struct kernel_ring *ring = kernel__rings(); ring != NULL; ring = ring->next) {
        count += ring->op_count;
    }
    kernel__unlock();
    return (unsigned)count;
}
