/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attr.h - the few compiler attributes that headers use.
 */
#ifndef BASE_ATTR_H
#define BASE_ATTR_H

#include <stddef.h>

/* The caller must look at the result. */
#define WARN_UNUSED __attribute__((warn_unused_result))

/* Argument number fmt is a printf format, its values start at argument first. */
#define PRINTF_LIKE(fmt, first) __attribute__((format(printf, fmt, first)))

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* The struct of the given type whose member is pointed at. */
#define container_of(pointer, type, member)                                                        \
    ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

#endif
