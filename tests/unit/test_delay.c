/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property: a delay is read exactly, to the nanosecond and rounded up beyond it;
 * whatever is no such number is refused; nothing over 24 h. Method: cases by hand,
 * then random numbers that were formatted by us.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "app/delay.h"
#include "base/time.h"
#include "fiber_kit.h"

static void test_delays(void **state)
{
    static const struct {
        const char *text;
        uint64_t ns;
    } cases[] = {
        {"0", 0},
        {"2", 2 * NS_PER_S},
        {"007", 7 * NS_PER_S},
        {"0.25", 250 * NS_PER_MS},
        {"250ms", 250 * NS_PER_MS},
        {"1.5ms", 1500 * NS_PER_US},
        {"2s", 2 * NS_PER_S},
        {"1m", 60 * NS_PER_S},
        {"1.5m", 90 * NS_PER_S},
        {"0.5h", 1800 * NS_PER_S},
        {"24h", 24 * 3600 * NS_PER_S},
        {"1440m", 24 * 3600 * NS_PER_S},
        {"86400", 24 * 3600 * NS_PER_S},
        {"86400.000", 24 * 3600 * NS_PER_S},
        {"0.000000001", 1},
        {"0.0000000001", 1}, /* finer than the clock: rounded up */
        {"0.9999999999", NS_PER_S},
        {"0.0000011ms", 2},
        /* a sleep was up to 36 ns short of minutes and hours with a long fraction */
        {"1.999999999999999999m", 120 * NS_PER_S},
        {"0.99999999999999h", 3600 * NS_PER_S},
        {"0.00000000001m", 1},
        {"000000000000000000000000000000000000000000000000001", NS_PER_S},
        {"0.00000000000000000000000000000000000000000000000000", 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint64_t ns = UINT64_MAX;
        int result = delay_parse(slice_of(cases[i].text), &ns);
        if (result != 0 || ns != cases[i].ns) {
            fail_msg("\"%s\": %d, %" PRIu64 " ns, expected %" PRIu64, cases[i].text, result, ns,
                     cases[i].ns);
        }
    }
}

static void test_refusals(void **state)
{
    static const struct {
        const char *text;
        int result;
    } cases[] = {
        {"", -EINVAL},
        {"-1", -EINVAL},
        {"+1", -EINVAL},
        {"abc", -EINVAL},
        {"1e999", -EINVAL},
        {"1e3", -EINVAL},
        {"1.", -EINVAL},
        {".5", -EINVAL},
        {".", -EINVAL},
        {"1..2", -EINVAL},
        {"1.2.3", -EINVAL},
        {"1 s", -EINVAL},
        {" 1", -EINVAL},
        {"1 ", -EINVAL},
        {"1S", -EINVAL},
        {"1MS", -EINVAL},
        {"1us", -EINVAL},
        {"1d", -EINVAL},
        {"ms", -EINVAL},
        {"0x10", -EINVAL},
        {"NaN", -EINVAL},
        {"inf", -EINVAL},
        {"1,5", -EINVAL},
        {"1_000", -EINVAL},
        {"\xd9\xa1", -EINVAL},
        {"24.0000000001h", -ERANGE},
        {"86400.0000000001", -ERANGE},
        {"86401", -ERANGE},
        {"25h", -ERANGE},
        {"1441m", -ERANGE},
        {"18446744073709551616", -ERANGE},
        {"99999999999999999999999999999999999999999999999999999999999h", -ERANGE},
        {"00000000000000000000000000000000000000000000000000000000000000001", -EINVAL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint64_t ns = 42;
        int result = delay_parse(slice_of(cases[i].text), &ns);
        if (result != cases[i].result) {
            fail_msg("\"%s\": %d, expected %d", cases[i].text, result, cases[i].result);
        }
    }
    uint64_t ns;
    assert_int_equal(delay_parse((struct slice){.at = "1\0", .length = 2}, &ns), -EINVAL);
}

static void test_what_was_formatted_reads_back(void **state)
{
    (void)state;
    uint64_t random = kit_seed("delay");
    for (int i = 0; i < 20000; i++) {
        uint64_t expected = kit_random(&random) % (24 * 3600 * NS_PER_S);
        uint64_t ns;
        char text[64];
        switch (i % 2) {
        case 0:
            snprintf(text, sizeof(text), "%" PRIu64 ".%09" PRIu64, expected / NS_PER_S,
                     expected % NS_PER_S);
            break;
        default:
            snprintf(text, sizeof(text), "%" PRIu64 ".%06" PRIu64 "ms", expected / NS_PER_MS,
                     expected % NS_PER_MS);
        }
        assert_int_equal(delay_parse(slice_of(text), &ns), 0);
        assert_int_equal(ns, expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_delays),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_what_was_formatted_reads_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
