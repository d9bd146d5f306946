/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spawn.c - what a fiber's life costs: spawned, run and ended on a stack that is
 * reused (of which most is the system call of setcontext); and many fibers that
 * all park, each on a fresh stack: time, memory and mappings. The number of
 * many may be given, 100 000 otherwise.
 */
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "base/must.h"
#include "fiber/fiber.h"
#include "ring/sys.h"
#include "rounds.h"

#define LIVES 100000
#define MANY 100000

static struct sched sched;

static void nothing(void *argument)
{
    (void)argument;
}

static void park(void *argument)
{
    (void)argument;
    (void)fiber_park("bench", 0);
}

static void spawn(void (*entry)(void *), unsigned i)
{
    must(fiber_spawn(&sched, (struct fiber_name){"bench-", i}, entry, NULL) != NULL);
}

static double measure_lives(unsigned at_once)
{
    uint64_t start_ns = sys_clock_ns();
    for (unsigned i = 0; i < LIVES; i += at_once) {
        for (unsigned j = 0; j < at_once; j++) {
            spawn(nothing, j);
        }
        (void)sched_run(&sched);
    }
    return (double)(sys_clock_ns() - start_ns) / LIVES;
}

static size_t count_mappings(void)
{
    size_t lines = 0;
    FILE *file = fopen("/proc/self/maps", "re");
    must(file != NULL);
    for (int c = getc(file); c != EOF; c = getc(file)) {
        lines += c == '\n';
    }
    (void)fclose(file);
    return lines;
}

/* A field of /proc/self/status in KiB, such as "VmRSS:". */
static size_t status_kib(const char *field)
{
    char line[256];
    size_t kib = 0;
    FILE *file = fopen("/proc/self/status", "re");
    must(file != NULL);
    while (fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, field, strlen(field)) == 0) {
            kib = (size_t)strtoull(line + strlen(field), NULL, 10);
        }
    }
    (void)fclose(file);
    return kib;
}

static void measure_many(unsigned many)
{
    size_t resident = status_kib("VmRSS:");
    size_t tables = status_kib("VmPTE:");
    size_t mappings = count_mappings();
    uint64_t start_ns = sys_clock_ns();
    for (unsigned i = 0; i < many; i++) {
        spawn(park, i);
    }
    uint64_t spawned_ns = sys_clock_ns();
    must(sched_run(&sched) == many);
    uint64_t parked_ns = sys_clock_ns();
    printf("\n%u fibers, each parked on a fresh stack of 64 KiB:\n", many);
    printf("  spawned in %.0f ns each, run and parked in %.0f ns each\n",
           (double)(spawned_ns - start_ns) / many, (double)(parked_ns - spawned_ns) / many);
    printf("  %.2f KiB resident each, %.2f KiB of page tables each, %zu mappings more in all\n",
           (double)(status_kib("VmRSS:") - resident) / many,
           (double)(status_kib("VmPTE:") - tables) / many, count_mappings() - mappings);
    for (struct list *node = sched.live.next; node != &sched.live; node = node->next) {
        fiber_wake(container_of(node, struct fiber, live_link));
    }
    start_ns = sys_clock_ns();
    must(sched_run(&sched) == many);
    printf("  woken and ended in %.0f ns each\n", (double)(sys_clock_ns() - start_ns) / many);
    start_ns = sys_clock_ns();
    while (stack_pool_trim(&sched.stacks, 256)) {
    }
    printf("  trimmed in %.0f ns each, after which %zu KiB more than at first are resident\n",
           (double)(sys_clock_ns() - start_ns) / many, status_kib("VmRSS:") - resident);
}

int main(int count, char **arguments)
{
    struct sched_setup setup = {.stack_bytes = 65536, .clock_ns = sys_clock_ns};
    must(sched_init(&sched, &setup) == 0);
    struct rounds one = {.name = "spawn, run and end, one at a time"};
    struct rounds hundred = {.name = "spawn, run and end, 100 at a time"};
    for (unsigned round = 0; round < ROUNDS; round++) {
        rounds_add(&one, measure_lives(1));
        rounds_add(&hundred, measure_lives(100));
    }
    rounds_print_head("a fiber's life");
    rounds_print(&one);
    rounds_print(&hundred);
    measure_many(count > 1 ? (unsigned)strtoul(arguments[1], NULL, 10) : MANY);
    sched_fini(&sched);
    return 0;
}
