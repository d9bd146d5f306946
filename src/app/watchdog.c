/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watchdog.c - ask the carriers, and see whether all answered. Called by run.c.
 */
#include "app/watchdog.h"

#include <errno.h>
#include <stdlib.h>

#include "ring/sys.h"

/* However short the interval is said to be, the main thread does not spin. */
#define PERIOD_NS_MIN NS_PER_MS

static void run_tick(struct message *message)
{
    struct watchdog *watchdog = container_of(message, struct watchdog_tick, message)->watchdog;
    if (atomic_fetch_sub(&watchdog->outstanding, 1) == 1) {
        sys_eventfd_signal(watchdog->setup.wake_fd);
    }
}

int watchdog_init(struct watchdog *watchdog, const struct watchdog_setup *setup)
{
    *watchdog = (struct watchdog){.setup = *setup};
    if (setup->interval_ns == 0) {
        return 0;
    }
    watchdog->ticks = calloc(setup->carrier_count, sizeof(*watchdog->ticks));
    if (watchdog->ticks == NULL) {
        return -ENOMEM;
    }
    for (unsigned i = 0; i < setup->carrier_count; i++) {
        watchdog->ticks[i] =
            (struct watchdog_tick){.message = {.run = run_tick}, .watchdog = watchdog};
    }
    return 0;
}

/* ask - the carriers have run what was asked before, so the messages are ours again. */
static void ask(struct watchdog *watchdog, uint64_t now_ns)
{
    uint64_t period_ns = watchdog->setup.interval_ns / 2;
    watchdog->asked = true;
    watchdog->ask_at_ns = now_ns + (period_ns > PERIOD_NS_MIN ? period_ns : PERIOD_NS_MIN);
    atomic_store(&watchdog->outstanding, watchdog->setup.carrier_count);
    for (unsigned i = 0; i < watchdog->setup.carrier_count; i++) {
        carrier_post(&watchdog->setup.carriers[i], &watchdog->ticks[i].message);
    }
}

bool watchdog_look(struct watchdog *watchdog, uint64_t now_ns)
{
    if (watchdog->ticks == NULL) {
        return false;
    }
    bool alive = watchdog->asked && atomic_load(&watchdog->outstanding) == 0;
    if (alive) {
        watchdog->asked = false;
    }
    if (!watchdog->asked && now_ns >= watchdog->ask_at_ns) {
        ask(watchdog, now_ns);
    }
    return alive;
}

uint64_t watchdog_deadline_ns(const struct watchdog *watchdog)
{
    return watchdog->ticks == NULL || watchdog->asked ? 0 : watchdog->ask_at_ns;
}

void watchdog_fini(struct watchdog *watchdog)
{
    free(watchdog->ticks);
    watchdog->ticks = NULL;
}
