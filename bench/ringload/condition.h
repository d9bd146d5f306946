/* SPDX-License-Identifier: Apache-2.0 */
/*
 * condition.h - when a run counts as failed though all was answered: --fail-if 'p99>3.1s'.
 */
#ifndef BENCH_CONDITION_H
#define BENCH_CONDITION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"

struct outcome;

enum condition_metric {
    CONDITION_PERCENTILE,
    CONDITION_AVERAGE,
    CONDITION_MAX,
    CONDITION_MIN,
    CONDITION_RATE,
    CONDITION_ERRORS
};

struct condition {
    const char *text; /* as it was given; the argument's */
    enum condition_metric metric;
    uint32_t percentile; /* thousandths of a percent */
    bool below;          /* '<', else '>' */
    bool or_equal;
    bool relative; /* errors in percent of the requests */
    double value;  /* nanoseconds, requests a second, or a number */
};

/*
 * condition_parse - METRIC, one of > < >= <=, VALUE. Metrics: p50 … p99.999, avg,
 * max, min (a duration), rps (a number), errors (a number, or percent with '%').
 *
 * Returns  0; -EINVAL
 */
int condition_parse(struct condition *condition, const char *text) WARN_UNUSED;

/* condition_holds - *measured is the value that it was compared with. */
bool condition_holds(const struct condition *condition, const struct outcome *outcome,
                     double *measured);

#endif
