/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property: with fibers of two carriers and platform threads mixed, a lock has one
 * owner at a time, no wake is lost, permits and items are neither lost nor doubled,
 * and waits end at their deadline or cancel whoever waits. Method: real carriers on
 * the real ring, real threads, many short sections; a lost wake shows as a hang. Runs
 * under ThreadSanitizer as well.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "base/must.h"
#include "base/time.h"
#include "fiber/channel.h"
#include "fiber/mutex.h"
#include "fiber/semaphore.h"
#include "fiber/task.h"
#include "fiber_kit.h"
#include "ring/carrier.h"
#include "ring/sys.h"

#define CARRIERS 2
#define FIBERS 8 /* a carrier */
#define THREADS 4
#define TASKS (CARRIERS * FIBERS + THREADS)
#define TURNS kit_rounds(3000, 500, 100) /* a task */
#define PATIENCE_NS (60 * NS_PER_S)

static struct carrier carriers[CARRIERS];

/* One fiber or platform thread of a test. */
struct actor {
    struct message message, cancel;
    struct carrier *carrier; /* NULL: a platform thread */
    pthread_t thread;
    struct fiber *fiber;
    struct task *_Atomic task;
    void (*act)(struct actor *actor);
    unsigned index;
    uint64_t random;
    unsigned turns, refused;
    int result;
};

static struct actor actors[TASKS];
static atomic_uint ended;

static struct mutex mutex, inner;
static struct condition condition;
static struct semaphore semaphore;
static struct channel channel;
static uint64_t counter, inner_counter; /* under the mutexes */
static const void *inside;

static void pause_for(long ns)
{
    struct timespec a_moment = {.tv_nsec = ns};
    nanosleep(&a_moment, NULL);
}

static void act(void *argument)
{
    struct actor *actor = argument;
    atomic_store(&actor->task, task_current());
    actor->act(actor);
    atomic_fetch_add(&ended, 1);
}

static void *run_thread(void *argument)
{
    sys_wake_signal_block();
    act(argument);
    return NULL;
}

static void run_spawn(struct message *message)
{
    struct actor *actor = container_of(message, struct actor, message);
    actor->fiber = fiber_spawn(&actor->carrier->sched,
                               (struct fiber_name){"actor-", actor->index + 1}, act, actor);
    if (actor->fiber == NULL) {
        abort();
    }
}

static void start_carriers(void)
{
    struct log_setup quiet = {.level = LOG_OFF};
    log_init(&quiet);
    for (unsigned i = 0; i < CARRIERS; i++) {
        struct carrier_setup setup = {.number = i, .stack_bytes = 65536};
        assert_int_equal(carrier_start(&carriers[i], &setup), 0);
    }
    mutex_init(&mutex, "outer");
    mutex_init(&inner, "inner");
    condition_init(&condition, &mutex);
    counter = inner_counter = 0;
    atomic_store(&ended, 0);
    memset(actors, 0, sizeof(actors));
}

static void start_actor(unsigned index, struct carrier *carrier, void (*what)(struct actor *))
{
    struct actor *actor = &actors[index];
    *actor = (struct actor){.message = {.run = run_spawn},
                            .carrier = carrier,
                            .act = what,
                            .index = index,
                            .random = index};
    if (carrier != NULL) {
        carrier_post(carrier, &actor->message);
    } else {
        assert_int_equal(pthread_create(&actor->thread, NULL, run_thread, actor), 0);
    }
}

static void await_ended(unsigned count)
{
    uint64_t give_up_ns = kit_clock_ns() + PATIENCE_NS;
    while (atomic_load(&ended) < count) {
        if (kit_clock_ns() > give_up_ns) {
            fail_msg("%u of %u have ended: a wake was lost", atomic_load(&ended), count);
        }
        pause_for(200000);
    }
}

static void stop_carriers(void)
{
    for (unsigned i = 0; i < TASKS; i++) {
        if (actors[i].act != NULL && actors[i].carrier == NULL) {
            pthread_join(actors[i].thread, NULL);
        }
    }
    for (unsigned i = 0; i < CARRIERS; i++) {
        carrier_stop(&carriers[i]);
    }
    for (unsigned i = 0; i < CARRIERS; i++) {
        carrier_join(&carriers[i]);
    }
    for (unsigned i = 0; i < CARRIERS; i++) {
        carrier_free(&carriers[i]);
    }
    condition_fini(&condition);
    mutex_fini(&mutex);
    mutex_fini(&inner);
}

/* Everybody does it: fibers on both carriers, and threads. */
static void run_all(void (*what)(struct actor *))
{
    for (unsigned i = 0; i < TASKS; i++) {
        start_actor(i, i < CARRIERS * FIBERS ? &carriers[i % CARRIERS] : NULL, what);
    }
    await_ended(TASKS);
}

static void stay(struct actor *actor)
{
    if (actor->carrier != NULL && kit_random(&actor->random) % 4 == 0) {
        fiber_yield(); /* with the lock held */
    }
}

/* ------------------------------------------------------------ mutex */

static void lock_often(struct actor *actor)
{
    for (unsigned i = 0; i < TURNS; i++) {
        if (mutex_lock(&mutex) != 0) {
            abort();
        }
        must(inside == NULL);
        inside = actor;
        counter++;
        stay(actor);
        must(inside == actor);
        inside = NULL;
        mutex_unlock(&mutex);
    }
}

static void test_a_lock_has_one_owner_and_no_wake_is_lost(void **state)
{
    (void)state;
    start_carriers();
    run_all(lock_often);
    assert_int_equal(counter, TASKS * TURNS);
    stop_carriers();
}

/* Short deadlines: many waits end in the moment in which the lock is handed over. */
static void lock_in_time(struct actor *actor)
{
    while (actor->turns < TURNS / 4) {
        uint64_t deadline_ns = kit_clock_ns() + kit_random(&actor->random) % 300000;
        int result = mutex_lock_until(&mutex, deadline_ns);
        if (result == -ETIMEDOUT) {
            actor->refused++;
            actor->turns++;
            continue;
        }
        must(result == 0 && inside == NULL);
        inside = actor;
        counter++;
        actor->turns++;
        stay(actor);
        must(inside == actor);
        inside = NULL;
        mutex_unlock(&mutex);
    }
}

static void test_a_deadline_that_races_the_hand_over_loses_nothing(void **state)
{
    (void)state;
    start_carriers();
    run_all(lock_in_time);
    uint64_t refused = 0;
    for (unsigned i = 0; i < TASKS; i++) {
        refused += actors[i].refused;
    }
    assert_int_equal(counter + refused, (uint64_t)TASKS * (TURNS / 4));
    stop_carriers();
}

/* Half of them in the wrong order: the cycles are refused, never waited in. */
static void lock_two(struct actor *actor)
{
    struct mutex *first = actor->index % 2 == 0 ? &mutex : &inner;
    struct mutex *second = actor->index % 2 == 0 ? &inner : &mutex;
    for (unsigned i = 0; i < TURNS / 4; i++) {
        must(mutex_lock(first) == 0);
        stay(actor);
        int result = mutex_lock(second);
        must(result == 0 || result == -EDEADLK);
        if (result == 0) {
            counter++;
            inner_counter++;
            mutex_unlock(second);
        } else {
            actor->refused++;
        }
        mutex_unlock(first);
    }
}

static void test_locks_taken_in_both_orders_never_stand_still(void **state)
{
    (void)state;
    start_carriers();
    run_all(lock_two);
    uint64_t refused = 0;
    for (unsigned i = 0; i < TASKS; i++) {
        refused += actors[i].refused;
    }
    assert_int_equal(counter + refused, (uint64_t)TASKS * (TURNS / 4));
    assert_int_equal(counter, inner_counter);
    stop_carriers();
}

/* ------------------------------------------------------------ condition */

static uint64_t turn_of; /* whose turn it is, under the mutex */

static void take_turns(struct actor *actor)
{
    for (unsigned i = 0; i < TURNS / 50; i++) {
        must(mutex_lock(&mutex) == 0);
        while (turn_of % TASKS != actor->index) {
            must(condition_wait(&condition, 0) == 0);
        }
        turn_of++;
        condition_broadcast(&condition);
        mutex_unlock(&mutex);
    }
}

static void test_all_take_turns_by_a_condition(void **state)
{
    (void)state;
    start_carriers();
    turn_of = 0;
    run_all(take_turns);
    assert_int_equal(turn_of, (uint64_t)TASKS * (TURNS / 50));
    stop_carriers();
}

/* ------------------------------------------------------------ semaphore, channel */

static atomic_uint permits_out, permits_most;

static void take_and_give(struct actor *actor)
{
    for (unsigned i = 0; i < TURNS; i++) {
        must(semaphore_take(&semaphore, 0) == 0);
        unsigned now = atomic_fetch_add(&permits_out, 1) + 1;
        unsigned most = atomic_load(&permits_most);
        while (now > most && !atomic_compare_exchange_weak(&permits_most, &most, now)) {
        }
        stay(actor);
        atomic_fetch_sub(&permits_out, 1);
        semaphore_give(&semaphore);
    }
}

static void test_never_more_permits_are_out_than_there_are(void **state)
{
    (void)state;
    start_carriers();
    semaphore_init(&semaphore, "permits", 3);
    atomic_store(&permits_most, 0);
    run_all(take_and_give);
    assert_in_range(atomic_load(&permits_most), 1, 3);
    for (int i = 0; i < 3; i++) {
        assert_true(semaphore_try_take(&semaphore));
    }
    assert_false(semaphore_try_take(&semaphore));
    semaphore_fini(&semaphore);
    stop_carriers();
}

static atomic_uint_fast64_t sent_sum, received_sum;

static void send_or_receive(struct actor *actor)
{
    for (unsigned i = 1; i <= TURNS; i++) {
        if (actor->index % 2 == 0) {
            uintptr_t value = (uintptr_t)actor->index << 32 | i;
            must(channel_send(&channel, (void *)value, 0) == 0);
            atomic_fetch_add(&sent_sum, value);
        } else {
            void *item;
            must(channel_receive(&channel, &item, 0) == 0);
            atomic_fetch_add(&received_sum, (uintptr_t)item);
        }
    }
}

static void test_every_item_is_received_once(void **state)
{
    (void)state;
    start_carriers();
    assert_int_equal(channel_init(&channel, "items", 4), 0);
    run_all(send_or_receive);
    assert_true(atomic_load(&sent_sum) == atomic_load(&received_sum));
    assert_int_equal(channel.count, 0);
    channel_fini(&channel);
    stop_carriers();
}

/* ------------------------------------------------------------ cancel */

#define CANCELS kit_rounds(50000, 5000, 100) /* valgrind runs the two threads in turn */

static atomic_uint begun, cancelled;

static void want_again_and_again(struct actor *actor)
{
    for (unsigned i = 1; i <= CANCELS; i++) {
        atomic_store(&begun, i);
        actor->result = semaphore_take(&semaphore, 0);
        while (atomic_load(&cancelled) < i) {
        }
        must(actor->result == -ECANCELED);
        task_uncancel_thread(task_current());
    }
}

static void spin(unsigned looks)
{
    for (unsigned i = 0; i < looks; i++) {
        (void)atomic_load(&begun);
    }
}

/* Between the look at its flag and the wait for its word nothing may get lost. */
static void test_a_cancel_that_comes_as_a_thread_begins_to_wait_is_not_lost(void **state)
{
    (void)state;
    uint64_t random = 1;
    start_carriers();
    semaphore_init(&semaphore, "none", 0);
    atomic_store(&begun, 0);
    atomic_store(&cancelled, 0);
    start_actor(0, NULL, want_again_and_again);
    for (unsigned i = 1; i <= CANCELS; i++) {
        uint64_t give_up_ns = kit_clock_ns() + 10 * NS_PER_S;
        while (atomic_load(&begun) < i) {
            if (kit_clock_ns() > give_up_ns) {
                fail_msg("cancel %u of %u was lost", i - 1, CANCELS);
            }
        }
        spin((unsigned)(kit_random(&random) % 400));
        task_cancel_thread(atomic_load(&actors[0].task));
        atomic_store(&cancelled, i);
    }
    await_ended(1);
    stop_carriers();
    semaphore_fini(&semaphore);
}

static void hold_for_long(struct actor *actor)
{
    must(mutex_lock(&mutex) == 0);
    actor->turns = 1;
    actor->result = semaphore_take(&semaphore, 0);
    mutex_unlock(&mutex);
}

static void want(struct actor *actor)
{
    actor->result = mutex_lock(&mutex);
}

static void run_cancel(struct message *message)
{
    fiber_cancel(container_of(message, struct actor, cancel)->fiber);
}

static void test_a_cancel_ends_the_wait_of_fibers_and_threads_at_once(void **state)
{
    (void)state;
    start_carriers();
    semaphore_init(&semaphore, "held", 0);
    start_actor(0, NULL, hold_for_long);
    while (atomic_load(&mutex.word) == 0) {
        pause_for(100000);
    }
    start_actor(1, &carriers[0], want);
    start_actor(2, &carriers[1], want);
    start_actor(3, NULL, want);
    for (unsigned i = 1; i < 4; i++) {
        while (atomic_load(&actors[i].task) == NULL) {
            pause_for(100000);
        }
    }
    pause_for(20000000);
    assert_int_equal(atomic_load(&ended), 0);
    uint64_t began_ns = kit_clock_ns();
    for (unsigned i = 1; i < 3; i++) {
        actors[i].cancel.run = run_cancel;
        carrier_post(actors[i].carrier, &actors[i].cancel);
    }
    task_cancel_thread(atomic_load(&actors[3].task));
    await_ended(3);
    assert_in_range(kit_clock_ns() - began_ns, 0, NS_PER_S);
    for (unsigned i = 1; i < 4; i++) {
        assert_int_equal(actors[i].result, -ECANCELED);
    }
    assert_int_equal(atomic_load(&mutex.word) & 1, 0);
    semaphore_give(&semaphore); /* from this thread, which is of no pool */
    await_ended(4);
    stop_carriers();
    semaphore_fini(&semaphore);
}

static void want_for_a_moment(struct actor *actor)
{
    uint64_t began_ns = kit_clock_ns();
    actor->result = semaphore_take(&semaphore, began_ns + 30 * NS_PER_MS);
    must(kit_clock_ns() - began_ns >= 30 * NS_PER_MS);
}

static void test_a_deadline_is_never_early_on_fibers_and_threads(void **state)
{
    (void)state;
    start_carriers();
    semaphore_init(&semaphore, "none", 0);
    run_all(want_for_a_moment);
    for (unsigned i = 0; i < TASKS; i++) {
        assert_int_equal(actors[i].result, -ETIMEDOUT);
    }
    semaphore_fini(&semaphore);
    stop_carriers();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_lock_has_one_owner_and_no_wake_is_lost),
        cmocka_unit_test(test_a_deadline_that_races_the_hand_over_loses_nothing),
        cmocka_unit_test(test_locks_taken_in_both_orders_never_stand_still),
        cmocka_unit_test(test_all_take_turns_by_a_condition),
        cmocka_unit_test(test_never_more_permits_are_out_than_there_are),
        cmocka_unit_test(test_every_item_is_received_once),
        cmocka_unit_test(test_a_cancel_ends_the_wait_of_fibers_and_threads_at_once),
        cmocka_unit_test(test_a_cancel_that_comes_as_a_thread_begins_to_wait_is_not_lost),
        cmocka_unit_test(test_a_deadline_is_never_early_on_fibers_and_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
