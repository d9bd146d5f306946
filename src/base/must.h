/* SPDX-License-Identifier: Apache-2.0 */
/*
 * must.h - assertions that stay on in release.
 *
 * For what only a bug of ours can break. What comes from the network is never
 * asserted: it is parsed and refused.
 */
#ifndef BASE_MUST_H
#define BASE_MUST_H

#include <stddef.h>

#include "base/attr.h"

#define must(condition)                                                                            \
    do {                                                                                           \
        if (unlikely(!(condition))) {                                                              \
            must_fail(#condition, __FILE__, __LINE__);                                             \
        }                                                                                          \
    } while (0)

/*
 * must_describe - writes what runs on this thread ("Fiber[#61,…]") as a string
 * into dst. The fiber layer sets it, since base knows no fibers.
 */
extern void (*must_describe)(char *dst, size_t capacity);

/* must_fail - print what runs, the condition, file and line to stderr, and abort. */
_Noreturn void must_fail(const char *condition, const char *file, int line);

#endif
