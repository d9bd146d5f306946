/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slice.h - borrowed bytes: a pointer and a length, no terminator, no owner.
 */
#ifndef BASE_SLICE_H
#define BASE_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/attr.h"

struct slice {
    const char *at;
    size_t length; /* bytes */
};

/* A slice of a string literal. */
#define SLICE(literal) ((struct slice){.at = (literal), .length = sizeof(literal) - 1})

static inline struct slice slice_of(const char *string)
{
    return (struct slice){.at = string, .length = strlen(string)};
}

static inline bool slice_equal(struct slice a, struct slice b)
{
    return a.length == b.length && (a.length == 0 || memcmp(a.at, b.at, a.length) == 0);
}

/* slice_equal_nocase - equal but for the case of ASCII letters (field names, tokens). */
bool slice_equal_nocase(struct slice a, struct slice b);

/* slice_starts_with - does s begin with prefix, byte for byte? */
bool slice_starts_with(struct slice s, struct slice prefix);

/* slice_trim - without spaces and tabs at either end. */
struct slice slice_trim(struct slice s);

/*
 * slice_next_token - cut the next element of a comma separated list off rest.
 *
 * Returns  true and the trimmed element in *token (empty elements are skipped),
 *          false when nothing is left. A comma within "quotes" does not cut;
 *          quotes that are not closed reach to the end
 * Source   RFC 9110 sections 5.6.1 and 5.6.4
 */
bool slice_next_token(struct slice *rest, struct slice *token);

/*
 * slice_to_u64 - the value of a slice of decimal digits and nothing else.
 *
 * Returns  0; -EINVAL empty or not only digits; -ERANGE more than 64 bits
 */
int slice_to_u64(struct slice s, uint64_t *value) WARN_UNUSED;

#endif
