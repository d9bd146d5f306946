/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_directory.c - property: entries and index are what a naive model says after any order of
 * writes; what does not fit changes nothing; memory is counted to the byte and comes back.
 * While threads write the same keys and values, no search finds an entry by a value that
 * it has lost, twice, or not at all. Method: random writes from a seed, on platform threads.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/directory.h"
#include "fiber_kit.h"

#define KEYS 40u
#define NAMES 3u
#define VALUES 4u
#define ROUNDS 20000

static struct directory directory;
static uint64_t seed;

static int put(struct slice key, struct slice json, const struct directory_attribute *attributes,
               size_t count)
{
    struct directory_write write = {key, json, attributes, count};
    return directory_put(&directory, &write);
}

/* What the model knows of a key: the number of each attribute's value, or -1. */
struct model {
    bool there;
    int values[NAMES];
};

static void open_directory(uint64_t entries_max, uint64_t bytes_max)
{
    struct directory_setup setup = {
        .hash_key = {.words = {seed, ~seed}}, .entries_max = entries_max, .bytes_max = bytes_max};
    assert_int_equal(directory_init(&directory, &setup), 0);
}

static struct slice key_of(unsigned number, char dst[16])
{
    return (struct slice){.at = dst, .length = (size_t)snprintf(dst, 16, "key-%u", number)};
}

static const struct slice names[NAMES] = {SLICE("team"), SLICE("city"), SLICE("role")};
static const struct slice values[VALUES] = {SLICE("a"), SLICE("b"), SLICE("c"), SLICE("")};

/* draw - an entry with some of the attributes, and its JSON, which tells them. */
static size_t draw(uint64_t *random, struct model *model, struct directory_attribute *attributes,
                   char json[64])
{
    size_t count = 0;
    model->there = true;
    for (unsigned i = 0; i < NAMES; i++) {
        model->values[i] = (int)(kit_random(random) % (VALUES + 1)) - 1;
        if (model->values[i] >= 0) {
            attributes[count++] = (struct directory_attribute){names[i], values[model->values[i]]};
        }
    }
    snprintf(json, 64, "%d %d %d", model->values[0], model->values[1], model->values[2]);
    return count;
}

static void check_against(const struct model *models)
{
    char bytes[16];
    struct arena arena;
    size_t live = 0;
    arena_init(&arena, NULL, 0, 1 << 20);
    for (unsigned k = 0; k < KEYS; k++) {
        struct slice json;
        int result = directory_get(&directory, key_of(k, bytes), &arena, &json);
        assert_int_equal(result, models[k].there ? 0 : -ENOENT);
        if (result == 0) {
            char expected[64];
            snprintf(expected, sizeof(expected), "%d %d %d", models[k].values[0],
                     models[k].values[1], models[k].values[2]);
            assert_true(slice_equal(json, slice_of(expected)));
            live++;
        }
    }
    assert_int_equal(directory.entries, live);
    for (unsigned n = 0; n < NAMES; n++) {
        for (unsigned v = 0; v < VALUES; v++) {
            struct directory_attribute attribute = {names[n], values[v]};
            struct directory_found found;
            size_t expected = 0;
            assert_int_equal(directory_find(&directory, &attribute, &arena, &found), 0);
            for (unsigned k = 0; k < KEYS; k++) {
                bool has = models[k].there && models[k].values[n] == (int)v;
                size_t times = 0;
                for (size_t i = 0; i < found.count; i++) {
                    times += slice_equal(found.keys[i], key_of(k, bytes));
                }
                assert_int_equal(times, has);
                expected += has;
            }
            assert_int_equal(found.total, expected);
        }
    }
    arena_reset(&arena);
}

static void test_random_writes_are_what_a_naive_model_says(void **state)
{
    (void)state;
    static struct model models[KEYS];
    uint64_t random = seed;
    open_directory(1000, 1 << 20);
    memset(models, 0, sizeof(models));
    for (unsigned round = 0; round < ROUNDS; round++) {
        char bytes[16], json[64];
        unsigned k = (unsigned)(kit_random(&random) % KEYS);
        struct slice key = key_of(k, bytes);
        if (kit_random(&random) % 3 == 0) {
            assert_int_equal(directory_delete(&directory, key), models[k].there ? 0 : -ENOENT);
            models[k].there = false;
        } else {
            struct directory_attribute attributes[NAMES];
            bool was = models[k].there;
            size_t count = draw(&random, &models[k], attributes, json);
            assert_int_equal(put(key, slice_of(json), attributes, count), was ? 0 : 1);
        }
        if (round % 500 == 0) {
            check_against(models);
        }
    }
    check_against(models);
    for (unsigned k = 0; k < KEYS; k++) {
        char bytes[16];
        (void)!directory_delete(&directory, key_of(k, bytes));
    }
    assert_int_equal(directory.entries, 0);
    assert_int_equal(directory.bytes, 0);
    directory_fini(&directory);
}

static void test_beyond_its_bounds_nothing_changes(void **state)
{
    (void)state;
    struct directory_attribute blue = {names[0], SLICE("blue")}, red = {names[0], SLICE("red")};
    struct directory_found found;
    struct arena arena;
    arena_init(&arena, NULL, 0, 1 << 20);
    open_directory(2, 2000);
    assert_int_equal(put(SLICE("1"), SLICE("{}"), &blue, 1), 1);
    assert_int_equal(put(SLICE("2"), SLICE("{}"), &blue, 1), 1);
    uint64_t bytes = directory.bytes;
    assert_int_equal(put(SLICE("3"), SLICE("{}"), &red, 1), -ENOSPC);
    assert_int_equal(directory.bytes, bytes);
    /* in the place of another one there is room */
    assert_int_equal(put(SLICE("1"), SLICE("{}"), &red, 1), 0);
    char large[1990];
    memset(large, 'x', sizeof(large));
    bytes = directory.bytes;
    assert_int_equal(
        put(SLICE("1"), (struct slice){.at = large, .length = sizeof(large)}, &blue, 1), -ENOSPC);
    assert_int_equal(directory.bytes, bytes);
    assert_int_equal(directory_find(&directory, &red, &arena, &found), 0);
    assert_int_equal(found.total, 1);
    assert_int_equal(directory_find(&directory, &blue, &arena, &found), 0);
    assert_int_equal(found.total, 1);
    arena_reset(&arena);
    directory_fini(&directory);
}

static void test_a_search_tells_at_most_a_thousand_keys_and_how_many_there_are(void **state)
{
    (void)state;
    struct directory_attribute blue = {names[0], SLICE("blue")};
    struct directory_found found;
    struct arena arena;
    char bytes[16];
    arena_init(&arena, NULL, 0, 1 << 20);
    open_directory(5000, 4 << 20);
    for (unsigned k = 0; k < 1500; k++) {
        assert_int_equal(put(key_of(k, bytes), SLICE("{}"), &blue, 1), 1);
    }
    assert_int_equal(directory_find(&directory, &blue, &arena, &found), 0);
    assert_int_equal(found.total, 1500);
    assert_int_equal(found.count, DIRECTORY_FOUND_MAX);
    assert_true(slice_equal(found.keys[0], SLICE("key-0"))); /* the oldest */
    arena_reset(&arena);
    directory_fini(&directory);
}

/* ------------------------------------------------------------ many at the same time */

static atomic_bool writers_are_done;

/* Each entry has exactly one team of four; all writers meet at those four. */
static void *run_writer(void *argument)
{
    uint64_t random = seed + (uintptr_t)argument;
    char bytes[16];
    for (unsigned round = 0; round < 3000; round++) {
        struct directory_attribute team = {names[0], values[kit_random(&random) % VALUES]};
        unsigned k = (unsigned)(kit_random(&random) % KEYS);
        (void)!put(key_of(k, bytes), SLICE("{}"), &team, 1);
    }
    return NULL;
}

/* find_team - how many entries are of it; none is found twice. */
static size_t find_team(unsigned v)
{
    struct directory_attribute team = {names[0], values[v]};
    struct directory_found found;
    struct arena arena;
    arena_init(&arena, NULL, 0, 1 << 20);
    assert_int_equal(directory_find(&directory, &team, &arena, &found), 0);
    for (size_t i = 0; i < found.count; i++) {
        for (size_t j = 0; j < i; j++) {
            assert_false(slice_equal(found.keys[i], found.keys[j]));
        }
    }
    arena_reset(&arena);
    return found.total;
}

static void *run_reader(void *unused)
{
    (void)unused;
    while (!atomic_load(&writers_are_done)) {
        for (unsigned v = 0; v < VALUES; v++) {
            (void)find_team(v);
        }
    }
    return NULL;
}

static void test_writers_of_the_same_values_leave_each_entry_in_one_of_them(void **state)
{
    (void)state;
    pthread_t threads[8], reader;
    size_t total = 0;
    open_directory(1000, 1 << 20);
    writers_are_done = false;
    assert_int_equal(pthread_create(&reader, NULL, run_reader, NULL), 0);
    for (uintptr_t i = 0; i < 8; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, run_writer, (void *)(i + 1)), 0);
    }
    for (unsigned i = 0; i < 8; i++) {
        pthread_join(threads[i], NULL);
    }
    atomic_store(&writers_are_done, true);
    pthread_join(reader, NULL);
    for (unsigned v = 0; v < VALUES; v++) {
        total += find_team(v);
    }
    assert_int_equal(total, directory.entries);
    directory_fini(&directory);
}

int main(void)
{
    const char *given = getenv("SEED");
    seed = given != NULL ? strtoull(given, NULL, 0) : kit_clock_ns() % 1000000007 + 1;
    printf("SEED=%llu\n", (unsigned long long)seed);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_writes_are_what_a_naive_model_says),
        cmocka_unit_test(test_beyond_its_bounds_nothing_changes),
        cmocka_unit_test(test_a_search_tells_at_most_a_thousand_keys_and_how_many_there_are),
        cmocka_unit_test(test_writers_of_the_same_values_leave_each_entry_in_one_of_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
