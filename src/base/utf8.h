/* SPDX-License-Identifier: Apache-2.0 */
/*
 * utf8.h - where one character of UTF-8 ends, and whether it is one. Pure.
 */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"

/*
 * utf8_next - length of the character that s begins with.
 *
 * @s      not empty
 * @valid  false when s begins with no well-formed character; the length is then
 *         that of the maximal part to replace by one U+FFFD, at least 1
 *
 * Returns  1 to 4, never more than s has
 * Source   Unicode 15, section 3.9, tables 3-7 and 3-8 (no surrogates, no
 *          overlong forms, nothing above U+10FFFF)
 */
size_t utf8_next(struct slice s, bool *valid);

#endif
