/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_linear.c - see log_linear.h. Called by what reports; what records is inline.
 */
#include "base/log_linear.h"

#include "base/must.h"

uint64_t log_linear_low(size_t slot, unsigned sub_bits, uint64_t *width)
{
    size_t half = (size_t)1 << (sub_bits - 1);
    size_t doubling = slot / half > 1 ? slot / half - 1 : 0;
    *width = UINT64_C(1) << doubling;
    return (uint64_t)(slot - doubling * half) << doubling;
}

uint64_t log_linear_percentile(const struct log_linear *counted, uint32_t thousandths)
{
    must(thousandths <= LOG_LINEAR_ALL);
    if (counted->count == 0) {
        return 0;
    }
    /* Rounded up without overflow: the whole hundred thousands apart from the rest. */
    uint64_t rest = counted->count % LOG_LINEAR_ALL * thousandths;
    uint64_t rank = counted->count / LOG_LINEAR_ALL * thousandths +
                    (rest + LOG_LINEAR_ALL - 1) / LOG_LINEAR_ALL;
    uint64_t seen = 0, width;
    size_t slot = 0;
    rank = rank > 0 ? rank : 1;
    while ((seen += counted->slots[slot]) < rank) {
        slot++;
        must(slot < counted->slot_count);
    }
    uint64_t high = log_linear_low(slot, counted->sub_bits, &width) + width - 1;
    return slot == counted->slot_count - 1 || high > counted->max ? counted->max : high;
}
