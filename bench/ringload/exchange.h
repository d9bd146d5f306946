/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exchange.h - one request of a user and its answer, of each kind that there is.
 */
#ifndef BENCH_EXCHANGE_H
#define BENCH_EXCHANGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/attr.h"
#include "ringload/tally.h"

struct lane;
struct seat;

enum verdict {
    VERDICT_ANSWERED, /* a complete answer, whatever it says */
    VERDICT_FAILED,   /* see failure and reason */
    VERDICT_CUT       /* the run was interrupted */
};

struct exchange {
    /* set by the user */
    struct lane *lane;
    struct seat *seat;
    uint64_t start_ns;    /* intended */
    uint64_t deadline_ns; /* of the connect and the answer together */
    bool idled;           /* the connection lay idle before it */
    /* what became of it */
    bool any;        /* some byte has come */
    uint64_t end_ns; /* the answer's last byte */
    enum failure failure;
    int error;          /* -errno of a connect that failed */
    const char *reason; /* static text */
    int status;         /* of an HTTP answer; 0 elsewhere */
    bool keep;          /* the connection may serve the next one */
};

/*
 * exchange_http, exchange_echo, exchange_greeter, exchange_connect, exchange_hold -
 * make one; connects where the seat has no connection.
 *
 * Parks    yes
 */
enum verdict exchange_http(struct exchange *exchange) WARN_UNUSED;
enum verdict exchange_echo(struct exchange *exchange) WARN_UNUSED;
enum verdict exchange_greeter(struct exchange *exchange) WARN_UNUSED;
enum verdict exchange_connect(struct exchange *exchange) WARN_UNUSED;
enum verdict exchange_hold(struct exchange *exchange) WARN_UNUSED;

/*
 * Shared by exchange*.c.
 *
 * exchange__connect - a connection, kept or new.
 * exchange__fail    - failed so, for this reason.
 * exchange__fail_io - an error of wire_recv as a failure; -ECANCELED as a cut.
 * exchange__recv    - one piece into the seat's room, counted.
 * exchange__answered - now.
 */
enum verdict exchange__connect(struct exchange *exchange) WARN_UNUSED;
enum verdict exchange__fail(struct exchange *exchange, enum failure failure, const char *reason);
enum verdict exchange__fail_io(struct exchange *exchange, int error);
ssize_t exchange__recv(struct exchange *exchange, uint64_t deadline_ns) WARN_UNUSED;
enum verdict exchange__answered(struct exchange *exchange);

#endif
