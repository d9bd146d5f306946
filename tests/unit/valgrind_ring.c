/* SPDX-License-Identifier: Apache-2.0 */
/*
 * valgrind_ring.c - waiting on a real ring under valgrind, in slices of poll(2).
 *
 * Before 3.21 valgrind does not know that io_uring_enter(2) may block: the thread
 * that waits in it keeps valgrind's one lock, and all the others stand still
 * (KDE bug 463859, liburing #657). The unit tests are linked with --wrap for the
 * two calls that wait; without valgrind they are liburing's own. The slices are
 * short since completions of a DEFER_TASKRUN ring wake no poller.
 */
#include <errno.h>
#include <liburing.h>
#include <poll.h>
#include <stdint.h>

#include "base/time.h"
#include "fiber_kit.h"

#define SLICE_MS 2

int __real_io_uring_submit_and_wait(struct io_uring *ring, unsigned count);
int __wrap_io_uring_submit_and_wait(struct io_uring *ring, unsigned count);
int __real_io_uring_submit_and_wait_timeout(struct io_uring *ring, struct io_uring_cqe **first,
                                            unsigned count, struct __kernel_timespec *wait,
                                            sigset_t *mask);
int __wrap_io_uring_submit_and_wait_timeout(struct io_uring *ring, struct io_uring_cqe **first,
                                            unsigned count, struct __kernel_timespec *wait,
                                            sigset_t *mask);

/* Submit, and return what that did once count completions are there or until_ns has come. */
static int wait_in_slices(struct io_uring *ring, unsigned count, uint64_t until_ns)
{
    int result = io_uring_submit_and_get_events(ring);
    while (result >= 0 && io_uring_cq_ready(ring) < count) {
        if (kit_clock_ns() >= until_ns) {
            return -ETIME;
        }
        struct pollfd polled = {.fd = ring->ring_fd, .events = POLLIN};
        (void)poll(&polled, 1, SLICE_MS);
        int events = io_uring_get_events(ring);
        result = events < 0 ? events : result;
    }
    return result;
}

int __wrap_io_uring_submit_and_wait(struct io_uring *ring, unsigned count)
{
    return kit_on_valgrind() ? wait_in_slices(ring, count, UINT64_MAX)
                             : __real_io_uring_submit_and_wait(ring, count);
}

int __wrap_io_uring_submit_and_wait_timeout(struct io_uring *ring, struct io_uring_cqe **first,
                                            unsigned count, struct __kernel_timespec *wait,
                                            sigset_t *mask)
{
    if (!kit_on_valgrind()) {
        return __real_io_uring_submit_and_wait_timeout(ring, first, count, wait, mask);
    }
    uint64_t wait_ns = (uint64_t)wait->tv_sec * NS_PER_S + (uint64_t)wait->tv_nsec;
    return wait_in_slices(ring, count, kit_clock_ns() + wait_ns);
}
