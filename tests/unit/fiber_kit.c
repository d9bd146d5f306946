/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fiber_kit.c - see fiber_kit.h.
 */
#include "fiber_kit.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

uint64_t kit_virtual_now_ns;

uint64_t kit_virtual_ns(void)
{
    return kit_virtual_now_ns;
}

bool kit_on_valgrind(void)
{
    const char *preload = getenv("LD_PRELOAD");
    return preload != NULL && strstr(preload, "vgpreload") != NULL;
}

unsigned kit_rounds(unsigned plain, unsigned sanitized, unsigned on_valgrind)
{
    return KIT_SANITIZED ? sanitized : kit_on_valgrind() ? on_valgrind : plain;
}

uint64_t kit_clock_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

size_t kit_resident_bytes(void)
{
    size_t total = 0;
    size_t resident = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file == NULL || fscanf(file, "%zu %zu", &total, &resident) != 2) {
        abort();
    }
    (void)fclose(file);
    return resident * (size_t)sysconf(_SC_PAGESIZE);
}

size_t kit_mappings(void)
{
    size_t lines = 0;
    FILE *file = fopen("/proc/self/maps", "re");
    if (file == NULL) {
        abort();
    }
    for (int c = getc(file); c != EOF; c = getc(file)) {
        lines += c == '\n';
    }
    (void)fclose(file);
    return lines;
}

bool kit_faults(const void *address)
{
    static int pipes[2] = {-1, -1};
    char byte;
    if (pipes[0] < 0 && pipe(pipes) != 0) {
        abort();
    }
    if (write(pipes[1], address, 1) == 1) {
        return read(pipes[0], &byte, 1) != 1;
    }
    return errno == EFAULT;
}

int kit_child(void (*body)(void *argument), void *argument, char *text, size_t size)
{
    int pipes[2];
    (void)fflush(NULL);
    if (pipe(pipes) != 0) {
        abort();
    }
    pid_t child = fork();
    if (child == 0) {
        struct rlimit none = {0};
        (void)setrlimit(RLIMIT_CORE, &none);
        (void)dup2(pipes[1], STDERR_FILENO);
        (void)close(pipes[0]);
        (void)close(pipes[1]);
        (void)alarm(30);
        body(argument);
        _exit(0);
    }
    (void)close(pipes[1]);
    size_t length = 0;
    for (;;) {
        ssize_t got = read(pipes[0], text + length, size - 1 - length);
        if (got <= 0 || length + (size_t)got == size - 1) {
            length += got > 0 ? (size_t)got : 0;
            break;
        }
        length += (size_t)got;
    }
    text[length] = '\0';
    (void)close(pipes[0]);
    int status = 0;
    if (waitpid(child, &status, 0) != child) {
        abort();
    }
    return status;
}

uint64_t kit_seed(const char *test)
{
    const char *given = getenv("KIT_SEED");
    uint64_t seed = given != NULL ? strtoull(given, NULL, 0) : kit_clock_ns();
    printf("%s: KIT_SEED=%" PRIu64 "\n", test, seed);
    return seed;
}

uint64_t kit_random(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}
