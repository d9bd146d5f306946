/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property: an instant is written as strftime(3) writes it in UTC. Method: every
 * day from 1970 to 2554, where 64 bits of nanoseconds end, at its first, last and
 * one pseudo-random second, in all four forms against gmtime_r and strftime.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/time.h"

#define DAY_COUNT 213503 /* whole days in UINT64_MAX nanoseconds */

static void check(uint64_t second, unsigned millisecond)
{
    uint64_t wall_ns = second * NS_PER_S + millisecond * NS_PER_MS + 999999;
    time_t at = (time_t)second;
    struct tm tm;
    assert_non_null(gmtime_r(&at, &tm));
    char wanted[64], got[64];

    strftime(wanted, sizeof(wanted), "%a, %d %b %Y %H:%M:%S GMT", &tm);
    time_format_http(got, wall_ns);
    assert_string_equal(got, wanted);

    strftime(wanted, sizeof(wanted), "%d/%b/%Y:%H:%M:%S +0000", &tm);
    time_format_access(got, wall_ns);
    assert_string_equal(got, wanted);

    char date[32];
    strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(wanted, sizeof(wanted), "%s.%03uZ", date, millisecond);
    time_format_log(got, wall_ns);
    assert_string_equal(got, wanted);

    snprintf(wanted, sizeof(wanted), "%s.%03u+00:00", date, millisecond);
    time_format_json(got, wall_ns);
    assert_string_equal(got, wanted);
}

static void every_day_is_written_as_strftime_does(void **state)
{
    (void)state;
    unsigned seed = 2;
    print_message("seed %u\n", seed);
    for (uint64_t day = 0; day < DAY_COUNT; day++) {
        check(day * 86400, 0);
        check(day * 86400 + 86399, 999);
        check(day * 86400 + (unsigned)rand_r(&seed) % 86400, (unsigned)rand_r(&seed) % 1000);
    }
}

static void the_sizes_in_the_header_are_exact(void **state)
{
    (void)state;
    /* Each buffer has exactly the size that the header promises: ASan sees one byte more. */
    char *http = malloc(TIME_HTTP_SIZE), *log = malloc(TIME_LOG_SIZE);
    char *json = malloc(TIME_JSON_SIZE), *access = malloc(TIME_ACCESS_SIZE);
    uint64_t wall_ns = UINT64_C(784111777) * NS_PER_S + 30 * NS_PER_MS;
    time_format_http(http, wall_ns);
    time_format_log(log, wall_ns);
    time_format_json(json, wall_ns);
    time_format_access(access, wall_ns);
    assert_string_equal(http, "Sun, 06 Nov 1994 08:49:37 GMT"); /* RFC 9110's own example */
    assert_string_equal(log, "1994-11-06T08:49:37.030Z");
    assert_string_equal(json, "1994-11-06T08:49:37.030+00:00");
    assert_string_equal(access, "06/Nov/1994:08:49:37 +0000");
    time_format_log(log, UINT64_MAX);
    assert_string_equal(log, "2554-07-21T23:34:33.709Z");
    free(http);
    free(log);
    free(json);
    free(access);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_day_is_written_as_strftime_does),
        cmocka_unit_test(the_sizes_in_the_header_are_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
