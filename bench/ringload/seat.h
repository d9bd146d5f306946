/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seat.h - what a virtual user needs while it is at work: a connection, a parser and
 * their memory. As many as connections at the same time; of 100 000 users that take
 * turns each one finds its seat warm. One page.
 */
#ifndef BENCH_SEAT_H
#define BENCH_SEAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/attr.h"
#include "http/parser.h"
#include "ringload/wire.h"

#define SEAT_BYTES 4096
#define SEAT_HEAD_BYTES 1536 /* of an answer's head, before its arena asks for more */
#define SEAT_LARGE_BYTES ((size_t)128 << 10)

struct lane;

struct seat {
    struct seat *next; /* free seats of the lane */
    struct wire wire;
    bool answered; /* this connection has had an answer: see launch.h */
    char *large;   /* heap: received into, once an answer has filled room; or NULL */
    char *request; /* heap: of a target with a template, this seat's own; or NULL */
    struct parser parser;
    struct arena arena;
    char head[SEAT_HEAD_BYTES];
    char room[]; /* the rest of the page is received into */
};

_Static_assert(sizeof(struct seat) <= SEAT_BYTES - 1024, "room for a small answer");

/* seat_room - where the next piece goes; seat_enlarge after one that filled it. */
struct op_room seat_room(struct seat *seat);
void seat_enlarge(struct seat *seat);

/* seat_request - what is sent next: new numbers in it, if the target has a template; .at is NULL without memory. */
struct slice seat_request(struct seat *seat, struct lane *lane);

/*
 * seat_connect - open the connection, for which launch_wait gave the permit: to the first address of the target that
 * answers, from the source address that has ports left.
 *
 * Returns  0; -ETIMEDOUT, -ECONNREFUSED, … ; -ECANCELED
 * Parks    yes
 */
int seat_connect(struct seat *seat, struct lane *lane, uint64_t deadline_ns) WARN_UNUSED;

/* seat_answered - the server has accepted this connection, since it answers. */
void seat_answered(struct seat *seat, struct lane *lane);

/* seat_close - the connection, if there is one. */
void seat_close(struct seat *seat, bool reset);

#endif
