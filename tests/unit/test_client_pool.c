/* SPDX-License-Identifier: Apache-2.0 */
/* links: scripted kernel */
/*
 * Property: over several carriers and platform threads together the bound on
 * connections holds, everyone who waits is served, and at the end no connection is
 * left. Method: storms on the scripted kernel; the test is a remote that answers,
 * closes, resets or keeps silent as the seed will have it; callers are cancelled.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "base/time.h"
#include "http/client.h"
#include "io/pool.h"
#include "kernel.h"

#define PORT 8085
#define ROUNDS 24
#define CALLERS 60
#define THREADS 6
#define REMOTES_MAX 512

static struct client_pool pool;
static struct pool offload;

struct caller {
    unsigned carrier;
    int result;
    int status;
    bool cancelled;
    atomic_bool over;
    struct fiber *fiber;
};

static struct caller callers[CALLERS];

/* The remote's side: what it has heard on each connection and not answered yet. */
static struct {
    struct kernel_file *peer;
    bool asked, gone;
} remotes[REMOTES_MAX];
static unsigned remote_count;

static void start_world(unsigned round, unsigned carriers, unsigned bound)
{
    struct log_setup quiet = {.level = LOG_OFF};
    log_init(&quiet);
    kernel_start(round);
    kernel_knobs.recv_cap = kernel_random(2) == 0;
    kernel_knobs.late_percent = (unsigned)kernel_random(60);
    kernel_knobs.buffers = 2 + (unsigned)kernel_random(30);
    drive_start(carriers);
    kernel_serve(PORT);
    struct client_pool_setup setup = {.url = "http://127.0.0.1:8085",
                                      .bound = bound,
                                      .offload = &offload,
                                      .carriers = drive_carriers(),
                                      .carrier_count = carriers};
    assert_int_equal(client_pool_init(&pool, &setup), 0);
    remote_count = 0;
    memset(callers, 0, sizeof(callers));
}

static unsigned open_connections(void)
{
    pthread_mutex_lock(&pool.mutex);
    unsigned open = pool.open;
    pthread_mutex_unlock(&pool.mutex);
    return open;
}

static void stop_world(void)
{
    client_pool_close(&pool);
    drive_pass(NS_PER_S);
    assert_int_equal(open_connections(), 0);
    drive_stop();
    client_pool_fini(&pool);
}

static void call_once(struct caller *caller)
{
    struct arena arena;
    arena_init(&arena, NULL, 0, 1 << 20);
    struct http_call call = {.path = SLICE("/remote/1"),
                             .connect_timeout_ns = 2 * NS_PER_S,
                             .answer_timeout_ns = 5 * NS_PER_S,
                             .body_bytes_max = 1 << 16,
                             .arena = &arena};
    caller->result = client_get(&pool, &call);
    caller->status = caller->result == 0 ? call.reply.status : 0;
    arena_reset(&arena);
}

static void run_call(void *argument)
{
    struct caller *caller = argument;
    call_once(caller);
    atomic_store(&caller->over, true);
}

static void spawn_call(void *argument)
{
    struct caller *caller = argument;
    caller->fiber = fiber_spawn(&drive_carriers()[caller->carrier].sched,
                                (struct fiber_name){.prefix = "caller"}, run_call, caller);
    if (caller->fiber == NULL) {
        abort();
    }
}

static void cancel_call(void *argument)
{
    struct caller *caller = argument;
    if (!atomic_load(&caller->over)) {
        caller->cancelled = true;
        fiber_cancel(caller->fiber);
    }
}

/* remote_act - look who is there, and do something about those who asked. Returns how many live. */
static unsigned remote_act(bool well)
{
    unsigned live = 0;
    for (struct kernel_file *peer; (peer = kernel_accept(PORT)) != NULL;) {
        assert_true(remote_count < REMOTES_MAX);
        remotes[remote_count].peer = peer;
        remotes[remote_count].asked = remotes[remote_count].gone = false;
        remote_count++;
    }
    for (unsigned i = 0; i < remote_count; i++) {
        struct kernel_file *peer = remotes[i].peer;
        if (remotes[i].gone) {
            continue;
        }
        if (peer_got_fin(peer) || peer_got_reset(peer)) {
            peer_close(peer);
            remotes[i].gone = true;
            continue;
        }
        live++;
        remotes[i].asked = remotes[i].asked || strstr(peer_heard(peer), "\r\n\r\n") != NULL;
        if (!remotes[i].asked || (!well && kernel_random(3) == 0)) {
            continue;
        }
        remotes[i].asked = false;
        uint64_t how = well ? 0 : kernel_random(12);
        if (how < 8) {
            peer_say(peer, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        } else if (how == 8) {
            peer_say(peer, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
        } else if (how == 9) {
            peer_reset(peer);
            remotes[i].gone = true;
        } else if (how == 10) {
            peer_say(peer, "HTTP/1.1 200 OK\r\nContent-Length: 200\r\n\r\nhalf");
            peer_finish(peer);
        } else {
            peer_finish(peer);
        }
    }
    return live;
}

static unsigned count_over(unsigned count)
{
    unsigned over = 0;
    for (unsigned i = 0; i < count; i++) {
        over += atomic_load(&callers[i].over);
    }
    return over;
}

static void test_a_storm_over_the_carriers_keeps_the_bound_and_serves_all(void **state)
{
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        unsigned carriers = 1 + round % 3, bound = round % 4 == 3 ? 0 : 1 + round % 5;
        bool well = round % 2 == 0;
        unsigned served = 0, spawned = 0;
        start_world(round, carriers, bound);
        for (unsigned step = 0; step < 4000 && count_over(CALLERS) < CALLERS; step++) {
            if (spawned < CALLERS && kernel_random(2) == 0) {
                struct caller *caller = &callers[spawned++];
                caller->carrier = (unsigned)kernel_random(carriers);
                drive_call(caller->carrier, spawn_call, caller);
            }
            if (!well && spawned > 0 && kernel_random(20) == 0) {
                struct caller *caller = &callers[kernel_random(spawned)];
                drive_call(caller->carrier, cancel_call, caller);
            }
            drive_pass(kernel_random(4) == 0 ? 10 * NS_PER_MS : 0);
            unsigned live = remote_act(well);
            if (bound != 0) {
                assert_in_range(open_connections(), 0, bound);
                /* those that were just closed may be seen by the remote a little later */
                assert_in_range(live, 0, bound);
            }
        }
        for (unsigned i = 0; i < CALLERS; i++) {
            const struct caller *caller = &callers[i];
            assert_true(caller->over);
            served += caller->status == 200;
            if (well) {
                assert_int_equal(caller->result, 0);
            } else if (caller->result == -ECANCELED) {
                assert_true(caller->cancelled);
            } else if (caller->result != 0) {
                assert_true(caller->result == -ECONNRESET || caller->result == -EPROTO ||
                            caller->result == -EPIPE);
            }
        }
        assert_in_range(served, well ? CALLERS : 1, CALLERS);
        stop_world();
    }
}

static void *thread_calls(void *argument)
{
    struct caller *caller = argument;
    for (int i = 0; i < 5; i++) {
        call_once(caller);
        if (caller->result != 0) {
            break;
        }
    }
    atomic_store(&caller->over, true);
    return NULL;
}

static bool all_over(void *unused)
{
    (void)unused;
    (void)remote_act(true);
    if (kernel_blocked_threads() > 0) {
        kernel_pass(NS_PER_MS);
    }
    return count_over(THREADS + 10) == THREADS + 10;
}

static void test_platform_threads_and_fibers_share_the_bound(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 10; round++) {
        pthread_t threads[THREADS];
        start_world(round, 1 + round % 2, 1 + round % 3);
        for (unsigned i = 0; i < THREADS; i++) {
            assert_int_equal(pthread_create(&threads[i], NULL, thread_calls, &callers[i]), 0);
        }
        for (unsigned i = THREADS; i < THREADS + 10; i++) {
            callers[i].carrier = i % (1 + round % 2);
            drive_call(callers[i].carrier, spawn_call, &callers[i]);
        }
        drive_until(all_over, NULL);
        for (unsigned i = 0; i < THREADS; i++) {
            pthread_join(threads[i], NULL);
        }
        for (unsigned i = 0; i < THREADS + 10; i++) {
            assert_int_equal(callers[i].result, 0);
        }
        stop_world();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_storm_over_the_carriers_keeps_the_bound_and_serves_all),
        cmocka_unit_test(test_platform_threads_and_fibers_share_the_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
