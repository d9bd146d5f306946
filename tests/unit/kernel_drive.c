/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_drive.c - carriers on the scripted kernel, driven by the test.
 *
 * One carrier lives on the test's own thread. Several have a thread each, for a
 * carrier and its scheduler are found by thread-local variables; the test hands
 * each in turn a piece of work and waits for its end, so that only one runs at a
 * time and a seed repeats everything.
 */
#include "kernel_parts.h"

#include <errno.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fiber_kit.h"
#include "ring/carrier.h"

#define CARRIERS_AT_MOST 8u
#define STACK_BYTES ((size_t)65536)

/* A world that does not come to rest within so many turns spins. */
#define TURNS_AT_MOST 200000u
#define PATIENCE_NS (10 * NS_PER_S)

struct driver {
    pthread_t thread;
    sem_t asked, done;
    void (*run)(void *argument);
    void *argument;
    bool ends;
};

static struct carrier carriers[CARRIERS_AT_MOST];
static struct driver drivers[CARRIERS_AT_MOST];
static unsigned carrier_count;
static uint64_t turns;

struct carrier *drive_carriers(void)
{
    return carriers;
}

uint64_t drive_turns(void)
{
    return turns;
}

static void wait_for(sem_t *semaphore)
{
    while (sem_wait(semaphore) < 0 && errno == EINTR) {
    }
}

static void *driver_run(void *argument)
{
    struct driver *driver = argument;
    for (;;) {
        wait_for(&driver->asked);
        if (driver->ends) {
            return NULL;
        }
        driver->run(driver->argument);
        sem_post(&driver->done);
    }
}

void drive_call(unsigned carrier, void (*run)(void *argument), void *argument)
{
    if (carrier_count == 1) {
        run(argument);
        return;
    }
    struct driver *driver = &drivers[carrier];
    driver->run = run;
    driver->argument = argument;
    sem_post(&driver->asked);
    wait_for(&driver->done);
}

static void init(void *argument)
{
    struct carrier *carrier = argument;
    struct carrier_setup setup = {.number = (unsigned)(carrier - carriers),
                                  .stack_bytes = STACK_BYTES};
    int result = carrier_init(carrier, &setup);
    if (result != 0) {
        kernel_violation("carrier_init: %d", result);
    }
}

static void turn(void *carrier)
{
    carrier_turn(carrier);
    turns++;
}

void drive_turn(unsigned carrier)
{
    drive_call(carrier, turn, &carriers[carrier]);
}

void drive_start(unsigned count)
{
    carrier_count = count;
    for (unsigned i = 0; i < count; i++) {
        if (count > 1) {
            drivers[i] = (struct driver){.ends = false};
            sem_init(&drivers[i].asked, 0, 0);
            sem_init(&drivers[i].done, 0, 0);
            if (pthread_create(&drivers[i].thread, NULL, driver_run, &drivers[i]) != 0) {
                abort();
            }
        }
        drive_call(i, init, &carriers[i]);
    }
}

static bool is_quiet(const struct carrier *carrier)
{
    uint64_t wait_until_ns = 0;
    kernel__lock();
    for (const struct kernel_ring *ring = kernel__rings(); ring != NULL; ring = ring->next) {
        if (ring->ring == &carrier->ring) {
            wait_until_ns = ring->wait_until_ns;
        }
    }
    bool waits = wait_until_ns > kernel_now_ns() || carrier_done(carrier);
    bool quiet = kernel__ring_is_quiet(&carrier->ring) && waits &&
                 list_empty(&carrier->sched.ready) && atomic_load(&carrier->inbox) == NULL;
    kernel__unlock();
    return quiet;
}

bool drive_is_quiet(void)
{
    for (unsigned i = 0; i < carrier_count; i++) {
        if (!is_quiet(&carriers[i])) {
            return false;
        }
    }
    return true;
}

void drive_run(void)
{
    uint64_t began = turns;
    do {
        for (unsigned i = 0; i < carrier_count; i++) {
            drive_call(i, turn, &carriers[i]);
        }
        if (turns - began > TURNS_AT_MOST) {
            kernel_violation("the loop spins: %u turns without rest", TURNS_AT_MOST);
        }
    } while (!drive_is_quiet());
}

uint64_t drive_next_ns(void)
{
    uint64_t next_ns = UINT64_MAX;
    kernel__lock();
    for (const struct kernel_ring *ring = kernel__rings(); ring != NULL; ring = ring->next) {
        if (ring->wait_until_ns != 0 && ring->wait_until_ns < next_ns) {
            next_ns = ring->wait_until_ns;
        }
        uint64_t op_ns = kernel__next_op_ns(ring);
        next_ns = op_ns < next_ns ? op_ns : next_ns;
    }
    kernel__unlock();
    return next_ns;
}

void drive_pass(uint64_t ns)
{
    uint64_t end_ns = kernel_now_ns() + ns;
    for (;;) {
        drive_run();
        uint64_t now_ns = kernel_now_ns();
        if (now_ns >= end_ns) {
            return;
        }
        uint64_t next_ns = drive_next_ns();
        kernel_pass((next_ns < end_ns ? next_ns : end_ns) - now_ns);
    }
}

void drive_until(bool (*done)(void *argument), void *argument)
{
    uint64_t give_up_ns = kit_clock_ns() + PATIENCE_NS;
    struct timespec while_threads_run = {.tv_nsec = 50000};
    for (;;) {
        drive_run();
        if (done(argument)) {
            return;
        }
        if (kit_clock_ns() > give_up_ns) {
            kernel_violation("what was waited for has not come");
        }
        nanosleep(&while_threads_run, NULL);
    }
}

struct fiber *drive_spawn(const char *name, void (*entry)(void *argument), void *argument)
{
    struct fiber *fiber =
        fiber_spawn(&carriers[0].sched, (struct fiber_name){.prefix = name}, entry, argument);
    if (fiber == NULL) {
        kernel_violation("no fiber could be spawned");
    }
    return fiber;
}

/* settle - as the carrier's own loop does at its end. */
static void settle(void *argument)
{
    struct carrier *carrier = argument;
    struct ring_event event;

    if (carrier->event_op != NULL) {
        op_cancel(&carrier->ops, carrier->event_op);
    }
    while (carrier->event_op != NULL) {
        ring_enter(&carrier->ring, UINT64_MAX);
        while (ring_reap(&carrier->ring, &event, 1) == 1) {
            ops_dispatch(&carrier->ops, &event);
        }
    }
    uint64_t told_twice = kernel__ring_told_twice(&carrier->ring);
    if (carrier->ops.live != 0 || carrier->ops.stale != told_twice) {
        kernel_violation("%s ends with %u ops in flight, %llu completions were for nobody",
                         carrier->name, carrier->ops.live,
                         (unsigned long long)(carrier->ops.stale - told_twice));
    }
    if (carrier->sched.live_count != 0 || carrier->sched.stacks.live != 0) {
        kernel_violation("%s ends with %zu fibers and %zu stacks", carrier->name,
                         carrier->sched.live_count, carrier->sched.stacks.live);
    }
    carrier_fini(carrier);
    carrier_free(carrier);
}

void drive_stop(void)
{
    drive_run();
    for (unsigned i = 0; i < carrier_count; i++) {
        drive_call(i, settle, &carriers[i]);
    }
    for (unsigned i = 0; carrier_count > 1 && i < carrier_count; i++) {
        drivers[i].ends = true;
        sem_post(&drivers[i].asked);
        pthread_join(drivers[i].thread, NULL);
        sem_destroy(&drivers[i].asked);
        sem_destroy(&drivers[i].done);
    }
    kernel_stop();
}

void kernel_stop(void)
{
    if (kernel_ops_in_flight() > 0) {
        kernel_violation("%u ops are left in flight", kernel_ops_in_flight());
    }
    if (kernel_buffers_out() > 0) {
        kernel_violation("%u buffers have not been given back", kernel_buffers_out());
    }
    if (kernel_open_descriptors() > 0) {
        kernel_violation("%u descriptors are left open", kernel_open_descriptors());
    }
}
