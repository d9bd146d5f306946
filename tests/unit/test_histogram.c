/* SPDX-License-Identifier: Apache-2.0 */
/* links: bench/ringload/histogram */
/*
 * Property: percentiles, means and counts of the log-linear histogram are those of
 * the values themselves, to three significant digits. Method: random values of
 * several distributions, sorted exactly, against every percentile that is printed;
 * merging against recording all in one; each power of two and its neighbours.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#include "ringload/histogram.h"

#define VALUES 20000

static const uint32_t percentiles[] = {0,     1,     1000,  25000, 50000, 66000, 75000, 90000,
                                       95000, 98000, 99000, 99900, 99990, 99999, 100000};

static uint64_t state_of_random;

/* splitmix64 */
static uint64_t draw(void)
{
    uint64_t z = state_of_random += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static struct histogram *new_histogram(void)
{
    struct histogram *histogram = calloc(1, sizeof(*histogram));
    assert_non_null(histogram);
    return histogram;
}

/* Not below the exact value, and above it by less than one in a thousand. */
static void assert_near(uint64_t got, uint64_t exact)
{
    if (got < exact || got - exact > exact / 1000) {
        fail_msg("got %llu, exact %llu", (unsigned long long)got, (unsigned long long)exact);
    }
}

static void check(uint64_t (*value_of)(void), size_t count)
{
    struct histogram *histogram = new_histogram();
    uint64_t *sorted = calloc(count, sizeof(*sorted));
    double sum = 0, squares = 0;
    assert_non_null(sorted);
    for (size_t i = 0; i < count; i++) {
        sorted[i] = value_of();
        histogram_record(histogram, sorted[i]);
        sum += (double)sorted[i];
    }
    qsort(sorted, count, sizeof(*sorted), compare);
    for (size_t i = 0; i < sizeof(percentiles) / sizeof(percentiles[0]); i++) {
        size_t rank = (size_t)ceil((double)count * percentiles[i] / PERCENTILE_ALL - 1e-9);
        assert_near(histogram_percentile(histogram, percentiles[i]),
                    sorted[rank > 0 ? rank - 1 : 0]);
    }
    assert_int_equal(histogram->count, count);
    assert_int_equal(histogram->min, sorted[0]);
    assert_int_equal(histogram->max, sorted[count - 1]);
    assert_int_equal(histogram_percentile(histogram, PERCENTILE_ALL), sorted[count - 1]);

    double mean = sum / (double)count;
    for (size_t i = 0; i < count; i++) {
        squares += ((double)sorted[i] - mean) * ((double)sorted[i] - mean);
    }
    double deviation = sqrt(squares / (double)count);
    assert_true(fabs(histogram_mean(histogram) - mean) <= mean * 1e-9 + 1e-9);
    assert_true(fabs(histogram_deviation(histogram) - deviation) <= mean / 1000 + 0.5);

    for (size_t i = 0; i < count; i += count / 16 + 1) {
        /* All that are clearly below are counted, none that is clearly above. */
        size_t below = 0, not_above = 0;
        for (size_t k = 0; k < count; k++) {
            below += sorted[k] + sorted[k] / 1000 + 1 <= sorted[i];
            not_above += sorted[k] <= sorted[i];
        }
        uint64_t got = histogram_count_to(histogram, sorted[i]);
        assert_true(got >= below && got <= not_above);
    }
    free(sorted);
    free(histogram);
}

static uint64_t any_width(void)
{
    return draw() >> (17 + draw() % 46); /* below 2^47, of all magnitudes */
}

static uint64_t tiny(void)
{
    return draw() % 2048;
}

static uint64_t around_100_ms(void)
{
    return 100000000 + draw() % 5000000;
}

static uint64_t long_tail(void)
{
    return draw() % 1000 == 0 ? 1000000000 + draw() % 1000000000 : 20000 + draw() % 3000;
}

static uint64_t always_the_same(void)
{
    return 3000000000;
}

static void percentiles_are_those_of_an_exact_sort(void **state)
{
    (void)state;
    print_message("seed %llu\n", (unsigned long long)state_of_random);
    uint64_t (*const all[])(void) = {any_width, tiny, around_100_ms, long_tail, always_the_same};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        check(all[i], 1);
        check(all[i], 2);
        check(all[i], 99);
        check(all[i], VALUES);
    }
}

static void merged_lanes_are_as_one(void **state)
{
    (void)state;
    struct histogram *one = new_histogram(), *merged = new_histogram();
    struct histogram *lanes[3] = {new_histogram(), new_histogram(), new_histogram()};
    for (size_t i = 0; i < VALUES; i++) {
        uint64_t value = any_width() + 1;
        histogram_record(one, value);
        histogram_record(lanes[i % 2], value); /* the third stays empty */
    }
    for (size_t i = 0; i < 3; i++) {
        histogram_merge(merged, lanes[i]);
        free(lanes[i]);
    }
    assert_memory_equal(merged, one, sizeof(*one));
    free(one);
    free(merged);
}

static void values_around_each_doubling_keep_three_digits(void **state)
{
    (void)state;
    for (unsigned bit = 0; bit < HISTOGRAM_VALUE_BITS; bit++) {
        for (int step = -1; step <= 1; step++) {
            struct histogram *histogram = new_histogram();
            uint64_t value = (UINT64_C(1) << bit) + (uint64_t)step;
            histogram_record(histogram, value);
            histogram_record(histogram, value + value / 2 + 1); /* so that max does not help */
            assert_near(histogram_percentile(histogram, 50000), value);
            if (value < 2048) {
                assert_int_equal(histogram_percentile(histogram, 50000), value);
            }
            free(histogram);
        }
    }
}

static void a_value_over_the_range_counts_as_the_largest(void **state)
{
    (void)state;
    struct histogram *histogram = new_histogram();
    histogram_record(histogram, 5);
    histogram_record(histogram, UINT64_C(1) << HISTOGRAM_VALUE_BITS);
    histogram_record(histogram, UINT64_C(1) << 60);
    assert_int_equal(histogram->slots[HISTOGRAM_SLOTS - 1], 2);
    assert_int_equal(histogram_percentile(histogram, PERCENTILE_ALL), UINT64_C(1) << 60);
    assert_int_equal(histogram_percentile(histogram, 1000), 5);
    free(histogram);
}

static void an_empty_one_says_zero(void **state)
{
    (void)state;
    struct histogram *histogram = new_histogram();
    assert_int_equal(histogram_percentile(histogram, 99000), 0);
    assert_int_equal(histogram_count_to(histogram, 1), 0);
    assert_true(histogram_mean(histogram) == 0 && histogram_deviation(histogram) == 0);
    free(histogram);
}

int main(void)
{
    state_of_random = 20261130;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(percentiles_are_those_of_an_exact_sort),
        cmocka_unit_test(merged_lanes_are_as_one),
        cmocka_unit_test(values_around_each_doubling_keep_three_digits),
        cmocka_unit_test(a_value_over_the_range_counts_as_the_largest),
        cmocka_unit_test(an_empty_one_says_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
