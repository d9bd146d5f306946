/* SPDX-License-Identifier: Apache-2.0 */
/*
 * directory_parts.h - what the files of the directory share and nobody else calls:
 * directory.c has the entries and what is done to them, directory_index.c the values
 * that they have, and the locks of those.
 */
#ifndef APP_DIRECTORY_PARTS_H
#define APP_DIRECTORY_PARTS_H

#include <string.h>

#include "app/directory.h"
#include "base/list.h"

/* One attribute of one entry; in the entry's memory. */
struct posting {
    struct list link; /* directory_value.postings */
    struct directory_entry *entry;
    struct directory_value *value;
};

/* An attribute with a value that some entry has. */
struct directory_value {
    struct directory_value *next; /* of the chain, or of what a write leaves over */
    uint64_t hash;
    struct list postings; /* oldest first */
    size_t count;
    struct slice name, value; /* behind the struct */
    size_t bytes;
};

struct directory_entry {
    struct directory_entry *next; /* of the chain */
    uint64_t hash;
    struct slice key, json; /* behind the postings */
    size_t bytes;
    size_t posting_count;
    struct posting postings[];
};

/* What a write needs, and what it leaves over. */
struct directory_change {
    struct directory_entry *entry; /* NULL: a deletion */
    struct directory_value
        *values[DIRECTORY_ATTRIBUTES_MAX];        /* one an attribute; NULL behind the last */
    struct directory_value *spare;                /* freed at the end */
    unsigned locks[2 * DIRECTORY_ATTRIBUTES_MAX]; /* ascending */
    size_t lock_count;
};

static inline unsigned directory__chain_of(uint64_t hash)
{
    return (unsigned)(hash % DIRECTORY_CHAINS);
}

/* directory__lock_of - the lock of that hash's chain. */
static inline unsigned directory__lock_of(uint64_t hash)
{
    _Static_assert(DIRECTORY_CHAINS % DIRECTORY_LOCKS == 0, "a chain has one lock");
    return (unsigned)(hash % DIRECTORY_LOCKS);
}

/* directory__value_is - is it that attribute with that value? */
static inline bool directory__value_is(const struct directory_value *value, uint64_t hash,
                                       struct slice name, struct slice text)
{
    return value->hash == hash && slice_equal(value->name, name) && slice_equal(value->value, text);
}

/* directory__put_behind - copy s to *at, which moves on. */
static inline struct slice directory__put_behind(char **at, struct slice s)
{
    struct slice copy = {.at = *at, .length = s.length};
    memcpy(*at, s.at, s.length);
    *at += s.length;
    return copy;
}

/* directory__take - in the one order, so no wait closes a circle. Returns 0; -ECANCELED. Parks. */
int directory__take(struct mutex *lock) WARN_UNUSED;

uint64_t directory__hash_of_attribute(const struct directory *directory,
                                      const struct directory_attribute *attribute);

/* directory__value_new - without postings; NULL: no memory. The caller's, to free. */
struct directory_value *directory__value_new(const struct directory_attribute *attribute,
                                             uint64_t hash);

/* directory__value_find - NULL: no entry has it. Under its lock, as is what it returns. */
struct directory_value *directory__value_find(struct directory *directory, uint64_t hash,
                                              const struct directory_attribute *attribute);

/*
 * directory__value_locks_take - those of the values that old (or NULL) has and that the
 * change brings. Returns 0; -ECANCELED with none of them held. Parks.
 */
int directory__value_locks_take(struct directory *directory, struct directory_change *change,
                                const struct directory_entry *old) WARN_UNUSED;

/* directory__value_locks_give - the first count of them. */
void directory__value_locks_give(struct directory *directory, const struct directory_change *change,
                                 size_t count);

/*
 * directory__unindex, directory__index - take an entry out of its values, put the change's
 * into its own. Under the locks of the values; what nobody has any more becomes spare.
 */
void directory__unindex(struct directory *directory, struct directory_change *change,
                        struct directory_entry *entry);
void directory__index(struct directory *directory, struct directory_change *change);

#endif
