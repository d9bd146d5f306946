/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property: when nothing can ever wake any more the process says so, dumps its fibers
 * and ends; while a timer, a job or a message can still wake somebody it does not, also
 * when carriers and threads fall asleep and wake one another all the time. Method:
 * children with real carriers, pools and locks that are left to hang, or not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/log.h"
#include "base/must.h"
#include "base/time.h"
#include "fiber/semaphore.h"
#include "fiber_kit.h"
#include "io/pool.h"
#include "io/sleep.h"
#include "ring/carrier.h"
#include "ring/stuck.h"
#include "ring/sys.h"

#define PINGS (KIT_SANITIZED ? 1000u : 5000u)

static struct carrier carriers[2];
static struct semaphore to[2];
static struct pool pool;

struct starter {
    struct message message;
    void (*entry)(void *argument);
    void *argument;
};

static void run_spawn(struct message *message)
{
    struct starter *starter = container_of(message, struct starter, message);
    must(fiber_spawn(&carrier_current()->sched, (struct fiber_name){.prefix = "stuck-fiber"},
                     starter->entry, starter->argument) != NULL);
}

/* run_both - a fiber on each carrier, to their ends. */
static void run_both(void (*first)(void *), void (*second)(void *))
{
    struct log_setup quiet = {.level = LOG_OFF};
    struct starter starters[2] = {{.entry = first, .argument = &to[0]},
                                  {.entry = second, .argument = &to[1]}};
    log_init(&quiet);
    stuck_watch();
    must(pool_init(&pool, "stuck-exec-", 2) == 0);
    for (unsigned i = 0; i < 2; i++) {
        struct carrier_setup setup = {.number = i, .stack_bytes = 65536};
        semaphore_init(&to[i], i == 0 ? "to the first" : "to the second", 0);
        must(carrier_start(&carriers[i], &setup) == 0);
    }
    for (unsigned i = 0; i < 2; i++) {
        starters[i].message.run = run_spawn;
        carrier_post(&carriers[i], &starters[i].message);
        carrier_stop(&carriers[i]);
    }
    for (unsigned i = 0; i < 2; i++) {
        carrier_join(&carriers[i]);
    }
    pool_fini(&pool);
    for (unsigned i = 0; i < 2; i++) {
        carrier_free(&carriers[i]);
    }
}

static struct semaphore *other(const struct semaphore *mine)
{
    return &to[mine == &to[0] ? 1 : 0];
}

/* ------------------------------------------------------------ stuck */

static void wait_then_give(void *mine)
{
    must(semaphore_take(mine, 0) == 0);
    semaphore_give(other(mine));
}

static void wait_for_one_another(void *unused)
{
    (void)unused;
    run_both(wait_then_give, wait_then_give);
}

static void job_waits(void *mine)
{
    must(semaphore_take(mine, 0) == 0);
}

static void hand_over(void *mine)
{
    must(pool_run(&pool, job_waits, mine) == 0);
}

static void wait_on_threads(void *unused)
{
    (void)unused;
    run_both(hand_over, hand_over);
}

static void sleep_then_wait(void *mine)
{
    must(sleep_for(50 * NS_PER_MS) == 0);
    must(semaphore_take(mine, 0) == 0);
}

static void wait_after_a_while(void *unused)
{
    (void)unused;
    run_both(sleep_then_wait, hand_over);
}

static void test_a_state_in_which_nothing_can_wake_is_told_with_its_dump(void **state)
{
    (void)state;
    static void (*const cases[])(void *) = {wait_for_one_another, wait_on_threads,
                                            wait_after_a_while};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[4096];
        int status = kit_child(cases[i], NULL, text, sizeof(text));
        const char *dumped = strstr(text, "nothing can ever wake");
        if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT || dumped == NULL ||
            strstr(dumped, "stuck-fiber]/parked(") == NULL ||
            strstr(dumped, "@carrier-0") == NULL || strstr(dumped, "@carrier-1") == NULL) {
            fail_msg("case %zu: status %d, said: %s", i, status, text);
        }
    }
}

/* ------------------------------------------------------------ not stuck */

static void sleep_and_give(void *mine)
{
    must(sleep_for(100 * NS_PER_MS) == 0);
    semaphore_give(other(mine));
    must(semaphore_take(mine, 0) == 0);
}

static void wake_late(void *unused)
{
    (void)unused;
    run_both(sleep_and_give, wait_then_give);
}

static void ping(void *mine)
{
    for (unsigned i = 0; i < PINGS; i++) {
        semaphore_give(other(mine));
        must(semaphore_take(mine, 0) == 0);
    }
}

static void ping_carriers(void *unused)
{
    (void)unused;
    run_both(ping, ping);
}

static void ping_on_a_thread(void *mine)
{
    must(pool_run(&pool, ping, mine) == 0);
}

static void ping_a_thread(void *unused)
{
    (void)unused;
    run_both(ping, ping_on_a_thread);
}

static void ping_threads(void *unused)
{
    (void)unused;
    run_both(ping_on_a_thread, ping_on_a_thread);
}

static void hand_over_often(void *mine)
{
    (void)mine;
    for (unsigned i = 0; i < PINGS / 5; i++) {
        semaphore_give(mine);
        must(pool_run(&pool, job_waits, mine) == 0);
    }
}

static void jobs_come_and_go(void *unused)
{
    (void)unused;
    run_both(hand_over_often, hand_over_often);
}

static void test_while_somebody_can_wake_nothing_is_told(void **state)
{
    (void)state;
    static void (*const cases[])(void *) = {wake_late, ping_carriers, ping_a_thread, ping_threads,
                                            jobs_come_and_go};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[4096];
        int status = kit_child(cases[i], NULL, text, sizeof(text));
        if (status != 0) {
            fail_msg("case %zu: status %d, said: %s", i, status, text);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_state_in_which_nothing_can_wake_is_told_with_its_dump),
        cmocka_unit_test(test_while_somebody_can_wake_nothing_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
