/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timer.h - deadlines: a hierarchical timing wheel. Pure data, reads no clock.
 *
 * Arm, disarm and expire are O(1) with a million timers; one tick is 131 µs
 * (2^17 ns). A timer never fires early: its deadline is rounded up to a tick.
 *
 * Level n has 64 slots of 32^n ticks each. A timer lies at the lowest level whose
 * 64 slots, counted from now, reach its deadline; a slot of a higher level
 * is spread over the one below it before its first tick comes:
 *
 *   level 2  | 134 ms | 134 ms |  ...  |     up to   8.6 s from now
 *   level 1  | 4.2 ms | 4.2 ms |  ...  |     up to 268   ms
 *   level 0  | 131 µs | 131 µs |  ...  |     up to   8.4 ms  --> due
 *
 * The upper half of a level's reach leaves a whole slot's time in which to spread
 * the next slot of the level above. So that is done a few timers at a time, and
 * a hundred thousand sleepers in one slot hold up nobody else.
 */
#ifndef FIBER_TIMER_H
#define FIBER_TIMER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"

#define TIMER_TICK_BITS 17
#define TIMER_LEVEL_BITS 5
#define TIMER_LEVELS 10 /* 10 levels reach over all 2^64 ns */
#define TIMER_SLOTS 64u /* a level's: two times 2^TIMER_LEVEL_BITS */
#define TIMER_NEVER UINT64_MAX

struct timer {
    struct list link;     /* points at itself when not armed */
    uint64_t deadline_ns; /* CLOCK_MONOTONIC */
    uint16_t slot;        /* level * TIMER_SLOTS + slot, where it was placed last */
};

struct timer_wheel {
    uint64_t now_tick;               /* every timer due by this tick is on due or taken */
    uint64_t spread_tick;            /* when slots were last spread ahead of time */
    size_t armed;                    /* those on due included */
    struct list due;                 /* to be taken, earliest tick first */
    uint64_t occupied[TIMER_LEVELS]; /* bit per slot */
    struct list slots[TIMER_LEVELS][TIMER_SLOTS];
};

/* timer_wheel_init - empty, at now_ns. */
void timer_wheel_init(struct timer_wheel *wheel, uint64_t now_ns);

/* timer_init - not armed. */
void timer_init(struct timer *timer);

static inline bool timer_armed(const struct timer *timer)
{
    return !list_empty(&timer->link);
}

/*
 * timer_arm - fire at deadline_ns; one already past fires at the next take,
 * TIMER_NEVER does not fire. must(!armed).
 */
void timer_arm(struct timer_wheel *wheel, struct timer *timer, uint64_t deadline_ns);

/* timer_disarm - does nothing when it is not armed. */
void timer_disarm(struct timer_wheel *wheel, struct timer *timer);

/*
 * timer_wheel_take - the next timer that is due at now_ns, disarmed; NULL when there is none.
 *
 * Among due timers those of an earlier tick come first. A now_ns that lies
 * before an earlier one changes nothing.
 */
struct timer *timer_wheel_take(struct timer_wheel *wheel, uint64_t now_ns);

/*
 * timer_wheel_next - when the loop must look again, in ns.
 *
 * At most the earliest deadline rounded up to its tick; earlier when a slot must
 * be spread by then; 0 when a timer is due already; TIMER_NEVER when none is armed.
 */
uint64_t timer_wheel_next(const struct timer_wheel *wheel);

#endif
