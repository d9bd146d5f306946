/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property: a message from any thread wakes a sleeping carrier, is never lost, and
 * those of one sender run in order; a stopped carrier's thread ends when its last
 * fiber has, an idle one sleeps. Method: real carriers on the real ring, threads
 * that post as fast as they can or after pauses; a lost wake shows as a hang.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "base/time.h"
#include "fiber_kit.h"
#include "io/sleep.h"
#include "ring/carrier.h"

#define SENDERS 3
#define POSTS 20000
#define PINGS 2000
#define PATIENCE_NS (10 * NS_PER_S)

static struct carrier carriers[2];

static void start(unsigned count)
{
    struct log_setup quiet = {.level = LOG_OFF};
    log_init(&quiet);
    for (unsigned i = 0; i < count; i++) {
        struct carrier_setup setup = {.number = i, .stack_bytes = 65536};
        assert_int_equal(carrier_start(&carriers[i], &setup), 0);
    }
}

static void stop(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        carrier_stop(&carriers[i]);
    }
    for (unsigned i = 0; i < count; i++) {
        carrier_join(&carriers[i]);
    }
}

static bool wait_in_time(sem_t *semaphore)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 10;
    int result;
    do {
        result = sem_timedwait(semaphore, &until);
    } while (result < 0 && errno == EINTR);
    return result == 0;
}

static void pause_for(long ns)
{
    struct timespec a_moment = {.tv_nsec = ns};
    nanosleep(&a_moment, NULL);
}

/* ------------------------------------------------------------ many senders */

struct post {
    struct message message;
    unsigned sender, number;
};

static struct post posts[SENDERS][POSTS];
static unsigned next_number[SENDERS]; /* the carrier's */
static atomic_uint out_of_order, arrived;

static void run_post(struct message *message)
{
    struct post *post = container_of(message, struct post, message);
    if (next_number[post->sender]++ != post->number) {
        atomic_fetch_add(&out_of_order, 1);
    }
    atomic_fetch_add(&arrived, 1);
}

static void *send_posts(void *argument)
{
    struct post *mine = argument;
    for (unsigned i = 0; i < POSTS; i++) {
        carrier_post(&carriers[0], &mine[i].message);
        if (i % 1000 == 999) {
            pause_for(1000000); /* long enough for the carrier to fall asleep */
        }
    }
    return NULL;
}

static void test_no_message_is_lost_and_each_senders_run_in_order(void **state)
{
    (void)state;
    pthread_t threads[SENDERS];
    start(1);
    atomic_store(&arrived, 0);
    memset(next_number, 0, sizeof(next_number));
    for (unsigned s = 0; s < SENDERS; s++) {
        for (unsigned i = 0; i < POSTS; i++) {
            posts[s][i] = (struct post){.message = {.run = run_post}, .sender = s, .number = i};
        }
        assert_int_equal(pthread_create(&threads[s], NULL, send_posts, posts[s]), 0);
    }
    for (unsigned s = 0; s < SENDERS; s++) {
        pthread_join(threads[s], NULL);
    }
    uint64_t give_up_ns = kit_clock_ns() + PATIENCE_NS;
    while (atomic_load(&arrived) < SENDERS * POSTS && kit_clock_ns() < give_up_ns) {
        pause_for(100000);
    }
    assert_int_equal(atomic_load(&arrived), SENDERS * POSTS);
    assert_int_equal(atomic_load(&out_of_order), 0);
    stop(1);
}

/* ------------------------------------------------------------ to and fro between sleepers */

struct ping {
    struct message message;
    unsigned left, at; /* carrier that it runs on */
    sem_t done;
};

static void run_ping(struct message *message)
{
    struct ping *ping = container_of(message, struct ping, message);
    if (ping->left-- == 0) {
        sem_post(&ping->done);
        return;
    }
    ping->at = 1 - ping->at;
    carrier_post(&carriers[ping->at], &ping->message);
}

static void test_a_message_wakes_a_sleeping_carrier_each_time(void **state)
{
    (void)state;
    struct ping ping = {.message = {.run = run_ping}, .left = PINGS};
    start(2);
    sem_init(&ping.done, 0, 0);
    carrier_post(&carriers[0], &ping.message);
    assert_true(wait_in_time(&ping.done));
    for (int i = 0; i < 50; i++) {
        ping.left = 0;
        pause_for(1000000);
        carrier_post(&carriers[ping.at], &ping.message);
        assert_true(wait_in_time(&ping.done));
    }
    sem_destroy(&ping.done);
    stop(2);
}

/* ------------------------------------------------------------ end */

static atomic_bool slept;

static void run_sleep(void *unused)
{
    (void)unused;
    (void)sleep_for(200 * NS_PER_MS);
    atomic_store(&slept, true);
}

static void run_spawn(struct message *message)
{
    (void)message;
    if (fiber_spawn(&carriers[0].sched, (struct fiber_name){.prefix = "sleeper"}, run_sleep,
                    NULL) == NULL) {
        abort();
    }
}

static void test_a_stopped_carrier_ends_when_its_last_fiber_has(void **state)
{
    (void)state;
    struct message spawn = {.run = run_spawn};
    start(1);
    atomic_store(&slept, false);
    uint64_t began_ns = kit_clock_ns();
    carrier_post(&carriers[0], &spawn);
    stop(1);
    assert_true(atomic_load(&slept));
    assert_in_range(kit_clock_ns() - began_ns, 200 * NS_PER_MS, 5 * NS_PER_S);
}

struct count {
    struct message message;
    uint64_t turns;
    sem_t done;
};

static void run_count(struct message *message)
{
    struct count *count = container_of(message, struct count, message);
    count->turns = carriers[0].turns;
    sem_post(&count->done);
}

/* The counter is the carrier's own, so it is read there: that costs the turn that runs the message. */
static uint64_t count_turns(void)
{
    struct count count = {.message = {.run = run_count}};
    sem_init(&count.done, 0, 0);
    carrier_post(&carriers[0], &count.message);
    assert_true(wait_in_time(&count.done));
    sem_destroy(&count.done);
    return count.turns;
}

static void test_an_idle_carrier_sleeps(void **state)
{
    (void)state;
    start(1);
    pause_for(100000000);
    uint64_t turns = count_turns();
    pause_for(300000000);
    assert_in_range(count_turns() - turns, 1, 3);
    stop(1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_message_is_lost_and_each_senders_run_in_order),
        cmocka_unit_test(test_a_message_wakes_a_sleeping_carrier_each_time),
        cmocka_unit_test(test_a_stopped_carrier_ends_when_its_last_fiber_has),
        cmocka_unit_test(test_an_idle_carrier_sleeps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
