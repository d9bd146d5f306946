/* SPDX-License-Identifier: Apache-2.0 */
/*
 * histogram.h - how often which time was measured, to three significant digits.
 *
 * HdrHistogram's log-linear scheme: 2048 counters of width 1 up to 2047 ns, then
 * 1024 more for each doubling, twice as wide each time. So a value and the highest
 * one that shares its counter differ by less than one in 1024, whatever their size.
 *
 *   value   0 ........ 2047 | 2048 ...... 4095 | 4096 ...... 8191 | ... 2^47
 *   width   1               | 2                | 4                |
 *   slots   0 ........ 2047 | 2048 ...... 3071 | 3072 ...... 4095 |
 *
 * One thread records; histograms of several are merged. Pure.
 */
#ifndef BENCH_HISTOGRAM_H
#define BENCH_HISTOGRAM_H

#include <stdint.h>

#include "base/log_linear.h"

#define HISTOGRAM_VALUE_BITS 47 /* larger values, over 39 hours, count as the largest */
#define HISTOGRAM_SUB_BITS                                                                         \
    11 /* 2048 counters before the first doubling: three significant digits */
#define HISTOGRAM_SLOTS LOG_LINEAR_SLOTS(HISTOGRAM_VALUE_BITS, HISTOGRAM_SUB_BITS)

/* A percentile is written in thousandths of a percent: 99 999 is the 99.999th. */
#define PERCENTILE_ALL LOG_LINEAR_ALL

/* Zeroed, it is empty. 300 KiB: not for stacks. */
struct histogram {
    uint64_t count;
    uint64_t sum; /* of the values as they were recorded */
    uint64_t min; /* as recorded; 0 while empty */
    uint64_t max;
    uint64_t slots[HISTOGRAM_SLOTS];
};

void histogram_record(struct histogram *histogram, uint64_t value);

/* histogram_merge - add what other has counted. */
void histogram_merge(struct histogram *histogram, const struct histogram *other);

/*
 * histogram_percentile - the value that so many thousandths of a percent of all do
 * not exceed: the highest of its counter, but never above max. 0 while empty.
 */
uint64_t histogram_percentile(const struct histogram *histogram, uint32_t thousandths);

/* histogram_mean, histogram_deviation - exact; to the counters' width. 0 while empty. */
double histogram_mean(const struct histogram *histogram);
double histogram_deviation(const struct histogram *histogram);

/* histogram_count_to - how many values have a counter whose highest value is at most this. */
uint64_t histogram_count_to(const struct histogram *histogram, uint64_t value);

#endif
