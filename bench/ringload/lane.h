/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lane.h - one carrier's part of the load: its users, its seats and what it counts.
 *
 *   create: all users are spawned and park -> go: as many as there are seats set off
 *       -> a user that is done hands its seat to one that waits -> none is left
 */
#ifndef BENCH_LANE_H
#define BENCH_LANE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "ring/carrier.h"
#include "ringload/launch.h"
#include "ringload/seat.h"
#include "ringload/tally.h"

/* Source addresses that one connect tries before it gives up. */
#define LANE_SOURCES_TRIED 64u

struct load;
struct lane;

/* A virtual user, while its fiber lives. */
struct user {
    struct lane *lane;
    struct fiber *fiber; /* NULL: not begun, or ended */
    struct seat *seat;   /* NULL: waits for one */
};

struct lane {
    /* set once */
    struct load *load;
    struct carrier *carrier;
    unsigned number;
    struct user *users;
    uint64_t user_count;
    char *seat_memory;
    uint64_t seat_count;
    struct message create, go, halt;
    /* the carrier's own */
    struct launch launch;
    struct seat *free_seats;
    uint64_t live;        /* users */
    uint64_t waiting;     /* users that have come to the start */
    uint64_t next;        /* user that sets off next */
    size_t address;       /* of the target's, the one in use */
    uint32_t source;      /* number of the client address in use; 0: the kernel's choice */
    uint64_t random;      /* state of a generator, for templates */
    uint32_t turn;        /* takes the planned source addresses in turn */
    bool halted;          /* no user begins anything more */
    int unreachable;      /* -errno: nobody is there */
    int create_error;     /* -errno: not all users could be made */
    uint64_t finished_ns; /* when the last answer had come, or failed */
    struct tally tally;
    /* read by the main thread meanwhile */
    _Alignas(64) _Atomic uint64_t shown_done; /* complete */
    _Atomic uint64_t shown_failed;
    _Atomic uint64_t shown_latency_ns; /* sum of the complete ones' */
    _Atomic int64_t shown_open;        /* connections */
};

/*
 * lane_init - memory for so many users and seats. lane_fini gives it back.
 *
 * Returns  0; -ENOMEM
 */
int lane_init(struct lane *lane, uint64_t user_count, uint64_t seat_count) WARN_UNUSED;
void lane_fini(struct lane *lane);

/* lane_create, lane_go, lane_halt - posted by the main thread, in this order, each once. */
void lane_create(struct lane *lane);
void lane_go(struct lane *lane);
void lane_halt(struct lane *lane);

/* lane_stop_users - end all users of this lane now. Its own thread; does not park. */
void lane_stop_users(struct lane *lane);

/* lane_current - the lane of the calling carrier thread. */
struct lane *lane_current(void);

/* lane_source - the client address for the next connect. Returns false: none, let the kernel choose. */
bool lane_source(struct lane *lane, struct sys_address *source);

/* lane_next_source - from now on use another one. */
void lane_next_source(struct lane *lane);

/* lane_show_open - the number of open connections changed by so many. */
void lane_show_open(struct lane *lane, int change);

/* user_run - the fiber of a user: its whole life. */
void user_run(void *argument);

#endif
