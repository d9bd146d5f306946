/* SPDX-License-Identifier: Apache-2.0 */
/* links: scripted kernel */
/*
 * Property: a call is tried again only when its connection had served before and no
 * byte of an answer came; a connection goes back to the pool only when it is clean;
 * the bound holds and those who wait are served in turn; a cancelled call resets,
 * so that the remote stops. Method: the test is the remote, on the scripted kernel.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/time.h"
#include "http/client.h"
#include "io/pool.h"
#include "kernel.h"

#define PORT 8085
#define ROUNDS 60
#define CALLS_MAX 16

static struct client_pool pool;
static struct pool offload;

/* One call on a fiber of its own. */
struct caller {
    struct http_call call;
    struct arena arena;
    char path[32];
    char body[128];
    int result;
    bool over;
    uint64_t over_ns;
    unsigned order; /* the how manieth to end */
    struct fiber *fiber;
};

static struct caller callers[CALLS_MAX];
static unsigned ended;

static void start_world(unsigned round, unsigned bound)
{
    struct log_setup quiet = {.level = LOG_OFF};
    log_init(&quiet);
    kernel_start_uneven(round);
    drive_start(1);
    kernel_serve(PORT);
    struct client_pool_setup setup = {.url = "http://127.0.0.1:8085",
                                      .bound = bound,
                                      .offload = &offload,
                                      .carriers = drive_carriers(),
                                      .carrier_count = 1};
    assert_int_equal(client_pool_init(&pool, &setup), 0);
    ended = 0;
}

static void stop_world(void)
{
    client_pool_close(&pool);
    drive_pass(NS_PER_S);
    assert_int_equal(pool.open, 0);
    drive_stop();
    client_pool_fini(&pool);
}

static void run_call(void *argument)
{
    struct caller *caller = argument;
    arena_init(&caller->arena, NULL, 0, 1 << 20);
    caller->call.path = slice_of(caller->path);
    caller->call.arena = &caller->arena;
    caller->result = client_get(&pool, &caller->call);
    if (caller->result == 0) {
        snprintf(caller->body, sizeof(caller->body), "%d %.*s", caller->call.reply.status,
                 (int)caller->call.reply.body.length, caller->call.reply.body.at);
    }
    arena_reset(&caller->arena);
    caller->over_ns = kernel_now_ns();
    caller->order = ended++;
    caller->over = true;
}

static struct caller *call(unsigned index)
{
    struct caller *caller = &callers[index];
    memset(caller, 0, sizeof(*caller));
    snprintf(caller->path, sizeof(caller->path), "/remote/%u", index);
    caller->call.connect_timeout_ns = 2 * NS_PER_S;
    caller->call.answer_timeout_ns = 5 * NS_PER_S;
    caller->call.body_bytes_max = 1 << 16;
    caller->fiber = drive_spawn("caller", run_call, caller);
    return caller;
}

/* remote_heard - a request for that index has come on this connection. */
static bool remote_heard(struct kernel_file *peer, unsigned index)
{
    char expected[64];
    snprintf(expected, sizeof(expected), "GET /remote/%u HTTP/1.1\r\n", index);
    return strncmp(peer_heard(peer), expected, strlen(expected)) == 0;
}

static void remote_says(struct kernel_file *peer, const char *body)
{
    char text[256];
    snprintf(text, sizeof(text), "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s", strlen(body),
             body);
    peer_say(peer, text);
}

/* served_once - a first call, answered and back in the pool. */
static struct kernel_file *served_once(void)
{
    struct caller *first = call(0);
    drive_run();
    struct kernel_file *peer = kernel_accept(PORT);
    assert_non_null(peer);
    assert_true(remote_heard(peer, 0));
    remote_says(peer, "first");
    drive_run();
    assert_true(first->over);
    assert_string_equal(first->body, "200 first");
    return peer;
}

/* ------------------------------------------------------------ a host that is gone */

static void test_of_a_host_that_is_gone_no_idle_connection_is_tried(void **state)
{
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct kernel_file *old[2];
        start_world(round, 0);
        for (unsigned i = 0; i < 2; i++) {
            call(i);
        }
        drive_run();
        for (unsigned i = 0; i < 2; i++) {
            old[i] = kernel_accept(PORT);
            assert_non_null(old[i]);
            assert_true(*peer_heard(old[i]) != '\0');
            remote_says(old[i], "first");
        }
        drive_run();
        assert_int_equal(pool.open, 2);

        struct caller *second = call(2);
        drive_run();
        assert_null(kernel_accept(PORT));
        unsigned asked = remote_heard(old[0], 2) ? 0 : 1;
        drive_pass(3 * NS_PER_S);
        peer_vanish(old[asked]); /* nothing was acknowledged: the kernel gives up */
        drive_run();
        struct kernel_file *fresh = kernel_accept(PORT);
        assert_non_null(fresh);
        assert_true(remote_heard(fresh, 2));
        remote_says(fresh, "right");
        drive_run();
        assert_int_equal(second->result, 0);
        assert_string_equal(second->body, "200 right");

        /* The other idle connection leads there too. The fresh one does not. */
        struct caller *third = call(3), *fourth = call(4);
        drive_run();
        struct kernel_file *another = kernel_accept(PORT);
        assert_non_null(another);
        assert_true(peer_got_fin(old[1 - asked]));
        remote_says(fresh, "one");
        remote_says(another, "one");
        drive_run();
        assert_string_equal(third->body, "200 one");
        assert_string_equal(fourth->body, "200 one");
        stop_world();
    }
}

static void test_a_slow_answer_is_no_sign_of_a_host_that_is_gone(void **state)
{
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        start_world(round, 0);
        (void)served_once();
        struct caller *second = call(1);
        drive_pass(6 * NS_PER_S);
        assert_true(second->over);
        assert_int_equal(second->result, -ETIMEDOUT);
        assert_null(kernel_accept(PORT));
        assert_int_equal(pool.generation, 0);
        stop_world();
    }
}

/* ------------------------------------------------------------ retry */

static void test_a_connection_is_used_again(void **state)
{
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        start_world(round, 0);
        struct kernel_file *peer = served_once();
        struct caller *second = call(1);
        drive_run();
        assert_null(kernel_accept(PORT));
        assert_true(remote_heard(peer, 1));
        remote_says(peer, "second");
        drive_run();
        assert_string_equal(second->body, "200 second");
        stop_world();
        assert_true(peer_got_fin(peer));
        assert_false(peer_got_reset(peer));
    }
}

static void test_a_call_on_a_used_connection_that_brings_no_byte_is_tried_once_more(void **state)
{
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        start_world(round, 0);
        struct kernel_file *peer = served_once();
        struct caller *second = call(1);
        drive_run();
        assert_true(remote_heard(peer, 1));
        if (kernel_random(2) == 0) {
            peer_close(peer);
        } else {
            peer_reset(peer);
        }
        drive_run();
        assert_false(second->over);
        peer = kernel_accept(PORT);
        assert_non_null(peer);
        assert_true(remote_heard(peer, 1));
        if (kernel_random(2) == 0) {
            remote_says(peer, "second");
            drive_run();
            assert_string_equal(second->body, "200 second");
        } else { /* and not a third time */
            peer_close(peer);
            drive_run();
            assert_true(second->over);
            assert_int_equal(second->result, -ECONNRESET);
            assert_null(kernel_accept(PORT));
        }
        stop_world();
    }
}

static void test_a_call_on_a_fresh_connection_is_not_tried_again(void **state)
{
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        start_world(round, 0);
        struct caller *first = call(0);
        drive_run();
        struct kernel_file *peer = kernel_accept(PORT);
        if (kernel_random(2) == 0) {
            peer_close(peer);
        } else {
            peer_reset(peer);
        }
        drive_run();
        assert_true(first->over);
        assert_int_equal(first->result, -ECONNRESET);
        assert_null(kernel_accept(PORT));
        stop_world();
    }
}

static void test_a_call_is_not_tried_again_once_a_byte_of_the_answer_came(void **state)
{
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        start_world(round, 0);
        struct kernel_file *peer = served_once();
        struct caller *second = call(1);
        drive_run();
        peer_say(peer, "HTTP/1.1 200 OK\r\nContent-Le");
        if (kernel_random(2) == 0) {
            drive_run();
        }
        peer_finish(peer);
        drive_run();
        assert_true(second->over);
        assert_int_equal(second->result, -EPROTO);
        assert_null(kernel_accept(PORT));
        stop_world();
    }
}

/* ------------------------------------------------------------ what goes back to the pool */

static void test_a_connection_with_more_than_the_answer_is_not_used_again(void **state)
{
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        start_world(round, 0);
        struct caller *first = call(0);
        drive_run();
        struct kernel_file *peer = kernel_accept(PORT);
        char text[512];
        snprintf(text, sizeof(text),
                 "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\noneHTTP/1.1 200 "
                 "OK\r\nContent-Length: 3\r\n\r\ntwo");
        peer_say(peer, text);
        drive_run();
        assert_string_equal(first->body, "200 one");
        struct caller *second = call(1);
        drive_run();
        struct kernel_file *fresh = kernel_accept(PORT);
        assert_non_null(fresh);
        remote_says(fresh, "right");
        drive_run();
        assert_string_equal(second->body, "200 right");
        stop_world();
    }
}

static void test_what_an_idle_connection_says_unasked_is_not_the_next_answer(void **state)
{
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        start_world(round, 0);
        struct kernel_file *peer = served_once();
        peer_say(peer, "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: "
                       "close\r\n\r\n");
        peer_finish(peer);
        drive_run();
        struct caller *second = call(1);
        drive_run();
        struct kernel_file *fresh = kernel_accept(PORT);
        assert_non_null(fresh);
        remote_says(fresh, "right");
        drive_run();
        assert_string_equal(second->body, "200 right");
        stop_world();
    }
}

static void test_an_answer_that_ends_the_connection_ends_it(void **state)
{
    (void)state;
    static const char *answers[] = {
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nyes",
        "HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nyes",
        "HTTP/1.1 200 OK\r\n\r\nyes", /* until the end of the connection */
    };
    for (unsigned round = 0; round < ROUNDS; round++) {
        unsigned kind = round % 3;
        start_world(round, 0);
        struct caller *first = call(0);
        drive_run();
        struct kernel_file *peer = kernel_accept(PORT);
        peer_say(peer, answers[kind]);
        if (kind == 2) {
            peer_finish(peer);
        }
        drive_run();
        assert_string_equal(first->body, "200 yes");
        assert_true(peer_got_fin(peer));
        assert_false(peer_got_reset(peer));
        assert_int_equal(pool.open, 0);
        stop_world();
    }
}

static void test_nonsense_is_eproto_and_ends_the_connection(void **state)
{
    (void)state;
    static const char *answers[] = {
        "SSH-2.0-OpenSSH_9.9\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n",
    };
    for (unsigned round = 0; round < ROUNDS; round++) {
        start_world(round, 0);
        struct caller *first = call(0);
        drive_run();
        struct kernel_file *peer = kernel_accept(PORT);
        peer_say(peer, answers[round % 4]);
        drive_run();
        assert_true(first->over);
        assert_int_equal(first->result, -EPROTO);
        assert_non_null(first->call.failure);
        assert_true(peer_got_reset(peer));
        stop_world();
    }
}

static void test_idle_connections_end_in_time_or_when_the_remote_ends_them(void **state)
{
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        start_world(round, 0);
        struct kernel_file *peer = served_once();
        bool remote_ends = kernel_random(2) == 0;
        drive_pass(NS_PER_S);
        if (remote_ends) {
            peer_finish(peer);
            drive_pass(6 * NS_PER_S);
        } else {
            drive_pass(28 * NS_PER_S);
            assert_false(peer_got_fin(peer));
            drive_pass(8 * NS_PER_S);
        }
        assert_true(peer_got_fin(peer));
        assert_int_equal(pool.open, 0);
        assert_int_equal(drive_carriers()[0].sched.live_count, 0); /* nor a sweeper */
        stop_world();
    }
}

/* ------------------------------------------------------------ time, failure, cancel */

static void test_deadlines_and_refusals(void **state)
{
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        start_world(round, 0);
        uint64_t began_ns = kernel_now_ns();
        if (round % 3 == 0) { /* the connection is not made */
            kernel_hang(PORT);
            struct caller *one = call(0);
            drive_pass(2 * NS_PER_S + NS_PER_MS);
            assert_true(one->over);
            assert_int_equal(one->result, -ETIMEDOUT);
            assert_in_range(one->over_ns - began_ns, 2 * NS_PER_S, 2 * NS_PER_S + NS_PER_MS);
        } else if (round % 3 == 1) { /* the answer does not come */
            struct caller *one = call(0);
            drive_run();
            struct kernel_file *peer = kernel_accept(PORT);
            peer_say(peer, "HTTP/1.1 200 OK\r\n");
            drive_pass(5 * NS_PER_S + NS_PER_MS);
            assert_true(one->over);
            assert_int_equal(one->result, -ETIMEDOUT);
            assert_in_range(one->over_ns - began_ns, 5 * NS_PER_S, 5 * NS_PER_S + NS_PER_MS);
            assert_true(peer_got_reset(peer));
        } else {
            kernel_refuse(PORT);
            struct caller *one = call(0);
            drive_run();
            assert_true(one->over);
            assert_int_equal(one->result, -ECONNREFUSED);
            kernel_knobs.descriptors = kernel_open_descriptors() + 3;
            one = call(0);
            drive_run();
            assert_int_equal(one->result, -EMFILE);
        }
        assert_int_equal(pool.open, 0);
        stop_world();
    }
}

static void test_a_cancelled_call_resets_its_connection(void **state)
{
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        start_world(round, 0);
        struct caller *one = call(0);
        drive_run();
        struct kernel_file *peer = kernel_accept(PORT);
        if (kernel_random(2) == 0) {
            peer_say(peer, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf");
            drive_run();
        }
        fiber_cancel(one->fiber);
        drive_run();
        assert_true(one->over);
        assert_int_equal(one->result, -ECANCELED);
        assert_true(peer_got_reset(peer));
        assert_int_equal(pool.open, 0);
        stop_world();
    }
}

/* ------------------------------------------------------------ the bound */

/* The remote's side of the connections, and which call each has in hand. */
static struct {
    struct kernel_file *peer;
    int index; /* -1: none */
} remotes[CALLS_MAX];
static unsigned remote_count;

static void remote_look(void)
{
    for (struct kernel_file *peer; (peer = kernel_accept(PORT)) != NULL;) {
        remotes[remote_count].index = -1;
        remotes[remote_count++].peer = peer;
    }
    for (unsigned k = 0; k < remote_count; k++) {
        const char *heard = peer_heard(remotes[k].peer);
        if (heard[0] != '\0') {
            assert_int_equal(remotes[k].index, -1);
            assert_int_equal(sscanf(heard, "GET /remote/%d ", &remotes[k].index), 1);
        }
    }
}

/* remote_answers - the connection that has this call in hand answers it. False: none has. */
static bool remote_answers(int index)
{
    remote_look();
    for (unsigned k = 0; k < remote_count; k++) {
        if (remotes[k].index != index) {
            continue;
        }
        remotes[k].index = -1;
        if (kernel_random(4) == 0) {
            peer_say(remotes[k].peer, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: "
                                      "close\r\n\r\n");
        } else {
            remote_says(remotes[k].peer, "");
        }
        return true;
    }
    return false;
}

static void test_those_who_wait_for_a_connection_are_served_in_turn(void **state)
{
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        unsigned bound = 1 + round % 3, cancelled = 8 + round % 4;
        remote_count = 0;
        start_world(round, bound);
        for (unsigned i = 0; i < 12; i++) {
            call(i);
        }
        drive_run();
        fiber_cancel(callers[cancelled].fiber); /* one who waits gives up */
        drive_run();
        assert_true(callers[cancelled].over);
        assert_int_equal(callers[cancelled].result, -ECANCELED);
        for (unsigned i = 0; i < 12; i++) {
            if (i == cancelled) {
                continue;
            }
            if (!remote_answers((int)i)) {
                fail_msg("round %u: call %u was not the next to be sent", round, i);
            }
            assert_in_range(pool.open, 1, bound);
            drive_run();
            assert_true(callers[i].over);
            assert_int_equal(callers[i].result, 0);
        }
        stop_world();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_of_a_host_that_is_gone_no_idle_connection_is_tried),
        cmocka_unit_test(test_a_slow_answer_is_no_sign_of_a_host_that_is_gone),
        cmocka_unit_test(test_a_connection_is_used_again),
        cmocka_unit_test(test_a_call_on_a_used_connection_that_brings_no_byte_is_tried_once_more),
        cmocka_unit_test(test_a_call_on_a_fresh_connection_is_not_tried_again),
        cmocka_unit_test(test_a_call_is_not_tried_again_once_a_byte_of_the_answer_came),
        cmocka_unit_test(test_a_connection_with_more_than_the_answer_is_not_used_again),
        cmocka_unit_test(test_what_an_idle_connection_says_unasked_is_not_the_next_answer),
        cmocka_unit_test(test_an_answer_that_ends_the_connection_ends_it),
        cmocka_unit_test(test_nonsense_is_eproto_and_ends_the_connection),
        cmocka_unit_test(test_idle_connections_end_in_time_or_when_the_remote_ends_them),
        cmocka_unit_test(test_deadlines_and_refusals),
        cmocka_unit_test(test_a_cancelled_call_resets_its_connection),
        cmocka_unit_test(test_those_who_wait_for_a_connection_are_served_in_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
