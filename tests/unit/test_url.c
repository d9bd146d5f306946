/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property: an http URL is taken apart as RFC 9110 says, and nothing that could
 * break a request line or Host gets through. Method: tables; every byte at every
 * place of a good URL.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "http/url.h"

static void good_urls_come_apart(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"http://127.0.0.1:8085", "127.0.0.1 8085 127.0.0.1:8085 "},
        {"http://localhost", "localhost 80 localhost "},
        {"HTTP://Remote.Example.com:80/", "Remote.Example.com 80 Remote.Example.com:80 "},
        {"http://remote_1:8085/a/b//", "remote_1 8085 remote_1:8085 /a/b"},
        {"http://[::1]:8085/x", "::1 8085 [::1]:8085 /x"},
        {"http://[::ffff:1.2.3.4]", "::ffff:1.2.3.4 80 [::ffff:1.2.3.4] "},
        {"http://h:65535/%20~", "h 65535 h:65535 /%20~"},
        {"http://h:0080", "h 80 h:0080 "},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct url url;
        assert_int_equal(url_parse(slice_of(cases[i][0]), &url), 0);
        char got[256];
        snprintf(got, sizeof(got), "%.*s %u %.*s %.*s", (int)url.host.length, url.host.at, url.port,
                 (int)url.authority.length, url.authority.at, (int)url.path.length, url.path.at);
        assert_string_equal(got, cases[i][1]);
    }
}

static void bad_urls_are_refused(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "",
        "http",
        "http://",
        "http:///x",
        "https://h",
        "h",
        "h:80",
        "//h",
        "ftp://h",
        " http://h",
        "http://h ",
        "http://:80",
        "http://h:",
        "http://h:0",
        "http://h:65536",
        "http://h:-1",
        "http://h:8x",
        "http://h:99999999999999999999",
        "http://u@h",
        "http://u:p@h",
        "http://h?q",
        "http://h/p?q",
        "http://h/#f",
        "http://h/a b",
        "http://h\r\nX:",
        "http://[::1",
        "http://[]",
        "http://[::1]x",
        "http://[fe80::1%25eth0]",
        "http://::1",
        "http://h/\xc3\xbc",
        "http://a,b",
        "http://h:80:80",
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct url url;
        int result = url_parse(slice_of(cases[i]), &url);
        if (result != -EINVAL) {
            fail_msg("%s: %d, not %d", cases[i], result, -EINVAL);
        }
    }
}

static void no_control_or_space_gets_through(void **state)
{
    (void)state;
    static const char good[] = "http://host:8085/path";
    for (size_t at = 0; at < sizeof(good) - 1; at++) {
        for (int byte = 0; byte < 256; byte++) {
            char *text = malloc(sizeof(good) - 1);
            memcpy(text, good, sizeof(good) - 1);
            text[at] = (char)byte;
            struct url url;
            int result = url_parse((struct slice){.at = text, .length = sizeof(good) - 1}, &url);
            if (byte <= ' ' || byte >= 0x7f || byte == '"' || byte == '\\') {
                assert_int_equal(result, -EINVAL);
            }
            free(text);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_urls_come_apart),
        cmocka_unit_test(bad_urls_are_refused),
        cmocka_unit_test(no_control_or_space_gets_through),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
