/* SPDX-License-Identifier: Apache-2.0 */
/*
 * monitor.h - report fibers that hold their carrier for too long.
 *
 * A fiber that computes or blocks without parking lets every other fiber of its
 * carrier wait. A thread of its own looks at the carriers now and then; when one
 * has run the same fiber past the threshold it is interrupted with SIGURG and
 * writes down its C stack, which the monitor logs, at most 5 times a minute.
 */
#ifndef RING_MONITOR_H
#define RING_MONITOR_H

#include <stdint.h>

#include "base/attr.h"
#include "fiber/fiber.h"
#include "ring/carrier.h"

#define MONITOR_HOLDS_KEPT 8

/* One time that a fiber held its carrier for longer than the threshold. */
struct monitor_hold {
    char fiber[FIBER_NAME_SIZE]; /* its name: "http-8080-conn-12" */
    uint64_t fiber_id;
    unsigned carrier; /* number */
    uint64_t held_ns;
    uint64_t ended_wall_ns; /* since 1970 */
};

/* All of them since monitor_start. Each counts when it has ended, whether it was logged or not. */
struct monitor_holds {
    uint64_t threshold_ns;
    uint64_t count;
    uint64_t total_ns;
    uint64_t longest_ns;
    unsigned holding; /* carriers that are held so long at this moment, not counted yet */
    unsigned kept;    /* of last, newest first */
    struct monitor_hold last[MONITOR_HOLDS_KEPT];
};

/*
 * monitor_start - watch these carriers until monitor_stop; one in a process.
 *
 * @threshold_ns  how long a fiber may hold its carrier
 *
 * Returns  0; -EAGAIN no thread
 * Source   sigaction(2), tgkill(2), backtrace(3)
 */
int monitor_start(struct carrier *carriers, unsigned count, uint64_t threshold_ns) WARN_UNUSED;

/* monitor_holds - any thread, while the carriers are there; zeroes where monitor_start was not called. */
void monitor_holds(struct monitor_holds *holds);

/* monitor_stop - before the carriers end; blocks until the thread has ended. */
void monitor_stop(void);

#endif
