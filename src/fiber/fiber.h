/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fiber.h - spawn, park, wake: a fiber is a small stack and a state.
 *
 *            spawn                     picked by sched_run
 *   (none) --------> READY --------------------------> RUNNING --> DONE (entry returned)
 *                      ^                                  |
 *                      |  wake, deadline, cancel          | park
 *                      +------------------ PARKED <-------+
 *
 * A fiber never leaves the scheduler (and so the OS thread) it was spawned on.
 * Waking a fiber that is not parked does nothing, so every waiter loops on its
 * own condition. struct fiber sits at the top of its own stack, in its first page.
 * Knows no io_uring: the carrier drives it by sched.h.
 */
#ifndef FIBER_FIBER_H
#define FIBER_FIBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/list.h"
#include "fiber/sched.h"
#include "fiber/stack.h"
#include "fiber/switch.h"
#include "fiber/task.h"
#include "fiber/timer.h"

/* Room for what fiber_format_name and fiber_describe write, with its NUL. */
#define FIBER_NAME_SIZE 64
#define FIBER_DESCRIBE_SIZE 160

enum fiber_state { FIBER_READY, FIBER_RUNNING, FIBER_PARKED, FIBER_DONE };

/* A name is two words, put together only when somebody looks: "http-8080-conn-" and 12. */
struct fiber_name {
    const char *prefix; /* outlives the fiber */
    uint64_t number;    /* 0: the prefix is the whole name */
};

struct fiber {
    uint64_t canary; /* a caller's overrun runs upwards into it; checked at each park */
    /* set once */
    struct sched *sched;
    uint64_t id; /* unique in the process, from 1 */
    struct fiber_name name;
    void (*entry)(void *argument);
    void *argument;
    struct stack stack;
    /* scheduling */
    struct switch_context context;
    enum fiber_state state;
    bool cancelled;          /* fiber_cancel was called; for good */
    bool through;            /* the park in work ignores fiber_cancel */
    int park_result;         /* of the park in work, set by what ends it */
    const char *waiting_for; /* static text, while parked */
    struct list run_link;    /* the run queue, while ready */
    struct list live_link;   /* sched->live */
    uint64_t deadline_ns;    /* of the park in work; 0: none */
    struct timer timer;      /* armed for that deadline, or for an earlier moment */
    /* stack pages go back when a fiber stays parked, see fiber_park_idle */
    bool resting;            /* the park in work lets them go: there may be some */
    uint64_t idle_since_ns;  /* when it began */
    struct list idle_link;   /* sched->idle: has rested since it was looked at last */
    uint64_t idle_listed_ns; /* since when it is on that list; orders it */
    struct task task;        /* what it waits for and owns of task.h's kind */
    /* figures */
    uint64_t switches;       /* times it was given the carrier */
    uint64_t run_ns;         /* time on the carrier, up to the last park */
    uint64_t parked_ns;      /* time parked, up to the last wake */
    uint64_t ready_ns;       /* when it last became ready; UINT64_MAX: since the turn began */
    uint64_t state_since_ns; /* start of the present state; ready is part of parked */
};

/*
 * fiber_spawn - a new fiber, ready to run on sched (the calling thread's own).
 *
 * Returns  the fiber, valid until its entry returned; NULL no memory
 * Parks    no
 * Owner    argument stays the caller's
 */
struct fiber *fiber_spawn(struct sched *sched, struct fiber_name name, void (*entry)(void *),
                          void *argument) WARN_UNUSED;

/* fiber_current - the running fiber, NULL on a platform thread and in the loop. */
struct fiber *fiber_current(void);

/*
 * fiber_park - wait until somebody wakes this fiber.
 *
 * @waiting_for  static text for dumps: "recv", "sleep"
 * @deadline_ns  CLOCK_MONOTONIC; 0 or TIMER_NEVER means none
 *
 * Returns  0 woken; -ETIMEDOUT; -ECANCELED when the fiber is or gets cancelled
 *          (fiber_park_through never returns that: for ops that must be seen to their end)
 * Parks    yes
 */
int fiber_park(const char *waiting_for, uint64_t deadline_ns);
int fiber_park_through(const char *waiting_for, uint64_t deadline_ns);

/*
 * fiber_park_idle - as fiber_park, by a fiber that may have gone deep without
 * having called fiber_populate.
 *
 * Of a fiber that stays parked for a second the stack pages below its frames go
 * back to the system: in this park always, in every other unless the stack is
 * known to be clean, so that a fiber that keeps to its first page costs no call.
 */
int fiber_park_idle(const char *waiting_for, uint64_t deadline_ns);

/* fiber_yield - let the others that are ready run first. */
void fiber_yield(void);

/*
 * fiber_sleep_until - park until the clock reads deadline_ns: never early.
 *
 * Returns  0, without parking when the deadline is past; -ECANCELED
 */
int fiber_sleep_until(uint64_t deadline_ns);

/*
 * fiber_wake - make a parked fiber ready; from its own thread at once, from a
 * foreign one by setup.wake_remote.
 */
void fiber_wake(struct fiber *fiber);

/*
 * fiber_cancel - the park in work, if it can be cancelled, and all later ones
 * return -ECANCELED. Own thread only.
 */
void fiber_cancel(struct fiber *fiber);

/*
 * fiber_populate - the running fiber's frames are about to leave its first page:
 * get memory for the next one by a call rather than by a fault (stack_populate).
 */
void fiber_populate(struct fiber *fiber);

/*
 * fiber_describe - "Fiber[#61,http-8080-conn-12]/runnable@carrier-1", or /parked(recv).
 *
 * Cut to size bytes, NUL included. No libc call: usable in a signal handler.
 *
 * Returns  its length without the NUL
 */
size_t fiber_describe(const struct fiber *fiber, char *dst, size_t size);

/* fiber_format_name - "http-8080-conn-12"; as fiber_describe. */
size_t fiber_format_name(const struct fiber *fiber, char *dst, size_t size);

/*
 * Shared inside fiber/.
 *
 * fiber__unpark - parked to ready, with what the park shall return.
 * fiber__describe_current - what runs on this thread, for must_describe.
 */
void fiber__unpark(struct fiber *fiber, int result);
void fiber__describe_current(char *dst, size_t size);

/* task__self - task_current, without a call where a fiber runs. */
static inline struct task *task__self(void)
{
    const struct sched *sched = sched_current();
    return likely(sched != NULL && sched->current != NULL) ? &sched->current->task : task_current();
}

#endif
