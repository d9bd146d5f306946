/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.c - see options.h. Called by main.c. Whether the limits of the host allow
 * what is asked for is plan.c's part.
 */
#include "ringload/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/time.h"

#include "ringload/quantity.h"

#define USAGE 2

#define REQUESTS_DEFAULT 200
#define CONNECTIONS_DEFAULT 50
#define TIMEOUT_DEFAULT_NS (30 * NS_PER_S)
#define HOLD_DEFAULT_NS (10 * NS_PER_S)
#define BODY_FILE_BYTES_MAX ((size_t)64 << 20)
#define USERS_MAX 10000000
#define SLEEP_DEFAULT_NS (5 * NS_PER_S)

enum {
    OPTION_USERS = 256,
    OPTION_FIBERS,
    OPTION_SLEEP,
    OPTION_CARRIERS,
    OPTION_SOURCES,
    OPTION_KEEPALIVE,
    OPTION_NO_KEEPALIVE,
    OPTION_CONNECT_ONLY,
    OPTION_HOLD,
    OPTION_BURST,
    OPTION_GREETER,
    OPTION_BODY_FILE,
    OPTION_JSON,
    OPTION_EXPECT_LATENCY,
    OPTION_EXPECT_THREADS,
    OPTION_FAIL_IF,
    OPTION_HELP,
    OPTION_VERSION
};

static const struct option names[] = {
    {"requests", required_argument, NULL, 'n'},
    {"connections", required_argument, NULL, 'c'},
    {"duration", required_argument, NULL, 'd'},
    {"rate", required_argument, NULL, 'R'},
    {"users", required_argument, NULL, OPTION_USERS},
    {"fibers", required_argument, NULL, OPTION_FIBERS},
    {"sleep", required_argument, NULL, OPTION_SLEEP},
    {"carriers", required_argument, NULL, OPTION_CARRIERS},
    {"sources", required_argument, NULL, OPTION_SOURCES},
    {"keepalive", no_argument, NULL, OPTION_KEEPALIVE},
    {"no-keepalive", no_argument, NULL, OPTION_NO_KEEPALIVE},
    {"connect-only", no_argument, NULL, OPTION_CONNECT_ONLY},
    {"hold", no_argument, NULL, OPTION_HOLD},
    {"burst", no_argument, NULL, OPTION_BURST},
    {"greeter", no_argument, NULL, OPTION_GREETER},
    {"method", required_argument, NULL, 'm'},
    {"header", required_argument, NULL, 'H'},
    {"body", required_argument, NULL, 'b'},
    {"body-file", required_argument, NULL, OPTION_BODY_FILE},
    {"timeout", required_argument, NULL, 't'},
    {"json", no_argument, NULL, OPTION_JSON},
    {"quiet", no_argument, NULL, 'q'},
    {"expect-latency", required_argument, NULL, OPTION_EXPECT_LATENCY},
    {"expect-threads", required_argument, NULL, OPTION_EXPECT_THREADS},
    {"fail-if", required_argument, NULL, OPTION_FAIL_IF},
    {"help", no_argument, NULL, OPTION_HELP},
    {"version", no_argument, NULL, OPTION_VERSION},
    {NULL, 0, NULL, 0},
};

void complain(const char *format, ...)
{
    char line[1024];
    va_list values;
    va_start(values, format);
    vsnprintf(line, sizeof(line), format, values);
    va_end(values);
    for (char *at = line; *at != '\0'; at++) {
        if ((unsigned char)*at < ' ' || *at == 0x7f) {
            *at = '?'; /* an argument with a line end in it still makes one line */
        }
    }
    fprintf(stderr, "ringload: %s\n", line);
}

/* What has been seen on the command line, beside its values. */
struct seen {
    bool requests, connections, duration, keepalive, method, greeter, connect_only, hold;
    bool fibers, sleep;
};

static int read_count(const char *name, uint64_t max, uint64_t *value)
{
    int result = quantity_count(optarg, value);
    if (result == -EINVAL) {
        complain("%s %s: not a number of digits, with k or m behind it or not", name, optarg);
    } else if (result == 0 && *value == 0) {
        complain("%s %s: at least 1", name, optarg);
    } else if (result == -ERANGE || *value > max) {
        complain("%s %s: at most %llu", name, optarg, (unsigned long long)max);
    } else {
        return 0;
    }
    return USAGE;
}

static int read_duration(const char *name, bool may_be_zero, uint64_t *ns)
{
    if (quantity_duration(optarg, ns) != 0) {
        complain("%s %s: not a duration such as 250ms, 10s or 2m, of at most a week", name, optarg);
        return USAGE;
    }
    if (*ns == 0 && !may_be_zero) {
        complain("%s %s: more than 0", name, optarg);
        return USAGE;
    }
    return 0;
}

static int read_small(const char *name, unsigned max, unsigned *value)
{
    uint64_t count;
    int code = read_count(name, max, &count);
    *value = code == 0 ? (unsigned)count : 0;
    return code;
}

static bool is_token(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c <= ' ' || c >= 0x7f || strchr("()<>@,;:\\\"/[]?={}", c) != NULL) {
            return false;
        }
    }
    return length > 0;
}

static int read_header(struct options *options)
{
    const char *colon = strchr(optarg, ':');
    if (colon == NULL || !is_token(optarg, (size_t)(colon - optarg)) ||
        strpbrk(optarg, "\r\n") != NULL) {
        complain("-H '%s': not of the form 'Name: value'", optarg);
        return USAGE;
    }
    if (options->header_count == OPTIONS_HEADERS_MAX) {
        complain("-H '%s': at most %d header fields", optarg, OPTIONS_HEADERS_MAX);
        return USAGE;
    }
    options->headers[options->header_count++] = optarg;
    return 0;
}

static int read_body_file(struct options *options)
{
    free(options->body_memory);
    options->body_memory = malloc(BODY_FILE_BYTES_MAX);
    ssize_t length = options->body_memory == NULL
                         ? -ENOMEM
                         : sys_read_file(optarg, options->body_memory, BODY_FILE_BYTES_MAX);
    if (length < 0) {
        complain("--body-file %s: %s", optarg, strerrordesc_np((int)-length));
        return 1;
    }
    options->body = (struct slice){.at = options->body_memory, .length = (size_t)length};
    options->has_body = true;
    return 0;
}

static int read_condition(struct options *options)
{
    if (options->condition_count == OPTIONS_CONDITIONS_MAX) {
        complain("--fail-if '%s': at most %d conditions", optarg, OPTIONS_CONDITIONS_MAX);
        return USAGE;
    }
    if (condition_parse(&options->conditions[options->condition_count], optarg) != 0) {
        complain("--fail-if '%s': not a condition such as p99>3.1s, avg>=20ms, rps<500, errors>0 "
                 "or errors>0.1%%",
                 optarg);
        return USAGE;
    }
    options->condition_count++;
    return 0;
}

/* read_flag - an option without a value, or one that only stores it. */
static int read_flag(struct options *options, struct seen *seen, int option)
{
    switch (option) {
    case OPTION_KEEPALIVE:
    case OPTION_NO_KEEPALIVE:
        options->keepalive = option == OPTION_KEEPALIVE;
        return 0;
    case OPTION_CONNECT_ONLY:
        seen->connect_only = true;
        return 0;
    case OPTION_HOLD:
        seen->hold = true;
        return 0;
    case OPTION_BURST:
        options->burst = true;
        return 0;
    case OPTION_GREETER:
        seen->greeter = true;
        return 0;
    case OPTION_JSON:
        options->json = true;
        return 0;
    case 'q':
        options->quiet = true;
        return 0;
    case 'b':
        options->body = slice_of(optarg);
        options->has_body = true;
        return 0;
    case OPTION_HELP:
        options->action = OPTIONS_HELP;
        return 0;
    case OPTION_VERSION:
        options->action = OPTIONS_VERSION;
        return 0;
    default:
        return USAGE;
    }
}

static int read_rate(struct options *options)
{
    const char *rest;
    uint64_t whole;
    if (quantity_count(optarg, &whole) == 0) {
        options->rate = (double)whole;
    } else if (quantity_decimal(optarg, &options->rate, &rest) != 0 || *rest != '\0') {
        complain("-R %s: not a number of requests a second", optarg);
        return USAGE;
    }
    if (options->rate <= 0 || options->rate > 1e7) {
        complain("-R %s: more than 0 and at most 10m", optarg);
        return USAGE;
    }
    return 0;
}

static int read_option(struct options *options, struct seen *seen, int option)
{
    switch (option) {
    case 'n':
        seen->requests = true;
        return read_count("-n", UINT64_C(1000000000000), &options->requests);
    case 'c':
        seen->connections = true;
        return read_count("-c", USERS_MAX, &options->connections);
    case 'd':
        seen->duration = true;
        return read_duration("-d", false, &options->duration_ns);
    case 'R':
        return read_rate(options);
    case 't':
        return read_duration("-t", false, &options->timeout_ns);
    case OPTION_USERS:
        return read_count("--users", USERS_MAX, &options->users);
    case OPTION_FIBERS:
        seen->fibers = true;
        return read_count("--fibers", USERS_MAX, &options->fibers);
    case OPTION_SLEEP:
        seen->sleep = true;
        return read_duration("--sleep", true, &options->sleep_ns);
    case OPTION_CARRIERS:
        return read_small("--carriers", OPTIONS_CARRIERS_MAX, &options->carriers);
    case OPTION_SOURCES:
        return read_small("--sources", OPTIONS_SOURCES_MAX, &options->sources);
    case 'm':
        seen->method = true;
        options->method = optarg;
        if (!is_token(optarg, strlen(optarg))) {
            complain("-m '%s': not a method", optarg);
            return USAGE;
        }
        return 0;
    case 'H':
        return read_header(options);
    case OPTION_BODY_FILE:
        return read_body_file(options);
    case OPTION_EXPECT_LATENCY:
        options->has_expected_latency = true;
        return read_duration("--expect-latency", true, &options->expected_latency_ns);
    case OPTION_EXPECT_THREADS:
        return read_count("--expect-threads", USERS_MAX, &options->expected_threads);
    case OPTION_FAIL_IF:
        return read_condition(options);
    default:
        return read_flag(options, seen, option);
    }
}

static int refuse(const char *text)
{
    complain("%s", text);
    return USAGE;
}

/* check_kind - what a user does, and whether the options fit that. */
static int check_kind(struct options *options, const struct seen *seen)
{
    if (seen->greeter + seen->connect_only + seen->hold > 1) {
        return refuse("--greeter, --connect-only and --hold exclude each other");
    }
    if (seen->greeter && options->target.is_http) {
        return refuse("--greeter is for tcp:// URLs");
    }
    if (!options->target.is_http && (options->header_count > 0 || seen->method)) {
        return refuse("-H and -m are for http:// URLs");
    }
    if (seen->hold && (seen->requests || options->rate > 0 || options->users > 0)) {
        return refuse("--hold goes with -c and -d, not with -n, -R or --users");
    }
    options->kind = seen->hold                ? OPTIONS_HOLD
                    : seen->connect_only      ? OPTIONS_CONNECT
                    : seen->greeter           ? OPTIONS_GREETER
                    : options->target.is_http ? OPTIONS_HTTP
                                              : OPTIONS_ECHO;
    if (options->kind == OPTIONS_ECHO && !options->has_body) {
        options->body = SLICE("Hello, World\n");
        options->has_body = true;
    }
    if (options->kind == OPTIONS_ECHO && options->body.length == 0) {
        return refuse("-b: an echo needs at least one byte");
    }
    if (options->kind == OPTIONS_HTTP && options->has_body && !seen->method) {
        options->method = "POST";
    }
    return 0;
}

/* check_amount - how much, with the defaults of what was not said. */
static int check_amount(struct options *options, const struct seen *seen)
{
    if (options->kind == OPTIONS_HOLD) {
        options->requests = options->connections;
        options->duration_ns = seen->duration ? options->duration_ns : HOLD_DEFAULT_NS;
        return 0;
    }
    if (options->users > 0) {
        if (seen->requests || seen->duration || options->rate > 0) {
            return refuse("--users makes one request a user: not with -n, -d or -R");
        }
        if (!seen->connections || options->connections > options->users) {
            options->connections = options->users;
        }
        options->requests = options->users;
        return 0;
    }
    if (!seen->requests) {
        options->requests = seen->duration ? 0 : REQUESTS_DEFAULT;
    }
    if (options->requests > 0 && options->connections > options->requests) {
        if (seen->connections && seen->requests) {
            complain("-c %llu is more than -n %llu: a connection needs a request",
                     (unsigned long long)options->connections,
                     (unsigned long long)options->requests);
            return USAGE;
        }
        if (seen->connections) {
            options->requests = options->connections;
        } else {
            options->connections = options->requests;
        }
    }
    return 0;
}

/* check_sleepers - fibers that only sleep ask nobody. */
static int check_sleepers(struct options *options, const struct seen *seen, bool has_url)
{
    if (!seen->fibers) {
        return refuse("--sleep goes with --fibers");
    }
    if (has_url || options->users > 0 || seen->requests || seen->connections || seen->duration) {
        return refuse(
            "--fibers only sleep: no URL, and nothing but --sleep, --carriers and --json");
    }
    options->action = OPTIONS_SLEEPERS;
    return 0;
}

int options_parse(struct options *options, int count, char **arguments)
{
    struct seen seen = {.requests = false};
    int option, code = 0;
    *options = (struct options){
        .connections = CONNECTIONS_DEFAULT,
        .timeout_ns = TIMEOUT_DEFAULT_NS,
        .sleep_ns = SLEEP_DEFAULT_NS,
        .keepalive = true,
        .method = "GET",
    };
    opterr = 0;
    while (code == 0 &&
           (option = getopt_long(count, arguments, ":n:c:d:R:m:H:b:t:q", names, NULL)) != -1) {
        if (option == '?' || option == ':') {
            complain(option == '?' ? "%s: no such option ('ringload --help' names them)"
                                   : "%s: a value is missing",
                     arguments[optind - 1]);
            return USAGE;
        }
        code = read_option(options, &seen, option);
    }
    if (code != 0 || options->action != OPTIONS_RUN) {
        return code;
    }
    if (seen.fibers || seen.sleep) {
        return check_sleepers(options, &seen, optind != count);
    }
    if (optind != count - 1) {
        complain("%s", optind == count ? "a URL is missing ('ringload --help' shows the usage)"
                                       : "more than one URL");
        return USAGE;
    }
    const char *why;
    if (target_parse(&options->target, arguments[optind], &why) != 0) {
        complain("%s: %s", arguments[optind], why);
        return USAGE;
    }
    code = check_kind(options, &seen);
    return code != 0 ? code : check_amount(options, &seen);
}

void options_free(struct options *options)
{
    free(options->body_memory);
    options->body_memory = NULL;
}
