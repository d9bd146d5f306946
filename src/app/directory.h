/* SPDX-License-Identifier: Apache-2.0 */
/*
 * directory.h - entries by key, and an index of their attributes, in memory: what the
 * mailing list's stress test wrote to, where many writers meet at the same locks.
 *
 *   keys:  chain -> entry -> entry        a lock for every 64th chain
 *                     | postings
 *   index: chain -> value "team=blue" -> its entries, oldest first    likewise
 *
 * A writer holds the lock of its key and those of all values that the entry had or
 * will have, the key's first and then in the order of their numbers, so that no two
 * wait for each other in a circle. Whoever reads holds one lock, and sees an entry
 * with a value before a write or after it, never both and never neither.
 */
#ifndef APP_DIRECTORY_H
#define APP_DIRECTORY_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/attr.h"
#include "base/siphash.h"
#include "base/slice.h"
#include "fiber/mutex.h"

#define DIRECTORY_KEY_MAX 128       /* bytes */
#define DIRECTORY_ENTRY_MAX 4096    /* bytes of its JSON */
#define DIRECTORY_ATTRIBUTES_MAX 8  /* indexed ones of an entry */
#define DIRECTORY_ATTRIBUTE_MAX 64  /* bytes of a name, and of a value */
#define DIRECTORY_FOUND_MAX 1000    /* keys that a search tells */
#define DIRECTORY_FOUND_BYTES 32768 /* and how long they are together */

#define DIRECTORY_CHAINS 65536u
#define DIRECTORY_LOCKS 1024u

struct directory_entry;
struct directory_value;

struct directory {
    /* set once */
    struct siphash_key hash_key;
    uint64_t entries_max;
    uint64_t bytes_max;
    struct directory_entry *
        *entry_chains; /* each under the lock of its number modulo DIRECTORY_LOCKS */
    struct directory_value **value_chains; /* likewise */
    struct mutex *key_locks;
    struct mutex *value_locks;
    /* anybody's */
    atomic_uint_fast64_t entries;
    atomic_uint_fast64_t bytes; /* of entries and values, as they were asked from malloc */
};

struct directory_attribute {
    struct slice name;
    struct slice value;
};

struct directory_setup {
    struct siphash_key hash_key; /* random */
    uint64_t entries_max;
    uint64_t bytes_max;
};

/* directory_init - empty. Returns 0; -ENOMEM. directory_fini frees all; nobody uses it then. */
int directory_init(struct directory *directory, const struct directory_setup *setup) WARN_UNUSED;
void directory_fini(struct directory *directory);

/* What directory_put copies. */
struct directory_write {
    struct slice key;
    struct slice json;                            /* kept as it is */
    const struct directory_attribute *attributes; /* no name twice */
    size_t count;                                 /* at most DIRECTORY_ATTRIBUTES_MAX */
};

/*
 * directory_put - an entry under a key, in the place of the one that is there.
 *
 * Returns  1 it is new; 0 it replaced one; -ENOSPC more entries or bytes than allowed;
 *          -ENOMEM; -ECANCELED. On an error all is as before
 * Parks    while another one has a lock; on a platform thread it blocks that thread
 */
int directory_put(struct directory *directory, const struct directory_write *write) WARN_UNUSED;

/* directory_delete - Returns 0; -ENOENT; -ECANCELED. Parks as directory_put does. */
int directory_delete(struct directory *directory, struct slice key) WARN_UNUSED;

/* directory_get - a copy of the entry's JSON in the arena. Returns 0; -ENOENT; -ENOMEM; -ECANCELED. Parks likewise. */
int directory_get(struct directory *directory, struct slice key, struct arena *arena,
                  struct slice *json) WARN_UNUSED;

struct directory_found {
    size_t total; /* entries with that attribute */
    size_t count; /* of keys: all of them, or the oldest, see DIRECTORY_FOUND_MAX */
    struct slice *keys;
};

/*
 * directory_find - the keys of the entries that have this attribute with this value,
 * copied to the arena.
 *
 * Returns  0, also for none; -ENOMEM; -ECANCELED
 * Parks    as directory_put does
 */
int directory_find(struct directory *directory, const struct directory_attribute *attribute,
                   struct arena *arena, struct directory_found *found) WARN_UNUSED;

#endif
