/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json.h - text made safe to stand between the quotes of a JSON string.
 *
 * Used by the log's JSON lines and by error bodies. Writing only: reading JSON
 * is app/json's part. Pure.
 */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <stddef.h>

#include "base/slice.h"

/* No byte of the source becomes more than this many bytes of escaped text. */
#define JSON_ESCAPE_GROWTH 6

/*
 * json_escape - write the escaped form of s, without quotes around it.
 *
 * Quote and backslash get a backslash; control characters, DEL included, become
 * \b \f \n \r \t or \u00XX; each maximal part of a sequence that is not UTF-8
 * becomes U+FFFD. All else is copied, so the result is valid UTF-8.
 *
 * @dst, @capacity  destination; may be NULL and 0 to ask for the size. Never
 *                  ends within an escape or a character; no NUL is added
 *
 * Returns  the bytes that the whole escaped form needs: what does not fit was
 *          left out when this is more than capacity
 * Source   RFC 8259 section 7; Unicode 15, section 3.9, table 3-7
 */
size_t json_escape(char *dst, size_t capacity, struct slice s);

#endif
