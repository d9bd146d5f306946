/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json.h - a JSON document becomes dotted keys and their values.
 *
 *   {"server": {"port": 8080}, "list": ["a"]}
 *        ->  server.port = 8080 (line 1, column 21)
 *            list[0] = a (line 1, column 36)
 *
 * For configuration, for what clients put and what the remote answers, on any thread
 * and on fibers. The document is never trusted: its length is given, its depth is
 * bounded before it is parsed. Pure.
 */
#ifndef APP_JSON_H
#define APP_JSON_H

#include <stddef.h>

#include "base/attr.h"
#include "base/slice.h"

#define JSON_DEPTH_MAX 32         /* nested objects and arrays */
#define JSON_KEY_MAX 256          /* bytes of a dotted key */
#define JSON_DOCUMENT_MAX 1048576 /* bytes */

enum json_kind {
    JSON_STRING,
    JSON_NUMBER,
    JSON_BOOLEAN,
    JSON_NULL,
    JSON_EMPTY /* {} or [] */
};

/* Counted from 1; a column is a character, not a byte. */
struct json_position {
    size_t line;
    size_t column;
};

/* One value that holds no others. Everything is borrowed until the visit returns. */
struct json_leaf {
    const char *key;
    unsigned depth;     /* 1: a member of the document itself, and key is its name */
    struct slice value; /* a string unescaped, all else as it is written: 8080, true, null, {} */
    enum json_kind kind;
    struct json_position position;
};

struct json_error {
    struct json_position position;
    const char *text; /* static, for people */
};

/* json_visit - told of one leaf; anything but 0 ends the walk. */
typedef int json_visit(void *context, const struct json_leaf *leaf);

/*
 * json_flatten - visit every leaf of the document in its order.
 *
 * @document  UTF-8, with or without byte order mark; must be an object
 * @visit     may be told of one key more than once: the last counts
 * @error     filled only with -EINVAL
 *
 * Returns  0; what the visit returned to end the walk; -EINVAL not such a
 *          document; -ENOMEM
 * Source   RFC 8259; cJSON 1.7, which alone would take control characters for
 *          white space, lenient numbers and \u0000
 */
int json_flatten(struct slice document, json_visit *visit, void *context,
                 struct json_error *error) WARN_UNUSED;

/* json_version - "1.7.18": of the cJSON that is linked. Static text. */
const char *json_version(void);

#endif
