/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limits.c - see limits.h. Called by process.c and the doctor.
 */
#include "app/limits.h"

/* Descriptors that the process keeps for itself; see server.tomcat.max-connections. */
#define DESCRIPTORS_RESERVED 64u

/*
 * Standard streams, signals, eventfd, service manager, one probe; the listeners; and per carrier a
 * ring and an eventfd.
 */
#define DESCRIPTORS_FIXED 9u
#define DESCRIPTORS_PER_CARRIER 2u

#define FANOUT_CALLS_TOGETHER_MAX 10000u

/* To serve somebody with. */
#define DESCRIPTORS_SERVING 8u

uint64_t limits_needed(unsigned listeners, unsigned carriers)
{
    return DESCRIPTORS_FIXED + (uint64_t)listeners + DESCRIPTORS_PER_CARRIER * (uint64_t)carriers +
           DESCRIPTORS_SERVING;
}

uint64_t limits_connections(uint64_t descriptors, uint64_t needed)
{
    if (descriptors < needed) {
        return 0;
    }
    /* Where the reserve would leave nothing, keep what is needed and share out the rest. */
    uint64_t connections = descriptors > 2 * DESCRIPTORS_RESERVED
                               ? descriptors - DESCRIPTORS_RESERVED
                               : (descriptors - needed + DESCRIPTORS_SERVING) / 2;
    return connections < LIMITS_CONNECTIONS_MAX ? connections : LIMITS_CONNECTIONS_MAX;
}

unsigned limits_fanout_calls(unsigned connections)
{
    unsigned calls = connections / 8 > 0 ? connections / 8 : 1;
    return calls < FANOUT_CALLS_TOGETHER_MAX ? calls : FANOUT_CALLS_TOGETHER_MAX;
}
