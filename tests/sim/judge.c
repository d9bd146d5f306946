/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge.c - is it the right answer, and if not, what may excuse it?
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answer.h"
#include "kernel_parts.h"

static void wrong(const struct client *client, const struct request *request,
                  const struct answer *answer, const char *expected)
{
    sim_fail("client %u, request %u on port %u (%s): %d \"%s\" expected, got %d \"%.*s\" (%s)",
             client->number, client->answered, client->port, request->path, request->status,
             expected, answer->status, (int)answer->body_length, answer->body, answer->type);
}

bool client_is_excused(const struct client *client)
{
    return client->peer->hurt || sim_world.memory_faults > client->memory_faults ||
           sim_world.descriptor_faults > client->descriptor_faults;
}

bool remote_is_excused(const struct client *client, const struct request *request)
{
    if (sim_world.upstream_faults > client->upstream_faults || sim_world.scarce) {
        return true;
    }
    if (sim_world.remote_is_ours) {
        return false;
    }
    if (upstream_trouble() > client->upstream_trouble) {
        return true;
    }
    char path[BODY_MAX];
    static const char *const parts[] = {"productInfo", "reviews", "deliveryDetails"};
    snprintf(path, sizeof(path), "/remote/%s", request->token);
    unsigned bad = upstream_bad(path);
    for (size_t i = 0; i < 3; i++) {
        snprintf(path, sizeof(path), "/%s/%s", parts[i], request->token);
        bad += upstream_bad(path);
    }
    return bad > 0;
}

/* check_error - Spring's error body, or an empty one when memory is short. */
static void check_error(const struct client *client, const struct request *request,
                        const struct answer *answer)
{
    char part[BODY_MAX + 64];
    if (answer->length == 0 && sim_world.memory_faults > client->memory_faults) {
        return;
    }
    if (request->head_only) {
        return; /* a HEAD's error has no body either */
    }
    const char *body = answer->body;
    size_t length = answer->body_length;
    snprintf(part, sizeof(part), "\",\"status\":%d,\"error\":\"%s\",", answer->status,
             answer->reason);
    bool right = strcmp(answer->type, "application/json") == 0 && length > 46 &&
                 strncmp(body, "{\"timestamp\":\"", 14) == 0 &&
                 strncmp(body + 14 + 29, part, strlen(part)) == 0 && body[length - 1] == '}';
    if (request->path[0] != '\0' && answer->status != 408 && !client_is_at_torso(client)) {
        snprintf(part, sizeof(part), "\"path\":\"%s\"}", request->path);
        size_t tail = strlen(part);
        right = right && length > tail && strncmp(body + length - tail, part, tail) == 0;
    }
    if (!right) {
        wrong(client, request, answer, "an error body");
    }
}

static void check_text(const struct client *client, const struct request *request,
                       const struct answer *answer, const char *expected)
{
    if (request->directory && sim_world.memory_faults > client->memory_faults &&
        answer->body_length == 21 && memcmp(answer->body, "{\"count\":0,\"keys\":[]}", 21) == 0) {
        return; /* the entry could not be put */
    }
    size_t length = strlen(expected);
    bool typed = request->allow == NULL && request->status == 200;
    const char *type = !typed               ? ""
                       : expected[0] == '{' ? "application/json"
                                            : "text/plain;charset=UTF-8";
    if (answer->length != length || strcmp(answer->type, type) != 0 ||
        (!request->head_only && memcmp(answer->body, expected, length) != 0)) {
        wrong(client, request, answer, expected);
    }
}

/* check_thread - of a fiber of this connection, whose number does not change. */
static void check_thread(struct client *client, const struct request *request,
                         const struct answer *answer)
{
    uint64_t id, number = 0;
    unsigned carrier;
    int end = 0;
    char body[2048];
    if (request->head_only) {
        return;
    }
    snprintf(body, sizeof(body), "%.*s", (int)answer->body_length, answer->body);
    if (request->kind == BODY_THREAD) {
        sscanf(body, "Fiber[#%" SCNu64 ",http-8080-conn-%" SCNu64 "]/runnable@carrier-%u%n", &id,
               &number, &carrier, &end);
        end = end == (int)answer->body_length ? end : 0;
    } else {
        const char *name = strstr(body, "\"name\":\"http-8080-conn-");
        end = name != NULL &&
              strstr(body, "\",\"kind\":\"fiber\",\"state\":\"runnable\",") != NULL &&
              body[answer->body_length - 1] == '}';
        number = name != NULL ? strtoull(name + 23, NULL, 10) : 0;
    }
    if (end == 0 || number == 0 || (client->conn_number != 0 && client->conn_number != number)) {
        wrong(client, request, answer, "the fiber of this connection");
    }
    client->conn_number = number;
}

static void check_fanout(const struct client *client, const struct request *request,
                         const struct answer *answer)
{
    unsigned count = 0, succeeded = 0, failed = 0;
    double slowest = 0, sum = 0, total = 0;
    char body[512], path[BODY_MAX];
    if (request->head_only) {
        return;
    }
    snprintf(body, sizeof(body), "%.*s", (int)answer->body_length, answer->body);
    int read = sscanf(body,
                      "{\"count\":%u,\"succeeded\":%u,\"failed\":%u,\"slowest\":%lf,\"sum\":%lf,"
                      "\"total\":%lf}",
                      &count, &succeeded, &failed, &slowest, &sum, &total);
    bool excused = client_is_excused(client) || remote_is_excused(client, request);
    snprintf(path, sizeof(path), "/remote/%s", request->token);
    if (read != 6 || count != request->count || succeeded + failed != count || succeeded == 0 ||
        (failed > 0 && !excused) || slowest > total ||
        (!sim_world.remote_is_ours && succeeded > upstream_good(path)) ||
        slowest * 1000 + 1 < (double)(request->delay_ns / NS_PER_MS)) {
        wrong(client, request, answer, "figures that add up");
    }
}

static void check_product(const struct client *client, const struct request *request,
                          const struct answer *answer)
{
    static const char *const routes[] = {"productInfo", "reviews", "deliveryDetails"};
    char expected[2048], path[BODY_MAX];
    int at = snprintf(expected, sizeof(expected), "{\"productId\":\"%s\"", request->token);
    for (unsigned i = 0; i < request->parts; i++) {
        snprintf(path, sizeof(path), "/%s/%s", routes[i], request->token);
        const char *body = upstream_has(path);
        if (body == NULL) {
            wrong(client, request, answer, "no answer, for the remote has given none");
        }
        at += snprintf(expected + at, sizeof(expected) - (size_t)at, ",\"%s\":%s", routes[i], body);
    }
    snprintf(expected + at, sizeof(expected) - (size_t)at, "}");
    check_text(client, request, answer, expected);
}

static void check_right(struct client *client, const struct request *request,
                        const struct answer *answer)
{
    char path[BODY_MAX];
    const char *body;
    switch (request->kind) {
    case BODY_TEXT:
        check_text(client, request, answer, request->body);
        break;
    case BODY_ERROR:
        check_error(client, request, answer);
        break;
    case BODY_THREAD:
    case BODY_THREAD_JSON:
        check_thread(client, request, answer);
        break;
    case BODY_FANOUT:
        check_fanout(client, request, answer);
        break;
    case BODY_ECHOES:
        if (!request->head_only &&
            (answer->body_length < 40 ||
             strncmp(answer->body, "{\"listeners\":[{\"name\":\"greeter\"", 31) != 0)) {
            wrong(client, request, answer, "figures of the echo ports");
        }
        break;
    case BODY_REMOTE:
        snprintf(path, sizeof(path), "/remote/%s", request->token);
        body = upstream_has(path);
        check_text(client, request, answer, body != NULL ? body : "(nothing: it gave no answer)");
        break;
    case BODY_PRODUCT:
        check_product(client, request, answer);
        break;
    }
    if (strcmp(answer->allow, request->allow != NULL ? request->allow : "") != 0 &&
        !(answer->allow[0] == '\0' && sim_world.memory_faults > client->memory_faults)) {
        wrong(client, request, answer, request->allow != NULL ? request->allow : "no Allow");
    }
}

/* health_is_right - UP before the SIGTERM, OUT_OF_SERVICE behind it; while it comes, either. */
static bool health_is_right(const struct client *client, const struct request *request,
                            const struct answer *answer)
{
    static const char out[] = "{\"status\":\"OUT_OF_SERVICE\"}";
    if (answer->status == 503 && answer->length == sizeof(out) - 1 && sim_world.leaving_ns != 0) {
        if (!request->head_only && memcmp(answer->body, out, sizeof(out) - 1) != 0) {
            wrong(client, request, answer, out);
        }
        return true;
    }
    if (answer->status == 200 && sim_world.leaving_ns != 0 &&
        request->first_ns > sim_world.leaving_ns) {
        wrong(client, request, answer, out);
    }
    return false;
}

/* is_excused - of another status than the right one. */
static bool is_excused(const struct client *client, const struct request *request,
                       const struct answer *answer)
{
    bool memory = sim_world.memory_faults > client->memory_faults;
    switch (answer->status) {
    case 404:
        return memory && request->directory; /* the entry could not be put */
    case 400:
        return client_is_at_torso(client);
    case 408:
        return client->dawdles || client->mute || client->slow_reader || client_is_at_torso(client);
    case 503:
        return memory ||
               (request->calls && (sim_world.descriptor_faults > client->descriptor_faults ||
                                   remote_is_excused(client, request)));
    case 504:
        if (request->deadline_ns > 0 && sim_world.config.remote_pool_max > 0 &&
            kernel_now_ns() >= request->sent_ns + request->deadline_ns) {
            return true; /* it waited for a connection to the remote */
        }
        /* fall through */
    case 502:
        return request->calls && (memory || remote_is_excused(client, request) ||
                                  sim_world.descriptor_faults > client->descriptor_faults);
    default:
        return false;
    }
}

void answer_judge(struct client *client, const struct request *request, const struct answer *answer)
{
    if (request->health && health_is_right(client, request, answer)) {
        sim_count("right answers");
        return;
    }
    if (answer->status == request->status) {
        check_right(client, request, answer);
        if (request->must_continue && !request->continued) {
            wrong(client, request, answer, "100 Continue first");
        }
        sim_count("right answers");
        return;
    }
    /* A product that is to fail may be refused for another of its parts, or be in time: only at a
     * bad remote. */
    if (!is_excused(client, request, answer)) {
        wrong(client, request, answer, request->body);
    }
    check_error(client, request, answer);
    sim_count("excused answers");
}

/* may_be_cut - the server had a reason to end the connection with requests unanswered. */
static bool may_be_cut(const struct client *client)
{
    const struct request *request = &client->requests[client->answered];
    if (client->told_close || client->refused || client_is_excused(client)) {
        return true;
    }
    if (client->slow_reader || client->mute) {
        return true; /* what it had not taken may be lost with a reset, or be given up */
    }
    if (sim_world.draining_ns != 0 &&
        (request->first_ns == 0 || request->first_ns >= sim_world.draining_ns)) {
        return true;
    }
    /* Idle for too long, and the next request crossed the close. */
    return client->dawdles && kernel_now_ns() >= client->last_answer_ns + 20 * NS_PER_S;
}

void client_judge(struct client *client, bool reset)
{
    const struct request *request = &client->requests[client->answered];
    if (client->talk != TALK_HTTP) {
        return;
    }
    if (client->in_length > 0 && !client_is_excused(client) && !client->slow_reader &&
        !client->mute && !client->refused) {
        sim_fail("the connection ends within an answer: \"%.200s\"", client->in);
    }
    if (reset && !client->slow_reader && !client->mute && !client_is_excused(client) &&
        !client->refused && !client->told_close && !client->dawdles && sim_world.draining_ns == 0) {
        sim_fail("client %u reset by the server after %u of %u answers", client->number,
                 client->answered, client->count);
    }
    if (client->answered < client->count && !client_is_at_torso(client) && !may_be_cut(client)) {
        sim_fail("client %u closed with %u of %u requests unanswered; the next (%s) was begun at "
                 "%" PRIu64 ", now %" PRIu64,
                 client->number, client->count - client->answered, client->count, request->path,
                 request->first_ns, kernel_now_ns());
    }
    uint64_t idle_ns = kernel_now_ns() - client->last_answer_ns;
    uint64_t patience_ns = client->answered == 0 ? 20 * NS_PER_S : 60 * NS_PER_S;
    if (client->answered == client->count && !client->finished && !client->told_close &&
        !client->slow_reader && sim_world.draining_ns == 0 && idle_ns + SLACK_NS < patience_ns &&
        !client_is_excused(client)) {
        sim_fail("client %u: an idle connection is closed after %" PRIu64 " ms", client->number,
                 idle_ns / NS_PER_MS);
    }
}

/* due_ns - when the next thing must have come from the server, if it has all that it needs. */
static uint64_t due_ns(const struct client *client)
{
    uint64_t last_ns = client->last_answer_ns;
    if (client->answered == client->count) {
        uint64_t patience_ns = client->told_close ? 5 * NS_PER_S : 61 * NS_PER_S;
        return last_ns + patience_ns;
    }
    const struct request *request = &client->requests[client->answered];
    if (request->first_ns == 0) {
        return last_ns + 61 * NS_PER_S;
    }
    if (request->sent_ns == 0) { /* head and body have their 20 s each */
        uint64_t since_ns = request->first_ns > last_ns ? request->first_ns : last_ns;
        return since_ns + 41 * NS_PER_S;
    }
    uint64_t since_ns = request->sent_ns > last_ns ? request->sent_ns : last_ns;
    return since_ns + request->delay_ns;
}

void client_check_due(const struct client *client)
{
    if (client->peer == NULL || client->over || client->left || client->mute ||
        client->slow_reader || client->talk != TALK_HTTP) {
        return;
    }
    const struct request *request = &client->requests[client->answered];
    uint64_t slack_ns = SLACK_NS;
    if (client->answered < client->count && request->calls) {
        /* A remote that misbehaves: connect and answer have their time, once again on a fresh one. */
        slack_ns +=
            remote_is_excused(client, request) || client_is_excused(client) ? 16 * NS_PER_S : 0;
        slack_ns += sim_world.process.remote_calls.setup.bound > 0 ? 200 * NS_PER_S : 0;
    }
    slack_ns += client_is_excused(client) || sim_world.scarce ? 5 * NS_PER_S : 0;
    if (kernel_now_ns() > due_ns(client) + slack_ns) {
        sim_fail("client %u overdue: %u of %u answered, the next (%s) begun %" PRIu64
                 " sent %" PRIu64 " due %" PRIu64 " now %" PRIu64 "%s",
                 client->number, client->answered, client->count, request->path, request->first_ns,
                 request->sent_ns, due_ns(client), kernel_now_ns(),
                 client->told_close ? ", told to close" : "");
    }
}
