/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool.h - a bounded, strictly first-in-first-out pool of platform (OS) threads.
 *
 * Two uses: handlers of a server whose thread policy is "platform" (they make
 * ordinary blocking calls, as Tomcat's do), and the offload pool for what may
 * block whatever runs it, such as getaddrinfo(3). A fiber hands over a job and
 * parks until it is done; its carrier goes on meanwhile.
 */
#ifndef IO_POOL_H
#define IO_POOL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/list.h"

struct carrier;
struct task;

#define POOL_PREFIX_SIZE 32

struct pool_slot {
    pthread_t thread;
    bool started;
};

struct pool {
    /* set once */
    char prefix[POOL_PREFIX_SIZE]; /* "http-8080-exec-" */
    unsigned threads_max;
    /* under mutex */
    pthread_mutex_t mutex;
    pthread_cond_t work;
    struct list queue; /* of jobs, oldest first */
    unsigned queued;
    unsigned threads; /* running, or about to */
    unsigned idle;
    bool stopping;
    unsigned last_number; /* of the threads ever tried; their slots are [0 .. last_number) */
    struct pool_slot *slots;
};

/* Who a platform thread is; pool_thread_current gives it, NULL on a thread of no pool. */
struct pool_thread {
    uint64_t id;                   /* unique among the pool threads of the process, from 1 */
    char name[48];                 /* "http-8080-exec-1" */
    uint64_t started_ns;           /* CLOCK_MONOTONIC */
    const struct carrier *carrier; /* whose fiber waits for the job in work */
    struct task *task;             /* what of it is cancelled */
};

/* pool_init - no thread yet: they start when jobs wait, up to threads_max, and stay. Returns 0; -ENOMEM. */
int pool_init(struct pool *pool, const char *prefix, unsigned threads_max) WARN_UNUSED;

/* pool_is_busy - a job waits or runs. */
bool pool_is_busy(struct pool *pool);

/* pool_fini - wait for the queued jobs and join all threads; blocks. */
void pool_fini(struct pool *pool);

/*
 * pool_run - have run(argument) executed on a thread of the pool.
 *
 * Returns  0 when it has been executed; -ECANCELED the fiber was cancelled: the job
 *          was not begun, or its blocking calls ended with -ECANCELED; -EAGAIN no
 *          thread can be started at all; -ENOMEM
 * Parks    until it is over, cancelled or not; one that no thread had taken yet is over at once
 * Owner    argument stays the caller's
 */
int pool_run(struct pool *pool, void (*run)(void *argument), void *argument) WARN_UNUSED;

/*
 * pool_run_until - the same for a job that may be left behind.
 *
 * @argument  from malloc
 * @release   frees argument (and what it holds) when the caller has gone before the end, or
 *            the job has left the queue
 *
 * Returns  0 executed, argument is the caller's again; -ETIMEDOUT, -ECANCELED
 *          left behind: argument belongs to the job, which releases it; -EAGAIN,
 *          -ENOMEM never started, argument is the caller's
 */
struct pool_errand {
    void (*run)(void *argument);
    void (*release)(void *argument);
    void *argument;
};
int pool_run_until(struct pool *pool, const struct pool_errand *errand,
                   uint64_t deadline_ns) WARN_UNUSED;

const struct pool_thread *pool_thread_current(void);

/*
 * pool_thread_wait - poll(2) one descriptor on the calling platform thread.
 *
 * @fd  -1 only waits for the deadline
 *
 * Returns  the events; 0 at the deadline (0: none); -ECANCELED the job in work (or the
 *          scope that the thread was forked in) was cancelled
 */
int pool_thread_wait(int fd, short events, uint64_t deadline_ns) WARN_UNUSED;

#endif
