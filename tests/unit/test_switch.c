/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property: a switch keeps what the calling convention preserves (registers,
 * rounding modes) and nothing of one context shows in another; a first entry
 * begins on its own stack, aligned, with the modes and the signal mask of
 * switch_adopt; walks along the stack end at the entry. Method: contexts on
 * static stacks that switch by hand; the registers are filled and compared in
 * assembly.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <execinfo.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "fiber/switch.h"
#include "fiber_kit.h"
#include "registers.h"

#define STACK_BYTES ((size_t)65536)
#define CONTEXTS 50

static char stacks[CONTEXTS][STACK_BYTES] __attribute__((aligned(64)));
static struct switch_context loop;
static struct switch_context contexts[CONTEXTS];

static void prepare(int i, void (*entry)(void))
{
    switch_prepare(&contexts[i], stacks[i], STACK_BYTES, entry);
}

/* ------------------------------------------------------------ floating-point modes */

/* Rounding towards zero in all units that have such a mode, and the default. */
struct modes {
    uint32_t vector;
    uint32_t x87;
};

#if defined(__x86_64__)
static const struct modes modes_default = {0x1f80, 0x37f};
static const struct modes modes_down = {0x1f80 | 0x2000, 0x37f | 0x400};
static const struct modes modes_zero = {0x1f80 | 0x6000, 0x37f | 0xc00};

static void set_modes(struct modes modes)
{
    uint16_t x87 = (uint16_t)modes.x87;
    __asm__ volatile("ldmxcsr %0\n\tfldcw %1" : : "m"(modes.vector), "m"(x87));
}

static struct modes get_modes(void)
{
    struct modes modes = {0};
    uint16_t x87;
    __asm__ volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(modes.vector), "=m"(x87));
    modes.vector &= ~UINT32_C(0x3f); /* without the sticky exception flags */
    modes.x87 = x87;
    return modes;
}
#elif defined(__aarch64__)
static const struct modes modes_default = {0, 0};
static const struct modes modes_down = {2u << 22, 0};
static const struct modes modes_zero = {3u << 22, 0};

static void set_modes(struct modes modes)
{
    uint64_t fpcr = modes.vector;
    __asm__ volatile("msr fpcr, %0" : : "r"(fpcr));
}

static struct modes get_modes(void)
{
    uint64_t fpcr;
    __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
    return (struct modes){.vector = (uint32_t)fpcr};
}
#else
static const struct modes modes_default, modes_down, modes_zero;
static void set_modes(struct modes modes)
{
    (void)modes;
}
static struct modes get_modes(void)
{
    return modes_default;
}
#endif

static void assert_modes(struct modes wanted)
{
    struct modes got = get_modes();
    assert_int_equal(got.vector, wanted.vector);
    assert_int_equal(got.x87, wanted.x87);
}

static struct modes seen_first;
static struct modes seen_later;

static void round_down(void)
{
    seen_first = get_modes();
    set_modes(modes_down);
    switch_to(&contexts[0], &loop);
    seen_later = get_modes();
    switch_leave(&contexts[0], &loop);
}

static void test_each_context_keeps_its_own_rounding(void **state)
{
    (void)state;
    switch_adopt(&loop);
    prepare(0, round_down);
    set_modes(modes_zero);
    switch_to(&loop, &contexts[0]);
    assert_modes(modes_zero);
    /* not those of who entered it: those of switch_adopt */
    assert_int_equal(seen_first.vector, modes_default.vector);
    assert_int_equal(seen_first.x87, modes_default.x87);
    set_modes(modes_default);
    switch_to(&loop, &contexts[0]);
    assert_modes(modes_default);
    assert_int_equal(seen_later.vector, modes_down.vector);
    assert_int_equal(seen_later.x87, modes_down.x87);
    switch_forget(&contexts[0]);
}

/* ------------------------------------------------------------ registers */

static uint64_t broken_bits;

static void fill_registers(void)
{
    for (uint64_t i = 0; i < 100; i++) {
        broken_bits |= registers_survive(&contexts[0], &loop, UINT64_C(0xf1f2f3f4f5f6f7f8) * i);
    }
    switch_leave(&contexts[0], &loop);
}

static void test_preserved_registers_survive(void **state)
{
    (void)state;
    switch_adopt(&loop);
    prepare(0, fill_registers);
    broken_bits = 0;
    /* the first call enters, the last one is left for good */
    for (uint64_t i = 0; i < 101; i++) {
        assert_int_equal(registers_survive(&loop, &contexts[0], UINT64_C(0x0102030405060708) * i),
                         0);
        assert_int_equal(broken_bits, 0);
    }
    switch_forget(&contexts[0]);
}

/* ------------------------------------------------------------ first entry */

static struct {
    uintptr_t frame;
    uintptr_t aligned;
    double sum;
    int frames;
    bool usr2_blocked;
    uintptr_t local;
} entered;

static void look_around(void)
{
    _Alignas(32) volatile double four[4] = {1, 2, 3, 4};
    void *frames[64];
    sigset_t mask;
    entered.frame = (uintptr_t)__builtin_frame_address(0);
    entered.aligned = (uintptr_t)four;
    for (int i = 0; i < 4; i++) {
        entered.sum += four[i] * 2;
    }
    entered.frames = backtrace(frames, 64);
    (void)pthread_sigmask(SIG_SETMASK, NULL, &mask);
    entered.usr2_blocked = sigismember(&mask, SIGUSR2) == 1;
    char text[64];
    (void)snprintf(text, sizeof text, "%.3f %Lf", entered.sum, (long double)entered.sum);
    entered.local = (uintptr_t)text;
    switch_to(&contexts[0], &loop);
    switch_leave(&contexts[0], &loop);
}

static void test_a_first_entry_is_aligned_and_on_its_own_stack(void **state)
{
    (void)state;
    /* libgcc is loaded by the first call, which wants more stack than a fiber has */
    void *frame;
    assert_in_range(backtrace(&frame, 1), 1, 1);
    /* every alignment that the lower end and the size may have */
    for (size_t offset = 0; offset < 64; offset += 8) {
        memset(&entered, 0, sizeof entered);
        switch_adopt(&loop);
        uintptr_t low = (uintptr_t)stacks[0] + offset;
        switch_prepare(&contexts[0], stacks[0] + offset, STACK_BYTES - 2 * offset, look_around);
        switch_to(&loop, &contexts[0]);
        assert_in_range(entered.frame, low, low + STACK_BYTES - 2 * offset);
        assert_int_equal(entered.frame % 16, 0);
        assert_int_equal(entered.aligned % 32, 0);
        assert_true(entered.sum == 20.0);
        /* look_around, first_entry, perhaps libc's stub: it ends, and not in the loop's frames */
        assert_in_range(entered.frames, 1, 4);
        if (!KIT_SANITIZED) {
            /* ASan moves locals to a stack of its own */
            uintptr_t parked = (uintptr_t)switch_stack_pointer(&contexts[0]);
            assert_in_range(parked, low, entered.local - 1);
        }
        switch_to(&loop, &contexts[0]);
        switch_forget(&contexts[0]);
    }
}

static void test_a_first_entry_has_the_signal_mask_of_adopt(void **state)
{
    (void)state;
    sigset_t usr2;
    sigset_t before;
    sigemptyset(&usr2);
    sigaddset(&usr2, SIGUSR2);
    memset(&entered, 0, sizeof entered);
    assert_int_equal(pthread_sigmask(SIG_BLOCK, &usr2, &before), 0);
    switch_adopt(&loop);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
    prepare(0, look_around);
    switch_to(&loop, &contexts[0]);
    assert_true(entered.usr2_blocked);
    switch_to(&loop, &contexts[0]);
    switch_forget(&contexts[0]);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
}

/* ------------------------------------------------------------ many */

static int running;
static uint64_t sums[CONTEXTS];
static int ended;

/* Its sum is kept in locals only, in a frame that differs from context to context. */
static void add_up(void)
{
    int self = running;
    uint64_t sum = 0;
    volatile char depth[256];
    memset((void *)(uintptr_t)depth, self, sizeof depth);
    for (uint64_t i = 1; i <= 1000; i++) {
        sum += i * (uint64_t)(self + 1);
        /* every fourth time on to a neighbour, else to the loop */
        int next = (self + 1) % CONTEXTS;
        if (i % 4 == 0 && contexts[next].entry == NULL && sums[next] == 0) {
            running = next;
            switch_to(&contexts[self], &contexts[next]);
        } else {
            switch_to(&contexts[self], &loop);
        }
        assert_int_equal(depth[self], self);
    }
    sums[self] = sum;
    ended++;
    switch_leave(&contexts[self], &loop);
}

static void test_many_contexts_in_any_order(void **state)
{
    (void)state;
    uint64_t random = kit_seed("switch");
    switch_adopt(&loop);
    for (int round = 0; round < 3; round++) {
        ended = 0;
        memset(sums, 0, sizeof sums);
        for (int i = 0; i < CONTEXTS; i++) {
            prepare(i, add_up); /* in the second round on stacks that were used */
        }
        while (ended < CONTEXTS) {
            int next = (int)(kit_random(&random) % CONTEXTS);
            if (sums[next] == 0) {
                running = next;
                switch_to(&loop, &contexts[next]);
            }
        }
        for (int i = 0; i < CONTEXTS; i++) {
            assert_int_equal(sums[i], UINT64_C(500500) * (uint64_t)(i + 1));
            switch_forget(&contexts[i]);
        }
    }
}

static void test_the_switch_has_a_name(void **state)
{
    (void)state;
    printf("switch: %s\n", switch_name());
    assert_in_range(strlen(switch_name()), 1, 32);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_context_keeps_its_own_rounding),
        cmocka_unit_test(test_preserved_registers_survive),
        cmocka_unit_test(test_a_first_entry_is_aligned_and_on_its_own_stack),
        cmocka_unit_test(test_a_first_entry_has_the_signal_mask_of_adopt),
        cmocka_unit_test(test_many_contexts_in_any_order),
        cmocka_unit_test(test_the_switch_has_a_name),
    };
    return cmocka_run_group_tests_name("switch", tests, NULL, NULL);
}
