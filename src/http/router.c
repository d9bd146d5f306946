/* SPDX-License-Identifier: Apache-2.0 */
/*
 * router.c - see router.h. The hop from a request to its handler; called by
 * session.c for each request. A walk over the table: with fewer than twenty routes
 * the first differing byte ends each comparison sooner than a hash is computed.
 */
#include "http/router.h"

#include "base/must.h"
#include "base/percent.h"

/* The longest list of methods: all that have a name, with ", " between them. */
#define ALLOW_MAX 64

/* Indexed by enum http_method; the order in which Allow names them. */
static const struct slice method_names[HTTP_METHOD_UNKNOWN] = {
    [HTTP_GET] = {"GET", 3},     [HTTP_HEAD] = {"HEAD", 4},     [HTTP_POST] = {"POST", 4},
    [HTTP_PUT] = {"PUT", 3},     [HTTP_DELETE] = {"DELETE", 6}, [HTTP_OPTIONS] = {"OPTIONS", 7},
    [HTTP_PATCH] = {"PATCH", 5}, [HTTP_TRACE] = {"TRACE", 5},   [HTTP_CONNECT] = {"CONNECT", 7},
};

/* ------------------------------------------------------------------------ matching */

/* Bytes of path that the pattern's byte c matches: 1, 3 for a percent code of it, or 0. */
static size_t match_byte(char c, struct slice path)
{
    if (path.length == 0) {
        return 0;
    }
    if (likely(path.at[0] == c)) {
        return c != '%' ? 1 : 0;
    }
    return path.at[0] == '%' && c != '/' && percent_value(path) == (unsigned char)c ? 3 : 0;
}

/* Match one pattern; the params are not decoded yet. */
static bool match(const char *pattern, struct slice path, struct http_exchange *exchange)
{
    exchange->param_count = 0;
    while (*pattern != '\0') {
        if (*pattern != '{') {
            size_t matched = match_byte(*pattern, path);
            if (matched == 0) {
                return false;
            }
            path.at += matched;
            path.length -= matched;
            pattern++;
            continue;
        }
        const char *slash = path.length > 0 ? memchr(path.at, '/', path.length) : NULL;
        size_t length = slash != NULL ? (size_t)(slash - path.at) : path.length;
        if (length == 0) {
            return false;
        }
        must(exchange->param_count < HTTP_PARAMS_MAX);
        exchange->params[exchange->param_count++] = (struct slice){.at = path.at, .length = length};
        path.at += length;
        path.length -= length;
        pattern = strchr(pattern, '}');
        must(pattern != NULL);
        pattern++;
    }
    return path.length == 0;
}

static bool serves(const struct route *route, enum http_method method)
{
    return route->method == method || (route->method == HTTP_GET && method == HTTP_HEAD);
}

static unsigned methods_of(const struct route *route)
{
    unsigned methods = 1U << route->method;
    return route->method == HTTP_GET ? methods | 1U << HTTP_HEAD : methods;
}

/* --------------------------------------------------------------- what has no handler */

static const struct route *refuse(struct http_exchange *exchange, int status, uint64_t wall_ns)
{
    struct slice message = {.at = "", .length = 0};
    if (status == 400) {
        message = SLICE("percent code in the path is malformed");
    } else if (status == 501) {
        message = SLICE("method is unknown");
    }
    http_respond_error(exchange, status, message, wall_ns);
    return NULL;
}

/* Add "Allow: GET, HEAD, OPTIONS" for a set of 1 << enum http_method. */
static void add_allow(struct http_exchange *exchange, unsigned methods)
{
    struct http_response *response = exchange->response;
    char text[ALLOW_MAX];
    size_t length = 0;
    methods |= 1U << HTTP_OPTIONS;
    for (size_t i = 0; i < HTTP_METHOD_UNKNOWN; i++) {
        if ((methods & 1U << i) == 0) {
            continue;
        }
        if (length > 0) {
            text[length++] = ',';
            text[length++] = ' ';
        }
        must(method_names[i].length + 2 <= sizeof(text) - length);
        memcpy(text + length, method_names[i].at, method_names[i].length);
        length += method_names[i].length;
    }
    struct slice value = arena_copy(exchange->arena, (struct slice){.at = text, .length = length});
    if (value.at != NULL && response->extra_count < HTTP_EXTRA_FIELDS_MAX) {
        response->extra[response->extra_count++] =
            (struct http_field){.name = SLICE("Allow"), .value = value};
    }
}

/* The path's own answer when no route serves the method; methods are those that some route does. */
static const struct route *answer(struct http_exchange *exchange, unsigned methods,
                                  uint64_t wall_ns)
{
    if (exchange->request->method == HTTP_OPTIONS) {
        exchange->response->status = 200;
    } else {
        refuse(exchange, 405, wall_ns);
    }
    add_allow(exchange, methods);
    return NULL;
}

const struct route *router_find(const struct router *router, struct http_exchange *exchange,
                                uint64_t wall_ns)
{
    const struct http_request *request = exchange->request;
    unsigned methods = 0;
    if (request->method == HTTP_METHOD_UNKNOWN) {
        return refuse(exchange, 501, wall_ns);
    }
    /* The targets that name the server rather than a path of it. */
    if (request->path.length == 0 || request->path.at[0] != '/') {
        for (size_t i = 0; i < router->count; i++) {
            methods |= methods_of(&router->routes[i]);
        }
        return answer(exchange, methods, wall_ns);
    }
    if (!percent_is_valid(request->path)) {
        return refuse(exchange, 400, wall_ns);
    }
    for (size_t i = 0; i < router->count; i++) {
        const struct route *route = &router->routes[i];
        if (!match(route->pattern, request->path, exchange)) {
            continue;
        }
        if (!serves(route, request->method)) {
            methods |= methods_of(route);
            continue;
        }
        for (size_t k = 0; k < exchange->param_count; k++) {
            if (!percent_decode(exchange->arena, &exchange->params[k])) {
                return refuse(exchange, 503, wall_ns);
            }
        }
        return route;
    }
    exchange->param_count = 0;
    return methods != 0 ? answer(exchange, methods, wall_ns) : refuse(exchange, 404, wall_ns);
}
