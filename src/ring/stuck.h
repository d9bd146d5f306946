/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stuck.h - for programs without listeners (tests, benchmarks): say so when nothing
 * can ever wake any more, instead of hanging.
 *
 * Then every fiber is parked without a deadline and without anything in flight, the
 * threads that scopes and pools run wait for one another, and main is in carrier_join.
 * In a server a poll of each listener is always in flight: it is never asked.
 */
#ifndef RING_STUCK_H
#define RING_STUCK_H

/*
 * stuck_watch - from now on: on the main thread, before carriers start.
 *
 * The process ends by abort, after a line that says "nothing can ever wake" and a
 * dump of the fibers of all carriers on stderr.
 */
void stuck_watch(void);

/*
 * stuck__carrier_starts, stuck__carrier_ends - which carriers are looked at. Called by
 * carrier.c, on any thread.
 */
struct carrier;
void stuck__carrier_starts(struct carrier *carrier);
void stuck__carrier_ends(struct carrier *carrier);

#endif
