/* SPDX-License-Identifier: Apache-2.0 */
/*
 * histogram.c - see histogram.h. Called by tally.c and the reports.
 */
#include "ringload/histogram.h"

#include <math.h>
#include <stddef.h>

#include "base/must.h"

#define SUB_BITS 11 /* 2048 counters before the first doubling: three significant digits */
#define HALF ((uint64_t)1 << (SUB_BITS - 1))

static size_t slot_of(uint64_t value)
{
    uint64_t limit = (UINT64_C(1) << HISTOGRAM_VALUE_BITS) - 1;
    value = value < limit ? value : limit;
    unsigned doubling = 63u - (unsigned)__builtin_clzll(value | (2 * HALF - 1)) - (SUB_BITS - 1);
    return (size_t)(doubling * HALF + (value >> doubling));
}

/* The lowest value that is counted in a slot, and how many there are. */
static uint64_t slot_low(size_t slot, uint64_t *width)
{
    unsigned doubling = slot < 2 * HALF ? 0 : (unsigned)(slot / HALF) - 1;
    *width = UINT64_C(1) << doubling;
    return (slot - doubling * HALF) << doubling;
}

static uint64_t slot_high(size_t slot)
{
    uint64_t width, low = slot_low(slot, &width);
    return low + width - 1;
}

void histogram_record(struct histogram *histogram, uint64_t value)
{
    if (histogram->count == 0 || value < histogram->min) {
        histogram->min = value;
    }
    if (value > histogram->max) {
        histogram->max = value;
    }
    histogram->count++;
    histogram->sum += value;
    histogram->slots[slot_of(value)]++;
}

void histogram_merge(struct histogram *histogram, const struct histogram *other)
{
    if (other->count == 0) {
        return;
    }
    if (histogram->count == 0 || other->min < histogram->min) {
        histogram->min = other->min;
    }
    if (other->max > histogram->max) {
        histogram->max = other->max;
    }
    histogram->count += other->count;
    histogram->sum += other->sum;
    for (size_t slot = 0; slot < HISTOGRAM_SLOTS; slot++) {
        histogram->slots[slot] += other->slots[slot];
    }
}

uint64_t histogram_percentile(const struct histogram *histogram, uint32_t thousandths)
{
    must(thousandths <= PERCENTILE_ALL);
    if (histogram->count == 0) {
        return 0;
    }
    /* Rounded up without overflow: the whole hundred thousands apart from the rest. */
    uint64_t rest = histogram->count % PERCENTILE_ALL * thousandths;
    uint64_t rank = histogram->count / PERCENTILE_ALL * thousandths +
                    (rest + PERCENTILE_ALL - 1) / PERCENTILE_ALL;
    uint64_t seen = 0;
    size_t slot = 0;
    rank = rank > 0 ? rank : 1;
    while ((seen += histogram->slots[slot]) < rank) {
        slot++;
        must(slot < HISTOGRAM_SLOTS);
    }
    uint64_t high = slot_high(slot);
    return slot == HISTOGRAM_SLOTS - 1 || high > histogram->max ? histogram->max : high;
}

double histogram_mean(const struct histogram *histogram)
{
    return histogram->count == 0 ? 0 : (double)histogram->sum / (double)histogram->count;
}

double histogram_deviation(const struct histogram *histogram)
{
    double mean = histogram_mean(histogram), squares = 0;
    if (histogram->count == 0) {
        return 0;
    }
    for (size_t slot = 0; slot < HISTOGRAM_SLOTS; slot++) {
        if (histogram->slots[slot] > 0) {
            uint64_t width, low = slot_low(slot, &width);
            double distance = (double)low + (double)(width - 1) / 2 - mean;
            squares += distance * distance * (double)histogram->slots[slot];
        }
    }
    return sqrt(squares / (double)histogram->count);
}

uint64_t histogram_count_to(const struct histogram *histogram, uint64_t value)
{
    uint64_t seen = 0;
    if (value >= histogram->max) {
        return histogram->count;
    }
    for (size_t slot = 0; slot < HISTOGRAM_SLOTS && slot_high(slot) <= value; slot++) {
        seen += histogram->slots[slot];
    }
    return seen;
}
