/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_json.c - see report.h: the report for programs. Names end in their unit, and
 * stay what they are: scripts read them.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/json.h"
#include "base/slice.h"
#include "base/time.h"
#include "ringload/expect.h"
#include "ringload/load.h"
#include "ringload/report.h"

#define TEXT_SIZE 2048

static void print_string(const char *name, struct slice text)
{
    char escaped[TEXT_SIZE];
    size_t length = json_escape(escaped, sizeof(escaped), text);
    length = length < sizeof(escaped) ? length : sizeof(escaped);
    printf("\"%s\":\"%.*s\"", name, (int)length, escaped);
}

static void print_number(const char *name, uint64_t value)
{
    printf(",\"%s\":%" PRIu64, name, value);
}

static void print_real(const char *name, double value)
{
    printf(",\"%s\":%.6f", name, value);
}

static double ms(double ns)
{
    return ns / (double)NS_PER_MS;
}

static void print_times(const char *name, const struct histogram *histogram)
{
    static const struct report_percentile more[] = {{75000, "75"}, {90000, "90"}, {95000, "95"}};
    printf(",\"%s\":{\"count\":%" PRIu64
           ",\"min\":%.6f,\"mean\":%.6f,\"deviation\":%.6f,\"max\":%.6f",
           name, histogram->count, ms((double)histogram->min), ms(histogram_mean(histogram)),
           ms(histogram_deviation(histogram)), ms((double)histogram->max));
    for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++) {
        printf(",\"p%s\":%.6f", more[i].name,
               ms((double)histogram_percentile(histogram, more[i].thousandths)));
    }
    for (unsigned i = 0; i < report_percentile_count; i++) {
        printf(",\"p%s\":%.6f", report_percentiles[i].name,
               ms((double)histogram_percentile(histogram, report_percentiles[i].thousandths)));
    }
    printf("}");
}

static void print_failures(const struct tally *tally)
{
    printf(",\"failures\":{");
    for (int kind = 0; kind < FAILURE_KINDS; kind++) {
        printf("%s\"%s\":%" PRIu64, kind == 0 ? "" : ",", tally_failure_name((enum failure)kind),
               tally->failures[kind]);
    }
    printf("},\"statuses\":{");
    bool any = false;
    for (int status = 0; status < TALLY_STATUSES; status++) {
        if (tally->statuses[status] > 0) {
            printf("%s\"%d\":%" PRIu64, any ? "," : "", status, tally->statuses[status]);
            any = true;
        }
    }
    printf("}");
}

static void print_expectation(const struct expectation *expectation)
{
    if (expectation->kind == EXPECT_NOTHING) {
        printf(",\"expected\":null");
        return;
    }
    printf(",\"expected\":{\"requests_per_second\":%.6f", expectation->rate);
    if (expectation->kind == EXPECT_SECONDS) {
        print_real("seconds", expectation->seconds);
    }
    printf("}");
}

static void print_conditions(const struct outcome *outcome)
{
    const struct options *options = outcome->options;
    printf(",\"fail_if\":[");
    for (size_t i = 0; i < options->condition_count; i++) {
        double measured;
        bool holds = condition_holds(&options->conditions[i], outcome, &measured);
        printf("%s{", i == 0 ? "" : ",");
        print_string("condition", slice_of(options->conditions[i].text));
        printf(",\"holds\":%s}", holds ? "true" : "false");
    }
    printf("]");
}

void report_json(const struct outcome *outcome, const struct expectation *expectation)
{
    static const char *const kinds[] = {[OPTIONS_HTTP] = "http",
                                        [OPTIONS_ECHO] = "echo",
                                        [OPTIONS_GREETER] = "greeter",
                                        [OPTIONS_CONNECT] = "connect",
                                        [OPTIONS_HOLD] = "hold"};
    const struct options *options = outcome->options;
    const struct tally *tally = &outcome->tally;
    printf("{");
    print_string("kind", slice_of(kinds[options->kind]));
    printf(",");
    print_string("host", slice_of(options->target.host));
    print_number("port", options->target.port);
    printf(",");
    print_string("path", options->target.is_http ? options->target.path : SLICE(""));
    print_number("at_once", outcome->plan->at_once);
    printf(",");
    print_string("note", slice_of(outcome->plan->note));
    print_number("carriers", outcome->plan->carriers);
    print_number("sources", outcome->plan->sources);
    printf(",\"keepalive\":%s,\"interrupted\":%s", options->keepalive ? "true" : "false",
           outcome->interrupted ? "true" : "false");
    print_number("users", options->users);
    print_real("create_seconds", outcome->create_seconds);
    print_real("seconds", outcome->seconds);
    print_number("started", tally->started);
    print_number("complete", tally->complete);
    print_number("failed", tally_failed(tally));
    print_number("cut", tally->cut);
    print_number("unsent", outcome->unsent);
    print_number("connections", tally->connections);
    print_number("reused", tally->reused);
    print_number("lost", tally->lost);
    print_number("sent_bytes", tally->sent_bytes);
    print_number("received_bytes", tally->received_bytes);
    print_number("body_bytes", tally->body_bytes);
    print_real("requests_per_second", outcome_rate(outcome));
    print_real("recent_requests_per_second", outcome->recent_rate);
    print_real("recent_latency_ms", ms(outcome->recent_mean_ns));
    print_failures(tally);
    printf(",");
    print_string("first_failure", slice_of(tally->first_reason));
    print_times("latency_ms", &tally->latency);
    print_times("connect_ms", &tally->connect);
    print_expectation(expectation);
    print_conditions(outcome);
    printf("}\n");
}
