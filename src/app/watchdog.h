/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watchdog.h - does every carrier still turn? Asked by the main thread, so that a
 * service manager is told that we live only when all of them do.
 *
 *   main thread                         each carrier
 *   ask: a message to every inbox  -->  runs it between two fibers: ticked
 *   all ticked: feed               <--  the last of them wakes the main thread
 *   half the interval later: ask again
 *
 * A carrier that one fiber holds runs no message: nothing is fed from then on, and
 * the manager ends the process. Without an interval nothing is asked and nobody
 * is woken: an idle server uses no processor.
 */
#ifndef APP_WATCHDOG_H
#define APP_WATCHDOG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "ring/carrier.h"

struct watchdog_tick {
    struct message message;
    struct watchdog *watchdog;
};

struct watchdog_setup {
    struct carrier *carriers;
    unsigned carrier_count;
    uint64_t interval_ns; /* how often a feed is expected at least; 0: never */
    int wake_fd;          /* eventfd that the main thread sleeps on */
};

struct watchdog {
    struct watchdog_setup setup; /* set once */
    struct watchdog_tick *ticks; /* one a carrier, owned; NULL: off */
    /* the main thread's */
    bool asked;
    uint64_t ask_at_ns;
    /* the carriers' too */
    atomic_uint outstanding; /* carriers that have not ticked yet */
};

/*
 * watchdog_init - asks first when it is first looked at.
 *
 * Returns  0; -ENOMEM
 * Owner    the carriers must have been joined before watchdog_fini
 */
int watchdog_init(struct watchdog *watchdog, const struct watchdog_setup *setup) WARN_UNUSED;

/* watchdog_look - on each turn of the main thread. Returns true when all have ticked since the last feed: feed now. */
bool watchdog_look(struct watchdog *watchdog, uint64_t now_ns);

/* watchdog_deadline_ns - when to look again, however quiet it is; 0: when woken. */
uint64_t watchdog_deadline_ns(const struct watchdog *watchdog);

void watchdog_fini(struct watchdog *watchdog);

#endif
