/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property: a log call is one line of Spring Boot's shape (or one JSON object),
 * whatever the message holds and however long it is; levels filter; errno and the
 * caller survive a stdout that refuses. Method: stdout is a memory file while a
 * call runs; times are matched by shape.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <regex.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "base/log.h"
#include "base/utf8.h"

#define CAPTURE_MAX 65536

static char captured[CAPTURE_MAX];
static int stdout_kept = -1;
static int capture_file = -1;

static void capture_begin(void)
{
    fflush(stdout);
    stdout_kept = dup(STDOUT_FILENO);
    capture_file = memfd_create("log", MFD_CLOEXEC);
    assert_true(stdout_kept >= 0 && capture_file >= 0);
    dup2(capture_file, STDOUT_FILENO);
}

static void capture_end(void)
{
    dup2(stdout_kept, STDOUT_FILENO);
    close(stdout_kept);
    ssize_t length = pread(capture_file, captured, CAPTURE_MAX - 1, 0);
    assert_true(length >= 0);
    captured[length] = '\0';
    close(capture_file);
}

static void set_up(enum log_level level, bool json)
{
    log_init(&(struct log_setup){.level = level, .json = json});
    log_set_thread("carrier-0");
}

static void assert_matches(const char *pattern)
{
    regex_t regex;
    assert_int_equal(regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB), 0);
    int result = regexec(&regex, captured, 0, NULL, 0);
    regfree(&regex);
    if (result != 0) {
        fail_msg("\"%s\" does not match %s", captured, pattern);
    }
}

#define TIME_SHAPE "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z "

static void a_line_has_the_shape_of_spring_boot(void **state)
{
    (void)state;
    set_up(LOG_TRACE, false);
    static const struct {
        enum log_level level;
        const char *thread;
        const char *shown;
    } cases[] = {
        {LOG_TRACE, "carrier-0", "TRACE %d --- [        carrier-0] "},
        {LOG_INFO, "carrier-0", " INFO %d --- [        carrier-0] "},
        {LOG_WARN, "main", " WARN %d --- [             main] "},
        {LOG_ERROR, "exactly-17-bytes-", "ERROR %d --- [exactly-17-bytes-] "},
        {LOG_DEBUG, "http-8080-exec-200", "DEBUG %d --- [ttp-8080-exec-200] "},
        {LOG_INFO, "", " INFO %d --- [                 ] "},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        log_set_thread(cases[i].thread);
        capture_begin();
        log_at(cases[i].level, "http.listener", "port %d (%s)", 8080, "http");
        capture_end();
        char wanted[128];
        snprintf(wanted, sizeof(wanted), cases[i].shown, (int)getpid());
        strcat(wanted, "http.listener : port 8080 (http)\n");
        assert_matches(TIME_SHAPE);
        assert_string_equal(captured + strlen("2026-11-30T15:58:44.030Z "), wanted);
    }
}

static void levels_below_the_set_one_are_dropped(void **state)
{
    (void)state;
    for (int set = LOG_TRACE; set <= LOG_OFF; set++) {
        set_up((enum log_level)set, false);
        for (int level = LOG_TRACE; level < LOG_OFF; level++) {
            capture_begin();
            log_at((enum log_level)level, "l", "x");
            capture_end();
            assert_int_equal(captured[0] != '\0', level >= set);
            assert_int_equal(log_enabled((enum log_level)level), level >= set);
        }
    }
}

static void a_message_cannot_forge_a_line(void **state)
{
    (void)state;
    set_up(LOG_INFO, false);
    static const char *const cases[][2] = {
        {"a\nb", "a\\x0ab"},
        {"a\r\n2026-11-30T15:58:44.030Z", "a\\x0d\\x0a2026-11-30T15:58:44.030Z"},
        {"\x1b[31mred\x7f\t", "\\x1b[31mred\\x7f\\x09"},
        {"gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f"},
        {"\xc2\x9b"
         "31m",
         "\\xc2\\x9b31m"}, /* U+009B is ESC [ to a terminal */
        {"\xc2\xa0", "\xc2\xa0"},
        {"\xff\xe2\x82", "\\xff\\xe2\\x82"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        capture_begin();
        log_info("l", "%s", cases[i][0]);
        capture_end();
        char *message = strstr(captured, " : ");
        assert_non_null(message);
        char wanted[128];
        snprintf(wanted, sizeof(wanted), " : %s\n", cases[i][1]);
        assert_string_equal(message, wanted);
    }
}

/* Lengths around the limit, characters of one to four bytes, and some that grow. */
static void long_lines_are_cut_between_characters(void **state)
{
    (void)state;
    static const char *const characters[] = {"x",  "\xc3\xbc", "\xe2\x82\xac", "\xf0\x9f\x8c\x80",
                                             "\n", "\""};
    for (size_t c = 0; c < sizeof(characters) / sizeof(characters[0]); c++) {
        for (int json = 0; json < 2; json++) {
            set_up(LOG_INFO, json == 1);
            size_t size = strlen(characters[c]);
            for (size_t count = 1; count * size<1400; count += count * size> 150 ? 1 : 37) {
                char message[2048] = "";
                for (size_t i = 0; i < count; i++) {
                    memcpy(message + i * size, characters[c], size + 1);
                }
                capture_begin();
                log_info("l", "%s", message);
                capture_end();
                size_t length = strlen(captured);
                assert_in_range(length, 1, LOG_LINE_MAX);
                assert_ptr_equal(strchr(captured, '\n'), captured + length - 1);
                bool valid = true;
                for (size_t at = 0; at < length && valid;) {
                    at += utf8_next((struct slice){captured + at, length - at}, &valid);
                }
                assert_true(valid);
                const char *tail = json == 1 ? "...\"}\n" : "...\n";
                bool cut = strcmp(captured + length - strlen(tail), tail) == 0;
                size_t form = c == 4 ? (json == 1 ? 2 : 4) : c == 5 && json == 1 ? 2 : size;
                if (cut) {
                    assert_true(length + 12 > LOG_LINE_MAX); /* no shorter than it must be */
                } else {
                    assert_true(length > count * form); /* all of it is there */
                }
                if (json == 1) {
                    cJSON *root = cJSON_ParseWithLength(captured, length);
                    assert_non_null(root);
                    cJSON_Delete(root);
                }
            }
        }
    }
}

static void json_lines_parse_back(void **state)
{
    (void)state;
    set_up(LOG_INFO, true);
    log_set_thread("a \"quoted\" thread");
    static const char *const cases[][2] = {
        {"plain", "plain"},
        {"a\nb\t\"c\"\\", "a\nb\t\"c\"\\"},
        {"\xff|\xe2\x82|\xc3\xbc", "\xef\xbf\xbd|\xef\xbf\xbd|\xc3\xbc"},
        {"\x01\x1b\x7f", "\x01\x1b\x7f"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        capture_begin();
        log_warn("http.session", "%s", cases[i][0]);
        capture_end();
        assert_int_equal(captured[strlen(captured) - 1], '\n');
        cJSON *root = cJSON_ParseWithLength(captured, strlen(captured));
        assert_non_null(root);
        assert_string_equal(cJSON_GetObjectItem(root, "message")->valuestring, cases[i][1]);
        assert_string_equal(cJSON_GetObjectItem(root, "level")->valuestring, "WARN");
        assert_string_equal(cJSON_GetObjectItem(root, "logger")->valuestring, "http.session");
        assert_string_equal(cJSON_GetObjectItem(root, "thread")->valuestring, log_thread());
        assert_int_equal(cJSON_GetObjectItem(root, "pid")->valueint, getpid());
        assert_int_equal(strlen(cJSON_GetObjectItem(root, "@timestamp")->valuestring), 24);
        assert_int_equal(cJSON_GetArraySize(root), 6);
        cJSON_Delete(root);
    }
}

static void a_stdout_that_refuses_changes_nothing(void **state)
{
    (void)state;
    set_up(LOG_INFO, false);
    int ends[2];
    assert_int_equal(pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
    static const char block[4096];
    while (write(ends[1], block, sizeof(block)) > 0) {
    }
    fflush(stdout);
    int kept = dup(STDOUT_FILENO);
    dup2(ends[1], STDOUT_FILENO); /* full */
    errno = E2BIG;
    log_info("l", "x");
    log_access(SLICE("y"));
    int errno_full = errno;
    close(STDOUT_FILENO); /* closed */
    log_info("l", "x");
    int errno_closed = errno;
    dup2(kept, STDOUT_FILENO);
    close(kept);
    close(ends[0]);
    close(ends[1]);
    assert_int_equal(errno_full, E2BIG);
    assert_int_equal(errno_closed, E2BIG);
}

static void an_access_line_ignores_the_level(void **state)
{
    (void)state;
    set_up(LOG_OFF, false);
    capture_begin();
    log_access(SLICE("127.0.0.1 - - [x] \"GET / HTTP/1.1\" 200 12"));
    log_access(SLICE(""));
    capture_end();
    assert_string_equal(captured, "127.0.0.1 - - [x] \"GET / HTTP/1.1\" 200 12\n\n");
}

static void a_thread_name_is_cut_at_31_bytes(void **state)
{
    (void)state;
    log_set_thread("0123456789012345678901234567890123456789");
    assert_string_equal(log_thread(), "0123456789012345678901234567890");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_has_the_shape_of_spring_boot),
        cmocka_unit_test(levels_below_the_set_one_are_dropped),
        cmocka_unit_test(a_message_cannot_forge_a_line),
        cmocka_unit_test(long_lines_are_cut_between_characters),
        cmocka_unit_test(json_lines_parse_back),
        cmocka_unit_test(a_stdout_that_refuses_changes_nothing),
        cmocka_unit_test(an_access_line_ignores_the_level),
        cmocka_unit_test(a_thread_name_is_cut_at_31_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
