/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property: locks, permits and items go to those who wait in the order in which they
 * came; a deadline or a cancel ends the wait of that one alone and loses nothing; a
 * wait that closes a cycle of owners is refused and told; misuse ends the process
 * with a message. Method: one scheduler with a virtual clock, fibers step by step.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/time.h"
#include "fiber/channel.h"
#include "fiber/fiber.h"
#include "fiber/mutex.h"
#include "fiber/semaphore.h"
#include "fiber_kit.h"

#define FIBERS_MAX 8

static struct sched sched;
static char trace[512];
static struct mutex mutex, other;
static struct condition condition;
static struct semaphore semaphore;
static struct channel channel;

/* One fiber of a test: what it does, and how it ended. */
struct actor {
    char letter;
    uint64_t deadline_ns;
    struct fiber *fiber;
    int result;
    bool ended;
    void *item;
};

static struct actor actors[FIBERS_MAX];

static void note(char letter)
{
    size_t length = strlen(trace);
    assert_in_range(length, 0, sizeof(trace) - 2);
    trace[length] = letter;
    trace[length + 1] = '\0';
}

static int setup(void **state)
{
    (void)state;
    struct log_setup quiet = {.level = LOG_OFF};
    log_init(&quiet);
    trace[0] = '\0';
    kit_virtual_now_ns = 1000 * NS_PER_S;
    memset(actors, 0, sizeof(actors));
    for (int i = 0; i < FIBERS_MAX; i++) {
        actors[i].letter = (char)('a' + i);
    }
    struct sched_setup with = {.stack_bytes = 65536, .clock_ns = kit_virtual_ns};
    mutex_init(&mutex, "one");
    mutex_init(&other, "other");
    condition_init(&condition, &mutex);
    semaphore_init(&semaphore, "permits", 0);
    assert_int_equal(channel_init(&channel, "items", 2), 0);
    return sched_init(&sched, &with);
}

static int teardown(void **state)
{
    (void)state;
    assert_int_equal(sched.live_count, 0);
    assert_int_equal(sched.timers.armed, 0);
    sched_fini(&sched);
    condition_fini(&condition);
    mutex_fini(&mutex);
    mutex_fini(&other);
    semaphore_fini(&semaphore);
    channel_fini(&channel);
    return 0;
}

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

static struct actor *spawn(unsigned index, void (*entry)(void *))
{
    struct actor *actor = &actors[index];
    actor->fiber = fiber_spawn(&sched, (struct fiber_name){"actor-", index + 1}, entry, actor);
    assert_non_null(actor->fiber);
    run();
    return actor;
}

static void hold_until_woken(void)
{
    (void)fiber_park_through("holding", 0);
}

/* ------------------------------------------------------------ mutex */

static void lock_and_hold(void *argument)
{
    struct actor *actor = argument;
    actor->result = mutex_lock_until(&mutex, actor->deadline_ns);
    if (actor->result == 0) {
        note(actor->letter);
        hold_until_woken();
        mutex_unlock(&mutex);
    }
    actor->ended = true;
}

static void test_a_lock_goes_to_those_who_wait_in_their_order(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 6; i++) {
        spawn(i, lock_and_hold);
    }
    for (unsigned i = 0; i < 6; i++) {
        assert_int_equal(strlen(trace), i + 1);
        fiber_wake(actors[i].fiber);
        run();
    }
    assert_string_equal(trace, "abcdef");
    assert_int_equal(atomic_load(&mutex.word), 0);
}

static void lock_thrice(void *argument)
{
    struct actor *actor = argument;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(mutex_lock(&mutex), 0);
        note(actor->letter);
        mutex_unlock(&mutex);
    }
}

static void test_one_that_unlocks_and_locks_again_overtakes_nobody(void **state)
{
    (void)state;
    spawn(0, lock_and_hold);
    spawn(1, lock_thrice);
    spawn(2, lock_thrice);
    fiber_wake(actors[0].fiber);
    run();
    assert_string_equal(trace, "abcbcbc");
}

static void test_a_deadline_or_cancel_ends_one_wait_and_the_order_stays(void **state)
{
    (void)state;
    actors[2].deadline_ns = kit_virtual_now_ns + NS_PER_MS;
    for (unsigned i = 0; i < 5; i++) {
        spawn(i, lock_and_hold);
    }
    pass(NS_PER_MS - 200000);
    assert_false(actors[2].ended);
    pass(NS_PER_MS);
    assert_true(actors[2].ended);
    assert_int_equal(actors[2].result, -ETIMEDOUT);
    fiber_cancel(actors[1].fiber);
    run();
    assert_true(actors[1].ended);
    assert_int_equal(actors[1].result, -ECANCELED);
    fiber_wake(actors[0].fiber);
    run();
    fiber_wake(actors[3].fiber);
    run();
    fiber_wake(actors[4].fiber);
    run();
    assert_string_equal(trace, "ade");
}

static void test_when_the_last_waiter_gives_up_the_lock_is_free_to_unlock_at_once(void **state)
{
    (void)state;
    actors[1].deadline_ns = kit_virtual_now_ns + NS_PER_MS;
    spawn(0, lock_and_hold);
    spawn(1, lock_and_hold);
    assert_int_equal(atomic_load(&mutex.word) & 1, 1);
    pass(2 * NS_PER_MS);
    assert_int_equal(atomic_load(&mutex.word), (uintptr_t)&actors[0].fiber->task);
    fiber_wake(actors[0].fiber);
    run();
    assert_int_equal(atomic_load(&mutex.word), 0);
}

static void unlock_and_cancel_next(void *argument)
{
    struct actor *actor = argument;
    assert_int_equal(mutex_lock(&mutex), 0);
    hold_until_woken();
    mutex_unlock(&mutex);
    fiber_cancel(actors[1].fiber); /* which owns it by now, and has not run yet */
    actor->ended = true;
}

static void
test_a_lock_that_was_handed_over_is_kept_though_a_cancel_comes_before_the_run(void **state)
{
    (void)state;
    spawn(0, unlock_and_cancel_next);
    spawn(1, lock_and_hold);
    spawn(2, lock_and_hold);
    fiber_wake(actors[0].fiber);
    run();
    assert_false(actors[1].ended);
    fiber_wake(actors[1].fiber);
    run();
    assert_int_equal(actors[1].result, 0);
    fiber_wake(actors[2].fiber);
    run();
    assert_string_equal(trace, "bc");
}

static void yield_ten_times(void *argument)
{
    struct actor *actor = argument;
    for (int i = 0; i < 10; i++) {
        note(actor->letter);
        fiber_yield();
    }
}

static void test_a_new_owner_runs_before_others_that_are_ready(void **state)
{
    (void)state;
    spawn(0, lock_and_hold);
    spawn(1, lock_and_hold);
    fiber_wake(actors[0].fiber);
    for (unsigned i = 2; i < 5; i++) {
        actors[i].fiber =
            fiber_spawn(&sched, (struct fiber_name){"busy-", i}, yield_ten_times, &actors[i]);
    }
    (void)sched_run(&sched);
    assert_string_equal(trace, "abcde");
    fiber_wake(actors[1].fiber);
    run();
}

static void try_lock(void *argument)
{
    struct actor *actor = argument;
    actor->result = mutex_try_lock(&mutex) ? 0 : -EBUSY;
    if (actor->result == 0) {
        assert_true(mutex_is_mine(&mutex));
        mutex_unlock(&mutex);
    }
    assert_false(mutex_is_mine(&mutex));
}

static void test_try_lock_takes_what_is_free(void **state)
{
    (void)state;
    assert_int_equal(spawn(0, try_lock)->result, 0);
    spawn(1, lock_and_hold);
    assert_int_equal(spawn(2, try_lock)->result, -EBUSY);
    fiber_wake(actors[1].fiber);
    run();
    assert_int_equal(spawn(3, try_lock)->result, 0);
}

/* ------------------------------------------------------------ cycles */

static void lock_in_turn(void *argument)
{
    struct actor *actor = argument;
    bool odd = actor->letter == 'b';
    assert_int_equal(mutex_lock(odd ? &other : &mutex), 0);
    hold_until_woken();
    actor->result = mutex_lock(odd ? &mutex : &other);
    if (actor->result == 0) {
        mutex_unlock(odd ? &mutex : &other);
    }
    mutex_unlock(odd ? &other : &mutex);
    actor->ended = true;
}

static void lock_twice(void *argument)
{
    struct actor *actor = argument;
    assert_int_equal(mutex_lock(&mutex), 0);
    actor->result = mutex_lock(&mutex);
    mutex_unlock(&mutex);
}

static void log_a_cycle(void *argument)
{
    (void)argument;
    struct log_setup loud = {.level = LOG_INFO};
    (void)dup2(STDERR_FILENO, STDOUT_FILENO);
    log_init(&loud);
    spawn(0, lock_in_turn);
    spawn(1, lock_in_turn);
    fiber_wake(actors[0].fiber);
    run();
    fiber_wake(actors[1].fiber);
    run();
}

static void test_a_wait_that_closes_a_cycle_is_refused_and_the_others_go_on(void **state)
{
    (void)state;
    char text[4096];
    spawn(0, lock_in_turn);
    spawn(1, lock_in_turn);
    fiber_wake(actors[0].fiber);
    run();
    assert_false(actors[0].ended);
    fiber_wake(actors[1].fiber);
    run();
    assert_int_equal(actors[1].result, -EDEADLK);
    assert_int_equal(actors[0].result, 0);
    assert_true(actors[0].ended && actors[1].ended);
    memset(actors, 0, sizeof(actors));
    actors[0].letter = 'a';
    actors[1].letter = 'b';
    assert_int_equal(kit_child(log_a_cycle, NULL, text, sizeof(text)), 0);
    const char *line = strstr(text, "deadlock: Fiber[#");
    if (line == NULL || strstr(line, "actor-2] wants \"one\", held by Fiber[#") == NULL ||
        strstr(line, "actor-1], which waits for \"other\", held by Fiber[#") == NULL) {
        fail_msg("%s", text);
    }
}

static void hold_other_and_wait_for_a_signal(void *argument)
{
    struct actor *actor = argument;
    assert_int_equal(mutex_lock(&other), 0);
    assert_int_equal(mutex_lock(&mutex), 0);
    actor->result = condition_wait(&condition, actor->deadline_ns);
    assert_true(mutex_is_mine(&mutex));
    mutex_unlock(&mutex);
    mutex_unlock(&other);
    actor->ended = true;
}

static void lock_both(void *argument)
{
    struct actor *actor = argument;
    assert_int_equal(mutex_lock(&mutex), 0);
    actor->result = mutex_lock_until(&other, actor->deadline_ns);
    mutex_unlock(&mutex);
    actor->ended = true;
}

static void close_a_cycle(void *argument)
{
    (void)argument;
    actors[0].deadline_ns = kit_virtual_now_ns + 10 * NS_PER_MS;
    actors[1].deadline_ns = kit_virtual_now_ns + 50 * NS_PER_MS;
    actors[2].deadline_ns = kit_virtual_now_ns + 30 * NS_PER_MS;
    spawn(0, hold_other_and_wait_for_a_signal);
    spawn(1, lock_both);
    pass(11 * NS_PER_MS); /* now each of the two waits for the other's */
    spawn(2, lock_and_hold);
    assert_false(actors[0].ended || actors[1].ended || actors[2].ended);
    pass(20 * NS_PER_MS);
    assert_int_equal(actors[2].result, -ETIMEDOUT);
    pass(20 * NS_PER_MS);
    assert_int_equal(actors[1].result, -ETIMEDOUT);
    assert_int_equal(actors[0].result, -ETIMEDOUT);
    assert_true(actors[0].ended && actors[1].ended);
}

static void log_a_late_cycle(void *argument)
{
    struct log_setup loud = {.level = LOG_INFO};
    (void)dup2(STDERR_FILENO, STDOUT_FILENO);
    log_init(&loud);
    close_a_cycle(argument);
}

static void test_a_cycle_that_a_condition_s_deadline_closed_held_all_locks_for_ever(void **state)
{
    (void)state;
    char text[4096];
    alarm(20); /* it was a loop */
    close_a_cycle(NULL);
    alarm(0);
    memset(actors, 0, sizeof(actors));
    assert_int_equal(kit_child(log_a_late_cycle, NULL, text, sizeof(text)), 0);
    const char *line = strstr(text, "deadlock: Fiber[#");
    if (line == NULL || strstr(line, " wants \"one\", held by Fiber[#") == NULL ||
        strstr(line, ", which waits for \"other\", held by Fiber[#") == NULL) {
        fail_msg("%s", text);
    }
}

static void test_locking_ones_own_lock_again_is_a_deadlock(void **state)
{
    (void)state;
    assert_int_equal(spawn(0, lock_twice)->result, -EDEADLK);
    assert_int_equal(atomic_load(&mutex.word), 0);
}

/* ------------------------------------------------------------ condition */

static void wait_for_signal(void *argument)
{
    struct actor *actor = argument;
    assert_int_equal(mutex_lock(&mutex), 0);
    actor->result = condition_wait(&condition, actor->deadline_ns);
    assert_true(mutex_is_mine(&mutex));
    note(actor->letter);
    mutex_unlock(&mutex);
    actor->ended = true;
}

static void signal_one(void *argument)
{
    struct actor *actor = argument;
    assert_int_equal(mutex_lock(&mutex), 0);
    condition_signal(&condition);
    note(actor->letter); /* before any that it signalled: it holds the mutex */
    mutex_unlock(&mutex);
}

static void signal_all(void *argument)
{
    struct actor *actor = argument;
    assert_int_equal(mutex_lock(&mutex), 0);
    condition_broadcast(&condition);
    note(actor->letter);
    mutex_unlock(&mutex);
}

static void test_signals_go_to_those_who_wait_in_their_order(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        spawn(i, wait_for_signal);
    }
    spawn(4, signal_one);
    assert_string_equal(trace, "ea");
    spawn(5, signal_all);
    assert_string_equal(trace, "eafbcd");
}

static void test_a_wait_for_a_signal_ends_at_its_deadline_with_the_mutex_held(void **state)
{
    (void)state;
    actors[0].deadline_ns = kit_virtual_now_ns + NS_PER_MS;
    spawn(0, wait_for_signal);
    spawn(1, wait_for_signal);
    spawn(2, wait_for_signal);
    spawn(3, lock_and_hold); /* holds it over the deadline */
    pass(2 * NS_PER_MS);
    assert_false(actors[0].ended);
    fiber_cancel(actors[1].fiber);
    run();
    assert_false(actors[1].ended);
    fiber_wake(actors[3].fiber);
    run();
    assert_int_equal(actors[0].result, -ETIMEDOUT);
    assert_int_equal(actors[1].result, -ECANCELED);
    assert_false(actors[2].ended);
    spawn(4, signal_one);
    assert_int_equal(actors[2].result, 0);
    assert_string_equal(trace, "dabec");
}

static void signal_and_hold(void *argument)
{
    (void)argument;
    assert_int_equal(mutex_lock(&mutex), 0);
    condition_signal(&condition);
    hold_until_woken();
    mutex_unlock(&mutex);
}

static void test_a_signal_that_came_before_the_deadline_counts(void **state)
{
    (void)state;
    actors[0].deadline_ns = kit_virtual_now_ns + NS_PER_MS;
    spawn(0, wait_for_signal);
    spawn(1, signal_and_hold);
    pass(2 * NS_PER_MS);
    assert_false(actors[0].ended);
    fiber_wake(actors[1].fiber);
    run();
    assert_true(actors[0].ended);
    assert_int_equal(actors[0].result, 0);
}

/* ------------------------------------------------------------ semaphore */

static void take_permit(void *argument)
{
    struct actor *actor = argument;
    actor->result = semaphore_take(&semaphore, actor->deadline_ns);
    if (actor->result == 0) {
        note(actor->letter);
    }
    actor->ended = true;
}

static void test_permits_go_to_those_who_wait_in_their_order(void **state)
{
    (void)state;
    actors[1].deadline_ns = kit_virtual_now_ns + NS_PER_MS;
    for (unsigned i = 0; i < 5; i++) {
        spawn(i, take_permit);
    }
    pass(2 * NS_PER_MS);
    assert_int_equal(actors[1].result, -ETIMEDOUT);
    fiber_cancel(actors[3].fiber);
    run();
    assert_int_equal(actors[3].result, -ECANCELED);
    for (int i = 0; i < 4; i++) {
        semaphore_give(&semaphore);
    }
    run();
    assert_string_equal(trace, "ace");
    assert_true(semaphore_try_take(&semaphore));
    assert_false(semaphore_try_take(&semaphore));
}

/* ------------------------------------------------------------ channel */

static void send_item(void *argument)
{
    struct actor *actor = argument;
    actor->result = channel_send(&channel, actor, actor->deadline_ns);
    actor->ended = true;
}

static void receive_item(void *argument)
{
    struct actor *actor = argument;
    actor->result = channel_receive(&channel, &actor->item, actor->deadline_ns);
    if (actor->result == 0) {
        note(((struct actor *)actor->item)->letter);
    }
    actor->ended = true;
}

static void test_items_come_in_the_order_in_which_they_were_sent(void **state)
{
    (void)state;
    actors[3].deadline_ns = kit_virtual_now_ns + NS_PER_MS;
    for (unsigned i = 0; i < 5; i++) {
        spawn(i, send_item);
    }
    assert_true(actors[1].ended);  /* two fit in */
    assert_false(actors[2].ended); /* the others wait */
    pass(2 * NS_PER_MS);
    assert_int_equal(actors[3].result, -ETIMEDOUT);
    for (int i = 0; i < 4; i++) {
        spawn(6, receive_item);
    }
    assert_string_equal(trace, "abce");
    assert_true(actors[2].ended && actors[4].ended);
}

static void test_receivers_are_served_in_their_order(void **state)
{
    (void)state;
    spawn(0, receive_item);
    spawn(1, receive_item);
    spawn(2, receive_item);
    fiber_cancel(actors[1].fiber);
    run();
    assert_int_equal(actors[1].result, -ECANCELED);
    spawn(3, send_item);
    spawn(4, send_item);
    assert_ptr_equal(actors[0].item, &actors[3]);
    assert_ptr_equal(actors[2].item, &actors[4]);
}

static void close_channel(void *argument)
{
    (void)argument;
    channel_close(&channel);
}

static void test_a_closed_channel_gives_what_it_holds_and_refuses_the_rest(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        spawn(i, send_item);
    }
    spawn(7, close_channel);
    assert_int_equal(actors[2].result, -EPIPE);
    assert_int_equal(actors[3].result, -EPIPE);
    assert_int_equal(spawn(4, send_item)->result, -EPIPE);
    assert_int_equal(spawn(5, receive_item)->result, 0);
    assert_int_equal(spawn(5, receive_item)->result, 0);
    assert_int_equal(spawn(5, receive_item)->result, -EPIPE);
    assert_string_equal(trace, "ab");
}

static void test_closing_ends_the_wait_of_receivers(void **state)
{
    (void)state;
    spawn(0, receive_item);
    spawn(1, receive_item);
    spawn(7, close_channel);
    assert_int_equal(actors[0].result, -EPIPE);
    assert_int_equal(actors[1].result, -EPIPE);
}

/* ------------------------------------------------------------ misuse */

static void unlock_unheld(void *argument)
{
    (void)argument;
    mutex_unlock(&mutex);
}

static void end_holding(void *argument)
{
    (void)argument;
    assert_int_equal(mutex_lock(&mutex), 0);
}

static void unlock_foreign(void *argument)
{
    (void)argument;
    spawn(0, lock_and_hold);
    spawn(1, unlock_unheld);
}

static void unlock_free(void *argument)
{
    (void)argument;
    spawn(0, unlock_unheld);
}

static void destroy_held(void *argument)
{
    (void)argument;
    spawn(0, lock_and_hold);
    mutex_fini(&mutex);
}

static void destroy_waited_for(void *argument)
{
    (void)argument;
    spawn(0, lock_and_hold);
    spawn(1, lock_and_hold);
    mutex_fini(&mutex);
}

static void destroy_semaphore(void *argument)
{
    (void)argument;
    spawn(0, take_permit);
    semaphore_fini(&semaphore);
}

static void destroy_channel(void *argument)
{
    (void)argument;
    spawn(0, receive_item);
    channel_fini(&channel);
}

static void destroy_condition(void *argument)
{
    (void)argument;
    spawn(0, wait_for_signal);
    condition_fini(&condition);
}

static void signal_unheld(void *argument)
{
    (void)argument;
    condition_signal(&condition);
}

static void signal_without_the_mutex(void *argument)
{
    (void)argument;
    spawn(0, signal_unheld);
}

static void end_with_a_lock(void *argument)
{
    (void)argument;
    spawn(0, end_holding);
}

static void wait_in_the_loop(void *argument)
{
    (void)argument;
    assert_int_equal(mutex_lock(&mutex), 0);
}

static void test_misuse_ends_the_process_with_a_message(void **state)
{
    (void)state;
    static const struct {
        void (*misuse)(void *argument);
        const char *says;
    } cases[] = {
        {unlock_free, "a mutex is unlocked by one that does not hold it"},
        {unlock_foreign, "a mutex is unlocked by one that does not hold it"},
        {destroy_held, "a mutex is destroyed while it is held"},
        {destroy_waited_for, "a mutex is destroyed while others wait for it"},
        {destroy_semaphore, "a semaphore is destroyed while others wait for it"},
        {destroy_channel, "a channel is destroyed while others wait for it"},
        {destroy_condition, "a condition is destroyed while others wait for it"},
        {signal_without_the_mutex, "a condition is signalled by one that holds its mutex"},
        {end_with_a_lock, "ended while it holds a mutex"},
        {wait_in_the_loop, "a carrier's loop must not wait"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[4096];
        int status = kit_child(cases[i].misuse, NULL, text, sizeof(text));
        if (!WIFSIGNALED(status) || strstr(text, cases[i].says) == NULL) {
            fail_msg("case %zu: status %d, said: %s", i, status, text);
        }
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_lock_goes_to_those_who_wait_in_their_order),
        TEST(test_one_that_unlocks_and_locks_again_overtakes_nobody),
        TEST(test_a_deadline_or_cancel_ends_one_wait_and_the_order_stays),
        TEST(test_when_the_last_waiter_gives_up_the_lock_is_free_to_unlock_at_once),
        TEST(test_a_lock_that_was_handed_over_is_kept_though_a_cancel_comes_before_the_run),
        TEST(test_a_new_owner_runs_before_others_that_are_ready),
        TEST(test_try_lock_takes_what_is_free),
        TEST(test_a_wait_that_closes_a_cycle_is_refused_and_the_others_go_on),
        TEST(test_a_cycle_that_a_condition_s_deadline_closed_held_all_locks_for_ever),
        TEST(test_locking_ones_own_lock_again_is_a_deadlock),
        TEST(test_signals_go_to_those_who_wait_in_their_order),
        TEST(test_a_wait_for_a_signal_ends_at_its_deadline_with_the_mutex_held),
        TEST(test_a_signal_that_came_before_the_deadline_counts),
        TEST(test_permits_go_to_those_who_wait_in_their_order),
        TEST(test_items_come_in_the_order_in_which_they_were_sent),
        TEST(test_receivers_are_served_in_their_order),
        TEST(test_a_closed_channel_gives_what_it_holds_and_refuses_the_rest),
        TEST(test_closing_ends_the_wait_of_receivers),
        TEST(test_misuse_ends_the_process_with_a_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
