/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring_restrict.c - see ring_restrict.h. An operation that op.c begins to use needs its line here:
 * without it the kernel ends it with -EACCES.
 */
#include "ring/ring_restrict.h"

#include <liburing.h>
#include <stddef.h>

static const enum io_uring_op operations[] = {
    IORING_OP_RECV, IORING_OP_SEND,   IORING_OP_POLL_ADD,     IORING_OP_CONNECT,
    IORING_OP_READ, IORING_OP_ACCEPT, IORING_OP_ASYNC_CANCEL, IORING_OP_CLOSE,
};

/* What ring_fini does to an enabled ring; io_uring_queue_exit lets the registered descriptor go. */
static const enum io_uring_register_op registrations[] = {
    IORING_UNREGISTER_PBUF_RING,
    IORING_UNREGISTER_RING_FDS,
};

#define FLAGS (IOSQE_BUFFER_SELECT | IOSQE_FIXED_FILE | IOSQE_CQE_SKIP_SUCCESS)

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

unsigned ring__restrict(struct io_uring *uring)
{
    struct io_uring_restriction list[COUNT(operations) + COUNT(registrations) + 1] = {{0}};
    unsigned count = 0;

    for (size_t i = 0; i < COUNT(operations); i++, count++) {
        list[count].opcode = IORING_RESTRICTION_SQE_OP;
        list[count].sqe_op = (__u8)operations[i];
    }
    for (size_t i = 0; i < COUNT(registrations); i++, count++) {
        list[count].opcode = IORING_RESTRICTION_REGISTER_OP;
        list[count].register_op = (__u8)registrations[i];
    }
    list[count].opcode = IORING_RESTRICTION_SQE_FLAGS_ALLOWED;
    list[count++].sqe_flags = FLAGS;
    return io_uring_register_restrictions(uring, list, count) == 0 ? (unsigned)COUNT(operations)
                                                                   : 0;
}
