/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limits.h - how a descriptor limit is shared out, for the start and for the doctor. Pure.
 */
#ifndef APP_LIMITS_H
#define APP_LIMITS_H

#include <stdint.h>

/* Whatever the descriptors: no more connections than this. */
#define LIMITS_CONNECTIONS_MAX 1000000u

/* limits_needed - the descriptors without which the process does not start. */
uint64_t limits_needed(unsigned listeners, unsigned carriers);

/*
 * limits_connections - how many connections may live.
 *
 * @descriptors  RLIMIT_NOFILE
 * @needed       from limits_needed
 *
 * Returns  0 when there are fewer than needed
 */
uint64_t limits_connections(uint64_t descriptors, uint64_t needed);

/*
 * limits_fanout_calls - how many calls all /fanout in work may make together. One costs two
 * descriptors where the remote is served here too: a quarter of all, so that neither clients nor
 * other calls lack any; and a stack, on a platform server a thread, hence an absolute bound.
 */
unsigned limits_fanout_calls(unsigned connections);

#endif
