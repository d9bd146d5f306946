/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guard.h - makes pages of a mapping fault at every access.
 *
 * By MADV_GUARD_INSTALL (Linux 6.13), whose markers lie in the page tables, cost
 * no mapping and stay when MADV_DONTNEED passes over them; on older kernels by
 * mprotect(2), which splits the mapping: two mappings a guard against
 * vm.max_map_count, so that some 32 000 stacks are the most.
 */
#ifndef FIBER_GUARD_H
#define FIBER_GUARD_H

#include <stdbool.h>
#include <stddef.h>

#include <sys/mman.h>

#include "base/attr.h"

/* Linux 6.13; glibc has it since 2.41. Same value on all processors. */
#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif

struct guard {
    bool markers;    /* MADV_GUARD_INSTALL works here */
    size_t mappings; /* that the mprotect guards of this one have taken */
};

/* guard_markers_work - does this kernel take a MADV_GUARD_INSTALL? Tried on a page. */
bool guard_markers_work(void);

/*
 * guard_init - probe what the kernel has. The fallback is logged, once in the
 * process, with the number of fibers that it allows.
 *
 * @force_mprotect  use the fallback whatever the kernel can do (tests)
 */
void guard_init(struct guard *guard, bool force_mprotect);

/* guard_fini - the guarded mappings are gone: their share of vm.max_map_count is free again. */
void guard_fini(struct guard *guard);

/*
 * guard_install - guard size bytes at low, both multiples of the page.
 *
 * Returns  0; -ENOMEM no memory, or no mapping left (then logged, at most once a
 *          minute, naming vm.max_map_count)
 * Source   madvise(2); mm/madvise.c refuses markers on locked memory (EINVAL),
 *          there too mprotect serves
 */
int guard_install(struct guard *guard, char *low, size_t size) WARN_UNUSED;

/*
 * guard_mappings_left - what mprotect guards may still take of vm.max_map_count;
 * -1 when none was needed.
 */
long guard_mappings_left(void);

#endif
