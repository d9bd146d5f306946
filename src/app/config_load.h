/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config_load.h - configuration while it is being read, for app/config* only.
 *
 * Each key has a slot. A source offers values with its rank, and a slot keeps the
 * last value of the highest rank, unparsed, with where it came from; only what
 * is left at the end is parsed:
 *
 *   /etc/ringspun < ./ < ./config/ < environment < SPRING_APPLICATION_JSON < --key=value
 */
#ifndef APP_CONFIG_LOAD_H
#define APP_CONFIG_LOAD_H

#include <stdbool.h>

#include "app/config.h"
#include "app/config_keys.h"
#include "app/json.h"
#include "base/arena.h"
#include "base/attr.h"
#include "base/slice.h"

enum config__rank {
    CONFIG__RANK_DEFAULT,
    CONFIG__RANK_SYSTEM_FILE,
    CONFIG__RANK_FILE,
    CONFIG__RANK_CONFIG_FILE,
    CONFIG__RANK_ENVIRONMENT,
    CONFIG__RANK_JSON,
    CONFIG__RANK_ARGUMENT
};

struct config__slot {
    enum config__rank rank;
    struct slice value; /* borrowed from the sources or in the arena */
    const char *source; /* "the command line", the path of a file; in the arena or static */
    struct json_position position; /* in a document; line 0: the source has no lines */
};

struct config__load {
    const struct config_sources *sources;
    struct config_error *error;
    struct config *out;                               /* being filled; its action is known */
    struct arena arena;                               /* all text, until the end of config_load */
    struct config__slot slots[CONFIG__KEY_COUNT_MAX]; /* as config__keys */
};

/* config__slot_of - the slot of a key. */
struct config__slot *config__slot_of(struct config__load *load, const struct config__key *key);

/* config__quote - a name or value for a message: escaped, quoted, cut when long; "" on failure. */
const char *config__quote(struct config__load *load, struct slice text);

/* config__quote_path - a path for a message: escaped, whole, without quotes; "" on failure. */
const char *config__quote_path(struct config__load *load, const char *path);

/* config__source_text - where a slot's value comes from: "x.json, line 3 column 7". */
const char *config__source_text(struct config__load *load, const struct config__slot *slot);

/* config__refuse - fill the error; always -EINVAL, so that a caller can return it. */
int config__refuse(struct config__load *load, int exit_code, const char *format, ...)
    PRINTF_LIKE(3, 4) WARN_UNUSED;

/* config__refuse_unknown - the same, for a key that is none; offered is its value and source. */
int config__refuse_unknown(struct config__load *load, struct slice name,
                           const struct config__slot *offered) WARN_UNUSED;

/*
 * config__command_find - what the first argument asks for: CONFIG_RUN unless it is
 * a word, which must be a command.
 *
 * Returns  0 and the action; -EINVAL an unknown word: the error names the nearest command
 */
int config__command_find(struct config__load *load, enum config_action *action) WARN_UNUSED;

/*
 * config__command_option - take an argument that belongs to the command, not to a key.
 *
 * Returns  1 taken; 0 it is none of the command's; -EINVAL; -ENOMEM
 */
int config__command_option(struct config__load *load, struct slice argument) WARN_UNUSED;

/*
 * config__command_text - what --help says of the n-th command, from 0: its usage and
 * its meaning. Returns false behind the last.
 */
bool config__command_text(size_t n, const char **usage, const char **meaning);

/* config__load_json - offer what SPRING_APPLICATION_JSON holds, if it is set. */
int config__load_json(struct config__load *load) WARN_UNUSED;

/* config__load_files - offer what application.json holds, wherever it is. */
int config__load_files(struct config__load *load) WARN_UNUSED;

#endif
