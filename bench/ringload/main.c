/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - ringload: argv -> options -> target -> plan -> load -> report -> exit code.
 *
 * A load generator whose virtual users are fibers on this project's own carriers.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "ring/ring.h"
#include "ring/sys.h"
#include "ringload/expect.h"
#include "ringload/load.h"
#include "ringload/options.h"
#include "ringload/plan.h"
#include "ringload/quantity.h"
#include "ringload/report.h"
#include "ringload/sleepers.h"

#define EXIT_FAILED 1
#define EXIT_USAGE 2
#define EXIT_CONDITION 99

/* resolve - the target's addresses and the request's bytes. Returns an exit code. */
static int prepare(struct options *options)
{
    int result = target_resolve(&options->target);
    if (result < 0) {
        complain("%s: %s", options->target.host,
                 result == -ENOENT ? "no such host" : strerrordesc_np(-result));
        return EXIT_FAILED;
    }
    switch (target_format(&options->target, options)) {
    case 0:
        break;
    case -EINVAL:
        complain("{random:N}: N is 1 to 1000000000, and there are at most 8 of them");
        return EXIT_USAGE;
    default:
        complain("no memory for the request");
        return EXIT_FAILED;
    }
    return 0;
}

static void say_condition(const struct condition *condition, double measured)
{
    char text[QUANTITY_TEXT_SIZE];
    if (condition->metric == CONDITION_RATE || condition->metric == CONDITION_ERRORS) {
        complain("--fail-if '%s' holds: it is %.6g%s", condition->text, measured,
                 condition->relative ? " %" : "");
    } else {
        complain("--fail-if '%s' holds: it is %s", condition->text,
                 quantity_format_duration(text, measured));
    }
}

/* judge - the exit code, and on stderr why it is not 0. */
static int judge(const struct outcome *outcome)
{
    const struct options *options = outcome->options;
    uint64_t failed = tally_failed(&outcome->tally) + outcome->tally.lost;
    int code = 0;
    if (failed > 0) {
        complain("%llu of %llu failed%s%s", (unsigned long long)failed,
                 (unsigned long long)outcome->tally.started,
                 outcome->tally.first_reason[0] != '\0' ? ", the first: " : "",
                 outcome->tally.first_reason);
        code = EXIT_FAILED;
    }
    for (size_t i = 0; i < options->condition_count; i++) {
        double measured;
        if (condition_holds(&options->conditions[i], outcome, &measured)) {
            say_condition(&options->conditions[i], measured);
            code = EXIT_CONDITION;
        }
    }
    return code;
}

static int run(const struct options *options, const struct plan *plan, struct outcome *outcome)
{
    struct expectation expectation;
    char line[EXPECT_TEXT_SIZE];

    expect_make(&expectation, options, plan);
    if (!options->json) {
        printf("%s\n\n", expectation.text);
        (void)fflush(stdout);
    }
    if (load_run(options, plan, outcome) != 0) {
        return EXIT_FAILED;
    }
    if (outcome->unreachable != 0) {
        complain("cannot connect to %s port %u: %s", options->target.host, options->target.port,
                 strerrordesc_np(-outcome->unreachable));
        return EXIT_FAILED;
    }
    if (options->json) {
        report_json(outcome, &expectation);
    } else {
        report_text(outcome);
        expect_compare(line, &expectation, outcome);
        printf("\n%s\n", line);
    }
    (void)fflush(stdout);
    return judge(outcome);
}

static int start(struct options *options)
{
    struct plan plan;
    int code = prepare(options);
    if (code == 0) {
        code = plan_make(&plan, options);
    }
    if (code == 0) {
        struct outcome *outcome = calloc(1, sizeof(*outcome));
        if (outcome == NULL) {
            complain("no memory");
            code = EXIT_FAILED;
        } else {
            code = run(options, &plan, outcome);
        }
        free(outcome);
    }
    target_free(&options->target);
    return code;
}

static int start_sleepers(const struct options *options)
{
    struct sleepers_setup setup = {.count = options->fibers, .sleep_ns = options->sleep_ns};
    struct sleepers_result result;

    setup.carriers = options->carriers > 0 ? options->carriers : sys_processors();
    int error = sleepers_run(&setup, &result);
    if (error < 0) {
        char why[384];
        ring_refusal(error, why, sizeof(why));
        complain("%s", why);
        return EXIT_FAILED;
    }
    return sleepers_print(&setup, &result, options->json);
}

int main(int argument_count, char **arguments)
{
    struct options options;
    struct log_setup log = {.level = LOG_OFF};
    log_init(&log); /* the server's parts would log to stdout */

    int code = options_parse(&options, argument_count, arguments);
    if (code == 0) {
        switch (options.action) {
        case OPTIONS_HELP:
            fputs(options_help(), stdout);
            break;
        case OPTIONS_VERSION:
            printf("ringload %s\n", RINGSPUN_VERSION);
            break;
        case OPTIONS_RUN:
            code = start(&options);
            break;
        case OPTIONS_SLEEPERS:
            code = start_sleepers(&options);
            break;
        }
    }
    options_free(&options);
    return code;
}
