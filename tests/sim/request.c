/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request.c - requests of every route and of none, with their right answers.
 *
 * Each carries a token of its own where its route lets one come back.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"

static uint64_t serial; /* of tokens */

void client_put(struct client *client, const char *text, size_t length)
{
    if (client->out_length + length > client->out_capacity) {
        client->out_capacity = (client->out_length + length) * 2;
        client->out = realloc(client->out, client->out_capacity);
        if (client->out == NULL) {
            abort();
        }
    }
    if (length > 0) {
        memcpy(client->out + client->out_length, text, length);
        client->out_length += length;
    }
}

static void say(struct client *client, const char *text)
{
    client_put(client, text, strlen(text));
}

static void set_body(struct request *request, enum body_kind kind, const char *body)
{
    request->kind = kind;
    snprintf(request->body, sizeof(request->body), "%s", body);
}

/* draw_delay - a text of a delay with a token in its fraction, and what it means. */
static uint64_t draw_delay(char *dst, size_t size)
{
    uint64_t token = ++serial % 100000;
    switch (kernel_random(4)) {
    case 0: /* nanoseconds are exact: 0.0TTTTT s */
        snprintf(dst, size, "0.0%05" PRIu64, token);
        return token * 1000;
    case 1:
        snprintf(dst, size, "0.%" PRIu64 "%05" PRIu64, 1 + token % 9, token);
        return (1 + token % 9) * 100 * NS_PER_MS + token * 1000;
    case 2:
        snprintf(dst, size, "%" PRIu64 ".%05" PRIu64 "ms", token % 400, token);
        return token % 400 * NS_PER_MS + token * 10;
    default:
        snprintf(dst, size, "%" PRIu64 ".%05" PRIu64 "s", 1 + token % 3, token);
        return (1 + token % 3) * NS_PER_S + token * 10000;
    }
}

static void of_thread(struct request *request)
{
    strcpy(request->path, "/currentThread");
    request->kind = kernel_random(4) == 0 ? BODY_THREAD_JSON : BODY_THREAD;
}

static void of_blocking(struct request *request)
{
    request->delay_ns = draw_delay(request->token, sizeof(request->token));
    snprintf(request->path, sizeof(request->path), "/blocking/%s", request->token);
    request->calls = true;
    snprintf(request->body, sizeof(request->body), "Hello, delayed by %s seconds.", request->token);
    request->kind = sim_world.remote_is_ours ? BODY_TEXT : BODY_REMOTE;
}

static void of_remote(struct request *request)
{
    request->delay_ns = draw_delay(request->token, sizeof(request->token));
    snprintf(request->path, sizeof(request->path), "/remote/%s", request->token);
    snprintf(request->body, sizeof(request->body), "Hello, delayed by %s seconds.", request->token);
    request->kind = BODY_TEXT;
}

static void of_wait(struct request *request)
{
    bool async = kernel_random(2) == 0;
    strcpy(request->path, async ? "/wait-async" : "/wait-blocking");
    request->delay_ns = 100 * NS_PER_MS;
    set_body(request, BODY_TEXT, "Hello, World");
}

static void of_computational(struct request *request)
{
    strcpy(request->path, "/computational");
    set_body(request, BODY_TEXT, "Hello, World");
}

static void of_health(struct request *request)
{
    static const char *paths[] = {"/actuator/health", "/actuator/health/readiness",
                                  "/actuator/health/liveness"};
    size_t which = kernel_random(3);
    strcpy(request->path, paths[which]);
    request->health = which < 2;
    set_body(request, BODY_TEXT, "{\"status\":\"UP\"}");
}

static void of_echoes(struct request *request)
{
    strcpy(request->path, "/actuator/echo");
    request->kind = BODY_ECHOES;
}

static const char info_format[] =
    "{\"productId\":\"%s\",\"productOptions\":[{\"size\":\"64GB\",\"color\":\"Black\","
    "\"price\":699.99},{\"size\":\"128GB\",\"color\":\"Black\",\"price\":749.99}]}";
#define REVIEWS "{\"noOfReviews\":200,\"overallRating\":4.5}"
#define DELIVERY "{\"deliveryOptions\":[\"NEXT_DAY\",\"TWO_DAY\"]}"

static void of_product(struct request *request)
{
    char info[256];
    bool second = kernel_random(2) == 0;
    const char *query = "";
    snprintf(request->token, sizeof(request->token), "p-%" PRIu64 "~", ++serial);
    snprintf(info, sizeof(info), info_format, request->token);
    request->parts = second ? 3 : 2;
    request->calls = true;
    request->delay_ns = 2 * NS_PER_S;
    snprintf(request->body, sizeof(request->body),
             "{\"productId\":\"%s\",\"productInfo\":%s,\"reviews\":" REVIEWS "%s}", request->token,
             info, second ? ",\"deliveryDetails\":" DELIVERY : "");
    request->kind = sim_world.remote_is_ours ? BODY_TEXT : BODY_PRODUCT;
    switch (kernel_random(4)) {
    case 0:
        query = second ? "?fail=delivery" : "?fail=reviews";
        request->status = 502;
        request->kind = BODY_ERROR;
        request->delay_ns = 100 * NS_PER_MS;
        break;
    case 1:
        query = "?deadline=1500ms";
        request->deadline_ns = 1500 * NS_PER_MS;
        request->status = 504;
        request->kind = BODY_ERROR;
        request->delay_ns = request->deadline_ns;
        break;
    case 2:
        query = "?deadline=10";
        request->deadline_ns = 10 * NS_PER_S;
        break;
    default:
        break;
    }
    snprintf(request->path, sizeof(request->path), "%s/product/%s%s", second ? "/v2" : "",
             request->token, query);
}

/* of_part - the remote's own routes. */
static void of_part(struct request *request)
{
    snprintf(request->token, sizeof(request->token), "p-%" PRIu64 "~", ++serial);
    switch (kernel_random(3)) {
    case 0:
        snprintf(request->path, sizeof(request->path), "/productInfo/%s", request->token);
        snprintf(request->body, sizeof(request->body), info_format, request->token);
        request->delay_ns = NS_PER_S;
        break;
    case 1:
        snprintf(request->path, sizeof(request->path), "/reviews/%s", request->token);
        set_body(request, BODY_TEXT, REVIEWS);
        request->delay_ns = 2 * NS_PER_S;
        break;
    default:
        snprintf(request->path, sizeof(request->path), "/deliveryDetails/%s?fail=250ms",
                 request->token);
        request->status = 500;
        request->kind = BODY_ERROR;
        request->delay_ns = 250 * NS_PER_MS;
    }
}

static void of_fanout(struct request *request)
{
    request->count = 1 + (unsigned)kernel_random(12);
    request->delay_ns = draw_delay(request->token, sizeof(request->token));
    snprintf(request->path, sizeof(request->path), "/fanout/%u/%s", request->count, request->token);
    request->calls = true;
    request->kind = BODY_FANOUT;
}

/* of_directory - put an entry, get it, find it by its attribute, delete it: one after the other. */
static void of_directory(struct client *client, struct request *request)
{
    unsigned stage = client->entry_stage++ % 4;
    request->directory = true;
    request->method = "GET";
    if (stage == 0) {
        snprintf(client->entry_key, sizeof(client->entry_key), "k%" PRIu64, ++serial);
        snprintf(client->entry_json, sizeof(client->entry_json),
                 "{\"owner\":\"o%s\",\"size\":%" PRIu64 "}", client->entry_key,
                 kernel_random(1000000));
    }
    snprintf(request->path, sizeof(request->path),
             stage == 2 ? "/directory?owner=o%s" : "/directory/%s", client->entry_key);
    switch (stage) {
    case 0:
        request->method = "PUT";
        request->status = 201;
        set_body(request, BODY_TEXT, "");
        break;
    case 1:
        set_body(request, BODY_TEXT, client->entry_json);
        break;
    case 2:
        snprintf(request->body, sizeof(request->body), "{\"count\":1,\"keys\":[\"%s\"]}",
                 client->entry_key);
        request->kind = BODY_TEXT;
        break;
    default:
        request->method = "DELETE";
        request->status = 204;
        set_body(request, BODY_TEXT, "");
    }
}

static void of_nowhere(struct request *request)
{
    snprintf(request->path, sizeof(request->path), "/nowhere/%" PRIu64, ++serial);
    request->status = 404;
    request->kind = BODY_ERROR;
}

static void of_bad_delay(struct request *request)
{
    const char *route = request->calls ? "/blocking" : "/remote";
    request->calls = false;
    snprintf(request->path, sizeof(request->path), "%s/-%" PRIu64 "x", route, ++serial);
    request->status = 400;
    request->kind = BODY_ERROR;
}

/* say_body - of that many bytes, by length or in chunks; with a pause for a 100 in between. */
static void say_body(struct client *client, struct request *request, size_t length, bool expects)
{
    static const char filler[] = "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n";
    char head[64];
    bool chunked = kernel_random(2) == 0;
    if (chunked) {
        say(client, "Transfer-Encoding: chunked\r\n\r\n");
    } else {
        snprintf(head, sizeof(head), "Content-Length: %zu\r\n\r\n", length);
        say(client, head);
    }
    request->must_continue = expects && request->may_continue;
    if (expects && kernel_random(4) != 0) {
        request->pause_at = client->out_length;
    }
    for (size_t left = length; left > 0;) {
        size_t piece = left < sizeof(filler) - 1 ? left : sizeof(filler) - 1;
        if (chunked) {
            snprintf(head, sizeof(head), "%zX\r\n", piece);
            say(client, head);
        }
        client_put(client, filler, piece);
        say(client, chunked ? "\r\n" : "");
        left -= piece;
    }
    say(client, chunked ? kernel_random(4) == 0 ? "0\r\nX-Trailer: 1\r\n\r\n" : "0\r\n\r\n" : "");
}

/* of_method - the path is drawn; another method than it has, or one that has no body in its answer. */
static const char *of_method(struct request *request)
{
    switch (kernel_random(10)) {
    case 0:
        request->head_only = true;
        return "HEAD";
    case 1:
        request->status = 200;
        set_body(request, BODY_TEXT, "");
        request->allow = "GET, HEAD, OPTIONS";
        request->calls = request->health = false;
        request->delay_ns = 0;
        return "OPTIONS";
    case 2:
        request->status = 405;
        request->kind = BODY_ERROR;
        request->allow = "GET, HEAD, OPTIONS";
        request->calls = request->health = false;
        request->delay_ns = 0;
        return kernel_random(2) == 0 ? "POST" : "DELETE";
    case 3:
        request->status = 501;
        request->kind = BODY_ERROR;
        request->calls = request->health = false;
        request->delay_ns = 0;
        return "BREW";
    default:
        return "GET";
    }
}

static void add_malformed(struct client *client, struct request *request)
{
    static const struct {
        const char *text;
        int status;
    } kinds[] = {
        {"GET  /two-spaces HTTP/1.1\r\nHost: a\r\n\r\n", 400},
        {"GET /no-host HTTP/1.1\r\n\r\n", 400},
        {"GET /x HTTP/2.0\r\nHost: a\r\n\r\n", 505},
        {"GET /x HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400},
        {"POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400},
        {"GET /x HTTP/1.1\r\nHost: a\r\nBad Name: 1\r\n\r\n", 400},
        {"\x16\x03\x01\x02\x04\x01\x04\xfc\x03\x03", 400},
    };
    size_t which = kernel_random(sizeof(kinds) / sizeof(kinds[0]) + 1);
    request->kind = BODY_ERROR;
    request->ends = true;
    request->path[0] = '\0';
    if (which < sizeof(kinds) / sizeof(kinds[0])) {
        request->status = kinds[which].status;
        say(client, kinds[which].text);
    } else { /* a head that is too long */
        request->status = 431;
        say(client, "GET /long HTTP/1.1\r\nHost: a\r\n");
        for (int i = 0; i < 90; i++) {
            say(client, "X-Long: 0123456789012345678901234567890123456789012345678901234567890123"
                        "4567890123456789012345678901234567890123\r\n");
        }
    }
}

/* add_whole - method, target, fields, maybe a body. */
static void add_whole(struct client *client, struct request *request)
{
    char line[BODY_MAX + 64];
    const char *method = request->method != NULL ? request->method : "GET";
    if (request->status == 200 && request->method == NULL) {
        method = of_method(request);
    }
    request->http_1_0 = kernel_random(12) == 0;
    bool body = !request->http_1_0 && kernel_random(4) == 0;
    bool expects = body && kernel_random(3) == 0;
    snprintf(line, sizeof(line), "%s %s HTTP/1.%c\r\nHost: sim\r\n", method, request->path,
             request->http_1_0 ? '0' : '1');
    say(client, kernel_random(16) == 0 ? "\r\n" : "");
    say(client, line);
    if (request->kind == BODY_THREAD_JSON) {
        say(client, "Accept: text/html, application/json;q=0.9\r\n");
    }
    if (request->http_1_0) {
        bool keeps = kernel_random(2) == 0;
        request->ends = !keeps;
        say(client, keeps ? "Connection: keep-alive\r\n" : "");
    } else if (kernel_random(7) == 0) {
        request->ends = true;
        say(client, "Connection: close\r\n");
    }
    for (uint64_t i = kernel_random(3); i > 0; i--) {
        say(client, "X-Filler: 0123456789 abcdefghijklmnopqrstuvwxyz\r\n");
    }
    if (request->status == 201) {
        snprintf(line, sizeof(line), "Content-Length: %zu\r\n\r\n%s", strlen(client->entry_json),
                 client->entry_json);
        say(client, line);
        return;
    }
    if (!body) {
        say(client, "\r\n");
        return;
    }
    if (expects) {
        say(client, "Expect: 100-continue\r\n");
        /* What is refused by its head alone is not asked to continue, and ends the connection. */
        bool refused = request->status == 404 || request->status == 405 || request->status == 501 ||
                       request->status == 400 || request->allow != NULL;
        request->may_continue = !refused;
        request->ends = request->ends || refused;
    }
    size_t length = kernel_random(8) == 0 ? 5000 + kernel_random(20000) : kernel_random(200);
    say_body(client, request, expects ? length + 1 : length, expects);
}

bool request_add(struct client *client)
{
    static void (*const of_app[])(struct request *) = {
        of_thread, of_thread,  of_blocking, of_blocking,      of_blocking, of_wait,     of_health,
        of_echoes, of_product, of_fanout,   of_computational, of_nowhere,  of_bad_delay};
    static void (*const of_remotes[])(struct request *) = {of_remote, of_remote,  of_part,
                                                           of_health, of_nowhere, of_bad_delay};
    struct request *request = &client->requests[client->count++];
    memset(request, 0, sizeof(*request));
    request->begin = client->out_length;
    request->status = 200;
    if (kernel_random(24) == 0) {
        add_malformed(client, request);
    } else {
        if (client->port == SIM_APP_PORT && kernel_random(8) == 0) {
            of_directory(client, request);
        } else if (client->port == SIM_APP_PORT) {
            request->calls = true; /* of_bad_delay asks */
            void (*of)(struct request *) =
                of_app[kernel_random(sizeof(of_app) / sizeof(of_app[0]))];
            if (!sim_world.remote_is_ours && kernel_random(3) == 0) {
                of = of_blocking; /* that remote is what is looked at then */
            }
            request->calls = of == of_bad_delay;
            of(request);
        } else {
            of_remotes[kernel_random(sizeof(of_remotes) / sizeof(of_remotes[0]))](request);
        }
        add_whole(client, request);
        char *query = strchr(request->path, '?');
        if (query != NULL) {
            *query = '\0'; /* an error body has the path alone */
        }
    }
    request->end = client->out_length;
    return !request->ends;
}
