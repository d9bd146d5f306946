/* SPDX-License-Identifier: Apache-2.0 */
/*
 * echo_wait.h - how long connections follow each other on a listener: the wait to
 * accept, from the hand-over of one connection to that of the next, whichever
 * carrier took them. Pure; any thread.
 */
#ifndef APP_ECHO_WAIT_H
#define APP_ECHO_WAIT_H

#include <stdatomic.h>
#include <stdint.h>

/* All zero: nothing has come. */
struct echo_wait {
    atomic_uint_fast64_t connections;
    atomic_uint_fast64_t first_ns; /* hand-over of the first, CLOCK_MONOTONIC */
    atomic_uint_fast64_t last_ns;  /* of the latest */
    atomic_uint_fast64_t max_ns;   /* the longest wait between two */
};

/*
 * echo_wait_note - a connection is handed over.
 *
 * @now_ns  CLOCK_MONOTONIC, not 0; of two threads at once either may come first
 *
 * Returns  how many have been, this one included
 */
uint64_t echo_wait_note(struct echo_wait *wait, uint64_t now_ns);

/* echo_wait_average_ns - 0 before there were two. */
uint64_t echo_wait_average_ns(const struct echo_wait *wait);

#endif
