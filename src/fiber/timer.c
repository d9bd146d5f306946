/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timer.c - the timing wheel drawn in timer.h.
 *
 * "Group" g of level n is the ticks whose number shifted right by n *
 * TIMER_LEVEL_BITS is g; it lives in slot g mod 64. Between calls a level's
 * groups are those from now's own to the 63rd after it, so no slot holds two; and
 * above level 0 now's own group is empty, for it has been spread.
 *
 * Called by fiber.c and sched.c alone, on one thread.
 */
#include "fiber/timer.h"

#include "base/attr.h"
#include "base/must.h"

#define NO_LEVEL UINT32_MAX

/* Timers spread ahead of time a tick, once nothing is due: some 10 µs of work. */
#define SPREAD_BATCH 256

_Static_assert(TIMER_SLOTS == 2u << TIMER_LEVEL_BITS, "half a level is one slot of the next");
_Static_assert(TIMER_TICK_BITS + (TIMER_LEVELS - 1) * TIMER_LEVEL_BITS + 6 >= 64 + 1,
               "the top level reaches over all of uint64_t");

static uint64_t tick_rounded_up(uint64_t ns)
{
    uint64_t tick = ns >> TIMER_TICK_BITS;
    return (tick << TIMER_TICK_BITS) == ns ? tick : tick + 1;
}

static uint64_t group_of(uint64_t tick, unsigned level)
{
    return tick >> (level * TIMER_LEVEL_BITS);
}

/* The lowest level whose 64 groups from now's on contain the tick. */
static unsigned level_of(const struct timer_wheel *wheel, uint64_t tick)
{
    uint64_t distance = tick - wheel->now_tick;
    if (distance < TIMER_SLOTS) {
        return 0;
    }
    /* the lowest level that holds 64 groups as long as the distance ... */
    unsigned bits = 64u - (unsigned)__builtin_clzll(distance);
    unsigned level = (bits - 6 + TIMER_LEVEL_BITS - 1) / TIMER_LEVEL_BITS;
    /* ... or one more, when now is far into its own group */
    if (group_of(tick, level) - group_of(wheel->now_tick, level) >= TIMER_SLOTS) {
        level++;
    }
    return level;
}

static void place(struct timer_wheel *wheel, struct timer *timer, uint64_t tick)
{
    unsigned level = level_of(wheel, tick);
    unsigned slot = (unsigned)(group_of(tick, level) % TIMER_SLOTS);
    timer->slot = (uint16_t)(level * TIMER_SLOTS + slot);
    wheel->occupied[level] |= UINT64_C(1) << slot;
    list_append(&wheel->slots[level][slot], &timer->link);
}

/* Move at most batch timers of this group one level down or more. Returns how many. */
static size_t spread(struct timer_wheel *wheel, unsigned level, uint64_t group, size_t batch)
{
    unsigned slot = (unsigned)(group % TIMER_SLOTS);
    struct list *from = &wheel->slots[level][slot];
    size_t moved = 0;
    while (!list_empty(from) && moved < batch) {
        struct timer *timer = container_of(from->next, struct timer, link);
        list_remove(&timer->link);
        place(wheel, timer, tick_rounded_up(timer->deadline_ns));
        must(timer->slot < level * TIMER_SLOTS);
        moved++;
    }
    if (list_empty(from)) {
        wheel->occupied[level] &= ~(UINT64_C(1) << slot);
    }
    return moved;
}

/*
 * Once a tick, ahead of time: the next group of each level, lowest first, as its
 * time comes first.
 */
static void spread_ahead(struct timer_wheel *wheel)
{
    if (wheel->spread_tick == wheel->now_tick) {
        return;
    }
    wheel->spread_tick = wheel->now_tick;
    size_t left = SPREAD_BATCH;
    for (unsigned level = 1; level < TIMER_LEVELS && left > 0; level++) {
        uint64_t next = group_of(wheel->now_tick, level) + 1;
        if ((wheel->occupied[level] >> (next % TIMER_SLOTS) & 1) != 0) {
            left -= spread(wheel, level, next, left);
        }
    }
}

/*
 * The first tick at which a group begins that holds timers, and the highest level
 * of such a group, for it has to be spread before those below are. NO_LEVEL when
 * nothing is armed but what is due.
 */
static unsigned first_group(const struct timer_wheel *wheel, uint64_t *tick)
{
    unsigned found = NO_LEVEL;
    for (unsigned level = 0; level < TIMER_LEVELS; level++) {
        uint64_t bits = wheel->occupied[level];
        if (bits == 0) {
            continue;
        }
        uint64_t now_group = group_of(wheel->now_tick, level);
        unsigned shift = (unsigned)(now_group % TIMER_SLOTS);
        bits = bits >> shift | bits << ((TIMER_SLOTS - shift) % TIMER_SLOTS);
        uint64_t start = (now_group + (unsigned)__builtin_ctzll(bits)) << level * TIMER_LEVEL_BITS;
        if (found == NO_LEVEL || start <= *tick) {
            *tick = start;
            found = level;
        }
    }
    return found;
}

/* Bring the wheel to this tick, or to the first one on the way that has due timers. */
static void advance(struct timer_wheel *wheel, uint64_t to_tick)
{
    for (;;) {
        uint64_t tick = 0;
        unsigned level = first_group(wheel, &tick);
        if (level == NO_LEVEL || tick > to_tick) {
            wheel->now_tick = to_tick;
            return;
        }
        must(tick >= wheel->now_tick);
        wheel->now_tick = tick;
        if (level == 0) {
            unsigned slot = (unsigned)(tick % TIMER_SLOTS);
            list_take_all(&wheel->slots[0][slot], &wheel->due);
            wheel->occupied[0] &= ~(UINT64_C(1) << slot);
            return;
        }
        (void)spread(wheel, level, group_of(tick, level), SIZE_MAX);
    }
}

void timer_wheel_init(struct timer_wheel *wheel, uint64_t now_ns)
{
    wheel->now_tick = now_ns >> TIMER_TICK_BITS;
    wheel->spread_tick = wheel->now_tick;
    wheel->armed = 0;
    list_init(&wheel->due);
    for (unsigned level = 0; level < TIMER_LEVELS; level++) {
        wheel->occupied[level] = 0;
        for (unsigned slot = 0; slot < TIMER_SLOTS; slot++) {
            list_init(&wheel->slots[level][slot]);
        }
    }
}

void timer_init(struct timer *timer)
{
    list_init(&timer->link);
    timer->deadline_ns = TIMER_NEVER;
    timer->slot = 0;
}

void timer_arm(struct timer_wheel *wheel, struct timer *timer, uint64_t deadline_ns)
{
    must(!timer_armed(timer));
    timer->deadline_ns = deadline_ns;
    uint64_t tick = tick_rounded_up(deadline_ns);
    if (tick <= wheel->now_tick) {
        timer->slot = 0;
        list_append(&wheel->due, &timer->link);
    } else {
        place(wheel, timer, tick);
    }
    wheel->armed++;
}

void timer_disarm(struct timer_wheel *wheel, struct timer *timer)
{
    if (!timer_armed(timer)) {
        return;
    }
    list_remove(&timer->link);
    wheel->armed--;
    /* a due timer has left its slot: then this finds the bit as it should be */
    unsigned level = timer->slot / TIMER_SLOTS;
    unsigned slot = timer->slot % TIMER_SLOTS;
    if (list_empty(&wheel->slots[level][slot])) {
        wheel->occupied[level] &= ~(UINT64_C(1) << slot);
    }
}

struct timer *timer_wheel_take(struct timer_wheel *wheel, uint64_t now_ns)
{
    uint64_t tick = now_ns >> TIMER_TICK_BITS;
    if (list_empty(&wheel->due) && tick > wheel->now_tick) {
        advance(wheel, tick);
    }
    if (list_empty(&wheel->due)) {
        spread_ahead(wheel);
        return NULL;
    }
    struct timer *timer = container_of(wheel->due.next, struct timer, link);
    list_remove(&timer->link);
    wheel->armed--;
    must(tick_rounded_up(timer->deadline_ns) <= wheel->now_tick);
    return timer;
}

uint64_t timer_wheel_next(const struct timer_wheel *wheel)
{
    if (!list_empty(&wheel->due)) {
        return 0;
    }
    uint64_t tick = 0;
    unsigned level = first_group(wheel, &tick);
    if (level == NO_LEVEL || tick > (UINT64_MAX >> TIMER_TICK_BITS)) {
        return TIMER_NEVER;
    }
    return tick << TIMER_TICK_BITS;
}
