/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arena.h - memory that lives as long as one request.
 *
 * A bump allocator: first a block that the caller owns (of a session's desk, or on
 * its stack), then chunks from malloc, never more than
 * bytes_max in all. Nothing is freed one by one.
 *
 *   first block [used....|free......]   chunk -> chunk -> NULL
 *
 * One thread at a time; a request handed to a platform thread takes its arena along.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stddef.h>

#include "base/attr.h"
#include "base/slice.h"

struct arena_chunk;

struct arena {
    /* set once */
    char *first;       /* caller's memory; may be NULL */
    size_t first_size; /* bytes */
    size_t bytes_max;  /* first block and chunks together */
    /* changing */
    char *next; /* where the next allocation may start */
    char *end;  /* end of the current block */
    struct arena_chunk *chunks;
    size_t bytes_total; /* held: first block and chunks */
};

/* arena_init - an empty arena over the caller's first block (owned by the caller). */
void arena_init(struct arena *arena, void *first, size_t first_size, size_t bytes_max);

/*
 * arena_alloc - size bytes, aligned for any type, not cleared.
 *
 * Returns  the memory, owned by the arena until arena_reset; NULL when the
 *          limit or the machine's memory is used up
 */
void *arena_alloc(struct arena *arena, size_t size) WARN_UNUSED;

/* arena_copy - a copy of the slice and a NUL that is not counted; .at is NULL on failure. */
struct slice arena_copy(struct arena *arena, struct slice s) WARN_UNUSED;

/* arena_printf - formatted text and a NUL that is not counted; .at is NULL on failure. */
struct slice arena_printf(struct arena *arena, const char *format, ...)
    PRINTF_LIKE(2, 3) WARN_UNUSED;

/*
 * arena_join - the parts one after the other, and a NUL that is not counted; .at is
 * NULL on failure. Unlike arena_printf it needs next to no stack.
 */
struct slice arena_join(struct arena *arena, const struct slice *parts, size_t count) WARN_UNUSED;

/* arena_reset - forget everything and give the chunks back; the first block stays. */
void arena_reset(struct arena *arena);

#endif
