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
#include <stdio.h>
#include <string.h>

#include "app/app.h"
#include "app/routes.h"
#include "base/log.h"
#include "base/time.h"
#include "io/pool.h"
#include "kernel_server.h"

#define REMOTE_PORT 8085
#define ROUNDS 30

/* Two ports, as app/run.c opens them. */
struct port {
    struct listener listener;
    struct service service;
};

static struct port app_port, remote_port;
static bool remote_is_ours;
static struct connection_limit limit;
static struct client_pool calls;
static struct pool offload;
static struct app app;
static struct answer answer;

static void on_ended(void *context)
{
    (void)context;
}

static void port_open(struct port *port, uint16_t number, const struct router *router)
{
    struct listener_setup listener = {.name = "http",
                                      .port = number,
                                      .carriers = drive_carriers(),
                                      .carrier_count = 1,
                                      .limits = {&limit, NULL},
                                      .serve = service_serve,
                                      .refusal = service_refusal,
                                      .context = &port->service};
    struct service_setup service = {.name = "http",
                                    .router = *router,
                                    .limits = {.head_bytes_max = 8192, .body_bytes_max = 1 << 20},
                                    .head_timeout_ns = 20 * NS_PER_S,
                                    .keep_alive_timeout_ns = 60 * NS_PER_S,
                                    .context = &app,
                                    .carriers = drive_carriers(),
                                    .carrier_count = 1,
                                    .on_ended = on_ended};
    assert_int_equal(listener_open(&port->listener, &listener), 0);
    assert_int_equal(service_init(&port->service, &service, number), 0);
    listener_start(&port->listener);
}

static void port_drain(struct port *port)
{
    service_drain(&port->service);
    listener_drain(&port->listener);
    drive_pass(30 * NS_PER_S);
}

static void start_world(unsigned round, bool remote_ours)
{
    struct log_setup quiet = {.level = LOG_OFF};
    log_init(&quiet);
    kernel_start(round);
    kernel_knobs.recv_cap = round % 2 == 0;
    kernel_knobs.late_percent = (unsigned)kernel_random(60);
    drive_start(1);
    memset(&app, 0, sizeof(app));
    limit = (struct connection_limit){.max = 100000};
    app.remote = &calls;
    struct client_pool_setup setup = {.url = "http://127.0.0.1:8085",
                                      .offload = &offload,
                                      .carriers = drive_carriers(),
                                      .carrier_count = 1};
    assert_int_equal(client_pool_init(&calls, &setup), 0);
    port_open(&app_port, SERVER_PORT, &routes_app);
    remote_is_ours = remote_ours;
    if (remote_ours) {
        port_open(&remote_port, REMOTE_PORT, &routes_remote);
    } else {
        kernel_serve(REMOTE_PORT);
    }
    drive_run();
}

static void stop_world(void)
{
    port_drain(&app_port);
    client_pool_close(&calls);
    drive_run();
    if (remote_is_ours) {
        port_drain(&remote_port);
        service_fini(&remote_port.service);
        listener_fini(&remote_port.listener);
    }
    service_fini(&app_port.service);
    listener_fini(&app_port.listener);
    assert_int_equal(atomic_load(&limit.live), 0);
    drive_stop();
    client_pool_fini(&calls);
}

static struct kernel_file *get(const char *path)
{
    char text[128];
    struct kernel_file *client = kernel_connect(SERVER_PORT);
    assert_non_null(client);
    snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", path);
    peer_say(client, text);
    drive_run();
    return client;
}

static void expect(struct kernel_file *client, int status, const char *part)
{
    const char *heard = peer_heard(client);
    if (!answer_next(&heard, &answer) || answer.status != status ||
        strstr(answer.body, part) == NULL) {
        fail_msg("expected %d \"%s\", heard \"%.400s\"", status, part, peer_heard(client));
    }
}

/* ------------------------------------------------------------ with the real remote */

static void test_it_takes_as_long_as_the_remote_and_passes_the_answer_on(void **state)
{
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct kernel_file *clients[40];
        start_world(round, true);
        for (int i = 0; i < 40; i++) {
            clients[i] = get("/blocking/2");
        }
        drive_pass(2 * NS_PER_S - NS_PER_MS);
        for (int i = 0; i < 40; i++) {
            assert_string_equal(peer_heard(clients[i]), "");
        }
        drive_pass(2 * NS_PER_MS);
        for (int i = 0; i < 40; i++) {
            expect(clients[i], 200, "Hello, delayed by 2 seconds.");
        }
        expect(get("/blocking/0"), 200, "Hello, delayed by 0 seconds.");
        struct kernel_file *client = get("/blocking/250ms");
        drive_pass(251 * NS_PER_MS);
        expect(client, 200, "Hello, delayed by 250ms seconds.");
        assert_int_equal(app.remote_invocations, 42);
        stop_world();
    }
}

static void test_a_bad_delay_is_a_400_and_reaches_nobody(void **state)
{
    (void)state;
    static const char *paths[] = {"/blocking/-1",  "/blocking/abc", "/blocking/1e999",
                                  "/blocking/25h", "/blocking/1.",  "/blocking/%20"};
    start_world(0, true);
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        expect(get(paths[i]), 400, "\"status\":400");
    }
    assert_int_equal(app.remote_invocations, 0);
    stop_world();
}

static void test_a_clients_reset_undoes_the_chain_up_to_the_remotes_sleep(void **state)
{
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        start_world(round, true);
        struct kernel_file *client = get("/blocking/3600");
        drive_pass(NS_PER_S);
        assert_int_equal(atomic_load(&limit.live), 2); /* the client's and the call's */
        uint64_t now_ns = kernel_now_ns();
        peer_reset(client);
        drive_run();
        assert_int_equal(atomic_load(&limit.live), 0);
        assert_int_equal(calls.open, 0);
        assert_int_equal(kernel_now_ns(), now_ns);
        stop_world();
    }
}

/* ------------------------------------------------------------ with a bad remote */

static void test_each_failure_of_the_remote_has_its_status(void **state)
{
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct kernel_file *client, *remote;
        start_world(round, false);
        kernel_refuse(REMOTE_PORT);
        expect(get("/blocking/1"), 502, "refused");

        kernel_hang(REMOTE_PORT);
        client = get("/blocking/1");
        drive_pass(2 * NS_PER_S - NS_PER_MS);
        assert_string_equal(peer_heard(client), "");
        drive_pass(2 * NS_PER_MS);
        expect(client, 504, "in time");

        kernel_serve(REMOTE_PORT);
        client = get("/blocking/1");
        drive_pass(6 * NS_PER_S - NS_PER_MS); /* n + 5 s */
        assert_string_equal(peer_heard(client), "");
        drive_pass(2 * NS_PER_MS);
        expect(client, 504, "in time");
        remote = kernel_accept(REMOTE_PORT);
        assert_true(peer_got_reset(remote));

        client = get("/blocking/1");
        peer_reset(kernel_accept(REMOTE_PORT));
        drive_run();
        expect(client, 502, "closed the connection");

        client = get("/blocking/1");
        peer_say(kernel_accept(REMOTE_PORT), "220 mail ESMTP\r\n");
        drive_run();
        expect(client, 502, "\"status\":502");

        client = get("/blocking/1");
        peer_say(kernel_accept(REMOTE_PORT), "HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n");
        drive_run();
        expect(client, 502, "status 500");

        client = get("/blocking/1");
        remote = kernel_accept(REMOTE_PORT);
        if (remote != NULL) {
            fail_msg("the clean connection was not used again");
        }
        stop_world();
    }
}

static void test_without_a_descriptor_for_the_call_it_is_a_503_at_once(void **state)
{
    (void)state;
    start_world(0, false);
    kernel_knobs.descriptors = 3 + kernel_open_descriptors() + 1; /* the client's own */
    expect(get("/blocking/1"), 503, "descriptor");
    stop_world();
}

/* ------------------------------------------------------------ health */

static void test_health_tells_whether_new_requests_are_welcome(void **state)
{
    (void)state;
    start_world(0, true);
    expect(get("/actuator/health"), 200, "{\"status\":\"UP\"}");
    expect(get("/actuator/health/liveness"), 200, "{\"status\":\"UP\"}");
    expect(get("/actuator/health/readiness"), 200, "{\"status\":\"UP\"}");
    atomic_store(&app.life, LIFE_LEAVING);
    expect(get("/actuator/health"), 503, "{\"status\":\"OUT_OF_SERVICE\"}");
    expect(get("/actuator/health/liveness"), 200, "{\"status\":\"UP\"}");
    expect(get("/actuator/health/readiness"), 503, "{\"status\":\"OUT_OF_SERVICE\"}");
    expect(get("/currentThread"), 200, "Fiber[#");
    stop_world();
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
