/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timer.c - what a deadline costs while 1, 1000 and a million others are armed:
 * armed and disarmed again, as an answer in time does; and expired, the turns of
 * the loop and the spreading of slots included. The others lie up to a minute
 * ahead, those measured up to five seconds.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/must.h"
#include "base/time.h"
#include "fiber/timer.h"
#include "ring/sys.h"
#include "rounds.h"

#define OPERATIONS 100000
#define OTHERS_MAX 1000000

static struct timer_wheel wheel;
static struct timer *others;
static struct timer *mine;

/* A number below bound, from a generator of 48 bits. */
static uint64_t draw(uint64_t bound)
{
    static uint64_t state = 1;
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (state >> 16) % bound;
}

static double measure_arm_disarm(uint64_t now_ns)
{
    uint64_t start_ns = sys_clock_ns();
    for (unsigned i = 0; i < OPERATIONS; i++) {
        timer_arm(&wheel, &mine[i], now_ns + 1 + draw(5 * NS_PER_S));
    }
    for (unsigned i = 0; i < OPERATIONS; i++) {
        timer_disarm(&wheel, &mine[i]);
    }
    return (double)(sys_clock_ns() - start_ns) / OPERATIONS;
}

/*
 * Arms them and turns like a loop, once a tick, for five seconds of virtual time.
 * Others that fire are armed again, and so cost their share.
 */
static double measure_expire(uint64_t *now_ns, double *slowest_turn_us)
{
    uint64_t end_ns = *now_ns + 5 * NS_PER_S + NS_PER_MS;
    uint64_t fired = 0;
    uint64_t start_ns = sys_clock_ns();
    uint64_t before_ns = start_ns;
    for (unsigned i = 0; i < OPERATIONS; i++) {
        timer_arm(&wheel, &mine[i], *now_ns + 1 + draw(5 * NS_PER_S));
    }
    for (; *now_ns < end_ns; *now_ns += UINT64_C(1) << TIMER_TICK_BITS) {
        before_ns = sys_clock_ns();
        struct timer *timer;
        while ((timer = timer_wheel_take(&wheel, *now_ns)) != NULL) {
            fired++;
            if (timer < mine || timer >= mine + OPERATIONS) {
                timer_arm(&wheel, timer, *now_ns + 1 + draw(60 * NS_PER_S));
            }
        }
        double turn_us = (double)(sys_clock_ns() - before_ns) / 1000;
        *slowest_turn_us = turn_us > *slowest_turn_us ? turn_us : *slowest_turn_us;
    }
    return (double)(sys_clock_ns() - start_ns) / (double)fired;
}

static void measure(unsigned armed)
{
    char names[2][64];
    (void)snprintf(names[0], sizeof names[0], "arm and disarm, %u others armed", armed);
    (void)snprintf(names[1], sizeof names[1], "arm and expire, %u others armed", armed);
    struct rounds arm = {.name = names[0]};
    struct rounds expire = {.name = names[1]};
    uint64_t now_ns = 1000 * NS_PER_S;
    double slowest_turn_us = 0;
    timer_wheel_init(&wheel, now_ns);
    for (unsigned i = 0; i < armed; i++) {
        timer_arm(&wheel, &others[i], now_ns + 1 + draw(60 * NS_PER_S));
    }
    for (unsigned round = 0; round < ROUNDS; round++) {
        rounds_add(&arm, measure_arm_disarm(now_ns));
        rounds_add(&expire, measure_expire(&now_ns, &slowest_turn_us));
    }
    rounds_print(&arm);
    rounds_print(&expire);
    printf("  the slowest turn of the loop took %.0f us\n", slowest_turn_us);
    for (unsigned i = 0; i < armed; i++) {
        timer_disarm(&wheel, &others[i]);
    }
}

int main(void)
{
    others = calloc(OTHERS_MAX, sizeof *others);
    mine = calloc(OPERATIONS, sizeof *mine);
    must(others != NULL && mine != NULL);
    for (unsigned i = 0; i < OTHERS_MAX; i++) {
        timer_init(&others[i]);
    }
    for (unsigned i = 0; i < OPERATIONS; i++) {
        timer_init(&mine[i]);
    }
    rounds_print_head("timer");
    measure(1);
    measure(1000);
    measure(OTHERS_MAX);
    free(others);
    free(mine);
    return 0;
}
