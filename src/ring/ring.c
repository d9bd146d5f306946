/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring.c - set up an io_uring, submit, wait, reap.
 *
 * Called by op.c (SQEs, buffers) and carrier.c (enter, reap). Does not look into
 * a completion.
 */
#include "ring/ring.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/must.h"
#include "base/time.h"
#include "ring/ring_restrict.h"

/* The kernel has no memory for what is to be submitted: so long until the next try. */
#define SHORTAGE_WAIT_NS (NS_PER_MS)

/* How often a probe waits for its completion. */
#define PROBE_TRIES 8

/* Below this the rings are of no use: give up on -ENOMEM. */
#define CQ_ENTRIES_MIN 64u

/*
 * shortage - is that the answer of a kernel that is short of memory (or of places in the CQ)?
 *
 * What was not submitted stays in the queue. Where memory is short, the thread rests
 * for a moment: the loop would try again and again at once.
 */
static bool shortage(int result)
{
    if (result == -EAGAIN || result == -ENOMEM) {
        struct timespec rest = {.tv_nsec = (long)SHORTAGE_WAIT_NS};
        (void)nanosleep(&rest, NULL);
        return true;
    }
    return result == -EBUSY;
}

static int queue_init(struct ring *ring, unsigned sq_entries, unsigned cq_entries)
{
    for (;;) {
        struct io_uring_params params = {
            .flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
                     IORING_SETUP_SUBMIT_ALL | IORING_SETUP_CLAMP | IORING_SETUP_R_DISABLED |
                     IORING_SETUP_CQSIZE,
            .cq_entries = cq_entries,
        };
        int result = io_uring_queue_init_params(sq_entries, &ring->uring, &params);
        /* Before 5.12, and for ordinary users with little RLIMIT_MEMLOCK: smaller rings may fit. */
        if (result != -ENOMEM || cq_entries <= CQ_ENTRIES_MIN) {
            return result;
        }
        ring->halved++;
        cq_entries /= 2;
        sq_entries = sq_entries > 8 ? sq_entries / 2 : sq_entries;
    }
}

static int buffers_init(struct ring *ring, unsigned count)
{
    for (;;) {
        int result;
        ring->buffer_ring =
            io_uring_setup_buf_ring(&ring->uring, count, RING_BUFFER_GROUP, 0, &result);
        if (ring->buffer_ring != NULL) {
            break;
        }
        if (result != -ENOMEM || count <= 64) {
            return result;
        }
        ring->halved++;
        count /= 2;
    }
    size_t bytes = (size_t)count * RING_BUFFER_BYTES;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        io_uring_free_buf_ring(&ring->uring, ring->buffer_ring, count, RING_BUFFER_GROUP);
        return -ENOMEM;
    }
    /* All of it is used in turn sooner or later. In two large pages it costs 0.1 ms at the start,
     * by faults 17 µs for each pair of buffers when the first connections come. */
    (void)madvise(memory, bytes, MADV_HUGEPAGE);
    (void)madvise(memory, bytes, MADV_POPULATE_WRITE);
    ring->buffer_memory = memory;
    ring->buffer_count = count;
    for (unsigned id = 0; id < count; id++) {
        ring_buffer_give(ring, (uint16_t)id);
    }
    return 0;
}

/*
 * probe_recv_cap - does a multishot recv take a total cap in sqe->optlen?
 *
 * Kernels before 6.17 refuse the field with -EINVAL at once; later ones arm the
 * recv, which the peer's close then ends with 0.
 */
static bool probe_recv_cap(struct ring *ring)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
        return false;
    }
    close(pair[1]);
    struct io_uring_sqe *sqe = ring_sqe(ring);
    io_uring_prep_recv_multishot(sqe, pair[0], NULL, 0, 0);
    sqe->flags |= IOSQE_BUFFER_SELECT;
    sqe->buf_group = RING_BUFFER_GROUP;
    sqe->optlen = 2 * RING_BUFFER_BYTES;
    struct ring_event event = {.result = -EINVAL};
    /* The pair is closed, so the recv cannot be waiting; but a signal may end the enter. */
    bool told = false;
    for (int i = 0; i < PROBE_TRIES && !told; i++) {
        ring_enter(ring, NS_PER_S);
        told = ring_reap(ring, &event, 1) == 1;
    }
    close(pair[0]);
    return told && event.result == 0;
}

int ring_init(struct ring *ring, const struct ring_setup *setup)
{
    memset(ring, 0, sizeof(*ring));
    int result = queue_init(ring, setup->sq_entries != 0 ? setup->sq_entries : RING_SQ_ENTRIES,
                            setup->cq_entries != 0 ? setup->cq_entries : RING_CQ_ENTRIES);
    if (result < 0) {
        return result;
    }
    /* Saves the lookup of the descriptor on each enter; works without. */
    ring->registered = io_uring_register_ring_fd(&ring->uring) == 1;
    result = buffers_init(ring, setup->buffers != 0 ? setup->buffers : RING_BUFFERS);
    if (result < 0) {
        goto undo_queue;
    }
    ring->direct_slots = io_uring_register_files_sparse(&ring->uring, RING_DIRECT_SLOTS) == 0;
    ring->restricted = ring__restrict(&ring->uring);
    result = io_uring_enable_rings(&ring->uring);
    if (result < 0) {
        goto undo_buffers;
    }
    /* A seccomp profile may allow the other two calls and refuse io_uring_enter. */
    for (int i = 0; i < PROBE_TRIES; i++) {
        result = io_uring_get_events(&ring->uring);
        if (result != -EINTR && !shortage(result)) {
            break;
        }
    }
    if (result < 0) {
        goto undo_buffers;
    }
    ring->recv_cap = probe_recv_cap(ring);
    return 0;

undo_buffers:
    munmap(ring->buffer_memory, (size_t)ring->buffer_count * RING_BUFFER_BYTES);
    io_uring_free_buf_ring(&ring->uring, ring->buffer_ring, ring->buffer_count, RING_BUFFER_GROUP);
undo_queue:
    io_uring_queue_exit(&ring->uring);
    return result;
}

void ring_fini(struct ring *ring)
{
    io_uring_free_buf_ring(&ring->uring, ring->buffer_ring, ring->buffer_count, RING_BUFFER_GROUP);
    io_uring_queue_exit(&ring->uring);
    munmap(ring->buffer_memory, (size_t)ring->buffer_count * RING_BUFFER_BYTES);
}

struct io_uring_sqe *ring_sqe(struct ring *ring)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&ring->uring);
    while (unlikely(sqe == NULL)) {
        /* SUBMIT_ALL: one call takes the whole queue, unless the CQ is in overflow (-EBUSY). */
        int result = io_uring_submit(&ring->uring);
        bool short_of = shortage(result);
        if (short_of) {
            io_uring_get_events(
                &ring->uring); /* moves overflowed completions into the CQ's free places */
        }
        must(result >= 0 || short_of || result == -EINTR);
        sqe = io_uring_get_sqe(&ring->uring);
    }
    return sqe;
}

void ring_enter(struct ring *ring, uint64_t wait_ns)
{
    int result;
    ring->enters++;
    if (wait_ns == 0) {
        /* Also when nothing is queued: with DEFER_TASKRUN only this call brings completions. */
        result = io_uring_submit_and_get_events(&ring->uring);
    } else if (wait_ns == UINT64_MAX) {
        result = io_uring_submit_and_wait(&ring->uring, 1);
    } else {
        struct io_uring_cqe *ignored;
        struct __kernel_timespec wait = {.tv_sec = (long long)(wait_ns / NS_PER_S),
                                         .tv_nsec = (long long)(wait_ns % NS_PER_S)};
        result = io_uring_submit_and_wait_timeout(&ring->uring, &ignored, 1, &wait, NULL);
    }
    /* Short of something: reap, then the entries still queued go with the next call. */
    must(result >= 0 || result == -ETIME || result == -EINTR || shortage(result));
}

size_t ring_reap(struct ring *ring, struct ring_event *dst, size_t capacity)
{
    struct io_uring_cqe *cqe;
    unsigned head;
    size_t count = 0;

    for (;;) {
        unsigned seen = 0;
        io_uring_for_each_cqe(&ring->uring, head, cqe)
        {
            if (count == capacity) {
                break;
            }
            seen++;
            dst[count++] = (struct ring_event){
                .user_data = cqe->user_data, .result = cqe->res, .flags = cqe->flags};
        }
        io_uring_cq_advance(&ring->uring, seen);
        if (likely(!io_uring_cq_has_overflow(&ring->uring)) || count == capacity) {
            return count;
        }
        /* What did not fit is brought now, and not behind a turn and its deadlines. */
        ring->overflows++;
        if (io_uring_get_events(&ring->uring) < 0) {
            return count;
        }
    }
}

char *ring_buffer(struct ring *ring, uint16_t id)
{
    must(id < ring->buffer_count);
    return ring->buffer_memory + (size_t)id * RING_BUFFER_BYTES;
}

void ring_buffer_give(struct ring *ring, uint16_t id)
{
    io_uring_buf_ring_add(ring->buffer_ring, ring_buffer(ring, id), RING_BUFFER_BYTES, id,
                          io_uring_buf_ring_mask(ring->buffer_count), 0);
    io_uring_buf_ring_advance(ring->buffer_ring, 1);
}

void ring_facts(const struct ring *ring, struct ring_facts *facts)
{
    *facts = (struct ring_facts){.fd = ring->uring.ring_fd,
                                 .sq_entries = ring->uring.sq.ring_entries,
                                 .cq_entries = ring->uring.cq.ring_entries,
                                 .buffers = ring->buffer_count,
                                 .buffer_bytes = RING_BUFFER_BYTES};
}

const char *ring_feature(const struct ring *ring, unsigned n)
{
    /* Without the first three there is no ring. */
    const char *present[9] = {"SINGLE_ISSUER", "DEFER_TASKRUN", "PROVIDED_BUFFERS"};
    unsigned count = 3;
    if (ring->registered) {
        present[count++] = "REGISTERED_RING";
    }
    if (ring->uring.features & IORING_FEAT_EXT_ARG) {
        present[count++] = "EXT_ARG";
    }
    if (ring->recv_cap) {
        present[count++] = "MULTISHOT_RECV_CAP";
    }
    if (ring->direct_slots) {
        present[count++] = "DIRECT_DESCRIPTORS";
    }
    if (ring->restricted != 0) {
        present[count++] = "RESTRICTIONS";
    }
    return n < count ? present[n] : NULL;
}

static int disabled_sysctl(void)
{
    char digit = '0';
    FILE *file = fopen("/proc/sys/kernel/io_uring_disabled", "re");
    if (file != NULL) {
        if (fread(&digit, 1, 1, file) != 1) {
            digit = '0';
        }
        fclose(file);
    }
    return digit - '0';
}

void ring_refusal(int error, char *dst, size_t size)
{
    struct utsname host = {.release = "unknown"};
    uname(&host);
    switch (error) {
    case -EPERM:
    case -EACCES:
        if (disabled_sysctl() != 0) {
            snprintf(dst, size,
                     "io_uring refused by kernel.io_uring_disabled=%d: allow it with 'sysctl -w "
                     "kernel.io_uring_disabled=0'",
                     disabled_sysctl());
            return;
        }
        snprintf(dst, size,
                 "io_uring refused by seccomp (Docker's default profile does that since Engine "
                 "25.0): run it under the profile that comes with ringspun ('docker run "
                 "--security-opt seccomp=docker/seccomp.json', or 'docker compose up')");
        return;
    case -ENOSYS:
    case -EINVAL:
        snprintf(dst, size,
                 "io_uring is missing or too old in kernel %s: 6.1 is the oldest that is "
                 "supported, upgrade the kernel ('uname -r' shows it)",
                 host.release);
        return;
    case -ENOMEM:
        snprintf(dst, size,
                 "io_uring got no memory, even for its smallest queues: raise the locked-memory "
                 "limit with 'ulimit -l unlimited' or lower --ringspun.carriers");
        return;
    case -EMFILE:
    case -ENFILE:
        snprintf(dst, size,
                 "too few file descriptors to create an io_uring: raise the limit with 'ulimit "
                 "-n 1024' (64 are enough to start with two carriers)");
        return;
    default:
        snprintf(dst, size, "io_uring could not be set up: %s; kernel %s", strerror(-error),
                 host.release);
    }
}

#define TEXT_OF(number) #number
#define VERSION_TEXT(major, minor) TEXT_OF(major) "." TEXT_OF(minor)

const char *ring_version(void)
{
    return VERSION_TEXT(IO_URING_VERSION_MAJOR, IO_URING_VERSION_MINOR);
}
