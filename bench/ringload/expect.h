/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expect.h - what arithmetic says a run must take, before it and beside what it took.
 */
#ifndef BENCH_EXPECT_H
#define BENCH_EXPECT_H

#include <stdint.h>

struct options;
struct outcome;
struct plan;

#define EXPECT_TEXT_SIZE 256

enum expect_kind { EXPECT_NOTHING, EXPECT_SECONDS, EXPECT_RATE };

struct expectation {
    enum expect_kind kind;
    double seconds;              /* of EXPECT_SECONDS */
    double rate;                 /* requests a second, but for EXPECT_NOTHING */
    char text[EXPECT_TEXT_SIZE]; /* a line for people, without its end */
};

/* expect_make - from the numbers and the delay, which is given or stands in the path. */
void expect_make(struct expectation *expectation, const struct options *options,
                 const struct plan *plan);

/* expect_compare - the last line: expected against measured. */
void expect_compare(char dst[EXPECT_TEXT_SIZE], const struct expectation *expectation,
                    const struct outcome *outcome);

#endif
