/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stuck.c - see stuck.h. Called by programs' mains and by carrier.c.
 */
#include "ring/stuck.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fiber/able.h"
#include "ring/carrier.h"
#include "ring/sys.h"

#define CARRIERS_WATCHED_MAX 256

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static struct carrier *carriers[CARRIERS_WATCHED_MAX]; /* under it; NULL: a free place */

static void put_line(void *unused, const char *text, size_t length)
{
    (void)unused;
    (void)sys_write_all(2, text, length);
    (void)sys_write_all(2, "\n", 1);
}

/*
 * all_asleep - under the guard. A carrier that is about to find a message counts as
 * unable for a moment: its inbox tells.
 */
static bool all_asleep(void)
{
    for (unsigned i = 0; i < CARRIERS_WATCHED_MAX; i++) {
        struct carrier *carrier = carriers[i];
        if (carrier != NULL && (atomic_load(&carrier->sleeping) != CARRIER_SLEEPS_FOR_GOOD ||
                                atomic_load(&carrier->inbox) != NULL)) {
            return false;
        }
    }
    return able_count() == 0;
}

static void report(void)
{
    pthread_mutex_lock(&guard);
    if (!all_asleep()) {
        pthread_mutex_unlock(&guard);
        return;
    }
    static const char first[] = "ringspun: nothing can ever wake: all wait for one another";
    put_line(NULL, first, sizeof(first) - 1);
    for (unsigned i = 0; i < CARRIERS_WATCHED_MAX; i++) {
        if (carriers[i] != NULL) {
            sched_dump(&carriers[i]->sched, put_line,
                       NULL); /* its thread sleeps: nobody changes it */
        }
    }
    abort();
}

void stuck_watch(void)
{
    able_watch(report);
}

static void replace(struct carrier *from, struct carrier *by)
{
    pthread_mutex_lock(&guard);
    for (unsigned i = 0; i < CARRIERS_WATCHED_MAX; i++) {
        if (carriers[i] == from) {
            carriers[i] = by;
            break;
        }
    }
    pthread_mutex_unlock(&guard);
}

void stuck__carrier_starts(struct carrier *carrier)
{
    if (able_watched()) {
        able_more();
        replace(NULL, carrier);
    }
}

void stuck__carrier_ends(struct carrier *carrier)
{
    if (able_watched()) {
        replace(carrier, NULL);
        if (atomic_exchange(&carrier->joining, CARRIER_HAS_ENDED) == CARRIER_IS_JOINED) {
            able_more(); /* who joins it goes on */
        }
        able_less();
        able_check();
    }
}
