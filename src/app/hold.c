/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hold.c - hold a carrier for ever. Called by run.c, in tests of the watchdog only.
 */
#include "app/hold.h"

#include <stdatomic.h>
#include <stdbool.h>

#include "base/log.h"
#include "fiber/fiber.h"

static struct carrier *held;

static void spin(void *argument)
{
    (void)argument;
    static atomic_bool never;
    while (!atomic_load_explicit(&never, memory_order_relaxed)) {
    }
}

static void run_stick(struct message *message)
{
    (void)message;
    struct fiber_name name = {.prefix = "stuck-on-purpose"};
    log_warn("app.hold", "ringspun.debug.stuck-carrier-after: %s is held from now on", held->name);
    if (fiber_spawn(&held->sched, name, spin, NULL) == NULL) {
        log_warn("app.hold", "no memory for the fiber that is to hold it");
    }
}

void hold_carrier(struct carrier *carrier)
{
    static struct message stick = {.run = run_stick};
    held = carrier;
    carrier_post(carrier, &stick);
}
