/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_ring.c - ring/ring.h on the scripted kernel: queues and provided buffers.
 *
 * kernel_op.c executes what is submitted. A buffer that the kernel owns is filled
 * with a pattern (and poisoned for AddressSanitizer), so that reading it is seen.
 */
#include "kernel_parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fiber_kit.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(at, size) ((void)(at), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(at, size) ((void)(at), (void)(size))
#endif

#define GIVEN_BACK 0xdd

static struct kernel_ring *rings;

struct kernel_ring *kernel__rings(void)
{
    return rings;
}

struct kernel_ring *kernel__ring(const struct ring *ring)
{
    struct kernel_ring *mine = rings;
    while (mine != NULL && mine->ring != ring) {
        mine = mine->next;
    }
    if (mine == NULL) {
        kernel_violation("a ring is used that is not set up");
    }
    if (!pthread_equal(mine->thread, pthread_self())) {
        kernel_violation("a ring is used by a thread that does not own it");
    }
    return mine;
}

static void *allocate(size_t count, size_t size)
{
    void *memory = calloc(count, size);
    if (memory == NULL) {
        abort();
    }
    return memory;
}

int ring_init(struct ring *ring, const struct ring_setup *setup)
{
    (void)setup;
    kernel__lock();
    int result = kernel__script(KERNEL_RING_INIT, &(struct kernel_request){.file = NULL}, NULL);
    if (result < 0) {
        kernel__unlock();
        return result;
    }
    memset(ring, 0, sizeof(*ring));
    struct kernel_ring *mine = allocate(1, sizeof(*mine));
    mine->ring = ring;
    mine->thread = pthread_self();
    mine->sq_entries = kernel_knobs.sq_entries;
    mine->sqes = allocate(mine->sq_entries, sizeof(*mine->sqes));
    mine->buffer_count = kernel_knobs.buffers;
    mine->buffers = allocate(mine->buffer_count, sizeof(*mine->buffers));
    mine->buffer_is_ours = allocate(mine->buffer_count, sizeof(*mine->buffer_is_ours));
    mine->order = allocate(mine->buffer_count, sizeof(*mine->order));
    mine->next = rings;
    rings = mine;
    ring->buffer_count = mine->buffer_count;
    ring->recv_cap = kernel_knobs.recv_cap;
    ring->direct_slots = kernel_knobs.direct_slots;
    for (unsigned id = 0; id < mine->buffer_count; id++) {
        mine->buffers[id] = allocate(1, RING_BUFFER_BYTES);
        ring_buffer_give(ring, (uint16_t)id);
    }
    kernel__unlock();
    return 0;
}

void ring_fini(struct ring *ring)
{
    kernel__lock();
    struct kernel_ring *mine = kernel__ring(ring);
    if (mine->op_count > 0) {
        kernel_violation("a ring ends with %zu ops in flight", mine->op_count);
    }
    for (unsigned id = 0; id < mine->buffer_count; id++) {
        if (!mine->buffer_is_ours[id]) {
            kernel_violation("a ring ends and buffer %u has not been given back", id);
        }
        ASAN_UNPOISON_MEMORY_REGION(mine->buffers[id], RING_BUFFER_BYTES);
        free(mine->buffers[id]);
    }
    for (unsigned slot = 0; slot < RING_DIRECT_SLOTS; slot++) {
        if (mine->slots[slot] != NULL) {
            kernel_violation("a ring ends and direct slot %u has not been closed", slot);
        }
    }
    for (struct kernel_ring **at = &rings; *at != NULL; at = &(*at)->next) {
        if (*at == mine) {
            *at = mine->next;
            break;
        }
    }
    free(mine->sqes);
    free(mine->cq);
    free(mine->ghosts);
    free(mine->ops);
    free(mine->buffers);
    free(mine->buffer_is_ours);
    free(mine->order);
    free(mine);
    kernel__unlock();
}

static void submit_all(struct kernel_ring *mine)
{
    for (unsigned i = 0; i < mine->sq_count; i++) {
        kernel__submit(mine, &mine->sqes[i]);
    }
    mine->sq_count = 0;
}

struct io_uring_sqe *ring_sqe(struct ring *ring)
{
    kernel__lock();
    struct kernel_ring *mine = kernel__ring(ring);
    if (mine->sq_count == mine->sq_entries) {
        submit_all(mine);
    }
    struct io_uring_sqe *sqe = &mine->sqes[mine->sq_count++];
    memset(sqe, 0xa5, sizeof(*sqe)); /* what an earlier request left there */
    io_uring_initialize_sqe(sqe);
    kernel__unlock();
    return sqe;
}

static void put_completion(struct kernel_ring *mine, struct ring_event event)
{
    if (mine->cq_count == mine->cq_capacity) {
        mine->cq_capacity = mine->cq_capacity * 2 + 64;
        mine->cq = realloc(mine->cq, mine->cq_capacity * sizeof(*mine->cq));
        if (mine->cq == NULL) {
            abort();
        }
    }
    if (mine->cq_count >= kernel_knobs.cq_entries) {
        kernel__note("!overflow", 0, 0, 0);
    }
    mine->cq[mine->cq_count++] = event;
    kernel__note("complete", event.user_data, (uint64_t)(int64_t)event.result, event.flags);
}

/* tell_ghosts - completions that were told already; op.c is to know that they are nobody's. */
static void tell_ghosts(struct kernel_ring *mine)
{
    for (size_t i = mine->ghost_count; i-- > 0;) {
        if (kernel__fault("!completion twice", 30)) {
            struct ring_event ghost = mine->ghosts[i];
            mine->ghosts[i] = mine->ghosts[--mine->ghost_count];
            mine->ghosts_told++;
            put_completion(mine, ghost);
        }
    }
}

void ring_enter(struct ring *ring, uint64_t wait_ns)
{
    kernel__lock();
    struct kernel_ring *mine = kernel__ring(ring);
    ring->enters++;
    if (mine->sq_count == 0 || !kernel__fault("!stalled enter", kernel_knobs.stall_percent)) {
        submit_all(mine);
    }
    kernel__run_ops(mine);
    tell_ghosts(mine);
    mine->brought = mine->cq_count > 0;
    /* It never waits: drive_pass lets the time go by until then. */
    uint64_t now_ns = kernel_now_ns();
    mine->wait_until_ns = wait_ns == 0                    ? 0
                          : wait_ns > UINT64_MAX - now_ns ? UINT64_MAX
                                                          : now_ns + wait_ns;
    kernel__unlock();
}

void kernel__complete(struct kernel_ring *mine, uint64_t user_data, int result, unsigned flags)
{
    struct ring_event event = {.user_data = user_data, .result = result, .flags = flags};
    put_completion(mine, event);
    if (user_data == 0 || (flags & IORING_CQE_F_MORE) != 0 || kernel_knobs.ghost_percent == 0 ||
        !kernel__chance(kernel_knobs.ghost_percent)) {
        return;
    }
    mine->ghosts = realloc(mine->ghosts, (mine->ghost_count + 1) * sizeof(*mine->ghosts));
    if (mine->ghosts == NULL) {
        abort();
    }
    event.flags = 0; /* the buffer is the program's by now */
    mine->ghosts[mine->ghost_count++] = event;
}

size_t ring_reap(struct ring *ring, struct ring_event *dst, size_t capacity)
{
    kernel__lock();
    struct kernel_ring *mine = kernel__ring(ring);
    /* What overflows comes in behind what is taken, within the same call: see ring.c. */
    size_t count = mine->cq_count < capacity ? mine->cq_count : capacity;
    if (count > 0) {
        memcpy(dst, mine->cq, count * sizeof(*dst));
        mine->cq_count -= count;
        memmove(mine->cq, mine->cq + count, mine->cq_count * sizeof(*dst));
    }
    kernel__unlock();
    return count;
}

uint64_t kernel__ring_told_twice(const struct ring *ring)
{
    const struct kernel_ring *mine = rings;
    while (mine != NULL && mine->ring != ring) {
        mine = mine->next;
    }
    return mine != NULL ? mine->ghosts_told : 0;
}

bool kernel__ring_is_quiet(const struct ring *ring)
{
    struct kernel_ring *mine = rings;
    while (mine != NULL && mine->ring != ring) {
        mine = mine->next;
    }
    if (mine == NULL || mine->sq_count > 0 || mine->cq_count > 0 || mine->brought) {
        return mine == NULL;
    }
    for (size_t i = 0; i < mine->op_count; i++) {
        if (kernel__op_can_run(mine, mine->ops[i])) {
            return false;
        }
    }
    return true;
}

/* ------------------------------------------------------------ buffers */

char *ring_buffer(struct ring *ring, uint16_t id)
{
    kernel__lock();
    struct kernel_ring *mine = kernel__ring(ring);
    if (id >= mine->buffer_count || mine->buffer_is_ours[id]) {
        kernel_violation("buffer %u is looked at, which the kernel owns", id);
    }
    char *at = mine->buffers[id];
    kernel__unlock();
    return at;
}

void ring_buffer_give(struct ring *ring, uint16_t id)
{
    kernel__lock();
    struct kernel_ring *mine = kernel__ring(ring);
    if (id >= mine->buffer_count || mine->buffer_is_ours[id]) {
        kernel_violation("buffer %u is given back twice", id);
    }
    memset(mine->buffers[id], GIVEN_BACK, RING_BUFFER_BYTES);
    ASAN_POISON_MEMORY_REGION(mine->buffers[id], RING_BUFFER_BYTES);
    mine->buffer_is_ours[id] = true;
    mine->order[mine->buffers_free++] = id;
    kernel__unlock();
}

unsigned kernel__buffer_take(struct kernel_ring *mine)
{
    unsigned id = mine->order[0];
    mine->buffers_free--;
    memmove(mine->order, mine->order + 1, mine->buffers_free * sizeof(*mine->order));
    mine->buffer_is_ours[id] = false;
    ASAN_UNPOISON_MEMORY_REGION(mine->buffers[id], RING_BUFFER_BYTES);
    return id;
}

unsigned kernel_buffers_out(void)
{
    unsigned out = 0;
    kernel__lock();
    for (const struct kernel_ring *ring = rings; ring != NULL; ring = ring->next) {
        out += ring->buffer_count - ring->buffers_free;
    }
    kernel__unlock();
    return out;
}

/* ------------------------------------------------------------ what is told about it */

void ring_facts(const struct ring *ring, struct ring_facts *facts)
{
    *facts = (struct ring_facts){.fd = 99,
                                 .sq_entries = kernel_knobs.sq_entries,
                                 .cq_entries = kernel_knobs.cq_entries,
                                 .buffers = ring->buffer_count,
                                 .buffer_bytes = RING_BUFFER_BYTES};
}

const char *ring_feature(const struct ring *ring, unsigned n)
{
    (void)ring;
    return n == 0 ? "SCRIPTED" : NULL;
}

void ring_refusal(int error, char *dst, size_t size)
{
    snprintf(dst, size, "scripted refusal %d", error);
}

const char *ring_version(void)
{
    return "0.0";
}
