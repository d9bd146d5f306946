/* SPDX-License-Identifier: Apache-2.0 */
/* links: scripted kernel */
/*
 * Property: /blocking/{n} takes as long as its remote, passes the answer on, and
 * tells each failure with the status of the contract; when the client resets, the
 * chain is undone up to the remote's sleep. Method: the app's and the remote's real
 * routes in one world of the scripted kernel, or the test as the remote.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "base/time.h"
#include "kernel_app.h"

#define ROUNDS 30

/* ------------------------------------------------------------ with the real remote */

static void test_it_takes_as_long_as_the_remote_and_passes_the_answer_on(void **state)
{
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct kernel_file *clients[40];
        world_start(round, true);
        for (int i = 0; i < 40; i++) {
            clients[i] = world_get("/blocking/2");
        }
        drive_pass(2 * NS_PER_S - NS_PER_MS);
        for (int i = 0; i < 40; i++) {
            assert_string_equal(peer_heard(clients[i]), "");
        }
        drive_pass(2 * NS_PER_MS);
        for (int i = 0; i < 40; i++) {
            world_expect(clients[i], 200, "Hello, delayed by 2 seconds.");
        }
        world_expect(world_get("/blocking/0"), 200, "Hello, delayed by 0 seconds.");
        struct kernel_file *client = world_get("/blocking/250ms");
        drive_pass(251 * NS_PER_MS);
        world_expect(client, 200, "Hello, delayed by 250ms seconds.");
        assert_int_equal(world_app.remote_invocations, 42);
        world_stop();
    }
}

static void test_a_bad_delay_is_a_400_and_reaches_nobody(void **state)
{
    (void)state;
    static const char *paths[] = {"/blocking/-1",  "/blocking/abc", "/blocking/1e999",
                                  "/blocking/25h", "/blocking/1.",  "/blocking/%20"};
    world_start(0, true);
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        world_expect(world_get(paths[i]), 400, "\"status\":400");
    }
    assert_int_equal(world_app.remote_invocations, 0);
    world_stop();
}

static void test_a_clients_reset_undoes_the_chain_up_to_the_remotes_sleep(void **state)
{
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        world_start(round, true);
        struct kernel_file *client = world_get("/blocking/3600");
        drive_pass(NS_PER_S);
        assert_int_equal(atomic_load(&world_limit.live), 2); /* the client's and the call's */
        uint64_t now_ns = kernel_now_ns();
        peer_reset(client);
        drive_run();
        assert_int_equal(atomic_load(&world_limit.live), 0);
        assert_int_equal(world_calls.open, 0);
        assert_int_equal(kernel_now_ns(), now_ns);
        world_stop();
    }
}

/* ------------------------------------------------------------ with a bad remote */

static void test_each_failure_of_the_remote_has_its_status(void **state)
{
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct kernel_file *client, *remote;
        world_start(round, false);
        kernel_refuse(REMOTE_PORT);
        world_expect(world_get("/blocking/1"), 502, "refused");

        kernel_hang(REMOTE_PORT);
        client = world_get("/blocking/1");
        drive_pass(2 * NS_PER_S - NS_PER_MS);
        assert_string_equal(peer_heard(client), "");
        drive_pass(2 * NS_PER_MS);
        world_expect(client, 504, "in time");

        kernel_serve(REMOTE_PORT);
        client = world_get("/blocking/1");
        drive_pass(6 * NS_PER_S - NS_PER_MS); /* n + 5 s */
        assert_string_equal(peer_heard(client), "");
        drive_pass(2 * NS_PER_MS);
        world_expect(client, 504, "in time");
        remote = kernel_accept(REMOTE_PORT);
        assert_true(peer_got_reset(remote));

        client = world_get("/blocking/1");
        peer_reset(kernel_accept(REMOTE_PORT));
        drive_run();
        world_expect(client, 502, "closed the connection");

        client = world_get("/blocking/1");
        peer_say(kernel_accept(REMOTE_PORT), "220 mail ESMTP\r\n");
        drive_run();
        world_expect(client, 502, "\"status\":502");

        client = world_get("/blocking/1");
        peer_say(kernel_accept(REMOTE_PORT), "HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n");
        drive_run();
        world_expect(client, 502, "status 500");

        client = world_get("/blocking/1");
        remote = kernel_accept(REMOTE_PORT);
        if (remote != NULL) {
            fail_msg("the clean connection was not used again");
        }
        world_stop();
    }
}

static void test_without_a_descriptor_for_the_call_it_is_a_503_at_once(void **state)
{
    (void)state;
    world_start(0, false);
    kernel_knobs.descriptors = 3 + kernel_open_descriptors() + 1; /* the client's own */
    world_expect(world_get("/blocking/1"), 503, "descriptor");
    world_stop();
}

/* ------------------------------------------------------------ health */

static void test_health_tells_whether_new_requests_are_welcome(void **state)
{
    (void)state;
    world_start(0, true);
    world_expect(world_get("/actuator/health"), 200, "{\"status\":\"UP\"}");
    world_expect(world_get("/actuator/health/liveness"), 200, "{\"status\":\"UP\"}");
    world_expect(world_get("/actuator/health/readiness"), 200, "{\"status\":\"UP\"}");
    atomic_store(&world_app.life, LIFE_LEAVING);
    world_expect(world_get("/actuator/health"), 503, "{\"status\":\"OUT_OF_SERVICE\"}");
    world_expect(world_get("/actuator/health/liveness"), 200, "{\"status\":\"UP\"}");
    world_expect(world_get("/actuator/health/readiness"), 503, "{\"status\":\"OUT_OF_SERVICE\"}");
    world_expect(world_get("/currentThread"), 200, "Fiber[#");
    world_stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_takes_as_long_as_the_remote_and_passes_the_answer_on),
        cmocka_unit_test(test_a_bad_delay_is_a_400_and_reaches_nobody),
        cmocka_unit_test(test_a_clients_reset_undoes_the_chain_up_to_the_remotes_sleep),
        cmocka_unit_test(test_each_failure_of_the_remote_has_its_status),
        cmocka_unit_test(test_without_a_descriptor_for_the_call_it_is_a_503_at_once),
        cmocka_unit_test(test_health_tells_whether_new_requests_are_welcome),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
