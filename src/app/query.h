/* SPDX-License-Identifier: Apache-2.0 */
/*
 * query.h - the parameters behind a target's '?'. Pure.
 */
#ifndef APP_QUERY_H
#define APP_QUERY_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/attr.h"
#include "base/slice.h"

/*
 * query_find - the value of the first parameter of that name, as it was sent.
 *
 * "a=1&b" has a with "1" and b with "". Percent codes are not decoded: what is
 * looked for so is made of letters, digits and '.'.
 *
 * Returns  false when there is no such parameter
 */
bool query_find(struct slice query, struct slice name, struct slice *value);

/*
 * query_only - the one parameter of the query, its name and value with percent codes
 * decoded and '+' as a space, into the arena where there are any.
 *
 * Returns  0; -EINVAL none, more than one, or a bad code; -ENOMEM
 */
int query_only(struct slice query, struct arena *arena, struct slice *name,
               struct slice *value) WARN_UNUSED;

#endif
