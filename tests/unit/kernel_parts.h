/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_parts.h - what the files of the scripted kernel share. Not for tests.
 */
#ifndef KERNEL_PARTS_H
#define KERNEL_PARTS_H

#include <pthread.h>

#include "kernel.h"
#include "ring/ring.h"
#include "ring/sys.h"

enum kernel_kind { KERNEL_SOCKET, KERNEL_LISTENER, KERNEL_EVENTFD };

enum kernel_serving { KERNEL_ACCEPTS, KERNEL_REFUSES, KERNEL_HANGS };

/* What a descriptor stands for. It lives until the next kernel_start: what is closed is known. */
struct kernel_file {
    enum kernel_kind kind;
    struct kernel_file *all_next;
    int fd;         /* -1: in no table */
    int slot;       /* of the direct descriptors, -1 */
    unsigned ops;   /* in flight on it */
    uint64_t wakes; /* grows whenever a poller is woken */
    bool nonblocking;
    /* listener */
    uint16_t port;
    bool of_test;
    enum kernel_serving serving;
    struct kernel_file *queue_first, *queue_last;
    /* eventfd */
    uint64_t count;
    /* socket */
    struct kernel_file *queue_next;
    struct kernel_file *other;
    char *rx;
    size_t rx_length, rx_capacity;
    size_t window;
    bool connected;
    bool finished_by_peer; /* a FIN came */
    bool shut_read, shut_write;
    bool dead;   /* reset, by either side */
    bool closed; /* nobody holds it */
    bool linger_reset;
    bool probed;
    int error; /* pending, -errno */
    /* the simulation's */
    unsigned mark; /* whose it is */
    bool hurt;     /* a fault was made on it, or on its other end */
};

struct kernel_op {
    struct io_uring_sqe sqe;
    struct kernel_file *file;
    uint64_t seen_wakes;
    size_t done;     /* bytes sent so far */
    size_t cap_left; /* of a capped multishot recv */
    bool first;      /* it has not been tried yet */
    bool cancelled;
    bool races; /* what was ready when it was cancelled is done all the same */
    bool slowness_drawn;
    uint64_t not_before_ns; /* it is slow: see slow_percent */
    int forced_error;       /* by kernel_fail */
    size_t forced_short;    /* by kernel_short; SIZE_MAX none */
};

struct kernel_ring {
    struct ring *ring;
    pthread_t thread; /* the one that may use it */
    struct io_uring_sqe *sqes;
    unsigned sq_entries, sq_count;
    struct ring_event *cq; /* completions not reaped yet, oldest first */
    size_t cq_count, cq_capacity;
    struct ring_event *ghosts; /* completions to be told once more */
    size_t ghost_count;
    uint64_t ghosts_told;
    struct kernel_op **ops;
    size_t op_count, op_capacity;
    struct kernel_file *slots[RING_DIRECT_SLOTS];
    char **buffers;
    bool *buffer_is_ours; /* the kernel's */
    unsigned *order;      /* ids that can be used, in the order they were given */
    unsigned buffer_count, buffers_free;
    uint64_t wait_until_ns; /* of the last enter; 0: it did not want to wait */
    bool brought; /* the last enter brought completions: a real one would not have waited */
    struct kernel_ring *next;
};

/* One lock over the world, recursive. Carriers take turns, only platform threads compete. */
void kernel__lock(void);
void kernel__unlock(void);

/* kernel__wake - the file's state has changed: pollers and blocked threads look again. */
void kernel__wake(struct kernel_file *file);

/* kernel__wait - blocks the calling platform thread until something changed. */
void kernel__wait(void);

/* kernel__wait_a_while - the same, for a millisecond of real time at most. */
void kernel__wait_a_while(void);

/* kernel__chance - true so many times out of a hundred. */
bool kernel__chance(unsigned percent);

/* kernel__fault - the same for a fault: one that comes true is noted. */
bool kernel__fault(const char *what, unsigned percent);

static inline void kernel__note(const char *what, uint64_t a, uint64_t b, uint64_t c)
{
    if (kernel_hooks.note != NULL) {
        kernel_hooks.note(what, a, b, c);
    }
}

/* kernel__script - count a call; its forced error, or 0, and how short it is forced to be. */
struct kernel_request {
    struct kernel_file *file;       /* NULL: on none */
    const struct io_uring_sqe *sqe; /* NULL: not by the ring */
};
int kernel__script(enum kernel_call call, const struct kernel_request *request, size_t *bytes);

/* files */
struct kernel_file *kernel__file_new(enum kernel_kind kind);
int kernel__install(struct kernel_file *file); /* lowest free number, or -EMFILE */
struct kernel_file *kernel__file_at(int fd);   /* an open descriptor, or a violation */
void kernel__descriptor_close(int fd);
bool kernel__descriptor_free(void);
struct kernel_file *kernel__listener(uint16_t port);

/* sockets */
unsigned kernel__ready(const struct kernel_file *file); /* poll(2) events */
ssize_t kernel__recv(struct kernel_file *file, void *dst, size_t capacity, bool peek);
ssize_t kernel__send(struct kernel_file *file, const void *src, size_t length);
void kernel__shutdown(struct kernel_file *file, int how);
void kernel__release(struct kernel_file *file); /* the last holder lets go */
void kernel__sever(struct kernel_file *file);   /* both ends are told of a reset */
int kernel__connect(struct kernel_file *file,
                    const struct sys_address *address); /* -EINPROGRESS: it hangs */
struct kernel_file *kernel__accept(struct kernel_file *listener);

/* rings */
struct kernel_ring *kernel__ring(const struct ring *ring);
struct kernel_ring *kernel__rings(void);
bool kernel__ring_is_quiet(const struct ring *ring);
uint64_t kernel__ring_told_twice(const struct ring *ring); /* completions, see ghost_percent */
bool kernel__is_multishot(const struct kernel_op *op);
bool kernel__op_is_ready(const struct kernel_ring *ring, const struct kernel_op *op);
uint64_t kernel__next_op_ns(const struct kernel_ring *ring); /* when a slow one goes on */
bool kernel__op_can_run(const struct kernel_ring *ring, const struct kernel_op *op);
bool kernel__op_run(struct kernel_ring *ring,
                    struct kernel_op *op); /* true: it had its final completion */
void kernel__op_forget(struct kernel_ring *ring, struct kernel_op *op);
void kernel__submit(struct kernel_ring *ring, const struct io_uring_sqe *sqe);
void kernel__run_ops(struct kernel_ring *ring);
unsigned kernel__buffer_take(struct kernel_ring *ring);
void kernel__complete(struct kernel_ring *ring, uint64_t user_data, int result, unsigned flags);

void kernel__files_reset(void);
void kernel__names_reset(void);

#endif
