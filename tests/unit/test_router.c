/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property: each method and path finds the one handler the table gives it, with its
 * placeholders decoded, or the right refusal with the right Allow.
 *
 * Method: a table of methods and paths against a table of routes of every kind.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "http/router.h"

static void handler(struct http_exchange *exchange)
{
    (void)exchange;
}

static const struct route routes[] = {
    {HTTP_GET, "/", handler, ROUTE_QUICK, NULL},
    {HTTP_GET, "/currentThread", handler, ROUTE_QUICK, NULL},
    {HTTP_GET, "/blocking/{n}", handler, ROUTE_PARKS, NULL},
    {HTTP_GET, "/actuator/health", handler, ROUTE_QUICK, NULL},
    {HTTP_GET, "/actuator/health/liveness", handler, ROUTE_QUICK, NULL},
    {HTTP_GET, "/v2/product/{id}", handler, ROUTE_PARKS, NULL},
    {HTTP_GET, "/a/{x}/b/{y}", handler, ROUTE_QUICK, NULL},
    {HTTP_POST, "/a/{x}/b/{y}", handler, ROUTE_BODY, NULL},
    {HTTP_DELETE, "/a/{x}/b", handler, ROUTE_QUICK, NULL},
};

static const struct router router = {.routes = routes, .count = sizeof(routes) / sizeof(routes[0])};

struct router_case {
    enum http_method method;
    const char *path;
    int route;          /* index, or -1 */
    int status;         /* where there is no route */
    const char *params; /* each followed by ';' */
    const char *allow;
};

static const struct router_case cases[] = {
    {HTTP_GET, "/", 0, 0, "", ""},
    {HTTP_GET, "/currentThread", 1, 0, "", ""},
    {HTTP_HEAD, "/currentThread", 1, 0, "", ""},
    {HTTP_GET, "/current%54hread", 1, 0, "", ""},
    {HTTP_GET, "/currentthread", -1, 404, "", ""},
    {HTTP_GET, "/currentThread/", -1, 404, "", ""},
    {HTTP_GET, "//currentThread", -1, 404, "", ""},
    {HTTP_GET, "/currentThrea", -1, 404, "", ""},
    {HTTP_GET, "/currentThreads", -1, 404, "", ""},
    {HTTP_GET, "/%2FcurrentThread", -1, 404, "", ""},
    {HTTP_GET, "/../currentThread", -1, 404, "", ""},
    {HTTP_GET, "/blocking/2", 2, 0, "2;", ""},
    {HTTP_GET, "/blocking/a%20b%C3%A4", 2, 0, "a b\xc3\xa4;", ""},
    {HTTP_GET, "/blocking/a%2fb", 2, 0, "a/b;", ""},
    {HTTP_GET, "/blocking/%25%32%35", 2, 0, "%25;", ""},
    {HTTP_GET, "/blocking/a+b", 2, 0, "a+b;", ""},
    {HTTP_GET, "/blocking/{n}", 2, 0, "{n};", ""},
    {HTTP_GET, "/blocking%2F2", -1, 404, "", ""},
    {HTTP_GET, "/blocking/", -1, 404, "", ""},
    {HTTP_GET, "/blocking", -1, 404, "", ""},
    {HTTP_GET, "/blocking/2/", -1, 404, "", ""},
    {HTTP_GET, "/blocking/2/3", -1, 404, "", ""},
    {HTTP_GET, "/blocking/%", -1, 400, "", ""},
    {HTTP_GET, "/blocking/%4", -1, 400, "", ""},
    {HTTP_GET, "/blocking/%4g", -1, 400, "", ""},
    {HTTP_GET, "/blocking/%00", -1, 400, "", ""},
    {HTTP_GET, "/nowhere/%zz", -1, 400, "", ""},
    {HTTP_GET, "/actuator/health", 3, 0, "", ""},
    {HTTP_GET, "/actuator/health/liveness", 4, 0, "", ""},
    {HTTP_GET, "/actuator/health/other", -1, 404, "", ""},
    {HTTP_GET, "/v2/product/7", 5, 0, "7;", ""},
    {HTTP_GET, "/a/1/b/2", 6, 0, "1;2;", ""},
    {HTTP_POST, "/a/1/b/2", 7, 0, "1;2;", ""},
    {HTTP_GET, "/a//b/2", -1, 404, "", ""},
    {HTTP_PUT, "/a/1/b/2", -1, 405, "", "GET, HEAD, POST, OPTIONS"},
    {HTTP_GET, "/a/1/b", -1, 405, "", "DELETE, OPTIONS"},
    {HTTP_DELETE, "/a/1/b", 8, 0, "1;", ""},
    {HTTP_POST, "/currentThread", -1, 405, "", "GET, HEAD, OPTIONS"},
    {HTTP_TRACE, "/currentThread", -1, 405, "", "GET, HEAD, OPTIONS"},
    {HTTP_TRACE, "/nowhere", -1, 404, "", ""},
    {HTTP_POST, "/nowhere", -1, 404, "", ""},
    {HTTP_CONNECT, "a.b:443", -1, 405, "", "GET, HEAD, POST, DELETE, OPTIONS"},
    {HTTP_OPTIONS, "/currentThread", -1, 200, "", "GET, HEAD, OPTIONS"},
    {HTTP_OPTIONS, "/a/1/b/2", -1, 200, "", "GET, HEAD, POST, OPTIONS"},
    {HTTP_OPTIONS, "/nowhere", -1, 404, "", ""},
    {HTTP_OPTIONS, "*", -1, 200, "", "GET, HEAD, POST, DELETE, OPTIONS"},
    {HTTP_METHOD_UNKNOWN, "/currentThread", -1, 501, "", ""},
    {HTTP_METHOD_UNKNOWN, "/nowhere", -1, 501, "", ""},
};

static void check_case(const struct router_case *c)
{
    static _Alignas(16) char memory[4096];
    struct arena arena;
    arena_init(&arena, memory, sizeof(memory), sizeof(memory));
    struct http_request request = {.method = c->method, .path = slice_of(c->path)};
    struct http_response response = {.status = 0};
    struct http_exchange exchange = {.request = &request, .response = &response, .arena = &arena};
    const struct route *route = router_find(&router, &exchange, 0);

    int found = route == NULL ? -1 : (int)(route - routes);
    int status = route == NULL ? response.status : 0;
    char params[256] = "";
    for (size_t i = 0; i < exchange.param_count; i++) {
        strncat(params, exchange.params[i].at, exchange.params[i].length);
        strcat(params, ";");
    }
    char allow[256] = "";
    const struct slice *value =
        http_field_find(response.extra, response.extra_count, SLICE("Allow"));
    if (value != NULL) {
        strncat(allow, value->at, value->length);
    }
    if (found != c->route || status != c->status || strcmp(params, c->params) != 0 ||
        strcmp(allow, c->allow) != 0) {
        fail_msg("method %d %s: expected route %d status %d params \"%s\" allow \"%s\", "
                 "got route %d status %d params \"%s\" allow \"%s\"",
                 c->method, c->path, c->route, c->status, c->params, c->allow, found, status,
                 params, allow);
    }
    if (route == NULL) {
        /* Errors have Spring's body, the answer to OPTIONS none. */
        assert_int_equal(response.body.length > 0, status != 200);
    } else {
        assert_int_equal(response.extra_count, 0);
    }
    arena_reset(&arena);
}

static void test_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        check_case(&cases[i]);
    }
}

/* Decoding needs memory; without, the answer is a 503 whose body stays empty. */
static void test_no_memory(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena, NULL, 0, 0);
    struct http_request request = {.method = HTTP_GET, .path = SLICE("/blocking/%41")};
    struct http_response response = {.status = 0};
    struct http_exchange exchange = {.request = &request, .response = &response, .arena = &arena};
    assert_null(router_find(&router, &exchange, 0));
    assert_int_equal(response.status, 503);
    assert_int_equal(response.body.length, 0);
    request.path = SLICE("/blocking/A");
    assert_ptr_equal(router_find(&router, &exchange, 0), &routes[2]);
    request.method = HTTP_PUT;
    assert_null(router_find(&router, &exchange, 0));
    assert_int_equal(response.status, 405);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
