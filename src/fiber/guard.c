/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guard.c - guard markers, and mprotect where there are none. Called by stack.c
 * on each carrier's thread; what they share is atomic.
 */
#include "fiber/guard.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"

/* It splits one mapping into three. */
#define MAPPINGS_PER_GUARD 2
/* Of vm.max_map_count, kept for libraries, malloc, thread stacks and rings that come later. */
#define MAPPINGS_RESERVE 1024
#define MAX_MAP_COUNT_DEFAULT 65530 /* the kernel's own */
#define LIMIT_LOG_PERIOD_S 60

/* One budget for the process, as vm.max_map_count is; -1 until the first fallback counts it. */
static long mappings_left = -1;
static time_t limit_logged_s; /* 0: never */

static long read_max_map_count(void)
{
    long count = MAX_MAP_COUNT_DEFAULT;
    FILE *file = fopen("/proc/sys/vm/max_map_count", "re");
    if (file != NULL) {
        if (fscanf(file, "%ld", &count) != 1) {
            count = MAX_MAP_COUNT_DEFAULT;
        }
        (void)fclose(file);
    }
    return count;
}

static long count_mappings(void)
{
    FILE *file = fopen("/proc/self/maps", "re");
    if (file == NULL) {
        return 0;
    }
    long lines = 0;
    for (int c = getc(file); c != EOF; c = getc(file)) {
        lines += c == '\n';
    }
    (void)fclose(file);
    return lines;
}

static void use_mprotect(struct guard *guard)
{
    guard->markers = false;
    long left = read_max_map_count() - count_mappings() - MAPPINGS_RESERVE;
    left = left > 0 ? left : 0;
    long unknown = -1;
    if (__atomic_compare_exchange_n(&mappings_left, &unknown, left, false, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED)) {
        log_warn("fiber.guard",
                 "No guard markers here (Linux 6.13 has them): stacks are guarded by mprotect, at "
                 "most %ld fibers; raise sysctl vm.max_map_count for more",
                 left / MAPPINGS_PER_GUARD);
    }
}

static void log_limit(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    time_t last = __atomic_load_n(&limit_logged_s, __ATOMIC_RELAXED);
    if (last != 0 && now.tv_sec - last < LIMIT_LOG_PERIOD_S) {
        return;
    }
    if (__atomic_compare_exchange_n(&limit_logged_s, &last, now.tv_sec, false, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED)) {
        log_warn("fiber.guard",
                 "No mapping left to guard another stack: raise sysctl vm.max_map_count (now %ld)",
                 read_max_map_count());
    }
}

static int guard_by_mprotect(struct guard *guard, char *low, size_t size)
{
    if (__atomic_sub_fetch(&mappings_left, MAPPINGS_PER_GUARD, __ATOMIC_RELAXED) < 0 ||
        mprotect(low, size, PROT_NONE) != 0) {
        (void)__atomic_add_fetch(&mappings_left, MAPPINGS_PER_GUARD, __ATOMIC_RELAXED);
        log_limit();
        return -ENOMEM;
    }
    guard->mappings += MAPPINGS_PER_GUARD;
    return 0;
}

bool guard_markers_work(void)
{
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    char *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) {
        return false;
    }
    bool work = madvise(page, size, MADV_GUARD_INSTALL) == 0;
    (void)munmap(page, size);
    return work;
}

void guard_init(struct guard *guard, bool force_mprotect)
{
    *guard = (struct guard){.markers = !force_mprotect && guard_markers_work()};
    if (!guard->markers) {
        use_mprotect(guard);
    }
}

void guard_fini(struct guard *guard)
{
    (void)__atomic_add_fetch(&mappings_left, (long)guard->mappings, __ATOMIC_RELAXED);
    guard->mappings = 0;
}

int guard_install(struct guard *guard, char *low, size_t size)
{
    if (guard->markers) {
        if (madvise(low, size, MADV_GUARD_INSTALL) == 0) {
            return 0;
        }
        if (errno != EINVAL) {
            return -ENOMEM;
        }
        /* the memory got locked after the probe */
        use_mprotect(guard);
    }
    return guard_by_mprotect(guard, low, size);
}

long guard_mappings_left(void)
{
    return __atomic_load_n(&mappings_left, __ATOMIC_RELAXED);
}
