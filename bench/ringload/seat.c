/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seat.c - see seat.h. Called by user.c and the exchanges.
 */
#include "ringload/seat.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/time.h"
#include "ring/carrier.h"
#include "ringload/lane.h"
#include "ringload/load.h"

/* How long the first connection of all may take, whatever the timeout: nobody may be there. */
#define FIRST_CONNECT_NS (5 * NS_PER_S)

struct op_room seat_room(struct seat *seat)
{
    if (seat->large != NULL) {
        return (struct op_room){.dst = seat->large, .capacity = SEAT_LARGE_BYTES};
    }
    return (struct op_room){.dst = seat->room, .capacity = SEAT_BYTES - sizeof(*seat)};
}

void seat_enlarge(struct seat *seat)
{
    if (seat->large == NULL) {
        seat->large = malloc(SEAT_LARGE_BYTES); /* without memory it goes on in small pieces */
    }
}

struct slice seat_request(struct seat *seat, struct lane *lane)
{
    const struct target *target = &lane->load->options->target;
    if (target->template.count == 0) {
        return target->request;
    }
    if (seat->request == NULL) {
        seat->request = malloc(target->request.length);
        if (seat->request == NULL) {
            return (struct slice){.at = NULL};
        }
        memcpy(seat->request, target->request.at, target->request.length);
    }
    template_fill(&target->template, seat->request, &lane->random);
    return (struct slice){.at = seat->request, .length = target->request.length};
}

int seat_connect(struct seat *seat, struct lane *lane, uint64_t deadline_ns)
{
    const struct target *target = &lane->load->options->target;
    uint64_t began_ns = lane->carrier->sched.now_ns;
    unsigned tried = 0;

    for (;;) {
        size_t at = lane->address;
        struct sys_address source;
        bool bound = lane_source(lane, &source);
        uint64_t first_ns = lane->carrier->sched.now_ns + FIRST_CONNECT_NS;
        bool early = !load_is_reached(lane->load) && first_ns < deadline_ns;
        int result = wire_connect(&seat->wire, &target->addresses[at], bound ? &source : NULL,
                                  early ? first_ns : deadline_ns);
        if (result == 0) {
            load_set_reached(lane->load);
            lane->tally.connections++;
            lane_show_open(lane, 1);
            histogram_record(&lane->tally.connect, lane->carrier->sched.now_ns - began_ns);
            seat->answered = false;
            return 0;
        }
        if (result == -EADDRNOTAVAIL && target->is_loopback && tried++ < LANE_SOURCES_TRIED) {
            lane_next_source(lane); /* the ports of this one are used up */
            continue;
        }
        if (early && result == -ETIMEDOUT && load_is_reached(lane->load)) {
            continue; /* somebody has been met meanwhile: this one has its whole time */
        }
        if (result == -ECANCELED || load_is_reached(lane->load)) {
            launch_answered(&lane->launch);
            return result;
        }
        /* Nobody has been met yet: the name may have another address. */
        if (at == lane->address && lane->address + 1 < target->address_count) {
            lane->address++;
        } else if (at == lane->address) {
            return result;
        }
    }
}

void seat_answered(struct seat *seat, struct lane *lane)
{
    if (!seat->answered) {
        seat->answered = true;
        launch_answered(&lane->launch);
    }
}

void seat_close(struct seat *seat, bool reset)
{
    if (wire_is_open(&seat->wire)) {
        struct lane *lane = lane_current();
        seat_answered(seat, lane);
        wire_close(&seat->wire, reset);
        lane_show_open(lane, -1);
    }
}
