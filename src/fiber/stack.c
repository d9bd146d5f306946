/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stack.c - slabs and the list of free stacks. Called by sched.c and fiber.c on
 * the pool's own thread; the guards are guard.c's.
 *
 * Slabs grow from 4 to 64 MiB. Linux places each mapping right below the one
 * before and merges neighbours with equal flags, so a million 64 KiB stacks need
 * about as many mappings as the address space has holes.
 *
 * Guard markers lie in the page tables: MADV_DONTNEED passes over them (madvise(2)),
 * so one call may give back the pages of neighbours. The list of free stacks is
 * kept outside of them, since a free stack has no page.
 */
#include "fiber/stack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/must.h"

#define SLAB_BYTES_MIN ((size_t)4 << 20)
#define SLAB_BYTES_MAX ((size_t)64 << 20)
#define FREE_CAPACITY_MIN 64
#define READY_MAX ((size_t)64) /* stacks made ready in one go */

/* Linux 6.15: the calling thread's process, without a descriptor for it. */
#ifndef PIDFD_SELF
#define PIDFD_SELF (-10000)
#endif

struct stack_slab {
    struct stack_slab *next;
    char *base;
    size_t size;
};

static size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

/* Map the next slab; when memory is short, a smaller one. */
static int slab_map(struct stack_pool *pool)
{
    struct stack_slab *slab = malloc(sizeof *slab);
    if (slab == NULL) {
        return -ENOMEM;
    }
    size_t size = pool->slab_bytes_next;
    char *base = MAP_FAILED;
    for (; base == MAP_FAILED && size >= pool->stack_bytes; size /= 2) {
        slab->size = size / pool->stack_bytes * pool->stack_bytes;
        base = mmap(NULL, slab->size, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    }
    if (base == MAP_FAILED) {
        free(slab);
        return -ENOMEM;
    }
    /* a huge page would make each stack resident whole; EINVAL where there are none */
    (void)madvise(base, slab->size, MADV_NOHUGEPAGE);
    slab->base = base;
    slab->next = pool->slabs;
    pool->slabs = slab;
    pool->slab_next = base;
    pool->slab_end = base + slab->size;
    if (pool->slab_bytes_next < SLAB_BYTES_MAX) {
        pool->slab_bytes_next *= 2;
    }
    return 0;
}

/* Room in the free list for one more stack than there are. */
static int reserve_free(struct stack_pool *pool)
{
    if (pool->created < pool->free_capacity) {
        return 0;
    }
    size_t capacity = pool->free_capacity == 0 ? FREE_CAPACITY_MIN : pool->free_capacity * 2;
    char **grown = realloc(pool->free, capacity * sizeof *grown);
    if (grown == NULL) {
        return -ENOMEM;
    }
    pool->free = grown;
    pool->free_capacity = capacity;
    return 0;
}

int stack_pool_init(struct stack_pool *pool, size_t stack_bytes, bool force_mprotect)
{
    if (stack_bytes % page_bytes() != 0 || stack_bytes < STACK_BYTES_MIN ||
        stack_bytes > STACK_BYTES_MAX || STACK_GUARD_BYTES % page_bytes() != 0) {
        return -EINVAL;
    }
    memset(pool, 0, sizeof *pool);
    pool->stack_bytes = stack_bytes;
    pool->by_vectors = true;
    pool->slab_bytes_next = stack_bytes > SLAB_BYTES_MIN ? SLAB_BYTES_MAX : SLAB_BYTES_MIN;
    guard_init(&pool->guard, force_mprotect);
    return 0;
}

void stack_pool_fini(struct stack_pool *pool)
{
    must(pool->live == 0);
    while (pool->slabs != NULL) {
        struct stack_slab *slab = pool->slabs;
        pool->slabs = slab->next;
        must(munmap(slab->base, slab->size) == 0);
        free(slab);
    }
    guard_fini(&pool->guard);
    free(pool->free);
    memset(pool, 0, sizeof *pool);
}

/* struct fiber is written into it at once: a call costs less than the fault. */
static void populate_top(struct stack stack)
{
    (void)madvise(stack.base + stack.size - page_bytes(), page_bytes(), MADV_POPULATE_WRITE);
}

/*
 * advise_own - the same advice for many ranges of this process in one call. Linux
 * 6.15 takes PIDFD_SELF and, for the caller itself, any advice (mm/madvise.c); before,
 * and where a filter refuses, it is -1. Returns the bytes advised.
 */
static ssize_t advise_own(const struct iovec *ranges, size_t count, int advice)
{
    return (ssize_t)syscall(SYS_process_madvise, PIDFD_SELF, ranges, count, advice, 0U);
}

/*
 * make_many_ready - guards and top pages of count stacks by two calls for all: 1.3 µs
 * a stack where a call each costs 9. Returns false when guards are missing.
 */
static bool make_many_ready(struct stack_pool *pool, size_t count)
{
    struct iovec ranges[READY_MAX];
    for (size_t i = 0; i < count; i++) {
        char *base = pool->slab_next + i * pool->stack_bytes;
        ranges[i] = (struct iovec){.iov_base = base, .iov_len = STACK_GUARD_BYTES};
    }
    if (advise_own(ranges, count, MADV_GUARD_INSTALL) != (ssize_t)(count * STACK_GUARD_BYTES)) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        char *end = pool->slab_next + (i + 1) * pool->stack_bytes;
        ranges[i] = (struct iovec){.iov_base = end - page_bytes(), .iov_len = page_bytes()};
    }
    (void)advise_own(ranges, count, MADV_POPULATE_WRITE); /* what is missing comes by faults */
    pool->ready = count;
    return true;
}

/*
 * make_ready - see to it that the stack at slab_next can be handed out, and the
 * more behind it the more there are already: an eighth, so that a pool that does
 * not grow on has few pages too many.
 */
static int make_ready(struct stack_pool *pool)
{
    size_t room = (size_t)(pool->slab_end - pool->slab_next) / pool->stack_bytes;
    size_t count = pool->created / 8 < READY_MAX ? pool->created / 8 : READY_MAX;
    count = count < room ? count : room;
    if (pool->by_vectors && pool->guard.markers && count > 1) {
        if (make_many_ready(pool, count)) {
            return 0;
        }
        pool->by_vectors = false;
    }
    /* A guard that is there already does not mind another (madvise(2)). */
    if (guard_install(&pool->guard, pool->slab_next, STACK_GUARD_BYTES) != 0) {
        return -ENOMEM;
    }
    populate_top((struct stack){.base = pool->slab_next, .size = pool->stack_bytes});
    pool->ready = 1;
    return 0;
}

int stack_get(struct stack_pool *pool, struct stack *stack)
{
    stack->size = pool->stack_bytes;
    if (pool->free_count > 0) {
        stack->base = pool->free[--pool->free_count];
        stack->clean = pool->free_clean > pool->free_count;
        if (stack->clean) {
            pool->free_clean = pool->free_count;
            populate_top(*stack);
        }
        pool->live++;
        return 0;
    }
    if (reserve_free(pool) != 0 || (pool->slab_next == pool->slab_end && slab_map(pool) != 0)) {
        return -ENOMEM;
    }
    if (pool->ready == 0 && make_ready(pool) != 0) {
        return -ENOMEM;
    }
    stack->base = pool->slab_next;
    stack->clean = true;
    pool->slab_next += pool->stack_bytes;
    pool->ready--;
    pool->created++;
    pool->live++;
    return 0;
}

void stack_put(struct stack_pool *pool, struct stack stack)
{
    must(pool->live > 0 && pool->free_count < pool->free_capacity);
    must(stack.size == pool->stack_bytes);
    pool->free[pool->free_count++] = stack.base;
    pool->live--;
}

size_t stack_pool_dirty(const struct stack_pool *pool)
{
    size_t cold = pool->free_count > STACK_HOT ? pool->free_count - STACK_HOT : 0;
    return cold > pool->free_clean ? cold - pool->free_clean : 0;
}

bool stack_pool_trim(struct stack_pool *pool, size_t batch)
{
    size_t dirty = stack_pool_dirty(pool);
    size_t count = dirty < batch ? dirty : batch;
    size_t end = pool->free_clean + count;
    while (pool->free_clean < end) {
        /* stacks that were given back in the order of their addresses leave in one call */
        char *low = pool->free[pool->free_clean++];
        char *high = low + pool->stack_bytes;
        for (; pool->free_clean < end; pool->free_clean++) {
            char *base = pool->free[pool->free_clean];
            if (base == high) {
                high += pool->stack_bytes;
            } else if (base + pool->stack_bytes == low) {
                low = base;
            } else {
                break;
            }
        }
        (void)madvise(low, (size_t)(high - low), MADV_DONTNEED);
    }
    return dirty > count;
}

void stack_trim(struct stack *stack, const void *lowest_used)
{
    size_t used_from = (size_t)((const char *)lowest_used - stack->base);
    must(used_from >= STACK_GUARD_BYTES && used_from < stack->size);
    size_t kept_from = used_from & ~(page_bytes() - 1);
    if (kept_from > STACK_GUARD_BYTES) {
        (void)madvise(stack_low(*stack), kept_from - STACK_GUARD_BYTES, MADV_DONTNEED);
    }
    stack->clean = true;
}

void stack_populate(struct stack *stack)
{
    if (!stack->clean) {
        return;
    }
    stack->clean = false;
    char *top_page = stack->base + stack->size - page_bytes();
    (void)madvise(top_page - page_bytes(), page_bytes(), MADV_POPULATE_WRITE);
}

bool stack_in_guard(struct stack stack, const void *address)
{
    const char *at = address;
    return at >= stack.base && at < stack.base + STACK_GUARD_BYTES;
}

/* Resident bytes in a range of whole pages. */
static size_t resident_bytes(char *from, const char *to)
{
    unsigned char resident[64];
    size_t page = page_bytes();
    size_t pages = 0;
    while (from < to) {
        size_t size = (size_t)(to - from);
        size = size < sizeof resident * page ? size : sizeof resident * page;
        if (mincore(from, size, resident) != 0) {
            break;
        }
        for (size_t i = 0; i < size / page; i++) {
            pages += resident[i] & 1;
        }
        from += size;
    }
    return pages * page;
}

size_t stack_used_bytes(struct stack stack)
{
    return resident_bytes(stack_low(stack), stack.base + stack.size);
}
