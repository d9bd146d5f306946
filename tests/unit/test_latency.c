/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property: a percentile is not below that of the values themselves, and above it by
 * at most one in 32; the maximum is exact; a reader beside the writer sees counts
 * that only grow. Method: random values over forty doublings, sorted exactly, against
 * every percentile; each power of two and its neighbours; a thread that records.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/latency.h"
#include "fiber_kit.h"

#define VALUES 20000
#define LARGEST ((UINT64_C(1) << LATENCY_VALUE_BITS) - 1)

static struct latency latency, copy;

static int empty(void **state)
{
    (void)state;
    memset(&latency, 0, sizeof(latency));
    memset(&copy, 0, sizeof(copy));
    return 0;
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void assert_near(uint64_t got, uint64_t exact)
{
    if (got < exact || got - exact > exact / 32) {
        fail_msg("got %llu, exact %llu", (unsigned long long)got, (unsigned long long)exact);
    }
}

static void test_percentiles_are_those_of_the_values(void **state)
{
    (void)state;
    static uint64_t sorted[VALUES];
    uint64_t random = kit_seed("latency");
    for (size_t i = 0; i < VALUES; i++) {
        sorted[i] = kit_random(&random) >> (64 - 1 - kit_random(&random) % LATENCY_VALUE_BITS);
        latency_record(&latency, sorted[i]);
    }
    qsort(sorted, VALUES, sizeof(*sorted), compare);
    assert_int_equal(latency_count(&latency), VALUES);
    assert_int_equal(latency.max, sorted[VALUES - 1]);
    assert_int_equal(latency_percentile(&latency, LATENCY_ALL), sorted[VALUES - 1]);
    for (uint32_t thousandths = 0; thousandths < LATENCY_ALL; thousandths += 5) {
        size_t rank = (VALUES * (size_t)thousandths + LATENCY_ALL - 1) / LATENCY_ALL;
        assert_near(latency_percentile(&latency, thousandths), sorted[rank > 0 ? rank - 1 : 0]);
    }
}

static void test_each_doubling_begins_where_the_last_one_ends(void **state)
{
    (void)state;
    unsigned last = 0;
    for (unsigned bit = 1; bit < LATENCY_VALUE_BITS; bit++) {
        uint64_t power = UINT64_C(1) << bit;
        assert_in_range(latency__slot(power) - latency__slot(power - 1), 1, 1);
        assert_true(latency__slot(power) > last);
        last = latency__slot(power);
        for (uint64_t value = power - 1; value <= power + 1; value++) {
            empty(NULL);
            latency_record(&latency, value);
            latency_record(&latency,
                           LARGEST); /* so that the maximum does not hide the slot's end */
            assert_near(latency_percentile(&latency, 50000), value);
        }
    }
    assert_int_equal(latency__slot(LARGEST), LATENCY_SLOTS - 1);
}

static void test_the_empty_and_the_absurd(void **state)
{
    (void)state;
    assert_int_equal(latency_count(&latency), 0);
    assert_int_equal(latency_percentile(&latency, 99999), 0);
    latency_record(&latency, 0);
    assert_int_equal(latency_percentile(&latency, 99999), 0);
    latency_record(&latency, UINT64_MAX);
    assert_int_equal(latency_percentile(&latency, LATENCY_ALL), UINT64_MAX);
    assert_int_equal(latency_percentile(&latency, 50000), 0);
    assert_int_equal(latency_count(&latency), 2);
}

static void test_what_is_added_is_as_if_recorded_in_one(void **state)
{
    (void)state;
    static struct latency both, other;
    for (uint64_t i = 1; i <= 1000; i++) {
        latency_record(&both, i * 977);
        latency_record(i % 3 == 0 ? &latency : &other, i * 977);
    }
    latency_add(&copy, &latency);
    latency_add(&copy, &other);
    assert_memory_equal(&copy, &both, sizeof(both));
}

static atomic_bool recorded;

static void *record_many(void *unused)
{
    (void)unused;
    for (uint64_t i = 0; i < 2000000; i++) {
        latency_record(&latency, i % 5000);
    }
    atomic_store(&recorded, true);
    return NULL;
}

static void test_a_reader_beside_the_writer(void **state)
{
    (void)state;
    pthread_t writer;
    uint64_t last = 0;
    bool done;
    atomic_store(&recorded, false);
    assert_int_equal(pthread_create(&writer, NULL, record_many, NULL), 0);
    do {
        done = atomic_load(&recorded);
        memset(&copy, 0, sizeof(copy));
        latency_add(&copy, &latency);
        assert_true(latency_count(&copy) >= last);
        last = latency_count(&copy);
        assert_true(latency_percentile(&copy, 99000) <= 5000);
    } while (!done);
    pthread_join(writer, NULL);
    assert_int_equal(last, 2000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_percentiles_are_those_of_the_values, empty),
        cmocka_unit_test_setup(test_each_doubling_begins_where_the_last_one_ends, empty),
        cmocka_unit_test_setup(test_the_empty_and_the_absurd, empty),
        cmocka_unit_test_setup(test_what_is_added_is_as_if_recorded_in_one, empty),
        cmocka_unit_test_setup(test_a_reader_beside_the_writer, empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
