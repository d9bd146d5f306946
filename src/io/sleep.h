/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sleep.h - wait for a moment: the fiber parks, a platform thread blocks.
 */
#ifndef IO_SLEEP_H
#define IO_SLEEP_H

#include <stdint.h>

/*
 * sleep_until - go on when CLOCK_MONOTONIC reads deadline_ns, never earlier.
 *
 * Returns  0; -ECANCELED the fiber, or the platform thread's job, was cancelled (its client reset)
 * Parks    yes; on a platform thread it blocks that thread
 */
int sleep_until(uint64_t deadline_ns);

/* sleep_for - the same, counted from now. */
int sleep_for(uint64_t duration_ns);

#endif
