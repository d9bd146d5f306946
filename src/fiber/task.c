/* SPDX-License-Identifier: Apache-2.0 */
/*
 * task.c - wait until told, and tell: the one place where fibers and platform
 * threads differ for mutexes, conditions, semaphores, channels and scopes.
 *
 * Called by those. Needs futex(2), Linux 2.6.25 for FUTEX_WAIT_BITSET.
 */
#include "fiber/task.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/must.h"
#include "base/time.h"
#include "fiber/able.h"
#include "fiber/describe.h"
#include "fiber/fiber.h"

static _Thread_local struct task thread_task;

/* futex_wait - until *word is told of, is not expected any more, or deadline_ns. Returns 0; -ETIMEDOUT. */
static int futex_wait(atomic_uint *word, unsigned expected, uint64_t deadline_ns)
{
    struct timespec until = {.tv_sec = (time_t)(deadline_ns / NS_PER_S),
                             .tv_nsec = (long)(deadline_ns % NS_PER_S)};
    /* The timeout of the plain FUTEX_WAIT is relative; BITSET's is a time of CLOCK_MONOTONIC. */
    long result = syscall(SYS_futex, word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, expected,
                          deadline_ns != 0 ? &until : NULL, NULL, FUTEX_BITSET_MATCH_ANY);
    return result < 0 && errno == ETIMEDOUT ? -ETIMEDOUT : 0;
}

/* futex_wake - by address alone: the thread may have ended, and then nobody is there. */
static void futex_wake(atomic_uint *word)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, NULL, NULL, 0);
}

void task_init(struct task *task, struct fiber *fiber)
{
    *task = (struct task){.fiber = fiber};
    list_init(&task->link);
}

void task_end(const struct task *task)
{
    must(task->held == 0 && "ended while it holds a mutex");
    must(task->scope == NULL && "ended before it closed its scope");
}

struct task *task_current(void)
{
    struct sched *sched = sched_current();
    if (sched != NULL) {
        must(sched->current != NULL && "a carrier's loop must not wait");
        return &sched->current->task;
    }
    if (unlikely(thread_task.name == NULL)) {
        task_init(&thread_task, NULL);
        thread_task.name = log_thread();
        thread_task.thread = pthread_self();
    }
    return &thread_task;
}

bool task_cancelled(void)
{
    const struct fiber *fiber = fiber_current();
    return fiber != NULL ? fiber->cancelled
                         : atomic_load_explicit(&task_current()->cancelled, memory_order_acquire);
}

void task_cancel_thread(struct task *task)
{
    must(task->fiber == NULL);
    atomic_store(&task->cancelled, true);
    /* It looks at the flag before it waits for its state to change: so one of the two is seen. */
    unsigned state = atomic_load(&task->state);
    able_more(); /* before it can go on, and wait and be counted again */
    while ((state == TASK_WAITS || state == TASK_WAITS_FOR_GOOD) &&
           !atomic_compare_exchange_weak(&task->state, &state, TASK_NUDGED)) {
    }
    if (state != TASK_WAITS_FOR_GOOD) {
        able_less(); /* it was counted */
    }
    if (state == TASK_WAITS || state == TASK_WAITS_FOR_GOOD) {
        futex_wake(&task->state);
    }
    pthread_kill(task->thread, TASK_WAKE_SIGNAL);
}

void task_uncancel_thread(struct task *task)
{
    must(task == task_current() && task->fiber == NULL);
    atomic_store(&task->cancelled, false);
}

size_t task_describe(const struct task *task, char *dst, size_t size)
{
    struct text text;
    text_init(&text, dst, size);
    if (task->fiber != NULL) {
        char name[FIBER_NAME_SIZE];
        (void)fiber_format_name(task->fiber, name, sizeof(name));
        text_string(&text, "Fiber[#");
        text_number(&text, task->fiber->id);
        text_string(&text, ",");
        text_string(&text, name);
    } else {
        text_string(&text, "Thread[");
        text_string(&text, task->name);
    }
    text_string(&text, "]");
    return text.length;
}

/* ------------------------------------------------------------ wait */

static bool is_told(const struct task *self)
{
    return atomic_load_explicit(&self->state, memory_order_acquire) == TASK_TOLD;
}

static int wait_fiber(struct task *self, const struct task_wait *wait, bool through)
{
    int result = 0;
    while (!is_told(self) && result == 0) {
        result = through ? fiber_park_through(wait->waiting_for, 0)
                         : fiber_park(wait->waiting_for, wait->deadline_ns);
    }
    return is_told(self) ? 0 : result;
}

/* announce - where able.h watches: only another task can end the wait that follows. Returns the state to wait in. */
static unsigned announce(struct task *self, uint64_t deadline_ns)
{
    unsigned waits = TASK_WAITS;
    if (!able_watched() || !self->counted || deadline_ns != 0 ||
        !atomic_compare_exchange_strong(&self->state, &waits, TASK_WAITS_FOR_GOOD)) {
        return TASK_WAITS;
    }
    able_less();
    able_check();
    return TASK_WAITS_FOR_GOOD;
}

static int wait_thread(struct task *self, const struct task_wait *wait, bool through)
{
    int result = 0;
    for (;;) {
        if (is_told(self)) {
            return 0;
        }
        /* First the nudge is taken back, then the flag is looked at: a cancel sets the flag and
         * nudges, so whoever nudges behind this line ends the futex's wait. */
        unsigned nudged = TASK_NUDGED;
        (void)atomic_compare_exchange_strong(&self->state, &nudged, TASK_WAITS);
        if (!through && atomic_load(&self->cancelled)) {
            return -ECANCELED;
        }
        if (result != 0) {
            return result;
        }
        uint64_t deadline_ns = through ? 0 : wait->deadline_ns;
        unsigned waits = announce(self, deadline_ns);
        result = futex_wait(&self->state, waits, deadline_ns);
        if (waits == TASK_WAITS_FOR_GOOD &&
            atomic_compare_exchange_strong(&self->state, &waits, TASK_WAITS)) {
            able_more(); /* woken by nobody: a signal */
        }
    }
}

static int wait_told(struct task *self, const struct task_wait *wait, bool through)
{
    return self->fiber != NULL ? wait_fiber(self, wait, through) : wait_thread(self, wait, through);
}

static void enqueue(struct task *self, const struct task_wait *wait)
{
    must(list_empty(&self->link) && "a task waits for one thing at a time");
    self->refused = false;
    self->first = false;
    atomic_store_explicit(&self->state, TASK_WAITS, memory_order_relaxed);
    list_append(wait->queue, &self->link);
    pthread_mutex_unlock(wait->guard);
}

int task__wait(struct task *self, const struct task_wait *wait)
{
    enqueue(self, wait);
    int result = wait_told(self, wait, false);
    if (result == 0) {
        return 0;
    }
    pthread_mutex_lock(wait->guard);
    if (!list_empty(&self->link)) {
        list_remove(&self->link);
        return result;
    }
    pthread_mutex_unlock(wait->guard);
    /* Chosen meanwhile: what it waited for is its own, and the wake on its way still points here. */
    (void)wait_told(self, wait, true);
    return 0;
}

void task__wait_through(struct task *self, const struct task_wait *wait)
{
    enqueue(self, wait);
    (void)wait_told(self, wait, true);
}

/* ------------------------------------------------------------ tell */

struct task *task__choose(struct list *queue)
{
    if (list_empty(queue)) {
        return NULL;
    }
    struct task *task = container_of(queue->next, struct task, link);
    list_remove(&task->link);
    return task;
}

void task__deliver(struct task *task)
{
    struct fiber *fiber = task->fiber;
    atomic_store_explicit(&task->state, TASK_TOLD, memory_order_relaxed);
    if (fiber->state == FIBER_PARKED) {
        fiber__unpark(fiber, 0);
        if (task->first) {
            sched__hurry(fiber->sched, fiber);
        }
    }
}

void task__tell(struct task *task)
{
    struct fiber *fiber = task->fiber;
    if (fiber == NULL) {
        atomic_uint *word = &task->state;
        able_more(); /* before it can go on: it may look before it sleeps */
        unsigned before = atomic_exchange(word, TASK_TOLD);
        must(before != TASK_TOLD);
        if (before != TASK_WAITS_FOR_GOOD) {
            able_less(); /* it was counted */
        }
        futex_wake(word);
    } else if (fiber->sched == sched_current()) {
        task__deliver(task);
    } else {
        sched__tell(fiber->sched, task);
    }
}
