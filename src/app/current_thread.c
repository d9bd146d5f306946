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
#include <stdio.h>
#include <string.h>

#include "app/app.h"
#include "app/routes.h"
#include "base/must.h"
#include "base/text.h"
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

static void put_ring(struct text *json, const struct ring *ring)
{
    struct ring_facts facts;
    const char *feature;
    ring_facts(ring, &facts);
    text_put(json, "{\"fd\":%d,\"sqEntries\":%u,\"cqEntries\":%u,\"buffers\":%u,\"features\":[",
             facts.fd, facts.sq_entries, facts.cq_entries, facts.buffers);
    for (unsigned i = 0; (feature = ring_feature(ring, i)) != NULL; i++) {
        text_put(json, "%s\"%s\"", i > 0 ? "," : "", feature);
    }
    text_put(json, "]}");
}

static void put_fiber(struct text *json, const struct fiber *fiber)
{
    const struct carrier *carrier = carrier_current();
    char name[FIBER_NAME_SIZE];
    uint64_t running_ns = sys_clock_ns() - fiber->state_since_ns;

    fiber_format_name(fiber, name, sizeof(name));
    text_put(json, "\"id\":%" PRIu64 ",\"name\":\"%s\",\"kind\":\"fiber\",\"state\":\"runnable\",",
             fiber->id, name);
    text_put(json, "\"carrier\":\"%s\",\"osThreadId\":%d,\"cpu\":%d,", carrier->name,
             carrier->thread_id, sys_processor());
    text_put(json, "\"stackSize\":%zu,\"stackUsed\":%zu,\"contextSwitches\":%" PRIu64 ",",
             fiber->stack.size, stack_used_bytes(fiber->stack), fiber->switches);
    text_put(json, "\"parkedNanos\":%" PRIu64 ",\"runNanos\":%" PRIu64 ",", fiber->parked_ns,
             fiber->run_ns + running_ns);
    text_put(json, "\"ring\":");
    put_ring(json, &carrier->ring);
}

static void put_thread(struct text *json, const struct pool_thread *thread)
{
    struct sys_thread_figures figures;
    sys_thread_figures(&figures);
    struct stack stack = {.base = figures.stack_low, .size = figures.stack_bytes};
    uint64_t alive_ns = sys_clock_ns() - thread->started_ns;

    text_put(json,
             "\"id\":%" PRIu64 ",\"name\":\"%s\",\"kind\":\"platform\",\"state\":\"runnable\",",
             thread->id, thread->name);
    text_put(json, "\"carrier\":null,\"osThreadId\":%d,\"cpu\":%d,", sys_thread_id(),
             sys_processor());
    text_put(json, "\"stackSize\":%zu,\"stackUsed\":%zu,\"contextSwitches\":%" PRIu64 ",",
             stack.size, stack_used_bytes(stack), figures.switches);
    text_put(json, "\"parkedNanos\":%" PRIu64 ",\"runNanos\":%" PRIu64 ",\"ring\":",
             alive_ns > figures.processor_ns ? alive_ns - figures.processor_ns : 0,
             figures.processor_ns);
    put_ring(json, &thread->carrier->ring); /* that of the connection, where its fiber is parked */
}

/* put_host - which of several servers behind one address this is. */
static void put_host(struct text *json)
{
    char name[HOST_NAME_SIZE];
    sys_host_name(name, sizeof(name));
    text_put(json, "\"host\":");
    text_put_json(json, slice_of(name));
    text_put(json, ",");
}

static void respond_json(struct http_exchange *exchange)
{
    struct app *app = exchange->context;
    struct text json = {.dst = arena_alloc(exchange->arena, JSON_MAX), .capacity = JSON_MAX};
    uint64_t uptime_ms = (sys_clock_ns() - app->started_ns) / NS_PER_MS;

    if (json.dst == NULL) {
        http_respond_error(exchange, 503, SLICE("no memory for the answer"), sys_wall_ns());
        return;
    }
    text_put(&json, "{");
    put_host(&json);
    if (fiber_current() != NULL) {
        put_fiber(&json, fiber_current());
    } else {
        put_thread(&json, pool_thread_current());
    }
    text_put(&json, ",\"uptimeSeconds\":%" PRIu64 ".%03" PRIu64 "}", uptime_ms / 1000,
             uptime_ms % 1000);
    must(json.length < json.capacity); /* the host's name is the only part of any length */
    struct slice body = {.at = json.dst, .length = json.length};
    http_respond_json(exchange, 200, body);
}

void current_thread_handle(struct http_exchange *exchange)
{
    if (wants_json(exchange->request)) {
        respond_json(exchange);
        return;
    }
    char *text = arena_alloc(exchange->arena, FIBER_DESCRIBE_SIZE);
    size_t length;
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
