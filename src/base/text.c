/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text.c - see text.h. Called for --help, the doctor's report and /currentThread. Pure.
 */
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/json.h"

static size_t text_left(const struct text *text)
{
    return text->length < text->capacity ? text->capacity - text->length : 0;
}

void text_put(struct text *text, const char *format, ...)
{
    size_t left = text_left(text);
    va_list values;
    va_start(values, format);
    int length = vsnprintf(left > 0 ? text->dst + text->length : NULL, left, format, values);
    va_end(values);
    text->length += length > 0 ? (size_t)length : 0;
}

void text_put_json(struct text *text, struct slice s)
{
    size_t needed = json_escape(NULL, 0, s);
    if (needed + 2 < text_left(text)) {
        char *at = text->dst + text->length;
        at[0] = '"';
        json_escape(at + 1, needed, s);
        at[needed + 1] = '"';
        at[needed + 2] = '\0';
    } else if (text_left(text) > 0) {
        /* Nothing may follow a piece that was left out. */
        text->dst[text->length] = '\0';
        text->capacity = text->length + 1;
    }
    text->length += needed + 2;
}
