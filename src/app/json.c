/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json.c - see json.h; the one door to cJSON. cJSON checks the grammar and
 * unescapes strings; json_scan bounds what it is given and says where each leaf
 * stands. Tree and text are walked in step, leaf by leaf, which works since a
 * cJSON tree keeps the order of the document and names that occur twice.
 *
 * Any thread: cJSON writes its last error to a global that nobody reads here, and is
 * thread-safe as long as it is told where to put the end of what it parsed, has
 * hooks of nobody's and no setlocale beside it (cJSON's README, "Thread Safety").
 */
#include "app/json.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "app/json_scan.h"
#include "base/must.h"

struct json_walk {
    struct slice text; /* as it was parsed, without byte order mark */
    size_t offset;     /* behind the last leaf */
    /* Positions are counted on from the last one, or many leaves would cost their square. */
    size_t counted_offset;
    struct json_position counted;
    json_visit *visit;
    void *context;
    struct json_error *error;
    unsigned depth; /* objects and arrays that are open */
    char key[JSON_KEY_MAX];
};

/* Position of an offset that is not before the last one asked for. */
static struct json_position json_position_on(struct json_walk *walk, size_t offset)
{
    struct slice rest = {.at = walk->text.at + walk->counted_offset,
                         .length = walk->text.length - walk->counted_offset};
    struct json_position ahead = json_scan_position(rest, offset - walk->counted_offset);
    if (ahead.line == 1) {
        ahead.column += walk->counted.column - 1;
    }
    ahead.line += walk->counted.line - 1;
    walk->counted_offset = offset;
    walk->counted = ahead;
    return ahead;
}

static int json_visit_leaf(struct json_walk *walk, const cJSON *node)
{
    struct slice raw;
    bool found = json_scan_leaf(walk->text, &walk->offset, &raw);
    must(found);
    struct json_leaf leaf = {
        .key = walk->key,
        .depth = walk->depth,
        .value = raw,
        .position = json_position_on(walk, (size_t)(raw.at - walk->text.at)),
    };
    if (cJSON_IsString(node)) {
        must(raw.at[0] == '"');
        leaf.kind = JSON_STRING;
        leaf.value = slice_of(node->valuestring);
    } else if (cJSON_IsNumber(node)) {
        leaf.kind = JSON_NUMBER;
    } else if (cJSON_IsBool(node)) {
        leaf.kind = JSON_BOOLEAN;
    } else if (cJSON_IsNull(node)) {
        leaf.kind = JSON_NULL;
    } else {
        must(raw.at[0] == '{' || raw.at[0] == '[');
        leaf.kind = JSON_EMPTY;
    }
    return walk->visit(walk->context, &leaf);
}

/* Extend the key of *length bytes by a child's name or index; false when it does not fit. */
static bool json_extend_key(struct json_walk *walk, const cJSON *child, size_t index,
                            size_t *length)
{
    char *end = walk->key + *length;
    size_t left = sizeof(walk->key) - *length;
    int added;
    if (child->string == NULL) {
        added = snprintf(end, left, "[%zu]", index);
    } else {
        added = snprintf(end, left, "%s%s", *length > 0 ? "." : "", child->string);
    }
    if (added < 0 || (size_t)added >= left) {
        return false;
    }
    *length += (size_t)added;
    return true;
}

/* Recurses at most JSON_DEPTH_MAX times: json_scan_check saw to that. */
static int json_walk_children(struct json_walk *walk, const cJSON *node, size_t key_length)
{
    size_t index = 0;
    walk->depth++;
    for (const cJSON *child = node->child; child != NULL; child = child->next) {
        size_t child_length = key_length;
        if (!json_extend_key(walk, child, index, &child_length)) {
            struct slice leaf = {.at = walk->text.at};
            json_scan_leaf(walk->text, &walk->offset, &leaf);
            walk->error->text = "a key is too long";
            walk->error->position = json_position_on(walk, (size_t)(leaf.at - walk->text.at));
            return -EINVAL;
        }
        int result = child->child != NULL ? json_walk_children(walk, child, child_length)
                                          : json_visit_leaf(walk, child);
        if (result != 0) {
            return result;
        }
        walk->key[key_length] = '\0';
        index++;
    }
    walk->depth--;
    return 0;
}

static int json_refuse(struct json_error *error, struct slice text, size_t offset, const char *why)
{
    error->position = json_scan_position(text, offset);
    error->text = why;
    return -EINVAL;
}

/*
 * Where cJSON's complaint belongs. It points one behind what stands in place of a
 * name, such as the '}' after a comma too many (cJSON 1.7.15, seen).
 */
static size_t json_error_offset(struct slice text, size_t offset)
{
    if (offset < 2 || offset > text.length || strchr("},]:", text.at[offset - 1]) == NULL) {
        return offset;
    }
    size_t before = offset - 2;
    while (before > 0 && strchr(" \t\r\n", text.at[before]) != NULL) {
        before--;
    }
    bool empty_object = text.at[before] == '{' && text.at[offset - 1] == '}';
    bool name_expected = text.at[before] == ',' || text.at[before] == '{';
    return name_expected && !empty_object ? offset - 1 : offset;
}

/* Parse a text that is followed by a NUL: cJSON then refuses what stands behind the value. */
static int json_parse(struct slice text, struct json_error *error, cJSON **root)
{
    const char *end = text.at;
    errno = 0;
    *root = cJSON_ParseWithLengthOpts(text.at, text.length + 1, &end, 1);
    if (*root == NULL) {
        if (errno == ENOMEM) {
            return -ENOMEM;
        }
        size_t offset = json_error_offset(text, (size_t)(end - text.at));
        return json_refuse(error, text, offset, "a comma, colon, bracket or value is misplaced");
    }
    if (!cJSON_IsObject(*root)) {
        cJSON_Delete(*root);
        *root = NULL;
        return json_refuse(error, text, 0, "the document is not an object in { }");
    }
    return 0;
}

int json_flatten(struct slice document, json_visit *visit, void *context, struct json_error *error)
{
    struct slice mark = SLICE("\xef\xbb\xbf");
    if (slice_starts_with(document, mark)) {
        document.at += mark.length;
        document.length -= mark.length;
    }
    size_t offset = 0;
    if (document.length > JSON_DOCUMENT_MAX) {
        return json_refuse(error, document, 0, "the document is larger than 1 MB");
    }
    const char *wrong = json_scan_check(document, &offset);
    if (wrong != NULL) {
        return json_refuse(error, document, offset, wrong);
    }

    char *text = malloc(document.length + 1);
    if (text == NULL) {
        return -ENOMEM;
    }
    memcpy(text, document.at, document.length);
    text[document.length] = '\0';
    struct json_walk walk = {
        .text = {.at = text, .length = document.length},
        .counted = {.line = 1, .column = 1},
        .visit = visit,
        .context = context,
        .error = error,
    };
    cJSON *root;
    int result = json_parse(walk.text, error, &root);
    if (result == 0) {
        result = json_walk_children(&walk, root, 0);
        cJSON_Delete(root);
    }
    free(text);
    return result;
}

const char *json_version(void)
{
    return cJSON_Version();
}
