/* SPDX-License-Identifier: Apache-2.0 */
/*
 * monitor.c - a watch on the carriers. Started by app/run.c.
 *
 * While carriers run fibers it looks twice per threshold; when nothing runs it
 * looks less and less often, four times a second at last, so that an idle server
 * stays idle. A fiber that gets stuck meanwhile is then seen up to 250 ms later.
 */
#include "ring/monitor.h"

#include <errno.h>
#include <execinfo.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/must.h"
#include "fiber/sched.h"
#include "ring/sys.h"

#define LOOK_INTERVAL_MAX_NS (250 * NS_PER_MS)
#define REPORTS_PER_MINUTE 5
#define FRAMES_MAX 32

/* How long the interrupted carrier may take to write down its stack. */
#define SAMPLE_PATIENCE_NS (100 * NS_PER_MS)

/* The stack of the one carrier that is being asked; written in its signal handler. */
struct sample {
    void *frames[FRAMES_MAX];
    int count;
    char who[FIBER_DESCRIBE_SIZE];
    atomic_bool wanted;
    atomic_bool taken;
};

static struct {
    struct carrier *carriers;
    unsigned count;
    uint64_t threshold_ns;
    uint64_t *reported; /* per carrier: run_started_ns of the run that was reported last */
    uint64_t window_ns; /* start of the present minute */
    unsigned reports;   /* in it */
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t stop;
    bool stopping; /* under mutex */
    struct sample sample;
} monitor;

/* Of carriers that are held: they may still be when the monitor stops, so this stays. */
static struct {
    pthread_mutex_t mutex;
    struct monitor_holds holds; /* under it; holding is not used */
} held = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* on_held - on the carrier, when its fiber has let it go. */
static void on_held(struct sched *sched, const struct fiber *fiber, uint64_t held_ns)
{
    struct monitor_hold hold = {.fiber_id = fiber->id,
                                .carrier = sched->setup.number,
                                .held_ns = held_ns,
                                .ended_wall_ns = sys_wall_ns()};
    fiber_format_name(fiber, hold.fiber, sizeof(hold.fiber));
    struct monitor_holds *holds = &held.holds;
    pthread_mutex_lock(&held.mutex);
    holds->count++;
    holds->total_ns += held_ns;
    holds->longest_ns = held_ns > holds->longest_ns ? held_ns : holds->longest_ns;
    memmove(&holds->last[1], &holds->last[0], sizeof(hold) * (MONITOR_HOLDS_KEPT - 1));
    holds->last[0] = hold;
    holds->kept += holds->kept < MONITOR_HOLDS_KEPT;
    pthread_mutex_unlock(&held.mutex);
}

void monitor_holds(struct monitor_holds *holds)
{
    pthread_mutex_lock(&held.mutex);
    *holds = held.holds;
    pthread_mutex_unlock(&held.mutex);
    uint64_t now_ns = sys_clock_ns();
    for (unsigned i = 0; i < monitor.count; i++) {
        const struct sched *sched = &monitor.carriers[i].sched;
        uint64_t since_ns = __atomic_load_n(&sched->run_started_ns, __ATOMIC_RELAXED);
        holds->holding += since_ns != 0 && now_ns >= since_ns + monitor.threshold_ns;
    }
}

/* watch - have each carrier tell of what held it, or not any more. */
static void watch(uint64_t threshold_ns, sched_held *told)
{
    for (unsigned i = 0; i < monitor.count; i++) {
        sched_watch(&monitor.carriers[i].sched, threshold_ns, told);
    }
}

static void on_urgent(int signal)
{
    (void)signal;
    int saved = errno;
    /* On a platform thread the signal only ends a wait, see sys_poll_interruptible. */
    if (sched_current() != NULL && atomic_exchange(&monitor.sample.wanted, false)) {
        struct fiber *fiber = fiber_current();
        monitor.sample.who[0] = '\0';
        if (fiber != NULL) {
            fiber_describe(fiber, monitor.sample.who, sizeof(monitor.sample.who));
        }
        monitor.sample.count = backtrace(monitor.sample.frames, FRAMES_MAX);
        atomic_store(&monitor.sample.taken, true);
    }
    errno = saved;
}

static void log_stack(const struct sample *sample)
{
    char **names = backtrace_symbols(sample->frames, sample->count);
    /* The first two are the handler and the signal's own frame. */
    for (int i = 2; i < sample->count; i++) {
        log_warn("ring.monitor", "    at %s", names != NULL ? names[i] : "?");
    }
    free(names);
}

static void report(struct carrier *carrier, uint64_t held_ns)
{
    struct sample *sample = &monitor.sample;
    atomic_store(&sample->taken, false);
    atomic_store(&sample->wanted, true);
    uint64_t give_up_ns = sys_clock_ns() + SAMPLE_PATIENCE_NS;
    if (pthread_kill(carrier->thread, SIGURG) != 0) {
        return;
    }
    while (!atomic_load(&sample->taken) && sys_clock_ns() < give_up_ns) {
        sys_sleep_until(sys_clock_ns() + NS_PER_MS);
    }
    if (atomic_exchange(&sample->wanted, false)) {
        return; /* the carrier does not even take signals */
    }
    while (!atomic_load(&sample->taken)) {
        sys_sleep_until(sys_clock_ns() + NS_PER_MS); /* the handler is writing it */
    }
    if (sample->who[0] == '\0') {
        return; /* the fiber has parked meanwhile */
    }
    log_warn("ring.monitor",
             "%s has held %s for %" PRIu64 " ms without parking; its stack:", sample->who,
             carrier->name, held_ns / NS_PER_MS);
    log_stack(sample);
}

/* look - one round. Returns whether some carrier runs a fiber. */
static bool look(void)
{
    uint64_t now_ns = sys_clock_ns();
    bool busy = false;

    for (unsigned i = 0; i < monitor.count; i++) {
        struct carrier *carrier = &monitor.carriers[i];
        uint64_t since_ns = __atomic_load_n(&carrier->sched.run_started_ns, __ATOMIC_RELAXED);
        if (since_ns == 0) {
            continue;
        }
        busy = true;
        if (now_ns < since_ns + monitor.threshold_ns || monitor.reported[i] == since_ns) {
            continue;
        }
        monitor.reported[i] = since_ns;
        if (now_ns - monitor.window_ns >= 60 * NS_PER_S) {
            monitor.window_ns = now_ns;
            monitor.reports = 0;
        }
        if (monitor.reports++ < REPORTS_PER_MINUTE) {
            report(carrier, now_ns - since_ns);
        }
    }
    return busy;
}

static void *run(void *unused)
{
    uint64_t interval_ns = monitor.threshold_ns / 2;
    (void)unused;
    log_set_thread("monitor");
    sys_thread_name("monitor");
    pthread_mutex_lock(&monitor.mutex);
    while (!monitor.stopping) {
        uint64_t until_ns = sys_clock_ns() + interval_ns;
        struct timespec until = {.tv_sec = (time_t)(until_ns / NS_PER_S),
                                 .tv_nsec = (long)(until_ns % NS_PER_S)};
        pthread_cond_timedwait(&monitor.stop, &monitor.mutex, &until);
        pthread_mutex_unlock(&monitor.mutex);
        interval_ns = look() ? monitor.threshold_ns / 2 : interval_ns * 2;
        if (interval_ns > LOOK_INTERVAL_MAX_NS) {
            interval_ns = LOOK_INTERVAL_MAX_NS;
        }
        pthread_mutex_lock(&monitor.mutex);
    }
    pthread_mutex_unlock(&monitor.mutex);
    return NULL;
}

int monitor_start(struct carrier *carriers, unsigned count, uint64_t threshold_ns)
{
    struct sigaction action = {.sa_handler = on_urgent, .sa_flags = SA_ONSTACK | SA_RESTART};
    pthread_condattr_t attributes;
    void *frame;

    memset(&monitor, 0, sizeof(monitor));
    monitor.carriers = carriers;
    monitor.count = count;
    monitor.threshold_ns = threshold_ns > NS_PER_MS ? threshold_ns : NS_PER_MS;
    monitor.reported = calloc(count, sizeof(*monitor.reported));
    if (monitor.reported == NULL) {
        return -ENOMEM;
    }
    (void)backtrace(&frame, 1); /* loads libgcc now: later it would be in a signal handler */
    sigemptyset(&action.sa_mask);
    sigaction(SIGURG, &action, NULL);
    pthread_mutex_init(&monitor.mutex, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&monitor.stop, &attributes);
    pthread_condattr_destroy(&attributes);
    int error = pthread_create(&monitor.thread, NULL, run, NULL);
    if (error != 0) {
        free(monitor.reported);
        return -error;
    }
    held.holds = (struct monitor_holds){.threshold_ns = monitor.threshold_ns};
    watch(monitor.threshold_ns, on_held);
    return 0;
}

void monitor_stop(void)
{
    watch(UINT64_MAX, NULL);
    pthread_mutex_lock(&monitor.mutex);
    monitor.stopping = true;
    pthread_cond_signal(&monitor.stop);
    pthread_mutex_unlock(&monitor.mutex);
    pthread_join(monitor.thread, NULL);
    pthread_cond_destroy(&monitor.stop);
    pthread_mutex_destroy(&monitor.mutex);
    free(monitor.reported);
}
