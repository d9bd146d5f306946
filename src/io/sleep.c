/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sleep.c - wait for a moment. Called by handlers; fiber or platform thread decides here.
 */
#include "io/sleep.h"

#include "fiber/fiber.h"
#include "io/pool.h"
#include "ring/sys.h"

int sleep_until(uint64_t deadline_ns)
{
    if (fiber_current() != NULL) {
        return fiber_sleep_until(deadline_ns);
    }
    int result = 0;
    /* The wait's timeout is relative and rounded to the clock's ticks: look again before going on. */
    while (result == 0 && sys_clock_ns() < deadline_ns) {
        result = pool_thread_wait(-1, 0, deadline_ns);
    }
    return result;
}

int sleep_for(uint64_t duration_ns)
{
    return sleep_until(sys_clock_ns() + duration_ns);
}
