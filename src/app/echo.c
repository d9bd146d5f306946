/* SPDX-License-Identifier: Apache-2.0 */
/*
 * echo.c - greet or echo, one fiber a connection.
 *
 * io/listener.c calls echo_serve with a new connection. There is no time limit
 * on silence in RFC 862: keep-alive probes find a peer that is gone, and one that
 * does not read holds two receive buffers (io/conn.h) and a parked fiber.
 */
#include "app/echo.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/echo_parts.h"
#include "base/log.h"
#include "fiber/fiber.h"
#include "ring/sys.h"

/* Probes of an idle peer, seconds. */
#define KEEPALIVE_IDLE_S 60
#define KEEPALIVE_INTERVAL_S 10

/* The greeter tells its figures this often. */
#define CONNECTIONS_PER_LINE 1000

static const struct slice greeting = {.at = "[echo] Hello World\n", .length = 19};

bool echo__greet(int fd)
{
    char said[256];
    (void)sys_send_last(fd, greeting.at, greeting.length); /* a client that is gone: close */
    sys_shutdown(fd, SHUT_WR);
    /* A close with unread bytes would be a reset, which may overtake the greeting. */
    return sys_recv(fd, said, sizeof(said)) > 0;
}

static void greet(struct echo_client *client)
{
    if (echo__greet(client->conn.fd)) {
        conn_linger(&client->conn, ECHO__LINGER_BYTES,
                    fiber_current()->sched->now_ns + ECHO__LINGER_NS);
    }
}

/* echo_bytes - until the peer has finished, has gone, or the server drains and all that came is back. */
static void echo_bytes(struct echo_client *client)
{
    struct conn *conn = &client->conn;
    struct slice bytes;
    while (conn_peek_idle(conn, &bytes, 0) > 0) {
        if (conn_write(conn, bytes, 0) < 0) {
            return;
        }
        conn_consume(conn, bytes.length);
    }
}

static void client_run(void *argument)
{
    struct echo_client *client = argument;
    struct echo *echo = client->echo;
    struct listener *listener = client->listener;

    if (echo->setup.platform) {
        echo__run_on_thread(client);
    } else if (echo->setup.greets) {
        greet(client);
    } else {
        echo_bytes(client);
    }
    conn_close(&client->conn);
    list_remove(&client->link);
    slab_give(&client->lane->slab, client);
    listener_release(listener);
    if (atomic_load_explicit(&echo->draining, memory_order_relaxed)) {
        echo->setup.on_ended(echo->setup.context);
    }
}

static double milliseconds(uint64_t ns)
{
    return (double)ns / (double)NS_PER_MS;
}

/* count - the hand-over. Returns the connection's number. */
static uint64_t count(struct echo *echo)
{
    uint64_t number = echo_wait_note(&echo->wait, sys_clock_ns());
    if (echo->setup.greets && number % CONNECTIONS_PER_LINE == 0) {
        log_info("app.echo", "maxTime now: %.3f ms", milliseconds(atomic_load(&echo->wait.max_ns)));
        log_info("app.echo", "avgTime now: %.3f ms",
                 milliseconds(echo_wait_average_ns(&echo->wait)));
    }
    return number;
}

/* end_early - the server drains: the connection ends when what was received has been sent back. */
static void end_early(struct echo_client *client)
{
    if (client->echo->setup.platform) {
        sys_shutdown(client->conn.fd, SHUT_RD); /* the thread still reads what has come */
    } else {
        conn_interrupt(&client->conn);
    }
}

int echo_serve(struct listener *listener, int fd)
{
    struct echo *echo = listener->setup.context;
    struct carrier *carrier = carrier_current();
    struct echo_lane *lane = &echo->lanes[carrier->setup.number];

    struct echo_client *client = slab_take(&lane->slab);
    if (client == NULL) {
        return -ENOMEM;
    }
    client->echo = echo;
    client->lane = lane;
    client->listener = listener;
    client->number = count(echo);
    struct fiber_name name = {.prefix = echo->fiber_prefix, .number = client->number};
    conn_open(&client->conn, fd);
    client->fiber = fiber_spawn(&carrier->sched, name, client_run, client);
    if (client->fiber == NULL) {
        slab_give(&lane->slab, client);
        return -ENOMEM;
    }
    list_append(&lane->clients, &client->link);
    if (atomic_load_explicit(&echo->draining, memory_order_relaxed)) {
        end_early(client);
    }
    return 0;
}

static void run_drain(struct message *message)
{
    struct echo_lane *lane = container_of(message, struct echo_lane, drain);
    for (struct list *at = lane->clients.next; at != &lane->clients; at = at->next) {
        end_early(container_of(at, struct echo_client, link));
    }
}

void echo_drain(struct echo *echo)
{
    atomic_store(&echo->draining, true);
    for (unsigned i = 0; i < echo->setup.carrier_count; i++) {
        carrier_post(&echo->setup.carriers[i], &echo->lanes[i].drain);
    }
}

size_t echo_refusal(char *dst, size_t capacity)
{
    (void)dst;
    (void)capacity;
    return 0;
}

int echo_init(struct echo *echo, const struct echo_setup *setup, const struct listener *listener)
{
    memset(echo, 0, sizeof(*echo));
    echo->setup = *setup;
    echo->port = listener->port;
    snprintf(echo->fiber_prefix, sizeof(echo->fiber_prefix), "%s-%u-conn-", setup->name,
             echo->port);
    echo->lanes = calloc(setup->carrier_count, sizeof(*echo->lanes));
    if (echo->lanes == NULL) {
        return -ENOMEM;
    }
    for (unsigned i = 0; i < setup->carrier_count; i++) {
        struct echo_lane *lane = &echo->lanes[i];
        lane->echo = echo;
        lane->drain.run = run_drain;
        list_init(&lane->clients);
        slab_init(&lane->slab, sizeof(struct echo_client), 256);
    }
    /* Accepted sockets inherit it, so that it costs no call for each. */
    sys_keepalive(listener->fd, KEEPALIVE_IDLE_S, KEEPALIVE_INTERVAL_S);
    return 0;
}

void echo_fini(struct echo *echo)
{
    while (atomic_load(&echo->threads) > 0) {
        sys_sleep_until(sys_clock_ns() + NS_PER_MS / 10);
    }
    for (unsigned i = 0; i < echo->setup.carrier_count; i++) {
        slab_fini(&echo->lanes[i].slab);
    }
    free(echo->lanes);
}
