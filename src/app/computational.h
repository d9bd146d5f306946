/* SPDX-License-Identifier: Apache-2.0 */
/*
 * computational.h - the work of GET /computational. Pure.
 */
#ifndef APP_COMPUTATIONAL_H
#define APP_COMPUTATIONAL_H

/*
 * computational_sum - draw so many numbers from [0, 1) and add them up.
 *
 * @state  48 bits, the lowest 16 first; moved on by count draws
 *
 * Source  erand48_r(3): X' = 0x5DEECE66D X + 11 mod 2^48, as java.util.Random
 */
double computational_sum(unsigned short state[3], unsigned count);

#endif
