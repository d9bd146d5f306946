/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property: a fiber runs when it is ready and only then; a park ends by the first
 * of wake, deadline and cancel, and says by which; a sleep is never early; an
 * idle fiber gives its memory back and keeps what it stands on; forty thousand
 * sleepers cost one page each; a broken canary is found at the next park.
 * Method: one scheduler on a virtual clock that the test moves; memory is counted
 * by the kernel (mincore(2), statm); what must die does so in a child.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fiber/fiber.h"
#include "fiber_kit.h"

#define STACK_BYTES ((size_t)65536)
#define TICK_NS (UINT64_C(1) << TIMER_TICK_BITS)
#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)

/* A ucontext_t on the stack, and what tools keep, is larger than what is promised. */
static bool stacks_are_small(void)
{
    return !KIT_SANITIZED && !kit_on_valgrind() && strcmp(switch_name(), "swapcontext") != 0;
}

static struct sched sched;
static char trace[256]; /* what the fibers of a test did, in order */

static void note(const char *what)
{
    strncat(trace, what, sizeof trace - strlen(trace) - 1);
}

static struct fiber *wake_remote_of;

static void wake_remote(struct sched *of, struct fiber *fiber)
{
    (void)of;
    wake_remote_of = fiber;
}

static int setup(void **state)
{
    (void)state;
    trace[0] = '\0';
    kit_virtual_now_ns = 1000 * SECOND;
    struct sched_setup with = {
        .number = 1,
        .stack_bytes = STACK_BYTES,
        .clock_ns = kit_virtual_ns,
        .wake_remote = wake_remote,
    };
    return sched_init(&sched, &with);
}

static int teardown(void **state)
{
    (void)state;
    assert_int_equal(sched.live_count, 0);
    assert_int_equal(sched.stacks.live, 0);
    assert_int_equal(sched.timers.armed, 0);
    assert_true(list_empty(&sched.idle));
    sched_fini(&sched);
    assert_null(sched_current());
    return 0;
}

static struct fiber *spawn(const char *prefix, uint64_t number, void (*entry)(void *),
                           void *argument)
{
    struct fiber *fiber = fiber_spawn(&sched, (struct fiber_name){prefix, number}, entry, argument);
    assert_non_null(fiber);
    return fiber;
}

/* The loop without I/O: run and expire until nothing is ready now. */
static void run(void)
{
    do {
        (void)sched_expire(&sched, kit_virtual_now_ns);
    } while (sched_run(&sched) > 0);
}

static void pass(uint64_t ns)
{
    kit_virtual_now_ns += ns;
    run();
}

/* ------------------------------------------------------------ spawn, yield */

static void say(void *what)
{
    note(what);
    fiber_yield();
    note(what);
}

static void spawn_another(void *what)
{
    note(what);
    spawn("inner", 0, say, (void *)(uintptr_t) "i");
    note(what);
}

static void test_ready_fibers_run_in_turn_once_a_call(void **state)
{
    (void)state;
    spawn("a", 0, say, (void *)(uintptr_t) "a");
    spawn("b", 0, spawn_another, (void *)(uintptr_t) "b");
    assert_string_equal(trace, "");
    assert_int_equal(sched_run(&sched), 2);
    assert_string_equal(trace, "abb");
    assert_int_equal(sched_run(&sched), 2);
    assert_string_equal(trace, "abbai");
    assert_int_equal(sched_run(&sched), 1);
    assert_string_equal(trace, "abbaii");
    assert_int_equal(sched_run(&sched), 0);
    assert_int_equal(sched.spawned, 3);
    assert_int_equal(sched.switches, 5);
    assert_null(fiber_current());
    assert_ptr_equal(sched_current(), &sched);
}

static void look_at_self(void *argument)
{
    struct fiber *self = fiber_current();
    *(struct fiber **)argument = self;
    uintptr_t top = (uintptr_t)self->stack.base + self->stack.size;
    assert_in_range((uintptr_t)self, top - 4096, top - sizeof *self);
    assert_in_range((uintptr_t)__builtin_frame_address(0), (uintptr_t)stack_low(self->stack),
                    (uintptr_t)self - 1);
}

static void test_struct_fiber_is_at_the_top_of_its_stack(void **state)
{
    (void)state;
    struct fiber *seen = NULL;
    struct fiber *fiber = spawn("self", 0, look_at_self, &seen);
    run();
    assert_ptr_equal(seen, fiber);
    /* its stack serves the next one, with a new number */
    struct fiber *again = spawn("self", 0, look_at_self, &seen);
    assert_ptr_equal(again, fiber);
    run();
}

/* ------------------------------------------------------------ park: wake, deadline, cancel */

struct parked {
    int (*park)(const char *, uint64_t);
    uint64_t deadline_ns;
    int result;
    int ended;    /* how many parks have returned */
    bool says_so; /* that it has gone deep */
};

static void park_once(void *argument)
{
    struct parked *parked = argument;
    parked->result = parked->park("test", parked->deadline_ns);
    parked->ended++;
}

static void test_a_wake_ends_a_park_and_only_a_park(void **state)
{
    (void)state;
    struct parked parked = {.park = fiber_park};
    struct fiber *fiber = spawn("p", 0, park_once, &parked);
    fiber_wake(fiber); /* ready: nothing happens, and no wake is kept */
    run();
    assert_int_equal(parked.ended, 0);
    pass(3600 * SECOND);
    assert_int_equal(parked.ended, 0);
    fiber_wake(fiber);
    fiber_wake(fiber);
    assert_int_equal(parked.ended, 0);
    assert_int_equal(sched_run(&sched), 1);
    assert_int_equal(parked.ended, 1);
    assert_int_equal(parked.result, 0);
}

static void test_a_deadline_ends_a_park(void **state)
{
    (void)state;
    static int (*const parks[])(const char *, uint64_t) = {fiber_park, fiber_park_through,
                                                           fiber_park_idle};
    for (int i = 0; i < 3; i++) {
        struct parked parked = {.park = parks[i], .deadline_ns = kit_virtual_now_ns + 50 * MS};
        spawn("p", 0, park_once, &parked);
        run();
        pass(50 * MS - 1);
        assert_int_equal(parked.ended, 0);
        pass(TICK_NS);
        assert_int_equal(parked.ended, 1);
        assert_int_equal(parked.result, -ETIMEDOUT);
    }
    struct parked past = {.park = fiber_park, .deadline_ns = 1};
    spawn("p", 0, park_once, &past);
    run();
    assert_int_equal(past.result, -ETIMEDOUT);
    struct parked never = {.park = fiber_park, .deadline_ns = TIMER_NEVER};
    struct fiber *fiber = spawn("p", 0, park_once, &never);
    run();
    assert_int_equal(timer_wheel_next(&sched.timers), TIMER_NEVER);
    fiber_wake(fiber);
    run();
}

static void test_the_first_of_wake_and_deadline_counts(void **state)
{
    (void)state;
    struct parked parked = {.park = fiber_park, .deadline_ns = kit_virtual_now_ns + 5 * MS};
    struct fiber *fiber = spawn("p", 0, park_once, &parked);
    run();
    fiber_wake(fiber);
    kit_virtual_now_ns += SECOND;
    assert_int_equal(sched_expire(&sched, kit_virtual_now_ns), 0);
    run();
    assert_int_equal(parked.result, 0);

    parked = (struct parked){.park = fiber_park, .deadline_ns = kit_virtual_now_ns + 5 * MS};
    fiber = spawn("p", 0, park_once, &parked);
    run();
    kit_virtual_now_ns += SECOND;
    assert_int_equal(sched_expire(&sched, kit_virtual_now_ns), 1);
    fiber_wake(fiber);
    fiber_cancel(fiber);
    run();
    assert_int_equal(parked.result, -ETIMEDOUT);
}

static void park_thrice(void *argument)
{
    struct parked *parked = argument;
    park_once(parked);
    /* cancelled once is cancelled, but for what must be seen to its end */
    assert_int_equal(fiber_park("again", 0), -ECANCELED);
    assert_int_equal(fiber_park_idle("again", 0), -ECANCELED);
    assert_int_equal(fiber_sleep_until(kit_virtual_now_ns + SECOND), -ECANCELED);
    assert_int_equal(fiber_sleep_until(0), -ECANCELED);
    parked->result = fiber_park_through("through", kit_virtual_now_ns + 10 * MS);
    parked->ended++;
    assert_int_equal(parked->result, -ETIMEDOUT);
    parked->result = fiber_park("after", kit_virtual_now_ns + 10 * MS); /* cancelled for good */
    parked->ended++;
}

static void test_cancel_ends_what_can_be_cancelled(void **state)
{
    (void)state;
    struct parked parked = {.park = fiber_park};
    struct fiber *fiber = spawn("p", 0, park_thrice, &parked);
    run();
    fiber_cancel(fiber);
    run();
    assert_int_equal(parked.ended, 1);
    assert_int_equal(parked.result, -ECANCELED);
    fiber_cancel(fiber); /* parked through: not ended by it */
    run();
    assert_int_equal(parked.ended, 1);
    pass(11 * MS);
    assert_int_equal(parked.ended, 3);
    assert_int_equal(parked.result, -ECANCELED);
}

static void *wake_from_here(void *fiber)
{
    assert_null(fiber_current());
    assert_null(sched_current());
    fiber_wake(fiber);
    return NULL;
}

static void test_a_foreign_thread_wakes_by_the_carriers_hand(void **state)
{
    (void)state;
    struct parked parked = {.park = fiber_park};
    struct fiber *fiber = spawn("p", 0, park_once, &parked);
    run();
    wake_remote_of = NULL;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, wake_from_here, fiber), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_ptr_equal(wake_remote_of, fiber);
    run();
    assert_int_equal(parked.ended, 0);
    fiber_wake(fiber);
    run();
    assert_int_equal(parked.ended, 1);
}

/* ------------------------------------------------------------ sleep */

struct sleeper {
    uint64_t deadline_ns;
    uint64_t woke_ns;
    int result;
};

static void sleep_once(void *argument)
{
    struct sleeper *sleeper = argument;
    sleeper->result = fiber_sleep_until(sleeper->deadline_ns);
    sleeper->woke_ns = kit_virtual_now_ns;
}

static void test_a_sleep_is_never_early_and_counts_its_lateness(void **state)
{
    (void)state;
    enum { COUNT = 200 };
    static struct sleeper sleepers[COUNT];
    uint64_t random = kit_seed("sleep");
    uint64_t start_ns = kit_virtual_now_ns;
    for (int i = 0; i < COUNT; i++) {
        sleepers[i] = (struct sleeper){.deadline_ns = start_ns + 1 + kit_random(&random) % SECOND};
        struct fiber *fiber = spawn("s", (uint64_t)i, sleep_once, &sleepers[i]);
        run();
        fiber_wake(fiber); /* a wake that has nothing to do with it */
    }
    while (sched.live_count > 0) {
        /* the loop waits just until the next timer */
        run();
        uint64_t next_ns = timer_wheel_next(&sched.timers);
        if (next_ns != TIMER_NEVER) {
            kit_virtual_now_ns = next_ns;
        }
    }
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(sleepers[i].result, 0);
        assert_in_range(sleepers[i].woke_ns, sleepers[i].deadline_ns,
                        sleepers[i].deadline_ns + TICK_NS);
    }
    assert_int_equal(latency_count(&sched.lateness), COUNT);
    assert_in_range(sched.lateness.max, 0, TICK_NS);

    struct sleeper late = {.deadline_ns = kit_virtual_now_ns + MS};
    spawn("s", 0, sleep_once, &late);
    run();
    pass(MS + 3000 * 1000);
    assert_int_equal(latency_count(&sched.lateness), COUNT + 1);
    assert_in_range(sched.lateness.max, 3000 * 1000, 3000 * 1000 + TICK_NS);
    struct sleeper past = {.deadline_ns = kit_virtual_now_ns};
    spawn("s", 0, sleep_once, &past);
    assert_int_equal(sched_run(&sched), 1);
    assert_int_equal(past.result, 0);
}

/* ------------------------------------------------------------ figures and words */

static uint64_t run_for_ns;

static void use_time(void *argument)
{
    (void)argument;
    for (int i = 0; i < 2; i++) {
        kit_virtual_now_ns += run_for_ns;
        assert_int_equal(fiber_park("test", 0), 0);
    }
}

static void test_figures_of_time(void **state)
{
    (void)state;
    run_for_ns = 7 * MS;
    struct fiber *fiber = spawn("t", 0, use_time, NULL);
    kit_virtual_now_ns += 3 * MS;
    run();
    assert_int_equal(fiber->run_ns, 7 * MS);
    assert_int_equal(fiber->parked_ns, 3 * MS);
    kit_virtual_now_ns += 20 * MS;
    fiber_wake(fiber);
    kit_virtual_now_ns += 2 * MS;
    run();
    assert_int_equal(fiber->run_ns, 14 * MS);
    assert_int_equal(fiber->parked_ns, 25 * MS);
    assert_int_equal(fiber->switches, 2);
    assert_int_equal(fiber->state_since_ns, kit_virtual_now_ns);
    assert_int_equal(sched.run_started_ns, 0);
    assert_int_equal(sched.run_fiber_id, fiber->id);
    fiber_wake(fiber);
    run();
}

static void describe_self(void *argument)
{
    (void)fiber_describe(fiber_current(), argument, FIBER_DESCRIBE_SIZE);
    assert_true(sched.run_started_ns != 0);
    (void)fiber_park("recv", 0);
}

static void take_line(void *sink, const char *text, size_t length)
{
    assert_int_equal(strlen(text), length);
    strncat(sink, text, length);
    strcat(sink, "\n");
}

static void test_words(void **state)
{
    (void)state;
    char text[FIBER_DESCRIBE_SIZE];
    char wanted[FIBER_DESCRIBE_SIZE];
    struct fiber *conn = spawn("http-8080-conn-", 12, describe_self, text);
    unsigned long long id = conn->id;
    run();
    (void)snprintf(wanted, sizeof wanted, "Fiber[#%llu,http-8080-conn-12]/runnable@carrier-1", id);
    assert_string_equal(text, wanted);
    (void)snprintf(wanted, sizeof wanted, "Fiber[#%llu,http-8080-conn-12]/parked(recv)@carrier-1",
                   id);
    assert_int_equal(fiber_describe(conn, text, sizeof text), strlen(wanted));
    assert_string_equal(text, wanted);
    assert_int_equal(fiber_format_name(conn, text, FIBER_NAME_SIZE), 17);
    assert_string_equal(text, "http-8080-conn-12");
    /* cut to what there is */
    assert_int_equal(fiber_format_name(conn, text, 5), 4);
    assert_string_equal(text, "http");
    assert_int_equal(fiber_format_name(conn, text, 1), 0);
    assert_string_equal(text, "");
    assert_int_equal(fiber_format_name(conn, text, 0), 0);

    struct fiber *ready = spawn("tidy", 0, describe_self, text);
    char dump[512] = "";
    char lines[512];
    kit_virtual_now_ns += 1500 * MS;
    sched_dump(&sched, take_line, dump);
    (void)snprintf(lines, sizeof lines,
                   "Fiber[#%llu,http-8080-conn-12]/parked(recv)@carrier-1 for 1500 ms, stack 64 "
                   "KiB, 1 switch\n"
                   "Fiber[#%llu,tidy]/runnable@carrier-1 for 1500 ms, stack 64 KiB, 0 switches\n",
                   id, (unsigned long long)ready->id);
    assert_string_equal(dump, lines);
    run();
    fiber_wake(conn);
    fiber_wake(ready);
    run();
}

/* ------------------------------------------------------------ memory */

static void use_and_park(void *argument)
{
    struct parked *parked = argument;
    struct fiber *self = fiber_current();
    /* as deep frames have left it */
    char *low = stack_low(self->stack);
    char *here = (char *)__builtin_frame_address(0) - 8192;
    for (char *at = low; at < here; at += 64) {
        *(volatile char *)at = 1;
    }
    if (parked->says_so) {
        fiber_populate(self);
    }
    volatile uint64_t local = UINT64_C(0x1122334455667788);
    while (parked->ended == 0) {
        parked->result = parked->park("idle", 0);
        assert_true(local == UINT64_C(0x1122334455667788));
    }
}

static void test_an_idle_fiber_gives_its_memory_back_within_two_seconds(void **state)
{
    (void)state;
    enum { COUNT = 700 };
    size_t whole = STACK_BYTES - STACK_GUARD_BYTES - 8192 - 4096;
    static struct parked idle[COUNT];
    static struct fiber *fibers[COUNT];
    struct parked busy = {.park = fiber_park};
    struct fiber *not_idle = spawn("b", 0, use_and_park, &busy);
    for (int i = 0; i < COUNT; i++) {
        idle[i] = (struct parked){.park = fiber_park_idle};
        fibers[i] = spawn("i", (uint64_t)i, use_and_park, &idle[i]);
    }
    run();
    uint64_t idle_since_ns = kit_virtual_now_ns;
    for (int i = 0; i < COUNT; i++) {
        assert_in_range(stack_used_bytes(fibers[i]->stack), whole, STACK_BYTES);
    }
    /* as the loop does: whenever it is told to */
    unsigned calls = 0;
    uint64_t again_ns = sched_tidy(&sched, kit_virtual_now_ns);
    while (again_ns != TIMER_NEVER) {
        assert_in_range(again_ns, idle_since_ns + SECOND, idle_since_ns + 2 * SECOND);
        kit_virtual_now_ns = again_ns > kit_virtual_now_ns ? again_ns : kit_virtual_now_ns;
        again_ns = sched_tidy(&sched, kit_virtual_now_ns);
        calls++;
    }
    assert_in_range(calls, 3, 4); /* in batches */
    for (int i = 0; i < COUNT; i++) {
        assert_in_range(stack_used_bytes(fibers[i]->stack), 4096,
                        stacks_are_small() ? 4096 : 12288);
    }
    assert_in_range(stack_used_bytes(not_idle->stack), whole, STACK_BYTES);

    /* woken, it runs on; parked idle again, it is trimmed again and not before */
    fiber_wake(fibers[0]);
    run();
    assert_int_equal(sched_tidy(&sched, kit_virtual_now_ns) > kit_virtual_now_ns, 1);
    kit_virtual_now_ns += SECOND;
    fiber_wake(fibers[0]); /* back to work in time: nothing is given back */
    assert_int_equal(sched_tidy(&sched, kit_virtual_now_ns + SECOND), TIMER_NEVER);

    busy.ended = 1;
    fiber_wake(not_idle);
    for (int i = 0; i < COUNT; i++) {
        idle[i].ended = 1;
        fiber_wake(fibers[i]);
    }
    run();
    /* and what they leave behind goes back too, but for the hot stacks */
    again_ns = sched_tidy(&sched, kit_virtual_now_ns);
    while (again_ns != TIMER_NEVER) {
        kit_virtual_now_ns = again_ns > kit_virtual_now_ns ? again_ns : kit_virtual_now_ns;
        again_ns = sched_tidy(&sched, kit_virtual_now_ns);
    }
    assert_int_equal(stack_pool_dirty(&sched.stacks), 0);
    assert_int_equal(sched.stacks.free_clean, COUNT + 1 - STACK_HOT);
}

/* As the loop does, until there is nothing more to do. */
static void tidy_up(void)
{
    uint64_t again_ns = sched_tidy(&sched, kit_virtual_now_ns);
    while (again_ns != TIMER_NEVER) {
        kit_virtual_now_ns = again_ns > kit_virtual_now_ns ? again_ns : kit_virtual_now_ns;
        again_ns = sched_tidy(&sched, kit_virtual_now_ns);
    }
}

static void test_a_plain_park_of_a_fiber_that_went_deep_gives_back_too(void **state)
{
    (void)state;
    size_t whole = STACK_BYTES - STACK_GUARD_BYTES - 8192 - 4096;
    struct parked said = {.park = fiber_park, .says_so = true};
    struct parked through = {.park = fiber_park_through, .says_so = true};
    struct parked silent = {.park = fiber_park};
    struct parked *parked[] = {&said, &through, &silent};
    struct fiber *fibers[3];
    for (int i = 0; i < 3; i++) {
        fibers[i] = spawn("r", 0, use_and_park, parked[i]);
    }
    run();
    tidy_up();
    for (int i = 0; i < 2; i++) {
        assert_in_range(stack_used_bytes(fibers[i]->stack), 4096,
                        stacks_are_small() ? 4096 : 12288);
        assert_true(fibers[i]->stack.clean);
    }
    assert_in_range(stack_used_bytes(fibers[2]->stack), whole, STACK_BYTES);
    for (int i = 0; i < 3; i++) {
        parked[i]->ended = 1;
        fiber_wake(fibers[i]);
    }
    run();
}

/* Frames as deep as they come, each with a pattern of its own that must be there after each park. */
enum { FRAME_WORDS = 100 };

static void fill_and_park(unsigned depth, uint64_t seed)
{
    volatile uint64_t words[FRAME_WORDS];
    for (unsigned i = 0; i < FRAME_WORDS; i++) {
        words[i] = seed * 1000 + i;
    }
    if (depth > 0) {
        fill_and_park(depth - 1, seed + 1);
        for (unsigned i = 0; i < FRAME_WORDS; i++) {
            assert_true(words[i] == seed * 1000 + i);
        }
    }
    fiber_populate(fiber_current()); /* what the deeper frames used may go while we are parked */
    assert_int_equal(fiber_park("deep", 0), 0);
    for (unsigned i = 0; i < FRAME_WORDS; i++) {
        assert_true(words[i] == seed * 1000 + i);
    }
}

static void go_deep(void *argument)
{
    fill_and_park(30, (uintptr_t)argument);
}

static void test_no_live_byte_is_given_back_however_deep_the_park(void **state)
{
    (void)state;
    enum { COUNT = 20, DEPTH = 31 };
    struct fiber *fibers[COUNT];
    for (int i = 0; i < COUNT; i++) {
        fibers[i] = spawn("d", 0, go_deep, (void *)(uintptr_t)(i * 100));
    }
    run();
    size_t before = STACK_BYTES + 1;
    for (int depth = 0; depth < DEPTH; depth++) {
        for (int i = 0; i < COUNT; i++) {
            const char *lowest = switch_stack_pointer(&fibers[i]->context);
            size_t live = (size_t)(fibers[i]->stack.base + STACK_BYTES - lowest);
            tidy_up();
            size_t used = stack_used_bytes(fibers[i]->stack);
            assert_in_range(used, live, live + 4095); /* each page with a live byte, and no other */
            if (i == 0) {
                assert_in_range(used, 4096, before);
                before = used;
            }
        }
        for (int i = 0; i < COUNT; i++) {
            fiber_wake(fibers[i]);
        }
        run();
    }
    assert_int_equal(sched.live_count, 0);
}

static void sleep_long(void *argument)
{
    (void)argument;
    assert_int_equal(fiber_sleep_until(kit_virtual_now_ns + 5 * SECOND), 0);
}

static void test_forty_thousand_sleepers_cost_a_page_each(void **state)
{
    (void)state;
    enum { COUNT = 40000 };
    /* TSan knows 8000 threads, fibers included; mprotect guards end at half the mappings */
    int count = KIT_SANITIZED || !sched.stacks.guard.markers ? 5000 : COUNT;
    count = kit_on_valgrind() ? 500 : count;
    size_t before = kit_resident_bytes();
    for (int i = 0; i < count; i++) {
        spawn("sleeper-", (uint64_t)i, sleep_long, NULL);
    }
    run();
    assert_int_equal(sched.live_count, count);
    assert_int_equal(sched.timers.armed, count);
    double each = (double)(kit_resident_bytes() - before) / count / 1024;
    printf("%d sleeping fibers: %.2f KiB each\n", count, each);
    if (stacks_are_small()) {
        assert_true(each <= 4.3);
    }
    pass(5 * SECOND - 1);
    assert_int_equal(sched.live_count, count);
    pass(TICK_NS);
    assert_int_equal(sched.live_count, 0);
}

/* ------------------------------------------------------------ what must die */

static void overrun(void *argument)
{
    (void)argument;
    /* a caller's buffer overruns upwards, into struct fiber */
    memset(fiber_current(), 0, 4);
    (void)fiber_park("never", 0);
}

static void park_in_the_loop(void *argument)
{
    (void)argument;
    (void)fiber_park("never", 0);
}

static void run_overrun(void *argument)
{
    (void)argument;
    spawn("victim-", 7, overrun, NULL);
    run();
}

static void fini_with_a_fiber(void *argument)
{
    (void)argument;
    spawn("left", 0, say, (void *)(uintptr_t) "x");
    sched_fini(&sched);
}

static void test_misuse_dies_and_names_the_fiber(void **state)
{
    (void)state;
    static const struct {
        void (*body)(void *);
        const char *says[2];
    } cases[] = {
        {run_overrun, {"canary", ",victim-7]/runnable@carrier-1"}},
        {park_in_the_loop, {"fiber != NULL", "loop of carrier-1"}},
        {fini_with_a_fiber, {"live_count == 0", "loop of carrier-1"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[4096];
        int status = kit_child(cases[i].body, NULL, text, sizeof text);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), SIGABRT);
        for (size_t j = 0; j < 2; j++) {
            if (strstr(text, cases[i].says[j]) == NULL) {
                fail_msg("\"%s\" is not in \"%s\"", cases[i].says[j], text);
            }
        }
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_ready_fibers_run_in_turn_once_a_call),
        TEST(test_struct_fiber_is_at_the_top_of_its_stack),
        TEST(test_a_wake_ends_a_park_and_only_a_park),
        TEST(test_a_deadline_ends_a_park),
        TEST(test_the_first_of_wake_and_deadline_counts),
        TEST(test_cancel_ends_what_can_be_cancelled),
        TEST(test_a_foreign_thread_wakes_by_the_carriers_hand),
        TEST(test_a_sleep_is_never_early_and_counts_its_lateness),
        TEST(test_figures_of_time),
        TEST(test_words),
        TEST(test_an_idle_fiber_gives_its_memory_back_within_two_seconds),
        TEST(test_a_plain_park_of_a_fiber_that_went_deep_gives_back_too),
        TEST(test_no_live_byte_is_given_back_however_deep_the_park),
        TEST(test_forty_thousand_sleepers_cost_a_page_each),
        TEST(test_misuse_dies_and_names_the_fiber),
    };
    return cmocka_run_group_tests_name("fiber", tests, NULL, NULL);
}
