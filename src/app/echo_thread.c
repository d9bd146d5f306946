/* SPDX-License-Identifier: Apache-2.0 */
/*
 * echo_thread.c - echo.threads=platform: one new OS thread for each connection.
 *
 *   fiber:  starts it, parks ........................ woken: closes the descriptor
 *   thread:            blocking calls until the end, posts -^, is no more
 *
 * The fiber owns connection and descriptor all the while, so that the drain finds
 * and ends them as it does with fibers alone. The thread is detached: waiting for
 * its very end would hold the carrier.
 */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "app/echo_parts.h"
#include "base/log.h"
#include "fiber/fiber.h"
#include "ring/sys.h"

#define THREAD_STACK_BYTES ((size_t)262144)
#define THREAD_BUFFER_BYTES RING_BUFFER_BYTES /* as a fiber gets them */

#define COMPLAINT_INTERVAL_NS (60 * NS_PER_S)

static void linger(int fd)
{
    char dropped[THREAD_BUFFER_BYTES];
    uint64_t deadline_ns = sys_clock_ns() + ECHO__LINGER_NS;
    size_t total = 0;
    ssize_t got = 1;

    while (got > 0 && total < ECHO__LINGER_BYTES && sys_poll(fd, POLLIN, deadline_ns) > 0) {
        got = sys_recv(fd, dropped, sizeof(dropped));
        total += got > 0 ? (size_t)got : 0;
    }
}

static void echo_bytes(int fd)
{
    char bytes[THREAD_BUFFER_BYTES];
    ssize_t got;

    while ((got = sys_recv_wait(fd, bytes, sizeof(bytes))) > 0) {
        if (sys_send_wait(fd, bytes, (size_t)got) < 0) {
            return;
        }
    }
}

static void *thread_run(void *argument)
{
    struct echo_client *client = argument;
    struct echo *echo = client->echo;
    struct carrier *carrier = client->conn.carrier;
    int fd = client->conn.fd;
    char name[48];

    snprintf(name, sizeof(name), "%s-%u-thread-%llu", echo->setup.name, echo->port,
             (unsigned long long)client->number);
    log_set_thread(name);
    sys_thread_name(name);
    if (!echo->setup.greets) {
        echo_bytes(fd);
    } else if (echo__greet(fd)) {
        linger(fd);
    }
    carrier_post(carrier, &client->message); /* client is gone from here on */
    atomic_fetch_sub(&echo->threads, 1);
    return NULL;
}

static void run_done(struct message *message)
{
    struct echo_client *client = container_of(message, struct echo_client, message);
    client->done = true;
    fiber_wake(client->fiber);
}

static void complain(struct echo *echo, int error)
{
    uint64_t now_ns = sys_clock_ns();
    uint64_t before_ns = atomic_load(&echo->complained_ns);
    if ((before_ns == 0 || now_ns - before_ns >= COMPLAINT_INTERVAL_NS) &&
        atomic_compare_exchange_strong(&echo->complained_ns, &before_ns, now_ns)) {
        log_warn("app.echo",
                 "no thread for a connection on port %u (%s): it is closed; raise the limit "
                 "('ulimit -u', TasksMax=, kernel.threads-max) or use echo.threads=fibers",
                 echo->port, strerrordesc_np(error));
    }
}

/* start_thread - detached. Returns 0; EAGAIN no thread to be had. */
static int start_thread(struct echo_client *client)
{
    pthread_attr_t attributes;
    pthread_t thread;

    int error = pthread_attr_init(&attributes);
    if (error != 0) {
        return error;
    }
    pthread_attr_setstacksize(&attributes, THREAD_STACK_BYTES);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    atomic_fetch_add(&client->echo->threads, 1);
    error = pthread_create(&thread, &attributes, thread_run, client);
    if (error != 0) {
        atomic_fetch_sub(&client->echo->threads, 1);
    }
    pthread_attr_destroy(&attributes);
    return error;
}

void echo__run_on_thread(struct echo_client *client)
{
    client->message.run = run_done;
    int error = start_thread(client);
    if (error != 0) {
        atomic_fetch_add_explicit(&client->listener->refused, 1, memory_order_relaxed);
        complain(client->echo, error);
        return;
    }
    while (!client->done) {
        (void)fiber_park_through("platform thread", 0);
    }
}
