/* SPDX-License-Identifier: Apache-2.0 */
/*
 * must.c - see must.h. The last words of a process that found a bug in itself:
 * plain copying into a buffer and one write(2), since the heap and stdio may be
 * what is broken.
 */
#include "base/must.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"

#define MUST_LINE_MAX 512 /* bytes, line end included */

void (*must_describe)(char *dst, size_t capacity);

struct must_text {
    char bytes[MUST_LINE_MAX];
    size_t length;
};

static void must_put(struct must_text *text, const char *string)
{
    size_t length = strlen(string);
    size_t left = MUST_LINE_MAX - 1 - text->length; /* one byte stays for the line end */
    length = length < left ? length : left;
    memcpy(text->bytes + text->length, string, length);
    text->length += length;
}

static void must_put_number(struct must_text *text, unsigned number)
{
    char digits[12];
    size_t at = sizeof(digits) - 1;
    digits[at] = '\0';
    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    must_put(text, digits + at);
}

_Noreturn void must_fail(const char *condition, const char *file, int line)
{
    struct must_text text = {.length = 0};
    char runner[128] = "";
    if (must_describe != NULL) {
        must_describe(runner, sizeof(runner));
        runner[sizeof(runner) - 1] = '\0';
    }
    must_put(&text, "ringspun: must(");
    must_put(&text, condition);
    must_put(&text, ") failed at ");
    must_put(&text, file);
    must_put(&text, ":");
    must_put_number(&text, (unsigned)line);
    must_put(&text, " in ");
    must_put(&text, runner[0] != '\0' ? runner : log_thread());
    text.bytes[text.length++] = '\n';
    ssize_t written = write(STDERR_FILENO, text.bytes, text.length);
    (void)written; /* nobody is left to be told */
    abort();
}
