/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quantity.h - numbers as people write them on a command line. Pure.
 */
#ifndef BENCH_QUANTITY_H
#define BENCH_QUANTITY_H

#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"

/* Room for what quantity_format_duration writes. */
#define QUANTITY_TEXT_SIZE 32

/*
 * quantity_count - "1000", "20k", "1.5m": k is a thousand, m a million.
 * quantity_duration - "250ms", "10s", "2m", "1h", "0.5"; seconds where no unit
 * stands, at most a week. Nanoseconds.
 *
 * Returns  0; -EINVAL no such number, a sign, or a count that is not whole; -ERANGE
 */
int quantity_count(const char *text, uint64_t *value) WARN_UNUSED;
int quantity_duration(const char *text, uint64_t *ns) WARN_UNUSED;

/* quantity_decimal - digits, with a fraction or without; *rest is what follows. */
int quantity_decimal(const char *text, double *value, const char **rest) WARN_UNUSED;

/* quantity_format_duration - "2.000 s", "12.345 ms" or "8.1 us". */
const char *quantity_format_duration(char dst[QUANTITY_TEXT_SIZE], double ns);

#endif
