/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scope.c - see scope.h. Called by handlers that fan out.
 */
#include "fiber/scope.h"

#include <errno.h>
#include <stdio.h>

#include "base/log.h"
#include "base/must.h"
#include "fiber/able.h"
#include "fiber/fiber.h"

/* As the pool's threads have: a handler's frames need far less. */
#define THREAD_STACK_BYTES ((size_t)262144)

static void must_own(const struct scope *scope)
{
    must(scope->owner == task_current() && "a scope is used by one that did not open it");
    must(!scope->closed && "a scope is used after it was closed");
}

void scope_open(struct scope *scope, const char *name, enum scope_policy policy)
{
    struct task *self = task_current();
    *scope = (struct scope){.name = name,
                            .policy = policy,
                            .owner = self,
                            .outer = self->scope,
                            .guard = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP};
    list_init(&scope->children);
    list_init(&scope->waiting);
    self->scope = scope;
}

/* cancel_children - guard held. */
static void cancel_children(struct scope *scope)
{
    scope->cancelled = true;
    for (struct list *at = scope->children.next; at != &scope->children; at = at->next) {
        struct scope_child *child = container_of(at, struct scope_child, link);
        if (child->ended || child->cancelled) {
            continue;
        }
        child->cancelled = true;
        if (child->fiber != NULL) {
            fiber_cancel(child->fiber);
        } else if (child->task != NULL) {
            task_cancel_thread(child->task);
        }
    }
}

/* child_begin - false when it was cancelled before it came to run. */
static bool child_begin(struct scope_child *child)
{
    pthread_mutex_lock(&child->scope->guard);
    child->task = task_current();
    bool begins = !child->cancelled;
    pthread_mutex_unlock(&child->scope->guard);
    return begins;
}

/* child_end - from here on child and scope may be gone. */
static void child_end(struct scope_child *child, int result)
{
    struct scope *scope = child->scope;
    pthread_mutex_lock(&scope->guard);
    child->result = result;
    child->ended = true;
    child->task = NULL;
    scope->live--;
    bool failed = result < 0 && !child->cancelled;
    if (failed && scope->error == 0) {
        scope->error = result;
    }
    scope->succeeded += result >= 0;
    if (!scope->cancelled && ((failed && scope->policy == SCOPE_FAIL_FAST) ||
                              (result >= 0 && scope->policy == SCOPE_FIRST_SUCCESS))) {
        cancel_children(scope);
    }
    struct task *joiner = scope->live == 0 ? task__choose(&scope->waiting) : NULL;
    pthread_mutex_unlock(&scope->guard);
    if (joiner != NULL) {
        task__tell(joiner);
    }
}

static void child_run(void *argument)
{
    struct scope_child *child = argument;
    child_end(child, child_begin(child) ? child->run(child->argument) : -ECANCELED);
}

static void *child_thread(void *argument)
{
    const struct scope_child *child = argument;
    char name[32];
    snprintf(name, sizeof(name), "%.20s%u", child->scope->name, (unsigned)child->number);
    log_set_thread(name);
    name[15] = '\0'; /* more the kernel does not keep */
    (void)pthread_setname_np(pthread_self(), name);
    task_current()->counted = true;
    child_run(argument);
    task_end(task_current());
    able_less();
    able_check();
    return NULL;
}

static int start_thread(struct scope_child *child)
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, THREAD_STACK_BYTES);
    able_more();
    int error = pthread_create(&child->thread, &attributes, child_thread, child);
    pthread_attr_destroy(&attributes);
    if (error != 0) {
        able_less();
    }
    return -error;
}

static int start_fiber(struct scope_child *child, struct sched *sched)
{
    struct fiber_name name = {.prefix = child->scope->name, .number = child->number};
    child->fiber = fiber_spawn(sched, name, child_run, child);
    return child->fiber != NULL ? 0 : -ENOMEM;
}

int scope_fork(struct scope *scope, struct scope_child *child, int (*run)(void *argument),
               void *argument)
{
    must_own(scope);
    pthread_mutex_lock(&scope->guard);
    if (scope->cancelled) {
        pthread_mutex_unlock(&scope->guard);
        return -ECANCELED;
    }
    *child = (struct scope_child){
        .scope = scope, .run = run, .argument = argument, .number = ++scope->forked};
    list_append(&scope->children, &child->link);
    scope->live++;
    /* Under the guard, so that no sibling cancels a child whose thread is not known yet. */
    const struct fiber *fiber = scope->owner->fiber;
    int result = fiber != NULL ? start_fiber(child, fiber->sched) : start_thread(child);
    if (result < 0) {
        list_remove(&child->link);
        scope->live--;
    }
    pthread_mutex_unlock(&scope->guard);
    return result;
}

/* reap - all children have ended: nobody else touches them any more. */
static void reap(struct scope *scope)
{
    while (!list_empty(&scope->children)) {
        struct scope_child *child = container_of(scope->children.next, struct scope_child, link);
        must(child->ended);
        if (child->fiber == NULL) {
            pthread_join(child->thread, NULL);
        }
        list_remove(&child->link);
    }
}

static int outcome(const struct scope *scope)
{
    switch (scope->policy) {
    case SCOPE_FAIL_FAST:
        return scope->error != 0 ? scope->error : scope->cancelled ? -ECANCELED : 0;
    case SCOPE_FIRST_SUCCESS:
        if (scope->succeeded > 0) {
            return 0;
        }
        return scope->error != 0 ? scope->error : scope->cancelled ? -ECANCELED : -ECHILD;
    case SCOPE_EACH:
        break;
    }
    return 0;
}

int scope_join_until(struct scope *scope, uint64_t deadline_ns)
{
    must_own(scope);
    struct task_wait wait = {.guard = &scope->guard,
                             .queue = &scope->waiting,
                             .waiting_for = "scope",
                             .deadline_ns = deadline_ns};
    int result = 0;
    bool decided = false;
    pthread_mutex_lock(&scope->guard);
    if (scope->live == 0) {
        pthread_mutex_unlock(&scope->guard);
    } else if ((result = task__wait(scope->owner, &wait)) != 0) {
        decided = result == -ETIMEDOUT && scope->cancelled; /* only the others were waited for */
        cancel_children(scope);
        task__wait_through(scope->owner, &wait);
    }
    reap(scope);
    return result != 0 && !decided ? result : outcome(scope);
}

int scope_join(struct scope *scope)
{
    return scope_join_until(scope, 0);
}

void scope_close(struct scope *scope)
{
    must_own(scope);
    must(scope->owner->scope == scope && "scopes close in the reverse order of their opening");
    struct task_wait wait = {
        .guard = &scope->guard, .queue = &scope->waiting, .waiting_for = "scope"};
    pthread_mutex_lock(&scope->guard);
    cancel_children(scope);
    if (scope->live > 0) {
        task__wait_through(scope->owner, &wait);
    } else {
        pthread_mutex_unlock(&scope->guard);
    }
    reap(scope);
    pthread_mutex_destroy(&scope->guard);
    scope->owner->scope = scope->outer;
    scope->closed = true;
}
