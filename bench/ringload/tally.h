/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tally.h - what became of the requests, counted by each carrier for itself and
 * merged at the end.
 */
#ifndef BENCH_TALLY_H
#define BENCH_TALLY_H

#include <stdbool.h>
#include <stdint.h>

#include "ringload/histogram.h"

#define TALLY_STATUSES 1000
#define TALLY_REASON_SIZE 128

/* Ways to fail, each counted apart. TALLY_STATUS alone is a complete answer. */
enum failure {
    FAILURE_CONNECT,   /* no connection, whatever the reason, or not within the timeout */
    FAILURE_TIMEOUT,   /* no complete answer within the timeout */
    FAILURE_RESET,     /* the connection was reset */
    FAILURE_SHORT,     /* the server closed before the answer was complete */
    FAILURE_MALFORMED, /* the answer is nonsense, or not the echo of what was sent */
    FAILURE_STATUS,    /* a complete answer whose status is not 2xx */
    FAILURE_KINDS
};

/* Zeroed, it is empty. Large: not for stacks. */
struct tally {
    uint64_t started;  /* requests */
    uint64_t complete; /* answers, whatever their status; connections, where only they are made */
    uint64_t failures[FAILURE_KINDS];
    uint64_t cut;         /* in work when the run was interrupted: neither complete nor failed */
    uint64_t connections; /* made */
    uint64_t reused;      /* requests on a connection that had served one before */
    uint64_t lost;        /* connections that were to be held and ended before their time */
    uint64_t sent_bytes;
    uint64_t received_bytes;
    uint64_t body_bytes;
    uint64_t document_bytes; /* body of the first answer */
    uint64_t statuses[TALLY_STATUSES];
    char first_reason[TALLY_REASON_SIZE]; /* of the first failure */
    struct histogram latency;             /* of complete answers, ns */
    struct histogram connect;             /* of connections made, ns */
};

/* tally_merge - add what other has counted. */
void tally_merge(struct tally *tally, const struct tally *other);

/* tally_failed - requests that failed, of all kinds. */
uint64_t tally_failed(const struct tally *tally);

/* tally_failure_name - "connect", "timeout", … "non-2xx". Static text. */
const char *tally_failure_name(enum failure kind);

#endif
