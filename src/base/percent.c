/* SPDX-License-Identifier: Apache-2.0 */
/*
 * percent.c - see percent.h.
 */
#include "base/percent.h"

#include <string.h>

static int hex_value(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int percent_value(struct slice s)
{
    if (s.length < 3) {
        return -1;
    }
    int high = hex_value(s.at[1]);
    int low = hex_value(s.at[2]);
    if (high < 0 || low < 0 || (high == 0 && low == 0)) {
        return -1;
    }
    return high * 16 + low;
}

bool percent_is_valid(struct slice s)
{
    const char *mark;
    while (s.length > 0 && (mark = memchr(s.at, '%', s.length)) != NULL) {
        s.length -= (size_t)(mark - s.at);
        s.at = mark;
        if (percent_value(s) < 0) {
            return false;
        }
        s.at += 3;
        s.length -= 3;
    }
    return true;
}

bool percent_decode(struct arena *arena, struct slice *s)
{
    if (s->length == 0 || memchr(s->at, '%', s->length) == NULL) {
        return true;
    }
    char *decoded = arena_alloc(arena, s->length);
    if (decoded == NULL) {
        return false;
    }
    size_t length = 0;
    for (size_t i = 0; i < s->length; i++) {
        char c = s->at[i];
        if (c == '%') {
            c = (char)percent_value((struct slice){.at = s->at + i, .length = s->length - i});
            i += 2;
        }
        decoded[length++] = c;
    }
    *s = (struct slice){.at = decoded, .length = length};
    return true;
}
