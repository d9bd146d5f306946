/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load.h - the whole run: carriers, their lanes, the requests they share, and what came of it.
 */
#ifndef BENCH_LOAD_H
#define BENCH_LOAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "ringload/options.h"
#include "ringload/plan.h"
#include "ringload/tally.h"

struct carrier;
struct lane;

struct load {
    /* set once */
    const struct options *options;
    struct plan plan;
    bool is_head;  /* the method is HEAD */
    double gap_ns; /* between intended starts; 0: closed loop */
    struct carrier *carriers;
    struct lane *lanes;
    unsigned lane_count;
    int signal_fd;
    int wake_fd; /* a lane is ready, or done */
    /* set before the start */
    uint64_t start_ns;
    uint64_t end_ns; /* nothing begins any more; 0: when all requests are made */
    /* all carriers' */
    _Alignas(64) _Atomic uint64_t taken; /* requests */
    _Alignas(64) atomic_bool reached;    /* a connect has succeeded */
    atomic_uint created;                 /* lanes, that far */
    atomic_uint ready;
    atomic_uint done;
};

/* What came of it. */
struct outcome {
    const struct options *options;
    const struct plan *plan;
    double seconds;        /* from the start to the last answer */
    double create_seconds; /* for all users */
    double recent_rate;    /* answers a second in the last second */
    double recent_mean_ns; /* their times */
    uint64_t unsent;       /* were due at the fixed rate, and had no connection to go by */
    bool interrupted;
    int unreachable; /* -errno: no connect succeeded */
    struct tally tally;
};

/*
 * load_run - do it. Blocks the main thread, which shows the progress and takes the signals.
 *
 * Returns  0; 1 it could not be begun, which is said on stderr
 */
int load_run(const struct options *options, const struct plan *plan,
             struct outcome *outcome) WARN_UNUSED;

/* outcome_rate - answers a second. */
double outcome_rate(const struct outcome *outcome);

/*
 * load_take - the next request is the caller's, from any carrier.
 *
 * @start_ns  out: its intended start; 0 in a closed loop
 *
 * Returns  false when there is none left
 */
bool load_take(struct load *load, uint64_t *start_ns);

/* load_is_reached, load_set_reached - has any connect succeeded? */
bool load_is_reached(struct load *load);
void load_set_reached(struct load *load);

/* load_lane_created, load_lane_ready, load_lane_done - by a lane: its users stand at the start; the last has ended. */
void load_lane_created(struct load *load);
void load_lane_ready(struct load *load);
void load_lane_done(struct load *load);

#endif
