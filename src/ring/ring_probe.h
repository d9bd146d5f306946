/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring_probe.h - what the io_uring of this kernel can do, tried out and not read from
 * its version. For the doctor.
 */
#ifndef RING_RING_PROBE_H
#define RING_RING_PROBE_H

#include <stdbool.h>
#include <stddef.h>

#define RING_CAPABILITIES_MAX 24

/* What the lack of a capability means to this program. */
enum ring_role {
    RING_NEEDED,   /* it does not start */
    RING_FALLBACK, /* it does without, at a price */
    RING_UNUSED    /* nothing: told for information */
};

struct ring_capability {
    const char *name;  /* static, as all here */
    const char *since; /* Linux */
    enum ring_role role;
    const char *without; /* what is done instead; NULL where nothing can be */
    bool present;
};

struct ring_probe {
    int error;           /* of setting a ring up as a carrier does: 0, or -errno for ring_refusal */
    unsigned halved;     /* see struct ring */
    size_t locked_bytes; /* of a whole ring, as far as they count against RLIMIT_MEMLOCK */
    unsigned operations; /* that a ring takes, all others are refused; 0: any */
    bool locked_counts;  /* does this kernel hold them against this user at all? */
    struct ring_capability capabilities[RING_CAPABILITIES_MAX];
    size_t capability_count;
};

/*
 * ring_probe - set a ring up, try each capability on it, and take it down.
 *
 * RLIMIT_MEMLOCK's soft limit is lowered for a moment, to see whether it counts: call
 * it while no other thread works.
 *
 * Source  io_uring_setup(2), io_uring_register(2) IORING_REGISTER_PROBE; rings count against
 *         RLIMIT_MEMLOCK up to Linux 5.11 and again from 6.14 on, unless CAP_IPC_LOCK
 */
void ring_probe(struct ring_probe *probe);

#endif
