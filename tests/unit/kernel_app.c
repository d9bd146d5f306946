/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_app.c - see kernel_app.h.
 */
#include "kernel_app.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "app/routes.h"
#include "base/log.h"
#include "base/time.h"
#include "io/pool.h"

/* Two ports, as app/run.c opens them. */
struct port {
    struct listener listener;
    struct service service;
};

static struct port app_port, remote_port;
static bool remote_is_ours;
struct connection_limit world_limit;
struct client_pool world_calls;
static struct pool offload;
struct app world_app;
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
                                      .limits = {&world_limit, NULL},
                                      .serve = service_serve,
                                      .refusal = service_refusal,
                                      .context = &port->service};
    struct service_setup service = {.name = "http",
                                    .router = *router,
                                    .limits = {.head_bytes_max = 8192, .body_bytes_max = 1 << 20},
                                    .head_timeout_ns = 20 * NS_PER_S,
                                    .keep_alive_timeout_ns = 60 * NS_PER_S,
                                    .context = &world_app,
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

void world_start(unsigned round, bool remote_ours)
{
    struct log_setup quiet = {.level = LOG_OFF};
    log_init(&quiet);
    kernel_start_uneven(round);
    drive_start(1);
    memset(&world_app, 0, sizeof(world_app));
    world_limit = (struct connection_limit){.max = 100000};
    world_app.remote = &world_calls;
    world_app.fanout_calls_max = 1000;
    struct client_pool_setup setup = {.url = "http://127.0.0.1:8085",
                                      .offload = &offload,
                                      .carriers = drive_carriers(),
                                      .carrier_count = 1};
    assert_int_equal(client_pool_init(&world_calls, &setup), 0);
    port_open(&app_port, SERVER_PORT, &routes_app);
    remote_is_ours = remote_ours;
    if (remote_ours) {
        port_open(&remote_port, REMOTE_PORT, &routes_remote);
    } else {
        kernel_serve(REMOTE_PORT);
    }
    drive_run();
}

void world_stop(void)
{
    port_drain(&app_port);
    client_pool_close(&world_calls);
    drive_run();
    if (remote_is_ours) {
        port_drain(&remote_port);
        service_fini(&remote_port.service);
        listener_fini(&remote_port.listener);
    }
    service_fini(&app_port.service);
    listener_fini(&app_port.listener);
    assert_int_equal(atomic_load(&world_limit.live), 0);
    drive_stop();
    client_pool_fini(&world_calls);
}

struct kernel_file *world_get(const char *path)
{
    char text[512];
    struct kernel_file *client = kernel_connect(SERVER_PORT);
    assert_non_null(client);
    snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", path);
    peer_say(client, text);
    drive_run();
    return client;
}

void world_expect(struct kernel_file *client, int status, const char *part)
{
    const char *heard = peer_heard(client);
    if (!answer_next(&heard, &answer) || answer.status != status ||
        strstr(answer.body, part) == NULL) {
        fail_msg("expected %d \"%s\", heard \"%.400s\"", status, part, peer_heard(client));
    }
}
