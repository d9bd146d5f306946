/* SPDX-License-Identifier: Apache-2.0 */
/* links: scripted kernel */
/*
 * Property: with a platform pool the same handlers run on its threads, first come
 * first served and never more at a time than there are; answers keep their order; a
 * client's reset ends its handler's wait, or keeps it from being begun, and harms
 * nobody else. Method: sessions on the scripted kernel, real threads that sleep by
 * the virtual clock.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/time.h"
#include "io/pool.h"
#include "kernel_server.h"
#include "ring/carrier.h"

#define CLIENTS 7
#define HOST "Host: a\r\n"

static struct kernel_server server;
static struct pool pool;
static struct kernel_file *clients[CLIENTS];
static unsigned answered;

static void start_world(unsigned round, unsigned threads)
{
    kernel_start(round);
    drive_start(1);
    server_start_on(&server, 1, 100);
    assert_int_equal(pool_init(&pool, "http-exec-", threads), 0);
    server.service.setup.pool = &pool;
}

static bool pool_rests(void *unused)
{
    (void)unused;
    return !pool_is_busy(&pool) && atomic_load(&drive_carriers()[0].inbox) == NULL;
}

static void stop_world(void)
{
    drive_until(pool_rests, NULL);
    server_stop(&server);
    pool_fini(&pool);
}

static bool blocked_are(void *count)
{
    return kernel_blocked_threads() == *(unsigned *)count;
}

static void wait_blocked(unsigned count)
{
    drive_until(blocked_are, &count);
}

/* hear - count the answers, and see that they come in the order of the clients. */
static void hear(void)
{
    struct answer answer;
    for (unsigned i = 0; i < CLIENTS; i++) {
        const char *heard = peer_heard(clients[i]);
        if (answer_next(&heard, &answer)) {
            assert_int_equal(answer.status, 200);
            answered++;
        }
    }
}

static bool answered_are(void *count)
{
    hear();
    return answered == *(unsigned *)count;
}

static void test_handlers_wait_for_a_thread_first_come_first_served(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 8; round++) {
        unsigned threads = 1 + round % 3;
        start_world(round, threads);
        answered = 0;
        for (unsigned i = 0; i < CLIENTS; i++) {
            clients[i] = kernel_connect(SERVER_PORT);
            peer_say(clients[i], "GET /slow/1000 HTTP/1.1\r\n" HOST "\r\n");
            drive_run(); /* so that they arrive one after the other */
        }
        uint64_t began_ns = kernel_now_ns();
        for (unsigned done = 0; done < CLIENTS;) {
            unsigned batch = CLIENTS - done < threads ? CLIENTS - done : threads;
            wait_blocked(batch);
            drive_pass(NS_PER_S - NS_PER_MS);
            hear();
            assert_int_equal(answered, done);
            kernel_pass(NS_PER_MS);
            done += batch;
            drive_until(answered_are, &done);
        }
        unsigned batches = (CLIENTS + threads - 1) / threads;
        assert_int_equal(kernel_now_ns() - began_ns, batches * NS_PER_S);
        stop_world();
    }
}

static bool all_answered(void *unused)
{
    const char *heard;
    static char text[8192];
    static size_t length;
    struct answer answer;
    unsigned count = 0;
    (void)unused;
    if (answered == UINT32_MAX) {
        length = 0;
        answered = 0;
    }
    if (kernel_blocked_threads() > 0) {
        kernel_pass(NS_PER_MS);
    }
    length += strlen(strcpy(text + length, peer_heard(clients[0])));
    heard = text;
    while (answer_next(&heard, &answer)) {
        char expected[8];
        snprintf(expected, sizeof(expected), "%u", count++);
        assert_string_equal(answer.body, expected);
    }
    return count == 20;
}

static void test_pipelined_answers_keep_their_order(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 8; round++) {
        char request[64];
        start_world(round, 4);
        clients[0] = kernel_connect(SERVER_PORT);
        for (unsigned i = 0; i < 20; i++) {
            snprintf(request, sizeof(request), "GET /%s/%u HTTP/1.1\r\n" HOST "\r\n",
                     i % 3 == 0 ? "slow" : "quick", i);
            peer_say(clients[0], request);
        }
        answered = UINT32_MAX;
        drive_until(all_answered, NULL);
        stop_world();
    }
}

static bool live_are(void *count)
{
    return live_connections(&server) == *(unsigned *)count;
}

static void test_a_reset_ends_the_handlers_wait_and_nobody_elses(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 8; round++) {
        unsigned left = 1;
        start_world(round, 2);
        for (unsigned i = 0; i < 2; i++) {
            clients[i] = kernel_connect(SERVER_PORT);
            peer_say(clients[i], "GET /slow/1000 HTTP/1.1\r\n" HOST "\r\n");
        }
        wait_blocked(2);
        if (round % 2 == 0) {
            server_drain_begin(&server);
            drive_run();
        }
        uint64_t reset_ns = kernel_now_ns();
        peer_reset(clients[0]);
        drive_until(live_are, &left);
        assert_int_equal(server.cancelled, 1);
        assert_int_equal(kernel_now_ns(), reset_ns);
        wait_blocked(1);
        kernel_pass(NS_PER_S);
        drive_until(pool_rests, NULL);
        struct answer answer;
        const char *heard = peer_heard(clients[1]);
        assert_true(answer_next(&heard, &answer));
        assert_int_equal(answer.status, 200);
        assert_int_equal(server.cancelled, 1);
        stop_world();
    }
}

static void test_a_reset_takes_a_handler_that_waits_for_a_thread_off_the_queue(void **state)
{
    (void)state;
    unsigned left = 1;
    start_world(0, 1);
    clients[0] = kernel_connect(SERVER_PORT);
    peer_say(clients[0], "GET /slow/1000 HTTP/1.1\r\n" HOST "\r\n");
    wait_blocked(1);
    clients[1] = kernel_connect(SERVER_PORT);
    peer_say(clients[1], "GET /slow/1000 HTTP/1.1\r\n" HOST "\r\n");
    drive_run();
    peer_reset(clients[1]);
    drive_run();
    kernel_pass(NS_PER_S);
    drive_until(live_are, &left);
    drive_until(pool_rests, NULL);
    assert_int_equal(server.handled, 1); /* the other was never begun */
    stop_world();
}

/* With one thread only, all the waits pass side by side, and quick requests meanwhile. */
static void test_a_handler_that_answers_later_holds_no_thread(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 8; round++) {
        unsigned all = CLIENTS - 1;
        start_world(round, 1);
        answered = 0;
        for (unsigned i = 0; i < CLIENTS - 1; i++) {
            clients[i] = kernel_connect(SERVER_PORT);
            peer_say(clients[i], "GET /late/1000 HTTP/1.1\r\n" HOST "\r\n");
        }
        clients[CLIENTS - 1] = kernel_connect(SERVER_PORT);
        drive_until(pool_rests, NULL);
        uint64_t began_ns = kernel_now_ns();
        if (round % 2 == 0) { /* one that goes ends its own wait alone */
            unsigned left = CLIENTS - 1;
            peer_reset(clients[0]);
            drive_until(live_are, &left);
            assert_int_equal(server.cancelled, 1);
            all--;
        }
        peer_say(clients[CLIENTS - 1], "GET /quick/1 HTTP/1.1\r\n" HOST "\r\n");
        unsigned one = 1;
        drive_until(answered_are, &one);
        assert_int_equal(kernel_now_ns(), began_ns);
        answered = 0;
        drive_pass(NS_PER_S - NS_PER_MS);
        hear();
        assert_int_equal(answered, 0);
        drive_pass(2 * NS_PER_MS); /* a fiber's sleep ends on the timer's next tick */
        drive_until(answered_are, &all);
        stop_world();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_handlers_wait_for_a_thread_first_come_first_served),
        cmocka_unit_test(test_pipelined_answers_keep_their_order),
        cmocka_unit_test(test_a_reset_ends_the_handlers_wait_and_nobody_elses),
        cmocka_unit_test(test_a_handler_that_answers_later_holds_no_thread),
        cmocka_unit_test(test_a_reset_takes_a_handler_that_waits_for_a_thread_off_the_queue),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
