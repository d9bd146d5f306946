/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property: a text is a prefix of what was put, at every capacity, and its length is
 * that of the whole; a JSON string is there whole or not at all. Method: every
 * capacity from none to more than enough, between guard bytes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/text.h"

static size_t put_all(struct text *text)
{
    text_put(text, "a%d", 12);
    text_put(text, "%s", "");
    text_put_json(text, SLICE("q\"\n"));
    text_put(text, "z");
    return text->length;
}

static void every_capacity_gives_a_prefix_and_the_whole_length(void **state)
{
    (void)state;
    static const char whole[] = "a12\"q\\\"\\n\"z";
    const size_t needed = sizeof(whole) - 1;
    for (size_t capacity = 0; capacity < sizeof(whole) + 8; capacity++) {
        char memory[64];
        memset(memory, '#', sizeof(memory));
        struct text text = {.dst = capacity > 0 ? memory : NULL, .capacity = capacity};
        assert_int_equal(put_all(&text), needed);
        for (size_t i = capacity; i < sizeof(memory); i++) {
            assert_int_equal(memory[i], '#');
        }
        if (capacity == 0) {
            continue;
        }
        size_t length = strlen(memory);
        assert_memory_equal(memory, whole, length);
        assert_true(length <= 3 || length >= needed - 1); /* never half of a JSON string */
        assert_true(capacity <= needed || length == needed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_capacity_gives_a_prefix_and_the_whole_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
