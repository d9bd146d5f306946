/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lane.c - see lane.h. Posted to by load.c; user.c is what its fibers run.
 */
#include "ringload/lane.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "base/must.h"
#include "ring/sys_client.h"
#include "ringload/load.h"

/* Source addresses are 127.32.0.1 and on, 250 in each third byte: out of everybody's way. */
#define SOURCE_BASE 0x7f200001u
#define SOURCES_PER_BYTE 250u

static _Thread_local struct lane *current_lane;

struct lane *lane_current(void)
{
    return current_lane;
}

int lane_init(struct lane *lane, uint64_t user_count, uint64_t seat_count)
{
    must(seat_count > 0 && seat_count <= user_count);
    lane->users = calloc(user_count, sizeof(*lane->users));
    lane->seat_memory = sys_memory(seat_count * SEAT_BYTES);
    if (lane->users == NULL || lane->seat_memory == NULL) {
        lane->seat_count = seat_count;
        lane_fini(lane);
        return -ENOMEM;
    }
    lane->user_count = user_count;
    lane->seat_count = seat_count;
    lane->random = UINT64_C(0x9e3779b97f4a7c15) * (lane->number + 1);
    for (uint64_t i = seat_count; i-- > 0;) {
        struct seat *seat = (void *)(lane->seat_memory + i * SEAT_BYTES);
        struct parser_limits limits = {.head_bytes_max = (size_t)64 << 10,
                                       .body_bytes_max = INT64_MAX};
        arena_init(&seat->arena, seat->head, sizeof(seat->head), (size_t)256 << 10);
        parser_init_replies(&seat->parser, &limits, &seat->arena);
        seat->next = lane->free_seats;
        lane->free_seats = seat;
    }
    return 0;
}

void lane_fini(struct lane *lane)
{
    for (struct seat *seat = lane->free_seats; seat != NULL; seat = seat->next) {
        arena_reset(&seat->arena);
        free(seat->large);
        free(seat->request);
    }
    free(lane->users);
    if (lane->seat_memory != NULL) {
        sys_memory_free(lane->seat_memory, lane->seat_count * SEAT_BYTES);
    }
    lane->users = NULL;
    lane->seat_memory = NULL;
    lane->free_seats = NULL;
}

static void run_create(struct message *message)
{
    struct lane *lane = container_of(message, struct lane, create);
    current_lane = lane;
    launch_init(&lane->launch, lane->load->plan.queue, lane->load->plan.carriers);
    for (uint64_t i = 0; i < lane->user_count; i++) {
        struct user *user = &lane->users[i];
        user->lane = lane;
        user->fiber =
            fiber_spawn(&lane->carrier->sched, (struct fiber_name){"user-", i + 1}, user_run, user);
        if (user->fiber == NULL) {
            lane->create_error = -ENOMEM;
            lane->user_count = i;
            break;
        }
        lane->live++;
    }
    load_lane_created(lane->load);
    if (lane->live == 0) {
        load_lane_ready(lane->load);
        load_lane_done(lane->load);
    }
}

void lane_create(struct lane *lane)
{
    lane->create.run = run_create;
    carrier_post(lane->carrier, &lane->create);
}

static void run_go(struct message *message)
{
    struct lane *lane = container_of(message, struct lane, go);
    if (lane->halted) {
        return; /* interrupted before the start */
    }
    lane->next = lane->seat_count < lane->user_count ? lane->seat_count : lane->user_count;
    for (uint64_t i = 0; i < lane->next; i++) {
        struct user *user = &lane->users[i];
        user->seat = lane->free_seats;
        lane->free_seats = user->seat->next;
        fiber_wake(user->fiber);
    }
}

void lane_go(struct lane *lane)
{
    lane->go.run = run_go;
    carrier_post(lane->carrier, &lane->go);
}

void lane_stop_users(struct lane *lane)
{
    lane->halted = true;
    for (uint64_t i = 0; i < lane->user_count; i++) {
        if (lane->users[i].fiber != NULL) {
            fiber_cancel(lane->users[i].fiber);
        }
    }
}

static void run_halt(struct message *message)
{
    lane_stop_users(container_of(message, struct lane, halt));
}

void lane_halt(struct lane *lane)
{
    lane->halt.run = run_halt;
    carrier_post(lane->carrier, &lane->halt);
}

bool lane_source(struct lane *lane, struct sys_address *source)
{
    unsigned planned = lane->load->plan.sources;
    uint32_t number = lane->source;
    if (planned > 1) {
        number = lane->source + lane->turn++ % planned + 1;
    }
    if (number == 0) {
        return false;
    }
    struct sockaddr_in *four = (void *)&source->storage;
    memset(source, 0, sizeof(*source));
    uint32_t index = (number - 1) % OPTIONS_SOURCES_MAX;
    four->sin_family = AF_INET;
    four->sin_addr.s_addr =
        htonl(SOURCE_BASE + (index / SOURCES_PER_BYTE << 8) + index % SOURCES_PER_BYTE);
    source->length = sizeof(*four);
    return true;
}

void lane_next_source(struct lane *lane)
{
    /* Lanes begin at different ones, so that they do not use up the same ports. */
    if (lane->source == 0) {
        lane->source = lane->number;
    }
    lane->source += lane->load->lane_count;
}

void lane_show_open(struct lane *lane, int change)
{
    int64_t open = atomic_load_explicit(&lane->shown_open, memory_order_relaxed);
    atomic_store_explicit(&lane->shown_open, open + change, memory_order_relaxed);
}
