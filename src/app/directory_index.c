/* SPDX-License-Identifier: Apache-2.0 */
/*
 * directory_index.c - which entries have which values. See directory_parts.h; called by
 * directory.c.
 */
#include <errno.h>
#include <stdlib.h>

#include "app/directory_parts.h"
#include "base/must.h"

uint64_t directory__hash_of_attribute(const struct directory *directory,
                                      const struct directory_attribute *attribute)
{
    char both[2 * DIRECTORY_ATTRIBUTE_MAX + 1];
    must(attribute->name.length <= DIRECTORY_ATTRIBUTE_MAX &&
         attribute->value.length <= DIRECTORY_ATTRIBUTE_MAX);
    memcpy(both, attribute->name.at, attribute->name.length);
    both[attribute->name.length] = '\0'; /* no name has one */
    memcpy(both + attribute->name.length + 1, attribute->value.at, attribute->value.length);
    return siphash(
        &directory->hash_key,
        (struct slice){.at = both, .length = attribute->name.length + 1 + attribute->value.length});
}

static struct directory_value **value_place(struct directory *directory, uint64_t hash,
                                            struct slice name, struct slice value)
{
    struct directory_value **at = &directory->value_chains[directory__chain_of(hash)];
    while (*at != NULL && !directory__value_is(*at, hash, name, value)) {
        at = &(*at)->next;
    }
    return at;
}

struct directory_value *directory__value_find(struct directory *directory, uint64_t hash,
                                              const struct directory_attribute *attribute)
{
    return *value_place(directory, hash, attribute->name, attribute->value);
}

struct directory_value *directory__value_new(const struct directory_attribute *attribute,
                                             uint64_t hash)
{
    size_t bytes =
        sizeof(struct directory_value) + attribute->name.length + attribute->value.length;
    struct directory_value *value = malloc(bytes);
    if (value != NULL) {
        char *at = (char *)(value + 1);
        *value = (struct directory_value){.hash = hash, .bytes = bytes};
        list_init(&value->postings);
        value->name = directory__put_behind(&at, attribute->name);
        value->value = directory__put_behind(&at, attribute->value);
    }
    return value;
}

/* ---------------------------------------------------------------- locks */

static void lock_note(struct directory_change *change, uint64_t hash)
{
    unsigned lock = directory__lock_of(hash);
    size_t at = change->lock_count;
    while (at > 0 && change->locks[at - 1] >= lock) {
        if (change->locks[at - 1] == lock) {
            return;
        }
        at--;
    }
    memmove(&change->locks[at + 1], &change->locks[at],
            (change->lock_count - at) * sizeof(change->locks[0]));
    change->locks[at] = lock;
    change->lock_count++;
}

int directory__take(struct mutex *lock)
{
    int result = mutex_lock(lock);
    must(result == 0 || result == -ECANCELED);
    return result;
}

void directory__value_locks_give(struct directory *directory, const struct directory_change *change,
                                 size_t count)
{
    while (count > 0) {
        mutex_unlock(&directory->value_locks[change->locks[--count]]);
    }
}

int directory__value_locks_take(struct directory *directory, struct directory_change *change,
                                const struct directory_entry *old)
{
    for (size_t i = 0; old != NULL && i < old->posting_count; i++) {
        lock_note(change, old->postings[i].value->hash);
    }
    for (size_t i = 0; i < DIRECTORY_ATTRIBUTES_MAX && change->values[i] != NULL; i++) {
        lock_note(change, change->values[i]->hash);
    }
    for (size_t i = 0; i < change->lock_count; i++) {
        int result = directory__take(&directory->value_locks[change->locks[i]]);
        if (result < 0) {
            directory__value_locks_give(directory, change, i);
            return result;
        }
    }
    return 0;
}

/* ---------------------------------------------------------------- under the locks */

static void let_value_go(struct directory *directory, struct directory_change *change,
                         struct directory_value *value)
{
    atomic_fetch_sub(&directory->bytes, value->bytes);
    value->next = change->spare;
    change->spare = value;
}

void directory__unindex(struct directory *directory, struct directory_change *change,
                        struct directory_entry *entry)
{
    for (size_t i = 0; i < entry->posting_count; i++) {
        struct directory_value *value = entry->postings[i].value;
        list_remove(&entry->postings[i].link);
        if (--value->count == 0) {
            struct directory_value **place =
                value_place(directory, value->hash, value->name, value->value);
            must(*place == value);
            *place = value->next;
            let_value_go(directory, change, value);
        }
    }
}

void directory__index(struct directory *directory, struct directory_change *change)
{
    struct directory_entry *entry = change->entry;
    for (size_t i = 0; i < entry->posting_count; i++) {
        struct directory_value *value = change->values[i];
        change->values[i] = NULL;
        struct directory_value **place =
            value_place(directory, value->hash, value->name, value->value);
        if (*place == NULL) {
            value->next = NULL;
            *place = value;
        } else {
            let_value_go(directory, change, value);
            value = *place;
        }
        entry->postings[i].value = value;
        list_append(&value->postings, &entry->postings[i].link);
        value->count++;
    }
}
