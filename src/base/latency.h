/* SPDX-License-Identifier: Apache-2.0 */
/*
 * latency.h - how often which time was measured, in few bytes: 3 % exact.
 *
 * Log-linear: 64 counters of width 1 up to 63 ns, then 32 more for each doubling,
 * twice as wide each time. A value and the highest one that shares its counter so
 * differ by less than one in 32, whatever their size.
 *
 *   value   0 .... 63 | 64 ... 127 | 128 ... 255 | ... 2^40 ns, 18 minutes
 *   width   1         | 2          | 4           |
 *
 * One thread records, any thread reads, without a lock: all counters are atomic
 * and relaxed. What is read while it changes may lack the newest values. Pure.
 */
#ifndef BASE_LATENCY_H
#define BASE_LATENCY_H

#include <stdint.h>

#include "base/log_linear.h"

#define LATENCY_VALUE_BITS 40 /* larger values count as the largest */
#define LATENCY_SUB_BITS 6
#define LATENCY_SLOTS LOG_LINEAR_SLOTS(LATENCY_VALUE_BITS, LATENCY_SUB_BITS)

#define LATENCY_ALL LOG_LINEAR_ALL

/* Zeroed, it is empty. 9 KiB: not for stacks. */
struct latency {
    uint64_t max; /* as recorded */
    uint64_t slots[LATENCY_SLOTS];
};

/* latency__slot - the counter of a value. */
static inline unsigned latency__slot(uint64_t ns)
{
    return (unsigned)log_linear_slot(ns, LATENCY_VALUE_BITS, LATENCY_SUB_BITS);
}

/* latency_record - one thread's; two nanoseconds, no locked instruction. */
static inline void latency_record(struct latency *latency, uint64_t ns)
{
    uint64_t *slot = &latency->slots[latency__slot(ns)];
    __atomic_store_n(slot, *slot + 1, __ATOMIC_RELAXED);
    if (ns > latency->max) {
        __atomic_store_n(&latency->max, ns, __ATOMIC_RELAXED);
    }
}

/* latency_add - what other has counted, which may be recording, to a copy of the caller's own. */
void latency_add(struct latency *copy, const struct latency *other);

/* latency_count - how many values. Of a copy. */
uint64_t latency_count(const struct latency *copy);

/*
 * latency_percentile - the time that so many thousandths of a percent of all do not
 * exceed: the highest of its counter, but never above the maximum. 0 while empty. Of a copy.
 */
uint64_t latency_percentile(const struct latency *copy, uint32_t thousandths);

#endif
