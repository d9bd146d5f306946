/* SPDX-License-Identifier: Apache-2.0 */
/*
 * registers.h - what the calling convention makes a function preserve, filled and
 * compared around a switch. In assembly of its own (registers.S): no compiler, and no
 * optimisation at link time, has a say in it.
 */
#ifndef REGISTERS_H
#define REGISTERS_H

#include <stdint.h>

#include "fiber/switch.h"

/*
 * registers_survive - fill each preserved register with seed and a number of its
 * own, and switch_to(from, to).
 *
 * Returns  the bits in which any of them differs when somebody has switched back
 */
#if defined(__x86_64__) || defined(__aarch64__)
uint64_t registers_survive(struct switch_context *from, struct switch_context *to, uint64_t seed);
#else
static inline uint64_t registers_survive(struct switch_context *from, struct switch_context *to,
                                         uint64_t seed)
{
    (void)seed;
    switch_to(from, to);
    return 0;
}
#endif

#endif
