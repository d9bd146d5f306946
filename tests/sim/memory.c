/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.c - the server's allocations, which fail when the seed says so and are counted.
 *
 * The simulation links a copy of the library in which malloc is called sim_malloc, and
 * so on (redefine.syms): the kernel's and the clients' own memory is libc's as ever.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "sim.h"

static size_t live, mapped;
static unsigned burst; /* so many more fail in a row */

void *sim_malloc(size_t size);
void *sim_calloc(size_t count, size_t size);
void *sim_realloc(void *memory, size_t size);
void sim_free(void *memory);
void *sim_mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset);
int sim_munmap(void *address, size_t length);
int sim_mincore(void *address, size_t length, unsigned char *vector);

size_t memory_live(void)
{
    return live;
}

size_t memory_mapped(void)
{
    return mapped;
}

static bool fails(void)
{
    if (!sim_world.armed || sim_world.rates.memory == 0) {
        return false;
    }
    if (burst > 0) {
        burst--;
    } else if (kernel_random(1000) >= sim_world.rates.memory) {
        return false;
    } else if (kernel_random(4) == 0) {
        burst = (unsigned)kernel_random(12);
    }
    sim_world.memory_faults++;
    sim_world.shortage_ns = kernel_now_ns();
    sim_note("!no memory", 0, 0, 0);
    errno = ENOMEM;
    return true;
}

void *sim_malloc(size_t size)
{
    void *memory = fails() ? NULL : malloc(size);
    live += memory != NULL;
    return memory;
}

void *sim_calloc(size_t count, size_t size)
{
    void *memory = fails() ? NULL : calloc(count, size);
    live += memory != NULL;
    return memory;
}

void *sim_realloc(void *memory, size_t size)
{
    void *moved = fails() ? NULL : realloc(memory, size);
    live += moved != NULL && memory == NULL;
    return moved;
}

void sim_free(void *memory)
{
    live -= memory != NULL;
    free(memory);
}

void *sim_mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset)
{
    void *memory = fails() ? MAP_FAILED : mmap(address, length, protection, flags, fd, offset);
    mapped += memory != MAP_FAILED ? length : 0;
    return memory;
}

int sim_munmap(void *address, size_t length)
{
    mapped -= length;
    return munmap(address, length);
}

/* What of a stack is resident depends on the machine, and an answer tells it. */
int sim_mincore(void *address, size_t length, unsigned char *vector)
{
    (void)address;
    for (size_t i = 0; i < length / 4096; i++) {
        vector[i] = 1;
    }
    return 0;
}
