/* SPDX-License-Identifier: Apache-2.0 */
/*
 * user.c - a virtual user's life, straight down: wait for the start, make requests
 * while there are any, hand the seat on. A fiber runs it, lane.c spawns it.
 */
#include <errno.h>
#include <stdio.h>

#include "base/must.h"
#include "base/time.h"
#include "fiber/fiber.h"
#include "ring/carrier.h"
#include "ringload/exchange.h"
#include "ringload/lane.h"
#include "ringload/load.h"

/* A connection that lay idle for so long is looked at before it is used. */
#define IDLE_NS NS_PER_MS

/* After a connect that failed: so long, and longer with each one that follows. */
#define REST_NS NS_PER_MS
#define RESTS_MAX 100u

typedef enum verdict make_exchange(struct exchange *exchange);

static make_exchange *const kinds[] = {
    [OPTIONS_HTTP] = exchange_http,       [OPTIONS_ECHO] = exchange_echo,
    [OPTIONS_GREETER] = exchange_greeter, [OPTIONS_CONNECT] = exchange_connect,
    [OPTIONS_HOLD] = exchange_hold,
};

static void show(_Atomic uint64_t *shown, uint64_t value)
{
    atomic_store_explicit(shown, value, memory_order_relaxed);
}

static void note_answer(const struct exchange *exchange)
{
    struct lane *lane = exchange->lane;
    struct tally *tally = &lane->tally;
    uint64_t latency_ns = exchange->end_ns - exchange->start_ns;

    must(exchange->end_ns >= exchange->start_ns);
    tally->complete++;
    histogram_record(&tally->latency, latency_ns);
    if (exchange->status != 0) {
        tally->statuses[exchange->status < TALLY_STATUSES ? exchange->status : 0]++;
    }
    if (exchange->end_ns > lane->finished_ns) {
        lane->finished_ns = exchange->end_ns;
    }
    show(&lane->shown_done, tally->complete);
    show(&lane->shown_latency_ns, tally->latency.sum);
}

static void note_failure(const struct exchange *exchange, const char *reason)
{
    struct lane *lane = exchange->lane;
    struct tally *tally = &lane->tally;
    tally->failures[exchange->failure]++;
    if (tally->first_reason[0] == '\0') {
        snprintf(tally->first_reason, sizeof(tally->first_reason), "%s", reason);
    }
    lane->finished_ns = lane->carrier->sched.now_ns;
    show(&lane->shown_failed, tally_failed(tally));
}

static void note_status(struct exchange *exchange)
{
    char reason[32];
    if (exchange->status != 0 && exchange->status / 100 != 2) {
        snprintf(reason, sizeof(reason), "status %d", exchange->status);
        exchange->failure = FAILURE_STATUS;
        note_failure(exchange, reason);
    }
}

/* await_turn - take the next request and wait for its moment. Returns false when there is no more to do. */
static bool await_turn(struct exchange *exchange)
{
    struct lane *lane = exchange->lane;
    struct load *load = lane->load;
    const struct sched *sched = &lane->carrier->sched;

    if (lane->halted || (load->end_ns != 0 && sched->now_ns >= load->end_ns) ||
        !load_take(load, &exchange->start_ns)) {
        return false;
    }
    uint64_t now_ns = sched->now_ns;
    if (exchange->start_ns == 0) {
        exchange->start_ns = now_ns;
    } else if (exchange->start_ns > now_ns) {
        if (fiber_sleep_until(exchange->start_ns) != 0) {
            return false;
        }
        struct seat *seat = exchange->seat;
        exchange->idled = wire_is_open(&seat->wire) && sched->now_ns > now_ns + IDLE_NS;
        if (exchange->idled && !wire_is_quiet(&seat->wire)) {
            seat_close(seat, false);
        }
    }
    /* An answer has its time from now on, also where the request is late already. */
    exchange->deadline_ns = sched->now_ns + load->options->timeout_ns;
    return true;
}

/* rest - nobody is there, or not for the moment. */
static void rest(const struct exchange *exchange, unsigned rests)
{
    struct lane *lane = exchange->lane;
    if (!load_is_reached(lane->load)) {
        lane->unreachable = exchange->error;
        lane_stop_users(lane);
        return;
    }
    uint64_t pause_ns = (rests < RESTS_MAX ? rests : RESTS_MAX) * REST_NS;
    (void)fiber_sleep_until(lane->carrier->sched.now_ns + pause_ns);
}

/*
 * make_once_more - a server may close an idle connection at the moment that it is used
 * again: that is no failure of the request, which goes by another (RFC 9112 section 9.3.1).
 */
static enum verdict make_once_more(struct exchange *exchange, make_exchange *make)
{
    enum verdict verdict = make(exchange);
    bool gone = exchange->failure == FAILURE_RESET || exchange->failure == FAILURE_SHORT;
    if (verdict == VERDICT_FAILED && gone && exchange->idled && !exchange->any) {
        seat_close(exchange->seat, true);
        verdict = make(exchange);
    }
    return verdict;
}

static void work(struct lane *lane, struct seat *seat)
{
    make_exchange *make = kinds[lane->load->options->kind];
    bool once = lane->load->options->users > 0;
    unsigned rests = 0;
    do {
        struct exchange exchange = {.lane = lane, .seat = seat};
        if (!await_turn(&exchange)) {
            break;
        }
        lane->tally.started++;
        enum verdict verdict = make_once_more(&exchange, make);
        switch (verdict) {
        case VERDICT_ANSWERED:
            seat_answered(seat, lane);
            note_answer(&exchange);
            note_status(&exchange);
            break;
        case VERDICT_FAILED:
            note_failure(&exchange, exchange.reason);
            break;
        case VERDICT_CUT:
            lane->tally.cut++;
            break;
        }
        if (!exchange.keep) {
            seat_close(seat, verdict != VERDICT_ANSWERED);
        }
        if (verdict == VERDICT_FAILED && exchange.failure == FAILURE_CONNECT) {
            rest(&exchange, ++rests);
        } else {
            rests = 0;
        }
    } while (!once);
    seat_close(seat, false);
}

/* hand_on - the seat goes to the next user that waits. */
static void hand_on(struct lane *lane, struct seat *seat)
{
    if (!lane->halted && lane->next < lane->user_count) {
        struct user *next = &lane->users[lane->next++];
        next->seat = seat;
        fiber_wake(next->fiber);
    } else {
        seat->next = lane->free_seats;
        lane->free_seats = seat;
    }
}

void user_run(void *argument)
{
    struct user *user = argument;
    struct lane *lane = user->lane;

    if (++lane->waiting == lane->user_count) {
        load_lane_ready(lane->load);
    }
    while (user->seat == NULL && !lane->halted) {
        (void)fiber_park("start", 0);
    }
    if (user->seat != NULL) {
        work(lane, user->seat);
        hand_on(lane, user->seat);
    }
    user->fiber = NULL;
    must(lane->live > 0);
    if (--lane->live == 0) {
        load_lane_done(lane->load);
    }
}
