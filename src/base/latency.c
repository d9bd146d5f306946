/* SPDX-License-Identifier: Apache-2.0 */
/*
 * latency.c - see latency.h. Called by what reports; what records is inline.
 */
#include "base/latency.h"

#include "base/must.h"

#define HALF (1u << (LATENCY_SUB_BITS - 1))

static uint64_t slot_high(unsigned slot)
{
    unsigned doubling = slot < 2 * HALF ? 0 : slot / HALF - 1;
    return ((uint64_t)(slot - doubling * HALF + 1) << doubling) - 1;
}

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
    must(thousandths <= LATENCY_ALL);
    uint64_t count = latency_count(copy);
    if (count == 0) {
        return 0;
    }
    /* Rounded up without overflow: the whole hundred thousands apart from the rest. */
    uint64_t rest = count % LATENCY_ALL * thousandths;
    uint64_t rank = count / LATENCY_ALL * thousandths + (rest + LATENCY_ALL - 1) / LATENCY_ALL;
    uint64_t seen = 0;
    unsigned slot = 0;
    rank = rank > 0 ? rank : 1;
    while ((seen += copy->slots[slot]) < rank) {
        slot++;
        must(slot < LATENCY_SLOTS);
    }
    uint64_t high = slot_high(slot);
    return slot == LATENCY_SLOTS - 1 || high > copy->max ? copy->max : high;
}
