/* SPDX-License-Identifier: Apache-2.0 */
/*
 * carrier.c - the loop: run, look into the inbox, enter, reap, expire.
 *
 * Started by app/process.c and the load generator; others post messages to it. Does not know what fibers do.
 */
#include "ring/carrier.h"

#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/must.h"
#include "fiber/able.h"
#include "fiber/overflow.h"
#include "ring/stuck.h"
#include "ring/sys.h"

/* How late the kernel may end our sleep; its default for a thread is 50 µs. */
#define TIMER_SLACK_NS UINT64_C(1000)

/* Completions copied out at once. */
#define REAP_BATCH 128

static _Thread_local struct carrier *current_carrier;

struct carrier *carrier_current(void)
{
    return current_carrier;
}

static void deliver_inbox_signal(struct op *op, const struct op_event *event, void *owner)
{
    (void)op;
    struct carrier *carrier = owner;
    must(event->final);
    must(event->result == (int32_t)sizeof(uint64_t) || event->result == -ECANCELED ||
         event->result == -EINTR || event->result == -EAGAIN || event->result == -ENOMEM);
    carrier->event_op = NULL; /* the next turn arms it again */
}

static void run_told(struct message *message)
{
    struct carrier *carrier = container_of(message, struct carrier, told);
    atomic_store(&carrier->nudged, false); /* whoever tells from here on posts it again */
    sched_deliver(&carrier->sched);
}

/* nudge - a foreign thread has told a task on this carrier. */
static void nudge(struct sched *sched)
{
    struct carrier *carrier = container_of(sched, struct carrier, sched);
    if (!atomic_exchange(&carrier->nudged, true)) {
        carrier_post(carrier, &carrier->told);
    }
}

int carrier_init(struct carrier *carrier, const struct carrier_setup *setup)
{
    memset(carrier, 0, sizeof(*carrier));
    carrier->setup = *setup;
    carrier->thread = pthread_self();
    carrier->thread_id = sys_thread_id();
    snprintf(carrier->name, sizeof(carrier->name), "carrier-%u", setup->number);
    carrier->tidy_at_ns = TIMER_NEVER;
    carrier->told.run = run_told;
    list_init(&carrier->deferred);

    carrier->event_fd = sys_eventfd();
    if (carrier->event_fd < 0) {
        return carrier->event_fd;
    }
    int result = ring_init(&carrier->ring, &setup->ring);
    if (result < 0) {
        goto undo_eventfd;
    }
    ops_init(&carrier->ops, &carrier->ring);
    struct sched_setup sched = {
        .number = setup->number,
        .stack_bytes = setup->stack_bytes,
        .force_mprotect = setup->force_mprotect,
        .clock_ns = sys_clock_ns,
        .nudge = nudge,
    };
    result = sched_init(&carrier->sched, &sched);
    if (result < 0) {
        goto undo_ring;
    }
    current_carrier = carrier;
    return 0;

undo_ring:
    ops_fini(&carrier->ops);
    ring_fini(&carrier->ring);
undo_eventfd:
    sys_close(carrier->event_fd);
    return result;
}

void carrier_fini(struct carrier *carrier)
{
    const struct message *left = atomic_load(&carrier->inbox);
    /* sched_run may have found what was told before the nudge came, and that was the last fiber. */
    must(left == NULL || (left == &carrier->told && left->next == NULL));
    must(current_carrier == carrier && list_empty(&carrier->deferred));
    sched_fini(&carrier->sched);
    ops_fini(&carrier->ops);
    ring_fini(&carrier->ring);
    current_carrier = NULL;
}

void carrier_free(struct carrier *carrier)
{
    sys_close(carrier->event_fd);
}

/* inbox_take - everything posted so far, oldest first. */
static struct message *inbox_take(struct carrier *carrier)
{
    struct message *newest = atomic_exchange_explicit(&carrier->inbox, NULL, memory_order_acquire);
    struct message *oldest = NULL;
    while (newest != NULL) {
        struct message *next = newest->next;
        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    return oldest;
}

static void inbox_run(struct carrier *carrier)
{
    if (atomic_load_explicit(&carrier->inbox, memory_order_relaxed) == NULL) {
        return;
    }
    struct message *message = inbox_take(carrier);
    while (message != NULL) {
        struct message *next = message->next; /* run may free it */
        message->run(message);
        message = next;
    }
}

void carrier_defer(struct carrier *carrier, struct deferred *deferred)
{
    must(carrier == current_carrier);
    list_remove(&deferred->node); /* it may be on the list already */
    list_append(&carrier->deferred, &deferred->node);
}

static void deferred_run(struct carrier *carrier)
{
    while (unlikely(!list_empty(&carrier->deferred))) {
        struct deferred *first = container_of(carrier->deferred.next, struct deferred, node);
        list_remove(&first->node);
        first->run(first);
    }
}

void carrier_post(struct carrier *carrier, struct message *message)
{
    struct message *head = atomic_load_explicit(&carrier->inbox, memory_order_relaxed);
    do {
        message->next = head;
    } while (!atomic_compare_exchange_weak(&carrier->inbox, &head, message));
    /* Sequentially consistent on both sides: either the carrier sees the message in its second
     * look, or this thread sees that the carrier sleeps. */
    if (atomic_load(&carrier->sleeping) != CARRIER_AWAKE) {
        able_more(); /* before it can turn: it may have seen the message already */
        unsigned slept = atomic_exchange(&carrier->sleeping, CARRIER_AWAKE);
        if (slept != CARRIER_SLEEPS_FOR_GOOD) {
            able_less(); /* it was counted */
        }
        if (slept != CARRIER_AWAKE) {
            sys_eventfd_signal(carrier->event_fd);
        }
    }
}

bool carrier_done(const struct carrier *carrier)
{
    return carrier->stopping && carrier->sched.live_count == 0 &&
           atomic_load_explicit(&carrier->inbox, memory_order_relaxed) == NULL;
}

/* sleep_ns - how long the ring may wait, or 0 when something is ready or the loop is to end. */
static uint64_t sleep_ns(struct carrier *carrier, uint64_t now_ns)
{
    if (!list_empty(&carrier->sched.ready) || carrier_done(carrier)) {
        return 0;
    }
    uint64_t until_ns = timer_wheel_next(&carrier->sched.timers);
    if (carrier->tidy_at_ns < until_ns) {
        until_ns = carrier->tidy_at_ns;
    }
    if (until_ns == TIMER_NEVER) {
        return UINT64_MAX;
    }
    return until_ns > now_ns ? until_ns - now_ns : 0;
}

/* enter_watched - the same where stuck.h watches: tell when only a message can end the sleep. */
static void enter_watched(struct carrier *carrier, uint64_t wait_ns)
{
    uint32_t own_ops = carrier->event_op != NULL ? 1 : 0;
    bool for_good = wait_ns == UINT64_MAX && carrier->ops.live == own_ops;
    atomic_store(&carrier->sleeping, for_good ? CARRIER_SLEEPS_FOR_GOOD : CARRIER_SLEEPS);
    if (for_good) {
        able_less();
    }
    if (atomic_load(&carrier->inbox) != NULL) {
        wait_ns = 0;
    } else if (for_good) {
        able_check();
    }
    ring_enter(&carrier->ring, wait_ns);
    if (atomic_exchange(&carrier->sleeping, CARRIER_AWAKE) == CARRIER_SLEEPS_FOR_GOOD) {
        able_more(); /* else whoever woke it has done that */
    }
}

static void enter(struct carrier *carrier, uint64_t now_ns)
{
    uint64_t wait_ns = sleep_ns(carrier, now_ns);
    if (wait_ns == 0) {
        ring_enter(&carrier->ring, 0);
        return;
    }
    if (carrier->event_op == NULL) {
        carrier->event_op =
            op_read_arm(&carrier->ops, carrier->event_fd, &carrier->event_count,
                        (struct op_target){.deliver = deliver_inbox_signal, .owner = carrier});
        if (carrier->event_op == NULL) {
            wait_ns = 10 * NS_PER_MS; /* no memory for a record: look again soon */
        }
    }
    if (unlikely(able_watched())) {
        enter_watched(carrier, wait_ns);
        return;
    }
    atomic_store(&carrier->sleeping, CARRIER_SLEEPS);
    if (atomic_load(&carrier->inbox) != NULL) {
        wait_ns = 0;
    }
    ring_enter(&carrier->ring, wait_ns);
    atomic_store_explicit(&carrier->sleeping, CARRIER_AWAKE, memory_order_relaxed);
}

static void reap(struct carrier *carrier)
{
    struct ring_event events[REAP_BATCH];
    size_t count;
    do {
        count = ring_reap(&carrier->ring, events, REAP_BATCH);
        for (size_t i = 0; i < count; i++) {
            ops_dispatch(&carrier->ops, &events[i]);
        }
    } while (count == REAP_BATCH);
}

/*
 * Deadlines are looked at behind what the kernel has brought: after a turn that was longer than a
 * deadline, what came in time counts. And who is woken by one runs at once, with no system
 * call between.
 */
void carrier_turn(struct carrier *carrier)
{
    struct sched *sched = &carrier->sched;
    __atomic_store_n(&carrier->turns, carrier->turns + 1, __ATOMIC_RELAXED);
    /* After a fiber has run the scheduler has just read the clock. */
    uint64_t now_ns = sched_run(sched) > 0 ? sched->now_ns : sys_clock_ns();
    sched_now(sched, now_ns);
    inbox_run(carrier);
    deferred_run(carrier);
    if (carrier->tidy_at_ns <= now_ns || carrier->tidy_at_ns == TIMER_NEVER) {
        carrier->tidy_at_ns = sched_tidy(sched, now_ns);
    }
    enter(carrier, now_ns);
    sched_entered(sched);
    reap(carrier);
    /* Read anew: what has just come counts its time from here, and must not wake early. */
    sched_expire(sched, sys_clock_ns());
}

/* settle - end the read of the eventfd and whatever is left in flight, so that no record leaks. */
static void settle(struct carrier *carrier)
{
    if (carrier->event_op != NULL) {
        op_cancel(&carrier->ops, carrier->event_op);
    }
    while (carrier->ops.live > 0) {
        ring_enter(&carrier->ring, UINT64_MAX);
        reap(carrier);
    }
}

struct start {
    struct carrier *carrier;
    const struct carrier_setup *setup;
    sem_t ready;
    int result;
};

static void *run(void *argument)
{
    struct start *start = argument;
    struct carrier *carrier = start->carrier;
    sigset_t asynchronous;

    /* Only what the processor itself raises, and the monitor's SIGURG, may interrupt a fiber. */
    sigfillset(&asynchronous);
    sigdelset(&asynchronous, SIGSEGV);
    sigdelset(&asynchronous, SIGBUS);
    sigdelset(&asynchronous, SIGFPE);
    sigdelset(&asynchronous, SIGILL);
    sigdelset(&asynchronous, SIGABRT);
    sigdelset(&asynchronous, SIGURG);
    pthread_sigmask(SIG_SETMASK, &asynchronous, NULL);
    sys_timer_slack(TIMER_SLACK_NS);

    int result = carrier_init(carrier, start->setup);
    if (result == 0) {
        log_set_thread(carrier->name);
        sys_thread_name(carrier->name);
        result = overflow_install_thread();
        if (result < 0) {
            carrier_fini(carrier);
            carrier_free(carrier);
        }
    }
    if (result == 0) {
        stuck__carrier_starts(carrier);
    }
    start->result = result;
    sem_post(&start->ready); /* start is gone from here on */
    if (result < 0) {
        return NULL;
    }
    while (!carrier_done(carrier)) {
        carrier_turn(carrier);
    }
    settle(carrier);
    stuck__carrier_ends(carrier);
    overflow_fini_thread();
    carrier_fini(carrier);
    return NULL;
}

int carrier_start(struct carrier *carrier, const struct carrier_setup *setup)
{
    struct start start = {.carrier = carrier, .setup = setup};
    pthread_t thread;

    sem_init(&start.ready, 0, 0);
    int error = pthread_create(&thread, NULL, run, &start);
    if (error == 0) {
        while (sem_wait(&start.ready) < 0) {
            must(errno == EINTR);
        }
        if (start.result < 0) {
            pthread_join(thread, NULL);
        }
    }
    sem_destroy(&start.ready);
    return error != 0 ? -error : start.result;
}

static void run_stop(struct message *message)
{
    container_of(message, struct carrier, stop)->stopping = true;
}

void carrier_stop(struct carrier *carrier)
{
    carrier->stop.run = run_stop;
    carrier_post(carrier, &carrier->stop);
}

void carrier_join(struct carrier *carrier)
{
    if (atomic_exchange(&carrier->joining, CARRIER_IS_JOINED) == CARRIER_RUNS) {
        able_less(); /* this thread wakes nobody until stuck__carrier_ends */
        able_check();
    }
    pthread_join(carrier->thread, NULL);
}

static void date_refresh(struct carrier *carrier)
{
    uint64_t now_ns = carrier->sched.now_ns;
    if (unlikely(now_ns >= carrier->date_until_ns)) {
        uint64_t wall_ns = sys_wall_ns();
        time_format_http(carrier->date, wall_ns);
        carrier->wall_offset_ns = wall_ns - now_ns;
        carrier->date_until_ns = now_ns + NS_PER_S - wall_ns % NS_PER_S;
    }
}

const char *carrier_date(struct carrier *carrier)
{
    date_refresh(carrier);
    return carrier->date;
}

uint64_t carrier_wall_ns(struct carrier *carrier)
{
    date_refresh(carrier);
    return carrier->sched.now_ns + carrier->wall_offset_ns;
}
