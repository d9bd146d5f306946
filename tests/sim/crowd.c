/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crowd.c - who comes, when, to which port, and with which habits.
 */
#include <stdlib.h>
#include <string.h>

#include "client.h"

#define CROWD_MAX 128

static struct client clients[CROWD_MAX];
static unsigned count;

static void draw_habits(struct client *client)
{
    static const size_t pieces[] = {3, 40, 400, 100000};
    client->conduct = (enum conduct)kernel_random(CONDUCTS);
    client->half_closes =
        client->conduct == FINISHES || (client->conduct != STAYS && kernel_random(2) == 0);
    client->slow_reader = kernel_random(6) == 0;
    client->dawdles = kernel_random(8) == 0;
    client->piece_max = pieces[kernel_random(4)];
    if (client->conduct == RESETS || client->conduct == GOES || client->conduct == FALLS_MUTE) {
        client->quit_ns = 1 + kernel_random(kernel_random(2) == 0 ? 3 * NS_PER_S : 50 * NS_PER_MS);
    }
}

static void draw_port(struct client *client)
{
    switch (kernel_random(10)) {
    case 0:
        client->port = SIM_GREETER_PORT;
        client->talk = TALK_GREETER;
        return;
    case 1:
        client->port = SIM_ECHO_PORT;
        client->talk = TALK_ECHO;
        return;
    case 2:
        client->port = sim_world.remote_is_ours ? SIM_REMOTE_PORT : SIM_APP_PORT;
        return;
    default:
        client->port = SIM_APP_PORT;
    }
}

static void draw_bytes(struct client *client)
{
    char bytes[64];
    for (uint64_t pieces = kernel_random(200); pieces > 0; pieces--) {
        for (size_t i = 0; i < sizeof(bytes); i++) {
            bytes[i] = (char)('!' + kernel_random(90));
        }
        client_put(client, bytes, sizeof(bytes));
    }
    client->conduct =
        client->conduct == LEAVES || client->conduct == STAYS ? FINISHES : client->conduct;
    client->half_closes = client->half_closes || client->conduct == FINISHES;
    client->dawdles = false;
}

static void draw_requests(struct client *client)
{
    uint64_t wanted =
        kernel_random(12) == 0 ? 0 : 1 + kernel_random(kernel_random(2) == 0 ? 3 : REQUESTS_MAX);
    bool more = true;
    for (uint64_t i = 0; i < wanted && more; i++) {
        more = request_add(client);
    }
    if (!more && kernel_random(3) != 0) { /* what follows the last request is never answered */
        static const char smuggled[] = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";
        client_put(client, smuggled, sizeof(smuggled) - 1);
    } else if (more && wanted > 0 && kernel_random(16) == 0) {
        const struct request *last = &client->requests[client->count - 1];
        client->torso = 1 + kernel_random(last->end - last->begin - 8); /* the method is seen */
    }
}

void crowd_come(unsigned number)
{
    uint64_t now_ns = kernel_now_ns();
    uint64_t span_ns = kernel_random(2) == 0 ? NS_PER_MS : 2 * NS_PER_S;
    crowd_free();
    for (count = 0; count < number && count < CROWD_MAX; count++) {
        struct client *client = &clients[count];
        memset(client, 0, sizeof(*client));
        client->number = count;
        draw_port(client);
        draw_habits(client);
        client->come_ns = now_ns + kernel_random(span_ns);
        client->seen_wakes = UINT64_MAX;
        if (client->talk == TALK_ECHO) {
            draw_bytes(client);
        } else if (client->talk == TALK_HTTP) {
            draw_requests(client);
        }
        if (client->piece_max < client->out_length / 200) {
            client->piece_max =
                client->out_length / 200; /* it is to be done within a few seconds */
        }
    }
}

void crowd_act(void)
{
    static unsigned steps;
    bool looks = ++steps % 16 == 0;
    for (unsigned i = 0; i < count; i++) {
        client_act(&clients[i]);
        if (looks) {
            client_check_due(&clients[i]);
        }
    }
}

uint64_t crowd_next_ns(void)
{
    uint64_t next_ns = UINT64_MAX;
    for (unsigned i = 0; i < count; i++) {
        uint64_t of_one_ns = client_next_ns(&clients[i]);
        next_ns = of_one_ns < next_ns ? of_one_ns : next_ns;
    }
    return next_ns;
}

bool crowd_gone(void)
{
    for (unsigned i = 0; i < count; i++) {
        if (!clients[i].over) {
            return false;
        }
    }
    return true;
}

void crowd_free(void)
{
    for (unsigned i = 0; i < count; i++) {
        free(clients[i].out);
        free(clients[i].in);
    }
    count = 0;
}
