/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_route.c - the router, delays and URLs. A path either finds a route, with every
 * placeholder filled, or has its answer; a delay is what a second reading by floating
 * point says, and never less; writing a path in percent codes changes nothing.
 *
 * The first byte chooses the method, the second what the rest is.
 */
#include <ctype.h>
#include <errno.h>

#include "app/delay.h"
#include "base/time.h"
#include "fuzz.h"
#include "http/router.h"
#include "http/url.h"

static void handle(struct http_exchange *exchange)
{
    (void)exchange;
}

static const struct route routes[] = {
    {HTTP_GET, "/currentThread", handle, ROUTE_QUICK, NULL},
    {HTTP_GET, "/blocking/{n}", handle, ROUTE_PARKS, NULL},
    {HTTP_POST, "/blocking/{n}", handle, ROUTE_BODY, NULL},
    {HTTP_GET, "/v2/{a}/x/{b}", handle, ROUTE_QUICK, NULL},
    {HTTP_GET, "/actuator/health", handle, ROUTE_QUICK, NULL},
};
static const struct router router = {.routes = routes, .count = sizeof(routes) / sizeof(routes[0])};

static _Alignas(16) char first_block[65536];

struct found {
    const struct route *route;
    struct http_response response;
    struct http_exchange exchange;
};

static void find(struct found *found, struct arena *arena, enum http_method method,
                 struct slice path)
{
    static struct http_request request;
    request = (struct http_request){.method = method, .version_minor = 1, .path = path};
    memset(found, 0, sizeof(*found));
    found->exchange =
        (struct http_exchange){.request = &request, .response = &found->response, .arena = arena};
    found->route = router_find(&router, &found->exchange, NS_PER_S);
}

static void check_route(enum http_method method, struct slice path)
{
    static char coded[8192 * 3];
    struct arena arena;
    struct found plain;
    struct found percent;
    arena_init(&arena, first_block, sizeof(first_block), sizeof(first_block));
    find(&plain, &arena, method, path);
    if (plain.route == NULL) {
        hold(plain.response.status >= 200, "without a route there is an answer");
    } else {
        for (size_t i = 0; i < plain.exchange.param_count; i++) {
            hold(plain.exchange.params[i].length > 0, "no placeholder is empty");
        }
    }
    /* The same path with each byte that is not a slash or a code already as a code. */
    if (path.length == 0 || path.at[0] != '/' || path.length > sizeof(coded) / 3 ||
        memchr(path.at, '%', path.length) != NULL || memchr(path.at, '\0', path.length) != NULL) {
        arena_reset(&arena);
        return;
    }
    size_t length = 0;
    for (size_t i = 0; i < path.length; i++) {
        if (path.at[i] == '/') {
            coded[length++] = '/';
        } else {
            static const char digits[] = "0123456789abcdef";
            unsigned char c = (unsigned char)path.at[i];
            coded[length++] = '%';
            coded[length++] = digits[c >> 4];
            coded[length++] = digits[c & 15];
        }
    }
    find(&percent, &arena, method, (struct slice){.at = coded, .length = length});
    hold(percent.route == plain.route, "percent codes find the same route");
    hold(percent.response.status == plain.response.status, "percent codes get the same answer");
    for (size_t i = 0; plain.route != NULL && i < plain.exchange.param_count; i++) {
        hold(slice_equal(plain.exchange.params[i], percent.exchange.params[i]),
             "percent codes are taken off a placeholder");
    }
    arena_reset(&arena);
}

static void check_delay(struct slice text)
{
    static char copy[DELAY_TEXT_MAX + 1];
    uint64_t ns = 0;
    int result = delay_parse(text, &ns);
    hold(result == 0 || result == -EINVAL || result == -ERANGE, "a delay has three outcomes");
    if (result != 0) {
        return;
    }
    hold(text.length > 0 && text.length <= DELAY_TEXT_MAX, "a delay is not long");
    memcpy(copy, text.at, text.length);
    copy[text.length] = '\0';
    hold(isdigit((unsigned char)copy[0]), "a delay begins with a digit");
    char *unit;
    long double value = strtold(copy, &unit);
    long double scale = strcmp(unit, "ms") == 0  ? 1e6L
                        : strcmp(unit, "m") == 0 ? 60e9L
                        : strcmp(unit, "h") == 0 ? 3600e9L
                                                 : 1e9L;
    hold(*unit == '\0' || scale != 1e9L || strcmp(unit, "s") == 0, "the unit is one of ours");
    long double exact = value * scale;
    hold((long double)ns >= exact - 1e-3L && (long double)ns < exact + 1 + 1e-3L,
         "a delay is its value, rounded up to a nanosecond");
    hold(ns <= 24 * 3600 * NS_PER_S, "a delay is at most a day");
}

static void check_url(struct slice text)
{
    struct url url;
    if (url_parse(text, &url) == 0) {
        hold(url.host.length > 0 && url.port > 0, "a URL has a host and a port");
        for (size_t i = 0; i < url.authority.length; i++) {
            hold((unsigned char)url.authority.at[i] > ' ' && url.authority.at[i] != 0x7f,
                 "an authority can stand in Host");
        }
        for (size_t i = 0; i < url.path.length; i++) {
            hold((unsigned char)url.path.at[i] > ' ' && url.path.at[i] != 0x7f,
                 "a path can stand in a request line");
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) {
        return 0;
    }
    struct slice text = {.at = (const char *)data + 2, .length = size - 2};
    switch (data[1] % 3) {
    case 0:
        check_route((enum http_method)(data[0] % (HTTP_METHOD_UNKNOWN + 1)), text);
        break;
    case 1:
        check_delay(text);
        break;
    default:
        check_url(text);
        break;
    }
    return 0;
}
