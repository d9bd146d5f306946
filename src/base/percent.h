/* SPDX-License-Identifier: Apache-2.0 */
/*
 * percent.h - percent codes of a URL's path and query. Pure.
 */
#ifndef BASE_PERCENT_H
#define BASE_PERCENT_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/attr.h"
#include "base/slice.h"

/* percent_value - the byte that the code at the start of s stands for; -1 when it is malformed or NUL. */
int percent_value(struct slice s);

/* percent_is_valid - is each '%' the start of a code? Source: RFC 3986 section 2.1 */
bool percent_is_valid(struct slice s);

/* percent_decode - s, whose codes are valid, into the arena if it has any; false when that is used up. */
bool percent_decode(struct arena *arena, struct slice *s) WARN_UNUSED;

#endif
