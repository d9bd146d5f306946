/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress.c - see progress.h. Called by load.c on the main thread.
 */
#include "ringload/progress.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/time.h"
#include "ring/sys_host.h"
#include "ringload/lane.h"
#include "ringload/load.h"

static struct progress_sample look(const struct load *load)
{
    struct progress_sample sample = {.at_ns = sys_clock_ns()};
    for (unsigned i = 0; i < load->lane_count; i++) {
        struct lane *lane = &load->lanes[i];
        sample.done += atomic_load_explicit(&lane->shown_done, memory_order_relaxed);
        sample.failed += atomic_load_explicit(&lane->shown_failed, memory_order_relaxed);
        sample.latency_ns += atomic_load_explicit(&lane->shown_latency_ns, memory_order_relaxed);
        sample.open += atomic_load_explicit(&lane->shown_open, memory_order_relaxed);
    }
    return sample;
}

/* second_ago - the youngest sample that is a second older than the last one, or the oldest there is. */
static const struct progress_sample *second_ago(const struct progress *progress,
                                                const struct progress_sample *last)
{
    const struct progress_sample *found = NULL;
    unsigned kept = progress->count < PROGRESS_SAMPLES ? progress->count : PROGRESS_SAMPLES;
    for (unsigned back = 1; back <= kept; back++) {
        found = &progress->samples[(progress->count - back) % PROGRESS_SAMPLES];
        if (found->at_ns + NS_PER_S <= last->at_ns) {
            break;
        }
    }
    return found;
}

static void recent(const struct progress *progress, const struct progress_sample *last,
                   double *rate, double *mean_ns)
{
    const struct progress_sample *first = second_ago(progress, last);
    uint64_t done = last->done - first->done;
    double seconds = (double)(last->at_ns - first->at_ns) / (double)NS_PER_S;
    *rate = seconds > 0 ? (double)done / seconds : 0;
    *mean_ns = done > 0 ? (double)(last->latency_ns - first->latency_ns) / (double)done : 0;
}

void progress_begin(struct progress *progress, const struct load *load)
{
    const struct options *options = load->options;
    *progress = (struct progress){.shown = !options->quiet && sys_is_terminal(2), .count = 1};
    progress->samples[0] = (struct progress_sample){.at_ns = load->start_ns};
}

void progress_tick(struct progress *progress, const struct load *load)
{
    struct progress_sample now = look(load);
    double rate, mean_ns;
    recent(progress, &now, &rate, &mean_ns);
    progress->samples[progress->count++ % PROGRESS_SAMPLES] = now;
    if (!progress->shown) {
        return;
    }
    char line[160];
    int length = snprintf(line, sizeof(line),
                          "\r%7.1f s  %" PRIu64 " done  %.0f/s  %.3f ms  %" PRIu64
                          " failed  %" PRId64 " open\033[K",
                          (double)(now.at_ns - load->start_ns) / (double)NS_PER_S, now.done, rate,
                          mean_ns / (double)NS_PER_MS, now.failed, now.open);
    (void)sys_write_all(2, line, (size_t)length);
    progress->written = true;
}

void progress_end(struct progress *progress, const struct load *load, struct outcome *outcome)
{
    struct progress_sample last = look(load);
    recent(progress, &last, &outcome->recent_rate, &outcome->recent_mean_ns);
    if (progress->written) {
        (void)sys_write_all(2, "\r\033[K", 4);
    }
}
