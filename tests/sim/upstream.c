/* SPDX-License-Identifier: Apache-2.0 */
/*
 * upstream.c - the remote, where the seed wants another one than ours: it answers when
 * the delay is over, whole or in pieces, by length, by chunks or until its close; or it
 * cuts, resets, answers nonsense, another status or nothing at all, closes connections
 * that are pooled, and at times its port refuses, or lets clients wait.
 *
 * What was sent for which path is kept, so that an answer can be held against it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "upstream_parts.h"

#define LINES_MAX 512

static struct line lines[LINES_MAX];
static struct line *lines_end = lines; /* behind the last that was ever used */
static unsigned bad_percent, pieces_percent, hush_percent, trouble_percent;
static unsigned trouble;
static uint64_t trouble_ends_ns, trouble_next_ns;
static bool ends;

void upstream_open(void)
{
    static const unsigned moods[] = {0, 0, 5, 20, 60};
    bad_percent = sim_world.profile == SIM_CALM ? 0 : moods[kernel_random(5)];
    hush_percent = (unsigned)kernel_random(60);
    pieces_percent = (unsigned)kernel_random(60);
    trouble_percent = bad_percent;
    trouble_next_ns = kernel_now_ns() + kernel_random(3 * NS_PER_S);
    kernel_serve(SIM_REMOTE_PORT);
}

/* begin - a request has come whole. */
static void begin(struct line *line, size_t length)
{
    char path[PATH_MAX_BYTES];
    if (sscanf(line->heard, "GET %127s HTTP/1.1\r\n", path) != 1 ||
        strstr(line->heard, "\r\nHost: 127.0.0.1:8085\r\n") == NULL) {
        sim_fail("the upstream was asked nonsense: \"%.*s\"", (int)length, line->heard);
    }
    if (line->heard_length > length) {
        sim_fail("the upstream was asked again before it answered: \"%s\"", line->heard + length);
    }
    line->heard_length = 0;
    line->record = record_new(path);
    line->fate = kernel_random(100) < bad_percent
                     ? (enum fate)(GOOD_FATES + kernel_random(FATES - GOOD_FATES))
                     : (enum fate)kernel_random(GOOD_FATES);
    line->due_ns = kernel_now_ns() + delay_of(path);
    if (strstr(path, "?fail=") != NULL) {
        line->due_ns = kernel_now_ns() + 100 * NS_PER_MS;
        line->fate = STATUS_500;
    }
    line->record->good = line->fate < GOOD_FATES;
    compose(line);
    sim_note("upstream asked", (uint64_t)(line - lines), (uint64_t)line->fate, line->due_ns);
}

static void hang_up(struct line *line, bool reset)
{
    if (line->record != NULL) {
        line->record->done = true;
        line->record = NULL;
    }
    if (reset) {
        peer_reset(line->peer);
    }
    if (!line->peer->closed) {
        peer_close(line->peer);
    }
    sim_note("upstream hangs up", reset, 0, 0);
    line->peer = NULL;
}

static void hear(struct line *line)
{
    ssize_t got = peer_receive(line->peer, line->heard + line->heard_length,
                               HEARD_MAX - 1 - line->heard_length);
    if (got == 0 || (got < 0 && got != -EAGAIN)) {
        if (line->record != NULL && line->record->good) {
            line->record->good = false; /* the server did not wait for its end */
        }
        hang_up(line, false);
        return;
    }
    if (got < 0) {
        return;
    }
    line->heard_length += (size_t)got;
    line->heard[line->heard_length] = '\0';
    line->hush_ns = 0;
    const char *end = strstr(line->heard, "\r\n\r\n");
    if (line->record != NULL) {
        sim_fail("the upstream was asked again before it answered");
    }
    if (end != NULL) {
        begin(line, (size_t)(end + 4 - line->heard));
    }
}

/* end_answer - all that is sent of an answer has been. */
static void end_answer(struct line *line)
{
    sim_count(line->record->good ? "upstream answers" : "upstream misdeeds");
    line->record->done = true;
    switch (line->fate) {
    case HANG:
        line->due_ns = UINT64_MAX;
        return; /* its record stays in work */
    case RESET:
        hang_up(line, true);
        return;
    case UNTIL_CLOSE:
    case AND_CLOSE:
    case CUT:
    case CLOSE_AT_ONCE:
    case NONSENSE:
        hang_up(line, false);
        return;
    default:
        line->record = NULL;
        line->due_ns = UINT64_MAX;
        if (kernel_random(100) < hush_percent) {
            line->hush_ns = kernel_now_ns() + kernel_random(2) * kernel_random(2 * NS_PER_S);
        }
    }
}

static void speak(struct line *line)
{
    size_t left = line->answer_length - line->sent;
    size_t piece = left;
    if (left > 1 && line->fate != AND_MORE && kernel_random(100) < pieces_percent) {
        piece = 1 + kernel_random(left);
    }
    ssize_t sent = piece > 0 ? peer_send(line->peer, line->answer + line->sent, piece) : (ssize_t)0;
    if (sent < 0) {
        line->record->good = false;
        hang_up(line, false);
        return;
    }
    line->sent += (size_t)sent;
    if (line->sent == line->answer_length) {
        end_answer(line);
    } else {
        line->due_ns = kernel_now_ns() + kernel_random(5 * NS_PER_MS);
    }
}

/* is_asked - the server has begun to send a request on it: what came now would be its answer. */
static bool is_asked(const struct line *line)
{
    if (kernel_knobs.stall_percent > 0) {
        return true; /* for all that can be seen from here */
    }
    for (const struct kernel_ring *ring = kernel__rings(); ring != NULL; ring = ring->next) {
        for (size_t i = 0; i < ring->op_count; i++) {
            if (ring->ops[i]->sqe.opcode == IORING_OP_SEND &&
                ring->ops[i]->file == line->peer->other) {
                return true;
            }
        }
    }
    return false;
}

/* end_idle - it was pooled for long enough: it is closed, or bytes come that nobody asked for. */
static void end_idle(struct line *line)
{
    static const char unasked[] = "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nunasked!";
    line->hush_ns = 0;
    if (kernel_random(2) == 0 && !is_asked(line)) {
        sim_note("!unasked bytes", 0, 0, 0);
        (void)peer_send(line->peer, unasked, sizeof(unasked) - 1);
        return;
    }
    sim_note("!pooled connection closed", 0, 0, 0);
    hang_up(line, kernel_random(4) == 0);
}

static void act(struct line *line)
{
    uint64_t now_ns = kernel_now_ns();
    if (line->seen_wakes != line->peer->wakes) {
        line->seen_wakes = line->peer->wakes;
        hear(line);
    }
    if (line->peer != NULL && line->record != NULL && line->due_ns <= now_ns) {
        speak(line);
    }
    if (line->peer != NULL && line->record == NULL && line->hush_ns != 0 &&
        line->hush_ns <= now_ns) {
        end_idle(line);
    }
}

static void accept_all(void)
{
    struct kernel_file *peer;
    while ((peer = kernel_accept(SIM_REMOTE_PORT)) != NULL) {
        struct line *line = lines;
        while (line->peer != NULL) {
            line++;
            if (line == lines + LINES_MAX) {
                sim_fail("the upstream has no room for another connection");
            }
        }
        *line = (struct line){.peer = peer, .due_ns = UINT64_MAX, .seen_wakes = UINT64_MAX};
        lines_end = line >= lines_end ? line + 1 : lines_end;
        sim_note("upstream accepts", (uint64_t)(line - lines), 0, 0);
    }
}

/* change_mood - its port refuses for a while, or lets clients hang, or is itself again. */
static void change_mood(void)
{
    uint64_t now_ns = kernel_now_ns();
    if (trouble_ends_ns != 0 && now_ns >= trouble_ends_ns) {
        kernel_answer(SIM_REMOTE_PORT);
        trouble_ends_ns = 0;
        trouble_next_ns = now_ns + kernel_random(10 * NS_PER_S);
    } else if (trouble_ends_ns == 0 && now_ns >= trouble_next_ns) {
        trouble_next_ns = now_ns + kernel_random(10 * NS_PER_S);
        if (kernel_random(100) < trouble_percent) {
            bool hangs = kernel_random(2) == 0;
            sim_note(hangs ? "!upstream port hangs" : "!upstream port refuses", 0, 0, 0);
            (hangs ? kernel_hang : kernel_refuse)(SIM_REMOTE_PORT);
            trouble_ends_ns = now_ns + kernel_random(3 * NS_PER_S);
        }
    }
    trouble += trouble_ends_ns != 0;
}

void upstream_act(void)
{
    if (sim_world.remote_is_ours) {
        return;
    }
    if (!ends) {
        change_mood();
    }
    accept_all();
    for (struct line *line = lines; line < lines_end; line++) {
        if (line->peer != NULL) {
            act(line);
        }
    }
}

uint64_t upstream_next_ns(void)
{
    uint64_t next_ns = UINT64_MAX;
    if (sim_world.remote_is_ours) {
        return next_ns;
    }
    if (trouble_ends_ns != 0) {
        next_ns = trouble_ends_ns;
    }
    for (const struct line *line = lines; line < lines_end; line++) {
        if (line->peer == NULL) {
            continue;
        }
        if (line->seen_wakes != line->peer->wakes) {
            return 0;
        }
        if (line->record != NULL && line->due_ns < next_ns) {
            next_ns = line->due_ns;
        }
        if (line->record == NULL && line->hush_ns != 0 && line->hush_ns < next_ns) {
            next_ns = line->hush_ns;
        }
    }
    return next_ns;
}

void upstream_close(void)
{
    ends = true;
    if (sim_world.remote_is_ours) {
        return;
    }
    if (trouble_ends_ns != 0) {
        kernel_answer(SIM_REMOTE_PORT);
        trouble_ends_ns = 0;
    }
}

unsigned upstream_trouble(void)
{
    return trouble;
}
