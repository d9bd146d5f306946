/* SPDX-License-Identifier: Apache-2.0 */
/*
 * histogram.c - see histogram.h. Called by tally.c and the reports.
 */
#include "ringload/histogram.h"

#include <math.h>
#include <stddef.h>

static uint64_t slot_low(size_t slot, uint64_t *width)
{
    return log_linear_low(slot, HISTOGRAM_SUB_BITS, width);
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
    histogram->slots[log_linear_slot(value, HISTOGRAM_VALUE_BITS, HISTOGRAM_SUB_BITS)]++;
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
    struct log_linear counted = {.slots = histogram->slots,
                                 .slot_count = HISTOGRAM_SLOTS,
                                 .sub_bits = HISTOGRAM_SUB_BITS,
                                 .count = histogram->count,
                                 .max = histogram->max};
    return log_linear_percentile(&counted, thousandths);
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
