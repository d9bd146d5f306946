/* SPDX-License-Identifier: Apache-2.0 */
/* links: bench/ringload/template */
/*
 * test_template.c - property: each "{random:N}" becomes a number below N, of one width, every number
 * comes, nothing else changes; what is no such place is left as it is or refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "ringload/template.h"

static void test_numbers_are_drawn_below_their_bounds_and_nothing_else_changes(void **state)
{
    (void)state;
    struct template template = {.count = 0};
    char request[64];
    uint64_t random = 1;
    bool seen[12] = {false};
    ptrdiff_t length =
        template_expand(&template, SLICE("{a:{random:12}}/{random:1}/x"), request, 0);
    assert_int_equal(length, 10);
    request[length] = '\0';
    assert_string_equal(request, "{a:00}/0/x");
    for (int round = 0; round < 1000; round++) {
        template_fill(&template, request, &random);
        unsigned number = (unsigned)(request[3] - '0') * 10 + (unsigned)(request[4] - '0');
        assert_true(number < 12);
        seen[number] = true;
        request[3] = request[4] = '0';
        assert_string_equal(request, "{a:00}/0/x");
    }
    for (int i = 0; i < 12; i++) {
        assert_true(seen[i]);
    }
}

static void test_what_is_no_place_is_refused(void **state)
{
    (void)state;
    static const char *bad[] = {"{random:}",  "{random:0}",          "{random:1x}",
                                "{random:10", "{random:1000000001}", "{random:-1}"};
    char request[128];
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct template template = {.count = 0};
        assert_int_equal(template_expand(&template, slice_of(bad[i]), request, 0), -EINVAL);
    }
    struct template template = {.count = 0};
    for (int i = 0; i < TEMPLATE_PLACES_MAX; i++) {
        assert_int_equal(template_expand(&template, SLICE("{random:9}"), request, 0), 1);
    }
    assert_int_equal(template_expand(&template, SLICE("{random:9}"), request, 0), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_are_drawn_below_their_bounds_and_nothing_else_changes),
        cmocka_unit_test(test_what_is_no_place_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
