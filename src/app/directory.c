/* SPDX-License-Identifier: Apache-2.0 */
/*
 * directory.c - see directory.h. Called by directory_routes.c on fibers and platform threads.
 *
 * Whatever a write may need is allocated before it takes a lock, and what it leaves over
 * is freed after it gave them back: under the locks nothing fails.
 */
#include <errno.h>
#include <stdlib.h>

#include "app/directory_parts.h"
#include "base/must.h"

/* entry_place - where the entry of that key is, or would be, in its chain. */
static struct directory_entry **entry_place(struct directory *directory, uint64_t hash,
                                            struct slice key)
{
    struct directory_entry **at = &directory->entry_chains[directory__chain_of(hash)];
    while (*at != NULL && ((*at)->hash != hash || !slice_equal((*at)->key, key))) {
        at = &(*at)->next;
    }
    return at;
}

/* ---------------------------------------------------------------- before the locks */

/* change_free - what was not used, or is used no more. */
static void change_free(struct directory_change *change)
{
    for (size_t i = 0; i < DIRECTORY_ATTRIBUTES_MAX; i++) {
        free(change->values[i]);
    }
    while (change->spare != NULL) {
        struct directory_value *value = change->spare;
        change->spare = value->next;
        free(value);
    }
}

/* entry_prepare - the entry, and a value for each attribute in case none is there yet. Returns 0; -ENOMEM. */
static int entry_prepare(struct directory *directory, struct directory_change *change,
                         const struct directory_write *write)
{
    size_t count = write->count;
    size_t bytes = sizeof(struct directory_entry) + count * sizeof(struct posting) +
                   write->key.length + write->json.length;
    struct directory_entry *entry = malloc(bytes);
    if (entry == NULL) {
        return -ENOMEM;
    }
    *entry = (struct directory_entry){
        .hash = siphash(&directory->hash_key, write->key), .bytes = bytes, .posting_count = count};
    char *at = (char *)&entry->postings[count];
    entry->key = directory__put_behind(&at, write->key);
    entry->json = directory__put_behind(&at, write->json);
    change->entry = entry;
    for (size_t i = 0; i < count; i++) {
        change->values[i] = directory__value_new(
            &write->attributes[i], directory__hash_of_attribute(directory, &write->attributes[i]));
        if (change->values[i] == NULL) {
            return -ENOMEM;
        }
        entry->postings[i].entry = entry;
    }
    return 0;
}

/* ---------------------------------------------------------------- room */

static bool add_below(atomic_uint_fast64_t *sum, uint64_t more, uint64_t max)
{
    uint64_t before = atomic_load(sum);
    do {
        if (more > max || before > max - more) {
            return false;
        }
    } while (!atomic_compare_exchange_weak(sum, &before, before + more));
    return true;
}

/* room_of - the new entry and all values that may be new. */
static uint64_t room_of(const struct directory_change *change)
{
    uint64_t bytes = change->entry->bytes;
    for (size_t i = 0; i < DIRECTORY_ATTRIBUTES_MAX && change->values[i] != NULL; i++) {
        bytes += change->values[i]->bytes;
    }
    return bytes;
}

/*
 * room_shared - of that, the values that the old entry has as well: they are asked for although
 * they stand, and given back at once, so they may go beyond what is left.
 */
static uint64_t room_shared(const struct directory_change *change,
                            const struct directory_entry *old)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < change->entry->posting_count; i++) {
        for (size_t j = 0; old != NULL && j < old->posting_count; j++) {
            const struct directory_value *new = change->values[i];
            if (directory__value_is(old->postings[j].value, new->hash, new->name, new->value)) {
                bytes += new->bytes;
            }
        }
    }
    return bytes;
}

/* room_take - for the new entry in the place of the old one, and all its values. Returns 0; -ENOSPC. */
static int room_take(struct directory *directory, const struct directory_change *change,
                     const struct directory_entry *old)
{
    uint64_t bytes = room_of(change);
    uint64_t back = old != NULL ? old->bytes : 0;
    uint64_t max = directory->bytes_max + room_shared(change, old);
    if (bytes > back && !add_below(&directory->bytes, bytes - back, max)) {
        return -ENOSPC;
    }
    if (old == NULL && !add_below(&directory->entries, 1, directory->entries_max)) {
        atomic_fetch_sub(&directory->bytes, bytes - back);
        return -ENOSPC;
    }
    if (bytes <= back) {
        atomic_fetch_sub(&directory->bytes, back - bytes);
    }
    return 0;
}

/* room_give - the opposite, for a write that could not be made after all. */
static void room_give(struct directory *directory, const struct directory_change *change,
                      const struct directory_entry *old)
{
    atomic_fetch_sub(&directory->bytes, room_of(change));
    if (old != NULL) {
        atomic_fetch_add(&directory->bytes, old->bytes);
    } else {
        atomic_fetch_sub(&directory->entries, 1);
    }
}

/* ---------------------------------------------------------------- public */

int directory_put(struct directory *directory, const struct directory_write *write)
{
    must(write->key.length <= DIRECTORY_KEY_MAX && write->json.length <= DIRECTORY_ENTRY_MAX &&
         write->count <= DIRECTORY_ATTRIBUTES_MAX);
    struct directory_change change = {.entry = NULL};
    struct directory_entry *old = NULL;
    int result = entry_prepare(directory, &change, write);
    if (result < 0) {
        goto undo_entry;
    }
    uint64_t hash = change.entry->hash;
    struct mutex *key_lock = &directory->key_locks[directory__lock_of(hash)];
    if ((result = directory__take(key_lock)) < 0) {
        goto undo_entry;
    }
    struct directory_entry **place = entry_place(directory, hash, write->key);
    old = *place;
    if ((result = room_take(directory, &change, old)) < 0) {
        goto undo_key_lock;
    }
    if ((result = directory__value_locks_take(directory, &change, old)) < 0) {
        room_give(directory, &change, old);
        goto undo_key_lock;
    }
    if (old != NULL) {
        directory__unindex(directory, &change, old);
    }
    directory__index(directory, &change);
    change.entry->next = old != NULL ? old->next : NULL;
    *place = change.entry;
    directory__value_locks_give(directory, &change, change.lock_count);
    mutex_unlock(key_lock);
    change_free(&change);
    free(old);
    return old == NULL ? 1 : 0;

undo_key_lock:
    mutex_unlock(key_lock);
undo_entry:
    free(change.entry);
    change_free(&change);
    return result;
}

int directory_delete(struct directory *directory, struct slice key)
{
    struct directory_change change = {.entry = NULL};
    uint64_t hash = siphash(&directory->hash_key, key);
    struct mutex *key_lock = &directory->key_locks[directory__lock_of(hash)];
    int result = directory__take(key_lock);
    if (result < 0) {
        return result;
    }
    struct directory_entry **place = entry_place(directory, hash, key);
    struct directory_entry *old = *place;
    result = old == NULL ? -ENOENT : directory__value_locks_take(directory, &change, old);
    if (result == 0) {
        directory__unindex(directory, &change, old);
        *place = old->next;
        atomic_fetch_sub(&directory->bytes, old->bytes);
        atomic_fetch_sub(&directory->entries, 1);
        directory__value_locks_give(directory, &change, change.lock_count);
    }
    mutex_unlock(key_lock);
    if (result == 0) {
        free(old);
        change_free(&change);
    }
    return result;
}

int directory_get(struct directory *directory, struct slice key, struct arena *arena,
                  struct slice *json)
{
    uint64_t hash = siphash(&directory->hash_key, key);
    struct mutex *key_lock = &directory->key_locks[directory__lock_of(hash)];
    int result = directory__take(key_lock);
    if (result < 0) {
        return result;
    }
    const struct directory_entry *entry = *entry_place(directory, hash, key);
    result = -ENOENT;
    if (entry != NULL) {
        *json = arena_copy(arena, entry->json);
        result = json->at != NULL ? 0 : -ENOMEM;
    }
    mutex_unlock(key_lock);
    return result;
}

static int copy_keys(const struct directory_value *value, struct arena *arena,
                     struct directory_found *found)
{
    size_t count = value->count < DIRECTORY_FOUND_MAX ? value->count : DIRECTORY_FOUND_MAX;
    size_t bytes = 0;
    found->total = value->count;
    found->keys = arena_alloc(arena, count * sizeof(struct slice));
    if (found->keys == NULL) {
        return -ENOMEM;
    }
    for (const struct list *at = value->postings.next; found->count < count; at = at->next) {
        struct slice key = container_of(at, struct posting, link)->entry->key;
        bytes += key.length;
        if (bytes > DIRECTORY_FOUND_BYTES) {
            return 0;
        }
        found->keys[found->count] = arena_copy(arena, key);
        if (found->keys[found->count].at == NULL) {
            return -ENOMEM;
        }
        found->count++;
    }
    return 0;
}

int directory_find(struct directory *directory, const struct directory_attribute *attribute,
                   struct arena *arena, struct directory_found *found)
{
    uint64_t hash = directory__hash_of_attribute(directory, attribute);
    struct mutex *lock = &directory->value_locks[directory__lock_of(hash)];
    *found = (struct directory_found){.total = 0};
    int result = directory__take(lock);
    if (result < 0) {
        return result;
    }
    const struct directory_value *value = directory__value_find(directory, hash, attribute);
    if (value != NULL) {
        result = copy_keys(value, arena, found);
    }
    mutex_unlock(lock);
    return result;
}

int directory_init(struct directory *directory, const struct directory_setup *setup)
{
    *directory = (struct directory){.hash_key = setup->hash_key,
                                    .entries_max = setup->entries_max,
                                    .bytes_max = setup->bytes_max};
    directory->entry_chains = calloc(DIRECTORY_CHAINS, sizeof(struct directory_entry *));
    directory->value_chains = calloc(DIRECTORY_CHAINS, sizeof(struct directory_value *));
    directory->key_locks = calloc(2 * DIRECTORY_LOCKS, sizeof(struct mutex));
    if (directory->entry_chains == NULL || directory->value_chains == NULL ||
        directory->key_locks == NULL) {
        free(directory->entry_chains);
        free(directory->value_chains);
        free(directory->key_locks);
        return -ENOMEM;
    }
    directory->value_locks = directory->key_locks + DIRECTORY_LOCKS;
    for (unsigned i = 0; i < DIRECTORY_LOCKS; i++) {
        mutex_init(&directory->key_locks[i], "directory-key");
        mutex_init(&directory->value_locks[i], "directory-value");
    }
    return 0;
}

void directory_fini(struct directory *directory)
{
    for (unsigned i = 0; i < DIRECTORY_CHAINS; i++) {
        while (directory->entry_chains[i] != NULL) {
            struct directory_entry *entry = directory->entry_chains[i];
            directory->entry_chains[i] = entry->next;
            free(entry);
        }
        while (directory->value_chains[i] != NULL) {
            struct directory_value *value = directory->value_chains[i];
            directory->value_chains[i] = value->next;
            free(value);
        }
    }
    for (unsigned i = 0; i < 2 * DIRECTORY_LOCKS; i++) {
        mutex_fini(&directory->key_locks[i]);
    }
    free(directory->entry_chains);
    free(directory->value_chains);
    free(directory->key_locks);
}
