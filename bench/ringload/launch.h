/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch.h - how fast new connections are begun.
 *
 * A server keeps connections that it has not accepted yet in a queue (4096 where
 * net.core.somaxconn was left alone). A client that begins 20 000 in one breath
 * overruns it, and the kernel tries those that were dropped again after 1, 3, 7 …
 * seconds: then the load is the kernel's timer and not the server. So a lane may
 * have so many connections under way that are not answered yet; each answer allows
 * another, and where none comes, since answers may take seconds, time does.
 *
 * One lane's; its own thread only.
 */
#ifndef BENCH_LAUNCH_H
#define BENCH_LAUNCH_H

#include <stdint.h>

#include "base/attr.h"
#include "base/list.h"

struct fiber;

struct launch {
    /* set once */
    double burst;  /* permits at most; 0: no bound */
    double per_ns; /* permits that time gives */
    /* changing */
    double permits;
    uint64_t since_ns;   /* as of when; in the future: when time begins to count again */
    uint64_t turn;       /* of the carrier's loop */
    unsigned in_turn;    /* connections begun in it */
    struct list waiting; /* launch_wait's callers, first in first out */
};

/* launch_init - for one of so many lanes that share the queue of so many. */
void launch_init(struct launch *launch, uint64_t queue, unsigned lanes);

/*
 * launch_wait - until one more connection may be begun.
 *
 * Returns  0; -ETIMEDOUT; -ECANCELED
 * Parks    when none may at once
 */
int launch_wait(struct launch *launch, uint64_t deadline_ns) WARN_UNUSED;

/* launch_answered - the first answer on a connection, or its end: another may begin. */
void launch_answered(struct launch *launch);

#endif
