/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property: a scope ends after its children, whatever ends it; the first error (or
 * success) cancels the siblings, in their scopes too, and so do the deadline and the
 * cancel of the owner; misuse ends the process with a message. Method: each test runs
 * on a fiber of a real carrier and again on a platform thread.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "base/log.h"
#include "base/must.h"
#include "base/time.h"
#include "fiber/mutex.h"
#include "fiber/scope.h"
#include "fiber/semaphore.h"
#include "fiber_kit.h"
#include "io/pool.h"
#include "io/sleep.h"
#include "ring/carrier.h"
#include "ring/sys.h"

#define CHILDREN 8
#define MINUTE_NS (60 * NS_PER_S)
#define SOON_NS (10 * NS_PER_S) /* not a minute, on a machine that has other things to do */

static struct carrier carrier;
static struct pool pool;
static bool with_pool; /* its threads post to the carrier, so they end before it is freed */
static bool on_thread; /* the test in work runs on a platform thread */

/* What a child does: sleep, then give its result. */
struct job {
    struct scope_child child;
    uint64_t sleep_ns;
    int result;
    bool began, slept;
    const struct sched *sched; /* where it ran */
};

static struct job jobs[CHILDREN];

static int run_job(void *argument)
{
    struct job *job = argument;
    job->began = true;
    job->sched = sched_current();
    int result = sleep_for(job->sleep_ns);
    if (result < 0) {
        return result;
    }
    job->slept = true;
    return job->result;
}

static void fork_job(struct scope *scope, unsigned index, uint64_t sleep_ns, int result)
{
    jobs[index] = (struct job){.sleep_ns = sleep_ns, .result = result};
    int forked = scope_fork(scope, &jobs[index].child, run_job, &jobs[index]);
    must(forked == 0 || (forked == -ECANCELED && scope->cancelled)); /* a sibling failed already */
}

/* ------------------------------------------------------------ where a test runs */

struct runner {
    struct message message;
    void (*body)(void);
    sem_t done;
};

static void run_body(void *argument)
{
    struct runner *runner = argument;
    runner->body();
    sem_post(&runner->done);
}

static void run_spawn(struct message *message)
{
    struct runner *runner = container_of(message, struct runner, message);
    must(fiber_spawn(&carrier.sched, (struct fiber_name){.prefix = "owner"}, run_body, runner) !=
         NULL);
}

static void *run_thread(void *argument)
{
    sys_wake_signal_block();
    log_set_thread("owner");
    run_body(argument);
    return NULL;
}

static void on_fiber(void (*body)(void))
{
    struct carrier_setup setup = {.stack_bytes = 65536};
    struct runner runner = {.message = {.run = run_spawn}, .body = body};
    sem_init(&runner.done, 0, 0);
    on_thread = false;
    must(carrier_start(&carrier, &setup) == 0);
    carrier_post(&carrier, &runner.message);
    carrier_stop(&carrier);
    carrier_join(&carrier); /* no fiber is left: else this hangs */
    if (with_pool) {
        pool_fini(&pool);
    }
    carrier_free(&carrier);
    must(sem_trywait(&runner.done) == 0);
    sem_destroy(&runner.done);
}

static void on_platform_thread(void (*body)(void))
{
    pthread_t thread;
    struct runner runner = {.body = body};
    sem_init(&runner.done, 0, 0);
    on_thread = true;
    must(pthread_create(&thread, NULL, run_thread, &runner) == 0);
    pthread_join(thread, NULL);
    must(sem_trywait(&runner.done) == 0);
    sem_destroy(&runner.done);
}

static void on_both(void (*body)(void))
{
    struct log_setup quiet = {.level = LOG_OFF};
    log_init(&quiet);
    memset(jobs, 0, sizeof(jobs));
    on_fiber(body);
    memset(jobs, 0, sizeof(jobs));
    on_platform_thread(body);
}

static void must_take(uint64_t began_ns, uint64_t at_least_ns, uint64_t at_most_ns)
{
    uint64_t took_ns = kit_clock_ns() - began_ns;
    must(took_ns >= at_least_ns && took_ns <= at_most_ns);
}

/* ------------------------------------------------------------ join */

static void join_all(void)
{
    struct scope scope;
    uint64_t began_ns = kit_clock_ns();
    scope_open(&scope, "job-", SCOPE_FAIL_FAST);
    for (unsigned i = 0; i < CHILDREN; i++) {
        fork_job(&scope, i, (i + 1) * 10 * NS_PER_MS, 0);
    }
    must(scope_join(&scope) == 0);
    must_take(began_ns, CHILDREN * 10 * NS_PER_MS, SOON_NS); /* side by side */
    for (unsigned i = 0; i < CHILDREN; i++) {
        must(jobs[i].slept && jobs[i].child.result == 0);
        must(on_thread ? jobs[i].sched == NULL : jobs[i].sched == &carrier.sched);
    }
    must(scope_join(&scope) == 0); /* nothing to wait for */
    fork_job(&scope, 0, 0, 0);
    must(scope_join(&scope) == 0);
    scope_close(&scope);
}

static void test_a_join_waits_for_all_that_run_side_by_side(void **state)
{
    (void)state;
    on_both(join_all);
}

static void first_error(void)
{
    struct scope scope;
    uint64_t began_ns = kit_clock_ns();
    scope_open(&scope, "job-", SCOPE_FAIL_FAST);
    fork_job(&scope, 0, MINUTE_NS, 0);
    fork_job(&scope, 1, 500 * NS_PER_MS, -EPROTO); /* by then the last has had its turn, if late */
    fork_job(&scope, 2, MINUTE_NS, 0);
    fork_job(&scope, 3, 0, 0);
    must(scope_join(&scope) == -EPROTO);
    must_take(began_ns, 500 * NS_PER_MS, SOON_NS);
    must(jobs[0].child.result == -ECANCELED && jobs[2].child.result == -ECANCELED);
    must(jobs[3].child.result == 0);
    struct scope_child late;
    must(scope_fork(&scope, &late, run_job, &jobs[0]) == -ECANCELED);
    scope_close(&scope);
}

static void test_the_first_error_cancels_the_siblings(void **state)
{
    (void)state;
    on_both(first_error);
}

static void first_success(void)
{
    struct scope scope;
    uint64_t began_ns = kit_clock_ns();
    scope_open(&scope, "job-", SCOPE_FIRST_SUCCESS);
    fork_job(&scope, 0, MINUTE_NS, 0);
    fork_job(&scope, 1, 0, -EPROTO);
    fork_job(&scope, 2, 20 * NS_PER_MS, 0);
    must(scope_join(&scope) == 0);
    must_take(began_ns, 20 * NS_PER_MS, SOON_NS);
    must(jobs[0].child.result == -ECANCELED && jobs[2].child.result == 0);
    scope_close(&scope);
    scope_open(&scope, "job-", SCOPE_FIRST_SUCCESS);
    fork_job(&scope, 0, NS_PER_MS, -EPROTO);
    fork_job(&scope, 1, 30 * NS_PER_MS, -EIO);
    must(scope_join(&scope) == -EPROTO);
    scope_close(&scope);
    scope_open(&scope, "job-", SCOPE_FIRST_SUCCESS);
    must(scope_join(&scope) == -ECHILD);
    scope_close(&scope);
}

static void test_the_first_success_cancels_the_siblings(void **state)
{
    (void)state;
    on_both(first_success);
}

static void each_for_itself(void)
{
    struct scope scope;
    scope_open(&scope, "job-", SCOPE_EACH);
    for (unsigned i = 0; i < CHILDREN; i++) {
        fork_job(&scope, i, i * NS_PER_MS, i % 2 == 0 ? 0 : -EIO);
    }
    must(scope_join(&scope) == 0);
    for (unsigned i = 0; i < CHILDREN; i++) {
        must(jobs[i].slept && jobs[i].child.result == (i % 2 == 0 ? 0 : -EIO));
    }
    scope_close(&scope);
}

static void test_each_for_itself_fails_nobody(void **state)
{
    (void)state;
    on_both(each_for_itself);
}

static void join_in_time(void)
{
    struct scope scope;
    uint64_t began_ns = kit_clock_ns();
    scope_open(&scope, "job-", SCOPE_FAIL_FAST);
    fork_job(&scope, 0, MINUTE_NS, 0);
    fork_job(&scope, 1, NS_PER_MS, 0);
    must(scope_join_until(&scope, began_ns + 300 * NS_PER_MS) == -ETIMEDOUT);
    must_take(began_ns, 300 * NS_PER_MS, SOON_NS);
    must(jobs[0].child.ended && jobs[0].child.result == -ECANCELED);
    must(jobs[1].child.result == 0);
    scope_close(&scope);
}

static void test_at_the_deadline_the_children_are_cancelled_and_waited_for(void **state)
{
    (void)state;
    on_both(join_in_time);
}

static void close_at_once(void)
{
    struct scope scope;
    uint64_t began_ns = kit_clock_ns();
    scope_open(&scope, "job-", SCOPE_FAIL_FAST);
    for (unsigned i = 0; i < CHILDREN; i++) {
        fork_job(&scope, i, MINUTE_NS, 0);
    }
    scope_close(&scope);
    must_take(began_ns, 0, SOON_NS);
    for (unsigned i = 0; i < CHILDREN; i++) {
        must(jobs[i].child.ended && jobs[i].child.result == -ECANCELED);
        must(on_thread || !jobs[i].began); /* a fiber had not come to run */
    }
}

static void test_a_scope_that_is_closed_early_takes_its_children_along(void **state)
{
    (void)state;
    on_both(close_at_once);
}

/* ------------------------------------------------------------ nested */

struct nest {
    struct scope_child child;
    struct job job;
    int joined;
};

static int run_nest(void *argument)
{
    struct nest *nest = argument;
    struct scope scope;
    scope_open(&scope, "inner-", SCOPE_FAIL_FAST);
    nest->job = (struct job){.sleep_ns = MINUTE_NS};
    must(scope_fork(&scope, &nest->job.child, run_job, &nest->job) == 0);
    nest->joined = scope_join(&scope);
    scope_close(&scope);
    return nest->joined;
}

static void cancel_a_nest(void)
{
    struct scope scope;
    static struct nest nests[3];
    uint64_t began_ns = kit_clock_ns();
    scope_open(&scope, "outer-", SCOPE_FAIL_FAST);
    for (int i = 0; i < 3; i++) {
        must(scope_fork(&scope, &nests[i].child, run_nest, &nests[i]) == 0);
    }
    fork_job(&scope, 0, 50 * NS_PER_MS, -EIO);
    must(scope_join(&scope) == -EIO);
    must_take(began_ns, 50 * NS_PER_MS, SOON_NS);
    for (int i = 0; i < 3; i++) {
        must(nests[i].joined == -ECANCELED);
        must(nests[i].job.child.ended && nests[i].job.child.result == -ECANCELED);
    }
    scope_close(&scope);
}

static void test_a_cancel_goes_down_into_the_childrens_own_scopes(void **state)
{
    (void)state;
    on_both(cancel_a_nest);
}

/* ------------------------------------------------------------ what a cancel reaches */

static struct mutex mutex;
static struct semaphore semaphore;
static atomic_uint lock_results;

static int run_lock(void *unused)
{
    (void)unused;
    int result = mutex_lock(&mutex);
    atomic_fetch_add(&lock_results, result == -ECANCELED);
    if (result == 0) {
        mutex_unlock(&mutex);
    }
    return result;
}

static int run_take(void *unused)
{
    (void)unused;
    int result = semaphore_take(&semaphore, 0);
    atomic_fetch_add(&lock_results, result == -ECANCELED);
    return result;
}

static void cancel_locks(void)
{
    struct scope scope;
    static struct scope_child children[4];
    atomic_store(&lock_results, 0);
    mutex_init(&mutex, "held by the owner");
    semaphore_init(&semaphore, "none", 0);
    must(mutex_lock(&mutex) == 0);
    scope_open(&scope, "lock-", SCOPE_FAIL_FAST);
    must(scope_fork(&scope, &children[0], run_lock, NULL) == 0);
    must(scope_fork(&scope, &children[1], run_lock, NULL) == 0);
    must(scope_fork(&scope, &children[2], run_take, NULL) == 0);
    fork_job(&scope, 0, 30 * NS_PER_MS, -EIO);
    uint64_t began_ns = kit_clock_ns();
    must(scope_join(&scope) == -EIO);
    must_take(began_ns, 0, SOON_NS);
    must(atomic_load(&lock_results) == 3);
    scope_close(&scope);
    mutex_unlock(&mutex);
    mutex_fini(&mutex);
    semaphore_fini(&semaphore);
}

static void test_a_cancel_ends_the_wait_for_locks_and_permits(void **state)
{
    (void)state;
    on_both(cancel_locks);
}

static void race_cancels(void)
{
    for (unsigned i = 0; i < (KIT_SANITIZED ? 50u : 300u); i++) {
        struct scope scope;
        scope_open(&scope, "race-", SCOPE_FAIL_FAST);
        for (unsigned k = 0; k < 4; k++) {
            fork_job(&scope, k, (k + i % 3) * 50 * NS_PER_US, k == i % 4 ? -EIO : 0);
        }
        int result = scope_join_until(&scope, kit_clock_ns() + i % 7 * 60 * NS_PER_US);
        must(result == -EIO || result == -ETIMEDOUT);
        scope_close(&scope);
    }
}

static void test_errors_ends_and_deadlines_in_the_same_moment(void **state)
{
    (void)state;
    on_both(race_cancels);
}

/* run_unhurried - a child that a cancel does not end. */
static int run_unhurried(void *argument)
{
    (void)argument;
    uint64_t until_ns = kit_clock_ns() + 60 * NS_PER_MS;
    while (kit_clock_ns() < until_ns) {
        if (fiber_current() != NULL) {
            (void)fiber_park_through("nothing", until_ns);
        } else {
            struct timespec a_while = {.tv_nsec = (long)(10 * NS_PER_MS)};
            (void)nanosleep(&a_while, NULL);
        }
    }
    return -EPROTO;
}

static void decide_before_the_deadline(void)
{
    for (unsigned fails = 0; fails < 2; fails++) {
        struct scope scope;
        struct scope_child unhurried;
        scope_open(&scope, "late-", fails ? SCOPE_FAIL_FAST : SCOPE_FIRST_SUCCESS);
        must(scope_fork(&scope, &unhurried, run_unhurried, NULL) == 0);
        fork_job(&scope, 0, NS_PER_MS, fails ? -EIO : 0);
        must(scope_join_until(&scope, kit_clock_ns() + 30 * NS_PER_MS) == (fails ? -EIO : 0));
        scope_close(&scope);
    }
}

static void
test_a_deadline_hid_what_was_decided_before_it_while_siblings_were_slow_to_end(void **state)
{
    (void)state;
    on_both(decide_before_the_deadline);
}

/* ------------------------------------------------------------ the owner is cancelled */

static struct fiber *waiting;
static int joined, handed;

static void join_long(void *unused)
{
    (void)unused;
    struct scope scope;
    scope_open(&scope, "job-", SCOPE_FAIL_FAST);
    fork_job(&scope, 0, MINUTE_NS, 0);
    fork_job(&scope, 1, MINUTE_NS, 0);
    joined = scope_join(&scope);
    scope_close(&scope);
}

static void hand_over(void *unused)
{
    (void)unused;
    waiting = fiber_current();
    handed = pool_run(&pool, join_long, NULL);
}

static void wait_here(void *unused)
{
    waiting = fiber_current();
    join_long(unused);
}

static void cancel_later(void *entry)
{
    must(fiber_spawn(&carrier.sched, (struct fiber_name){.prefix = "owner"},
                     entry == NULL ? wait_here : hand_over, NULL) != NULL);
    must(sleep_for(50 * NS_PER_MS) == 0);
    fiber_cancel(waiting);
}

static void cancel_the_owner(void)
{
    cancel_later(NULL);
}

static void cancel_the_job(void)
{
    cancel_later(&pool);
}

static void test_who_cancels_the_owner_cancels_the_children(void **state)
{
    (void)state;
    struct log_setup quiet = {.level = LOG_OFF};
    log_init(&quiet);
    uint64_t began_ns = kit_clock_ns();
    on_fiber(cancel_the_owner);
    assert_int_equal(joined, -ECANCELED);
    assert_int_equal(jobs[1].child.result, -ECANCELED);
    joined = 0;
    memset(jobs, 0, sizeof(jobs));
    /* a job of a pool, whose client goes: its thread and the threads forked there */
    assert_int_equal(pool_init(&pool, "scope-exec-", 1), 0);
    with_pool = true;
    on_fiber(cancel_the_job);
    with_pool = false;
    assert_int_equal(joined, -ECANCELED);
    assert_int_equal(handed, -ECANCELED);
    assert_int_equal(jobs[0].child.result, -ECANCELED);
    assert_in_range(kit_clock_ns() - began_ns, 0, 20 * NS_PER_S); /* none slept its minute */
}

/* ------------------------------------------------------------ misuse */

static struct scope shared;

static void fork_after_close(void)
{
    scope_open(&shared, "job-", SCOPE_EACH);
    scope_close(&shared);
    fork_job(&shared, 0, 0, 0);
}

static int join_foreign(void *unused)
{
    (void)unused;
    return scope_join(&shared);
}

static void join_from_a_child(void)
{
    static struct scope_child child;
    scope_open(&shared, "job-", SCOPE_EACH);
    must(scope_fork(&shared, &child, join_foreign, NULL) == 0);
    must(scope_join(&shared) == 0);
}

static void leave_open(void)
{
    scope_open(&shared, "job-", SCOPE_EACH);
}

static void close_the_outer_first(void)
{
    static struct scope inner;
    scope_open(&shared, "outer-", SCOPE_EACH);
    scope_open(&inner, "inner-", SCOPE_EACH);
    scope_close(&shared);
}

static void misuse_on_fiber(void *body)
{
    on_fiber(*(void (**)(void))body);
}

static void misuse_on_thread(void *body)
{
    on_platform_thread(*(void (**)(void))body);
}

static void test_misuse_ends_the_process_with_a_message(void **state)
{
    (void)state;
    static struct {
        void (*body)(void);
        const char *says;
        bool fibers_only;
    } cases[] = {
        {fork_after_close, "a scope is used after it was closed", false},
        {join_from_a_child, "a scope is used by one that did not open it", false},
        {close_the_outer_first, "scopes close in the reverse order of their opening", false},
        {leave_open, "ended before it closed its scope", true},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[4096];
        int status = kit_child(misuse_on_fiber, &cases[i].body, text, sizeof(text));
        if (!WIFSIGNALED(status) || strstr(text, cases[i].says) == NULL) {
            fail_msg("case %zu on a fiber: status %d, said: %s", i, status, text);
        }
        if (cases[i].fibers_only) {
            continue;
        }
        status = kit_child(misuse_on_thread, &cases[i].body, text, sizeof(text));
        if (!WIFSIGNALED(status) || strstr(text, cases[i].says) == NULL) {
            fail_msg("case %zu on a thread: status %d, said: %s", i, status, text);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            test_misuse_ends_the_process_with_a_message), /* before there are threads */
        cmocka_unit_test(test_a_join_waits_for_all_that_run_side_by_side),
        cmocka_unit_test(test_the_first_error_cancels_the_siblings),
        cmocka_unit_test(test_the_first_success_cancels_the_siblings),
        cmocka_unit_test(test_each_for_itself_fails_nobody),
        cmocka_unit_test(test_at_the_deadline_the_children_are_cancelled_and_waited_for),
        cmocka_unit_test(test_a_scope_that_is_closed_early_takes_its_children_along),
        cmocka_unit_test(test_a_cancel_goes_down_into_the_childrens_own_scopes),
        cmocka_unit_test(test_a_cancel_ends_the_wait_for_locks_and_permits),
        cmocka_unit_test(test_errors_ends_and_deadlines_in_the_same_moment),
        cmocka_unit_test(
            test_a_deadline_hid_what_was_decided_before_it_while_siblings_were_slow_to_end),
        cmocka_unit_test(test_who_cancels_the_owner_cancels_the_children),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
