/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property: a must() that fails ends the process by SIGABRT with one line that
 * names condition, place and what ran; one that holds does nothing. Method: a
 * child process fails it, the parent reads its stderr.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/must.h"

static void describe_fiber(char *dst, size_t capacity)
{
    snprintf(dst, capacity, "Fiber[#61,http-8080-conn-12]");
}

static void describe_too_much(char *dst, size_t capacity)
{
    memset(dst, 'x', capacity);
}

/* What a child says on stderr when it fails; its end is checked here. */
static void fail_in_child(void (*describe)(char *dst, size_t capacity), char *said, size_t capacity)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        dup2(ends[1], STDERR_FILENO);
        must_describe = describe;
        log_set_thread("carrier-1");
        must_fail("count == 3", "src/some/file.c", 1234);
    }
    close(ends[1]);
    size_t length = 0;
    ssize_t got;
    while ((got = read(ends[0], said + length, capacity - 1 - length)) > 0) {
        length += (size_t)got;
    }
    said[length] = '\0';
    close(ends[0]);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
}

static void names_condition_place_and_runner(void **state)
{
    (void)state;
    char said[1024];
    fail_in_child(NULL, said, sizeof(said));
    assert_string_equal(said,
                        "ringspun: must(count == 3) failed at src/some/file.c:1234 in carrier-1\n");
    fail_in_child(describe_fiber, said, sizeof(said));
    assert_string_equal(said, "ringspun: must(count == 3) failed at src/some/file.c:1234 in "
                              "Fiber[#61,http-8080-conn-12]\n");
    fail_in_child(describe_too_much, said, sizeof(said));
    assert_int_equal(said[strlen(said) - 1], '\n');
}

static void what_holds_goes_on(void **state)
{
    (void)state;
    int evaluated = 0;
    must(++evaluated == 1);
    assert_int_equal(evaluated, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_condition_place_and_runner),
        cmocka_unit_test(what_holds_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
