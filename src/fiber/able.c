/* SPDX-License-Identifier: Apache-2.0 */
/*
 * able.c - see able.h. Called by task.c, scope.c, the carriers and the pools.
 */
#include "fiber/able.h"

#include <stdatomic.h>
#include <stddef.h>

bool able__watched;
static void (*on_nobody)(void);
static atomic_int able;

void able_watch(void (*on_none)(void))
{
    on_nobody = on_none;
    able__watched = true;
    atomic_store(&able, 1);
}

void able_more(void)
{
    if (able__watched) {
        atomic_fetch_add(&able, 1);
    }
}

void able_less(void)
{
    if (able__watched) {
        atomic_fetch_sub(&able, 1);
    }
}

int able_count(void)
{
    return atomic_load(&able);
}

void able_check(void)
{
    if (able__watched && able_count() == 0) {
        on_nobody();
    }
}
