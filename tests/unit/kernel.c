/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel.c - the scripted kernel's world: seed, clock, script, what was violated.
 */
#include "kernel_parts.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/time.h"
#include "fiber_kit.h"

/* A script of one kind of call. */
struct script {
    uint64_t count;
    uint64_t fail_from, fail_until; /* numbers of calls; [from, until) */
    int error;
    uint64_t short_at;
    size_t short_bytes;
};

struct kernel_knobs kernel_knobs;
struct kernel_hooks kernel_hooks;

static struct {
    uint64_t seed;
    bool seeded;
    uint64_t random;
    uint64_t now_ns;
    struct script scripts[KERNEL_CALLS];
    unsigned blocked;
    uint64_t changes;
} world;

static pthread_mutex_t world_mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_cond_t world_changed = PTHREAD_COND_INITIALIZER;

void kernel__lock(void)
{
    pthread_mutex_lock(&world_mutex);
}

void kernel__unlock(void)
{
    pthread_mutex_unlock(&world_mutex);
}

void kernel__wake(struct kernel_file *file)
{
    if (file != NULL) {
        file->wakes++;
    }
    world.changes++;
    pthread_cond_broadcast(&world_changed);
}

void kernel__wait(void)
{
    uint64_t seen = world.changes;
    world.blocked++;
    while (world.changes == seen) {
        pthread_cond_wait(&world_changed, &world_mutex);
    }
    world.blocked--;
}

void kernel__wait_a_while(void)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    world.blocked++; /* nobody sees it fall and rise, for the lock is held then */
    (void)pthread_cond_timedwait(&world_changed, &world_mutex, &until);
    world.blocked--;
}

unsigned kernel_blocked_threads(void)
{
    kernel__lock();
    unsigned blocked = world.blocked;
    kernel__unlock();
    return blocked;
}

void kernel_seed(uint64_t seed)
{
    world.seed = seed;
    world.seeded = true;
}

void kernel_start(uint64_t round)
{
    if (!world.seeded) {
        const char *given = getenv("SEED");
        world.seed = given != NULL ? strtoull(given, NULL, 0) : kit_clock_ns() % 1000000007;
        world.seeded = true;
        printf("SEED=%" PRIu64 "\n", world.seed);
        (void)fflush(stdout);
    }
    kernel__lock();
    kernel_knobs = (struct kernel_knobs){
        .late_percent = 25,
        .chop_percent = 25,
        .race_percent = 30,
        .break_percent = 5,
        .uncut_percent = 50,
        .descriptors = 4096,
        .window = 65536,
        .recv_cap = true,
        .direct_slots = true,
        .sq_entries = 256,
        .cq_entries = 4096,
        .buffers = 64,
    };
    world.random = world.seed * UINT64_C(1000003) + round;
    memset(world.scripts, 0, sizeof(world.scripts));
    kernel__unlock();
    world.now_ns = 1000 * NS_PER_S + kernel_random(NS_PER_S);
    kernel__files_reset();
    kernel__names_reset();
}

void kernel_start_uneven(uint64_t round)
{
    kernel_start(round);
    kernel_knobs.recv_cap = round % 2 == 0;
    kernel_knobs.late_percent = (unsigned)kernel_random(60);
}

uint64_t kernel_random(uint64_t bound)
{
    kernel__lock();
    uint64_t drawn = kit_random(&world.random);
    kernel__unlock();
    return bound == 0 ? 0 : drawn % bound;
}

bool kernel__chance(unsigned percent)
{
    return kernel_random(100) < percent;
}

bool kernel__fault(const char *what, unsigned percent)
{
    if (percent == 0 || !kernel__chance(percent)) {
        return false;
    }
    kernel__note(what, 0, 0, 0);
    return true;
}

uint64_t kernel_now_ns(void)
{
    kernel__lock();
    uint64_t now_ns = world.now_ns;
    kernel__unlock();
    return now_ns;
}

void kernel_pass(uint64_t ns)
{
    kernel__lock();
    world.now_ns += ns;
    kernel__note("pass", ns, 0, 0);
    kernel__wake(NULL);
    kernel__unlock();
}

void kernel_fail(enum kernel_call call, unsigned nth, unsigned times, int error)
{
    kernel__lock();
    struct script *script = &world.scripts[call];
    script->fail_from = script->count + nth;
    script->fail_until = script->fail_from + times;
    script->error = error;
    kernel__unlock();
}

void kernel_short(enum kernel_call call, unsigned nth, size_t bytes)
{
    kernel__lock();
    struct script *script = &world.scripts[call];
    script->short_at = script->count + nth;
    script->short_bytes = bytes;
    kernel__unlock();
}

uint64_t kernel_count(enum kernel_call call)
{
    kernel__lock();
    uint64_t count = world.scripts[call].count;
    kernel__unlock();
    return count;
}

int kernel__script(enum kernel_call call, const struct kernel_request *request, size_t *bytes)
{
    struct script *script = &world.scripts[call];
    uint64_t number = ++script->count;
    if (bytes != NULL) {
        *bytes = number == script->short_at ? script->short_bytes : SIZE_MAX;
    }
    if (number >= script->fail_from && number < script->fail_until) {
        return script->error;
    }
    if (kernel_hooks.fault == NULL) {
        return 0;
    }
    size_t ignored = SIZE_MAX;
    return kernel_hooks.fault(call, request->file, request->sqe, bytes != NULL ? bytes : &ignored);
}

void kernel_violation(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    fprintf(stderr, "scripted kernel, SEED=%" PRIu64 ": ", world.seed);
    vfprintf(stderr, format, values);
    fprintf(stderr, "\n");
    va_end(values);
    abort();
}
