/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slice.c - see slice.h. Pure; nothing here depends on the locale.
 */
#include "base/slice.h"

#include <errno.h>

static unsigned char slice_lower(char c)
{
    return (unsigned char)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
}

static bool slice_is_blank(char c)
{
    return c == ' ' || c == '\t';
}

bool slice_equal_nocase(struct slice a, struct slice b)
{
    if (a.length != b.length) {
        return false;
    }
    for (size_t i = 0; i < a.length; i++) {
        if (slice_lower(a.at[i]) != slice_lower(b.at[i])) {
            return false;
        }
    }
    return true;
}

bool slice_starts_with(struct slice s, struct slice prefix)
{
    if (s.length < prefix.length) {
        return false;
    }
    return prefix.length == 0 || memcmp(s.at, prefix.at, prefix.length) == 0;
}

struct slice slice_trim(struct slice s)
{
    while (s.length > 0 && slice_is_blank(s.at[0])) {
        s.at++;
        s.length--;
    }
    while (s.length > 0 && slice_is_blank(s.at[s.length - 1])) {
        s.length--;
    }
    return s;
}

/* Bytes up to the next comma that stands outside a quoted string, or all. */
static size_t slice_element_length(struct slice s)
{
    bool quoted = false;
    for (size_t i = 0; i < s.length; i++) {
        if (quoted && s.at[i] == '\\') {
            i++; /* quoted-pair: the next byte is plain text */
        } else if (s.at[i] == '"') {
            quoted = !quoted;
        } else if (s.at[i] == ',' && !quoted) {
            return i;
        }
    }
    return s.length;
}

bool slice_next_token(struct slice *rest, struct slice *token)
{
    while (rest->length > 0) {
        size_t length = slice_element_length(*rest);
        *token = slice_trim((struct slice){.at = rest->at, .length = length});
        size_t used = length < rest->length ? length + 1 : length;
        rest->at += used;
        rest->length -= used;
        if (token->length > 0) {
            return true;
        }
    }
    return false;
}

int slice_to_u64(struct slice s, uint64_t *value)
{
    if (s.length == 0) {
        return -EINVAL;
    }
    uint64_t sum = 0;
    bool too_large = false;
    for (size_t i = 0; i < s.length; i++) {
        if (s.at[i] < '0' || s.at[i] > '9') {
            return -EINVAL;
        }
        too_large = too_large || __builtin_mul_overflow(sum, (uint64_t)10, &sum) ||
                    __builtin_add_overflow(sum, (uint64_t)(s.at[i] - '0'), &sum);
    }
    if (too_large) {
        return -ERANGE;
    }
    *value = sum;
    return 0;
}
