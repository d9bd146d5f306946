/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sleepers.c - see sleepers.h.
 *
 * On each carrier a fiber starts its share, some at a time, and lets them run up
 * to their sleep in between, as a server would. What they note down is the lane's:
 * a sleeper costs no more than its stack.
 */
#include "ringload/sleepers.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/must.h"
#include "base/time.h"
#include "fiber/fiber.h"
#include "io/sleep.h"
#include "ring/carrier.h"
#include "ring/sys.h"

#define STACK_BYTES 65536
#define STARTS_AT_ONCE 64

struct sleepers {
    const struct sleepers_setup *setup;
    uint64_t began_ns;
    atomic_uint_fast64_t asleep; /* so far, and those that are missing */
    _Atomic(uint64_t) asleep_ns; /* when all were */
    /* counted once: when all are asleep, or as the first wakes, if that is before */
    atomic_flag counted;
    uint64_t counted_asleep;
    uint64_t counted_kib;
};

/* One carrier's share. */
struct lane {
    struct carrier carrier;
    struct sleepers *all;
    struct message start;
    uint64_t count;
    struct sleepers_result result;
};

static uint64_t resident_kib(void)
{
    char text[128];
    ssize_t length = sys_read_file("/proc/self/statm", text, sizeof(text) - 1);
    must(length > 0);
    text[length] = '\0';
    uint64_t pages = 0;
    must(sscanf(text, "%*u %" SCNu64, &pages) == 1);
    return pages * 4;
}

static void count_memory(struct sleepers *all)
{
    if (!atomic_flag_test_and_set(&all->counted)) {
        all->counted_asleep = atomic_load(&all->asleep);
        all->counted_kib = resident_kib();
    }
}

static void settle(struct sleepers *all, uint64_t count)
{
    if (atomic_fetch_add(&all->asleep, count) + count == all->setup->count) {
        atomic_store(&all->asleep_ns, sys_clock_ns());
        count_memory(all);
    }
}

static void sleeper_run(void *argument)
{
    struct lane *lane = argument;
    struct sleepers_result *result = &lane->result;
    uint64_t due_ns = sys_clock_ns() + lane->all->setup->sleep_ns;

    settle(lane->all, 1);
    must(sleep_until(due_ns) == 0);
    uint64_t now_ns = sys_clock_ns();
    count_memory(lane->all);
    if (now_ns < due_ns) {
        result->early++;
        return;
    }
    uint64_t late_ns = now_ns - due_ns;
    result->late_min_ns = late_ns < result->late_min_ns ? late_ns : result->late_min_ns;
    result->late_max_ns = late_ns > result->late_max_ns ? late_ns : result->late_max_ns;
    result->done_ns = now_ns - lane->all->began_ns;
}

static void starter_run(void *argument)
{
    struct lane *lane = argument;
    for (uint64_t i = 0; i < lane->count; i++) {
        struct fiber_name name = {.prefix = "sleeper-", .number = i + 1};
        if (fiber_spawn(&lane->carrier.sched, name, sleeper_run, lane) == NULL) {
            lane->result.missing = lane->count - i;
            settle(lane->all, lane->result.missing);
            return;
        }
        if (i % STARTS_AT_ONCE == STARTS_AT_ONCE - 1) {
            fiber_yield();
        }
    }
}

static void run_start(struct message *message)
{
    struct lane *lane = container_of(message, struct lane, start);
    struct fiber_name name = {.prefix = "starter"};
    must(fiber_spawn(&lane->carrier.sched, name, starter_run, lane) != NULL);
}

static void add_up(struct sleepers_result *result, const struct lane *lane)
{
    const struct sleepers_result *one = &lane->result;
    result->early += one->early;
    result->missing += one->missing;
    result->late_min_ns =
        one->late_min_ns < result->late_min_ns ? one->late_min_ns : result->late_min_ns;
    result->late_max_ns =
        one->late_max_ns > result->late_max_ns ? one->late_max_ns : result->late_max_ns;
    result->done_ns = one->done_ns > result->done_ns ? one->done_ns : result->done_ns;
}

int sleepers_run(const struct sleepers_setup *setup, struct sleepers_result *result)
{
    struct sleepers all = {.setup = setup, .counted = ATOMIC_FLAG_INIT};
    unsigned running = 0;
    int error = 0;
    struct lane *lanes = aligned_alloc(64, setup->carriers * sizeof(struct lane));

    if (lanes == NULL) {
        return -ENOMEM;
    }
    for (; running < setup->carriers; running++) {
        struct lane *lane = &lanes[running];
        struct carrier_setup carrier = {.number = running, .stack_bytes = STACK_BYTES};
        error = carrier_start(&lane->carrier, &carrier);
        if (error < 0) {
            break;
        }
        lane->all = &all;
        lane->start = (struct message){.run = run_start};
        lane->count = setup->count / setup->carriers + (running < setup->count % setup->carriers);
        lane->result = (struct sleepers_result){.late_min_ns = UINT64_MAX};
    }
    uint64_t before_kib = resident_kib();
    all.began_ns = sys_clock_ns();
    for (unsigned i = 0; i < running && error == 0; i++) {
        carrier_post(&lanes[i].carrier, &lanes[i].start);
    }
    *result = (struct sleepers_result){.late_min_ns = UINT64_MAX};
    for (unsigned i = 0; i < running; i++) {
        carrier_stop(
            &lanes[i].carrier); /* behind the start in its inbox: ends when no fiber lives */
        carrier_join(&lanes[i].carrier);
        add_up(result, &lanes[i]);
    }
    for (unsigned i = 0; i < running; i++) {
        carrier_free(&lanes[i].carrier);
    }
    free(lanes);
    if (error < 0) {
        return error;
    }
    uint64_t counted =
        all.counted_asleep > result->missing ? all.counted_asleep - result->missing : 1;
    result->started_ns = atomic_load(&all.asleep_ns) - all.began_ns;
    result->resident_kib = (double)(all.counted_kib - before_kib) / (double)counted;
    return 0;
}

int sleepers_print(const struct sleepers_setup *setup, const struct sleepers_result *result,
                   int json)
{
    const double s = (double)NS_PER_S;
    if (json) {
        printf("{\"fibers\":%" PRIu64 ",\"sleep_s\":%.3f,\"carriers\":%u,\"started_s\":%.3f,"
               "\"resident_kib_each\":%.3f,\"done_s\":%.3f,\"first_late_s\":%.6f,"
               "\"latest_s\":%.3f,\"early\":%" PRIu64 ",\"missing\":%" PRIu64 "}\n",
               setup->count, (double)setup->sleep_ns / s, setup->carriers,
               (double)result->started_ns / s, result->resident_kib, (double)result->done_ns / s,
               (double)result->late_min_ns / s, (double)result->late_max_ns / s, result->early,
               result->missing);
    } else {
        printf("%" PRIu64 " fibers on %u carriers, each asleep for %.3f s:\n"
               "  all asleep after       %9.3f s\n"
               "  resident, each         %9.2f KiB\n"
               "  the last awake after   %9.3f s\n"
               "  late, each by its time %9.6f s at least, %.3f s at most; %" PRIu64 " early\n",
               setup->count, setup->carriers, (double)setup->sleep_ns / s,
               (double)result->started_ns / s, result->resident_kib, (double)result->done_ns / s,
               (double)result->late_min_ns / s, (double)result->late_max_ns / s, result->early);
        if (result->missing > 0) {
            printf("  not started, for want of memory or mappings: %" PRIu64 "\n", result->missing);
        }
    }
    return result->early > 0 || result->missing > 0;
}
