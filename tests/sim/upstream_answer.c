/* SPDX-License-Identifier: Apache-2.0 */
/*
 * upstream_answer.c - what the simulated remote says, and the record of what it has said.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "upstream_parts.h"

#define RECORDS_MAX 2048

static struct record records[RECORDS_MAX];
static size_t record_count;

struct record *record_new(const char *path)
{
    if (record_count == RECORDS_MAX) {
        sim_fail("the upstream has no room for another call");
    }
    struct record *record = &records[record_count++];
    memset(record, 0, sizeof(*record));
    snprintf(record->path, sizeof(record->path), "%s", path);
    snprintf(record->body, sizeof(record->body),
             strncmp(path, "/remote/", 8) == 0 ? "upstream says %s, call %zu"
                                               : "{\"of\":\"%s\",\"call\":%zu}",
             path, record_count);
    return record;
}

uint64_t delay_of(const char *path)
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

void compose(struct line *line)
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
