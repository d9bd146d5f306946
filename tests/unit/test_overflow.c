/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property: a fiber that overruns its stack kills the process by SIGSEGV after one
 * line that names the fiber and its stack; every other fault dies as if nothing
 * were installed. Method: forked children that recurse, or touch what they must
 * not, with either kind of guard; their stderr and wait status are compared.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fiber/fiber.h"
#include "fiber/overflow.h"
#include "fiber_kit.h"

static struct sched sched;

struct deed {
    size_t stack_bytes;
    bool force_mprotect;
    bool without_fiber;
    void (*body)(void *);
};

static volatile int depth_max = 1000000; /* further than any stack here */

static __attribute__((noinline)) int recurse(int depth)
{
    volatile char frame[700];
    if (depth == depth_max) {
        return 0;
    }
    frame[0] = (char)depth;
    frame[sizeof frame - 1] = (char)depth;
    /* something after the call, so that it is not made a loop */
    return recurse(depth + 1) + frame[0];
}

static void overflow(void *argument)
{
    (void)argument;
    fiber_yield();
    (void)recurse(0);
}

/* A frame of libc's, without stack-clash probes: the guard is wider than that. */
static void overflow_in_libc(void *argument)
{
    (void)argument;
    char *low = stack_low(fiber_current()->stack);
    char *frame = __builtin_frame_address(0);
    char *hole = __builtin_alloca((size_t)(frame - low) - 1024);
    hole[0] = 0;
    char text[700];
    (void)snprintf(text, sizeof text, "%s%.300f", hole, 1e300);
}

static void write_nowhere(void *argument)
{
    (void)argument;
    static char *volatile nowhere = (char *)4096;
    *nowhere = 1;
}

static void kill_self(void *argument)
{
    (void)argument;
    (void)kill(getpid(), SIGSEGV);
}

static void commit(void *argument)
{
    const struct deed *deed = argument;
    /* the test framework's handlers are not what was there before */
    (void)signal(SIGSEGV, SIG_DFL);
    (void)signal(SIGBUS, SIG_DFL);
    struct sched_setup setup = {
        .number = 1,
        .stack_bytes = deed->stack_bytes,
        .force_mprotect = deed->force_mprotect,
        .clock_ns = kit_clock_ns,
    };
    if (sched_init(&sched, &setup) != 0 || overflow_install_process() != 0 ||
        overflow_install_thread() != 0) {
        _exit(3);
    }
    if (deed->without_fiber) {
        deed->body(NULL);
        _exit(4);
    }
    if (fiber_spawn(&sched, (struct fiber_name){"http-8080-conn-", 12}, deed->body, NULL) == NULL) {
        _exit(5);
    }
    while (sched_run(&sched) > 0) {
    }
    _exit(6);
}

static void assert_overflow(struct deed deed, const char *figures)
{
    char text[4096];
    int status = kit_child(commit, &deed, text, sizeof text);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGSEGV);
    const char *line = strstr(text, "ringspun: stack overflow in Fiber[#");
    assert_non_null(line);
    const char *rest = strstr(line, ",http-8080-conn-12]/runnable@carrier-1: its stack has ");
    assert_non_null(rest);
    rest += strlen(",http-8080-conn-12]/runnable@carrier-1: its stack has ");
    assert_string_equal(rest, figures);
}

static void test_an_overflow_names_the_fiber_and_its_stack(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_overflow((struct deed){65536, i == 1, false, overflow},
                        "48 KiB (ringspun.stack-size=64KB); raise ringspun.stack-size\n");
        assert_overflow((struct deed){49152, i == 1, false, overflow},
                        "32 KiB (ringspun.stack-size=48KB); raise ringspun.stack-size\n");
        assert_overflow((struct deed){1048576, i == 1, false, overflow},
                        "1008 KiB (ringspun.stack-size=1024KB); raise ringspun.stack-size\n");
    }
}

static void test_an_overflow_inside_libc_is_named_too(void **state)
{
    (void)state;
    if (KIT_SANITIZED) {
        skip(); /* their frames are not where these are */
    }
    assert_overflow((struct deed){65536, false, false, overflow_in_libc},
                    "48 KiB (ringspun.stack-size=64KB); raise ringspun.stack-size\n");
}

static void test_other_faults_die_as_ever(void **state)
{
    (void)state;
    static const struct deed deeds[] = {
        {65536, false, false, write_nowhere},
        {65536, false, true, write_nowhere},
        {65536, false, false, kill_self},
        {65536, false, true, kill_self},
    };
    for (size_t i = 0; i < sizeof deeds / sizeof deeds[0]; i++) {
        char text[8192];
        struct deed deed = deeds[i];
        int status = kit_child(commit, &deed, text, sizeof text);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), SIGSEGV);
        assert_null(strstr(text, "stack overflow"));
    }
}

static void test_installing_and_leaving_restores_the_alternate_stack(void **state)
{
    (void)state;
    stack_t before;
    stack_t now;
    assert_int_equal(sigaltstack(NULL, &before), 0);
    assert_int_equal(overflow_install_thread(), 0);
    assert_int_equal(sigaltstack(NULL, &now), 0);
    assert_ptr_not_equal(now.ss_sp, before.ss_sp);
    assert_in_range(now.ss_size, 32768, SIZE_MAX);
    overflow_fini_thread();
    overflow_fini_thread();
    assert_int_equal(sigaltstack(NULL, &now), 0);
    assert_int_equal(now.ss_flags, before.ss_flags);
    if ((before.ss_flags & SS_DISABLE) == 0) {
        assert_ptr_equal(now.ss_sp, before.ss_sp);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_overflow_names_the_fiber_and_its_stack),
        cmocka_unit_test(test_an_overflow_inside_libc_is_named_too),
        cmocka_unit_test(test_other_faults_die_as_ever),
        cmocka_unit_test(test_installing_and_leaving_restores_the_alternate_stack),
    };
    return cmocka_run_group_tests_name("overflow", tests, NULL, NULL);
}
