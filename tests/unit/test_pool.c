/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property: jobs start strictly in the order in which they were handed over, never
 * more at a time than there may be threads; a job may be left behind, and then
 * releases what it was given; the fiber's carrier goes on meanwhile. Method: a real
 * carrier on the real ring, real threads, jobs that wait for the test.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "base/time.h"
#include "fiber_kit.h"
#include "io/pool.h"
#include "ring/carrier.h"
#include "ring/sys.h"

#define JOBS_MAX 400

static struct carrier carrier;
static struct pool pool;

/* One job, and the fiber that hands it over. */
struct job_test {
    unsigned index;
    sem_t *gate;   /* the job waits here, when there is one */
    bool waits;    /* a minute, as a handler's blocking call does */
    bool gives_up; /* after 20 ms */
    bool cancel;
    int result;
    struct fiber *fiber;
};

static struct job_test jobs[JOBS_MAX];
static sem_t gate;
static atomic_uint running, running_most, executed, released, returned, waits_cancelled;
static unsigned order[JOBS_MAX];
static atomic_uint order_count;
static uint64_t ids[JOBS_MAX];

static void wait_at(sem_t *semaphore)
{
    while (sem_wait(semaphore) < 0 && errno == EINTR) {
    }
}

static void job_run(void *argument)
{
    struct job_test *job = *(struct job_test **)argument;
    unsigned now = atomic_fetch_add(&running, 1) + 1;
    unsigned most = atomic_load(&running_most);
    while (now > most && !atomic_compare_exchange_weak(&running_most, &most, now)) {
    }
    order[atomic_fetch_add(&order_count, 1)] = job->index;
    ids[job->index] = pool_thread_current()->id;
    if (job->gate != NULL) {
        wait_at(job->gate);
    }
    if (job->waits && pool_thread_wait(-1, 0, kit_clock_ns() + 60 * NS_PER_S) == -ECANCELED) {
        atomic_fetch_add(&waits_cancelled, 1);
    }
    atomic_fetch_sub(&running, 1);
    atomic_fetch_add(&executed, 1);
}

static void job_release(void *argument)
{
    free(argument);
    atomic_fetch_add(&released, 1);
}

static void hand_over(void *argument)
{
    struct job_test *job = argument;
    if (!job->gives_up && !job->cancel) {
        job->result = pool_run(&pool, job_run, &job);
    } else {
        struct job_test **told = malloc(sizeof(*told));
        if (told == NULL) {
            abort();
        }
        *told = job;
        struct pool_errand errand = {.run = job_run, .release = job_release, .argument = told};
        uint64_t deadline_ns = job->gives_up ? kit_clock_ns() + 20 * NS_PER_MS : 0;
        job->result = pool_run_until(&pool, &errand, deadline_ns);
        if (job->result == 0) {
            free(told);
        }
    }
    atomic_fetch_add(&returned, 1);
}

/* What the test posts to the carrier. */
struct spawn {
    struct message message;
    unsigned from, until;
    sem_t *done;
};

static void run_spawn(struct message *message)
{
    struct spawn *spawn = container_of(message, struct spawn, message);
    for (unsigned i = spawn->from; i < spawn->until; i++) {
        jobs[i].index = i;
        jobs[i].fiber =
            fiber_spawn(&carrier_current()->sched, (struct fiber_name){.prefix = "hand-over"},
                        hand_over, &jobs[i]);
    }
    sem_post(spawn->done);
}

static void run_cancel(struct message *message)
{
    struct spawn *spawn = container_of(message, struct spawn, message);
    for (unsigned i = spawn->from; i < spawn->until; i++) {
        fiber_cancel(jobs[i].fiber);
    }
    sem_post(spawn->done);
}

static void run_nothing(struct message *message)
{
    sem_post(container_of(message, struct spawn, message)->done);
}

static void on_carrier(void (*run)(struct message *message), unsigned from, unsigned until)
{
    sem_t done;
    struct spawn spawn = {.message = {.run = run}, .from = from, .until = until, .done = &done};
    sem_init(&done, 0, 0);
    carrier_post(&carrier, &spawn.message);
    wait_at(&done);
    sem_destroy(&done);
}

static void wait_count(atomic_uint *counter, unsigned value)
{
    uint64_t give_up_ns = kit_clock_ns() + 10 * NS_PER_S;
    struct timespec while_others_run = {.tv_nsec = 100000};
    while (atomic_load(counter) < value) {
        if (kit_clock_ns() > give_up_ns) {
            fail_msg("%u of %u", atomic_load(counter), value);
        }
        nanosleep(&while_others_run, NULL);
    }
}

static void on_wake(int signal)
{
    (void)signal;
}

static void start(unsigned threads_max)
{
    struct log_setup quiet = {.level = LOG_OFF};
    struct carrier_setup setup = {.stack_bytes = 65536};
    log_init(&quiet);
    memset(jobs, 0, sizeof(jobs));
    atomic_store(&running_most, 0);
    atomic_store(&executed, 0);
    atomic_store(&released, 0);
    atomic_store(&returned, 0);
    atomic_store(&order_count, 0);
    atomic_store(&waits_cancelled, 0);
    /* The signal that ends a wait needs a handler, or the kernel drops it. */
    struct sigaction handled = {.sa_handler = on_wake};
    assert_int_equal(sigaction(SYS_WAKE_SIGNAL, &handled, NULL), 0);
    sem_init(&gate, 0, 0);
    assert_int_equal(carrier_start(&carrier, &setup), 0);
    assert_int_equal(pool_init(&pool, "test-exec-", threads_max), 0);
}

static void stop(void)
{
    pool_fini(&pool);
    carrier_stop(&carrier);
    carrier_join(&carrier);
    sem_destroy(&gate);
}

static void test_jobs_start_in_order_and_in_bounds(void **state)
{
    (void)state;
    static const unsigned bounds[] = {1, 4, 32};
    for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++) {
        start(bounds[i]);
        for (unsigned k = 0; k < JOBS_MAX; k++) {
            jobs[k].gate = &gate;
        }
        on_carrier(run_spawn, 0, JOBS_MAX);
        wait_count(&running, bounds[i]);
        assert_int_equal(atomic_load(&returned), 0);
        assert_true(pool_is_busy(&pool));
        for (unsigned k = 0; k < JOBS_MAX; k++) {
            sem_post(&gate);
        }
        wait_count(&returned, JOBS_MAX);
        assert_int_equal(atomic_load(&running_most), bounds[i]);
        for (unsigned k = 0; k < JOBS_MAX; k++) {
            assert_int_equal(jobs[k].result, 0);
            if (bounds[i] == 1) {
                assert_int_equal(order[k], k);
            }
        }
        stop();
    }
}

static void test_threads_start_when_jobs_wait_and_stay(void **state)
{
    (void)state;
    start(8);
    assert_int_equal(pool.threads, 0);
    for (unsigned k = 0; k < 50; k++) { /* one after the other: one thread does */
        on_carrier(run_spawn, k, k + 1);
        wait_count(&returned, k + 1);
        struct timespec until_it_waits = {.tv_nsec = 2000000};
        nanosleep(&until_it_waits, NULL);
    }
    assert_in_range(pool.threads, 1, 2);
    assert_in_range(ids[49] - ids[0], 0, 1);
    stop();
}

static void test_a_job_that_is_left_behind_releases_what_it_was_given(void **state)
{
    (void)state;
    start(2);
    for (unsigned k = 0; k < 10; k++) {
        jobs[k].gate = &gate;
        jobs[k].gives_up = true;
    }
    on_carrier(run_spawn, 0, 10);
    wait_count(&returned, 10); /* two of them run, eight have left the queue */
    for (unsigned k = 0; k < 10; k++) {
        assert_int_equal(jobs[k].result, -ETIMEDOUT);
    }
    assert_int_equal(atomic_load(&released), 8);
    sem_post(&gate);
    sem_post(&gate);
    wait_count(&released, 10);
    assert_int_equal(atomic_load(&executed), 2);

    for (unsigned k = 10; k < 20; k++) {
        jobs[k].gate = &gate;
        jobs[k].cancel = true;
    }
    on_carrier(run_spawn, 10, 20);
    wait_count(&running, 2);
    on_carrier(run_cancel, 10, 20);
    wait_count(&returned, 20);
    for (unsigned k = 10; k < 20; k++) {
        assert_int_equal(jobs[k].result, -ECANCELED);
    }
    sem_post(&gate);
    sem_post(&gate);
    wait_count(&released, 20);
    stop();
}

static void test_a_cancelled_caller_waited_for_a_thread_that_was_busy_for_a_day(void **state)
{
    (void)state;
    start(1);
    jobs[0].gate = &gate; /* the thread is held all the while */
    on_carrier(run_spawn, 0, 20);
    wait_count(&running, 1);
    on_carrier(run_cancel, 1, 19);
    wait_count(&returned, 18);
    for (unsigned k = 1; k < 19; k++) {
        assert_int_equal(jobs[k].result, -ECANCELED);
    }
    assert_int_equal(pool.queued, 1);
    sem_post(&gate);
    wait_count(&returned, 20);
    assert_int_equal(jobs[19].result, 0);
    assert_int_equal(atomic_load(&executed), 2);
    stop();
}

static void test_a_cancelled_caller_waits_for_the_end_of_its_job(void **state)
{
    (void)state;
    start(1);
    jobs[0].gate = &gate; /* a wait that a cancel does not reach */
    on_carrier(run_spawn, 0, 1);
    wait_count(&running, 1);
    on_carrier(run_cancel, 0, 1);
    struct timespec a_moment = {.tv_nsec = 20000000};
    nanosleep(&a_moment, NULL);
    assert_int_equal(atomic_load(&returned), 0);
    sem_post(&gate);
    wait_count(&returned, 1);
    assert_int_equal(jobs[0].result, -ECANCELED);
    stop();
}

static void test_a_cancel_ends_a_jobs_wait_and_keeps_others_from_being_begun(void **state)
{
    (void)state;
    start(2);
    for (unsigned k = 0; k < 10; k++) {
        jobs[k].waits = true;
    }
    on_carrier(run_spawn, 0, 10);
    wait_count(&running, 2);
    on_carrier(run_cancel, 2, 10); /* these wait for a thread */
    on_carrier(run_cancel, 0, 2);
    wait_count(&returned, 10);
    for (unsigned k = 0; k < 10; k++) {
        assert_int_equal(jobs[k].result, -ECANCELED);
    }
    assert_int_equal(atomic_load(&executed), 2);
    assert_int_equal(atomic_load(&waits_cancelled), 2);

    /* the next job on the same threads knows nothing of it */
    on_carrier(run_spawn, 10, 12);
    wait_count(&returned, 12);
    assert_int_equal(jobs[10].result, 0);
    assert_int_equal(atomic_load(&waits_cancelled), 2);
    stop();
}

static void test_the_end_waits_for_queued_jobs(void **state)
{
    (void)state;
    start(1);
    for (unsigned k = 0; k < 20; k++) {
        jobs[k].gate = &gate;
    }
    on_carrier(run_spawn, 0, 20);
    wait_count(&running, 1);
    on_carrier(run_nothing, 0, 0); /* a turn later all have been handed over */
    for (unsigned k = 0; k < 20; k++) {
        sem_post(&gate);
    }
    pool_fini(&pool);
    assert_int_equal(atomic_load(&executed), 20);
    wait_count(&returned, 20);
    carrier_stop(&carrier);
    carrier_join(&carrier);
    sem_destroy(&gate);
}

#if !KIT_SANITIZED /* whose own pthread_create must not be replaced */

static atomic_bool refuses;
static atomic_uint starts;

/* The real one, but for a machine that has no thread left: the first one asks for a while. */
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                   void *argument)
{
    static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
    if (!atomic_load(&refuses)) {
        return real(thread, attributes, run, argument);
    }
    if (atomic_fetch_add(&starts, 1) == 0) {
        wait_at(&gate);
    }
    return EAGAIN;
}

/*
 * Two carriers hand over a job each, and each has a thread started for it: of the
 * second's failure the first's was to make up, which then failed as well.
 */
static void test_no_job_is_left_waiting_when_every_thread_fails_to_start(void **state)
{
    (void)state;
    struct carrier_setup setup = {.number = 1, .stack_bytes = 65536};
    static struct carrier second;
    start(2);
    assert_int_equal(carrier_start(&second, &setup), 0);
    atomic_store(&starts, 0);
    atomic_store(&refuses, true);
    on_carrier(run_spawn, 0, 1);
    wait_count(&starts, 1);
    sem_t done;
    struct spawn spawn = {.message = {.run = run_spawn}, .from = 1, .until = 2, .done = &done};
    sem_init(&done, 0, 0);
    carrier_post(&second, &spawn.message);
    wait_at(&done);
    sem_destroy(&done);
    wait_count(&starts, 2);
    struct timespec a_moment = {.tv_nsec = 20000000};
    nanosleep(&a_moment, NULL); /* the second has seen its failure by then */
    sem_post(&gate);
    wait_count(&returned, 2);
    assert_int_equal(jobs[0].result, -EAGAIN);
    assert_int_equal(jobs[1].result, -EAGAIN);
    atomic_store(&refuses, false);
    on_carrier(run_spawn, 2, 3); /* the next one tries again */
    wait_count(&returned, 3);
    assert_int_equal(jobs[2].result, 0);
    carrier_stop(&second);
    carrier_join(&second);
    stop();
    carrier_free(&second);
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_jobs_start_in_order_and_in_bounds),
        cmocka_unit_test(test_threads_start_when_jobs_wait_and_stay),
        cmocka_unit_test(test_a_job_that_is_left_behind_releases_what_it_was_given),
        cmocka_unit_test(test_a_cancelled_caller_waited_for_a_thread_that_was_busy_for_a_day),
        cmocka_unit_test(test_a_cancelled_caller_waits_for_the_end_of_its_job),
        cmocka_unit_test(test_a_cancel_ends_a_jobs_wait_and_keeps_others_from_being_begun),
        cmocka_unit_test(test_the_end_waits_for_queued_jobs),
#if !KIT_SANITIZED
        cmocka_unit_test(test_no_job_is_left_waiting_when_every_thread_fails_to_start),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
