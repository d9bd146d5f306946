/* SPDX-License-Identifier: Apache-2.0 */
/*
 * siphash.h - a keyed hash of short strings. Who does not know the key cannot choose
 * strings that meet in one chain of a table. Pure.
 */
#ifndef BASE_SIPHASH_H
#define BASE_SIPHASH_H

#include <stdint.h>

#include "base/slice.h"

struct siphash_key {
    uint64_t words[2]; /* random, secret */
};

/* siphash - SipHash-1-3 of the bytes. Source: Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012 */
uint64_t siphash(const struct siphash_key *key, struct slice bytes);

#endif
