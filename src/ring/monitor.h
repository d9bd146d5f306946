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
#include "ring/carrier.h"

/*
 * monitor_start - watch these carriers until monitor_stop; one in a process.
 *
 * @threshold_ns  how long a fiber may hold its carrier
 *
 * Returns  0; -EAGAIN no thread
 * Source   sigaction(2), tgkill(2), backtrace(3)
 */
int monitor_start(struct carrier *carriers, unsigned count, uint64_t threshold_ns) WARN_UNUSED;

/* monitor_stop - before the carriers end; blocks until the thread has ended. */
void monitor_stop(void);

#endif
