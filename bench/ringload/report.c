/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.c - see report.h: the report for people. Called by main.c at the end.
 */
#include "ringload/report.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/time.h"
#include "ringload/load.h"

#define BARS 10
#define BAR_WIDTH 40

const struct report_percentile report_percentiles[] = {
    {50000, "50"}, {99000, "99"}, {99900, "99.9"}, {99990, "99.99"}, {99999, "99.999"},
};
const unsigned report_percentile_count = sizeof(report_percentiles) / sizeof(report_percentiles[0]);

static double ms(double ns)
{
    return ns / (double)NS_PER_MS;
}

/* ------------------------------------------------------------------------ as ab prints it */

static void print_failures(const struct outcome *outcome)
{
    const uint64_t *failures = outcome->tally.failures;
    uint64_t incomplete = tally_failed(&outcome->tally) - failures[FAILURE_STATUS];
    printf("Failed requests:        %" PRIu64 "\n", incomplete);
    if (incomplete > 0) {
        printf("   (Connect: %" PRIu64 ", Timeout: %" PRIu64 ", Reset: %" PRIu64 ", Short: %" PRIu64
               ", Malformed: %" PRIu64 ")\n",
               failures[FAILURE_CONNECT], failures[FAILURE_TIMEOUT], failures[FAILURE_RESET],
               failures[FAILURE_SHORT], failures[FAILURE_MALFORMED]);
    }
    if (failures[FAILURE_STATUS] > 0) {
        printf("Non-2xx responses:      %" PRIu64 "\n", failures[FAILURE_STATUS]);
    }
    if (outcome->tally.cut > 0) {
        printf("Cut off:                %" PRIu64 " in work when it was interrupted\n",
               outcome->tally.cut);
    }
    if (outcome->unsent > 0) {
        printf("Not sent:               %" PRIu64 " were due, and all connections busy\n",
               outcome->unsent);
    }
}

static void print_head(const struct outcome *outcome)
{
    const struct options *options = outcome->options;
    const struct tally *tally = &outcome->tally;
    printf("Server Hostname:        %s\nServer Port:            %u\n\n", options->target.host,
           options->target.port);
    if (options->kind == OPTIONS_HTTP) {
        printf("Document Path:          %.*s\nDocument Length:        %" PRIu64 " bytes\n\n",
               (int)options->target.path.length, options->target.path.at, tally->document_bytes);
    }
    printf("Concurrency Level:      %" PRIu64 "\n", outcome->plan->at_once);
    printf("Time taken for tests:   %.3f seconds\n", outcome->seconds);
    printf("Complete requests:      %" PRIu64 "\n", tally->complete);
    print_failures(outcome);
    if (tally->reused > 0) {
        printf("Keep-Alive requests:    %" PRIu64 "\n", tally->reused);
    }
    printf("Connections made:       %" PRIu64 "\n", tally->connections);
    printf("Total transferred:      %" PRIu64 " bytes\n", tally->received_bytes);
    printf("HTML transferred:       %" PRIu64 " bytes\n", tally->body_bytes);
}

static void print_rates(const struct outcome *outcome)
{
    double seconds = outcome->seconds, complete = (double)outcome->tally.complete;
    double each = complete > 0 ? seconds * 1000 / complete : 0;
    double kilobytes = (double)outcome->tally.received_bytes / 1024;
    printf("Requests per second:    %.2f [#/sec] (mean)\n", outcome_rate(outcome));
    printf("Time per request:       %.3f [ms] (mean)\n", each * (double)outcome->plan->at_once);
    printf("Time per request:       %.3f [ms] (mean, across all concurrent requests)\n", each);
    printf("Transfer rate:          %.2f [Kbytes/sec] received\n\n",
           seconds > 0 ? kilobytes / seconds : 0);
}

static void print_times(const char *name, const struct histogram *histogram)
{
    printf("%-12s %8.3f %9.3f %8.3f %9.3f %9.3f\n", name, ms((double)histogram->min),
           ms(histogram_mean(histogram)), ms(histogram_deviation(histogram)),
           ms((double)histogram_percentile(histogram, 50000)), ms((double)histogram->max));
}

static void print_served_within(const struct histogram *latency)
{
    static const unsigned percents[] = {50, 66, 75, 80, 90, 95, 98, 99};
    printf("\nPercentage of the requests served within a certain time (ms)\n");
    for (size_t i = 0; i < sizeof(percents) / sizeof(percents[0]); i++) {
        printf("  %u%%  %9.3f\n", percents[i],
               ms((double)histogram_percentile(latency, percents[i] * 1000)));
    }
    printf(" 100%%  %9.3f (longest request)\n", ms((double)latency->max));
}

/* ------------------------------------------------------------------------ as hey prints it */

static void print_histogram(const struct histogram *latency)
{
    uint64_t counts[BARS + 1], most = 0, seen = 0;
    double step = (double)(latency->max - latency->min) / BARS;
    printf("\nResponse time histogram:\n");
    for (int i = 0; i <= BARS; i++) {
        double to = (double)latency->min + step * i;
        uint64_t up_to = i == BARS ? latency->count : histogram_count_to(latency, (uint64_t)to);
        counts[i] = up_to - seen;
        seen = up_to;
        most = counts[i] > most ? counts[i] : most;
    }
    for (int i = 0; i <= BARS; i++) {
        char bar[BAR_WIDTH * 3 + 1] = "";
        size_t length = most > 0 ? (size_t)((counts[i] * BAR_WIDTH + most / 2) / most) : 0;
        for (size_t k = 0; k < length; k++) {
            memcpy(bar + 3 * k, "\u25a0", 4);
        }
        printf("  %10.4f [%" PRIu64 "]\t|%s\n",
               ((double)latency->min + step * i) / (double)NS_PER_S, counts[i], bar);
    }
}

static void print_statuses(const struct tally *tally)
{
    bool any = false;
    for (int status = 0; status < TALLY_STATUSES; status++) {
        if (tally->statuses[status] > 0) {
            printf("%s  [%d]\t%" PRIu64 " responses\n", any ? "" : "\nStatus code distribution:\n",
                   status, tally->statuses[status]);
            any = true;
        }
    }
}

/* -------------------------------------------------- as the mailing-list experiments print it */

static void print_table(const struct outcome *outcome)
{
    const struct histogram *latency = &outcome->tally.latency;
    double seconds = outcome->seconds;
    printf("\n%-28s %14s\n", "Throughput, response times", "");
    printf("  %-26s %14.1f /s\n", "throughput, recent", outcome->recent_rate);
    printf("  %-26s %14.1f /s\n", "throughput, average", outcome_rate(outcome));
    printf("  %-26s %14.3f ms\n", "response time, recent", ms(outcome->recent_mean_ns));
    printf("  %-26s %14.3f ms\n", "response time, average", ms(histogram_mean(latency)));
    for (unsigned i = 0; i < report_percentile_count; i++) {
        char name[32];
        snprintf(name, sizeof(name), "response time, %s %%", report_percentiles[i].name);
        printf("  %-26s %14.3f ms\n", name,
               ms((double)histogram_percentile(latency, report_percentiles[i].thousandths)));
    }
    printf("  %-26s %14.1f /s\n", "errors",
           seconds > 0 ? (double)tally_failed(&outcome->tally) / seconds : 0);
}

static void print_hold(const struct outcome *outcome)
{
    const struct tally *tally = &outcome->tally;
    printf("Connections asked for:  %" PRIu64 "\n", outcome->plan->at_once);
    printf("Connections made:       %" PRIu64 " in %.3f seconds\n", tally->complete,
           outcome->seconds);
    printf("Live at the end:        %" PRIu64 "\n", tally->complete - tally->lost);
    printf("Ended before:           %" PRIu64 "\n", tally->lost);
    print_failures(outcome);
}

void report_text(const struct outcome *outcome)
{
    const struct tally *tally = &outcome->tally;
    if (outcome->options->users > 0) {
        printf("Users:                  %" PRIu64 " created in %.3f seconds\n",
               outcome->options->users, outcome->create_seconds);
        if (outcome->plan->note[0] != '\0') {
            printf("   (%s)\n", outcome->plan->note);
        }
    }
    if (outcome->options->kind == OPTIONS_HOLD) {
        print_hold(outcome);
    } else {
        print_head(outcome);
        print_rates(outcome);
    }
    if (tally->connect.count > 0) {
        printf("Connection Times (ms)\n%12s %8s %9s %8s %9s %9s\n", "", "min", "mean", "[+/-sd]",
               "median", "max");
        print_times("Connect:", &tally->connect);
    }
    if (outcome->options->kind == OPTIONS_HOLD) {
        return;
    }
    if (tally->latency.count > 0) {
        print_times("Total:", &tally->latency);
        print_served_within(&tally->latency);
        print_histogram(&tally->latency);
    }
    print_statuses(tally);
    print_table(outcome);
}
