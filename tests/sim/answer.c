/* SPDX-License-Identifier: Apache-2.0 */
/*
 * answer.c - answers are read to the letter and held against the right ones.
 *
 * A head may have the fields that the server sends, each once and as it writes them,
 * and nothing else. An answer that is not the right one needs an excuse: a fault that
 * was made since the client came, a drain, a remote that misbehaved.
 */
#include "answer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/message.h"
#include "ring/sys.h"

static void fail_answer(const struct client *client, const char *why, const struct answer *answer)
{
    const struct request *request =
        client->answered < client->count ? &client->requests[client->answered] : NULL;
    sim_fail("%s: client %u, request %u (%s, %d), came after %" PRId64 " us: \"%.*s\"", why,
             client->number, client->answered, request != NULL ? request->path : "none",
             request != NULL ? request->status : 0,
             request != NULL ? (int64_t)(kernel_now_ns() - request->sent_ns) / 1000 : 0,
             (int)(answer->head_length + answer->body_length), answer->head);
}

/* take_value - is this line of that field? Its value then goes to dst; twice is a failure. */
static bool take_value(const char *line, const char *field, char *dst, size_t size)
{
    size_t length = strlen(field);
    if (strncmp(line, field, length) != 0) {
        return false;
    }
    const char *end = strstr(line, "\r\n");
    if (dst[0] != '\0' || (size_t)(end - line) - length >= size) {
        sim_fail("a field comes twice or is too long: \"%.100s\"", line);
    }
    snprintf(dst, size, "%.*s", (int)(end - line - (ssize_t)length), line + length);
    return true;
}

static bool read_head(struct answer *answer, const char *in)
{
    char length[24] = "", connection[24] = "";
    const char *line = strstr(in, "\r\n") + 2;
    const char *end = in + answer->head_length - 2;
    if (sscanf(in, "HTTP/1.1 %3d ", &answer->status) != 1) {
        return false;
    }
    snprintf(length, sizeof(length), "HTTP/1.1 %d", answer->status);
    snprintf(answer->reason, sizeof(answer->reason), "%s", http_reason(answer->status));
    if (strncmp(in, length, strlen(length)) != 0 ||
        strncmp(in + strlen(length) + 1, answer->reason, strlen(answer->reason)) != 0) {
        return false;
    }
    for (length[0] = '\0'; line < end; line = strstr(line, "\r\n") + 2) {
        if (!take_value(line, "Date: ", answer->date, sizeof(answer->date)) &&
            !take_value(line, "Content-Type: ", answer->type, sizeof(answer->type)) &&
            !take_value(line, "Content-Length: ", length, sizeof(length)) &&
            !take_value(line, "Connection: ", connection, sizeof(connection)) &&
            !take_value(line, "Allow: ", answer->allow, sizeof(answer->allow)) &&
            !take_value(line, "Retry-After: ", answer->retry, sizeof(answer->retry))) {
            return false;
        }
    }
    answer->closes = strcmp(connection, "close") == 0;
    answer->keeps = strcmp(connection, "keep-alive") == 0;
    answer->length = strtoul(length, NULL, 10);
    return (length[0] != '\0' || answer->status == 204) && answer->date[0] != '\0' &&
           (connection[0] == '\0' || answer->closes || answer->keeps);
}

/* next_answer - cut the next whole one off what the client has heard. */
static bool next_answer(struct client *client, bool head_only, struct answer *answer)
{
    memset(answer, 0, sizeof(*answer));
    answer->head = client->in;
    const char *end = client->in_length > 0 ? strstr(client->in, "\r\n\r\n") : NULL;
    if (end == NULL) {
        return false;
    }
    answer->head_length = (size_t)(end + 4 - client->in);
    if (strncmp(client->in, "HTTP/1.1 100 Continue\r\n\r\n", 25) == 0) {
        answer->status = 100;
        return true;
    }
    if (!read_head(answer, client->in)) {
        fail_answer(client, "no answer of ours", answer);
    }
    answer->body = end + 4;
    /* A client without a place is not asked what it wants. */
    answer->body_length = head_only && answer->retry[0] == '\0' ? 0 : answer->length;
    return answer->head_length + answer->body_length <= client->in_length;
}

/* check_date - of some second between the request and now. */
static void check_date(const struct client *client, const struct answer *answer)
{
    char date[TIME_HTTP_SIZE];
    uint64_t wall_ns = sys_wall_ns();
    for (int back = 0; back < 120; back++) {
        time_format_http(date, wall_ns - (uint64_t)back * NS_PER_S);
        if (strcmp(date, answer->date) == 0) {
            return;
        }
    }
    fail_answer(client, "a date of another time", answer);
}

static void check_persistence(struct client *client, const struct request *request,
                              const struct answer *answer)
{
    bool drains = sim_world.draining_ns != 0;
    if (answer->keeps && (!request->http_1_0 || answer->closes)) {
        fail_answer(client, "keep-alive that need not be said", answer);
    }
    if (!answer->closes && request->ends) {
        fail_answer(client, "an answer that should be the last", answer);
    }
    if (!answer->closes && request->http_1_0 && !answer->keeps) {
        fail_answer(client, "a 1.0 client is not told that it may go on", answer);
    }
    bool broken_off = answer->status == 408 || client_is_at_torso(client);
    if (answer->closes && !request->ends && !drains && !broken_off && !client->refused) {
        fail_answer(client, "closed for no reason", answer);
    }
    client->told_close = answer->closes;
}

/* check_refusal - there was no place for this client; has it come at a bad time? */
static bool check_refusal(struct client *client, const struct answer *answer)
{
    if (answer->status != 503 || answer->retry[0] == '\0') {
        return false;
    }
    bool memory = sim_world.memory_faults > client->memory_faults; /* for a request, then */
    if (!memory && (client->answered > 0 || (!sim_world.scarce && !client_is_excused(client)))) {
        fail_answer(client, "refused, and there is room", answer);
    }
    client->refused = true;
    return true;
}

static void check_time(struct client *client, const struct request *request,
                       const struct answer *answer)
{
    uint64_t now_ns = kernel_now_ns();
    uint64_t asked_ns = request->sent_ns;
    bool fails = request->calls && request->status != 200 &&
                 (client_is_excused(client) || remote_is_excused(client, request));
    if (answer->status == request->status && request->delay_ns > 0 && !fails &&
        (asked_ns == 0 || now_ns < asked_ns + request->delay_ns)) {
        fail_answer(client, "too early", answer);
    }
    uint64_t begun_ns = client->answered == 0 ? client->come_ns : client->last_answer_ns;
    if (answer->status == 408 && now_ns + SLACK_NS < begun_ns + 20 * NS_PER_S) {
        fail_answer(client, "out of patience too early", answer);
    }
    if (answer->status == 504 && request->status != 504 && sim_world.upstream_faults == 0 &&
        now_ns < asked_ns + 2 * NS_PER_S) {
        fail_answer(client, "given up too early", answer);
    }
}

/* answer_end - the request in work is answered. */
static void answer_end(struct client *client, const struct answer *answer)
{
    size_t used = answer->head_length + answer->body_length;
    sim_note("answered", client->number, (uint64_t)answer->status, client->answered);
    client->in_length -= used;
    memmove(client->in, client->in + used, client->in_length);
    client->in[client->in_length] = '\0';
    if (answer->status != 100) {
        client->answered++;
        client->last_answer_ns = kernel_now_ns();
    }
}

static void take_continue(struct client *client, struct request *request,
                          const struct answer *answer)
{
    if (!request->may_continue || request->continued || request->first_ns == 0) {
        fail_answer(client, "a 100 that nobody waits for", answer);
    }
    request->continued = true;
    sim_count("100 Continue");
    answer_end(client, answer);
}

/* is_head - and the server has seen so much of it that it knows. */
static bool is_head(const struct client *client, const struct request *request)
{
    size_t at = request->begin;
    at += client->out[at] == '\r' ? 2 : 0;
    return request->head_only && client->sent >= at + 5; /* "HEAD " */
}

void answers_take(struct client *client)
{
    struct answer answer;
    for (;;) {
        struct request *request = &client->requests[client->answered];
        bool any = client->answered < client->count;
        if (client->in_length > 0 && client->told_close) {
            sim_fail("more after the last answer: \"%.200s\"", client->in);
        }
        if (!next_answer(client, any && is_head(client, request), &answer)) {
            return;
        }
        if (answer.status == 100) {
            take_continue(client, request, &answer);
            continue;
        }
        if (!check_refusal(client, &answer)) {
            if (!any || request->first_ns == 0) {
                fail_answer(client, "an answer to nothing", &answer);
            }
            check_time(client, request, &answer);
            answer_judge(client, request, &answer);
        } else {
            sim_count("refusals");
        }
        check_date(client, &answer);
        check_persistence(client, any ? request : &(struct request){.ends = true}, &answer);
        answer_end(client, &answer);
    }
}
