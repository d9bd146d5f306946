/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool.c - platform threads that run jobs for parked fibers, first in first out.
 *
 * Called by http/session.c (handlers of platform servers) and io/resolve.c.
 */
#include "io/pool.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/must.h"
#include "fiber/able.h"
#include "fiber/fiber.h"
#include "ring/carrier.h"
#include "ring/sys.h"

/* A handler's frames and getaddrinfo(3) need far less. */
#define THREAD_STACK_BYTES ((size_t)262144)

/* One job; from malloc, since it may outlive the fiber that waits for it. */
struct job {
    struct list link;
    struct pool_errand errand;
    struct carrier *carrier;
    struct message message; /* to the carrier: executed, or never to be */
    /* under the pool's mutex */
    bool queued;                /* no thread has taken it yet */
    struct pool_thread *thread; /* that executes it */
    /* the carrier's */
    struct fiber *fiber; /* NULL: left behind */
    bool executed;
    int error; /* -errno: over without having been executed */
};

static _Thread_local struct pool_thread *current_thread;
static atomic_uint_fast64_t last_id;

const struct pool_thread *pool_thread_current(void)
{
    return current_thread;
}

static void run_executed(struct message *message)
{
    struct job *job = container_of(message, struct job, message);
    job->executed = true;
    if (job->fiber != NULL) {
        fiber_wake(job->fiber);
        return;
    }
    job->errand.release(job->errand.argument);
    free(job);
}

int pool_thread_wait(int fd, short events, uint64_t deadline_ns)
{
    for (;;) {
        if (task_cancelled()) {
            return -ECANCELED;
        }
        int ready = sys_poll_interruptible(fd, events, deadline_ns);
        if (ready != -EINTR) {
            return ready;
        }
    }
}

/* unqueue - under the mutex: a thread takes it, or nobody will. */
static void unqueue(struct pool *pool, struct job *job)
{
    list_remove(&job->link);
    job->queued = false;
    pool->queued--;
}

/* next_job - the one that was executed is let go, and the oldest that waits is taken. */
static struct job *next_job(struct pool *pool, struct pool_thread *self)
{
    struct job *job = NULL;
    pthread_mutex_lock(&pool->mutex);
    while (list_empty(&pool->queue) && !pool->stopping) {
        pool->idle++;
        pthread_cond_wait(&pool->work, &pool->mutex);
        pool->idle--;
    }
    if (!list_empty(&pool->queue)) {
        job = container_of(pool->queue.next, struct job, link);
        unqueue(pool, job);
        job->thread = self;
        task_uncancel_thread(self->task);
        self->carrier = job->carrier;
    }
    pthread_mutex_unlock(&pool->mutex);
    return job;
}

/* job_leave - from here on a cancel does not reach this thread any more. */
static void job_leave(struct pool *pool, struct job *job)
{
    pthread_mutex_lock(&pool->mutex);
    job->thread = NULL;
    pthread_mutex_unlock(&pool->mutex);
}

/*
 * job_withdraw - nobody waits for it any more: one that still waits for a thread leaves the
 * queue, or clients that have gone would keep their memory and their place there until all
 * before them are done.
 *
 * Returns  true when it left, and is the caller's again
 */
static bool job_withdraw(struct pool *pool, struct job *job)
{
    pthread_mutex_lock(&pool->mutex);
    bool queued = job->queued;
    if (queued) {
        unqueue(pool, job);
    }
    pthread_mutex_unlock(&pool->mutex);
    if (queued) {
        able_less();
    }
    return queued;
}

/* job_cancel - the same, and the blocking calls of one that has begun end. */
static bool job_cancel(struct pool *pool, struct job *job)
{
    if (job_withdraw(pool, job)) {
        return true;
    }
    pthread_mutex_lock(&pool->mutex);
    if (job->thread != NULL) {
        task_cancel_thread(job->thread->task);
    }
    pthread_mutex_unlock(&pool->mutex);
    return false;
}

struct thread_start {
    struct pool *pool;
    unsigned number;
};

static void *thread_run(void *argument)
{
    struct thread_start start = *(struct thread_start *)argument;
    struct pool_thread self = {.id = atomic_fetch_add(&last_id, 1) + 1,
                               .started_ns = sys_clock_ns(),
                               .task = task_current()};
    struct job *job;

    free(argument);
    snprintf(self.name, sizeof(self.name), "%s%u", start.pool->prefix, start.number);
    current_thread = &self;
    log_set_thread(self.name);
    sys_thread_name(self.name);
    sys_wake_signal_block();
    self.task->counted = true; /* while it runs a job */
    while ((job = next_job(start.pool, &self)) != NULL) {
        job->errand.run(job->errand.argument);
        task_end(self.task);
        job_leave(start.pool, job);
        carrier_post(job->carrier, &job->message);
        able_less();
        able_check();
    }
    return NULL;
}

/* start_thread - thread number, whose place is reserved; without the mutex, since it takes long. */
static int start_thread(struct pool *pool, unsigned number)
{
    pthread_attr_t attributes;
    struct thread_start *start = malloc(sizeof(*start));
    if (start == NULL) {
        return -ENOMEM;
    }
    *start = (struct thread_start){.pool = pool, .number = number};
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, THREAD_STACK_BYTES);
    struct pool_slot *slot = &pool->slots[number - 1];
    int error = pthread_create(&slot->thread, &attributes, thread_run, start);
    pthread_attr_destroy(&attributes);
    slot->started = error == 0;
    if (error != 0) {
        free(start);
    }
    return -error;
}

/* give_up - under the mutex: no thread is there for the jobs of other carriers either. */
static void give_up(struct pool *pool, int error)
{
    while (!list_empty(&pool->queue)) {
        struct job *job = container_of(pool->queue.next, struct job, link);
        unqueue(pool, job);
        job->error = error;
        carrier_post(job->carrier, &job->message);
        able_less();
    }
}

/* thread_missing - under the mutex: no thread beyond those there are. Returns what enqueue does. */
static int thread_missing(struct pool *pool, struct job *job, int error)
{
    pool->threads--;
    if (pool->threads > 0) {
        pool->threads_max = pool->last_number; /* no more tries */
        return 0;                              /* the job waits for one of those there are */
    }
    pool->last_number--; /* none at all: the next job tries again */
    unqueue(pool, job);
    able_less();
    give_up(pool, error); /* who counted on the thread that was to start here */
    return error;
}

static int enqueue(struct pool *pool, struct job *job)
{
    unsigned number = 0; /* of the thread to start; 0: none */
    int result = 0;

    pthread_mutex_lock(&pool->mutex);
    must(!pool->stopping);
    if (pool->idle <= pool->queued && pool->last_number < pool->threads_max) {
        pool->threads++;
        number = ++pool->last_number;
    }
    list_append(&pool->queue, &job->link);
    job->queued = true;
    pool->queued++;
    able_more(); /* the job, until it has been executed */
    pthread_cond_signal(&pool->work);
    pthread_mutex_unlock(&pool->mutex);
    if (number == 0 || (result = start_thread(pool, number)) == 0) {
        return 0;
    }
    pthread_mutex_lock(&pool->mutex);
    result = thread_missing(pool, job, result);
    pthread_mutex_unlock(&pool->mutex);
    if (result == 0) {
        log_warn("io.pool", "%s%u could not be started: jobs wait for the threads there are",
                 pool->prefix, number);
    }
    return result;
}

static struct job *job_new(const struct pool_errand *errand)
{
    struct job *job = malloc(sizeof(*job));
    must(fiber_current() != NULL);
    if (job != NULL) {
        *job = (struct job){.errand = *errand,
                            .carrier = carrier_current(),
                            .message = {.run = run_executed},
                            .fiber = fiber_current()};
    }
    return job;
}

int pool_run(struct pool *pool, void (*run)(void *argument), void *argument)
{
    struct pool_errand errand = {.run = run, .argument = argument};
    struct job *job = job_new(&errand);
    if (job == NULL) {
        return -ENOMEM;
    }
    int result = enqueue(pool, job);
    if (result < 0) {
        free(job);
        return result;
    }
    while (!job->executed) {
        if (result != 0) {
            (void)fiber_park_through("platform thread", 0);
            continue;
        }
        result = fiber_park("platform thread", 0);
        if (result != 0 && job_cancel(pool, job)) {
            break;
        }
    }
    result = job->error != 0 ? job->error : result;
    free(job);
    return result;
}

int pool_run_until(struct pool *pool, const struct pool_errand *errand, uint64_t deadline_ns)
{
    struct job *job = job_new(errand);
    if (job == NULL) {
        return -ENOMEM;
    }
    int result = enqueue(pool, job);
    if (result < 0) {
        free(job);
        return result;
    }
    while (!job->executed && result == 0) {
        result = fiber_park("offload", deadline_ns);
    }
    if (!job->executed && !job_withdraw(pool, job)) {
        job->fiber = NULL; /* run_executed releases it */
        return result;
    }
    if (!job->executed) {
        errand->release(errand->argument);
    } else {
        result = job->error;
    }
    free(job);
    return result;
}

int pool_init(struct pool *pool, const char *prefix, unsigned threads_max)
{
    *pool = (struct pool){.threads_max = threads_max};
    pool->slots = calloc(threads_max, sizeof(*pool->slots));
    if (pool->slots == NULL) {
        return -ENOMEM;
    }
    snprintf(pool->prefix, sizeof(pool->prefix), "%s", prefix);
    list_init(&pool->queue);
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->work, NULL);
    return 0;
}

bool pool_is_busy(struct pool *pool)
{
    pthread_mutex_lock(&pool->mutex);
    bool busy = pool->queued > 0 || pool->idle < pool->threads;
    pthread_mutex_unlock(&pool->mutex);
    return busy;
}

void pool_fini(struct pool *pool)
{
    pthread_mutex_lock(&pool->mutex);
    pool->stopping = true;
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->mutex);
    for (unsigned i = 0; i < pool->last_number; i++) {
        if (pool->slots[i].started) {
            pthread_join(pool->slots[i].thread, NULL);
        }
    }
    free(pool->slots);
    pthread_cond_destroy(&pool->work);
    pthread_mutex_destroy(&pool->mutex);
}
