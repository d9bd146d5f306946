/* SPDX-License-Identifier: Apache-2.0 */
/* links: scripted kernel */
/*
 * Property: every byte comes back, whatever the segments, windows and completions;
 * a half-close gets the rest and a FIN; one that does not read holds two buffers; a
 * greeted client gets the whole line and a FIN, never a reset, whatever it says; a
 * drain closes what is idle and finishes what was received. All of it on fibers and
 * with a thread for each connection. Method: the scripted kernel.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "app/echo.h"
#include "base/log.h"
#include "base/time.h"
#include "kernel.h"

#define PORT 10007
#define ROUNDS 40
#define GREETING "[echo] Hello World\n"
#define BYTES ((size_t)60000)

static struct echo echo;
static struct listener listener;
static struct connection_limit limit;
static unsigned ended;

static void on_ended(void *context)
{
    (void)context;
    ended++;
}

static void start_world(unsigned round, bool greets, bool platform)
{
    struct log_setup quiet = {.level = LOG_OFF};
    log_init(&quiet);
    kernel_start_uneven(round);
    drive_start(1);
    limit = (struct connection_limit){.max = 100};
    struct listener_setup setup = {.name = "echo",
                                   .port = PORT,
                                   .wakes_one = true,
                                   .carriers = drive_carriers(),
                                   .carrier_count = 1,
                                   .limits = {&limit},
                                   .serve = echo_serve,
                                   .refusal = echo_refusal,
                                   .context = &echo};
    assert_int_equal(listener_open(&listener, &setup), 0);
    struct echo_setup behind = {.name = "echo",
                                .greets = greets,
                                .platform = platform,
                                .live = &limit.live,
                                .carriers = drive_carriers(),
                                .carrier_count = 1,
                                .on_ended = on_ended};
    assert_int_equal(echo_init(&echo, &behind, &listener), 0);
    listener_start(&listener);
    drive_run();
}

static bool none_lives(void *unused)
{
    (void)unused;
    return atomic_load(&limit.live) == 0 && atomic_load(&listener.open_acceptors) == 0;
}

static void drain(void)
{
    echo_drain(&echo);
    listener_drain(&listener);
}

static void stop_world(void)
{
    if (!atomic_load(&echo.draining)) {
        drain();
    }
    drive_until(none_lives, NULL);
    echo_fini(&echo);
    listener_fini(&listener);
    drive_stop();
}

/* A client that sends what it drew and keeps what comes back. */
static struct {
    struct kernel_file *peer;
    char sent[BYTES], got[BYTES];
    size_t sent_length, got_length, length;
    bool finishes;
} client;

static void client_open(size_t length)
{
    client.peer = kernel_connect(PORT);
    assert_non_null(client.peer);
    client.length = length;
    client.sent_length = client.got_length = 0;
    for (size_t i = 0; i < length; i++) {
        client.sent[i] = (char)kernel_random(256);
    }
}

/* client_step - send and receive pieces of drawn sizes. Returns true when all is back. */
static bool client_step(void *unused)
{
    (void)unused;
    size_t piece = 1 + (size_t)kernel_random(5000);
    if (piece > client.length - client.sent_length) {
        piece = client.length - client.sent_length;
    }
    ssize_t sent = piece > 0 ? peer_send(client.peer, client.sent + client.sent_length, piece) : 0;
    client.sent_length += sent > 0 ? (size_t)sent : 0;
    if (client.finishes && client.sent_length == client.length) {
        peer_finish(client.peer);
        client.finishes = false;
    }
    if (kernel_random(3) > 0 && client.got_length < client.length) {
        size_t room = 1 + (size_t)kernel_random(5000);
        if (room > client.length - client.got_length) {
            room = client.length - client.got_length;
        }
        ssize_t got = peer_receive(client.peer, client.got + client.got_length, room);
        client.got_length += got > 0 ? (size_t)got : 0;
    }
    return client.got_length == client.length;
}

static bool got_fin(void *peer)
{
    return peer_got_fin(peer);
}

static void test_every_byte_comes_back_and_a_half_close_gets_the_rest(void **state)
{
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        bool platform = round % 4 == 3;
        start_world(round, false, platform);
        client.finishes = round % 3 != 0;
        client_open(1 + (size_t)kernel_random(BYTES));
        peer_window(client.peer, 1 + (size_t)kernel_random(9000));
        drive_until(client_step, NULL);
        assert_memory_equal(client.sent, client.got, client.length);
        if (round % 3 != 0) {
            drive_until(got_fin, client.peer);
            assert_false(peer_got_reset(client.peer));
        } else {
            drive_run();
            assert_false(peer_got_fin(client.peer));
            assert_int_equal(atomic_load(&limit.live), 1);
        }
        stop_world();
        assert_int_equal(atomic_load(&echo.wait.connections), 1);
    }
}

static void test_a_client_that_does_not_read_holds_two_buffers(void **state)
{
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        start_world(round, false, false);
        client.finishes = false;
        client_open(BYTES);
        peer_window(client.peer, 10);
        for (unsigned i = 0; i < 30; i++) {
            ssize_t sent = peer_send(client.peer, client.sent + client.sent_length,
                                     client.length - client.sent_length);
            client.sent_length += sent > 0 ? (size_t)sent : 0;
            drive_run();
            if (kernel_buffers_out() > 2) {
                fail_msg("%u buffers held", kernel_buffers_out());
            }
        }
        assert_true(peer_unread(client.peer) > 0); /* the rest waits at the client's cost */
        peer_reset(client.peer);
        drive_run();
        assert_int_equal(atomic_load(&limit.live), 0);
        stop_world();
    }
}

static void test_a_reset_or_a_vanished_peer_ends_the_connection(void **state)
{
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        bool platform = round % 2 == 1;
        start_world(round, false, platform);
        struct kernel_file *peer = kernel_connect(PORT);
        struct kernel_file *other = kernel_connect(PORT);
        peer_say(peer, "abc");
        drive_run();
        if (round % 4 < 2) {
            peer_reset(peer);
        } else {
            peer_vanish(peer); /* what the probes that the listener asked for find out */
        }
        peer_say(other, "still here");
        peer_finish(other);
        drive_until(got_fin, other);
        assert_string_equal(peer_heard(other), "still here");
        stop_world();
    }
}

static void test_the_greeter_greets_and_closes_whatever_the_client_says(void **state)
{
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        start_world(round, true, round % 4 == 3);
        struct kernel_file *peer = kernel_connect(PORT);
        unsigned talk = (unsigned)kernel_random(3);
        if (talk > 0) {
            peer_say(peer, "who is there?");
        }
        if (talk > 1) {
            drive_run();
            peer_say(peer, "hello?");
        }
        drive_until(got_fin, peer);
        assert_false(peer_got_reset(peer));
        assert_string_equal(peer_heard(peer), GREETING);
        peer_finish(peer);
        stop_world();
    }
}

static bool idle_closed(void *peers)
{
    return peer_got_fin(((struct kernel_file **)peers)[0]) &&
           peer_got_fin(((struct kernel_file **)peers)[1]);
}

static void test_a_drain_closes_the_idle_and_finishes_what_was_received(void **state)
{
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        bool platform = round % 4 == 3;
        start_world(round, false, platform);
        struct kernel_file *peers[2] = {kernel_connect(PORT), kernel_connect(PORT)};
        drive_run();
        peer_say(peers[1], "last words");
        ended = 0;
        drain();
        drive_until(idle_closed, peers);
        assert_string_equal(peer_heard(peers[0]), "");
        assert_string_equal(peer_heard(peers[1]), "last words");
        drive_until(none_lives, NULL);
        assert_int_equal(ended, 2);
        stop_world();
    }
}

static void test_a_client_beyond_the_limit_is_closed_without_a_word(void **state)
{
    (void)state;
    start_world(0, false, false);
    limit.max = 1;
    struct kernel_file *first = kernel_connect(PORT);
    drive_run();
    struct kernel_file *second = kernel_connect(PORT);
    drive_run();
    assert_true(peer_got_fin(second));
    assert_string_equal(peer_heard(second), "");
    peer_say(first, "x");
    drive_run();
    assert_string_equal(peer_heard(first), "x");
    drive_pass(NS_PER_S);
    stop_world();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_byte_comes_back_and_a_half_close_gets_the_rest),
        cmocka_unit_test(test_a_client_that_does_not_read_holds_two_buffers),
        cmocka_unit_test(test_a_reset_or_a_vanished_peer_ends_the_connection),
        cmocka_unit_test(test_the_greeter_greets_and_closes_whatever_the_client_says),
        cmocka_unit_test(test_a_drain_closes_the_idle_and_finishes_what_was_received),
        cmocka_unit_test(test_a_client_beyond_the_limit_is_closed_without_a_word),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
