/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring.h - one io_uring and its provided buffers: set-up, submit, wait, reap.
 *
 * Hop of the data path: socket bytes become a completion here. Knows
 * neither operations nor fibers; op.c fills the SQEs. One thread uses a ring, the
 * one that made it. Needs Linux 6.1 (DEFER_TASKRUN); what came later is probed.
 */
#ifndef RING_RING_H
#define RING_RING_H

#include <liburing.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"

#define RING_SQ_ENTRIES 256u
#define RING_CQ_ENTRIES 4096u
#define RING_BUFFERS 2048u      /* a power of two, as the kernel asks */
#define RING_BUFFER_BYTES 2048u /* one received piece */
#define RING_BUFFER_GROUP 0     /* buffer group id */
#define RING_DIRECT_SLOTS 16u   /* for clients that find no descriptor left */

/* A completion, copied out of the CQ. */
struct ring_event {
    uint64_t user_data;
    int32_t result;
    uint32_t flags;
};

struct ring_setup {
    unsigned sq_entries; /* 0: RING_SQ_ENTRIES */
    unsigned cq_entries; /* 0: RING_CQ_ENTRIES */
    unsigned buffers;    /* 0: RING_BUFFERS */
};

struct ring {
    struct io_uring uring;
    struct io_uring_buf_ring *buffer_ring;
    char *buffer_memory;
    unsigned buffer_count;
    /* what this kernel has, probed at set-up */
    bool registered;     /* the ring's descriptor is registered with itself */
    bool recv_cap;       /* multishot recv ends by itself after so many bytes (6.17) */
    bool direct_slots;   /* the sparse table of direct descriptors is there */
    unsigned restricted; /* so many operations it takes, all others are refused; 0: any */
    unsigned halved;     /* times the rings were made smaller for want of locked memory */
    /* figures */
    uint64_t enters;
    uint64_t overflows; /* times the CQ was too small for what had come: nothing was lost */
};

/*
 * ring_init - a ring for the calling thread, ready to submit.
 *
 * Returns  0; -EPERM refused (seccomp, or kernel.io_uring_disabled); -ENOSYS no
 *          io_uring; -EINVAL the kernel lacks what 6.1 has; -ENOMEM even the
 *          smallest ring does not fit the locked-memory limit; -EMFILE
 * Source   io_uring_setup(2); design decision: SINGLE_ISSUER | DEFER_TASKRUN
 */
int ring_init(struct ring *ring, const struct ring_setup *setup) WARN_UNUSED;

/* ring_fini - the kernel ends what is still in flight. */
void ring_fini(struct ring *ring);

/* ring_sqe - a zeroed submission entry; when the queue is full it is submitted first. */
struct io_uring_sqe *ring_sqe(struct ring *ring);

/*
 * ring_enter - submit what is queued, and let the kernel run what is due.
 *
 * @wait_ns  how long to wait for a completion: 0 not at all, UINT64_MAX without end
 *
 * Returns when a completion is there, the time is over or a signal came.
 */
void ring_enter(struct ring *ring, uint64_t wait_ns);

/* ring_reap - copy out at most capacity completions, oldest first, and mark them seen. Returns how many. */
size_t ring_reap(struct ring *ring, struct ring_event *dst, size_t capacity);

/* ring_buffer - the memory of buffer id, RING_BUFFER_BYTES long; ring_buffer_give hands it back to the kernel. */
char *ring_buffer(struct ring *ring, uint16_t id);
void ring_buffer_give(struct ring *ring, uint16_t id);

/* What people want to know about a ring. */
struct ring_facts {
    int fd;
    unsigned sq_entries;
    unsigned cq_entries;
    unsigned buffers;      /* provided for receiving */
    unsigned buffer_bytes; /* of each */
};

void ring_facts(const struct ring *ring, struct ring_facts *facts);

/* ring_feature - the name of the n-th feature in use, from 0; NULL behind the last. Static text. */
const char *ring_feature(const struct ring *ring, unsigned n);

/* ring_refusal - why ring_init failed and which command mends it, one line of static text or formatted into dst. */
void ring_refusal(int error, char *dst, size_t size);

/* ring_version - "2.9": of the liburing that is linked. Static text. */
const char *ring_version(void);

#endif
