/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress.h - the line that moves while the load runs, and the figures of the last second.
 */
#ifndef BENCH_PROGRESS_H
#define BENCH_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct load;
struct outcome;

#define PROGRESS_SAMPLES 16 /* more than a second of ticks */

/* What all lanes have shown at one moment. */
struct progress_sample {
    uint64_t at_ns;
    uint64_t done;
    uint64_t failed;
    uint64_t latency_ns; /* sum */
    int64_t open;
};

struct progress {
    bool shown; /* stderr is a terminal, and nobody asked for silence */
    bool written;
    unsigned count;
    struct progress_sample samples[PROGRESS_SAMPLES]; /* a circle; count is the next */
};

/* progress_begin, progress_tick, progress_end - from the start to the last answer; the last one fills in outcome's recent figures. */
void progress_begin(struct progress *progress, const struct load *load);
void progress_tick(struct progress *progress, const struct load *load);
void progress_end(struct progress *progress, const struct load *load, struct outcome *outcome);

#endif
