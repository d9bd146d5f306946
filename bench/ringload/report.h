/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.h - what came of a run, for people and for programs. Writes to stdout.
 */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

struct expectation;
struct outcome;

/* report_text - ab's block, hey's histogram, the table of percentiles. */
void report_text(const struct outcome *outcome);

/* report_json - one object on one line. */
void report_json(const struct outcome *outcome, const struct expectation *expectation);

/* The percentiles that both print, in thousandths of a percent, and their names. */
struct report_percentile {
    unsigned thousandths;
    const char *name;
};

extern const struct report_percentile report_percentiles[];
extern const unsigned report_percentile_count;

#endif
