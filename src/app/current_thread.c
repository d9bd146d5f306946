/* SPDX-License-Identifier: Apache-2.0 */
/*
 * current_thread.c - GET /currentThread: tells what runs the request.
 *
 *   Fiber[#61,http-8080-conn-12]/runnable@carrier-1
 *   Thread[#45,http-8080-exec-1,5,main]
 *
 * With Accept: application/json the same with figures.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "app/app.h"
#include "app/routes.h"
#include "base/json.h"
#include "base/must.h"
#include "fiber/fiber.h"
#include "io/pool.h"
#include "ring/carrier.h"
#include "ring/sys.h"

#define JSON_MAX 2048
#define HOST_NAME_SIZE 65 /* the kernel allows 64 bytes, and any of them */

/* wants_json - does Accept name application/json? Wildcards get the text, as from Spring. */
static bool wants_json(const struct http_request *request)
{
    const struct slice *accept =
        http_field_find(request->fields, request->field_count, SLICE("Accept"));
    if (accept == NULL) {
        return false;
    }
    struct slice rest = *accept, element;
    while (slice_next_token(&rest, &element)) {
        const char *parameters = memchr(element.at, ';', element.length);
        if (parameters != NULL) {
            element.length = (size_t)(parameters - element.at);
        }
        if (slice_equal_nocase(slice_trim(element), SLICE("application/json"))) {
            return true;
        }
    }
    return false;
}

struct json {
    char text[JSON_MAX];
    size_t length;
};

static void PRINTF_LIKE(2, 3) json_put(struct json *json, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    int length =
        vsnprintf(json->text + json->length, sizeof(json->text) - json->length, format, values);
    va_end(values);
    must(length >= 0 && json->length + (size_t)length < sizeof(json->text));
    json->length += (size_t)length;
}

static void put_ring(struct json *json, const struct ring *ring)
{
    struct ring_facts facts;
    const char *feature;
    ring_facts(ring, &facts);
    json_put(json, "{\"fd\":%d,\"sqEntries\":%u,\"cqEntries\":%u,\"buffers\":%u,\"features\":[",
             facts.fd, facts.sq_entries, facts.cq_entries, facts.buffers);
    for (unsigned i = 0; (feature = ring_feature(ring, i)) != NULL; i++) {
        json_put(json, "%s\"%s\"", i > 0 ? "," : "", feature);
    }
    json_put(json, "]}");
}

static void put_fiber(struct json *json, const struct fiber *fiber)
{
    const struct carrier *carrier = carrier_current();
    char name[FIBER_NAME_SIZE];
    uint64_t running_ns = sys_clock_ns() - fiber->state_since_ns;

    fiber_format_name(fiber, name, sizeof(name));
    json_put(json, "\"id\":%" PRIu64 ",\"name\":\"%s\",\"kind\":\"fiber\",\"state\":\"runnable\",",
             fiber->id, name);
    json_put(json, "\"carrier\":\"%s\",\"osThreadId\":%d,\"cpu\":%d,", carrier->name,
             carrier->thread_id, sys_processor());
    json_put(json, "\"stackSize\":%zu,\"stackUsed\":%zu,\"contextSwitches\":%" PRIu64 ",",
             fiber->stack.size, stack_used_bytes(fiber->stack), fiber->switches);
    json_put(json, "\"parkedNanos\":%" PRIu64 ",\"runNanos\":%" PRIu64 ",", fiber->parked_ns,
             fiber->run_ns + running_ns);
    json_put(json, "\"ring\":");
    put_ring(json, &carrier->ring);
}

static void put_thread(struct json *json, const struct pool_thread *thread)
{
    struct sys_thread_figures figures;
    sys_thread_figures(&figures);
    struct stack stack = {.base = figures.stack_low, .size = figures.stack_bytes};
    uint64_t alive_ns = sys_clock_ns() - thread->started_ns;

    json_put(json,
             "\"id\":%" PRIu64 ",\"name\":\"%s\",\"kind\":\"platform\",\"state\":\"runnable\",",
             thread->id, thread->name);
    json_put(json, "\"carrier\":null,\"osThreadId\":%d,\"cpu\":%d,", sys_thread_id(),
             sys_processor());
    json_put(json, "\"stackSize\":%zu,\"stackUsed\":%zu,\"contextSwitches\":%" PRIu64 ",",
             stack.size, stack_used_bytes(stack), figures.switches);
    json_put(json, "\"parkedNanos\":%" PRIu64 ",\"runNanos\":%" PRIu64 ",\"ring\":",
             alive_ns > figures.processor_ns ? alive_ns - figures.processor_ns : 0,
             figures.processor_ns);
    put_ring(json, &thread->carrier->ring); /* that of the connection, where its fiber is parked */
}

/* put_host - which of several servers behind one address this is. */
static void put_host(struct json *json)
{
    char name[HOST_NAME_SIZE], escaped[HOST_NAME_SIZE * JSON_ESCAPE_GROWTH];
    sys_host_name(name, sizeof(name));
    size_t length = json_escape(escaped, sizeof(escaped), slice_of(name));
    json_put(json, "\"host\":\"%.*s\",", (int)length, escaped);
}

static void respond_json(struct http_exchange *exchange)
{
    struct app *app = exchange->context;
    struct json json = {.length = 0};
    uint64_t uptime_ms = (sys_clock_ns() - app->started_ns) / NS_PER_MS;

    json_put(&json, "{");
    put_host(&json);
    if (fiber_current() != NULL) {
        put_fiber(&json, fiber_current());
    } else {
        put_thread(&json, pool_thread_current());
    }
    json_put(&json, ",\"uptimeSeconds\":%" PRIu64 ".%03" PRIu64 "}", uptime_ms / 1000,
             uptime_ms % 1000);
    struct slice body =
        arena_copy(exchange->arena, (struct slice){.at = json.text, .length = json.length});
    if (body.at == NULL) {
        http_respond_error(exchange, 503, SLICE("no memory for the answer"), sys_wall_ns());
        return;
    }
    http_respond_json(exchange, 200, body);
}

void current_thread_handle(struct http_exchange *exchange)
{
    char *text = arena_alloc(exchange->arena, FIBER_DESCRIBE_SIZE);
    size_t length;

    if (wants_json(exchange->request)) {
        respond_json(exchange);
        return;
    }
    if (text == NULL) {
        http_respond_error(exchange, 503, SLICE("no memory for the answer"), sys_wall_ns());
        return;
    }
    if (fiber_current() != NULL) {
        length = fiber_describe(fiber_current(), text, FIBER_DESCRIBE_SIZE);
    } else {
        const struct pool_thread *thread = pool_thread_current();
        length = (size_t)snprintf(text, FIBER_DESCRIBE_SIZE, "Thread[#%" PRIu64 ",%s,5,main]",
                                  thread->id, thread->name);
    }
    http_respond_text(exchange, (struct slice){.at = text, .length = length});
}
