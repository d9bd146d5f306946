/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch.c - see launch.h. Called by seat.c and user.c.
 */
#include "ringload/launch.h"

#include <errno.h>

#include "base/must.h"
#include "base/time.h"
#include "fiber/fiber.h"
#include "ring/carrier.h"

/*
 * Of the queue, half is left to others. While answers come they alone allow more; where
 * none has come for so long, time gives that half in so long: 8192 a second from 4096.
 */
#define SILENCE_NS (250 * NS_PER_MS)

/* Begun in one turn of the loop: while they are begun, no completion is seen. */
#define TURN_MAX 64u

struct waiter {
    struct list link;
    struct fiber *fiber;
};

void launch_init(struct launch *launch, uint64_t queue, unsigned lanes)
{
    *launch = (struct launch){.burst = (double)queue / 2 / lanes};
    if (queue > 0 && launch->burst < 1) {
        launch->burst = 1;
    }
    launch->per_ns = launch->burst / (double)SILENCE_NS;
    launch->permits = launch->burst;
    list_init(&launch->waiting);
}

static void refill(struct launch *launch, uint64_t now_ns)
{
    if (now_ns <= launch->since_ns) {
        return; /* an answer came a moment ago */
    }
    launch->permits += (double)(now_ns - launch->since_ns) * launch->per_ns;
    launch->since_ns = now_ns;
    if (launch->permits > launch->burst) {
        launch->permits = launch->burst;
    }
}

static struct waiter *waiter_of(struct list *link)
{
    return container_of(link, struct waiter, link);
}

/* wake - those that may go now; the first in any case, since it waits by the clock. */
static void wake(struct launch *launch)
{
    struct list *link = launch->waiting.next;
    unsigned count = 0;
    if (link == &launch->waiting || waiter_of(link)->fiber->state != FIBER_PARKED) {
        return; /* woken already, and so were those behind it */
    }
    do {
        fiber_wake(waiter_of(link)->fiber);
        link = link->next;
    } while (link != &launch->waiting && ++count < TURN_MAX && count < launch->permits);
}

/* may_go - there is a permit, and this turn of the loop has not begun too many. */
static bool may_go(struct launch *launch, uint64_t turn)
{
    if (launch->turn != turn) {
        launch->turn = turn;
        launch->in_turn = 0;
    }
    return launch->permits >= 1 && launch->in_turn < TURN_MAX;
}

/* next_permit_ns - when time will have given the next one, or the deadline if that is sooner. */
static uint64_t next_permit_ns(const struct launch *launch, uint64_t deadline_ns)
{
    must(launch->permits < 1);
    uint64_t next_ns = launch->since_ns + (uint64_t)((1 - launch->permits) / launch->per_ns) + 1;
    return next_ns < deadline_ns ? next_ns : deadline_ns;
}

/* wait_in_line - until the caller is the first, and may go. */
static int wait_in_line(struct launch *launch, struct fiber *fiber, uint64_t deadline_ns)
{
    const uint64_t *turn = &carrier_current()->turns;
    struct waiter self = {.fiber = fiber};
    int result = 0;
    list_append(&launch->waiting, &self.link);
    do {
        bool first = launch->waiting.next == &self.link;
        if (first && launch->permits >= 1) {
            fiber_yield(); /* only this turn has had its share */
            result = fiber->cancelled ? -ECANCELED : 0;
        } else {
            result =
                fiber_park("launch", first ? next_permit_ns(launch, deadline_ns) : deadline_ns);
        }
        refill(launch, fiber->sched->now_ns);
        if (result == -ETIMEDOUT && fiber->sched->now_ns < deadline_ns) {
            result = 0;
        }
    } while (result == 0 && (launch->waiting.next != &self.link || !may_go(launch, *turn)));
    list_remove(&self.link);
    return result;
}

int launch_wait(struct launch *launch, uint64_t deadline_ns)
{
    struct fiber *fiber = fiber_current();
    int result = 0;
    if (launch->burst == 0) {
        return 0;
    }
    refill(launch, fiber->sched->now_ns);
    if (!list_empty(&launch->waiting) || !may_go(launch, carrier_current()->turns)) {
        result = wait_in_line(launch, fiber, deadline_ns);
    }
    if (result == 0) {
        launch->permits -= 1;
        launch->in_turn++;
    }
    wake(launch);
    return result;
}

void launch_answered(struct launch *launch)
{
    if (launch->burst > 0) {
        launch->since_ns = fiber_current()->sched->now_ns + SILENCE_NS;
        launch->permits = launch->permits + 1 < launch->burst ? launch->permits + 1 : launch->burst;
        wake(launch);
    }
}
