/* SPDX-License-Identifier: Apache-2.0 */
/* links: scripted kernel */
/*
 * Property: among clients that come, send in pieces, reset, half-close and read as
 * they like, on one to three carriers, everyone who stayed gets every answer once
 * and in order, and nothing is left at the end: no fiber, op, stack, descriptor,
 * buffer or session. Method: random storms on the scripted kernel, in many worlds
 * (few buffers, short queues, no cap on recv, late completions), a drain in the middle.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/time.h"
#include "kernel_server.h"

#define CLIENTS 40
#define ROUNDS 20
#define HOST "Host: a\r\n"
#define HEARD_MAX 65536

struct client {
    struct kernel_file *peer;
    char text[2048]; /* all that it sends */
    size_t length, sent;
    unsigned requests;
    unsigned first; /* number in its first request; the next ones count on */
    bool finished, left;
    char heard[HEARD_MAX];
    size_t heard_length;
    bool ended; /* it saw the server's FIN */
};

static struct kernel_server server;
static struct client clients[CLIENTS];

static void client_come(struct client *client, unsigned index)
{
    static const char *formats[] = {
        "GET /quick/%u HTTP/1.1\r\n" HOST "\r\n",
        "GET /slow/%u HTTP/1.1\r\n" HOST "\r\n",
        "POST /drop HTTP/1.1\r\n" HOST "X-Number: %u\r\nContent-Length: 7\r\n\r\n0123456",
        "POST /echo HTTP/1.1\r\n" HOST "X-Number: %u\r\nContent-Length: 5\r\n\r\nabcde",
    };
    memset(client, 0, sizeof(*client));
    client->peer = kernel_connect(SERVER_PORT);
    assert_non_null(client->peer);
    peer_window(client->peer, 64 + kernel_random(4000));
    client->first = index * 12; /* milliseconds, too */
    client->requests = (unsigned)kernel_random(12);
    for (unsigned i = 0; i < client->requests; i++) {
        client->length +=
            (size_t)snprintf(client->text + client->length, sizeof(client->text) - client->length,
                             formats[i % 4], client->first + i);
    }
}

static void client_hear(struct client *client)
{
    ssize_t got = peer_receive(client->peer, client->heard + client->heard_length,
                               1 + kernel_random(HEARD_MAX - 1 - client->heard_length));
    if (got > 0) {
        client->heard_length += (size_t)got;
    }
    client->ended = client->ended || got == 0;
}

static void client_act(struct client *client)
{
    if (client->left) {
        return;
    }
    if (kernel_random(400) == 0) {
        peer_reset(client->peer);
        client->left = true;
    } else if (client->sent < client->length) {
        size_t piece = 1 + kernel_random(kernel_random(2) == 0 ? 10 : 500);
        size_t left = client->length - client->sent;
        ssize_t sent =
            peer_send(client->peer, client->text + client->sent, piece < left ? piece : left);
        client->sent += sent > 0 ? (size_t)sent : 0;
    } else if (!client->finished && kernel_random(10) == 0) {
        peer_finish(client->peer);
        client->finished = true;
    }
    if (kernel_random(2) == 0) {
        client_hear(client);
    }
}

/* check - the answers are the right ones, in order. Returns how many. */
static unsigned check(const struct client *client)
{
    const char *at = client->heard;
    struct answer answer;
    unsigned count = 0;
    while (answer_next(&at, &answer)) {
        char expected[16];
        snprintf(expected, sizeof(expected), "%u", client->first + count);
        assert_int_equal(answer.status, 200);
        assert_string_equal(answer.body, count % 4 < 2    ? expected
                                         : count % 4 == 2 ? "dropped"
                                                          : "abcde");
        count++;
    }
    return count;
}

static void start_world(unsigned round, unsigned carriers)
{
    kernel_start(round);
    kernel_knobs.recv_cap = kernel_random(2) == 0;
    kernel_knobs.late_percent = (unsigned)kernel_random(70);
    kernel_knobs.chop_percent = (unsigned)kernel_random(70);
    kernel_knobs.buffers = 1 + (unsigned)kernel_random(20);
    kernel_knobs.sq_entries = 1 + (unsigned)kernel_random(30);
    kernel_knobs.cq_entries = 2 + (unsigned)kernel_random(30);
    drive_start(carriers);
    server_start_on(&server, carriers, 1000);
}

/* storm - returns when all have sent everything, or at the drain. */
static void storm(bool drains)
{
    unsigned steps = 0, busy;
    do {
        busy = 0;
        for (int i = 0; i < CLIENTS; i++) {
            client_act(&clients[i]);
            busy += !clients[i].left && clients[i].sent < clients[i].length;
        }
        if (kernel_random(3) == 0) {
            drive_run();
        } else if (kernel_random(10) == 0) {
            drive_pass(kernel_random(100) * NS_PER_MS);
        }
        if (drains && ++steps == 40) {
            server_drain_begin(&server);
            return;
        }
    } while (busy > 0);
}

static void settle(void)
{
    for (int turn = 0; turn < 400; turn++) {
        drive_pass(10 * NS_PER_MS);
        for (int i = 0; i < CLIENTS; i++) {
            if (!clients[i].left) {
                client_hear(&clients[i]);
            }
        }
    }
}

static void run_storm(unsigned round, unsigned carriers, bool drains)
{
    start_world(round, carriers);
    for (unsigned i = 0; i < CLIENTS; i++) {
        client_come(&clients[i], i);
    }
    storm(drains);
    settle();
    for (int i = 0; i < CLIENTS; i++) {
        const struct client *client = &clients[i];
        if (client->left) {
            continue;
        }
        unsigned answers = check(client);
        if (!drains && answers != client->requests) {
            fail_msg("client %d of round %u: %u answers to %u requests; heard \"%.300s\"", i, round,
                     answers, client->requests, client->heard);
        }
        if (client->finished) {
            assert_true(client->ended);
        }
    }
    server_stop(&server);
}

static void test_everyone_who_stays_is_answered(void **state)
{
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        run_storm(round, 1 + round % 3, false);
    }
}

static void test_a_drain_in_the_middle_leaves_nothing_behind(void **state)
{
    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        run_storm(1000 + round, 1 + round % 3, true);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_everyone_who_stays_is_answered),
        cmocka_unit_test(test_a_drain_in_the_middle_leaves_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
