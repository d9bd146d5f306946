/* SPDX-License-Identifier: Apache-2.0 */
/*
 * utf8.c - see utf8.h. Called by json_escape and by the log, byte by byte of
 * what strangers sent, so it reads nothing beyond the slice.
 */
#include "base/utf8.h"

#include <stdint.h>

#include "base/must.h"

/* What may follow a lead byte: how many bytes, and the bounds of the first of them. */
struct utf8_lead {
    uint8_t from, to; /* lead bytes of this row */
    uint8_t trail_count;
    uint8_t second_min, second_max;
};

/* Table 3-7; the odd rows keep out overlongs, surrogates and what is above U+10FFFF. */
static const struct utf8_lead utf8_leads[] = {
    {0xc2, 0xdf, 1, 0x80, 0xbf}, {0xe0, 0xe0, 2, 0xa0, 0xbf}, {0xe1, 0xec, 2, 0x80, 0xbf},
    {0xed, 0xed, 2, 0x80, 0x9f}, {0xee, 0xef, 2, 0x80, 0xbf}, {0xf0, 0xf0, 3, 0x90, 0xbf},
    {0xf1, 0xf3, 3, 0x80, 0xbf}, {0xf4, 0xf4, 3, 0x80, 0x8f},
};

size_t utf8_next(struct slice s, bool *valid)
{
    must(s.length > 0);
    const unsigned char *at = (const unsigned char *)s.at;
    *valid = at[0] < 0x80;
    if (*valid) {
        return 1;
    }
    for (size_t row = 0; row < sizeof(utf8_leads) / sizeof(utf8_leads[0]); row++) {
        const struct utf8_lead *lead = &utf8_leads[row];
        if (at[0] < lead->from || at[0] > lead->to) {
            continue;
        }
        if (s.length < 2 || at[1] < lead->second_min || at[1] > lead->second_max) {
            return 1;
        }
        size_t length = 2;
        while (length <= lead->trail_count) {
            if (length == s.length || (at[length] & 0xc0) != 0x80) {
                return length;
            }
            length++;
        }
        *valid = true;
        return length;
    }
    return 1;
}
