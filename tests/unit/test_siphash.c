/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_siphash.c - property: the hash is SipHash-1-3, reads no byte beyond its input, and depends on
 * every byte, on the length and on the key. Method: the published value of the empty
 * input, single changes, an input that ends at a page without access.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>
#include <sys/mman.h>

#include "base/siphash.h"

static const struct siphash_key key = {
    .words = {UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908)}};

static uint64_t hash(const char *at, size_t length)
{
    return siphash(&key, (struct slice){.at = at, .length = length});
}

static void test_published_value(void **state)
{
    (void)state;
    assert_true(hash("", 0) == UINT64_C(0xabac0158050fc4dc));
}

static void test_each_byte_the_length_and_the_key_count(void **state)
{
    (void)state;
    char text[40] = {0};
    for (size_t length = 0; length < sizeof(text); length++) {
        uint64_t plain = hash(text, length);
        assert_true(plain != hash(text, length + 1) || length + 1 == sizeof(text));
        for (size_t at = 0; at < length; at++) {
            text[at] = 1;
            assert_true(hash(text, length) != plain);
            text[at] = 0;
        }
        struct siphash_key other = key;
        other.words[length % 2] ^= 1;
        assert_true(siphash(&other, (struct slice){.at = text, .length = length}) != plain);
    }
}

static void test_nothing_beyond_the_input_is_read(void **state)
{
    (void)state;
    char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(pages != MAP_FAILED);
    assert_int_equal(mprotect(pages + 4096, 4096, PROT_NONE), 0);
    for (size_t length = 0; length < 40; length++) {
        memset(pages + 4096 - length, 'x', length);
        assert_true(hash(pages + 4096 - length, length) != 0);
    }
    munmap(pages, 8192);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published_value),
        cmocka_unit_test(test_each_byte_the_length_and_the_key_count),
        cmocka_unit_test(test_nothing_beyond_the_input_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
