/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_linear.h - counters for values of any size, of about the same relative width:
 * HdrHistogram's scheme. Pure.
 *
 *   2^sub_bits counters of width 1, then half as many for each doubling, twice as wide
 *   each time; values of more than value_bits bits count as the largest.
 *
 * base/latency and the load generator's histogram count so, one coarse and shared
 * between threads, the other fine.
 */
#ifndef BASE_LOG_LINEAR_H
#define BASE_LOG_LINEAR_H

#include <stddef.h>
#include <stdint.h>

#define LOG_LINEAR_SLOTS(value_bits, sub_bits)                                                     \
    ((size_t)((value_bits) - (sub_bits) + 2) << ((sub_bits)-1))

/* A percentile is written in thousandths of a percent: 99 990 is the 99.99th. */
#define LOG_LINEAR_ALL 100000u

/* log_linear_slot - the counter of a value. */
static inline size_t log_linear_slot(uint64_t value, unsigned value_bits, unsigned sub_bits)
{
    const uint64_t limit = (UINT64_C(1) << value_bits) - 1;
    value = value < limit ? value : limit;
    unsigned doubling =
        63u - (unsigned)__builtin_clzll(value | ((UINT64_C(1) << sub_bits) - 1)) - (sub_bits - 1);
    return (size_t)(((uint64_t)doubling << (sub_bits - 1)) + (value >> doubling));
}

/* log_linear_low - the lowest value that a counter counts, and how many there are. */
uint64_t log_linear_low(size_t slot, unsigned sub_bits, uint64_t *width);

/* What has been counted. */
struct log_linear {
    const uint64_t *slots;
    size_t slot_count;
    unsigned sub_bits;
    uint64_t count; /* of values */
    uint64_t max;   /* as it was recorded */
};

/*
 * log_linear_percentile - the value that so many thousandths of a percent of all do not
 * exceed: the highest of its counter, but never above max. 0 while nothing is counted.
 */
uint64_t log_linear_percentile(const struct log_linear *counted, uint32_t thousandths);

#endif
