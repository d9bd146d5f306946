/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_ring_restrict.c - property: a ring takes the operations of op.c and refuses every other one,
 * and it can register nothing more. Method: a ring of the real kernel, each operation submitted
 * with a descriptor that does not exist.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>

#include "base/time.h"
#include "ring/ring.h"

static struct ring ring;

static int set_up(void **state)
{
    (void)state;
    struct ring_setup setup = {.buffers = 64};
    assert_int_equal(ring_init(&ring, &setup), 0);
    return 0;
}

static int take_down(void **state)
{
    (void)state;
    ring_fini(&ring);
    return 0;
}

/* ask - what the ring says to an operation on a descriptor that does not exist. */
static int ask(unsigned operation, unsigned flags)
{
    struct io_uring_sqe *sqe = ring_sqe(&ring);
    struct ring_event event = {.result = 1};
    sqe->opcode = (__u8)operation;
    sqe->fd = -1;
    sqe->flags = (__u8)flags;
    ring_enter(&ring, NS_PER_S);
    assert_int_equal(ring_reap(&ring, &event, 1), 1);
    return event.result;
}

static bool is_in_use(unsigned operation)
{
    static const unsigned in_use[] = {
        IORING_OP_RECV, IORING_OP_SEND,   IORING_OP_POLL_ADD,     IORING_OP_CONNECT,
        IORING_OP_READ, IORING_OP_ACCEPT, IORING_OP_ASYNC_CANCEL, IORING_OP_CLOSE,
    };
    for (size_t i = 0; i < sizeof(in_use) / sizeof(in_use[0]); i++) {
        if (in_use[i] == operation) {
            return true;
        }
    }
    return false;
}

static void every_other_operation_is_refused(void **state)
{
    (void)state;
    if (ring.restricted == 0) {
        skip(); /* a kernel that has no restrictions */
    }
    for (unsigned operation = 0; operation < IORING_OP_LAST; operation++) {
        int result = ask(operation, 0);
        if ((result == -EACCES) == is_in_use(operation)) {
            fail_msg("operation %u: %d", operation, result);
        }
    }
}

static void a_flag_that_is_not_in_use_is_refused(void **state)
{
    (void)state;
    if (ring.restricted == 0) {
        skip();
    }
    assert_int_equal(ask(IORING_OP_READ, IOSQE_ASYNC), -EACCES);
    assert_int_equal(ask(IORING_OP_READ, IOSQE_IO_DRAIN), -EACCES);
    assert_int_not_equal(ask(IORING_OP_READ, IOSQE_FIXED_FILE), -EACCES);
}

static void nothing_more_can_be_registered(void **state)
{
    (void)state;
    if (ring.restricted == 0) {
        skip();
    }
    int counter = 0;
    struct io_uring_restriction any = {.opcode = IORING_RESTRICTION_SQE_OP};
    assert_int_equal(io_uring_register_eventfd(&ring.uring, counter), -EACCES);
    assert_int_equal(io_uring_register_restrictions(&ring.uring, &any, 1), -EACCES);
    assert_int_equal(io_uring_register_personality(&ring.uring), -EACCES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_other_operation_is_refused, set_up, take_down),
        cmocka_unit_test_setup_teardown(a_flag_that_is_not_in_use_is_refused, set_up, take_down),
        cmocka_unit_test_setup_teardown(nothing_more_can_be_registered, set_up, take_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
