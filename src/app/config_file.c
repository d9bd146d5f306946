/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config_file.c - the sources that are JSON: application.json in its places, and
 * SPRING_APPLICATION_JSON. Which file to read is a key itself, so this runs after
 * arguments and environment were read; their higher rank keeps them on top.
 */
#include <errno.h>
#include <stdlib.h>

#include "app/config_load.h"
#include "app/json.h"

#define CONFIG_LIST_MAX 4096 /* bytes of a list, joined with commas */

/* The visit of one document. */
struct config_document {
    struct config__load *load;
    enum config__rank rank;
    const char *name; /* for messages: path or variable */
};

/*
 * Lists: "key[0]", "key[1]" ... become "a,b" in the slot of key. The row of the
 * list's key, or NULL when name is no element of a known list.
 */
static const struct config__key *config_list_of(struct slice name, bool *first)
{
    struct slice base = {.at = name.at, .length = 0};
    while (base.length < name.length && name.at[base.length] != '[') {
        base.length++;
    }
    const struct config__key *key = config__key_find(base);
    struct slice index = {.at = name.at + base.length, .length = name.length - base.length};
    if (key == NULL || key->type != CONFIG__PROFILES || index.length < 3 ||
        memchr(index.at + 1, '[', index.length - 1) != NULL) {
        return NULL;
    }
    *first = slice_equal(index, SLICE("[0]"));
    return key;
}

/* Why this key may not be set in this document, or NULL. */
static const char *config_document_forbids(const struct config_document *document,
                                           const struct config__key *key)
{
    if (key->type != CONFIG__SOURCE) {
        return NULL;
    }
    if (document->rank != CONFIG__RANK_JSON || strcmp(key->name, "spring.application.json") == 0) {
        return "it says what is read and must come from the environment or the command line";
    }
    return NULL;
}

/* Join an element to the list that the slot holds already. */
static int config_append(struct config__load *load, const struct config__key *key,
                         struct config__slot *offered)
{
    const struct config__slot *slot = config__slot_of(load, key);
    if (slot->value.length + offered->value.length > CONFIG_LIST_MAX) {
        return config__refuse(load, CONFIG_EXIT_CONFIG, "bad value for %s from %s: too long a list",
                              key->name, config__source_text(load, offered));
    }
    offered->value = arena_printf(&load->arena, "%.*s,%.*s", (int)slot->value.length,
                                  slot->value.at, (int)offered->value.length, offered->value.at);
    return offered->value.at != NULL ? 0 : -ENOMEM;
}

static int config_visit(void *context, const struct json_leaf *leaf)
{
    const struct config_document *document = context;
    struct config__load *load = document->load;
    struct slice name = slice_of(leaf->key);
    struct config__slot offered = {.rank = document->rank,
                                   .value = leaf->value,
                                   .source = document->name,
                                   .position = leaf->position};
    bool first = true;
    const struct config__key *key = config__key_find(name);
    if (key == NULL) {
        key = config_list_of(name, &first);
    }
    if (key == NULL) {
        bool empty_group = leaf->kind == JSON_EMPTY && config__key_is_group(name);
        return empty_group ? 0 : config__refuse_unknown(load, name, &offered);
    }
    const char *forbidden = config_document_forbids(document, key);
    if (forbidden != NULL) {
        return config__refuse(load, CONFIG_EXIT_CONFIG, "%s cannot be set in %s: %s", key->name,
                              config__source_text(load, &offered), forbidden);
    }
    if (leaf->kind == JSON_NULL || leaf->kind == JSON_EMPTY) {
        return config__refuse(load, CONFIG_EXIT_CONFIG, "bad value %s for %s from %s: no value",
                              leaf->kind == JSON_NULL ? "null" : "{} or []", key->name,
                              config__source_text(load, &offered));
    }

    struct config__slot *slot = config__slot_of(load, key);
    if (offered.rank < slot->rank) {
        return 0;
    }
    offered.value = arena_copy(&load->arena, leaf->value);
    if (offered.value.at == NULL) {
        return -ENOMEM;
    }
    int result = first ? 0 : config_append(load, key, &offered);
    if (result == 0) {
        *slot = offered;
    }
    return result;
}

static int config_read_document(struct config__load *load, enum config__rank rank, const char *name,
                                struct slice text)
{
    struct config_document document = {.load = load, .rank = rank, .name = name};
    /* A visit that fails with -EINVAL has filled load->error and leaves this one alone. */
    struct json_error error = {.text = NULL};
    int result = json_flatten(text, config_visit, &document, &error);
    if (result == -EINVAL && error.text != NULL) {
        struct config__slot place = {.source = name, .position = error.position};
        return config__refuse(load, CONFIG_EXIT_CONFIG, "bad JSON in %s: %s",
                              config__source_text(load, &place), error.text);
    }
    return result;
}

int config__load_json(struct config__load *load)
{
    const struct config__key *key = config__key_find(SLICE("spring.application.json"));
    const struct config__slot *slot = config__slot_of(load, key);
    if (slot->value.length == 0) {
        return 0; /* an empty variable is none, as in Spring Boot */
    }
    return config_read_document(load, CONFIG__RANK_JSON, "SPRING_APPLICATION_JSON", slot->value);
}

/* Read one file; that it is missing is an error only when it was asked for. */
static int config_read_path(struct config__load *load, enum config__rank rank, const char *path,
                            bool required)
{
    char *text = malloc(JSON_DOCUMENT_MAX);
    if (text == NULL) {
        return -ENOMEM;
    }
    ssize_t length = load->sources->read_file(path, text, JSON_DOCUMENT_MAX);
    int result = 0;
    if (length >= 0) {
        result = config_read_document(load, rank, config__quote_path(load, path),
                                      (struct slice){.at = text, .length = (size_t)length});
    } else if (length == -EFBIG) {
        result = config__refuse(load, CONFIG_EXIT_CONFIG,
                                "cannot read configuration file %s: larger than 1 MB",
                                config__quote_path(load, path));
    } else if (required || (length != -ENOENT && length != -ENOTDIR)) {
        result = config__refuse(load, CONFIG_EXIT_CONFIG, "cannot read configuration file %s: %s",
                                config__quote_path(load, path), strerror((int)-length));
    }
    free(text);
    return result;
}

/* The file that spring.config.location names, "optional:" and "file:" before it as in Spring. */
static int config_read_location(struct config__load *load, const struct config__slot *slot)
{
    struct slice path = slice_trim(slot->value);
    struct slice optional = SLICE("optional:");
    bool required = !slice_starts_with(path, optional);
    if (!required) {
        path = (struct slice){.at = path.at + optional.length,
                              .length = path.length - optional.length};
    }
    struct slice file = SLICE("file:");
    if (slice_starts_with(path, file)) {
        path = (struct slice){.at = path.at + file.length, .length = path.length - file.length};
    }
    if (path.length == 0) {
        return config__refuse(load, CONFIG_EXIT_CONFIG,
                              "bad value %s for spring.config.location from %s: expected the "
                              "name of a file",
                              config__quote(load, slot->value), slot->source);
    }
    struct slice copy = arena_copy(&load->arena, path);
    if (copy.at == NULL) {
        return -ENOMEM;
    }
    return config_read_path(load, CONFIG__RANK_CONFIG_FILE, copy.at, required);
}

int config__load_files(struct config__load *load)
{
    const struct config__key *key = config__key_find(SLICE("spring.config.location"));
    const struct config__slot *slot = config__slot_of(load, key);
    if (slot->rank != CONFIG__RANK_DEFAULT) {
        return config_read_location(load, slot);
    }
    struct {
        enum config__rank rank;
        const char *directory;
        const char *below;
    } places[] = {
        {CONFIG__RANK_SYSTEM_FILE, load->sources->system_directory, ""},
        {CONFIG__RANK_FILE, load->sources->directory, ""},
        {CONFIG__RANK_CONFIG_FILE, load->sources->directory, "/config"},
    };
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        struct slice path = arena_printf(&load->arena, "%s%s/application.json", places[i].directory,
                                         places[i].below);
        if (path.at == NULL) {
            return -ENOMEM;
        }
        int result = config_read_path(load, places[i].rank, path.at, false);
        if (result != 0) {
            return result;
        }
    }
    return 0;
}
