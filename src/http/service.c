/* SPDX-License-Identifier: Apache-2.0 */
/*
 * service.c - begin the sessions of a server, and end them when it drains.
 *
 * io/listener.c calls service_serve with a new connection; the fiber that it
 * spawns runs session.c.
 */
#include "http/service.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/must.h"
#include "fiber/fiber.h"
#include "http/session_parts.h"
#include "http/writer.h"
#include "ring/sys.h"

/* One is in use nearly all the time; a chunk of them takes 64 KiB of address space. */
#define DESKS_PER_CHUNK 7

int service_serve(struct listener *listener, int fd)
{
    struct service *service = listener->setup.context;
    struct carrier *carrier = carrier_current();
    struct service_lane *lane = &service->lanes[carrier->setup.number];

    struct session *session = slab_take(&lane->slab);
    if (session == NULL) {
        return -ENOMEM;
    }
    session->service = service;
    session->lane = lane;
    session->listener = listener;
    struct fiber_name name = {.prefix = service->fiber_prefix,
                              .number = atomic_fetch_add(&service->last_number, 1) + 1};
    conn_open(&session->conn, fd);
    if (fiber_spawn(&carrier->sched, name, session__run, session) == NULL) {
        slab_give(&lane->slab, session);
        return -ENOMEM;
    }
    list_append(&lane->sessions, &session->link);
    if (atomic_load_explicit(&service->draining, memory_order_relaxed)) {
        conn_interrupt(&session->conn);
    }
    return 0;
}

static void run_drain(struct message *message)
{
    struct service_lane *lane = container_of(message, struct service_lane, drain);
    for (struct list *at = lane->sessions.next; at != &lane->sessions; at = at->next) {
        conn_interrupt(&container_of(at, struct session, link)->conn);
    }
}

void service_drain(struct service *service)
{
    atomic_store(&service->draining, true);
    for (unsigned i = 0; i < service->setup.carrier_count; i++) {
        carrier_post(&service->setup.carriers[i], &service->lanes[i].drain);
    }
}

size_t service_refusal(char *dst, size_t capacity)
{
    char date[TIME_HTTP_SIZE];
    char timestamp[TIME_JSON_SIZE];
    char body[192];
    uint64_t wall_ns = sys_wall_ns();

    time_format_http(date, wall_ns);
    time_format_json(timestamp, wall_ns);
    int body_length = snprintf(body, sizeof(body),
                               "{\"timestamp\":\"%s\",\"status\":503,\"error\":\"Service "
                               "Unavailable\",\"path\":\"\",\"message\":\"no room for another "
                               "connection\"}",
                               timestamp);
    must(body_length > 0 && (size_t)body_length < sizeof(body));
    struct http_response response = {
        .status = 503,
        .content_type = HTTP_TYPE_JSON,
        .body = {.at = body, .length = (size_t)body_length},
        .extra = {{.name = SLICE("Retry-After"), .value = SLICE("1")}},
        .extra_count = 1,
        .close = true,
    };
    struct writer_framing framing = {.version_minor = 1, .date = date};
    size_t length = writer_response(dst, capacity, &response, &framing);
    must(length > 0);
    return length;
}

int service_init(struct service *service, const struct service_setup *setup, uint16_t port)
{
    memset(service, 0, sizeof(*service));
    service->setup = *setup;
    snprintf(service->fiber_prefix, sizeof(service->fiber_prefix), "%s-%u-conn-", setup->name,
             port);
    service->lanes = calloc(setup->carrier_count, sizeof(*service->lanes));
    if (service->lanes == NULL) {
        return -ENOMEM;
    }
    for (unsigned i = 0; i < setup->carrier_count; i++) {
        struct service_lane *lane = &service->lanes[i];
        lane->service = service;
        lane->drain.run = run_drain;
        list_init(&lane->sessions);
        slab_init(&lane->slab, sizeof(struct session), 256);
        slab_init(&lane->desks, sizeof(struct desk), DESKS_PER_CHUNK);
    }
    return 0;
}

void service_fini(struct service *service)
{
    for (unsigned i = 0; i < service->setup.carrier_count; i++) {
        slab_fini(&service->lanes[i].slab);
        slab_fini(&service->lanes[i].desks);
    }
    free(service->lanes);
}
