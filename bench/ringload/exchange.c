/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exchange.c - see exchange.h: what all kinds share, and those that speak no HTTP.
 * Called by user.c.
 */
#include "ringload/exchange.h"

#include <errno.h>
#include <string.h>

#include "ring/carrier.h"
#include "ringload/lane.h"
#include "ringload/load.h"

enum verdict exchange__fail(struct exchange *exchange, enum failure failure, const char *reason)
{
    exchange->failure = failure;
    exchange->reason = reason;
    exchange->keep = false;
    return VERDICT_FAILED;
}

enum verdict exchange__fail_io(struct exchange *exchange, int error)
{
    switch (error) {
    case -ECANCELED:
        return VERDICT_CUT;
    case -ETIMEDOUT:
        return exchange__fail(exchange, FAILURE_TIMEOUT, "no complete answer in time");
    case -ENOMEM:
        return exchange__fail(exchange, FAILURE_RESET, "no memory for an operation");
    case -ECONNRESET:
    case -EPIPE:
        return exchange__fail(exchange, FAILURE_RESET, "the server reset the connection");
    default:
        return exchange__fail(exchange, FAILURE_RESET, strerrordesc_np(-error));
    }
}

enum verdict exchange__connect(struct exchange *exchange)
{
    struct lane *lane = exchange->lane;
    if (wire_is_open(&exchange->seat->wire)) {
        lane->tally.reused++;
        return VERDICT_ANSWERED;
    }
    int result = launch_wait(&lane->launch, exchange->deadline_ns);
    if (result == 0 && lane->load->gap_ns == 0) {
        /* That wait was ours and not the server's. */
        exchange->start_ns = lane->carrier->sched.now_ns;
        exchange->deadline_ns = exchange->start_ns + lane->load->options->timeout_ns;
    }
    if (result == 0) {
        result = seat_connect(exchange->seat, lane, exchange->deadline_ns);
    }
    if (result == 0) {
        return VERDICT_ANSWERED;
    }
    if (result == -ECANCELED && lane->halted) {
        return VERDICT_CUT;
    }
    exchange->error = result;
    return exchange__fail(exchange, FAILURE_CONNECT, strerrordesc_np(-result));
}

ssize_t exchange__recv(struct exchange *exchange, uint64_t deadline_ns)
{
    struct seat *seat = exchange->seat;
    struct op_room room = seat_room(seat);
    ssize_t got = wire_recv(&seat->wire, room, deadline_ns);
    if (got > 0) {
        exchange->any = true;
        exchange->lane->tally.received_bytes += (uint64_t)got;
    }
    return got;
}

enum verdict exchange__answered(struct exchange *exchange)
{
    exchange->end_ns = exchange->lane->carrier->sched.now_ns;
    return VERDICT_ANSWERED;
}

/* read_same - receive what must be these bytes; *came of them have come. Returns VERDICT_ANSWERED to go on. */
static enum verdict read_same(struct exchange *exchange, struct slice wanted, size_t *came)
{
    ssize_t got = exchange__recv(exchange, exchange->deadline_ns);
    if (got < 0) {
        return exchange__fail_io(exchange, (int)got);
    }
    if (got == 0) {
        return exchange__fail(exchange, FAILURE_SHORT, "the server closed before all had come");
    }
    const struct op_room room = seat_room(exchange->seat);
    if ((size_t)got > wanted.length - *came ||
        memcmp(room.dst, wanted.at + *came, (size_t)got) != 0) {
        return exchange__fail(exchange, FAILURE_MALFORMED, "other bytes came than were expected");
    }
    *came += (size_t)got;
    if ((size_t)got == room.capacity) {
        seat_enlarge(exchange->seat);
    }
    return VERDICT_ANSWERED;
}

enum verdict exchange_echo(struct exchange *exchange)
{
    struct lane *lane = exchange->lane;
    struct slice payload = lane->load->options->target.request;
    enum verdict verdict = exchange__connect(exchange);
    size_t came = 0;
    if (verdict != VERDICT_ANSWERED) {
        return verdict;
    }
    if (wire_send(&exchange->seat->wire, payload) < 0) {
        return exchange__fail_io(exchange, -ENOMEM);
    }
    lane->tally.sent_bytes += payload.length;
    while (came < payload.length) {
        verdict = read_same(exchange, payload, &came);
        if (verdict != VERDICT_ANSWERED) {
            return verdict;
        }
    }
    lane->tally.body_bytes += came;
    exchange->keep = lane->load->options->keepalive && !wire_is_sending(&exchange->seat->wire);
    return exchange__answered(exchange);
}

enum verdict exchange_greeter(struct exchange *exchange)
{
    const struct options *options = exchange->lane->load->options;
    enum verdict verdict = exchange__connect(exchange);
    size_t came = 0;
    while (verdict == VERDICT_ANSWERED && came < options->body.length) {
        verdict = read_same(exchange, options->body, &came);
    }
    if (verdict != VERDICT_ANSWERED) {
        return verdict;
    }
    for (;;) {
        ssize_t got = exchange__recv(exchange, exchange->deadline_ns);
        if (got < 0) {
            return exchange__fail_io(exchange, (int)got);
        }
        if (got == 0) {
            break;
        }
        if (options->has_body) {
            return exchange__fail(exchange, FAILURE_MALFORMED,
                                  "more bytes came than were expected");
        }
        came += (size_t)got;
    }
    if (came == 0 && !options->has_body) {
        return exchange__fail(exchange, FAILURE_SHORT, "the server closed without a greeting");
    }
    exchange->lane->tally.body_bytes += came;
    return exchange__answered(exchange);
}

enum verdict exchange_connect(struct exchange *exchange)
{
    enum verdict verdict = exchange__connect(exchange);
    return verdict == VERDICT_ANSWERED ? exchange__answered(exchange) : verdict;
}

enum verdict exchange_hold(struct exchange *exchange)
{
    struct lane *lane = exchange->lane;
    enum verdict verdict = exchange_connect(exchange);
    ssize_t got = 1;
    if (verdict != VERDICT_ANSWERED) {
        return verdict;
    }
    while (got > 0) { /* what a greeter sends is taken */
        got = exchange__recv(exchange, lane->load->end_ns);
    }
    if (got != -ETIMEDOUT && got != -ECANCELED) {
        lane->tally.lost++;
    }
    return VERDICT_ANSWERED;
}
