/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property: an arena hands out aligned memory that does not overlap, never holds
 * more than its limit, and after a reset holds its first block only. Method:
 * allocations of pseudo-random sizes, each filled to its end with its own byte
 * and checked at the end; limits approached byte by byte. Leaks are for
 * AddressSanitizer and valgrind to find.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

#define PIECES 300

static void pieces_are_aligned_and_do_not_overlap(void **state)
{
    (void)state;
    static char first[1000];
    unsigned seed = 1;
    print_message("seed %u\n", seed);
    for (size_t offset = 0; offset < 17; offset++) { /* the first block need not be aligned */
        struct arena arena;
        arena_init(&arena, first + offset, sizeof(first) - offset, 1 << 20);
        static unsigned char *pieces[PIECES];
        static size_t sizes[PIECES];
        for (size_t i = 0; i < PIECES; i++) {
            sizes[i] = (size_t)rand_r(&seed) % (i % 50 == 0 ? 9000 : 200);
            pieces[i] = arena_alloc(&arena, sizes[i]);
            assert_non_null(pieces[i]);
            assert_int_equal((uintptr_t)pieces[i] % _Alignof(max_align_t), 0);
            memset(pieces[i], (int)(i & 0xff), sizes[i]);
        }
        for (size_t i = 0; i < PIECES; i++) {
            for (size_t j = 0; j < sizes[i]; j++) {
                assert_int_equal(pieces[i][j], i & 0xff);
            }
        }
        assert_true(arena.bytes_total <= arena.bytes_max);
        arena_reset(&arena);
        assert_int_equal(arena.bytes_total, sizeof(first) - offset);
        assert_null(arena.chunks);
    }
}

static void small_pieces_stay_in_the_first_block(void **state)
{
    (void)state;
    _Alignas(16) char first[256];
    struct arena arena;
    arena_init(&arena, first, sizeof(first), sizeof(first));
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < 16; i++) {
            assert_ptr_equal(arena_alloc(&arena, 16), first + 16 * i);
        }
        assert_null(arena_alloc(&arena, 1));
        arena_reset(&arena);
    }
    assert_ptr_equal(arena_alloc(&arena, 250), first);
    assert_null(arena_alloc(&arena, 7)); /* the end is aligned away */
    arena_reset(&arena);
}

static void the_limit_holds_to_the_byte(void **state)
{
    (void)state;
    for (size_t bytes_max = 0; bytes_max < 6000; bytes_max += 7) {
        struct arena arena;
        arena_init(&arena, NULL, 0, bytes_max);
        size_t given = 0;
        while (arena_alloc(&arena, 48) != NULL) {
            given += 48;
        }
        assert_in_range(arena.bytes_total, 0, bytes_max);
        assert_true(given <= bytes_max);
        /* Little more than a chunk's head is lost. */
        assert_true(given + 128 + given / 40 >= bytes_max);
        arena_reset(&arena);
    }
    struct arena arena;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    assert_null(arena_alloc(&arena, SIZE_MAX));
    assert_null(arena_alloc(&arena, SIZE_MAX - 8));
    assert_non_null(arena_alloc(&arena, 0));
    arena_reset(&arena);
}

static void copies_and_formats_with_a_terminator(void **state)
{
    (void)state;
    char first[64];
    struct arena arena;
    arena_init(&arena, first, sizeof(first), 8192);
    struct slice copy = arena_copy(&arena, SLICE("abc"));
    assert_int_equal(copy.length, 3);
    assert_string_equal(copy.at, "abc");
    assert_string_equal(arena_copy(&arena, (struct slice){0}).at, "");

    /* Every length around the room that is left in the block. */
    for (int length = 0; length < 100; length++) {
        arena_reset(&arena);
        struct slice text = arena_printf(&arena, "%0*d", length + 1, 7);
        assert_int_equal(text.length, length + 1);
        assert_int_equal(strlen(text.at), length + 1);
        struct slice after = arena_copy(&arena, SLICE("x"));
        assert_string_equal(after.at, "x");
        assert_int_equal(text.at[length], '7');
    }
    arena_reset(&arena);
    assert_null(arena_printf(&arena, "%9000d", 1).at);
    struct arena none;
    arena_init(&none, NULL, 0, 0);
    assert_null(arena_copy(&none, SLICE("a")).at);
    assert_null(arena_printf(&none, "a").at);
    arena_reset(&none);
    arena_reset(&arena);
}

static void joins_parts_with_a_terminator(void **state)
{
    (void)state;
    char first[64];
    struct arena arena;
    arena_init(&arena, first, sizeof(first), 8192);
    const struct slice parts[] = {SLICE("ab"), {.at = NULL}, SLICE("c"), SLICE("")};
    struct slice joined = arena_join(&arena, parts, 4);
    assert_int_equal(joined.length, 3);
    assert_string_equal(joined.at, "abc");
    assert_string_equal(arena_join(&arena, NULL, 0).at, "");
    const struct slice endless[] = {{.at = first, .length = SIZE_MAX - 1}, SLICE("ab")};
    assert_null(arena_join(&arena, endless, 2).at);
    struct arena none;
    arena_init(&none, NULL, 0, 0);
    assert_null(arena_join(&none, parts, 4).at);
    arena_reset(&none);
    arena_reset(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_aligned_and_do_not_overlap),
        cmocka_unit_test(small_pieces_stay_in_the_first_block),
        cmocka_unit_test(the_limit_holds_to_the_byte),
        cmocka_unit_test(copies_and_formats_with_a_terminator),
        cmocka_unit_test(joins_parts_with_a_terminator),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
