/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json.c - see json.h. Called for each JSON log line and each error body, with
 * text that may come from the network.
 */
#include "base/json.h"

#include <stdbool.h>

#include "base/utf8.h"

static const struct slice json_replacement = {.at = "\xef\xbf\xbd", .length = 3};

/* The escape of one ASCII byte, in out; 0 when it stands for itself. */
static size_t json_escape_ascii(unsigned char byte, char out[JSON_ESCAPE_GROWTH])
{
    static const char shorthands[] = "\bb\ff\nn\rr\tt\"\"\\\\";
    static const char digits[] = "0123456789abcdef";

    if (byte >= 0x20 && byte != '"' && byte != '\\' && byte != 0x7f) {
        return 0;
    }
    out[0] = '\\';
    for (size_t i = 0; i + 1 < sizeof(shorthands); i += 2) {
        if ((unsigned char)shorthands[i] == byte) {
            out[1] = shorthands[i + 1];
            return 2;
        }
    }
    out[1] = 'u';
    out[2] = '0';
    out[3] = '0';
    out[4] = digits[byte >> 4];
    out[5] = digits[byte & 15];
    return JSON_ESCAPE_GROWTH;
}

size_t json_escape(char *dst, size_t capacity, struct slice s)
{
    size_t needed = 0;
    bool full = false;
    for (size_t i = 0; i < s.length;) {
        bool valid;
        struct slice rest = {.at = s.at + i, .length = s.length - i};
        size_t source_length = utf8_next(rest, &valid);
        struct slice piece = {.at = rest.at, .length = source_length};
        char escape[JSON_ESCAPE_GROWTH];
        if (!valid) {
            piece = json_replacement;
        } else if (source_length == 1) {
            size_t escape_length = json_escape_ascii((unsigned char)rest.at[0], escape);
            if (escape_length > 0) {
                piece = (struct slice){.at = escape, .length = escape_length};
            }
        }
        /* Once a piece did not fit, no later and shorter one may follow. */
        full = full || piece.length > capacity - needed;
        if (!full) {
            memcpy(dst + needed, piece.at, piece.length);
        }
        needed += piece.length;
        i += source_length;
    }
    return needed;
}
