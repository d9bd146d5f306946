/* SPDX-License-Identifier: Apache-2.0 */
/*
 * directory_routes.c - /directory over HTTP: entries by key, and who has an attribute.
 *
 *   PUT /directory/7      {"team":"blue","city":"Oslo","size":3}   -> 201, or 204 in the place of another
 *   GET /directory/7      -> what was put
 *   GET /directory?team=blue   -> {"count":1,"keys":["7"]}
 *
 * Indexed are the strings on the top level of an entry; of those with the same name the last one.
 */
#include <errno.h>
#include <stdio.h>

#include "app/app.h"
#include "app/directory.h"
#include "app/json.h"
#include "app/query.h"
#include "app/routes.h"
#include "base/json.h"
#include "base/utf8.h"
#include "ring/sys.h"

static void refuse(struct http_exchange *exchange, int status, struct slice message)
{
    http_respond_error(exchange, status, message, sys_wall_ns());
}

static struct directory *directory_of(const struct http_exchange *exchange)
{
    return ((struct app *)exchange->context)->directory;
}

/* is_text - UTF-8 without control characters, of which a search's answer would make six bytes each. */
static bool is_text(struct slice s)
{
    bool valid = true;
    while (s.length > 0 && valid) {
        size_t length = utf8_next(s, &valid);
        valid = valid && (unsigned char)s.at[0] >= 0x20 && s.at[0] != 0x7f;
        s.at += length;
        s.length -= length;
    }
    return valid;
}

bool directory_key_check(struct http_exchange *exchange)
{
    struct slice key = exchange->params[0];
    if (key.length > DIRECTORY_KEY_MAX || !is_text(key)) {
        refuse(exchange, 400,
               SLICE("a key is at most 128 bytes of UTF-8, without control characters"));
        return false;
    }
    return true;
}

/* ---------------------------------------------------------------- what an entry is indexed by */

struct reading {
    struct arena *arena;
    struct directory_attribute attributes[DIRECTORY_ATTRIBUTES_MAX];
    size_t count;
    int status; /* of the refusal; 0: none */
    const char *why;
};

static int read_leaf(void *context, const struct json_leaf *leaf)
{
    struct reading *reading = context;
    struct slice name = slice_of(leaf->key);
    if (leaf->kind != JSON_STRING || leaf->depth > 1) {
        return 0;
    }
    size_t at = 0;
    while (at < reading->count && !slice_equal(reading->attributes[at].name, name)) {
        at++; /* of strings with the same name the last one counts */
    }
    reading->status = 400;
    if (at == DIRECTORY_ATTRIBUTES_MAX) {
        reading->why = "an entry has at most 8 strings on its top level";
        return -EINVAL;
    }
    if (name.length > DIRECTORY_ATTRIBUTE_MAX || leaf->value.length > DIRECTORY_ATTRIBUTE_MAX) {
        reading->why = "the name and the value of a string are at most 64 bytes each";
        return -EINVAL;
    }
    reading->attributes[at].name = arena_copy(reading->arena, name);
    reading->attributes[at].value = arena_copy(reading->arena, leaf->value);
    if (reading->attributes[at].name.at == NULL || reading->attributes[at].value.at == NULL) {
        reading->status = 503;
        reading->why = "no memory for the entry";
        return -ENOMEM;
    }
    reading->count = at == reading->count ? at + 1 : reading->count;
    reading->status = 0;
    return 0;
}

/* read_entry - the attributes of the body. Returns false after a refusal. */
static bool read_entry(struct http_exchange *exchange, struct reading *reading)
{
    struct slice body = exchange->request->body;
    struct json_error error = {.text = NULL};
    _Static_assert(ROUTE_BODY_MAX <= DIRECTORY_ENTRY_MAX, "whatever comes fits");
    int result = json_flatten(body, read_leaf, reading, &error);
    if (result == 0) {
        return true;
    }
    if (reading->status != 0) {
        refuse(exchange, reading->status, slice_of(reading->why));
    } else if (result == -EINVAL) {
        struct slice message = arena_printf(exchange->arena, "line %zu, column %zu: %s",
                                            error.position.line, error.position.column, error.text);
        refuse(exchange, 400, message.at != NULL ? message : SLICE(""));
    } else {
        refuse(exchange, 503, SLICE("no memory for the entry"));
    }
    return false;
}

/* ---------------------------------------------------------------- handlers */

/* respond_failure - of the store. A client that has gone is answered nothing. */
static void respond_failure(struct http_exchange *exchange, int result)
{
    switch (result) {
    case -ENOENT:
        refuse(exchange, 404, SLICE("no entry has this key"));
        return;
    case -ENOSPC:
        refuse(exchange, 507,
               SLICE("the directory is full: ringspun.directory.entries-max and .bytes-max"));
        return;
    case -ENOMEM:
        refuse(exchange, 503, SLICE("no memory for the entry"));
        return;
    default:
        return; /* -ECANCELED */
    }
}

void directory_put_handle(struct http_exchange *exchange)
{
    struct reading reading = {.arena = exchange->arena};
    if (!read_entry(exchange, &reading)) {
        return;
    }
    struct directory_write write = {.key = exchange->params[0],
                                    .json = exchange->request->body,
                                    .attributes = reading.attributes,
                                    .count = reading.count};
    int result = directory_put(directory_of(exchange), &write);
    if (result < 0) {
        respond_failure(exchange, result);
        return;
    }
    exchange->response->status = result == 1 ? 201 : 204;
}

void directory_delete_handle(struct http_exchange *exchange)
{
    int result = directory_delete(directory_of(exchange), exchange->params[0]);
    if (result < 0) {
        respond_failure(exchange, result);
        return;
    }
    exchange->response->status = 204;
}

void directory_get_handle(struct http_exchange *exchange)
{
    struct slice json;
    int result = directory_get(directory_of(exchange), exchange->params[0], exchange->arena, &json);
    if (result < 0) {
        respond_failure(exchange, result);
        return;
    }
    http_respond_json(exchange, 200, json);
}

bool directory_find_check(struct http_exchange *exchange)
{
    struct slice name, value;
    int result = query_only(exchange->request->query, exchange->arena, &name, &value);
    if (result == -ENOMEM) {
        refuse(exchange, 503, SLICE("no memory for the search"));
    } else if (result < 0 || name.length > DIRECTORY_ATTRIBUTE_MAX ||
               value.length > DIRECTORY_ATTRIBUTE_MAX) {
        refuse(exchange, 400,
               SLICE("ask for one attribute: /directory?name=value, each at most 64 bytes"));
        result = -EINVAL;
    }
    return result == 0;
}

/* found_json - {"count":2,"keys":["a","b"]}; .at is NULL without memory. */
static struct slice found_json(struct arena *arena, const struct directory_found *found)
{
    size_t capacity = 64;
    for (size_t i = 0; i < found->count; i++) {
        capacity += json_escape(NULL, 0, found->keys[i]) + sizeof("\"\",");
    }
    char *json = arena_alloc(arena, capacity);
    if (json == NULL) {
        return (struct slice){.at = NULL};
    }
    size_t length = (size_t)snprintf(json, capacity, "{\"count\":%zu,\"keys\":[", found->total);
    for (size_t i = 0; i < found->count; i++) {
        json[length++] = '"';
        length += json_escape(json + length, capacity - length, found->keys[i]);
        json[length++] = '"';
        json[length++] = i + 1 < found->count ? ',' : ']';
    }
    if (found->count == 0) {
        json[length++] = ']';
    }
    json[length++] = '}';
    return (struct slice){.at = json, .length = length};
}

void directory_find_handle(struct http_exchange *exchange)
{
    struct directory_attribute attribute;
    struct directory_found found;
    int result = query_only(exchange->request->query, exchange->arena, &attribute.name,
                            &attribute.value); /* as directory_find_check has seen */
    if (result == 0) {
        result = directory_find(directory_of(exchange), &attribute, exchange->arena, &found);
    }
    struct slice body = {.at = NULL};
    if (result == 0) {
        body = found_json(exchange->arena, &found);
        result = body.at != NULL ? 0 : -ENOMEM;
    }
    if (result < 0) {
        respond_failure(exchange, result);
        return;
    }
    http_respond_json(exchange, 200, body);
}
