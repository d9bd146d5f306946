/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sleepers.h - very many fibers that only sleep: how fast they start, what they
 * hold, how late they wake. No network. Called by ringload's --fibers and by
 * bench/micro/million.
 */
#ifndef BENCH_SLEEPERS_H
#define BENCH_SLEEPERS_H

#include <stdint.h>

#include "base/attr.h"

struct sleepers_setup {
    uint64_t count;
    uint64_t sleep_ns; /* of each, from the moment that it runs first */
    unsigned carriers;
};

struct sleepers_result {
    uint64_t started_ns; /* until the last one slept */
    uint64_t done_ns;    /* until the last one had woken */
    double resident_kib; /* of each that was asleep: of all, or when the first woke */
    uint64_t early;      /* that woke before their time */
    uint64_t late_min_ns;
    uint64_t late_max_ns; /* after their own time */
    uint64_t missing;     /* not started, for want of memory */
};

/* sleepers_run - on carriers of its own; blocks the thread until all have ended. Returns 0; what carrier_start returns; -ENOMEM. */
int sleepers_run(const struct sleepers_setup *setup, struct sleepers_result *result) WARN_UNUSED;

/* sleepers_print - the result for people, or as a JSON object in a line. Returns 1 if one was early or missing, else 0. */
int sleepers_print(const struct sleepers_setup *setup, const struct sleepers_result *result,
                   int json) WARN_UNUSED;

#endif
