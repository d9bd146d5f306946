/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slab.c - see slab.h. Holds what outlives a park and is reached from outside
 * (op records, receive state), one slab a kind and carrier. No locks: a slab
 * belongs to one thread.
 *
 * Under AddressSanitizer a record that was given back is poisoned, so a late
 * completion that still points at it is reported at the first touch.
 */
#include "base/slab.h"

#include <assert.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "base/must.h"

#ifdef __has_feature
#if __has_feature(address_sanitizer) && !defined(__SANITIZE_ADDRESS__)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#define slab_poison(at, size) __asan_poison_memory_region(at, size)
#define slab_unpoison(at, size) __asan_unpoison_memory_region(at, size)
#else
#define slab_poison(at, size) ((void)(at), (void)(size))
#define slab_unpoison(at, size) ((void)(at), (void)(size))
#endif

#define SLAB_ALIGN 16
#define SLAB_CHUNK_MIN 4096 /* bytes */

/*
 * Chunks without a live record that stay, in bytes: what is taken and given back
 * with each turn of a loop must not be mapped and unmapped with it. (64 clients that
 * connect anew for each request cost 92 µs each with one spare chunk, 45 with these.)
 */
#define SLAB_SPARE_BYTES ((size_t)1 << 20)

/* Stands in a record that was given back. */
struct slab_free {
    struct slab_free *next;
};

struct slab_chunk {
    alignas(64) struct slab *slab; /* the owner, to catch a record given to another slab */
    struct list link;              /* in chunks_open or chunks_full */
    struct slab_free *given;       /* last in, first out */
    char *fresh;                   /* from here on no record was ever taken: still zero */
    size_t live_count;
};

static_assert(sizeof(struct slab_chunk) % SLAB_ALIGN == 0, "records follow the head");

void slab_init(struct slab *slab, size_t record_bytes, size_t records_per_chunk)
{
    must(record_bytes > 0 && record_bytes <= (size_t)1 << 24);
    must(records_per_chunk > 0 && records_per_chunk <= (size_t)1 << 24);
    *slab = (struct slab){
        .record_bytes = (record_bytes + SLAB_ALIGN - 1) & ~(size_t)(SLAB_ALIGN - 1),
        .chunk_bytes = SLAB_CHUNK_MIN,
    };
    size_t needed = sizeof(struct slab_chunk) + slab->record_bytes * records_per_chunk;
    while (slab->chunk_bytes < needed) {
        slab->chunk_bytes *= 2;
    }
    list_init(&slab->chunks_open);
    list_init(&slab->chunks_full);
}

static struct slab_chunk *slab_chunk_of(const struct slab *slab, void *record)
{
    char *at = record;
    return (void *)(at - ((uintptr_t)at & (slab->chunk_bytes - 1)));
}

static bool slab_chunk_full(const struct slab *slab, const struct slab_chunk *chunk)
{
    const char *end = (const char *)chunk + slab->chunk_bytes;
    return chunk->given == NULL && (size_t)(end - chunk->fresh) < slab->record_bytes;
}

/* Map twice the size and cut both ends off, since mmap aligns to pages only. */
static struct slab_chunk *slab_chunk_new(struct slab *slab)
{
    size_t size = slab->chunk_bytes;
    char *mapped = mmap(NULL, 2 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) {
        return NULL;
    }
    size_t before = -(uintptr_t)mapped & (size - 1);
    if (before > 0) {
        munmap(mapped, before);
    }
    munmap(mapped + before + size, size - before);
    /* A huge page would make one record resident as 2 MiB; where the kernel has none this fails. */
    madvise(mapped + before, size, MADV_NOHUGEPAGE);

    struct slab_chunk *chunk = (void *)(mapped + before);
    chunk->slab = slab;
    chunk->fresh = (char *)(chunk + 1);
    list_append(&slab->chunks_open, &chunk->link);
    slab->chunk_count++;
    slab->spare_count++;
    return chunk;
}

static void slab_chunk_free(struct slab *slab, struct slab_chunk *chunk)
{
    must(chunk->live_count == 0);
    list_remove(&chunk->link);
    slab->chunk_count--;
    slab->spare_count--;
    slab_unpoison(chunk, slab->chunk_bytes); /* whoever maps this address next starts clean */
    munmap(chunk, slab->chunk_bytes);
}

/* Take a record; *dirty tells that it was somebody's before. */
static void *slab_take_any(struct slab *slab, bool *dirty)
{
    struct slab_chunk *chunk;
    if (list_empty(&slab->chunks_open)) {
        chunk = slab_chunk_new(slab);
        if (chunk == NULL) {
            return NULL;
        }
    } else {
        chunk = container_of(slab->chunks_open.next, struct slab_chunk, link);
    }

    void *record;
    *dirty = chunk->given != NULL;
    if (*dirty) {
        record = chunk->given;
        slab_unpoison(record, slab->record_bytes);
        chunk->given = chunk->given->next;
    } else {
        record = chunk->fresh;
        chunk->fresh += slab->record_bytes;
    }
    slab->spare_count -= chunk->live_count == 0;
    chunk->live_count++;
    slab->live_count++;
    if (slab_chunk_full(slab, chunk)) {
        list_remove(&chunk->link);
        list_append(&slab->chunks_full, &chunk->link);
    }
    return record;
}

void *slab_take_dirty(struct slab *slab)
{
    bool dirty;
    return slab_take_any(slab, &dirty);
}

void *slab_take(struct slab *slab)
{
    bool dirty;
    void *record = slab_take_any(slab, &dirty);
    if (record != NULL && dirty) {
        memset(record, 0, slab->record_bytes);
    }
    return record;
}

void slab_give(struct slab *slab, void *record)
{
    struct slab_chunk *chunk = slab_chunk_of(slab, record);
    must(chunk->slab == slab);
    must(chunk->live_count > 0 && slab->live_count > 0);

    if (slab_chunk_full(slab, chunk)) {
        list_remove(&chunk->link);
        list_append(slab->chunks_open.next, &chunk->link); /* before the first: to the front */
    }
    struct slab_free *given = record;
    given->next = chunk->given;
    chunk->given = given;
    slab_poison(record, slab->record_bytes);
    chunk->live_count--;
    slab->live_count--;
    if (chunk->live_count == 0) {
        slab->spare_count++;
        if (slab->spare_count > 1 && slab->spare_count * slab->chunk_bytes > SLAB_SPARE_BYTES) {
            slab_chunk_free(slab, chunk);
        }
    }
}

void slab_fini(struct slab *slab)
{
    must(slab->live_count == 0);
    must(list_empty(&slab->chunks_full));
    while (!list_empty(&slab->chunks_open)) {
        slab_chunk_free(slab, container_of(slab->chunks_open.next, struct slab_chunk, link));
    }
    must(slab->chunk_count == 0);
}
