/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.h - how much of what is asked for this host allows: descriptors and ports.
 */
#ifndef BENCH_PLAN_H
#define BENCH_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"

struct options;

#define PLAN_NOTE_SIZE 256

struct plan {
    uint64_t at_once; /* connections at the same time */
    uint64_t queue;   /* connections that the server has not accepted; 0: no matter */
    unsigned carriers;
    unsigned sources;          /* client addresses in turn; 1: the kernel's choice */
    char note[PLAN_NOTE_SIZE]; /* why at_once is less than the users; or "" */
};

/*
 * plan_make - for options whose target is resolved. What is impossible is said in
 * one line on stderr, with the limit's name.
 *
 * Returns  0; 2 the exit code of bad usage
 */
int plan_make(struct plan *plan, const struct options *options) WARN_UNUSED;

#endif
