/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.h - the command line, checked.
 */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/slice.h"
#include "ringload/condition.h"
#include "ringload/target.h"

#define OPTIONS_HEADERS_MAX 64
#define OPTIONS_CONDITIONS_MAX 16
#define OPTIONS_SOURCES_MAX 60000
#define OPTIONS_CARRIERS_MAX 64

enum options_action { OPTIONS_RUN, OPTIONS_SLEEPERS, OPTIONS_HELP, OPTIONS_VERSION };

/* What a user does. */
enum options_kind {
    OPTIONS_HTTP,
    OPTIONS_ECHO,    /* sends, and wants the same bytes back */
    OPTIONS_GREETER, /* reads until the server closes */
    OPTIONS_CONNECT, /* connects and closes */
    OPTIONS_HOLD     /* connects and keeps the connection */
};

struct options {
    enum options_action action;
    enum options_kind kind;
    struct target target;
    uint64_t requests;    /* 0: until the duration is over */
    uint64_t connections; /* at the same time; of --users what is left of it by the limits */
    uint64_t users;       /* of --users; else 0 */
    uint64_t duration_ns; /* 0: until all requests are made */
    double rate;          /* intended starts a second, all together; 0: closed loop */
    uint64_t timeout_ns;
    uint64_t fibers;   /* of OPTIONS_SLEEPERS, which has no target */
    uint64_t sleep_ns; /* of each */
    bool keepalive;
    bool json;
    bool quiet;
    bool burst; /* begin all connections at once, whatever the server's queue */
    bool has_body;
    const char *method;
    const char *headers[OPTIONS_HEADERS_MAX];
    size_t header_count;
    struct slice body;
    char *body_memory; /* of --body-file, or NULL */
    bool has_expected_latency;
    uint64_t expected_latency_ns;
    uint64_t expected_threads; /* 0: no bound but the connections */
    unsigned carriers;
    unsigned sources; /* 0: as many as are needed */
    struct condition conditions[OPTIONS_CONDITIONS_MAX];
    size_t condition_count;
};

/*
 * options_parse - read the command line; what is wrong is said in one line on stderr.
 *
 * Returns  0; 2 the exit code of bad usage; 1 a file could not be read
 * Owner    keeps the arguments' text; options_free gives the rest back
 */
int options_parse(struct options *options, int count, char **arguments) WARN_UNUSED;
void options_free(struct options *options);

/* options_help - the text of --help. Static. */
const char *options_help(void);

/* complain - "ringload: " and one line on stderr. */
void complain(const char *format, ...) PRINTF_LIKE(1, 2);

#endif
