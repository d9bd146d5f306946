/* SPDX-License-Identifier: Apache-2.0 */
/*
 * describe.h - text built without libc, for use in signal handlers. Inside fiber/ only.
 */
#ifndef FIBER_DESCRIBE_H
#define FIBER_DESCRIBE_H

#include <stddef.h>
#include <stdint.h>

struct fiber;

/* Text being built in the caller's buffer: cut when full, always with a NUL. */
struct text {
    char *dst;
    size_t size;   /* bytes of dst */
    size_t length; /* without the NUL */
};

/* text_init - empty, over the caller's buffer. */
void text_init(struct text *text, char *dst, size_t size);

/* text_string, text_number, text_fiber - append; a fiber as fiber_describe has it. */
void text_string(struct text *text, const char *string);
void text_number(struct text *text, uint64_t value);
void text_fiber(struct text *text, const struct fiber *fiber);

#endif
