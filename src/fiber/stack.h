/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stack.h - stacks for fibers, cut from large anonymous mappings (slabs).
 *
 * One stack, low addresses to the left; its size is a multiple of the page:
 *
 *   | guard 16 KiB | stack ....................... <- grows down | struct fiber |
 *   ^ base         ^ stack_low                                    top page      ^ base + size
 *
 * - Never without a guard; what it is made of: guard.h.
 * - Of a parked fiber the pages from its lowest frame up are in use, those below
 *   are not: stack_trim gives them back. Who keeps all that lives across a long
 *   park within the top page costs that one page, and is woken without a fault.
 * - One pool a carrier, used by that carrier's thread alone.
 */
#ifndef FIBER_STACK_H
#define FIBER_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "fiber/guard.h"

#define STACK_GUARD_BYTES ((size_t)16384)
#define STACK_BYTES_MIN ((size_t)49152)    /* guard and 32 KiB of stack */
#define STACK_BYTES_MAX ((size_t)64 << 20) /* so that a stack fits into a slab */
#define STACK_HOT ((size_t)64)             /* free stacks whose pages stay */

struct stack {
    char *base;  /* lowest byte, where the guard begins */
    size_t size; /* bytes, guard included */
    bool clean;  /* as far as is known only the top page has memory, see stack_populate */
};

struct stack_slab;

struct stack_pool {
    /* set once */
    size_t stack_bytes; /* size of each */
    struct guard guard; /* how these stacks are guarded */
    /* stacks */
    size_t live;    /* taken and not given back */
    size_t created; /* cut from slabs so far */
    struct stack_slab *slabs;
    size_t slab_bytes_next;
    char *slab_next; /* first part of the newest slab never handed out */
    char *slab_end;
    size_t ready;    /* stacks from slab_next on that have their guard and their top page */
    bool by_vectors; /* the kernel makes many ready in one call, as far as is known */
    char **free;     /* LIFO: hot stacks are reused first */
    size_t free_count;
    size_t free_capacity; /* never below created, so that stack_put cannot fail */
    size_t free_clean;    /* free[0 .. free_clean) have no resident page left */
};

/*
 * stack_pool_init - probe the guard and be ready; maps nothing big yet.
 *
 * @force_mprotect  see guard_init
 *
 * Returns  0; -EINVAL stack_bytes is not a multiple of the page or not within
 *          STACK_BYTES_MIN and STACK_BYTES_MAX, or the guard is no multiple of it
 */
int stack_pool_init(struct stack_pool *pool, size_t stack_bytes, bool force_mprotect) WARN_UNUSED;

/* stack_pool_fini - unmap all; must(live == 0). */
void stack_pool_fini(struct stack_pool *pool);

/*
 * stack_get - a stack whose guard is in place and whose top page has memory; its
 * content is undefined.
 *
 * Returns  0; -ENOMEM no memory, no mapping left or the fallback's limit reached
 *          (then logged, at most once a minute, naming vm.max_map_count)
 */
int stack_get(struct stack_pool *pool, struct stack *stack) WARN_UNUSED;

/* stack_put - back to the pool, dirty; nobody may run on it. */
void stack_put(struct stack_pool *pool, struct stack stack);

/*
 * stack_pool_trim - give the pages of at most batch free stacks back to the
 * system, all but those of the STACK_HOT that are reused first. Called by the
 * loop now and then.
 *
 * Returns  true when there is more to do
 */
bool stack_pool_trim(struct stack_pool *pool, size_t batch);

/* stack_pool_dirty - free stacks whose pages stack_pool_trim would give back. */
size_t stack_pool_dirty(const struct stack_pool *pool);

/* stack_trim - of a parked fiber: give back every page wholly below lowest_used; clean then. */
void stack_trim(struct stack *stack, const void *lowest_used);

/*
 * stack_populate - frames will go below the top page: get memory for the next one
 * if the stack is clean, which it is no longer.
 *
 * One call against one fault: on a virtual machine that traps page tables 1.8 µs
 * against 17.
 *
 * Source  madvise(2) MADV_POPULATE_WRITE, Linux 5.14; without it they come by faults
 */
void stack_populate(struct stack *stack);

/* stack_low - lowest usable byte of the stack proper. */
static inline char *stack_low(struct stack stack)
{
    return stack.base + STACK_GUARD_BYTES;
}

/* stack_in_guard - does this address lie in the stack's guard? For the SIGSEGV report. */
bool stack_in_guard(struct stack stack, const void *address);

/* stack_used_bytes - resident bytes of the stack (mincore(2)); for /currentThread. */
size_t stack_used_bytes(struct stack stack);

#endif
