/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config_keys.h - the table of keys, for app/config* only. One row is all that a
 * key needs: reading, checking, --help and the nearest known key follow from it.
 */
#ifndef APP_CONFIG_KEYS_H
#define APP_CONFIG_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

enum config__type {
    CONFIG__BOOLEAN,  /* bool */
    CONFIG__INTEGER,  /* int */
    CONFIG__DURATION, /* uint64_t, nanoseconds */
    CONFIG__SIZE,     /* uint64_t, bytes */
    CONFIG__CHOICE,   /* an enum that counts from 0 */
    CONFIG__PROFILES, /* uint32_t, bits */
    CONFIG__ADDRESS,  /* char *, owned */
    CONFIG__URL,      /* char *, owned */
    CONFIG__SOURCE    /* no field: says where other keys are read from */
};

struct config__key {
    const char *name;
    enum config__type type;
    size_t offset;        /* of the field in struct config */
    int64_t min, max;     /* INTEGER, DURATION, SIZE: in the field's unit, both allowed */
    uint32_t port_of;     /* INTEGER that is a port: the enum config_profile it is served with */
    const char *choices;  /* CHOICE: names in the order of the enum, '|' between them */
    const char *fallback; /* the default as a value; NULL: the field stays 0 */
    const char *fallback_text; /* the default for --help where the value does not say it */
    bool empty_is_default;     /* an empty value is no error */
    const char *meaning;
};

#define CONFIG__KEY_COUNT_MAX 48

extern const struct config__key config__keys[];
extern const size_t config__key_count;

/*
 * config__key_find - the row of a key written in any relaxed form: compared in
 * lower case, without '-' and '_'. NULL: unknown.
 */
const struct config__key *config__key_find(struct slice name);

/*
 * config__key_find_environment - the row that an environment variable sets: the
 * key with dots as '_', and dashes dropped or as '_'; any case. NULL: none.
 */
const struct config__key *config__key_find_environment(struct slice name);

/* config__key_is_group - do known keys lie below this one ("server", "server.tomcat")? */
bool config__key_is_group(struct slice name);

/*
 * config__key_nearest - the known key that takes the fewest edits to come from
 * name (insert, delete or replace a character, after relaxing); the first of equals.
 */
const struct config__key *config__key_nearest(struct slice name);

/* config__distance - the edits that turn one name into the other, after relaxing both. */
size_t config__distance(struct slice a, struct slice b);

#endif
