/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client.c - a client comes, says its requests in pieces, hears, and goes its way.
 */
#include "client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kernel_parts.h"

bool client_is_at_torso(const struct client *client)
{
    return client->torso > 0 && client->answered + 1 == client->count;
}

static void client_end(struct client *client, bool reset)
{
    sim_note(reset ? "client was reset" : "client met the end", client->number, client->answered,
             0);
    if (client->talk == TALK_HTTP) {
        answers_take(client);
    }
    client_judge(client, reset);
    client->over = true;
    if (!client->peer->closed) {
        peer_close(client->peer);
    }
}

static void come(struct client *client)
{
    uint64_t now_ns = kernel_now_ns();
    client->peer = kernel_connect(client->port);
    if (client->peer == NULL) { /* the port is closed: the server drains */
        if (sim_world.draining_ns == 0) {
            sim_fail("port %u refuses", client->port);
        }
        sim_count("refused connections");
        client->over = true;
        return;
    }
    sim_count("connections");
    client->peer->mark = client->peer->other->mark = 1;
    client->come_ns = client->last_answer_ns = now_ns;
    /* What failed just before may still be on its way: a shortage has an acceptor wait. */
    bool just_now = sim_world.shortage_ns != 0 && now_ns < sim_world.shortage_ns + 200 * NS_PER_MS;
    client->memory_faults = just_now ? 0 : sim_world.memory_faults;
    client->descriptor_faults = just_now ? 0 : sim_world.descriptor_faults;
    client->upstream_faults = sim_world.upstream_faults;
    client->upstream_trouble = upstream_trouble();
    if (client->slow_reader) {
        peer_window(client->peer, 256 + kernel_random(4000));
    }
    if (client->quit_ns != 0) {
        client->quit_ns += now_ns;
    }
    sim_note("client comes", client->number, client->port,
             (uint64_t)client->count << 8 | client->conduct);
}

/* note_sent - which requests have begun, and which are whole now. */
static void note_sent(struct client *client)
{
    for (unsigned i = 0; i < client->count; i++) {
        struct request *request = &client->requests[i];
        if (request->first_ns == 0 && client->sent > request->begin) {
            request->first_ns = kernel_now_ns();
        }
        if (request->sent_ns == 0 && client->sent >= request->end) {
            request->sent_ns = kernel_now_ns();
            sim_count("requests");
        }
    }
}

/* pause_ends - how far it may speak: to where a 100 is waited for, for a while. */
static size_t pause_ends(const struct client *client, size_t end)
{
    for (unsigned i = 0; i < client->count; i++) {
        const struct request *request = &client->requests[i];
        if (request->pause_at == 0 || request->pause_at < client->sent || request->continued) {
            continue;
        }
        bool waited = request->first_ns != 0 && kernel_now_ns() > request->first_ns + 2 * NS_PER_S;
        if (!waited && request->pause_at < end) {
            return request->pause_at;
        }
    }
    return end;
}

static void next_say(struct client *client)
{
    uint64_t now_ns = kernel_now_ns();
    client->act_ns = now_ns + (kernel_random(3) == 0 ? kernel_random(20 * NS_PER_MS) : 0);
    if (client->dawdles && kernel_random(4) == 0) {
        client->act_ns = now_ns + kernel_random(30 * NS_PER_S);
    }
}

static void speak(struct client *client)
{
    size_t end = client->out_length - client->torso;
    size_t limit = pause_ends(client, end);
    if (client->sent < limit) {
        size_t piece = 1 + kernel_random(client->piece_max);
        piece = piece < limit - client->sent ? piece : limit - client->sent;
        ssize_t sent = peer_send(client->peer, client->out + client->sent, piece);
        sim_note("client says", client->number, (uint64_t)(int64_t)sent, piece);
        if (sent < 0) {
            client->sent = client->out_length; /* the server has closed: what it said is heard */
            client->act_ns = UINT64_MAX;
            return;
        }
        client->sent += (size_t)sent;
        note_sent(client);
        next_say(client);
    } else if (client->sent < end) {
        client->act_ns = kernel_now_ns() + 100 * NS_PER_MS; /* a 100 is waited for */
    }
    if (client->sent == end) {
        client->act_ns = UINT64_MAX;
        if (!client->finished &&
            (client->half_closes || (client->torso > 0 && client->conduct != STAYS))) {
            peer_finish(client->peer);
            client->finished = true;
            sim_note("client finishes", client->number, 0, 0);
        }
    }
}

static void keep(struct client *client, const char *bytes, size_t length)
{
    if (client->in_length + length + 1 > client->in_capacity) {
        client->in_capacity = (client->in_length + length + 1) * 2;
        client->in = realloc(client->in, client->in_capacity);
        if (client->in == NULL) {
            abort();
        }
    }
    memcpy(client->in + client->in_length, bytes, length);
    client->in_length += length;
    client->in[client->in_length] = '\0';
}

/* check_echo - what an echo client has heard is the beginning of what it said; a greeting is whole. */
static void check_echo(struct client *client, bool end)
{
    static const char greeting[] = "[echo] Hello World\n";
    const char *expected = client->talk == TALK_ECHO ? client->out : greeting;
    size_t length = client->talk == TALK_ECHO ? client->sent : sizeof(greeting) - 1;
    if (client->in_length > length ||
        (client->in_length > 0 && memcmp(client->in, expected, client->in_length) != 0)) {
        sim_fail("an echo of something else: \"%.100s\"", client->in);
    }
    bool cut = end && client->in_length < length && !client_is_excused(client) &&
               !client->slow_reader && !sim_world.scarce;
    if (cut && (client->talk == TALK_GREETER || sim_world.draining_ns == 0)) {
        sim_fail("%zu of %zu bytes came back", client->in_length, length);
    }
}

static void hear(struct client *client)
{
    char bytes[16384];
    size_t most = client->slow_reader ? 1 + kernel_random(1024) : sizeof(bytes);
    ssize_t got;
    do {
        got = peer_receive(client->peer, bytes, most);
        if (got > 0) {
            sim_note("client hears", client->number, (uint64_t)got, 0);
            keep(client, bytes, (size_t)got);
        }
    } while (got > 0 && !client->slow_reader);
    if (client->slow_reader) {
        client->read_ns = kernel_now_ns() + kernel_random(200 * NS_PER_MS);
    }
    if (client->talk == TALK_HTTP) {
        answers_take(client);
    } else {
        check_echo(client, got == 0);
    }
    if (got == 0 || (got < 0 && got != -EAGAIN)) {
        client_end(client, got < 0);
    } else if (client->conduct == LEAVES && client->sent == client->out_length &&
               client->answered == client->count && client->talk == TALK_HTTP) {
        sim_note("client leaves", client->number, 0, 0);
        client->over = true;
        peer_close(client->peer);
    }
}

/* quit - in the middle of it all. */
static void quit(struct client *client)
{
    client->quit_ns = 0;
    switch (client->conduct) {
    case RESETS:
        sim_note("!client resets", client->number, 0, 0);
        peer_reset(client->peer);
        client->left = true;
        client->left_ns = kernel_now_ns();
        break;
    case GOES:
        sim_note("!client goes", client->number, 0, 0);
        client->over = true;
        peer_close(client->peer);
        break;
    default:
        sim_note("!client falls mute", client->number, 0, 0);
        client->mute = true;
        /* An echo port has patience without end, for whoever still answers to probes. */
        if (client->talk != TALK_HTTP || kernel_random(2) == 0) {
            client->quit_ns = kernel_now_ns() + 1 + kernel_random(60 * NS_PER_S);
        }
    }
}

/* see_off - it has reset: whatever the server does for it ends at once. */
static void see_off(struct client *client)
{
    client->over = client->peer->other->closed;
    if (!client->over && !client_is_excused(client) &&
        kernel_now_ns() > client->left_ns + 2 * NS_PER_S) {
        sim_fail("client %u has reset, and its connection is open after 2 s", client->number);
    }
}

void client_act(struct client *client)
{
    uint64_t now_ns = kernel_now_ns();
    if (client->over || (client->peer == NULL && client->come_ns > now_ns)) {
        return;
    }
    if (client->left) {
        see_off(client);
        return;
    }
    if (client->peer == NULL) {
        come(client);
        if (client->over) {
            return;
        }
    }
    if (client->quit_ns != 0 && client->quit_ns <= now_ns && client->mute) {
        sim_note("!client vanishes", client->number, 0, 0);
        client->quit_ns = 0;
        peer_vanish(client->peer);
    } else if (client->quit_ns != 0 && client->quit_ns <= now_ns) {
        quit(client);
    }
    if (client->left) {
        return;
    }
    if (client->mute) { /* it is over when the server has had enough */
        client->over = client->peer->other->closed || client->peer->dead;
        return;
    }
    if (client->over) {
        return;
    }
    bool woken = client->seen_wakes != client->peer->wakes;
    client->seen_wakes = client->peer->wakes;
    if (client->slow_reader ? client->read_ns <= now_ns : woken) {
        hear(client);
    }
    if (!client->over && client->act_ns <= now_ns) {
        speak(client);
    }
}

uint64_t client_next_ns(const struct client *client)
{
    uint64_t next_ns = UINT64_MAX;
    if (client->over) {
        return next_ns;
    }
    if (client->peer == NULL) {
        return client->come_ns;
    }
    if (client->left) {
        return client->left_ns + 2 * NS_PER_S + 1;
    }
    if (client->seen_wakes != client->peer->wakes && !client->mute && !client->slow_reader) {
        return 0; /* it has been told something */
    }
    if (client->quit_ns != 0) {
        next_ns = client->quit_ns;
    }
    if (!client->mute && client->act_ns < next_ns) {
        next_ns = client->act_ns;
    }
    if (!client->mute && client->slow_reader && client->read_ns < next_ns) {
        next_ns = client->read_ns;
    }
    return next_ns;
}
