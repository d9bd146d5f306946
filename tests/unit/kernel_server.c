/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_server.c - see kernel_server.h.
 */
#include "kernel_server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "io/sleep.h"
#include "ring/carrier.h"

static struct kernel_server *server_of(const struct http_exchange *exchange)
{
    return exchange->context;
}

static uint64_t number(struct slice text)
{
    uint64_t value = 0;
    if (slice_to_u64(text, &value) < 0) {
        kernel_violation("a test asks for \"%.*s\"", (int)text.length, text.at);
    }
    return value;
}

static void quick(struct http_exchange *exchange)
{
    server_of(exchange)->handled++;
    http_respond_text(exchange, exchange->params[0]);
}

static void slow(struct http_exchange *exchange)
{
    server_of(exchange)->handled++;
    if (sleep_for(number(exchange->params[0]) * NS_PER_MS) < 0) {
        server_of(exchange)->cancelled++;
        return;
    }
    http_respond_text(exchange, exchange->params[0]);
}

static void late(struct http_exchange *exchange)
{
    exchange->later = slow;
}

static void big(struct http_exchange *exchange)
{
    size_t length = number(exchange->params[0]);
    char *body = arena_alloc(exchange->arena, length);
    server_of(exchange)->handled++;
    if (body == NULL) {
        http_respond_error(exchange, 503, SLICE("too big"), sys_wall_ns());
        return;
    }
    memset(body, 'b', length);
    http_respond_text(exchange, (struct slice){.at = body, .length = length});
}

static void echo(struct http_exchange *exchange)
{
    server_of(exchange)->handled++;
    http_respond_text(exchange, exchange->request->body);
}

static void drop(struct http_exchange *exchange)
{
    server_of(exchange)->handled++;
    http_respond_text(exchange, SLICE("dropped"));
}

static const struct route routes[] = {
    {HTTP_GET, "/quick/{id}", quick, ROUTE_QUICK, NULL},
    {HTTP_GET, "/slow/{ms}", slow, ROUTE_PARKS, NULL},
    {HTTP_GET, "/late/{ms}", late, ROUTE_PARKS, NULL},
    {HTTP_GET, "/big/{n}", big, ROUTE_QUICK, NULL},
    {HTTP_POST, "/echo", echo, ROUTE_BODY, NULL},
    {HTTP_POST, "/drop", drop, ROUTE_QUICK, NULL},
};

static void on_ended(void *context)
{
    struct kernel_server *server = context;
    server->ended++;
}

static void on_closed(struct listener *listener)
{
    container_of(listener, struct kernel_server, listener)->closed++;
}

void server_start_on(struct kernel_server *server, unsigned carriers, unsigned connections_max)
{
    struct log_setup quiet = {.level = LOG_OFF};
    log_init(&quiet);
    memset(server, 0, sizeof(*server));
    server->limit.max = connections_max;
    struct listener_setup listener = {
        .name = "http",
        .port = SERVER_PORT,
        .carriers = drive_carriers(),
        .carrier_count = carriers,
        .limits = {&server->limit, NULL},
        .serve = service_serve,
        .refusal = service_refusal,
        .context = &server->service,
    };
    struct service_setup service = {
        .name = "http",
        .router = {.routes = routes, .count = sizeof(routes) / sizeof(routes[0])},
        .limits = {.head_bytes_max = 8192, .body_bytes_max = 1 << 20},
        .head_timeout_ns = 20 * NS_PER_S,
        .keep_alive_timeout_ns = 60 * NS_PER_S,
        .context = server,
        .carriers = drive_carriers(),
        .carrier_count = carriers,
        .on_ended = on_ended,
    };
    if (listener_open(&server->listener, &listener) < 0 ||
        service_init(&server->service, &service, server->listener.port) < 0) {
        kernel_violation("the server could not be opened");
    }
    server->listener.on_closed = on_closed;
    listener_start(&server->listener);
    drive_run();
}

void server_drain_begin(struct kernel_server *server)
{
    service_drain(&server->service);
    listener_drain(&server->listener);
}

unsigned live_connections(struct kernel_server *server)
{
    return atomic_load(&server->limit.live);
}

void server_stop(struct kernel_server *server)
{
    if (server->closed == 0 && !atomic_load(&server->service.draining)) {
        server_drain_begin(server);
    }
    drive_pass(90 * NS_PER_S);
    if (server->closed != 1 || live_connections(server) != 0) {
        kernel_violation("after the drain: listener closed %u times, %u connections live",
                         server->closed, live_connections(server));
    }
    for (unsigned i = 0; i < server->service.setup.carrier_count; i++) {
        unsigned counted = atomic_load(&drive_carriers()[i].connections);
        if (counted != 0) {
            kernel_violation("carrier %u counts %u connections and has none", i, counted);
        }
    }
    service_fini(&server->service);
    listener_fini(&server->listener);
    drive_stop();
}

/* ------------------------------------------------------------ answers */

const struct answer *answer_expect(const char **heard, int status, const char *body)
{
    static struct answer answer;
    if (!answer_next(heard, &answer)) {
        fail_msg("no answer in \"%.200s\", expected %d %s", *heard, status, body);
    }
    assert_int_equal(answer.status, status);
    if (body != NULL) {
        assert_string_equal(answer.body, body);
    }
    return &answer;
}

const struct answer *answer_expect_only(struct kernel_file *client, int status, const char *body)
{
    const char *heard = peer_heard(client);
    const struct answer *answer = answer_expect(&heard, status, body);
    assert_string_equal(heard, "");
    return answer;
}

bool peer_is_closed(struct kernel_file *client)
{
    return peer_got_fin(client) && !peer_got_reset(client);
}

bool answer_has(const struct answer *answer, const char *line)
{
    const char *at = strstr(answer->head, line);
    return at != NULL && (at == answer->head || at[-1] == '\n') && at[strlen(line)] == '\r';
}

bool answer_next(const char **heard, struct answer *answer)
{
    const char *begin = *heard;
    const char *end = strstr(begin, "\r\n\r\n");
    if (end == NULL) {
        return false;
    }
    size_t head_length = (size_t)(end + 4 - begin);
    if (head_length >= sizeof(answer->head) ||
        sscanf(begin, "HTTP/1.1 %d ", &answer->status) != 1) {
        kernel_violation("no answer: \"%.80s\"", begin);
    }
    memcpy(answer->head, begin, head_length);
    answer->head[head_length] = '\0';
    answer->body_length = 0;
    const char *field = strstr(answer->head, "\r\nContent-Length: ");
    if (field != NULL) {
        answer->body_length = strtoul(field + 18, NULL, 10);
    }
    if (strlen(end + 4) < answer->body_length) {
        return false;
    }
    size_t copied =
        answer->body_length < sizeof(answer->body) ? answer->body_length : sizeof(answer->body) - 1;
    memcpy(answer->body, end + 4, copied);
    answer->body[copied] = '\0';
    *heard = end + 4 + answer->body_length;
    return true;
}
