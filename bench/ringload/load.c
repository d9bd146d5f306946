/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load.c - see load.h. Called by main.c on the main thread, which is no carrier.
 */
#include "ringload/load.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/must.h"
#include "base/time.h"
#include "fiber/overflow.h"
#include "ring/carrier.h"
#include "ring/sys.h"
#include "ringload/lane.h"
#include "ringload/progress.h"

#define USER_STACK_BYTES 65536
#define TICK_NS (250 * NS_PER_MS)
#define INTERRUPTED_TWICE 130

bool load_take(struct load *load, uint64_t *start_ns)
{
    uint64_t number = atomic_fetch_add_explicit(&load->taken, 1, memory_order_relaxed);
    *start_ns = 0;
    if (load->options->requests != 0 && number >= load->options->requests) {
        return false;
    }
    if (load->gap_ns > 0) {
        *start_ns = load->start_ns + (uint64_t)((double)number * load->gap_ns);
        return load->end_ns == 0 || *start_ns < load->end_ns;
    }
    return true;
}

bool load_is_reached(struct load *load)
{
    return atomic_load_explicit(&load->reached, memory_order_relaxed);
}

void load_set_reached(struct load *load)
{
    if (unlikely(!load_is_reached(load))) {
        atomic_store_explicit(&load->reached, true, memory_order_relaxed);
    }
}

/* Release and acquire: what a lane has counted is the main thread's from then on. */
static void tell(struct load *load, atomic_uint *count)
{
    if (atomic_fetch_add_explicit(count, 1, memory_order_acq_rel) + 1 == load->lane_count) {
        sys_eventfd_signal(load->wake_fd);
    }
}

void load_lane_created(struct load *load)
{
    tell(load, &load->created);
}

void load_lane_ready(struct load *load)
{
    tell(load, &load->ready);
}

void load_lane_done(struct load *load)
{
    tell(load, &load->done);
}

double outcome_rate(const struct outcome *outcome)
{
    return outcome->seconds > 0 ? (double)outcome->tally.complete / outcome->seconds : 0;
}

/* ------------------------------------------------------------------------ start and end */

static void stop_carriers(struct load *load)
{
    for (unsigned i = 0; i < load->lane_count; i++) {
        carrier_stop(&load->carriers[i]);
    }
    for (unsigned i = 0; i < load->lane_count; i++) {
        carrier_join(&load->carriers[i]);
    }
    for (unsigned i = 0; i < load->lane_count; i++) {
        carrier_free(&load->carriers[i]);
        lane_fini(&load->lanes[i]);
    }
}

/* share - the n-th lane's part of a number. */
static uint64_t share(uint64_t number, unsigned count, unsigned n)
{
    return number / count + (n < number % count);
}

static int start_lane(struct load *load, uint64_t user_count)
{
    unsigned n = load->lane_count;
    struct lane *lane = &load->lanes[n];
    *lane = (struct lane){.load = load, .carrier = &load->carriers[n], .number = n};
    int result = lane_init(lane, share(user_count, load->plan.carriers, n),
                           share(load->plan.at_once, load->plan.carriers, n));
    if (result < 0) {
        complain("no memory for %llu users", (unsigned long long)user_count);
        return result;
    }
    struct carrier_setup setup = {.number = n, .stack_bytes = USER_STACK_BYTES};
    result = carrier_start(&load->carriers[n], &setup);
    if (result < 0) {
        char why[384];
        ring_refusal(result, why, sizeof(why));
        complain("%s", why);
        lane_fini(lane);
        return result;
    }
    load->lane_count++;
    return 0;
}

static int start_lanes(struct load *load)
{
    unsigned count = load->plan.carriers;
    uint64_t users = load->options->users > 0 ? load->options->users : load->plan.at_once;
    load->carriers = aligned_alloc(64, count * sizeof(struct carrier));
    load->lanes = aligned_alloc(64, count * sizeof(struct lane));
    if (load->carriers == NULL || load->lanes == NULL || overflow_install_process() < 0) {
        complain("no memory for %u carriers", count);
        return -ENOMEM;
    }
    while (load->lane_count < count) {
        int result = start_lane(load, users);
        if (result < 0) {
            stop_carriers(load);
            return result;
        }
    }
    return 0;
}

/* ------------------------------------------------------------------------ on the way */

/* take_signals - true when the run is to end now; a second signal ends the process. */
static bool take_signals(struct load *load, bool interrupted)
{
    bool asked = false;
    for (int number; (number = sys_signals_next(load->signal_fd)) != 0;) {
        if (interrupted || asked) {
            sys_exit_now(INTERRUPTED_TWICE);
        }
        asked = number == SIGINT || number == SIGTERM;
    }
    return asked;
}

static void halt_lanes(struct load *load)
{
    for (unsigned i = 0; i < load->lane_count; i++) {
        lane_halt(&load->lanes[i]);
    }
}

/* await - until all lanes have told so. Returns when it was seen. */
static void await(struct load *load, atomic_uint *count, struct progress *progress,
                  bool *interrupted)
{
    while (atomic_load_explicit(count, memory_order_acquire) < load->lane_count) {
        int ready = sys_wait(load->signal_fd, load->wake_fd, sys_clock_ns() + TICK_NS);
        if ((ready & 2) != 0) {
            sys_eventfd_clear(load->wake_fd);
        }
        if ((ready & 1) != 0 && take_signals(load, *interrupted)) {
            *interrupted = true;
            halt_lanes(load);
        }
        if (progress != NULL) {
            progress_tick(progress, load);
        }
    }
}

/* create - all users, each parked at the start. */
static int create(struct load *load, struct outcome *outcome)
{
    uint64_t began_ns = sys_clock_ns();
    for (unsigned i = 0; i < load->lane_count; i++) {
        lane_create(&load->lanes[i]);
    }
    await(load, &load->created, NULL, &outcome->interrupted);
    outcome->create_seconds = (double)(sys_clock_ns() - began_ns) / (double)NS_PER_S;
    await(load, &load->ready, NULL, &outcome->interrupted);
    for (unsigned i = 0; i < load->lane_count; i++) {
        if (load->lanes[i].create_error != 0) {
            complain("no memory for %llu users ('sysctl vm.max_map_count' bounds them too)",
                     (unsigned long long)load->options->users);
            halt_lanes(load);
            return load->lanes[i].create_error;
        }
    }
    return 0;
}

static void go(struct load *load)
{
    const struct options *options = load->options;
    load->start_ns = sys_clock_ns();
    load->end_ns = options->duration_ns > 0 ? load->start_ns + options->duration_ns : 0;
    for (unsigned i = 0; i < load->lane_count; i++) {
        lane_go(&load->lanes[i]); /* the post makes what was written before visible */
    }
}

/* collect - the lanes have ended: their counts are ours. */
static void collect(struct load *load, struct outcome *outcome)
{
    uint64_t finished_ns = load->start_ns;
    bool reached = load_is_reached(load);
    for (unsigned i = 0; i < load->lane_count; i++) {
        const struct lane *lane = &load->lanes[i];
        tally_merge(&outcome->tally, &lane->tally);
        finished_ns = lane->finished_ns > finished_ns ? lane->finished_ns : finished_ns;
        if (!reached && lane->unreachable != 0) {
            outcome->unreachable = lane->unreachable;
        }
    }
    outcome->seconds = (double)(finished_ns - load->start_ns) / (double)NS_PER_S;
    if (load->gap_ns > 0 && !outcome->interrupted) {
        uint64_t due = load->options->requests;
        if (load->end_ns != 0) {
            uint64_t within = (uint64_t)ceil((double)load->options->duration_ns / load->gap_ns);
            due = due == 0 || within < due ? within : due;
        }
        outcome->unsent = due > outcome->tally.started ? due - outcome->tally.started : 0;
    }
}

static int run(struct load *load, struct outcome *outcome)
{
    struct progress progress;
    int result = start_lanes(load);
    if (result < 0) {
        return 1;
    }
    result = create(load, outcome);
    if (result == 0) {
        go(load);
        progress_begin(&progress, load);
    }
    await(load, &load->done, result == 0 ? &progress : NULL, &outcome->interrupted);
    if (result == 0) {
        progress_end(&progress, load, outcome);
    }
    stop_carriers(load);
    if (result < 0) {
        return 1;
    }
    collect(load, outcome);
    return 0;
}

int load_run(const struct options *options, const struct plan *plan, struct outcome *outcome)
{
    struct load *load = aligned_alloc(64, sizeof(*load));
    int code = 1;
    if (load == NULL) {
        complain("no memory");
        return code;
    }
    memset(load, 0, sizeof(*load));
    load->options = options;
    load->plan = *plan;
    load->is_head = strcmp(options->method, "HEAD") == 0;
    load->gap_ns = options->rate > 0 ? (double)NS_PER_S / options->rate : 0;
    outcome->options = options;
    outcome->plan = plan;
    load->signal_fd = sys_signals_open();
    load->wake_fd = sys_eventfd();
    if (load->signal_fd >= 0 && load->wake_fd >= 0) {
        code = run(load, outcome);
    } else {
        complain("too few file descriptors: raise the limit with 'ulimit -n 1024'");
    }
    free(load->carriers);
    free(load->lanes);
    free(load);
    return code;
}
