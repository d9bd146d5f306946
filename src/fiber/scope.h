/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scope.h - structured concurrency: a scope owns the children that are forked in it
 * and does not end before them.
 *
 *   open -> fork ... fork -> join (waits for all, or cancels and waits) -> close
 *
 * On a fiber a child is a fiber of the same carrier; on a platform thread it is a
 * thread of its own. Whoever has opened a scope forks, joins and closes it: scopes
 * nest like blocks. To cancel a child is to have its calls that wait return
 * -ECANCELED, those of its own scopes included: a call to the remote is reset.
 */
#ifndef FIBER_SCOPE_H
#define FIBER_SCOPE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/list.h"

struct fiber;
struct task;

/* What the end of one child means for its siblings. */
enum scope_policy {
    SCOPE_FAIL_FAST,     /* the first error cancels the others */
    SCOPE_FIRST_SUCCESS, /* the first success cancels the others */
    SCOPE_EACH           /* nothing: each child's result is looked at by itself */
};

/* One child; the caller's memory, alive until the scope is closed. */
struct scope_child {
    /* set once */
    struct scope *scope;
    int (*run)(void *argument);
    void *argument;
    struct fiber *fiber; /* NULL: it is a thread */
    pthread_t thread;
    uint64_t number; /* within the scope, from 1 */
    /* under the scope's guard */
    struct list link;  /* scope.children, until it has been reaped */
    struct task *task; /* while it runs on its thread */
    bool cancelled;
    bool ended;
    int result; /* what run returned; -ECANCELED when it never ran */
};

struct scope {
    /* set once */
    const char *name; /* static text: "product-"; its fibers are product-1, ... */
    enum scope_policy policy;
    struct task *owner;
    struct scope *outer; /* the owner's next open one */
    bool closed;
    uint64_t forked;
    pthread_mutex_t guard;
    /* under it */
    struct list children; /* forked and not yet reaped, in order */
    unsigned live;        /* children that have not ended */
    bool cancelled;
    unsigned succeeded;
    int error;           /* of the first child that failed of itself */
    struct list waiting; /* the owner's task, while it joins */
};

/* scope_open - the calling fiber or thread becomes its owner. name outlives it. */
void scope_open(struct scope *scope, const char *name, enum scope_policy policy);

/*
 * scope_fork - run(argument) in a child. A fiber begins when its owner waits, a thread at once.
 *
 * @run  returns 0, or -errno for a failure
 *
 * must(called by the owner, scope not closed)
 *
 * Returns  0; -ECANCELED the scope has been cancelled: nothing runs; -ENOMEM,
 *          -EAGAIN no stack or thread
 * Parks    no
 * Owner    child and argument stay the caller's
 */
int scope_fork(struct scope *scope, struct scope_child *child, int (*run)(void *argument),
               void *argument) WARN_UNUSED;

/*
 * scope_join - wait until every child has ended.
 *
 * At the deadline, and when the owner itself is cancelled, the children are cancelled,
 * and waited for as well. must(called by the owner)
 *
 * @deadline_ns  CLOCK_MONOTONIC; 0 means none
 *
 * Returns  0; FAIL_FAST: the first child's error; FIRST_SUCCESS: when none succeeded
 *          the first error, -ECHILD without children; -ETIMEDOUT, unless one of these had
 *          been decided by then and only the cancelled siblings were waited for; -ECANCELED
 * Parks    yes; a platform thread blocks
 */
int scope_join(struct scope *scope) WARN_UNUSED;
int scope_join_until(struct scope *scope, uint64_t deadline_ns) WARN_UNUSED;

/* scope_close - cancel what still runs, wait for it, and end the scope. Owner only; parks while a child runs. */
void scope_close(struct scope *scope);

#endif
