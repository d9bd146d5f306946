/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exchange_http.c - one HTTP request and its answer. Called by user.c.
 */
#include <errno.h>
#include <string.h>

#include "base/time.h"
#include "ring/carrier.h"
#include "ringload/exchange.h"
#include "ringload/lane.h"
#include "ringload/load.h"

/* How long a server that said it would close may take, before we do. */
#define CLOSE_PATIENCE_NS (100 * NS_PER_MS)

static void ready_parser(struct exchange *exchange)
{
    struct seat *seat = exchange->seat;
    if (seat->parser.complete) {
        parser_next(&seat->parser);
    } else if (seat->parser.started || seat->parser.refusal.status != 0) {
        struct parser_limits limits = seat->parser.limits;
        parser_init_replies(&seat->parser, &limits, &seat->arena);
    }
    arena_reset(&seat->arena);
    if (exchange->lane->load->is_head) {
        parser_expect_no_body(&seat->parser);
    }
}

static enum verdict ended_early(struct exchange *exchange)
{
    return exchange__fail(exchange, FAILURE_SHORT,
                          exchange->seat->parser.started ? "the server closed within its answer"
                                                         : "the server closed before it answered");
}

/* read_answer - until it is complete. *closed: its end was the connection's. */
static enum verdict read_answer(struct exchange *exchange, bool *closed, bool *extra)
{
    struct seat *seat = exchange->seat;
    struct parser *parser = &seat->parser;
    for (;;) {
        struct op_room room = seat_room(seat);
        ssize_t got = exchange__recv(exchange, exchange->deadline_ns);
        if (got < 0) {
            return exchange__fail_io(exchange, (int)got);
        }
        if (got == 0) {
            *closed = true;
            return parser_finish(parser) == PARSER_MESSAGE ? exchange__answered(exchange)
                                                           : ended_early(exchange);
        }
        struct slice bytes = {.at = room.dst, .length = (size_t)got};
        while (bytes.length > 0) {
            size_t consumed;
            enum parser_event event = parser_feed(parser, bytes, &consumed);
            bytes.at += consumed;
            bytes.length -= consumed;
            if (event == PARSER_HEAD) {
                parser->keep_body = false; /* counted, not kept */
            } else if (event == PARSER_MESSAGE) {
                *extra = bytes.length > 0;
                return exchange__answered(exchange);
            } else if (event == PARSER_REFUSED) {
                return exchange__fail(exchange, FAILURE_MALFORMED, parser->refusal.message);
            }
        }
        if ((size_t)got == room.capacity) {
            seat_enlarge(seat);
        }
    }
}

static void count_answer(struct exchange *exchange)
{
    const struct parser *parser = &exchange->seat->parser;
    struct tally *tally = &exchange->lane->tally;
    exchange->status = parser->reply.status;
    tally->body_bytes += parser->body_bytes;
    if (tally->document_bytes == 0) {
        tally->document_bytes = parser->body_bytes;
    }
}

enum verdict exchange_http(struct exchange *exchange)
{
    struct seat *seat = exchange->seat;
    const struct options *options = exchange->lane->load->options;
    bool closed = false, extra = false;

    enum verdict verdict = exchange__connect(exchange);
    if (verdict != VERDICT_ANSWERED) {
        return verdict;
    }
    ready_parser(exchange);
    struct slice request = seat_request(seat, exchange->lane);
    if (request.at == NULL || wire_send(&seat->wire, request) < 0) {
        return exchange__fail_io(exchange, -ENOMEM);
    }
    exchange->lane->tally.sent_bytes += request.length;
    verdict = read_answer(exchange, &closed, &extra);
    if (verdict != VERDICT_ANSWERED) {
        return verdict;
    }
    count_answer(exchange);
    exchange->keep = options->keepalive && seat->parser.reply.keep_alive && !closed && !extra &&
                     !wire_is_sending(&seat->wire);
    if (!seat->parser.reply.keep_alive && !closed) {
        /* Who closes first keeps the port for a minute: leave that to the server, as it said. */
        uint64_t patience_ns = exchange->end_ns + CLOSE_PATIENCE_NS;
        while (exchange__recv(exchange, patience_ns) > 0) {
        }
    }
    return VERDICT_ANSWERED;
}
