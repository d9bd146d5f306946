/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rounds.h - medians of rounds, for the benchmarks of fibers. What is compared
 * runs interleaved, round by round, so that a slow second of the machine
 * meets all alike.
 */
#ifndef BENCH_ROUNDS_H
#define BENCH_ROUNDS_H

#include <stdio.h>
#include <stdlib.h>

#define ROUNDS 21

struct rounds {
    const char *name;
    double ns[ROUNDS]; /* an operation's, one a round */
    size_t count;
};

static int rounds_compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static inline void rounds_print_head(const char *what)
{
    printf("%-44s %10s %10s %10s\n", what, "median", "fastest", "slowest");
}

/* rounds_print - one line of the table; sorts. */
static inline void rounds_print(struct rounds *rounds)
{
    qsort(rounds->ns, rounds->count, sizeof rounds->ns[0], rounds_compare);
    printf("%-44s %7.1f ns %7.1f ns %7.1f ns\n", rounds->name, rounds->ns[rounds->count / 2],
           rounds->ns[0], rounds->ns[rounds->count - 1]);
}

static inline void rounds_add(struct rounds *rounds, double ns)
{
    rounds->ns[rounds->count++] = ns;
}

#endif
