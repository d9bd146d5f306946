/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pinned_report.c - GET /actuator/pinned: which fibers held their carrier for longer
 * than ringspun.pinned-threshold. The monitor counts.
 */
#include <inttypes.h>

#include "app/routes.h"
#include "ring/monitor.h"
#include "ring/sys.h"

static double ms_of(uint64_t ns)
{
    return (double)ns / (double)NS_PER_MS;
}

/* list - the last ones, newest first, with commas between. */
static struct slice list(struct arena *arena, const struct monitor_holds *holds)
{
    struct slice parts[2 * MONITOR_HOLDS_KEPT];
    size_t count = 0;
    for (unsigned i = 0; i < holds->kept; i++) {
        const struct monitor_hold *hold = &holds->last[i];
        char ended[TIME_JSON_SIZE];
        time_format_json(ended, hold->ended_wall_ns);
        if (i > 0) {
            parts[count++] = SLICE(",");
        }
        struct slice part =
            arena_printf(arena,
                         "{\"fiber\":\"%s\",\"id\":%" PRIu64
                         ",\"carrier\":\"carrier-%u\",\"millis\":%.3f,\"ended\":\"%s\"}",
                         hold->fiber, hold->fiber_id, hold->carrier, ms_of(hold->held_ns), ended);
        if (part.at == NULL) {
            return part;
        }
        parts[count++] = part;
    }
    return arena_join(arena, parts, count);
}

void pinned_report_handle(struct http_exchange *exchange)
{
    struct monitor_holds holds;
    monitor_holds(&holds);
    struct slice last = list(exchange->arena, &holds);
    struct slice body = {.at = NULL, .length = 0};
    if (last.at != NULL) {
        body = arena_printf(exchange->arena,
                            "{\"thresholdMillis\":%.3f,\"count\":%" PRIu64
                            ",\"totalMillis\":%.3f,\"longestMillis\":%.3f,\"holding\":%u,"
                            "\"last\":[%.*s]}",
                            ms_of(holds.threshold_ns), holds.count, ms_of(holds.total_ns),
                            ms_of(holds.longest_ns), holds.holding, (int)last.length, last.at);
    }
    if (body.at == NULL) {
        http_respond_error(exchange, 503, SLICE("no memory for the answer"), sys_wall_ns());
        return;
    }
    http_respond_json(exchange, 200, body);
}
