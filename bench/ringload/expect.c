/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expect.c - see expect.h. Called by main.c. Pure.
 */
#include "ringload/expect.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/time.h"
#include "ringload/load.h"
#include "ringload/quantity.h"

/* delay_of_path - the routes of ringspun whose delay is known. Returns false when it is not. */
static bool delay_of_path(const struct options *options, double *seconds)
{
    static const char *const prefixes[] = {"/blocking/", "/remote/"};
    static const char *const waits[] = {"/wait-blocking", "/wait-async"};
    char path[64];
    const struct slice *whole = &options->target.path;
    const char *query = memchr(whole->at, '?', whole->length);
    size_t length = query != NULL ? (size_t)(query - whole->at) : whole->length;
    uint64_t ns;

    if (options->kind != OPTIONS_HTTP || length >= sizeof(path)) {
        return false;
    }
    snprintf(path, sizeof(path), "%.*s", (int)length, whole->at);
    for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
        if (strcmp(path, waits[i]) == 0) {
            *seconds = 0.1;
            return true;
        }
    }
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
        if (strncmp(path, prefixes[i], strlen(prefixes[i])) == 0 &&
            quantity_duration(path + strlen(prefixes[i]), &ns) == 0) {
            *seconds = (double)ns / (double)NS_PER_S;
            return true;
        }
    }
    return false;
}

static void expect_rate(struct expectation *expectation, const struct options *options,
                        double at_a_time, double delay)
{
    double most = delay > 0 ? at_a_time / delay : INFINITY;
    expectation->kind = EXPECT_RATE;
    expectation->rate = options->rate > 0 && options->rate < most ? options->rate : most;
    if (options->rate > 0 && options->rate <= most) {
        snprintf(expectation->text, sizeof(expectation->text),
                 "Expected: %.1f requests/s, as many as are started", options->rate);
    } else {
        snprintf(expectation->text, sizeof(expectation->text),
                 "Expected: %.0f at a time, %.3f s each: %.1f requests/s", at_a_time, delay, most);
    }
}

void expect_make(struct expectation *expectation, const struct options *options,
                 const struct plan *plan)
{
    double delay = 0;
    bool known = options->has_expected_latency;
    *expectation = (struct expectation){.kind = EXPECT_NOTHING};
    if (known) {
        delay = (double)options->expected_latency_ns / (double)NS_PER_S;
    } else {
        known = delay_of_path(options, &delay);
    }
    double at_a_time = (double)plan->at_once;
    if (options->expected_threads > 0 && (double)options->expected_threads < at_a_time) {
        at_a_time = (double)options->expected_threads;
    }
    if (options->kind == OPTIONS_HOLD) {
        snprintf(expectation->text, sizeof(expectation->text),
                 "Expected: %.0f connections live for %.1f s", at_a_time,
                 (double)options->duration_ns / (double)NS_PER_S);
    } else if (options->rate > 0) {
        expect_rate(expectation, options, at_a_time, delay);
    } else if (!known || delay <= 0) {
        snprintf(expectation->text, sizeof(expectation->text),
                 "Expected: nothing to expect, the delay is not known (--expect-latency tells it)");
    } else {
        double rounds = ceil((double)options->requests / at_a_time);
        if (options->requests == 0 ||
            (options->duration_ns > 0 &&
             rounds * delay * (double)NS_PER_S > (double)options->duration_ns)) {
            expect_rate(expectation, options, at_a_time, delay);
            return;
        }
        expectation->kind = EXPECT_SECONDS;
        expectation->seconds = rounds * delay;
        expectation->rate = (double)options->requests / expectation->seconds;
        snprintf(expectation->text, sizeof(expectation->text),
                 "Expected: %.0f requests, %.0f at a time, %.3f s each: %.0f round%s, %.3f s, %.1f "
                 "requests/s",
                 (double)options->requests, at_a_time, delay, rounds, rounds == 1 ? "" : "s",
                 expectation->seconds, expectation->rate);
    }
}

void expect_compare(char dst[EXPECT_TEXT_SIZE], const struct expectation *expectation,
                    const struct outcome *outcome)
{
    double rate = outcome_rate(outcome);
    switch (expectation->kind) {
    case EXPECT_SECONDS:
        snprintf(dst, EXPECT_TEXT_SIZE, "Expected %.3f s, measured %.3f s: %.3f times%s",
                 expectation->seconds, outcome->seconds, outcome->seconds / expectation->seconds,
                 outcome->interrupted ? " (interrupted)" : "");
        break;
    case EXPECT_RATE:
        snprintf(dst, EXPECT_TEXT_SIZE,
                 "Expected %.1f requests/s, measured %.1f requests/s: %.3f times",
                 expectation->rate, rate, rate / expectation->rate);
        break;
    case EXPECT_NOTHING:
        if (outcome->options->kind == OPTIONS_HOLD) {
            snprintf(dst, EXPECT_TEXT_SIZE, "Expected %llu connections live, measured %llu",
                     (unsigned long long)outcome->options->connections,
                     (unsigned long long)(outcome->tally.complete - outcome->tally.lost));
        } else {
            snprintf(dst, EXPECT_TEXT_SIZE, "Expected nothing, measured %.3f s, %.1f requests/s",
                     outcome->seconds, rate);
        }
        break;
    }
}
