/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scheduler_report.c - GET /actuator/scheduler: how long fibers that were ready waited
 * for their carrier, and how late sleeps went on, of each carrier and of all.
 *
 * Reads what the carriers write meanwhile: figures of one answer may be a few fibers
 * apart. How far the waits may be off: struct sched in fiber/sched.h.
 */
#include <inttypes.h>

#include "app/app.h"
#include "app/routes.h"
#include "base/latency.h"
#include "ring/carrier.h"
#include "ring/sys.h"

/* Figures of one carrier, or of all together. Too large for a fiber's stack. */
struct figures {
    uint64_t switches, turns, ready;
    struct latency wait, lateness;
};

struct percentile {
    const char *name;
    uint32_t thousandths;
};

static const struct percentile percentiles[] = {
    {"p50", 50000}, {"p90", 90000}, {"p99", 99000}, {"p99.9", 99900}, {"p99.99", 99990},
};

#define PERCENTILES (sizeof(percentiles) / sizeof(percentiles[0]))

static uint64_t look(const uint64_t *figure)
{
    return __atomic_load_n(figure, __ATOMIC_RELAXED);
}

static void add(struct figures *figures, const struct carrier *carrier)
{
    figures->switches += look(&carrier->sched.switches);
    figures->turns += look(&carrier->turns);
    figures->ready += look(&carrier->sched.ready_count);
    latency_add(&figures->wait, &carrier->sched.ready_wait);
    latency_add(&figures->lateness, &carrier->sched.lateness);
}

static double us_of(uint64_t ns)
{
    return (double)ns / (double)NS_PER_US;
}

/* describe_latency - {"count":17,"p50":1.023,...,"max":80.114}; .at is NULL when there is no memory. */
static struct slice describe_latency(struct arena *arena, const struct latency *latency)
{
    struct slice parts[PERCENTILES + 2];
    size_t count = 0;
    parts[count++] = arena_printf(arena, "{\"count\":%" PRIu64, latency_count(latency));
    for (size_t i = 0; i < PERCENTILES; i++) {
        uint64_t ns = latency_percentile(latency, percentiles[i].thousandths);
        parts[count++] = arena_printf(arena, ",\"%s\":%.3f", percentiles[i].name, us_of(ns));
    }
    parts[count++] = arena_printf(arena, ",\"max\":%.3f}", us_of(latency->max));
    for (size_t i = 0; i < count; i++) {
        if (parts[i].at == NULL) {
            return parts[i];
        }
    }
    return arena_join(arena, parts, count);
}

/* describe - the members of an object, without its braces. */
static struct slice describe(struct arena *arena, const struct figures *figures)
{
    struct slice wait = describe_latency(arena, &figures->wait);
    struct slice lateness = describe_latency(arena, &figures->lateness);
    if (wait.at == NULL || lateness.at == NULL) {
        return (struct slice){.at = NULL, .length = 0};
    }
    return arena_printf(arena,
                        "\"switches\":%" PRIu64 ",\"turns\":%" PRIu64 ",\"ready\":%" PRIu64
                        ",\"readyWaitMicros\":%.*s,\"sleepLatenessMicros\":%.*s",
                        figures->switches, figures->turns, figures->ready, (int)wait.length,
                        wait.at, (int)lateness.length, lateness.at);
}

/* list - the carriers' objects with commas between. */
static struct slice list(struct arena *arena, const struct app *app, struct figures *one)
{
    const struct slice none = {.at = NULL, .length = 0};
    struct slice *parts = arena_alloc(arena, app->carrier_count * sizeof(*parts));
    if (parts == NULL) {
        return none;
    }
    for (unsigned i = 0; i < app->carrier_count; i++) {
        memset(one, 0, sizeof(*one));
        add(one, &app->carriers[i]);
        struct slice figures = describe(arena, one);
        if (figures.at == NULL) {
            return none;
        }
        parts[i] = arena_printf(arena, "%s{\"name\":\"%s\",%.*s}", i > 0 ? "," : "",
                                app->carriers[i].name, (int)figures.length, figures.at);
        if (parts[i].at == NULL) {
            return none;
        }
    }
    return arena_join(arena, parts, app->carrier_count);
}

void scheduler_report_handle(struct http_exchange *exchange)
{
    const struct app *app = exchange->context;
    struct arena *arena = exchange->arena;
    struct figures *figures = arena_alloc(arena, sizeof(*figures));
    struct slice carriers, all, body = {.at = NULL, .length = 0};

    if (figures != NULL) {
        carriers = list(arena, app, figures);
        memset(figures, 0, sizeof(*figures));
        for (unsigned i = 0; i < app->carrier_count; i++) {
            add(figures, &app->carriers[i]);
        }
        all = describe(arena, figures);
        if (carriers.at != NULL && all.at != NULL) {
            body = arena_printf(arena, "{\"all\":{%.*s},\"carriers\":[%.*s]}", (int)all.length,
                                all.at, (int)carriers.length, carriers.at);
        }
    }
    if (body.at == NULL) {
        http_respond_error(exchange, 503, SLICE("no memory for the answer"), sys_wall_ns());
        return;
    }
    http_respond_json(exchange, 200, body);
}
