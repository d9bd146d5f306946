/* SPDX-License-Identifier: Apache-2.0 */
/*
 * siphash.c - see siphash.h. One round a word and three at the end, for hash tables enough.
 */
#include "base/siphash.h"

#include <string.h>

static uint64_t rotate(uint64_t word, unsigned bits)
{
    return word << bits | word >> (64 - bits);
}

static void mix(uint64_t v[4])
{
    v[0] += v[1];
    v[2] += v[3];
    v[1] = rotate(v[1], 13) ^ v[0];
    v[3] = rotate(v[3], 16) ^ v[2];
    v[0] = rotate(v[0], 32);
    v[2] += v[1];
    v[0] += v[3];
    v[1] = rotate(v[1], 17) ^ v[2];
    v[3] = rotate(v[3], 21) ^ v[0];
    v[2] = rotate(v[2], 32);
}

/* little_endian - at most eight bytes as a number. */
static uint64_t little_endian(const char *at, size_t length)
{
    uint64_t word = 0;
    for (size_t i = 0; i < length; i++) {
        word |= (uint64_t)(unsigned char)at[i] << (8 * i);
    }
    return word;
}

uint64_t siphash(const struct siphash_key *key, struct slice bytes)
{
    uint64_t v[4] = {
        key->words[0] ^ UINT64_C(0x736f6d6570736575), key->words[1] ^ UINT64_C(0x646f72616e646f6d),
        key->words[0] ^ UINT64_C(0x6c7967656e657261), key->words[1] ^ UINT64_C(0x7465646279746573)};
    size_t whole = bytes.length / 8 * 8;
    for (size_t at = 0; at <= whole; at += 8) {
        uint64_t word = at < whole ? little_endian(bytes.at + at, 8)
                                   : little_endian(bytes.at + at, bytes.length - at) |
                                         (uint64_t)bytes.length << 56;
        v[3] ^= word;
        mix(v);
        v[0] ^= word;
    }
    v[2] ^= 0xff;
    mix(v);
    mix(v);
    mix(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}
