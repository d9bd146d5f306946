/* SPDX-License-Identifier: Apache-2.0 */
/* links: scripted kernel */
/*
 * Property: at most 16 connections are accepted a turn; the carriers' connections
 * stay even within 10 percent or two; who finds no place or no descriptor is told
 * 503 and can read it; want of descriptors does not spin; a drain serves the accept
 * queue first. Method: the scripted kernel, one to four carriers driven in turns.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/time.h"
#include "kernel_server.h"
#include "ring/carrier.h"
#include "ring/sys.h"

#define ROUNDS 16
#define CLIENTS_MAX 500
#define REQUEST "GET /quick/1 HTTP/1.1\r\nHost: a\r\n\r\n"

static struct kernel_server server;
static struct kernel_file *clients[CLIENTS_MAX];

static void start_world(unsigned round, unsigned carriers, unsigned connections_max)
{
    kernel_start_uneven(round);
    drive_start(carriers);
    server_start_on(&server, carriers, connections_max);
}

static void come(unsigned from, unsigned until)
{
    for (unsigned i = from; i < until; i++) {
        clients[i] = kernel_connect(SERVER_PORT);
        assert_non_null(clients[i]);
        peer_say(clients[i], REQUEST);
    }
}

/* status_heard - of the one answer that came; 0 none. */
static int status_heard(struct kernel_file *client)
{
    struct answer answer;
    const char *heard = peer_heard(client);
    if (!answer_next(&heard, &answer)) {
        return 0;
    }
    if (answer.status == 503) {
        assert_true(answer_has(&answer, "Retry-After: 1"));
        assert_true(answer_has(&answer, "Connection: close"));
        assert_true(peer_got_fin(client));
        assert_false(peer_got_reset(client));
    }
    return answer.status;
}

static void test_at_most_16_are_accepted_a_turn(void **state)
{
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        start_world(round, 1, 1000);
        come(0, 100);
        uint64_t turns = 0, before = kernel_count(KERNEL_SYS_ACCEPT);
        while (live_connections(&server) < 100) {
            uint64_t accepts = kernel_count(KERNEL_SYS_ACCEPT);
            carrier_turn(&drive_carriers()[0]);
            assert_in_range(kernel_count(KERNEL_SYS_ACCEPT) - accepts, 0, 16);
            assert_in_range(++turns, 1, 1000);
        }
        drive_run();
        assert_in_range(kernel_count(KERNEL_SYS_ACCEPT) - before, 100, 110);
        for (unsigned i = 0; i < 100; i++) {
            assert_int_equal(status_heard(clients[i]), 200);
        }
        server_stop(&server);
    }
}

static void test_a_passed_socket_is_taken_over_and_not_bound_again(void **state)
{
    (void)state;
    kernel_start(0);
    drive_start(1);
    uint16_t port = 9000;
    struct listener listener;
    struct listener_setup setup = {.name = "http",
                                   .port = port,
                                   .inherited = sys_listen(NULL, &port),
                                   .carriers = drive_carriers(),
                                   .carrier_count = 1};
    assert_true(setup.inherited > 0);
    unsigned open = kernel_open_descriptors();
    assert_int_equal(listener_open(&listener, &setup), 0); /* bound again, 9000 would be in use */
    assert_int_equal(listener.fd, setup.inherited);
    assert_int_equal(listener.port, 9000);
    assert_int_equal(kernel_open_descriptors(), open);
    listener_fini(&listener);
    assert_int_equal(kernel_open_descriptors(), open - 1);
    drive_stop();
}

static void assert_even(unsigned carriers, unsigned expected)
{
    unsigned fewest = UINT32_MAX, most = 0, sum = 0;
    for (unsigned i = 0; i < carriers; i++) {
        unsigned live = atomic_load(&drive_carriers()[i].connections);
        fewest = live < fewest ? live : fewest;
        most = live > most ? live : most;
        sum += live;
    }
    assert_int_equal(sum, expected);
    unsigned slack = fewest / 10 > 2 ? fewest / 10 : 2;
    assert_in_range(most - fewest, 0, slack + 1);
}

static void test_connections_are_even_over_the_carriers(void **state)
{
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        unsigned carriers = 2 + round % 3, count = 0;
        start_world(round, carriers, 1000);
        while (count < 400) {
            unsigned burst = 1 + (unsigned)kernel_random(60);
            burst = burst < 400 - count ? burst : 400 - count;
            come(count, count + burst);
            count += burst;
            if (kernel_random(2) == 0) {
                drive_run();
                assert_even(carriers, count);
            }
        }
        drive_run();
        assert_even(carriers, count);
        for (unsigned i = 0; i < count; i++) {
            assert_int_equal(status_heard(clients[i]), 200);
        }
        server_stop(&server);
    }
}

static void test_a_carrier_that_lost_its_connections_gets_the_next_ones(void **state)
{
    (void)state;
    start_world(0, 2, 1000);
    come(0, 200);
    drive_run();
    /* one carrier has a hundred more than it really has, as if the other's had left */
    atomic_fetch_add(&drive_carriers()[1].connections, 100);
    come(200, 280);
    drive_run();
    assert_in_range(atomic_load(&drive_carriers()[0].connections), 175, 181);
    atomic_fetch_sub(&drive_carriers()[1].connections, 100);
    server_stop(&server);
}

static void test_beyond_the_limit_a_client_is_told_503_and_can_read_it(void **state)
{
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        unsigned carriers = 1 + round % 2;
        start_world(round, carriers, 3);
        come(0, 3);
        drive_run();
        come(3, 33); /* more than are drained at a time */
        drive_run();
        for (unsigned i = 0; i < 33; i++) {
            assert_int_equal(status_heard(clients[i]), i < 3 ? 200 : 503);
        }
        assert_int_equal(atomic_load(&server.listener.refused), 30);
        assert_int_equal(live_connections(&server), 3);
        peer_finish(clients[0]);
        drive_pass(NS_PER_S);
        assert_int_equal(kernel_open_descriptors(), 1 + carriers + 2);
        come(33, 34);
        drive_run();
        assert_int_equal(status_heard(clients[33]), 200);
        server_stop(&server);
    }
}

static void test_out_of_descriptors_clients_are_told_503_and_nothing_spins(void **state)
{
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        start_world(round, 1 + round % 2, 1000);
        kernel_knobs.descriptors = 3 + kernel_open_descriptors() + 5;
        kernel_knobs.chop_percent = 0; /* a direct slot is read once: what comes later resets */
        come(0, 50);
        drive_run();
        for (unsigned i = 0; i < 50; i++) {
            assert_int_equal(status_heard(clients[i]), i < 5 ? 200 : 503);
        }
        uint64_t accepts = kernel_count(KERNEL_SYS_ACCEPT), turns = drive_turns();
        drive_pass(10 * NS_PER_S);
        assert_int_equal(kernel_count(KERNEL_SYS_ACCEPT), accepts);
        assert_in_range(drive_turns() - turns, 0, 100);
        peer_finish(clients[0]);
        drive_pass(NS_PER_S);
        come(50, 52);
        drive_run();
        assert_int_equal(status_heard(clients[50]), 200);
        assert_int_equal(status_heard(clients[51]), 503);
        server_stop(&server);
    }
}

static void test_who_came_while_another_was_refused_got_neither_answer_nor_503(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 40 * ROUNDS; round++) {
        start_world(round, 1, 1000);
        kernel_knobs.descriptors = 3 + kernel_open_descriptors();
        kernel_knobs.chop_percent = 0;
        come(0, 1);
        for (uint64_t turns = kernel_random(12); turns > 0; turns--) {
            carrier_turn(&drive_carriers()[0]);
        }
        come(1, 2);
        drive_pass(NS_PER_S);
        assert_int_equal(status_heard(clients[0]), 503);
        assert_int_equal(status_heard(clients[1]), 503);
        server_stop(&server);
    }
}

static void test_without_direct_slots_it_looks_ten_times_a_second(void **state)
{
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        kernel_start(round);
        kernel_knobs.direct_slots = false;
        drive_start(1);
        server_start_on(&server, 1, 1000);
        bool memory = kernel_random(2) == 0;
        if (memory) {
            kernel_fail(KERNEL_SYS_ACCEPT, 6, 1000000, -ENOMEM);
        } else {
            kernel_knobs.descriptors = 3 + kernel_open_descriptors() + 5;
        }
        come(0, 10);
        drive_run();
        for (unsigned i = 0; i < 10; i++) {
            assert_int_equal(status_heard(clients[i]), i < 5 ? 200 : 0);
        }
        uint64_t accepts = kernel_count(KERNEL_SYS_ACCEPT);
        drive_pass(10 * NS_PER_S);
        assert_in_range(kernel_count(KERNEL_SYS_ACCEPT) - accepts, 90, 101);
        kernel_fail(KERNEL_SYS_ACCEPT, 1, 0, 0);
        kernel_knobs.descriptors = 4096;
        drive_pass(101 * NS_PER_MS);
        for (unsigned i = 5; i < 10; i++) {
            assert_int_equal(status_heard(clients[i]), 200);
        }
        server_stop(&server);
    }
}

static void test_a_failed_accept_of_a_direct_slot_waits_too(void **state)
{
    (void)state;
    start_world(0, 1, 1000);
    kernel_knobs.descriptors = 3 + kernel_open_descriptors();
    kernel_knobs.chop_percent = 0;
    kernel_fail(KERNEL_ACCEPT_DIRECT, 1, 5, -ENFILE);
    come(0, 1);
    drive_pass(450 * NS_PER_MS);
    assert_int_equal(status_heard(clients[0]), 0);
    assert_in_range(kernel_count(KERNEL_SYS_ACCEPT), 4, 8);
    drive_pass(200 * NS_PER_MS);
    assert_int_equal(status_heard(clients[0]), 503);
    server_stop(&server);
}

static int serve_nobody(struct listener *listener, int fd)
{
    (void)listener;
    (void)fd;
    return -ENOMEM;
}

static void test_without_memory_to_serve_a_client_is_told_503(void **state)
{
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        start_world(round, 1 + round % 2, 1000);
        server.listener.setup.serve = serve_nobody;
        come(0, 40);
        drive_run();
        for (unsigned i = 0; i < 40; i++) {
            assert_int_equal(status_heard(clients[i]), 503);
        }
        assert_int_equal(live_connections(&server), 0);
        server_stop(&server);
    }
}

static void test_a_drain_serves_the_accept_queue_first(void **state)
{
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        start_world(round, 1 + round % 3, 1000);
        come(0, 100);
        server_drain_begin(&server);
        drive_run();
        assert_null(kernel_connect(SERVER_PORT));
        for (unsigned i = 0; i < 100; i++) {
            assert_int_equal(status_heard(clients[i]), 200);
            assert_true(peer_got_fin(clients[i]));
        }
        assert_int_equal(server.closed, 1);
        assert_int_equal(server.ended, 100);
        server_stop(&server);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_passed_socket_is_taken_over_and_not_bound_again),
        cmocka_unit_test(test_at_most_16_are_accepted_a_turn),
        cmocka_unit_test(test_connections_are_even_over_the_carriers),
        cmocka_unit_test(test_a_carrier_that_lost_its_connections_gets_the_next_ones),
        cmocka_unit_test(test_beyond_the_limit_a_client_is_told_503_and_can_read_it),
        cmocka_unit_test(test_out_of_descriptors_clients_are_told_503_and_nothing_spins),
        cmocka_unit_test(test_who_came_while_another_was_refused_got_neither_answer_nor_503),
        cmocka_unit_test(test_without_direct_slots_it_looks_ten_times_a_second),
        cmocka_unit_test(test_a_failed_accept_of_a_direct_slot_waits_too),
        cmocka_unit_test(test_without_memory_to_serve_a_client_is_told_503),
        cmocka_unit_test(test_a_drain_serves_the_accept_queue_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
