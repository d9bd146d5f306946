/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property: the numbers are those of the 48-bit generator, each drawn, and a sum in
 * slices is the sum in one go. Method: the generator's formula beside it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "app/computational.h"

static double formula(uint64_t *x, unsigned count)
{
    double sum = 0;
    for (unsigned i = 0; i < count; i++) {
        *x = (*x * UINT64_C(0x5DEECE66D) + 11) & ((UINT64_C(1) << 48) - 1);
        sum += (double)*x / (double)(UINT64_C(1) << 48);
    }
    return sum;
}

static void the_sum_is_that_of_the_formula(void **state)
{
    (void)state;
    static const unsigned counts[] = {0, 1, 2, 1000, 25000};
    for (uint64_t seed = 0; seed < UINT64_C(1) << 48; seed = seed * 5 + 0x1234567) {
        for (unsigned i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
            uint64_t x = seed;
            unsigned short drawn[3] = {(unsigned short)seed, (unsigned short)(seed >> 16),
                                       (unsigned short)(seed >> 32)};
            double expected = formula(&x, counts[i]);
            assert_true(computational_sum(drawn, counts[i]) == expected);
            assert_int_equal(drawn[0], x & 0xffff);
            assert_int_equal(drawn[1], x >> 16 & 0xffff);
            assert_int_equal(drawn[2], x >> 32);
        }
    }
}

static void the_numbers_are_spread_over_zero_to_one(void **state)
{
    (void)state;
    unsigned short drawn[3] = {1, 2, 3};
    double sum = computational_sum(drawn, 25000);
    assert_true(sum > 12000 && sum < 13000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_sum_is_that_of_the_formula),
        cmocka_unit_test(the_numbers_are_spread_over_zero_to_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
