/* SPDX-License-Identifier: Apache-2.0 */
/*
 * query.c - see query.h.
 */
#include "app/query.h"

#include <errno.h>
#include <string.h>

#include "base/percent.h"

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

/* decode - codes, and '+' as HTML forms write a space. Returns 0; -EINVAL; -ENOMEM. */
static int decode(struct arena *arena, struct slice *s)
{
    if (!percent_is_valid(*s)) {
        return -EINVAL;
    }
    if (s->length > 0 && memchr(s->at, '+', s->length) != NULL) {
        char *spaced = arena_alloc(arena, s->length);
        if (spaced == NULL) {
            return -ENOMEM;
        }
        for (size_t i = 0; i < s->length; i++) {
            spaced[i] = s->at[i] == '+' ? ' ' : s->at[i];
        }
        s->at = spaced;
    }
    return percent_decode(arena, s) ? 0 : -ENOMEM;
}

int query_only(struct slice query, struct arena *arena, struct slice *name, struct slice *value)
{
    struct slice parameter = cut(&query, '&');
    *name = cut(&parameter, '=');
    *value = parameter;
    if (query.length > 0 || name->length == 0) {
        return -EINVAL;
    }
    int result = decode(arena, name);
    return result < 0 ? result : decode(arena, value);
}
