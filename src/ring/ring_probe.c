/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring_probe.c - see ring_probe.h. Called by the doctor on the main thread.
 */
#include "ring/ring_probe.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/must.h"
#include "base/time.h"
#include "ring/ring.h"

#define PROBE_WAIT_NS (NS_PER_S / 2)
#define PROBE_TRIES 4u
#define PAGE_BYTES ((size_t)4096) /* what counts is rounded up to pages, 4 KiB or more */

/* ---------------------------------------------------------------- without a ring of ours */

/* set_up - does a small ring with these flags come into being? Returns 0 or -errno. */
static int set_up(unsigned flags)
{
    struct io_uring uring;
    int result = io_uring_queue_init(4, &uring, flags);
    if (result == 0) {
        io_uring_queue_exit(&uring);
    }
    return result;
}

static bool has_single_issuer(struct ring *ring)
{
    return ring != NULL || set_up(IORING_SETUP_SINGLE_ISSUER) == 0;
}

static bool has_defer_taskrun(struct ring *ring)
{
    return ring != NULL || set_up(IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN) == 0;
}

static bool has_submit_all(struct ring *ring)
{
    return ring != NULL || set_up(IORING_SETUP_SUBMIT_ALL) == 0;
}

static bool has_buffer_ring(struct ring *ring)
{
    struct io_uring uring;
    int result = 0;
    if (ring != NULL || io_uring_queue_init(4, &uring, 0) < 0) {
        return ring != NULL;
    }
    struct io_uring_buf_ring *buffers = io_uring_setup_buf_ring(&uring, 8, 0, 0, &result);
    if (buffers != NULL) {
        io_uring_free_buf_ring(&uring, buffers, 8, 0);
    }
    io_uring_queue_exit(&uring);
    return buffers != NULL;
}

/* ---------------------------------------------------------------- on a ring of ours */

static bool has_registered_ring(struct ring *ring)
{
    return ring != NULL && ring->registered;
}

static bool has_timed_wait(struct ring *ring)
{
    return ring != NULL && (ring->uring.features & IORING_FEAT_EXT_ARG) != 0;
}

static bool has_direct_slots(struct ring *ring)
{
    return ring != NULL && ring->direct_slots;
}

static bool has_recv_cap(struct ring *ring)
{
    return ring != NULL && ring->recv_cap;
}

/* next_event - the next completion; false when none comes in time. */
static bool next_event(struct ring *ring, struct ring_event *event)
{
    bool told = false;
    for (unsigned i = 0; i < PROBE_TRIES && !told; i++) {
        ring_enter(ring, PROBE_WAIT_NS / PROBE_TRIES); /* a signal may end it */
        told = ring_reap(ring, event, 1) == 1;
    }
    return told;
}

static bool has_multishot_recv(struct ring *ring)
{
    int pair[2];
    if (ring == NULL || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
        return false;
    }
    close(pair[1]);
    struct io_uring_sqe *sqe = ring_sqe(ring);
    io_uring_prep_recv_multishot(sqe, pair[0], NULL, 0, 0);
    sqe->flags |= IOSQE_BUFFER_SELECT;
    sqe->buf_group = RING_BUFFER_GROUP;
    struct ring_event event;
    bool ended = next_event(ring, &event) && event.result == 0; /* -EINVAL without */
    close(pair[0]);
    return ended;
}

static bool has_multishot_poll(struct ring *ring)
{
    int counter = ring != NULL ? eventfd(1, EFD_CLOEXEC) : -1;
    if (counter < 0) {
        return false;
    }
    io_uring_prep_poll_multishot(ring_sqe(ring), counter, POLLIN);
    struct ring_event event;
    bool goes_on = next_event(ring, &event) && (event.flags & IORING_CQE_F_MORE) != 0;
    if (goes_on) {
        /* Two completions: of the cancel, and the poll's last. */
        io_uring_prep_cancel64(ring_sqe(ring), 0, 0);
        (void)next_event(ring, &event);
        (void)next_event(ring, &event);
    }
    close(counter);
    return goes_on;
}

/* has_restrictions - registered, and an operation that is not on the list is refused. */
static bool has_restrictions(struct ring *ring)
{
    if (ring == NULL || !ring->restricted) {
        return false;
    }
    io_uring_prep_nop(ring_sqe(ring));
    struct ring_event event;
    return next_event(ring, &event) && event.result == -EACCES;
}

/* ---------------------------------------------------------------- the table */

struct trial {
    struct ring_capability capability;
    bool (*present)(struct ring *ring); /* ring NULL: none could be set up */
    int opcode;                         /* asked for instead, where present is NULL */
};

#define OPCODE(text, code, version)                                                                \
    {                                                                                              \
        .capability = {.name = (text), .since = (version), .role = RING_NEEDED}, .opcode = (code)  \
    }

static const struct trial trials[] = {
    {.capability = {"SINGLE_ISSUER", "6.0", RING_NEEDED, NULL, false},
     .present = has_single_issuer},
    {.capability = {"DEFER_TASKRUN", "6.1", RING_NEEDED, NULL, false},
     .present = has_defer_taskrun},
    {.capability = {"SUBMIT_ALL", "5.18", RING_NEEDED, NULL, false}, .present = has_submit_all},
    {.capability = {"PROVIDED_BUFFERS", "5.19", RING_NEEDED, NULL, false},
     .present = has_buffer_ring},
    OPCODE("SEND", IORING_OP_SEND, "5.6"),
    OPCODE("RECV", IORING_OP_RECV, "5.6"),
    OPCODE("CONNECT", IORING_OP_CONNECT, "5.5"),
    OPCODE("ACCEPT", IORING_OP_ACCEPT, "5.5"),
    OPCODE("READ", IORING_OP_READ, "5.6"),
    OPCODE("CLOSE", IORING_OP_CLOSE, "5.6"),
    OPCODE("ASYNC_CANCEL", IORING_OP_ASYNC_CANCEL, "5.5"),
    {.capability = {"MULTISHOT_POLL", "5.13", RING_NEEDED, NULL, false},
     .present = has_multishot_poll},
    {.capability = {"EXT_ARG", "5.11", RING_FALLBACK, "each timed wait costs an operation", false},
     .present = has_timed_wait},
    {.capability = {"REGISTERED_RING", "5.18", RING_FALLBACK,
                    "the kernel looks the ring's descriptor up at each call", false},
     .present = has_registered_ring},
    {.capability = {"DIRECT_DESCRIPTORS", "5.19", RING_FALLBACK,
                    "a client that finds no descriptor left waits instead of being told 503",
                    false},
     .present = has_direct_slots},
    {.capability = {"MULTISHOT_RECV", "6.0", RING_FALLBACK, "each receive is armed alone", false},
     .present = has_multishot_recv},
    {.capability = {"MULTISHOT_RECV_CAP", "6.17", RING_FALLBACK, "each receive is armed alone",
                    false},
     .present = has_recv_cap},
    {.capability = {"RESTRICTIONS", "5.10", RING_FALLBACK,
                    "whoever took the process over could ask its rings for any operation", false},
     .present = has_restrictions},
    {.capability = {"MSG_RING", "5.18", RING_UNUSED,
                    "nothing: carriers hand over by eventfd in any case", false},
     .opcode = IORING_OP_MSG_RING},
};

static_assert(sizeof(trials) / sizeof(trials[0]) < RING_CAPABILITIES_MAX,
              "there is room for one of the caller's");

static void try_each(struct ring_probe *probe, struct ring *ring)
{
    struct io_uring_probe *opcodes = io_uring_get_probe(); /* on a plain ring of its own */
    for (size_t i = 0; i < sizeof(trials) / sizeof(trials[0]); i++) {
        struct ring_capability *capability = &probe->capabilities[probe->capability_count++];
        *capability = trials[i].capability;
        if (trials[i].present != NULL) {
            capability->present = trials[i].present(ring);
        } else {
            capability->present =
                opcodes != NULL && io_uring_opcode_supported(opcodes, trials[i].opcode) != 0;
        }
    }
    if (opcodes != NULL) {
        io_uring_free_probe(opcodes);
    }
}

/* ---------------------------------------------------------------- locked memory */

static size_t whole_pages(size_t bytes)
{
    return (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

static size_t locked_bytes_of(const struct ring *ring)
{
    size_t entries = ring->uring.sq.ring_entries;
    size_t queues = ring->uring.cq.ring_sz > ring->uring.sq.ring_sz ? ring->uring.cq.ring_sz
                                                                    : ring->uring.sq.ring_sz;
    return whole_pages(queues) + whole_pages(entries * sizeof(struct io_uring_sqe)) +
           whole_pages(ring->buffer_count * sizeof(struct io_uring_buf));
}

static bool locked_memory_counts(void)
{
    struct rlimit before;
    if (getrlimit(RLIMIT_MEMLOCK, &before) < 0) {
        return false;
    }
    struct rlimit none = {.rlim_cur = 0, .rlim_max = before.rlim_max};
    if (setrlimit(RLIMIT_MEMLOCK, &none) < 0) {
        return false;
    }
    int result = set_up(0);
    (void)setrlimit(RLIMIT_MEMLOCK, &before); /* back up to where it was allowed to be */
    return result == -ENOMEM;
}

void ring_probe(struct ring_probe *probe)
{
    struct ring ring;
    struct ring_setup setup = {.buffers = 0};
    *probe = (struct ring_probe){.locked_counts = locked_memory_counts()};
    probe->error = ring_init(&ring, &setup);
    if (probe->error < 0) {
        try_each(probe, NULL);
        return;
    }
    probe->halved = ring.halved;
    probe->locked_bytes = locked_bytes_of(&ring);
    probe->operations = ring.restricted;
    try_each(probe, &ring);
    ring_fini(&ring);
}
