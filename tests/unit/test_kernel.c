/* SPDX-License-Identifier: Apache-2.0 */
/* links: scripted kernel */
/*
 * Property: the scripted kernel that other tests stand on notices what a program
 * must not do, and does what TCP and io_uring do where programs would notice.
 * Method: each misdeed in a child that is expected to die with the right words;
 * the rest by hand, without carriers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "fiber_kit.h"
#include "kernel.h"
#include "ring/ring.h"
#include "ring/sys.h"

static struct ring ring;

static void start_ring(void)
{
    struct ring_setup setup = {0};
    kernel_start(0);
    kernel_knobs.late_percent = kernel_knobs.chop_percent = kernel_knobs.break_percent = 0;
    assert_int_equal(ring_init(&ring, &setup), 0);
}

static void submit_recv(int fd, uint64_t user_data)
{
    struct io_uring_sqe *sqe = ring_sqe(&ring);
    io_uring_prep_recv_multishot(sqe, fd, NULL, 0, 0);
    sqe->flags |= IOSQE_BUFFER_SELECT;
    sqe->optlen = 2 * RING_BUFFER_BYTES;
    io_uring_sqe_set_data64(sqe, user_data);
    ring_enter(&ring, 0);
}

/* ------------------------------------------------------------ misdeeds */

static void close_with_op(void *unused)
{
    struct kernel_file *peer;
    (void)unused;
    start_ring();
    int fd = kernel_pair(&peer);
    submit_recv(fd, 7);
    sys_close(fd);
}

static void close_twice(void *unused)
{
    struct kernel_file *peer;
    (void)unused;
    start_ring();
    int fd = kernel_pair(&peer);
    sys_close(fd);
    sys_close(fd);
}

static void give_twice(void *unused)
{
    (void)unused;
    start_ring();
    ring_buffer_give(&ring, 3);
}

static void same_user_data(void *unused)
{
    struct kernel_file *peer;
    (void)unused;
    start_ring();
    submit_recv(kernel_pair(&peer), 7);
    submit_recv(kernel_pair(&peer), 7);
}

static void leave_buffer(void *unused)
{
    struct kernel_file *peer;
    (void)unused;
    start_ring();
    submit_recv(kernel_pair(&peer), 7);
    peer_say(peer, "x");
    peer_finish(peer);
    ring_enter(&ring, 0);
    ring_fini(&ring);
}

static void leave_descriptor(void *unused)
{
    struct kernel_file *peer;
    (void)unused;
    start_ring();
    ring_fini(&ring);
    (void)kernel_pair(&peer);
    kernel_stop();
}

static void test_misdeeds_are_noticed(void **state)
{
    static const struct {
        void (*deed)(void *unused);
        const char *words;
    } cases[] = {
        {close_with_op, "with 1 ops in flight"},   {close_twice, "not open"},
        {give_twice, "given back twice"},          {same_user_data, "in flight already"},
        {leave_buffer, "has not been given back"}, {leave_descriptor, "left open"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[4096];
        int status = kit_child(cases[i].deed, NULL, text, sizeof(text));
        if (!WIFSIGNALED(status) || strstr(text, cases[i].words) == NULL) {
            fail_msg("case %zu: status %x, said \"%s\", expected \"%s\"", i, (unsigned)status, text,
                     cases[i].words);
        }
    }
}

/* ------------------------------------------------------------ likeness */

static void test_capped_multishot_recv_ends_by_itself(void **state)
{
    (void)state;
    char bytes[3 * RING_BUFFER_BYTES];
    struct ring_event events[8];
    struct kernel_file *peer;

    start_ring();
    int fd = kernel_pair(&peer);
    memset(bytes, 'x', sizeof(bytes));
    submit_recv(fd, 7);
    assert_int_equal(peer_send(peer, bytes, sizeof(bytes)), sizeof(bytes));
    ring_enter(&ring, 0);
    assert_int_equal(ring_reap(&ring, events, 8), 2);
    assert_int_equal(events[0].result, RING_BUFFER_BYTES);
    assert_true((events[0].flags & IORING_CQE_F_MORE) != 0);
    assert_int_equal(events[1].result, RING_BUFFER_BYTES);
    assert_true((events[1].flags & IORING_CQE_F_MORE) == 0);
    assert_int_equal(peer_unread(peer), RING_BUFFER_BYTES);
    assert_int_equal(kernel_buffers_out(), 2);
    for (int i = 0; i < 2; i++) {
        ring_buffer_give(&ring, (uint16_t)(events[i].flags >> IORING_CQE_BUFFER_SHIFT));
    }
    sys_close(fd);
    /* bytes were unread: the peer meets a reset */
    assert_int_equal(peer_receive(peer, bytes, 1), -ECONNRESET);
    ring_fini(&ring);
    kernel_stop();
}

static void test_half_close_reset_and_their_errors(void **state)
{
    (void)state;
    char byte;
    struct kernel_file *peer;

    start_ring();
    int fd = kernel_pair(&peer);
    assert_int_equal(sys_recv(fd, &byte, 1), -EAGAIN);
    peer_finish(peer);
    assert_int_equal(sys_recv(fd, &byte, 1), 0);
    assert_int_equal(sys_send(fd, "x", 1), 1); /* a half-closed peer still reads */
    assert_string_equal(peer_heard(peer), "x");
    assert_int_equal(sys_poll(fd, 0, kernel_now_ns()), 0);
    peer_reset(peer);
    assert_int_equal(sys_poll(fd, 0, 0) & (POLLERR | POLLHUP), POLLERR | POLLHUP);
    assert_int_equal(sys_send(fd, "x", 1), -EPIPE);
    sys_close(fd);

    fd = kernel_pair(&peer);
    peer_close(peer);
    assert_int_equal(sys_send(fd, "x", 1), 1);
    assert_int_equal(sys_recv(fd, &byte, 1), -EPIPE); /* after a FIN: not ECONNRESET */
    sys_close(fd);

    fd = kernel_pair(&peer);
    peer_reset(peer);
    assert_int_equal(sys_recv(fd, &byte, 1), -ECONNRESET);
    assert_int_equal(sys_recv(fd, &byte, 1), 0);
    sys_close(fd);
    ring_fini(&ring);
    kernel_stop();
}

static void test_a_multishot_poll_tells_edges(void **state)
{
    (void)state;
    struct ring_event event;
    uint16_t port = 0;

    start_ring();
    int listener = sys_listen(NULL, &port);
    struct io_uring_sqe *sqe = ring_sqe(&ring);
    io_uring_prep_poll_multishot(sqe, listener, POLLIN);
    io_uring_sqe_set_data64(sqe, 5);
    ring_enter(&ring, 0);
    assert_int_equal(ring_reap(&ring, &event, 1), 0);
    assert_non_null(kernel_connect(port));
    ring_enter(&ring, 0);
    assert_int_equal(ring_reap(&ring, &event, 1), 1);
    assert_int_equal(event.flags, IORING_CQE_F_MORE);
    ring_enter(&ring, 0);
    assert_int_equal(ring_reap(&ring, &event, 1), 0); /* it stays ready: no edge */
    assert_non_null(kernel_connect(port));
    ring_enter(&ring, 0);
    assert_int_equal(ring_reap(&ring, &event, 1), 1);
    sqe = ring_sqe(&ring);
    io_uring_prep_cancel64(sqe, 5, 0);
    sqe->flags |= IOSQE_CQE_SKIP_SUCCESS;
    io_uring_sqe_set_data64(sqe, 0);
    do {
        ring_enter(&ring, 0);
    } while (ring_reap(&ring, &event, 1) == 0 || event.result != -ECANCELED);
    assert_int_equal(event.user_data, 5);
    sys_close(listener);
    ring_fini(&ring);
    kernel_stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_misdeeds_are_noticed),
        cmocka_unit_test(test_capped_multishot_recv_ends_by_itself),
        cmocka_unit_test(test_half_close_reset_and_their_errors),
        cmocka_unit_test(test_a_multishot_poll_tells_edges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
