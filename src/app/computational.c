/* SPDX-License-Identifier: Apache-2.0 */
/*
 * computational.c - GET /computational: 25 000 random numbers, and no wait at all.
 *
 * Work that only computes holds its carrier. So that the others on it go on, a
 * fiber yields between slices of the work; a platform thread leaves that to the kernel.
 */
#include "app/computational.h"

#include <stdlib.h>

#include "app/routes.h"
#include "base/must.h"
#include "fiber/fiber.h"
#include "fiber/task.h"
#include "ring/sys.h"

#define NUMBERS 25000u

/* Some 40 µs of work; a yield costs one to two, since the carrier looks for completions. */
#define NUMBERS_PER_SLICE 5000u

double computational_sum(unsigned short state[3], unsigned count)
{
    struct drand48_data generator = {0}; /* erand48(3) itself shares one with all threads */
    double sum = 0;

    for (unsigned i = 0; i < count; i++) {
        double number;
        (void)erand48_r(state, &generator, &number); /* always 0 */
        sum += number;
    }
    return sum;
}

/* let_others_run - between two slices. Returns false when nobody waits for the answer any more. */
static bool let_others_run(void)
{
    if (fiber_current() != NULL) {
        fiber_yield();
    }
    return !task_cancelled();
}

void computational_handle(struct http_exchange *exchange)
{
    uint64_t seed = sys_clock_ns();
    unsigned short state[3] = {(unsigned short)seed, (unsigned short)(seed >> 16),
                               (unsigned short)(seed >> 32)};
    double sum = 0;

    for (unsigned drawn = 0; drawn < NUMBERS; drawn += NUMBERS_PER_SLICE) {
        if (drawn > 0 && !let_others_run()) {
            return;
        }
        sum += computational_sum(state, NUMBERS_PER_SLICE);
    }
    must(sum > 0 && sum < NUMBERS); /* the sum is used, so the work is done */
    http_respond_text(exchange, SLICE("Hello, World"));
}
