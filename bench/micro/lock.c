/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lock.c - what a lock, a permit and an item of a channel cost, on fibers of one carrier
 * and between carriers and platform threads. What is uncontended makes no system
 * call and parks nobody: a lock is two compare-and-swaps, which are measured beside it.
 */
#include <pthread.h>
#include <stdint.h>

#include "base/must.h"
#include "fiber/channel.h"
#include "fiber/fiber.h"
#include "fiber/mutex.h"
#include "fiber/semaphore.h"
#include "ring/carrier.h"
#include "ring/stuck.h"
#include "ring/sys.h"
#include "rounds.h"

#define OPERATIONS 10000 /* a round */
#define HANDOVERS 20000
#define CONTENDERS 120
#define TURNS 2000u /* of each contender */
#define CONTENDED_ROUNDS 5

static struct sched sched;
static struct mutex mutex;
static struct semaphore semaphore;
static struct channel channel;
static double measured_ns;

/* ------------------------------------------------------------ one fiber, nobody else */

static void lock_alone(void *argument)
{
    (void)argument;
    uint64_t start_ns = sys_clock_ns();
    for (unsigned i = 0; i < OPERATIONS; i++) {
        must(mutex_lock(&mutex) == 0);
        mutex_unlock(&mutex);
    }
    measured_ns = (double)(sys_clock_ns() - start_ns) / OPERATIONS;
}

/* What two of the instructions that a lock is made of cost here. */
static void swap_twice(void *argument)
{
    static atomic_uintptr_t word;
    uint64_t start_ns = sys_clock_ns();
    for (unsigned i = 0; i < OPERATIONS; i++) {
        uintptr_t nobody = 0, mine = (uintptr_t)argument;
        must(atomic_compare_exchange_strong(&word, &nobody, mine));
        must(atomic_compare_exchange_strong(&word, &mine, 0));
    }
    measured_ns = (double)(sys_clock_ns() - start_ns) / OPERATIONS;
}

static void lock_pthread(void *argument)
{
    (void)argument;
    static pthread_mutex_t plain = PTHREAD_MUTEX_INITIALIZER;
    uint64_t start_ns = sys_clock_ns();
    for (unsigned i = 0; i < OPERATIONS; i++) {
        pthread_mutex_lock(&plain);
        pthread_mutex_unlock(&plain);
    }
    measured_ns = (double)(sys_clock_ns() - start_ns) / OPERATIONS;
}

static void permit_alone(void *argument)
{
    (void)argument;
    uint64_t start_ns = sys_clock_ns();
    for (unsigned i = 0; i < OPERATIONS; i++) {
        semaphore_give(&semaphore);
        must(semaphore_take(&semaphore, 0) == 0);
    }
    measured_ns = (double)(sys_clock_ns() - start_ns) / OPERATIONS;
}

static void item_alone(void *argument)
{
    (void)argument;
    void *item;
    uint64_t start_ns = sys_clock_ns();
    for (unsigned i = 0; i < OPERATIONS; i++) {
        must(channel_send(&channel, &item, 0) == 0);
        must(channel_receive(&channel, &item, 0) == 0);
    }
    measured_ns = (double)(sys_clock_ns() - start_ns) / OPERATIONS;
}

/* ------------------------------------------------------------ two fibers of one carrier */

static void lock_in_turn(void *argument)
{
    (void)argument;
    for (unsigned i = 0; i < HANDOVERS; i++) {
        must(mutex_lock(&mutex) == 0);
        fiber_yield(); /* the other one comes to wait */
        mutex_unlock(&mutex);
    }
}

static void send_all(void *argument)
{
    for (unsigned i = 0; i < HANDOVERS; i++) {
        must(channel_send(&channel, argument, 0) == 0);
    }
}

static void receive_all(void *argument)
{
    (void)argument;
    void *item;
    for (unsigned i = 0; i < HANDOVERS; i++) {
        must(channel_receive(&channel, &item, 0) == 0);
    }
}

static void spawn(void (*entry)(void *))
{
    must(fiber_spawn(&sched, (struct fiber_name){"bench-", 1}, entry, &sched) != NULL);
}

static void run(void)
{
    while (sched_run(&sched) > 0) {
    }
}

static double alone(void (*entry)(void *))
{
    spawn(entry);
    run();
    return measured_ns;
}

static double in_pairs(void (*one)(void *), void (*other)(void *), unsigned operations)
{
    uint64_t start_ns = sys_clock_ns();
    spawn(one);
    spawn(other);
    run();
    return (double)(sys_clock_ns() - start_ns) / operations;
}

/* ------------------------------------------------------------ two carriers, or threads */

static struct carrier carriers[2];
static atomic_uint running;
static uint64_t under_lock[8];

static void contend(void *argument)
{
    (void)argument;
    for (unsigned i = 0; i < TURNS; i++) {
        must(mutex_lock(&mutex) == 0);
        for (unsigned k = 0; k < 100; k++) {
            under_lock[k % 8] += k;
        }
        mutex_unlock(&mutex);
        if (fiber_current() != NULL && i % 4 == 0) {
            fiber_yield(); /* as a request would, for its next bytes */
        }
    }
    atomic_fetch_sub(&running, 1);
}

static void *contend_thread(void *argument)
{
    contend(argument);
    return NULL;
}

static void run_contenders(struct message *message)
{
    (void)message;
    for (unsigned i = 0; i < CONTENDERS / 2; i++) {
        must(fiber_spawn(&carrier_current()->sched, (struct fiber_name){"contender-", i + 1},
                         contend, NULL) != NULL);
    }
}

static double contended_fibers(void)
{
    struct message messages[2] = {{.run = run_contenders}, {.run = run_contenders}};
    atomic_store(&running, CONTENDERS);
    for (unsigned i = 0; i < 2; i++) {
        struct carrier_setup setup = {.number = i, .stack_bytes = 65536};
        must(carrier_start(&carriers[i], &setup) == 0);
    }
    uint64_t start_ns = sys_clock_ns();
    for (unsigned i = 0; i < 2; i++) {
        carrier_post(&carriers[i], &messages[i]);
        carrier_stop(&carriers[i]);
    }
    for (unsigned i = 0; i < 2; i++) {
        carrier_join(&carriers[i]);
    }
    double ns = (double)(sys_clock_ns() - start_ns);
    for (unsigned i = 0; i < 2; i++) {
        carrier_free(&carriers[i]);
    }
    must(atomic_load(&running) == 0);
    return ns / (CONTENDERS * TURNS);
}

static double contended_threads(void)
{
    pthread_t threads[CONTENDERS];
    atomic_store(&running, CONTENDERS);
    uint64_t start_ns = sys_clock_ns();
    for (unsigned i = 0; i < CONTENDERS; i++) {
        must(pthread_create(&threads[i], NULL, contend_thread, NULL) == 0);
    }
    for (unsigned i = 0; i < CONTENDERS; i++) {
        pthread_join(threads[i], NULL);
    }
    return (double)(sys_clock_ns() - start_ns) / (CONTENDERS * TURNS);
}

int main(void)
{
    struct rounds rounds[] = {
        {.name = "mutex, lock and unlock, uncontended"},
        {.name = "pthread_mutex, the same"},
        {.name = "two compare-and-swaps alone"},
        {.name = "semaphore, give and take"},
        {.name = "channel, send and receive, nobody waits"},
        {.name = "mutex, handed to a waiting fiber"},
        {.name = "channel of one, fiber to fiber, an item"},
        {.name = "mutex, 120 fibers on two carriers, a turn"},
        {.name = "mutex, 120 platform threads, a turn"},
    };
    struct sched_setup setup = {.stack_bytes = 65536, .clock_ns = sys_clock_ns};
    stuck_watch(); /* a lost wake would be told, and not hang */
    mutex_init(&mutex, "bench");
    (void)contended_threads(); /* glibc locks without atomics until there is a second thread */
    must(sched_init(&sched, &setup) == 0);
    semaphore_init(&semaphore, "bench", 0);
    must(channel_init(&channel, "bench", 1) == 0);
    for (unsigned round = 0; round < ROUNDS; round++) {
        rounds_add(&rounds[0], alone(lock_alone));
        rounds_add(&rounds[1], alone(lock_pthread));
        rounds_add(&rounds[2], alone(swap_twice));
        rounds_add(&rounds[3], alone(permit_alone));
        rounds_add(&rounds[4], alone(item_alone));
        rounds_add(&rounds[5], in_pairs(lock_in_turn, lock_in_turn, 2 * HANDOVERS));
        rounds_add(&rounds[6], in_pairs(send_all, receive_all, HANDOVERS));
    }
    sched_fini(&sched);
    for (unsigned round = 0; round < CONTENDED_ROUNDS; round++) {
        rounds_add(&rounds[7], contended_fibers());
        rounds_add(&rounds[8], contended_threads());
    }
    rounds_print_head("lock");
    for (size_t i = 0; i < sizeof(rounds) / sizeof(rounds[0]); i++) {
        rounds_print(&rounds[i]);
    }
    channel_fini(&channel);
    semaphore_fini(&semaphore);
    mutex_fini(&mutex);
    return 0;
}
