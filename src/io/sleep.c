/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sleep.c - wait for a moment. Called by handlers; fiber or platform thread decides here.
 */
#include "io/sleep.h"

#include "fiber/fiber.h"
#include "ring/sys.h"

int sleep_until(uint64_t deadline_ns)
{
    if (fiber_current() != NULL) {
        return fiber_sleep_until(deadline_ns);
    }
    sys_sleep_until(deadline_ns);
    return 0;
}

int sleep_for(uint64_t duration_ns)
{
    return sleep_until(sys_clock_ns() + duration_ns);
}
