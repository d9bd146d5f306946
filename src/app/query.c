/* SPDX-License-Identifier: Apache-2.0 */
/*
 * query.c - see query.h.
 */
#include "app/query.h"

/* cut - the part of s before the first c, and what follows it; all and nothing when there is no c. */
static struct slice cut(struct slice *s, char c)
{
    const char *at = s->length > 0 ? memchr(s->at, c, s->length) : NULL;
    struct slice before = *s;
    if (at == NULL) {
        *s = (struct slice){.at = "", .length = 0};
        return before;
    }
    before.length = (size_t)(at - s->at);
    *s = (struct slice){.at = at + 1, .length = s->length - before.length - 1};
    return before;
}

bool query_find(struct slice query, struct slice name, struct slice *value)
{
    while (query.length > 0) {
        struct slice parameter = cut(&query, '&');
        struct slice key = cut(&parameter, '=');
        if (slice_equal(key, name)) {
            *value = parameter;
            return true;
        }
    }
    return false;
}
