/* SPDX-License-Identifier: Apache-2.0 */
/*
 * upstream.c - the remote, where the seed wants another one than ours: it answers when
 * the delay is over, whole or in pieces, by length, by chunks or until its close; or it
 * cuts, resets, answers nonsense, another status or nothing at all, closes connections
 * that are pooled, and at times its port refuses, or lets clients wait.
 *
 * What was sent for which path is kept, so that an answer can be held against it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel_parts.h"
#include "sim.h"

#define LINES_MAX 512
#define RECORDS_MAX 2048
#define PATH_MAX_BYTES 128
#define HEARD_MAX 2048

enum fate {
    BY_LENGTH,
    BY_CHUNKS,
    UNTIL_CLOSE,
    AND_CLOSE,
    AFTER_INTERIM,
    AND_MORE, /* bytes behind the answer that nobody asked for */
    GOOD_FATES,
    STATUS_500 = GOOD_FATES,
    STATUS_503,
    NONSENSE,
    CUT,
    RESET,
    CLOSE_AT_ONCE,
    HANG,
    FATES
};

/* One call, from its request to its fate. */
struct record {
    char path[PATH_MAX_BYTES];
    char body[PATH_MAX_BYTES + 64];
    bool good, done;
};

/* One connection of the server's. */
struct line {
    struct kernel_file *peer; /* NULL: free */
    uint64_t seen_wakes;
    char heard[HEARD_MAX];
    size_t heard_length;
    struct record *record; /* in work */
    enum fate fate;
    char answer[1024];
    size_t answer_length, sent;
    uint64_t due_ns;  /* when the next piece leaves */
    uint64_t hush_ns; /* when it closes though it is pooled; 0: it does not */
};

static struct line lines[LINES_MAX];
static struct line *lines_end = lines; /* behind the last that was ever used */
static struct record records[RECORDS_MAX];
static size_t record_count;
static unsigned bad_percent, pieces_percent, hush_percent, trouble_percent;
static unsigned trouble;
static uint64_t trouble_ends_ns, trouble_next_ns;
static bool ends;

void upstream_open(void)
{
    static const unsigned moods[] = {0, 0, 5, 20, 60};
    bad_percent = sim_world.profile == SIM_CALM ? 0 : moods[kernel_random(5)];
    hush_percent = (unsigned)kernel_random(30);
    pieces_percent = (unsigned)kernel_random(60);
    trouble_percent = bad_percent;
    record_count = 0;
    trouble_next_ns = kernel_now_ns() + kernel_random(3 * NS_PER_S);
    kernel_serve(SIM_REMOTE_PORT);
}

/* delay_of - that the path asks for; what its text says is checked on the other side. */
static uint64_t delay_of(const char *path)
{
    char *end;
    if (strncmp(path, "/remote/", 8) != 0) {
        return strncmp(path, "/reviews/", 9) == 0 ? 2 * NS_PER_S : NS_PER_S;
    }
    uint64_t whole = strtoull(path + 8, &end, 10);
    uint64_t unit = strstr(path, "ms") != NULL ? NS_PER_MS : NS_PER_S;
    uint64_t delay_ns = whole * unit;
    for (unit /= 10; *end == '.' || (*end >= '0' && *end <= '9'); end++) {
        if (*end != '.') {
            delay_ns += (uint64_t)(*end - '0') * unit;
            unit /= 10;
        }
    }
    return delay_ns + 1;
}

static void put(struct line *line, const char *text)
{
    size_t length = strlen(text);
    memcpy(line->answer + line->answer_length, text, length);
    line->answer_length += length;
}

static void put_chunks(struct line *line, const char *body)
{
    char head[32];
    size_t left = strlen(body);
    put(line, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    while (left > 0) {
        size_t piece = 1 + kernel_random(left);
        snprintf(head, sizeof(head), "%zx%s\r\n", piece, kernel_random(4) == 0 ? ";x=y" : "");
        put(line, head);
        memcpy(line->answer + line->answer_length, body, piece);
        line->answer_length += piece;
        put(line, "\r\n");
        body += piece;
        left -= piece;
    }
    put(line, "0\r\n\r\n");
}

static void put_length(struct line *line, const char *status, const char *fields)
{
    char head[160];
    snprintf(head, sizeof(head), "HTTP/1.1 %s\r\nContent-Length: %zu\r\n%s\r\n", status,
             strlen(line->record->body), fields);
    put(line, head);
    put(line, line->record->body);
}

static void put_nonsense(struct line *line)
{
    static const char *kinds[] = {
        "SSH-2.0-OpenSSH_9.9\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        "HTTP/1.1 abc\r\n\r\n",
        "\r\n\r\nHTTP/1.1 200\r\nA B: c\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
    };
    put(line, kinds[kernel_random(sizeof(kinds) / sizeof(kinds[0]))]);
}

static void compose(struct line *line)
{
    line->answer_length = line->sent = 0;
    switch (line->fate) {
    case BY_CHUNKS:
        put_chunks(line, line->record->body);
        break;
    case UNTIL_CLOSE:
        put(line, "HTTP/1.1 200 OK\r\nServer: x\r\n\r\n");
        put(line, line->record->body);
        break;
    case AND_CLOSE:
        put_length(line, "200 OK", "Connection: close\r\n");
        break;
    case AFTER_INTERIM:
        put(line, "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n");
        put_length(line, "200 OK", "");
        break;
    case AND_MORE:
        put_length(line, "200 OK", "");
        put(line, "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nunasked!");
        break;
    case STATUS_500:
        put_length(line, "500 Internal Server Error", "");
        break;
    case STATUS_503:
        put_length(line, "503 Service Unavailable", "Retry-After: 1\r\n");
        break;
    case NONSENSE:
        put_nonsense(line);
        break;
    case CLOSE_AT_ONCE:
    case HANG:
        break;
    default: /* BY_LENGTH, and what of it is cut */
        put_length(line, "200 OK", "Content-Type: text/plain\r\n");
    }
    if (line->fate == CUT || line->fate == RESET) {
        line->answer_length = kernel_random(line->answer_length);
    }
}

/* begin - a request has come whole. */
static void begin(struct line *line, size_t length)
{
    if (record_count == RECORDS_MAX) {
        sim_fail("the upstream has no room for another call");
    }
    struct record *record = &records[record_count++];
    memset(record, 0, sizeof(*record));
    if (sscanf(line->heard, "GET %127s HTTP/1.1\r\n", record->path) != 1 ||
        strstr(line->heard, "\r\nHost: 127.0.0.1:8085\r\n") == NULL) {
        sim_fail("the upstream was asked nonsense: \"%.*s\"", (int)length, line->heard);
    }
    if (line->heard_length > length) {
        sim_fail("the upstream was asked again before it answered: \"%s\"", line->heard + length);
    }
    line->heard_length = 0;
    line->record = record;
    line->fate = kernel_random(100) < bad_percent
                     ? (enum fate)(GOOD_FATES + kernel_random(FATES - GOOD_FATES))
                     : (enum fate)kernel_random(GOOD_FATES);
    record->good = line->fate < GOOD_FATES;
    char path[PATH_MAX_BYTES];
    memcpy(path, record->path, sizeof(path));
    snprintf(record->body, sizeof(record->body),
             strncmp(path, "/remote/", 8) == 0 ? "upstream says %s, call %zu"
                                               : "{\"of\":\"%s\",\"call\":%zu}",
             path, record_count);
    compose(line);
    line->due_ns = kernel_now_ns() + delay_of(record->path);
    if (strstr(record->path, "?fail=") != NULL) {
        line->due_ns = kernel_now_ns() + 100 * NS_PER_MS;
        record->good = false;
        line->fate = STATUS_500;
        compose(line);
    }
    sim_note("upstream asked", record_count, (uint64_t)line->fate, line->due_ns);
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
        sim_note("!pooled connection closed", 0, 0, 0);
        hang_up(line, kernel_random(4) == 0);
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

const char *upstream_has(const char *path)
{
    for (size_t i = record_count; i-- > 0;) {
        if (records[i].good && records[i].done && strcmp(records[i].path, path) == 0) {
            return records[i].body;
        }
    }
    return NULL;
}

unsigned upstream_good(const char *path)
{
    unsigned count = 0;
    for (size_t i = 0; i < record_count; i++) {
        count += records[i].good && records[i].done && strcmp(records[i].path, path) == 0;
    }
    return count;
}

unsigned upstream_bad(const char *path)
{
    unsigned count = 0;
    for (size_t i = 0; i < record_count; i++) {
        count += !records[i].good && strcmp(records[i].path, path) == 0;
    }
    return count;
}

unsigned upstream_trouble(void)
{
    return trouble;
}
