/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property: whatever bytes come in, what comes out is valid UTF-8 and a valid
 * inside of a JSON string, of the length that was announced, and never more than
 * there is room for. Method: a table of cases at every capacity; every sequence
 * of up to three bytes from the borders of UTF-8's table against a decoder
 * written from the definition; blocks of exactly their size for ASan.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/utf8.h"

#define BAD "\xef\xbf\xbd"

static const struct {
    const char *bytes;
    size_t length;
    const char *escaped;
} cases[] = {
#define CASE(bytes, escaped)                                                                       \
    {                                                                                              \
        bytes, sizeof(bytes) - 1, escaped                                                          \
    }
    CASE("", ""),
    CASE("plain / text", "plain / text"),
    CASE("\"\\", "\\\"\\\\"),
    CASE("\b\f\n\r\t", "\\b\\f\\n\\r\\t"),
    CASE("\0\x01\x1f\x7f", "\\u0000\\u0001\\u001f\\u007f"),
    CASE("Gr\xc3\xbc\xc3\x9f\x65", "Gr\xc3\xbc\xc3\x9f\x65"),
    CASE("\xf0\x9f\x8c\x80", "\xf0\x9f\x8c\x80"),
    CASE("\x80", BAD),
    CASE("\xff\xfe", BAD BAD),
    CASE("\xc0\xaf", BAD BAD),                 /* overlong */
    CASE("\xe0\x80\xaf", BAD BAD BAD),         /* overlong */
    CASE("\xed\xa0\x80", BAD BAD BAD),         /* a surrogate */
    CASE("\xf4\x90\x80\x80", BAD BAD BAD BAD), /* above U+10FFFF */
    CASE("\xf0\x9f\x8c", BAD),                 /* cut short at the end */
    CASE("\xf0\x9f\x8c\"", BAD "\\\""), /* cut short by a quote, which must not be swallowed */
    CASE("\xe2\x82\x28", BAD "("),
    CASE("\xc3\xc3\xbc", BAD "\xc3\xbc"),
#undef CASE
};

static void cases_at_every_capacity(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        size_t needed = strlen(cases[i].escaped);
        struct slice source = {.at = cases[i].bytes, .length = cases[i].length};
        assert_int_equal(json_escape(NULL, 0, source), needed);
        for (size_t capacity = 1; capacity <= needed + 2; capacity++) {
            char *dst = malloc(capacity);
            assert_non_null(dst);
            memset(dst, '~', capacity);
            assert_int_equal(json_escape(dst, capacity, source), needed);
            /* A prefix of the whole, and then nothing. */
            size_t written = 0;
            while (written < capacity && written < needed && dst[written] != '~') {
                written++;
            }
            assert_memory_equal(dst, cases[i].escaped, written);
            for (size_t j = written; j < capacity; j++) {
                assert_int_equal(dst[j], '~');
            }
            if (capacity >= needed) {
                assert_int_equal(written, needed);
            }
            /* Never ends within a character. */
            bool valid = true;
            for (size_t at = 0; at < written && valid;) {
                at += utf8_next((struct slice){.at = dst + at, .length = written - at}, &valid);
            }
            assert_true(valid);
            free(dst);
        }
    }
}

/* Is this one well-formed character, by Unicode's definition D92 rather than by its table? */
static bool well_formed(const unsigned char *at, size_t length)
{
    static const unsigned min[5] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned lead_bits = length == 1 ? 0x7f : 0xffu >> (length + 1);
    unsigned lead_mark = length == 1 ? 0 : (0xff00u >> length) & 0xff;
    if ((at[0] & ~lead_bits & 0xff) != lead_mark) {
        return false;
    }
    unsigned point = at[0] & lead_bits;
    for (size_t i = 1; i < length; i++) {
        if ((at[i] & 0xc0) != 0x80) {
            return false;
        }
        point = point << 6 | (at[i] & 0x3f);
    }
    return point >= min[length] && point <= 0x10ffff && (point < 0xd800 || point > 0xdfff);
}

static void characters_are_told_from_nonsense(void **state)
{
    (void)state;
    static const unsigned char borders[] = {0x00, 0x22, 0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0,
                                            0xbf, 0xc0, 0xc1, 0xc2, 0xdf, 0xe0, 0xe1, 0xec, 0xed,
                                            0xee, 0xef, 0xf0, 0xf1, 0xf3, 0xf4, 0xf5, 0xf8, 0xff};
    size_t count = sizeof(borders);
    size_t checked = 0;
    for (size_t i = 0; i < count * count * count * count; i++) {
        unsigned char *bytes = malloc(4);
        bytes[0] = borders[i % count];
        bytes[1] = borders[i / count % count];
        bytes[2] = borders[i / count / count % count];
        bytes[3] = borders[i / count / count / count];
        bool valid;
        size_t length = utf8_next((struct slice){.at = (char *)bytes, .length = 4}, &valid);
        size_t wanted = 0;
        for (size_t try = 1; try <= 4; try++) {
            if (well_formed(bytes, try)) {
                wanted = try;
            }
        }
        assert_int_equal(valid, wanted > 0);
        if (wanted > 0) {
            assert_int_equal(length, wanted);
        } else {
            assert_in_range(length, 1, 3);
        }
        /* A part that was refused holds no byte that could begin a character. */
        for (size_t j = 1; j < length; j++) {
            assert_int_equal(bytes[j] & 0xc0, 0x80);
        }
        free(bytes);
        checked++;
    }
    print_message("%zu sequences\n", checked);
}

static void every_cut_of_a_character_is_one_replacement(void **state)
{
    (void)state;
    static const char *const characters[] = {"\xc3\xbc", "\xe2\x82\xac", "\xf0\x9f\x8c\x80"};
    for (size_t i = 0; i < 3; i++) {
        for (size_t length = 1; length < strlen(characters[i]); length++) {
            char *cut = malloc(length);
            memcpy(cut, characters[i], length);
            char out[32];
            size_t needed =
                json_escape(out, sizeof(out), (struct slice){.at = cut, .length = length});
            assert_int_equal(needed, 3);
            assert_memory_equal(out, BAD, 3);
            free(cut);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cases_at_every_capacity),
        cmocka_unit_test(characters_are_told_from_nonsense),
        cmocka_unit_test(every_cut_of_a_character_is_one_replacement),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
