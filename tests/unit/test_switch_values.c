/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property: what a C program holds when it switches is there when it is switched
 * back to: more values than there are registers, frames however deep, each control
 * bit of the floating-point units, and the address of thread-locals and of errno,
 * whose values all contexts of a thread share. Method: contexts on static stacks that
 * switch by hand while others run the same code with other values; made for compilers
 * at any level of optimisation (make switch-matrix).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "fiber/switch.h"
#include "fiber_kit.h"

#define STACK_BYTES ((size_t)131072)
#define CONTEXTS 4
#define THREADS 2

/* One thread's loop and contexts. A context's entry has no argument: it looks here. */
struct world {
    struct switch_context loop;
    struct switch_context contexts[CONTEXTS];
    int running; /* number of the context that runs */
    bool ended[CONTEXTS];
    unsigned wrong;  /* what differed; asserted by the test */
    uint64_t number; /* of the thread */
};

static char stacks[THREADS][CONTEXTS][STACK_BYTES] __attribute__((aligned(64)));
static struct world worlds[THREADS];
static _Thread_local struct world *world;

static void world_begin(int number, void (*entry)(void))
{
    world = &worlds[number];
    memset(world, 0, sizeof *world);
    world->number = (uint64_t)number;
    switch_adopt(&world->loop);
    for (int i = 0; i < CONTEXTS; i++) {
        switch_prepare(&world->contexts[i], stacks[number][i], STACK_BYTES, entry);
    }
}

static void world_end(void)
{
    for (int i = 0; i < CONTEXTS; i++) {
        switch_forget(&world->contexts[i]);
    }
}

/* Run contexts in a random order until all have ended. */
static void world_run(uint64_t seed)
{
    for (int left = CONTEXTS; left > 0;) {
        int next = (int)(kit_random(&seed) % CONTEXTS);
        if (!world->ended[next]) {
            world->running = next;
            switch_to(&world->loop, &world->contexts[next]);
            left -= world->ended[next];
        }
    }
}

static void to_the_loop(int self)
{
    switch_to(&world->contexts[self], &world->loop);
    world->wrong += world->running != self;
}

static _Noreturn void end(int self)
{
    world->ended[self] = true;
    switch_leave(&world->contexts[self], &world->loop);
}

/* ------------------------------------------------------------ more values than registers */

#define EACH(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12)
#define MAKE(i)                                                                                    \
    uint64_t whole_##i = seed * (2 * i + 1) + i;                                                   \
    double real_##i = (double)seed + (i) / 32.0;                                                   \
    long double wide_##i = (long double)seed * (i);
#define CHECK(i)                                                                                   \
    wrong += whole_##i != again * (2 * i + 1) + i || real_##i != (double)again + (i) / 32.0 ||     \
             wide_##i != (long double)again * (i);

/* Made from seed and checked with again, which has the same value: no compiler knows that. */
static __attribute__((noinline)) unsigned hold_values(int self, uint64_t seed,
                                                      const volatile uint64_t *other)
{
    unsigned wrong = 0;
    EACH(MAKE)
    to_the_loop(self);
    uint64_t again = *other;
    EACH(CHECK)
    return wrong;
}

static void hold_many_values(void)
{
    int self = world->running;
    for (unsigned i = 0; i < 200; i++) {
        volatile uint64_t seed = (uint64_t)self * 1000 + i + 1;
        world->wrong += hold_values(self, seed, &seed);
    }
    end(self);
}

static void test_more_values_than_registers_are_kept(void **state)
{
    (void)state;
    uint64_t seed = kit_seed("values");
    world_begin(0, hold_many_values);
    world_run(seed);
    assert_int_equal(world->wrong, 0);
    world_end();
}

/* ------------------------------------------------------------ frames however deep */

enum { DEPTH = 150, FRAME_WORDS = 16 };

/* Down and up again with a switch at each step; each frame has its own pattern. */
static __attribute__((noinline)) uint64_t dive(int self, uint64_t depth, uintptr_t above)
{
    volatile uint64_t words[FRAME_WORDS];
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    for (unsigned i = 0; i < FRAME_WORDS; i++) {
        words[i] = depth * 1000 + (uint64_t)self * 100 + i;
    }
    world->wrong += here >= above || here % 16 != 0;
    to_the_loop(self);
    uint64_t below = depth < DEPTH ? dive(self, depth + 1, here) : 0;
    to_the_loop(self);
    for (unsigned i = 0; i < FRAME_WORDS; i++) {
        world->wrong += words[i] != depth * 1000 + (uint64_t)self * 100 + i;
    }
    return below + depth;
}

static void dive_once(void)
{
    int self = world->running;
    world->wrong += dive(self, 1, UINTPTR_MAX) != DEPTH * (DEPTH + 1) / 2;
    end(self);
}

static void test_deep_recursion_survives_a_switch_in_each_frame(void **state)
{
    (void)state;
    uint64_t seed = kit_seed("dive");
    world_begin(0, dive_once);
    world_run(seed);
    assert_int_equal(world->wrong, 0);
    world_end();
}

/* ------------------------------------------------------------ thread-locals and errno */

/*
 * A fiber never leaves its thread, so that a compiler may keep the address of a
 * thread-local, and of errno, from before a switch: it must still be right.
 */
static _Thread_local volatile uint64_t local;
static _Thread_local volatile int local_zero; /* in .tbss, beside one that is initialised */
static _Thread_local volatile uint64_t local_set = 7;

static void use_thread_locals(void)
{
    int self = world->running;
    volatile uint64_t *local_before = &local;
    volatile uint64_t *set_before = &local_set;
    int *errno_before = &errno;
    for (int i = 0; i < 300; i++) {
        local = world->number << 32 | (uint64_t)self;
        local_zero = self;
        local_set += 1;
        errno = 100 + self;
        uint64_t set = local_set;
        to_the_loop(self);
        /* what the loop wrote last on this thread, and nothing of the other thread's */
        world->wrong += local != (world->number << 32 | 0xffff) || errno != 99 || local_zero != -1;
        world->wrong += &local != local_before || &errno != errno_before;
        world->wrong += &local_set != set_before || local_set < set || *local_before != local;
    }
    end(self);
}

static pthread_barrier_t barrier;

static void *run_thread_locals(void *number)
{
    int *errno_of_thread = &errno;
    world_begin((int)(intptr_t)number, use_thread_locals);
    (void)pthread_barrier_wait(&barrier); /* so that both run at once */
    uint64_t random = (uint64_t)(intptr_t)number;
    for (int left = CONTEXTS; left > 0;) {
        int next = (int)(kit_random(&random) % CONTEXTS);
        if (world->ended[next]) {
            continue;
        }
        local = world->number << 32 | 0xffff;
        local_zero = -1;
        errno = 99;
        world->running = next;
        switch_to(&world->loop, &world->contexts[next]);
        left -= world->ended[next];
        /* and the loop sees what the context wrote */
        world->wrong += !world->ended[next] && (local != (world->number << 32 | (uint64_t)next) ||
                                                local_zero != next || errno != 100 + next);
        world->wrong += &errno != errno_of_thread;
    }
    world->wrong += local_set != 7 + 300 * CONTEXTS;
    world_end();
    return NULL;
}

static void test_thread_locals_and_errno_stay_the_threads_across_a_switch(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    assert_int_equal(pthread_barrier_init(&barrier, NULL, THREADS), 0);
    for (intptr_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, run_thread_locals, (void *)i), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(worlds[i].wrong, 0);
    }
    (void)pthread_barrier_destroy(&barrier);
}

/* ------------------------------------------------------------ each floating-point control bit */

/* The units that have modes; bits lists those that can be set, and no trap is taken by. */
#if defined(__x86_64__)
enum { UNITS = 2 };
static const uint32_t defaults[UNITS] = {0x1f80, 0x37f};
static const uint32_t bits[UNITS] = {0xffc0, 0xf3f};     /* MXCSR; x87 control word */
static const uint32_t rounding[UNITS] = {0x6000, 0xc00}; /* all that valgrind has of them */

static void set_control(const uint32_t *control)
{
    uint16_t x87 = (uint16_t)control[1];
    __asm__ volatile("ldmxcsr %0\n\tfldcw %1" : : "m"(control[0]), "m"(x87));
}

static void get_control(uint32_t *control)
{
    uint16_t x87;
    __asm__ volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(control[0]), "=m"(x87));
    control[0] &= bits[0]; /* without the sticky exception flags */
    control[1] = x87 & bits[1];
}
#elif defined(__aarch64__)
enum { UNITS = 1 };
static const uint32_t defaults[UNITS] = {0};
static const uint32_t bits[UNITS] = {0x7c00000}; /* FPCR: rounding, flush to zero, NaN, half */
static const uint32_t rounding[UNITS] = {0xc00000};

static void set_control(const uint32_t *control)
{
    uint64_t fpcr = control[0];
    __asm__ volatile("msr fpcr, %0" : : "r"(fpcr));
}

static void get_control(uint32_t *control)
{
    uint64_t fpcr;
    __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
    control[0] = (uint32_t)fpcr;
}
#else
enum { UNITS = 1 };
static const uint32_t defaults[UNITS];
static const uint32_t bits[UNITS];
static const uint32_t rounding[UNITS];
static void set_control(const uint32_t *control)
{
    (void)control;
}
static void get_control(uint32_t *control)
{
    control[0] = 0;
}
#endif

static uint32_t wanted[UNITS]; /* by the context that runs */

static void set_a_bit(void)
{
    int self = world->running;
    uint32_t mine[UNITS];
    uint32_t got[UNITS];
    memcpy(mine, wanted, sizeof mine);
    set_control(mine);
    switch_to(&world->contexts[self], &world->loop);
    get_control(got);
    set_control(defaults); /* for whatever computes from here on */
    for (int unit = 0; unit < UNITS; unit++) {
        world->wrong += got[unit] != (mine[unit] & bits[unit]);
    }
    end(self);
}

static void test_each_control_bit_of_the_floating_point_units_is_kept(void **state)
{
    (void)state;
    unsigned tried = 0;
    for (int unit = 0; unit < UNITS; unit++) {
        for (unsigned bit = 0; bit < 32; bit++) {
            const uint32_t *there = kit_on_valgrind() ? rounding : bits;
            if ((there[unit] >> bit & 1) == 0) {
                continue;
            }
            uint32_t got[UNITS];
            tried++;
            world_begin(0, set_a_bit);
            memcpy(wanted, defaults, sizeof wanted);
            wanted[unit] ^= UINT32_C(1) << bit;
            for (int turn = 0; turn < 2; turn++) {
                for (int i = 0; i < CONTEXTS; i++) {
                    world->running = i;
                    switch_to(&world->loop, &world->contexts[i]);
                    get_control(got);
                    for (int other = 0; other < UNITS; other++) {
                        world->wrong += got[other] != (defaults[other] & bits[other]);
                    }
                    memcpy(wanted, defaults, sizeof wanted); /* the others have them as they were */
                }
            }
            if (world->wrong != 0) {
                fail_msg("bit %u of unit %d was not kept", bit, unit);
            }
            world_end();
        }
    }
    printf("%u control bits\n", tried);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_more_values_than_registers_are_kept),
        cmocka_unit_test(test_deep_recursion_survives_a_switch_in_each_frame),
        cmocka_unit_test(test_thread_locals_and_errno_stay_the_threads_across_a_switch),
        cmocka_unit_test(test_each_control_bit_of_the_floating_point_units_is_kept),
    };
    return cmocka_run_group_tests_name("switch_values", tests, NULL, NULL);
}
