/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property: every stack has a guard that faults, whatever it is made of, and
 * keeps it when pages are given back; what is given back is gone, what is in use
 * stays; forty thousand stacks fit into the default vm.max_map_count; the fallback
 * stops at its limit with the process still able to map. Method: real pools with
 * either guard; the kernel is asked whether an address faults (write(2) says
 * EFAULT) and whether a page is resident (mincore(2)); one child dies for real.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fiber/stack.h"
#include "fiber_kit.h"

#define STACK_BYTES ((size_t)65536)
#define PAGE ((size_t)4096)

static const bool force_mprotect[] = {false, true};

static void init_pool(struct stack_pool *pool, bool force)
{
    assert_int_equal(stack_pool_init(pool, STACK_BYTES, force), 0);
    if (force) {
        assert_false(pool->guard.markers);
    } else if (!pool->guard.markers) {
        printf("no guard markers here: both runs are mprotect's\n");
    }
}

static struct stack get(struct stack_pool *pool)
{
    struct stack stack;
    assert_int_equal(stack_get(pool, &stack), 0);
    return stack;
}

static void fini_pool(struct stack_pool *pool)
{
    assert_int_equal(pool->live, 0);
    stack_pool_fini(pool);
}

static void assert_guarded(struct stack stack)
{
    const char *guard = stack.base;
    for (size_t offset = 0; offset < STACK_GUARD_BYTES; offset += PAGE) {
        assert_true(kit_faults(guard + offset));
    }
    assert_true(kit_faults(stack_low(stack) - 1));
    assert_false(kit_faults(stack_low(stack)));
}

static void dirty(struct stack stack)
{
    memset(stack_low(stack), 0x5a, stack.size - STACK_GUARD_BYTES);
}

static void test_sizes_that_do_not_serve_are_refused(void **state)
{
    (void)state;
    static const size_t sizes[] = {0,
                                   4096,
                                   STACK_BYTES_MIN - PAGE,
                                   STACK_BYTES + 1,
                                   STACK_BYTES + 512,
                                   STACK_BYTES_MAX + PAGE};
    struct stack_pool pool;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        assert_int_equal(stack_pool_init(&pool, sizes[i], false), -EINVAL);
    }
    static const size_t good[] = {STACK_BYTES_MIN, STACK_BYTES_MIN + PAGE, STACK_BYTES_MAX};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_int_equal(stack_pool_init(&pool, good[i], false), 0);
        struct stack stack = get(&pool);
        assert_int_equal(stack.size, good[i]);
        assert_guarded(stack);
        stack_put(&pool, stack);
        fini_pool(&pool);
    }
}

static void write_to(void *address)
{
    (void)signal(SIGSEGV, SIG_DFL);
    *(volatile char *)address = 1;
}

static void test_a_write_into_the_guard_kills(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct stack_pool pool;
        init_pool(&pool, force_mprotect[i]);
        struct stack stack = get(&pool);
        char *low = stack_low(stack);
        char *const deadly[] = {low - 1, low - STACK_GUARD_BYTES, low - STACK_GUARD_BYTES / 2};
        char *const harmless[] = {low, stack.base + stack.size - 1};
        char text[256];
        for (size_t j = 0; j < sizeof deadly / sizeof deadly[0]; j++) {
            int status = kit_child(write_to, deadly[j], text, sizeof text);
            assert_true(WIFSIGNALED(status));
            assert_int_equal(WTERMSIG(status), SIGSEGV);
            assert_true(stack_in_guard(stack, deadly[j]));
        }
        for (size_t j = 0; j < sizeof harmless / sizeof harmless[0]; j++) {
            assert_int_equal(kit_child(write_to, harmless[j], text, sizeof text), 0);
            assert_false(stack_in_guard(stack, harmless[j]));
        }
        stack_put(&pool, stack);
        fini_pool(&pool);
    }
}

static void test_trimming_free_stacks_gives_all_but_the_hot_back(void **state)
{
    (void)state;
    enum { COUNT = 300 };
    for (int i = 0; i < 2; i++) {
        struct stack_pool pool;
        struct stack stacks[COUNT];
        init_pool(&pool, force_mprotect[i]);
        for (int j = 0; j < COUNT; j++) {
            stacks[j] = get(&pool);
            dirty(stacks[j]);
        }
        size_t dirty_bytes = kit_resident_bytes();
        for (int j = 0; j < COUNT; j++) {
            assert_int_equal(stack_used_bytes(stacks[j]), STACK_BYTES - STACK_GUARD_BYTES);
            stack_put(&pool, stacks[j]);
        }
        assert_int_equal(stack_pool_dirty(&pool), COUNT - STACK_HOT);
        int calls = 1;
        while (stack_pool_trim(&pool, 10)) {
            calls++;
        }
        assert_int_equal(calls, (COUNT - STACK_HOT + 9) / 10);
        assert_int_equal(stack_pool_dirty(&pool), 0);
        size_t fallen = dirty_bytes - kit_resident_bytes();
        if (!KIT_SANITIZED) {
            size_t given = (COUNT - STACK_HOT) * (STACK_BYTES - STACK_GUARD_BYTES);
            assert_in_range(fallen, given * 9 / 10, given * 11 / 10);
        }
        for (int j = 0; j < COUNT; j++) {
            /* what came back last is reused first, and stays resident */
            size_t wanted = j < COUNT - (int)STACK_HOT ? 0 : STACK_BYTES - STACK_GUARD_BYTES;
            assert_int_equal(stack_used_bytes(stacks[j]), wanted);
            assert_guarded(stacks[j]);
        }
        assert_ptr_equal(get(&pool).base, stacks[COUNT - 1].base);
        stack_put(&pool, stacks[COUNT - 1]);
        fini_pool(&pool);
    }
}

static void test_clean_stacks_are_not_trimmed_again(void **state)
{
    (void)state;
    enum { COUNT = STACK_HOT + 20 };
    struct stack_pool pool;
    struct stack stacks[COUNT];
    init_pool(&pool, false);
    for (int j = 0; j < (int)COUNT; j++) {
        stacks[j] = get(&pool);
    }
    for (int j = 0; j < (int)COUNT; j++) {
        stack_put(&pool, stacks[j]);
    }
    assert_false(stack_pool_trim(&pool, COUNT));
    assert_int_equal(pool.free_clean, 20);
    /* taking ten of the clean ones and giving them back makes ten dirty, the hot follow */
    for (int j = 0; j < (int)STACK_HOT + 10; j++) {
        stacks[j] = get(&pool);
    }
    assert_int_equal(pool.free_clean, 10);
    for (int j = 0; j < (int)STACK_HOT + 10; j++) {
        stack_put(&pool, stacks[j]);
    }
    assert_int_equal(stack_pool_dirty(&pool), 10);
    fini_pool(&pool);
}

static void test_trimming_a_parked_stack_keeps_what_is_in_use(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct stack_pool pool;
        init_pool(&pool, force_mprotect[i]);
        struct stack stack = get(&pool);
        dirty(stack);
        char *used = stack.base + stack.size - 2 * PAGE - 100; /* in the third page from above */
        stack_trim(&stack, used);
        for (char *at = stack.base + stack.size - 3 * PAGE; at < stack.base + stack.size; at++) {
            assert_int_equal(*at, 0x5a);
        }
        assert_int_equal(stack_used_bytes(stack), 3 * PAGE);
        assert_guarded(stack);
        assert_true(stack.clean);
        for (char *at = stack_low(stack); at < stack.base + stack.size - 3 * PAGE; at += 64) {
            assert_int_equal(*at, 0);
        }
        assert_guarded(stack);

        /* all of it in use: nothing to give */
        dirty(stack);
        stack_trim(&stack, stack_low(stack));
        assert_int_equal(stack_used_bytes(stack), STACK_BYTES - STACK_GUARD_BYTES);
        stack_put(&pool, stack);
        fini_pool(&pool);
    }
}

static void test_forty_thousand_stacks_have_a_guard_each(void **state)
{
    (void)state;
    enum { COUNT = 40000 };
    struct stack_pool pool;
    init_pool(&pool, false);
    if (!pool.guard.markers) {
        fini_pool(&pool);
        skip();
    }
    size_t before = kit_mappings();
    struct stack *stacks = calloc(COUNT, sizeof *stacks);
    assert_non_null(stacks);
    for (int i = 0; i < COUNT; i++) {
        stacks[i] = get(&pool);
    }
    size_t mappings = kit_mappings() - before;
    printf("%d stacks: %zu mappings more\n", COUNT, mappings);
    assert_in_range(mappings, 0, 1000); /* mprotect guards would need 80 000 */
    for (int i = 0; i < COUNT; i++) {
        assert_true(kit_faults(stack_low(stacks[i]) - 1));
        assert_false(kit_faults(stack_low(stacks[i])));
        stack_put(&pool, stacks[i]);
    }
    assert_int_equal(pool.created, COUNT);
    fini_pool(&pool);
    if (!KIT_SANITIZED) {
        /* all unmapped; the allocator keeps a mapping or two */
        assert_in_range(kit_mappings(), 0, before + 4);
    }
    free(stacks);
}

/*
 * By vectors, and with a call each as before Linux 6.15: the same stacks, the top
 * page there and guarded, none made ready beyond an eighth of those in use.
 */
static void test_stacks_that_are_made_ready_together_are_as_those_made_alone(void **state)
{
    (void)state;
    enum { COUNT = 1000 };
    for (int by_vectors = 0; by_vectors < 2; by_vectors++) {
        struct stack_pool pool;
        struct stack stacks[COUNT];
        bool together = false;
        init_pool(&pool, false);
        pool.by_vectors = pool.by_vectors && by_vectors == 1;
        for (int i = 0; i < COUNT; i++) {
            stacks[i] = get(&pool);
            together = together || pool.ready > 0;
            assert_in_range(pool.ready, 0, pool.created / 8);
            assert_true(kit_faults(stacks[i].base));
            assert_true(kit_faults(stack_low(stacks[i]) - 1));
            assert_int_equal(stack_used_bytes(stacks[i]), PAGE);
        }
        if (by_vectors == 0) {
            assert_false(together);
        } else if (!together) {
            printf("no process_madvise for oneself here: both runs are a call each\n");
        }
        assert_int_equal(pool.created, COUNT);
        for (int i = 0; i < COUNT; i++) {
            stack_put(&pool, stacks[i]);
        }
        fini_pool(&pool);
    }
}

/* Everything that is logged by body to stdout, as a string. */
static void logged_by(void (*body)(void *), void *argument, char *text, size_t size)
{
    FILE *file = tmpfile();
    assert_non_null(file);
    (void)fflush(stdout);
    int out = dup(STDOUT_FILENO);
    (void)dup2(fileno(file), STDOUT_FILENO);
    body(argument);
    (void)dup2(out, STDOUT_FILENO);
    (void)close(out);
    rewind(file);
    text[fread(text, 1, size - 1, file)] = '\0';
    (void)fclose(file);
}

static void fail_twice(void *argument)
{
    struct stack stack;
    assert_int_equal(stack_get(argument, &stack), -ENOMEM);
    assert_int_equal(stack_get(argument, &stack), -ENOMEM);
}

static void test_the_fallback_stops_at_its_limit_and_says_so_once(void **state)
{
    (void)state;
    if (kit_on_valgrind()) {
        skip();
    }
    struct stack_pool pool;
    init_pool(&pool, true);
    long limit = guard_mappings_left() / 2;
    struct stack *stacks = calloc((size_t)limit, sizeof *stacks);
    assert_non_null(stacks);
    for (long i = 0; i < limit; i++) {
        stacks[i] = get(&pool);
    }
    printf("mprotect guards: %ld stacks, %zu mappings\n", limit, kit_mappings());
    char text[4096];
    logged_by(fail_twice, &pool, text, sizeof text);
    const char *first = strstr(text, "vm.max_map_count");
    assert_non_null(first);
    assert_null(strstr(first + 1, "vm.max_map_count"));

    /* the rest of the program can still map */
    void *maps[200];
    for (size_t i = 0; i < sizeof maps / sizeof maps[0]; i++) {
        maps[i] = mmap(NULL, 2 * PAGE, i % 2 == 0 ? PROT_READ : PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_ptr_not_equal(maps[i], MAP_FAILED);
    }
    for (size_t i = 0; i < sizeof maps / sizeof maps[0]; i++) {
        assert_int_equal(munmap(maps[i], 2 * PAGE), 0);
    }

    /* one that comes back serves again */
    stack_put(&pool, stacks[0]);
    stacks[0] = get(&pool);
    for (long i = 0; i < limit; i++) {
        stack_put(&pool, stacks[i]);
    }
    fini_pool(&pool);
    assert_int_equal(guard_mappings_left() / 2, limit);
    free(stacks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes_that_do_not_serve_are_refused),
        cmocka_unit_test(test_a_write_into_the_guard_kills),
        cmocka_unit_test(test_trimming_free_stacks_gives_all_but_the_hot_back),
        cmocka_unit_test(test_clean_stacks_are_not_trimmed_again),
        cmocka_unit_test(test_trimming_a_parked_stack_keeps_what_is_in_use),
        cmocka_unit_test(test_forty_thousand_stacks_have_a_guard_each),
        cmocka_unit_test(test_stacks_that_are_made_ready_together_are_as_those_made_alone),
        cmocka_unit_test(test_the_fallback_stops_at_its_limit_and_says_so_once),
    };
    return cmocka_run_group_tests_name("stack", tests, NULL, NULL);
}
