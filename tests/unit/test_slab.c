/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property: a slab's records are zeroed, aligned, do not overlap and are counted;
 * its chunks go when their records come back; giving to the wrong slab, or ending
 * with a record out, is caught. Method: pseudo-random takes and gives over several
 * record sizes, each live record filled and checked; failures in a child process.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/slab.h"

#define LIVE_MAX 500
#define STEPS 20000

/* Take, check that it is zero, fill with mark. */
static unsigned char *take_marked(struct slab *slab, size_t size, unsigned char mark)
{
    unsigned char *record = slab_take(slab);
    assert_non_null(record);
    assert_int_equal((uintptr_t)record % 16, 0);
    for (size_t i = 0; i < size; i++) {
        assert_int_equal(record[i], 0);
    }
    memset(record, mark, size);
    return record;
}

/* A megabyte, or one chunk. */
static size_t spares_max(const struct slab *slab)
{
    size_t spares = ((size_t)1 << 20) / slab->chunk_bytes;
    return spares > 0 ? spares : 1;
}

static void give_checked(struct slab *slab, unsigned char *record, size_t size, unsigned char mark)
{
    for (size_t i = 0; i < size; i++) {
        assert_int_equal(record[i], mark);
    }
    slab_give(slab, record);
}

static void records_survive_any_order(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 8, 16, 17, 64, 200, 4096, 5000};
    unsigned seed = 3;
    print_message("seed %u\n", seed);
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        struct slab slab;
        slab_init(&slab, sizes[s], 1 + s * 10);
        static unsigned char *live[LIVE_MAX];
        static unsigned char marks[LIVE_MAX];
        size_t count = 0;
        for (int step = 0; step < STEPS; step++) {
            /* Waves: mostly takes, then mostly gives. */
            int take_odds = step / 1000 % 2 == 0 ? 70 : 30;
            bool takes = rand_r(&seed) % 100 < take_odds;
            if (takes && count < LIVE_MAX) {
                marks[count] = (unsigned char)(1 + step % 255);
                live[count] = take_marked(&slab, sizes[s], marks[count]);
                count++;
            } else if (!takes && count > 0) {
                size_t chosen = (size_t)rand_r(&seed) % count;
                give_checked(&slab, live[chosen], sizes[s], marks[chosen]);
                count--;
                live[chosen] = live[count];
                marks[chosen] = marks[count];
            }
            assert_int_equal(slab.live_count, count);
            assert_in_range(slab.spare_count, 0, spares_max(&slab));
        }
        while (count > 0) {
            count--;
            give_checked(&slab, live[count], sizes[s], marks[count]);
        }
        assert_in_range(slab.chunk_count, 0, spares_max(&slab));
        slab_fini(&slab);
    }
}

static void the_last_given_is_taken_next(void **state)
{
    (void)state;
    struct slab slab;
    slab_init(&slab, 100, 50);
    void *a = slab_take(&slab);
    void *b = slab_take(&slab);
    assert_ptr_not_equal(a, b);
    slab_give(&slab, a);
    slab_give(&slab, b);
    assert_ptr_equal(slab_take(&slab), b);
    assert_ptr_equal(slab_take(&slab), a);
    slab_give(&slab, a);
    slab_give(&slab, b);
    slab_fini(&slab);
}

static void memory_goes_back_after_a_burst(void **state)
{
    (void)state;
    struct slab slab;
    slab_init(&slab, 512, 64);
    static void *burst[10000];
    for (size_t i = 0; i < 10000; i++) {
        burst[i] = slab_take(&slab);
        assert_non_null(burst[i]);
    }
    assert_in_range(slab.chunk_count, 10000 / 128, 10000 / 64 + 1);
    for (size_t i = 0; i < 10000; i++) {
        slab_give(&slab, burst[i]);
    }
    assert_int_equal(slab.chunk_count, spares_max(&slab));
    assert_int_equal(slab.live_count, 0);
    slab_fini(&slab);
}

static void records_that_come_and_go_with_each_turn_map_nothing_anew(void **state)
{
    (void)state;
    struct slab slab;
    slab_init(&slab, 8192, 7);
    void *records[64];
    size_t chunks = 0;
    for (int turn = 0; turn < 10; turn++) {
        for (size_t i = 0; i < 64; i++) {
            records[i] = slab_take(&slab);
            assert_non_null(records[i]);
        }
        chunks = turn == 0 ? slab.chunk_count : chunks;
        assert_int_equal(slab.chunk_count, chunks);
        for (size_t i = 0; i < 64; i++) {
            slab_give(&slab, records[i]);
        }
        assert_int_equal(slab.chunk_count, chunks);
    }
    slab_fini(&slab);
}

/* Run in a child whose stderr is thrown away; the signal that ended it, or 0. */
static int signal_of(void (*run)(void))
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        close(STDERR_FILENO);
        signal(SIGABRT, SIG_DFL);
        run();
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void a_dirty_record_is_what_its_last_owner_left(void **state)
{
    (void)state;
    struct slab slab;
    slab_init(&slab, 64, 10);
    char *record = slab_take_dirty(&slab);
    assert_non_null(record);
    memset(record, 7, 64);
    slab_give(&slab, record);
    char *again = slab_take_dirty(&slab);
    assert_ptr_equal(again, record);
    assert_int_equal(again[63], 7);
    slab_give(&slab, again);
    char *cleared = slab_take(&slab);
    assert_ptr_equal(cleared, record);
    for (size_t i = 0; i < 64; i++) {
        assert_int_equal(cleared[i], 0);
    }
    slab_give(&slab, cleared);
    slab_fini(&slab);
}

static void give_to_another_slab(void)
{
    struct slab one, other;
    slab_init(&one, 64, 10);
    slab_init(&other, 64, 10);
    void *record = slab_take(&one);
    void *kept = slab_take(&other);
    slab_give(&other, record);
    (void)kept;
}

static void end_with_a_live_record(void)
{
    struct slab slab;
    slab_init(&slab, 64, 10);
    void *record = slab_take(&slab);
    (void)record;
    slab_fini(&slab);
}

static void misuse_is_caught(void **state)
{
    (void)state;
    assert_int_equal(signal_of(give_to_another_slab), SIGABRT);
    assert_int_equal(signal_of(end_with_a_live_record), SIGABRT);
}

static void no_memory_is_null(void **state)
{
    (void)state;
    struct slab slab;
    slab_init(&slab, (size_t)1 << 24, (size_t)1 << 24); /* a chunk beyond any address space */
    for (int i = 0; i < 3; i++) {
        assert_null(slab_take(&slab));
        assert_int_equal(slab.live_count, 0);
        assert_int_equal(slab.chunk_count, 0);
    }
    slab_fini(&slab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_survive_any_order),
        cmocka_unit_test(the_last_given_is_taken_next),
        cmocka_unit_test(memory_goes_back_after_a_burst),
        cmocka_unit_test(records_that_come_and_go_with_each_turn_map_nothing_anew),
        cmocka_unit_test(a_dirty_record_is_what_its_last_owner_left),
        cmocka_unit_test(misuse_is_caught),
        cmocka_unit_test(no_memory_is_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
