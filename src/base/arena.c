/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arena.c - see arena.h. The hot path is the bump in arena_alloc; malloc is
 * reached only when a request outgrows the pages of its session.
 */
#include "base/arena.h"

#include <stdalign.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/must.h"

#define ARENA_ALIGN alignof(max_align_t)
#define ARENA_CHUNK_MIN 1024         /* bytes, header included */
#define ARENA_CHUNK_GROWTH_MAX 65536 /* chunks double up to this size */

struct arena_chunk {
    struct arena_chunk *next;
    size_t size; /* bytes, this header included */
    alignas(max_align_t) char bytes[];
};

static char *arena_align(char *at)
{
    return at + (-(uintptr_t)at & (ARENA_ALIGN - 1));
}

/* Go to the start of the first block; what aligning it costs is not usable. */
static void arena_rewind(struct arena *arena)
{
    arena->next = arena->first;
    arena->end = arena->first;
    if (arena->first != NULL) {
        arena->end += arena->first_size;
        char *aligned = arena_align(arena->first);
        arena->next = aligned < arena->end ? aligned : arena->end;
    }
    arena->bytes_total = arena->first_size;
}

void arena_init(struct arena *arena, void *first, size_t first_size, size_t bytes_max)
{
    must(first != NULL || first_size == 0);
    *arena = (struct arena){.first = first, .first_size = first_size, .bytes_max = bytes_max};
    arena_rewind(arena);
}

/* Make the current block a new chunk with room for size bytes; false when the limit forbids it. */
static bool arena_grow(struct arena *arena, size_t size)
{
    if (arena->bytes_total >= arena->bytes_max) {
        return false;
    }
    size_t allowed = arena->bytes_max - arena->bytes_total;
    if (allowed < sizeof(struct arena_chunk) || size > allowed - sizeof(struct arena_chunk)) {
        return false;
    }
    size_t wanted = arena->bytes_total;
    wanted = wanted > ARENA_CHUNK_GROWTH_MAX ? ARENA_CHUNK_GROWTH_MAX : wanted;
    wanted = wanted < ARENA_CHUNK_MIN ? ARENA_CHUNK_MIN : wanted;
    wanted = wanted > allowed ? allowed : wanted;
    size_t needed = sizeof(struct arena_chunk) + size;
    size_t chunk_size = needed > wanted ? needed : wanted;

    struct arena_chunk *chunk = malloc(chunk_size);
    if (chunk == NULL) {
        return false;
    }
    chunk->next = arena->chunks;
    chunk->size = chunk_size;
    arena->chunks = chunk;
    arena->bytes_total += chunk_size;
    arena->next = chunk->bytes;
    arena->end = (char *)chunk + chunk_size;
    return true;
}

void *arena_alloc(struct arena *arena, size_t size)
{
    size_t left = (size_t)(arena->end - arena->next);
    if (unlikely(size > left || arena->next == NULL)) {
        if (!arena_grow(arena, size)) {
            return NULL;
        }
    }
    char *at = arena->next;
    /* next stays aligned, except that it stops at an end that is not. */
    char *next = arena_align(at + size);
    arena->next = next < arena->end ? next : arena->end;
    return at;
}

struct slice arena_copy(struct arena *arena, struct slice s)
{
    char *at = s.length < SIZE_MAX ? arena_alloc(arena, s.length + 1) : NULL;
    if (at == NULL) {
        return (struct slice){.at = NULL};
    }
    if (s.length > 0) {
        memcpy(at, s.at, s.length);
    }
    at[s.length] = '\0';
    return (struct slice){.at = at, .length = s.length};
}

struct slice arena_join(struct arena *arena, const struct slice *parts, size_t count)
{
    size_t length = 0;
    for (size_t i = 0; i < count; i++) {
        if (parts[i].length >= SIZE_MAX - length) {
            return (struct slice){.at = NULL};
        }
        length += parts[i].length;
    }
    char *at = arena_alloc(arena, length + 1);
    if (at == NULL) {
        return (struct slice){.at = NULL};
    }
    char *next = at;
    for (size_t i = 0; i < count; i++) {
        if (parts[i].length > 0) {
            memcpy(next, parts[i].at, parts[i].length);
            next += parts[i].length;
        }
    }
    *next = '\0';
    return (struct slice){.at = at, .length = length};
}

struct slice arena_printf(struct arena *arena, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    size_t left = (size_t)(arena->end - arena->next);
    int length = vsnprintf(arena->next, left, format, values);
    va_end(values);
    if (length < 0) {
        return (struct slice){.at = NULL};
    }
    size_t size = (size_t)length + 1;
    bool fits = size <= left;
    char *at = arena_alloc(arena, size);
    if (at == NULL) {
        return (struct slice){.at = NULL};
    }
    if (!fits) {
        va_start(values, format);
        vsnprintf(at, size, format, values);
        va_end(values);
    }
    return (struct slice){.at = at, .length = size - 1};
}

void arena_reset(struct arena *arena)
{
    while (arena->chunks != NULL) {
        struct arena_chunk *chunk = arena->chunks;
        arena->chunks = chunk->next;
        free(chunk);
    }
    arena_rewind(arena);
}
