/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slab.h - records of one size for one thread.
 *
 * Records live in chunks from mmap. A chunk's size is a power of two and its
 * address a multiple of it, so a record finds its chunk by masking its address:
 *
 *   chunk [head|record|record|record|.........never used yet.........]
 *               ^ given back: linked     ^ fresh: pages not touched yet
 *
 * Of a chunk's records the one given last is taken next (it is warm). A chunk
 * whose records are all back is unmapped, but for a megabyte of spare ones (one at
 * least), so memory falls after a burst.
 */
#ifndef BASE_SLAB_H
#define BASE_SLAB_H

#include <stddef.h>

#include "base/attr.h"
#include "base/list.h"

struct slab {
    /* set once */
    size_t record_bytes; /* rounded up to 16 */
    size_t chunk_bytes;  /* a power of two */
    /* changing */
    struct list chunks_open; /* chunks that have a record to give out, the warmest first */
    struct list chunks_full;
    size_t live_count;  /* records taken and not given back */
    size_t chunk_count; /* chunks mapped */
    size_t spare_count; /* of these, without any live record: a megabyte at most, or one */
};

/*
 * slab_init - an empty slab; maps nothing yet.
 *
 * @record_bytes       size of one record, at least 1; records are aligned to 16
 * @records_per_chunk  at least so many fit into one chunk
 */
void slab_init(struct slab *slab, size_t record_bytes, size_t records_per_chunk);

/*
 * slab_take - a zeroed record.
 *
 * Returns  the record; NULL when the machine has no memory (or no mapping) left
 * Owner    the caller, until slab_give
 */
void *slab_take(struct slab *slab) WARN_UNUSED;

/* slab_take_dirty - the same, not cleared: whatever its last owner left in it. */
void *slab_take_dirty(struct slab *slab) WARN_UNUSED;

/* slab_give - give a record back to the slab it was taken from. */
void slab_give(struct slab *slab, void *record);

/* slab_fini - unmap everything; every record must have been given back. */
void slab_fini(struct slab *slab);

#endif
