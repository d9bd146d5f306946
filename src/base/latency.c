/* SPDX-License-Identifier: Apache-2.0 */
/*
 * latency.c - see latency.h. Called by what reports; what records is inline.
 */
#include "base/latency.h"

void latency_add(struct latency *copy, const struct latency *other)
{
    for (unsigned slot = 0; slot < LATENCY_SLOTS; slot++) {
        copy->slots[slot] += __atomic_load_n(&other->slots[slot], __ATOMIC_RELAXED);
    }
    uint64_t max = __atomic_load_n(&other->max, __ATOMIC_RELAXED);
    copy->max = max > copy->max ? max : copy->max;
}

uint64_t latency_count(const struct latency *copy)
{
    uint64_t count = 0;
    for (unsigned slot = 0; slot < LATENCY_SLOTS; slot++) {
        count += copy->slots[slot];
    }
    return count;
}

uint64_t latency_percentile(const struct latency *copy, uint32_t thousandths)
{
    struct log_linear counted = {.slots = copy->slots,
                                 .slot_count = LATENCY_SLOTS,
                                 .sub_bits = LATENCY_SUB_BITS,
                                 .count = latency_count(copy),
                                 .max = copy->max};
    return log_linear_percentile(&counted, thousandths);
}
