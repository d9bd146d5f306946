/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text.h - a text that grows by formatted pieces in memory of the caller's.
 *
 * Like snprintf(3): what does not fit is left out and counted all the same, so
 * that the caller can tell, or ask for the size first with no memory at all.
 */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stddef.h>

#include "base/attr.h"
#include "base/slice.h"

struct text {
    char *dst;       /* caller's; NULL when capacity is 0 */
    size_t capacity; /* bytes, the NUL included */
    size_t length;   /* of the whole text, NUL not counted, what did not fit included */
};

/* text_put - append; the text stays NUL-terminated where it has any memory. */
void text_put(struct text *text, const char *format, ...) PRINTF_LIKE(2, 3);

/* text_put_json - append a JSON string with its quotes; when it does not fit, none of it is written. */
void text_put_json(struct text *text, struct slice s);

#endif
