/* SPDX-License-Identifier: Apache-2.0 */
/* links: scripted kernel */
/*
 * Property: on a platform thread the same calls of conn.h block that thread and
 * behave alike: connect, write, peek, deadlines, the end of the stream, resets. Method:
 * a real thread on the scripted kernel; the test is its peer and lets time pass.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/time.h"
#include "fiber_kit.h"
#include "io/conn.h"
#include "kernel.h"

#define PORT 7000

enum step { CONNECT, WRITE, PEEK, TAKE, CLOSE, ABORT, END };

/* What the thread is told to do next, and what came of it. */
static struct {
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    enum step step;
    bool asked;
    /* in */
    struct slice bytes;
    uint64_t deadline_ns;
    /* out */
    ssize_t result;
    char text[64];
} worker = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static struct conn conn;

static ssize_t do_step(enum step step)
{
    struct sys_address address;
    struct slice seen;
    ssize_t got;
    switch (step) {
    case CONNECT:
        sys_parse_address("127.0.0.1", PORT, &address);
        return conn_connect(&conn, &address, worker.deadline_ns);
    case WRITE:
        return conn_write(&conn, worker.bytes, worker.deadline_ns);
    case PEEK:
    case TAKE:
        got = conn_peek(&conn, &seen, worker.deadline_ns);
        if (got > 0) {
            size_t length =
                seen.length < sizeof(worker.text) ? seen.length : sizeof(worker.text) - 1;
            memcpy(worker.text, seen.at, length);
            worker.text[length] = '\0';
            conn_consume(&conn, step == TAKE ? seen.length : 0);
        }
        return got;
    case CLOSE:
        conn_close(&conn);
        return 0;
    case ABORT:
        conn_abort(&conn);
        return 0;
    default:
        return 0;
    }
}

static void *worker_run(void *unused)
{
    enum step step;
    (void)unused;
    do {
        pthread_mutex_lock(&worker.mutex);
        while (!worker.asked) {
            pthread_cond_wait(&worker.changed, &worker.mutex);
        }
        step = worker.step;
        pthread_mutex_unlock(&worker.mutex);
        ssize_t result = do_step(step);
        pthread_mutex_lock(&worker.mutex);
        worker.result = result;
        worker.asked = false;
        pthread_cond_broadcast(&worker.changed);
        pthread_mutex_unlock(&worker.mutex);
    } while (step != END);
    return NULL;
}

static void begin(enum step step, uint64_t timeout_ns)
{
    pthread_mutex_lock(&worker.mutex);
    worker.step = step;
    worker.deadline_ns = timeout_ns == 0 ? 0 : kernel_now_ns() + timeout_ns;
    worker.asked = true;
    pthread_cond_broadcast(&worker.changed);
    pthread_mutex_unlock(&worker.mutex);
}

/* finish - wait for its end: the result. */
static ssize_t finish(void)
{
    pthread_mutex_lock(&worker.mutex);
    while (worker.asked) {
        pthread_cond_wait(&worker.changed, &worker.mutex);
    }
    ssize_t result = worker.result;
    pthread_mutex_unlock(&worker.mutex);
    return result;
}

static ssize_t perform(enum step step)
{
    begin(step, 0);
    return finish();
}

/* wait_blocked - until the thread waits in the kernel. */
static void wait_blocked(void)
{
    uint64_t give_up_ns = kit_clock_ns() + 10 * NS_PER_S;
    struct timespec a_moment = {.tv_nsec = 50000};
    while (kernel_blocked_threads() == 0) {
        if (kit_clock_ns() > give_up_ns) {
            fail_msg("the thread does not block");
        }
        nanosleep(&a_moment, NULL);
    }
}

static void start_world(void)
{
    kernel_start(0);
    worker.asked = false;
    assert_int_equal(pthread_create(&worker.thread, NULL, worker_run, NULL), 0);
}

static struct kernel_file *connected(void)
{
    kernel_serve(PORT);
    assert_int_equal(perform(CONNECT), 0);
    struct kernel_file *peer = kernel_accept(PORT);
    assert_non_null(peer);
    return peer;
}

static void stop_world(void)
{
    perform(END);
    pthread_join(worker.thread, NULL);
    kernel_stop();
}

static void test_connect(void **state)
{
    (void)state;
    start_world();
    assert_int_equal(perform(CONNECT), -ECONNREFUSED);
    assert_int_equal(kernel_open_descriptors(), 0);
    kernel_hang(PORT);
    begin(CONNECT, NS_PER_S);
    wait_blocked();
    kernel_pass(NS_PER_S);
    assert_int_equal(finish(), -ETIMEDOUT);
    assert_int_equal(kernel_open_descriptors(), 0);
    begin(CONNECT, NS_PER_S);
    wait_blocked();
    kernel_answer(PORT);
    assert_int_equal(finish(), 0);
    assert_int_equal(perform(CLOSE), 0);
    kernel_hang(PORT);
    begin(CONNECT, NS_PER_S);
    wait_blocked();
    kernel_refuse(PORT);
    assert_int_equal(finish(), -ECONNREFUSED);
    kernel_fail(KERNEL_SYS_SOCKET, 1, 1, -EMFILE);
    assert_int_equal(perform(CONNECT), -EMFILE);
    stop_world();
}

static void test_peek(void **state)
{
    (void)state;
    start_world();
    struct kernel_file *peer = connected();
    begin(PEEK, NS_PER_S);
    wait_blocked();
    kernel_pass(NS_PER_S);
    assert_int_equal(finish(), -ETIMEDOUT);
    begin(PEEK, 0);
    wait_blocked();
    peer_say(peer, "some");
    assert_int_equal(finish(), 4);
    assert_string_equal(worker.text, "some");
    assert_int_equal(perform(TAKE), 4); /* it was only looked at */
    assert_false(conn_is_dead(&conn));
    peer_say(peer, "unasked");
    assert_true(conn_is_dead(&conn)); /* nothing armed tells: it is asked */
    assert_int_equal(perform(TAKE), 7);
    peer_finish(peer);
    assert_int_equal(perform(PEEK), 0);
    assert_int_equal(perform(PEEK), 0);
    perform(CLOSE);
    assert_true(peer_got_fin(peer));
    peer = connected();
    peer_reset(peer);
    assert_int_equal(perform(PEEK), -ECONNRESET);
    perform(CLOSE);
    stop_world();
}

static void test_write(void **state)
{
    (void)state;
    static char text[10000], heard[10000];
    start_world();
    struct kernel_file *peer = connected();
    for (size_t i = 0; i < sizeof(text); i++) {
        text[i] = (char)kernel_random(256);
    }
    peer_window(peer, 3000);
    worker.bytes = (struct slice){.at = text, .length = sizeof(text)};
    kernel_short(KERNEL_SYS_SEND, 1, 10);
    begin(WRITE, 0);
    for (size_t length = 0; length < sizeof(text);) {
        ssize_t got = peer_receive(peer, heard + length, 1 + kernel_random(3000));
        assert_true(got > 0 || got == -EAGAIN);
        length += got > 0 ? (size_t)got : 0;
    }
    assert_int_equal(finish(), 0);
    assert_memory_equal(heard, text, sizeof(text));

    begin(WRITE, NS_PER_S); /* nobody reads */
    wait_blocked();
    kernel_pass(NS_PER_S);
    assert_int_equal(finish(), -ETIMEDOUT);
    peer_reset(peer);
    ssize_t result = perform(WRITE);
    assert_true(result == -ECONNRESET || result == -EPIPE);
    perform(CLOSE);
    stop_world();
}

static void test_abort(void **state)
{
    (void)state;
    char byte;
    start_world();
    struct kernel_file *peer = connected();
    perform(ABORT);
    assert_int_equal(peer_receive(peer, &byte, 1), -ECONNRESET);
    stop_world();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_connect),
        cmocka_unit_test(test_peek),
        cmocka_unit_test(test_write),
        cmocka_unit_test(test_abort),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
