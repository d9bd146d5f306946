/* SPDX-License-Identifier: Apache-2.0 */
/*
 * able.h - how many threads of the process can still do something by themselves. When
 * it is none, what waits waits for ever: see ring/stuck.h, which watches.
 *
 * Counted are carriers but for those that sleep without a deadline and without anything
 * in flight, and the main thread, jobs of pools and children of scopes but for
 * those that wait for another task without a deadline. Whoever ends such a wait counts
 * the one that it wakes, before that one runs: so the count is 0 only when nobody is left.
 */
#ifndef FIBER_ABLE_H
#define FIBER_ABLE_H

#include <stdbool.h>

/* able_watch - begin to count, with the calling thread. Before others start. */
void able_watch(void (*on_none)(void));

/* able_watched - is anybody counted? False in a server. */
extern bool able__watched;
static inline bool able_watched(void)
{
    return able__watched;
}

/* able_more, able_less - one more, one less; nothing when not watched. able_count: how many. */
void able_more(void);
void able_less(void);
int able_count(void);

/* able_check - call on_none if nobody is left. After able_less, when what it announced is in place. */
void able_check(void);

#endif
