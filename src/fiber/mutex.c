/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mutex.c - see mutex.h. Called by whoever shares something between fibers.
 *
 * Who waits for which lock, and the owner of a lock that somebody waits for, change
 * only under one guard of the process: so a search along owners sees no lock twice
 * or half, and the owner that it looks at cannot unlock and end meanwhile. It is
 * held for some tens of nanoseconds, and only by those who must wait or have waiters.
 */
#include "fiber/mutex.h"

#include <errno.h>
#include <pthread.h>

#include "base/log.h"
#include "base/must.h"
#include "fiber/describe.h"
#include "fiber/fiber.h"

#define WAITED_FOR UINT64_C(1)

/* Looks at a lock that another thread holds before queueing for it: 2 to 4 µs. */
#define LOOKS_MAX 64

/* A cycle is told up to so many owners. */
#define CYCLE_OWNERS_MAX 16

_Static_assert(_Alignof(struct task) > WAITED_FOR, "the lowest bit of its address is free");

/* Adaptive: its holder is soon done, unless it was preempted. */
static pthread_mutex_t guard = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;

static struct task *owner_of(const struct mutex *mutex)
{
    return (struct task *)(atomic_load_explicit(&mutex->word, memory_order_acquire) &
                           ~WAITED_FOR); /* NOLINT(performance-no-int-to-ptr) */
}

void mutex_init(struct mutex *mutex, const char *name)
{
    *mutex = (struct mutex){.name = name};
    list_init(&mutex->waiters);
}

void mutex_fini(struct mutex *mutex)
{
    must(list_empty(&mutex->waiters) && "a mutex is destroyed while others wait for it");
    must(owner_of(mutex) == NULL && "a mutex is destroyed while it is held");
}

/* take_free - releases as well: who waits for it reads what its owner waits for. */
static bool take_free(struct mutex *mutex, struct task *self)
{
    uintptr_t nobody = 0;
    return atomic_compare_exchange_strong_explicit(&mutex->word, &nobody, (uintptr_t)self,
                                                   memory_order_acq_rel, memory_order_relaxed);
}

static inline void note_owner(struct mutex *mutex, struct task *self)
{
    const struct sched *sched = sched_current();
    self->held++;
    if (atomic_load_explicit(&mutex->sched, memory_order_relaxed) != sched) {
        atomic_store_explicit(&mutex->sched, sched, memory_order_relaxed);
    }
}

/* look - for a moment, whether the owner is done on its other thread. */
static bool look(struct mutex *mutex, struct task *self)
{
    for (unsigned i = 0; i < LOOKS_MAX; i++) {
        uintptr_t word = atomic_load_explicit(&mutex->word, memory_order_relaxed);
        if (word == 0 && take_free(mutex, self)) {
            return true;
        }
        const struct sched *theirs = atomic_load_explicit(&mutex->sched, memory_order_relaxed);
        if ((word & WAITED_FOR) != 0 || (theirs != NULL && theirs == sched_current())) {
            return false;
        }
#if defined(__x86_64__)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        __asm__ volatile("isb");
#endif
    }
    return false;
}

/* ------------------------------------------------------------ cycles */

/* tell_cycle - under the guard: self wants mutex, and following owners leads back to self. */
static void tell_cycle(struct text *text, const struct task *self, const struct mutex *mutex)
{
    char who[TASK_DESCRIBE_SIZE];
    (void)task_describe(self, who, sizeof(who));
    text_string(text, who);
    for (unsigned i = 0; i < CYCLE_OWNERS_MAX; i++) {
        const struct task *owner = owner_of(mutex);
        (void)task_describe(owner, who, sizeof(who));
        text_string(text, i == 0 ? " wants \"" : ", which waits for \"");
        text_string(text, mutex->name);
        text_string(text, "\", held by ");
        text_string(text, who);
        if (owner == self) {
            return;
        }
        mutex = owner->wants;
    }
    text_string(text, " ...");
}

/*
 * closes_cycle - under the guard: would self, waiting for mutex, wait for itself?
 *
 * There may be a cycle without self: condition_wait cannot be refused its mutex. So one of the
 * mutexes on the way is kept in mind, twice as long each time (Brent's search): met again, it
 * is on such a cycle.
 */
static bool closes_cycle(const struct task *self, const struct mutex *mutex)
{
    const struct mutex *kept = NULL;
    for (unsigned steps = 0, keep_at = 1; mutex != NULL && mutex != kept; steps++) {
        if (steps == keep_at) {
            kept = mutex;
            keep_at *= 2;
        }
        const struct task *owner = owner_of(mutex);
        if (owner == self || owner == NULL) {
            return owner == self;
        }
        mutex = owner->wants;
    }
    return false;
}

/* log_cycle - under the guard, which it gives up for the log. */
static __attribute__((noinline)) void log_cycle(const struct task *self, const struct mutex *mutex)
{
    char line[LOG_LINE_MAX / 2];
    struct text text;
    text_init(&text, line, sizeof(line));
    tell_cycle(&text, self, mutex);
    pthread_mutex_unlock(&guard);
    log_error("fiber.mutex", "deadlock: %s", line);
    pthread_mutex_lock(&guard);
}

/* ------------------------------------------------------------ lock */

/*
 * mark - under the guard: from now on the owner cannot unlock without the guard.
 * Returns false when the lock came free and is the caller's.
 */
static bool mark(struct mutex *mutex, struct task *self)
{
    uintptr_t word = atomic_load_explicit(&mutex->word, memory_order_relaxed);
    for (;;) {
        if (word == 0) {
            if (atomic_compare_exchange_weak_explicit(&mutex->word, &word, (uintptr_t)self,
                                                      memory_order_acq_rel, memory_order_relaxed)) {
                return false;
            }
        } else if ((word & WAITED_FOR) != 0 || atomic_compare_exchange_weak_explicit(
                                                   &mutex->word, &word, word | WAITED_FOR,
                                                   memory_order_relaxed, memory_order_relaxed)) {
            return true;
        }
    }
}

/* unmark - under the guard: nobody waits any more, unlocking is one instruction again. */
static void unmark(struct mutex *mutex)
{
    if (list_empty(&mutex->waiters)) {
        (void)atomic_fetch_and_explicit(&mutex->word, ~(uintptr_t)WAITED_FOR, memory_order_relaxed);
    }
}

static __attribute__((noinline)) int lock_slowly(struct mutex *mutex, struct task *self,
                                                 uint64_t deadline_ns)
{
    if (look(mutex, self)) {
        return 0;
    }
    pthread_mutex_lock(&guard);
    if (!mark(mutex, self)) {
        pthread_mutex_unlock(&guard);
        return 0;
    }
    if (unlikely(closes_cycle(self, mutex))) {
        log_cycle(self, mutex);
        unmark(mutex);
        pthread_mutex_unlock(&guard);
        return -EDEADLK;
    }
    struct task_wait wait = {.guard = &guard,
                             .queue = &mutex->waiters,
                             .waiting_for = mutex->name,
                             .deadline_ns = deadline_ns};
    self->wants = mutex;
    int result = task__wait(self, &wait);
    if (result != 0) {
        self->wants = NULL;
        unmark(mutex);
        pthread_mutex_unlock(&guard);
    }
    return result;
}

/* lock_here - for the cases that the first lines of mutex_lock_until leave. */
static __attribute__((noinline)) int lock_here(struct mutex *mutex, uint64_t deadline_ns)
{
    struct task *self = task_current();
    if (!take_free(mutex, self)) {
        int result = lock_slowly(mutex, self, deadline_ns);
        if (result != 0) {
            return result;
        }
    }
    note_owner(mutex, self);
    return 0;
}

int mutex_lock_until(struct mutex *mutex, uint64_t deadline_ns)
{
    /* No call but the last, so that nothing is saved on the stack before the exchange: that
     * would wait for it. */
    const struct sched *sched = sched_current();
    if (likely(sched != NULL && sched->current != NULL) &&
        likely(take_free(mutex, &sched->current->task))) {
        note_owner(mutex, &sched->current->task);
        return 0;
    }
    return lock_here(mutex, deadline_ns);
}

int mutex_lock(struct mutex *mutex)
{
    return mutex_lock_until(mutex, 0);
}

bool mutex_try_lock(struct mutex *mutex)
{
    struct task *self = task__self();
    bool taken = take_free(mutex, self);
    if (taken) {
        note_owner(mutex, self);
    }
    return taken;
}

bool mutex_is_mine(struct mutex *mutex)
{
    return owner_of(mutex) == task__self();
}

/* hand_over - under the guard: the lock is the oldest waiter's now, who is to be told; NULL: it is free. */
static struct task *hand_over(struct mutex *mutex)
{
    struct task *next = task__choose(&mutex->waiters);
    uintptr_t word = (uintptr_t)next;
    if (next != NULL) {
        next->wants = NULL;
        next->first = true;
        word |= list_empty(&mutex->waiters) ? 0 : WAITED_FOR;
    }
    atomic_store_explicit(&mutex->word, word, memory_order_release);
    return next;
}

/* free_held - the lock is nobody's, if it is self's and nobody waits. */
static bool free_held(struct mutex *mutex, const struct task *self)
{
    uintptr_t mine = (uintptr_t)self;
    return atomic_compare_exchange_strong_explicit(&mutex->word, &mine, 0, memory_order_release,
                                                   memory_order_relaxed);
}

/* unlock_here - for the cases that the first lines of mutex_unlock leave. */
static __attribute__((noinline)) void unlock_here(struct mutex *mutex)
{
    struct task *self = task_current();
    must(owner_of(mutex) == self && "a mutex is unlocked by one that does not hold it");
    self->held--;
    if (free_held(mutex, self)) {
        return;
    }
    pthread_mutex_lock(&guard);
    struct task *next = hand_over(mutex);
    pthread_mutex_unlock(&guard);
    if (next != NULL) {
        task__tell(next);
    }
}

void mutex_unlock(struct mutex *mutex)
{
    const struct sched *sched = sched_current();
    if (likely(sched != NULL && sched->current != NULL) &&
        likely(free_held(mutex, &sched->current->task))) {
        sched->current->task.held--;
        return;
    }
    unlock_here(mutex);
}

/* ------------------------------------------------------------ condition */

void condition_init(struct condition *condition, struct mutex *mutex)
{
    *condition = (struct condition){.mutex = mutex};
    list_init(&condition->waiters);
}

void condition_fini(struct condition *condition)
{
    must(list_empty(&condition->waiters) && "a condition is destroyed while others wait for it");
}

int condition_wait(struct condition *condition, uint64_t deadline_ns)
{
    struct mutex *mutex = condition->mutex;
    struct task *self = task__self();
    must(owner_of(mutex) == self && "a condition is waited for by one that holds its mutex");
    struct task_wait wait = {.guard = &guard,
                             .queue = &condition->waiters,
                             .waiting_for = "condition",
                             .deadline_ns = deadline_ns};
    pthread_mutex_lock(&guard);
    struct task *next = hand_over(mutex);
    if (next != NULL) {
        task__tell(next);
    }
    self->held--;
    int result = task__wait(self, &wait);
    if (result != 0) {
        /* Not signalled, or signalled and queued for the mutex: then the signal is ours to keep. */
        result = self->wants == mutex ? 0 : result;
        wait.queue = &mutex->waiters;
        wait.waiting_for = mutex->name;
        bool waits = mark(mutex, self);
        if (waits && unlikely(closes_cycle(self, mutex))) {
            log_cycle(self, mutex); /* all that can be done: it returns with the mutex held */
            waits = mark(mutex, self);
        }
        if (waits) {
            self->wants = mutex;
            task__wait_through(self, &wait);
        } else {
            self->wants = NULL;
            pthread_mutex_unlock(&guard);
        }
    }
    note_owner(mutex, self);
    return result;
}

void condition_signal(struct condition *condition)
{
    struct mutex *mutex = condition->mutex;
    must(mutex_is_mine(mutex) && "a condition is signalled by one that holds its mutex");
    pthread_mutex_lock(&guard);
    struct task *next = task__choose(&condition->waiters);
    if (next != NULL) {
        must(mark(mutex, task__self())); /* the caller holds it */
        next->wants = mutex;
        list_append(&mutex->waiters, &next->link);
    }
    pthread_mutex_unlock(&guard);
}

void condition_broadcast(struct condition *condition)
{
    struct mutex *mutex = condition->mutex;
    must(mutex_is_mine(mutex) && "a condition is signalled by one that holds its mutex");
    pthread_mutex_lock(&guard);
    if (!list_empty(&condition->waiters)) {
        must(mark(mutex, task__self())); /* the caller holds it */
    }
    for (struct task *next; (next = task__choose(&condition->waiters)) != NULL;) {
        next->wants = mutex;
        list_append(&mutex->waiters, &next->link);
    }
    pthread_mutex_unlock(&guard);
}
