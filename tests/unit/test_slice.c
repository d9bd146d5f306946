/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property: slices are compared, trimmed, split and read as numbers by their
 * bytes alone, never past their end. Method: tables of cases; every input lies in
 * a heap block of exactly its size, so AddressSanitizer sees a read beyond it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>

#include "base/slice.h"

/* A copy in a heap block of exactly its size; the test frees it. */
static struct slice exact(const char *text)
{
    size_t length = strlen(text);
    char *at = malloc(length > 0 ? length : 1);
    assert_non_null(at);
    memcpy(at, text, length);
    return (struct slice){.at = at, .length = length};
}

static void release(struct slice s)
{
    free((void *)(uintptr_t)s.at);
}

static void assert_slice(struct slice got, const char *wanted)
{
    char text[128];
    assert_in_range(got.length, 0, sizeof(text) - 1);
    if (got.length > 0) {
        memcpy(text, got.at, got.length);
    }
    text[got.length] = '\0';
    assert_string_equal(text, wanted);
}

static void compares_bytes_and_letters(void **state)
{
    (void)state;
    assert_true(slice_equal(SLICE("abc"), SLICE("abc")));
    assert_false(slice_equal(SLICE("abc"), SLICE("abC")));
    assert_false(slice_equal(SLICE("abc"), SLICE("ab")));
    assert_true(slice_equal((struct slice){0}, SLICE("")));
    assert_true(slice_equal_nocase(SLICE("Content-Length"), SLICE("cONTENT-lENGTH")));
    assert_true(slice_equal_nocase((struct slice){0}, SLICE("")));
    assert_false(slice_equal_nocase(SLICE("a"), SLICE("ab")));
    /* '@' and '`' differ by the same bit as letters of two cases do, and so do bytes above 127. */
    assert_false(slice_equal_nocase(SLICE("@"), SLICE("`")));
    assert_false(slice_equal_nocase(SLICE("["), SLICE("{")));
    assert_false(slice_equal_nocase(SLICE("\xc1"), SLICE("\xe1")));
    assert_true(slice_starts_with(SLICE("abc"), SLICE("ab")));
    assert_true(slice_starts_with(SLICE("abc"), SLICE("")));
    assert_true(slice_starts_with((struct slice){0}, SLICE("")));
    assert_false(slice_starts_with(SLICE("ab"), SLICE("abc")));
    assert_false(slice_starts_with(SLICE("Ab"), SLICE("ab")));
}

static void trims_spaces_and_tabs_only(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"", ""}, {" ", ""}, {" \t ", ""}, {"a", "a"}, {"\t a b \t", "a b"}, {" \ra\n", "\ra\n"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct slice given = exact(cases[i][0]);
        assert_slice(slice_trim(given), cases[i][1]);
        release(given);
    }
}

static void cuts_lists_at_commas_outside_quotes(void **state)
{
    (void)state;
    static const struct {
        const char *list;
        const char *tokens; /* each in < > */
    } cases[] = {
        {"", ""},
        {" , ,\t,", ""},
        {"close", "<close>"},
        {"keep-alive, Upgrade ,close", "<keep-alive><Upgrade><close>"},
        {",a,,b,", "<a><b>"},
        {"gzip;x=\"a,b\", chunked", "<gzip;x=\"a,b\"><chunked>"},
        {"x=\"a\\\",b\",c", "<x=\"a\\\",b\"><c>"},
        {"\"open,a", "<\"open,a>"},
        {"\"a\\", "<\"a\\>"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct slice given = exact(cases[i].list);
        struct slice rest = given;
        struct slice token;
        char got[128] = "";
        while (slice_next_token(&rest, &token)) {
            strcat(got, "<");
            strncat(got, token.at, token.length);
            strcat(got, ">");
        }
        assert_string_equal(got, cases[i].tokens);
        assert_int_equal(rest.length, 0);
        release(given);
    }
}

static void reads_digits_and_nothing_else(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int result;
        uint64_t value;
    } cases[] = {
        {"0", 0, 0},
        {"8080", 0, 8080},
        {"000000000000000000000000000007", 0, 7},
        {"18446744073709551615", 0, UINT64_MAX},
        {"18446744073709551616", -ERANGE, 0},
        {"99999999999999999999999999", -ERANGE, 0},
        {"", -EINVAL, 0},
        {"-1", -EINVAL, 0},
        {"+1", -EINVAL, 0},
        {" 1", -EINVAL, 0},
        {"1 ", -EINVAL, 0},
        {"0x10", -EINVAL, 0},
        {"99999999999999999999x", -EINVAL, 0},
        {"\xd9\xa1", -EINVAL, 0}, /* an Arabic-Indic digit */
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct slice given = exact(cases[i].text);
        uint64_t value = 0;
        assert_int_equal(slice_to_u64(given, &value), cases[i].result);
        assert_int_equal(value, cases[i].value);
        release(given);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compares_bytes_and_letters),
        cmocka_unit_test(trims_spaces_and_tabs_only),
        cmocka_unit_test(cuts_lists_at_commas_outside_quotes),
        cmocka_unit_test(reads_digits_and_nothing_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
