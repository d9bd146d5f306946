/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parse.c - what HTTP costs a request beside the network: nanoseconds for parser,
 * router and writer together, of a request as load generators send it and of one as
 * browsers do, and of sixteen that came in one piece. Median of the rounds.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/must.h"
#include "http/parser.h"
#include "http/router.h"
#include "http/writer.h"
#include "ring/sys.h"

#define ROUNDS 21
#define REQUESTS_PER_ROUND 200000
#define PIPELINED 16

static const char small_request[] = "GET /currentThread HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n";

static const char browser_request[] =
    "GET /currentThread?since=2024-01-01&page=2 HTTP/1.1\r\n"
    "Host: localhost:8080\r\n"
    "Connection: keep-alive\r\n"
    "Cache-Control: max-age=0\r\n"
    "sec-ch-ua: \"Chromium\";v=\"124\", \"Google Chrome\";v=\"124\", \"Not-A.Brand\";v=\"99\"\r\n"
    "sec-ch-ua-mobile: ?0\r\n"
    "sec-ch-ua-platform: \"Linux\"\r\n"
    "Upgrade-Insecure-Requests: 1\r\n"
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) "
    "Chrome/124.0.0.0 Safari/537.36\r\n"
    "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,"
    "image/apng,*/*;q=0.8,application/signed-exchange;v=b3;q=0.7\r\n"
    "Sec-Fetch-Site: none\r\n"
    "Sec-Fetch-Mode: navigate\r\n"
    "Sec-Fetch-User: ?1\r\n"
    "Sec-Fetch-Dest: document\r\n"
    "Accept-Encoding: gzip, deflate, br, zstd\r\n"
    "Accept-Language: en-GB,en-US;q=0.9,en;q=0.8\r\n"
    "\r\n";

static void answer(struct http_exchange *exchange)
{
    http_respond_text(exchange, SLICE("Fiber[#61,http-8080-conn-12]/runnable@carrier-1"));
}

static const struct route routes[] = {
    {HTTP_GET, "/blocking/{n}", answer, ROUTE_PARKS, NULL},
    {HTTP_GET, "/computational", answer, ROUTE_QUICK, NULL},
    {HTTP_GET, "/wait-blocking", answer, ROUTE_PARKS, NULL},
    {HTTP_GET, "/wait-async", answer, ROUTE_PARKS, NULL},
    {HTTP_GET, "/product/{id}", answer, ROUTE_PARKS, NULL},
    {HTTP_GET, "/v2/product/{id}", answer, ROUTE_PARKS, NULL},
    {HTTP_GET, "/actuator/health", answer, ROUTE_QUICK, NULL},
    {HTTP_GET, "/actuator/health/liveness", answer, ROUTE_QUICK, NULL},
    {HTTP_GET, "/actuator/health/readiness", answer, ROUTE_QUICK, NULL},
    {HTTP_GET, "/currentThread", answer, ROUTE_QUICK, NULL},
};

static const struct router router = {.routes = routes, .count = sizeof(routes) / sizeof(routes[0])};

/* Serve all the requests of bytes; returns how many bytes the answers have. */
static size_t serve(struct parser *parser, struct arena *arena, struct slice bytes)
{
    static char out[8192];
    struct writer_framing framing = {.date = "Sun, 06 Nov 1994 08:49:37 GMT"};
    size_t length = 0;
    while (bytes.length > 0) {
        size_t used;
        must(parser_feed(parser, bytes, &used) == PARSER_MESSAGE);
        bytes.at += used;
        bytes.length -= used;
        struct http_response response = {.status = 0};
        struct http_exchange exchange = {
            .request = &parser->request, .response = &response, .arena = arena};
        const struct route *route = router_find(&router, &exchange, 0);
        must(route != NULL);
        route->handler(&exchange);
        framing.version_minor = parser->request.version_minor;
        framing.keep_alive = parser->request.keep_alive;
        size_t written = writer_response(out + length, sizeof(out) - length, &response, &framing);
        must(written > 0);
        length += written;
        parser_next(parser);
        arena_reset(arena);
    }
    return length;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(const char *name, struct slice bytes, size_t requests)
{
    static _Alignas(64) char memory[4096];
    struct arena arena;
    struct parser parser;
    struct parser_limits limits = {.head_bytes_max = 8192, .body_bytes_max = 1 << 20};
    double ns[ROUNDS];
    arena_init(&arena, memory, sizeof(memory), 1 << 20);
    parser_init_requests(&parser, &limits, &arena);
    for (size_t round = 0; round < ROUNDS; round++) {
        uint64_t start = sys_clock_ns();
        for (size_t i = 0; i < REQUESTS_PER_ROUND / requests; i++) {
            size_t length = serve(&parser, &arena, bytes);
            __asm__ volatile("" : : "r"(length) : "memory");
        }
        ns[round] = (double)(sys_clock_ns() - start) / REQUESTS_PER_ROUND;
    }
    qsort(ns, ROUNDS, sizeof(ns[0]), compare);
    printf("%-28s %5zu bytes  %7.1f ns a request  (fastest round %.1f)\n", name, bytes.length,
           ns[ROUNDS / 2], ns[0]);
}

int main(void)
{
    static char pipelined[PIPELINED * sizeof(small_request)];
    size_t length = sizeof(small_request) - 1;
    for (size_t i = 0; i < PIPELINED; i++) {
        memcpy(pipelined + i * length, small_request, length);
    }
    measure("small GET", SLICE(small_request), 1);
    measure("small GETs, 16 in one piece", (struct slice){pipelined, PIPELINED * length},
            PIPELINED);
    measure("browser's GET", SLICE(browser_request), 1);
    return 0;
}
