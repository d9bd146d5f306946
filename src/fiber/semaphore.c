/* SPDX-License-Identifier: Apache-2.0 */
/*
 * semaphore.c - see semaphore.h.
 */
#include "fiber/semaphore.h"

#include "base/must.h"
#include "fiber/fiber.h"

void semaphore_init(struct semaphore *semaphore, const char *name, uint64_t permits)
{
    *semaphore = (struct semaphore){
        .name = name, .guard = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP, .permits = permits};
    list_init(&semaphore->waiters);
}

void semaphore_fini(struct semaphore *semaphore)
{
    /* Whoever gave the last permit may not have let go of the guard yet. */
    pthread_mutex_lock(&semaphore->guard);
    must(list_empty(&semaphore->waiters) && "a semaphore is destroyed while others wait for it");
    pthread_mutex_unlock(&semaphore->guard);
    pthread_mutex_destroy(&semaphore->guard);
}

int semaphore_take(struct semaphore *semaphore, uint64_t deadline_ns)
{
    struct task *self = task__self();
    pthread_mutex_lock(&semaphore->guard);
    if (semaphore->permits > 0) {
        semaphore->permits--;
        pthread_mutex_unlock(&semaphore->guard);
        return 0;
    }
    struct task_wait wait = {.guard = &semaphore->guard,
                             .queue = &semaphore->waiters,
                             .waiting_for = semaphore->name,
                             .deadline_ns = deadline_ns};
    int result = task__wait(self, &wait);
    if (result != 0) {
        pthread_mutex_unlock(&semaphore->guard);
    }
    return result;
}

bool semaphore_try_take(struct semaphore *semaphore)
{
    pthread_mutex_lock(&semaphore->guard);
    bool taken = semaphore->permits > 0;
    semaphore->permits -= taken;
    pthread_mutex_unlock(&semaphore->guard);
    return taken;
}

void semaphore_give(struct semaphore *semaphore)
{
    pthread_mutex_lock(&semaphore->guard);
    struct task *next = task__choose(&semaphore->waiters);
    semaphore->permits += next == NULL;
    pthread_mutex_unlock(&semaphore->guard);
    if (next != NULL) {
        task__tell(next);
    }
}
