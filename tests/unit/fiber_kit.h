/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fiber_kit.h - what the tests of fiber/ share: clocks, what the process holds
 * of memory, children that are expected to die, and a printed seed.
 */
#ifndef FIBER_KIT_H
#define FIBER_KIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Under a sanitizer memory is counted in vain, and TSan knows 8000 threads at most. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define KIT_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define KIT_SANITIZED 1
#endif
#endif
#ifndef KIT_SANITIZED
#define KIT_SANITIZED 0
#endif

/* kit_on_valgrind - which is slow with many stacks, and knows some 30 000 mappings at most. */
bool kit_on_valgrind(void);

/* kit_rounds - how often to repeat something: as it is, under a sanitizer, on valgrind. */
unsigned kit_rounds(unsigned plain, unsigned sanitized, unsigned on_valgrind);

/* kit_clock_ns - CLOCK_MONOTONIC. */
uint64_t kit_clock_ns(void);

/* kit_virtual_ns - a clock that stands still until the test moves kit_virtual_now_ns. */
extern uint64_t kit_virtual_now_ns;
uint64_t kit_virtual_ns(void);

/* kit_resident_bytes - of the process now. */
size_t kit_resident_bytes(void);

/* kit_mappings - lines of /proc/self/maps. */
size_t kit_mappings(void);

/* kit_faults - would reading this byte fault? Asked of the kernel, so nothing dies. */
bool kit_faults(const void *address);

/*
 * kit_child - run body(argument) in a forked child without core dump.
 *
 * @text, @size  gets what it wrote to stderr, as a string
 *
 * Returns  its wait status; the child exits with 0 when body returns
 */
int kit_child(void (*body)(void *argument), void *argument, char *text, size_t size);

/*
 * kit_seed - from KIT_SEED in the environment or the clock; printed, so that a
 * failure can be repeated.
 */
uint64_t kit_seed(const char *test);

/* kit_random - the next number (splitmix64). */
uint64_t kit_random(uint64_t *state);

#endif
