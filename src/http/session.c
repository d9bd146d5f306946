/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session.c - read a request, have it handled, write the response, again.
 *
 * The hub of the data path: conn.c gives bytes, parser.c makes the request,
 * router.c finds the handler, writer.c makes bytes. Runs on the connection's fiber.
 *
 * What it works in, and what it keeps while it waits: session_parts.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/must.h"
#include "fiber/fiber.h"
#include "http/access.h"
#include "http/session_parts.h"
#include "http/writer.h"
#include "io/conn.h"
#include "io/listener.h"
#include "io/pool.h"
#include "ring/sys.h"

/* After an error answer: so much of what still comes is dropped, for so long. */
#define LINGER_BYTES ((size_t)2 * 1024 * 1024)
#define LINGER_NS (2 * NS_PER_S)

/*
 * A connection gets this long, from when it was accepted, to send its first
 * request though the server drains: to its client a close would be a lost answer.
 * (With 100 ms a restart under load lost 32 of 1500 on a slow machine.)
 */
#define FRESH_GRACE_NS NS_PER_S

enum read_result {
    READ_REQUEST, /* complete */
    READ_HEAD,    /* complete but for its body */
    READ_REFUSED, /* parser.refusal says why */
    READ_NO_ROOM, /* no memory to work on it */
    READ_ENDED    /* nothing more to answer: close */
};

static uint64_t write_deadline_ns(const struct work *work)
{
    return fiber_current()->sched->now_ns + work->session->service->setup.head_timeout_ns;
}

/* settle - what is leaving has left: the collected responses may be written over. */
static int settle(struct work *work)
{
    return conn_write_settle(&work->session->conn, work->write_until_ns);
}

/* flush - let the collected responses leave; does not wait until they have. */
static int flush(struct work *work)
{
    if (work->out_length == 0) {
        return 0;
    }
    must(work->out_fresh); /* what left before has been settled */
    struct slice bytes = {.at = work->out, .length = work->out_length};
    work->out_length = 0;
    work->out_fresh = false;
    work->write_until_ns = write_deadline_ns(work);
    return conn_write_start(&work->session->conn, bytes);
}

/* out_open - before something is appended to the collected responses. */
static int out_open(struct work *work)
{
    if (work->out_fresh) {
        return 0;
    }
    int result = settle(work);
    work->out_fresh = result == 0;
    return result;
}

/* wait_idle - between requests; a client that does not take its answer has less time. */
static ssize_t wait_idle(struct work *work, struct slice *bytes, uint64_t idle_until_ns)
{
    struct conn *conn = &work->session->conn;
    for (;;) {
        bool sooner = conn_is_writing(conn) && work->write_until_ns < idle_until_ns;
        ssize_t got = conn_peek_idle(conn, bytes, sooner ? work->write_until_ns : idle_until_ns);
        if (got != -ETIMEDOUT || !sooner || conn_is_writing(conn)) {
            return got;
        }
    }
}

/* wait_bytes - conn_peek with the deadline that fits: idle between requests, else the message's. */
static ssize_t wait_bytes(struct work *work, struct slice *bytes)
{
    struct session *session = work->session;
    const struct service_setup *setup = &session->service->setup;
    uint64_t now_ns = fiber_current()->sched->now_ns;

    if (work->head_until_ns != 0) {
        return conn_peek(&session->conn, bytes, work->head_until_ns);
    }
    uint64_t idle_until_ns = work->requests == 0 ? work->opened_ns + setup->head_timeout_ns
                                                 : now_ns + setup->keep_alive_timeout_ns;
    if (!conn_has_unread(&session->conn)) {
        session__rest(work);
    }
    ssize_t got = wait_idle(work, bytes, idle_until_ns);
    if (got == -ECANCELED && work->requests == 0 && !work->graced) {
        work->graced = true;
        got = conn_peek(&session->conn, bytes, now_ns + FRESH_GRACE_NS);
    }
    return got;
}

static enum read_result refuse(struct work *work, int status, const char *message)
{
    work->parser.refusal = (struct parser_refusal){.status = status, .message = message};
    return READ_REFUSED;
}

/* read_on - read until the parser has an event to tell. */
static enum read_result read_on(struct work *work)
{
    struct session *session = work->session;
    struct parser *parser = &work->parser;

    for (;;) {
        struct slice bytes;
        /* Responses in hand leave together, as soon as no more of a request is in hand. */
        if (!conn_has_unread(&session->conn) && flush(work) < 0) {
            return READ_ENDED;
        }
        ssize_t got = wait_bytes(work, &bytes);
        if (got == 0) {
            return parser_finish(parser) == PARSER_REFUSED ? READ_REFUSED : READ_ENDED;
        }
        if (got == -ETIMEDOUT && parser->started) {
            return refuse(work, 408,
                          parser->head_complete ? "the body did not arrive in time"
                                                : "the head did not arrive in time");
        }
        if (got < 0) {
            return READ_ENDED;
        }
        if (work->head_until_ns == 0) {
            if (session__begin(work) < 0) {
                return READ_NO_ROOM;
            }
            uint64_t since_ns =
                work->requests == 0 ? work->opened_ns : fiber_current()->sched->now_ns;
            work->head_until_ns = since_ns + session->service->setup.head_timeout_ns;
        }
        size_t consumed;
        enum parser_event event = parser_feed(parser, bytes, &consumed);
        conn_consume(&session->conn, consumed);
        switch (event) {
        case PARSER_MORE:
            break;
        case PARSER_HEAD:
            return READ_HEAD;
        case PARSER_MESSAGE:
            return READ_REQUEST;
        case PARSER_REFUSED:
            return READ_REFUSED;
        }
    }
}

static size_t write_out(struct work *work, const struct http_response *response,
                        const struct writer_framing *framing)
{
    return writer_response(work->out + work->out_length, work->out_room - work->out_length,
                           response, framing);
}

/* respond - append the response to what leaves next. Returns 0, or -errno of a send. */
static int respond(struct work *work, const struct http_response *response,
                   const struct writer_framing *framing)
{
    int result = out_open(work);
    if (result < 0) {
        return result;
    }
    size_t length = write_out(work, response, framing);
    if (length == 0 && work->out == work->pocket_out) {
        if ((result = session__widen(work)) < 0) {
            return result;
        }
        length = write_out(work, response, framing);
    }
    if (length == 0 && work->out_length > 0) {
        if ((result = flush(work)) < 0 || (result = out_open(work)) < 0) {
            return result;
        }
        length = write_out(work, response, framing);
    }
    if (length != 0) {
        work->out_length += length;
        return 0;
    }
    /* The body is too long to be copied: it leaves from where it is. */
    work->out_length = writer_head(work->out, work->out_room, response, framing);
    must(work->out_length > 0);
    if ((result = flush(work)) < 0 || (result = out_open(work)) < 0) {
        return result;
    }
    struct slice body = {.at = response->body.at, .length = writer_body_length(response, framing)};
    result = conn_write(&work->session->conn, body, write_deadline_ns(work));
    return result == -ENOMEM ? -EPIPE : result; /* the head has left: nothing else may follow it */
}

/* A handler on its way to a platform thread. */
struct handling {
    http_handler *handler;
    struct http_exchange *exchange;
};

static void run_handling(void *argument)
{
    struct handling *handling = argument;
    handling->handler(handling->exchange);
}

/* handle - run the handler where the service's thread policy says. Returns 0; -ECANCELED the client is gone. */
static int handle(struct work *work, const struct route *route, struct http_exchange *exchange)
{
    struct session *session = work->session;
    struct pool *pool = session->service->setup.pool;

    if (pool == NULL && (route->flags & ROUTE_PARKS) == 0) {
        route->handler(exchange);
        must(exchange->later == NULL);
        return 0;
    }
    int result = flush(work);
    if (result < 0) {
        return result;
    }
    session__pack(work, exchange);
    conn_bind(&session->conn, fiber_current());
    if (pool != NULL) {
        struct handling handling = {.handler = route->handler, .exchange = exchange};
        result = pool_run(pool, run_handling, &handling);
        if (result < 0 && result != -ECANCELED) {
            http_respond_error(exchange, 503, SLICE("no thread to run the request"), sys_wall_ns());
        }
    } else {
        if ((route->flags & ROUTE_SHALLOW) == 0) {
            fiber_populate(fiber_current());
        }
        route->handler(exchange);
    }
    if (exchange->later != NULL && !fiber_current()->cancelled) {
        exchange->later(exchange);
    }
    conn_bind(&session->conn, NULL);
    return fiber_current()->cancelled ? -ECANCELED : 0;
}

static void log_request(const struct work *work, const struct http_response *response,
                        const struct writer_framing *framing)
{
    if (likely(!work->session->service->setup.access_log)) {
        return;
    }
    char peer[64];
    sys_peer(work->session->conn.fd, peer, sizeof(peer));
    struct access_entry entry = {.peer = peer,
                                 .wall_ns = carrier_wall_ns(work->session->conn.carrier),
                                 .request = &work->parser.request,
                                 .status = response->status != 0 ? response->status : 200,
                                 .body_length = writer_body_length(response, framing)};
    access_log(&entry);
}

/*
 * read_body - after a head: route it, answer Expect, and read the body.
 *
 * Returns  READ_REQUEST; READ_REFUSED; READ_ENDED. With *refused_early the
 *          response is there, the body is not: answer and close
 */
static enum read_result read_body(struct work *work, const struct route *route, bool *refused_early)
{
    *refused_early = false;
    if (work->parser.request.expect_continue) {
        if (route == NULL) {
            /* The client may send the body now or not: the framing is in doubt. */
            *refused_early = true;
            return READ_REQUEST;
        }
        struct slice interim = writer_continue();
        if (flush(work) < 0 || out_open(work) < 0) {
            return READ_ENDED;
        }
        memcpy(work->out, interim.at, interim.length);
        work->out_length = interim.length;
    }
    work->parser.keep_body = route != NULL && (route->flags & ROUTE_BODY) != 0;
    work->parser.body_max = work->parser.keep_body ? ROUTE_BODY_MAX : 0; /* it comes in chunks */
    work->head_until_ns =
        fiber_current()->sched->now_ns + work->session->service->setup.head_timeout_ns;
    return read_on(work);
}

/*
 * refuse_for_room - there is no memory for a request or its response: say what a full
 * server says, out of the fiber's own stack. Returns whether it left.
 */
static __attribute__((noinline)) bool refuse_for_room(struct work *work)
{
    char response[LISTENER_REFUSAL_BYTES];
    size_t length = service_refusal(response, sizeof(response));
    return flush(work) == 0 && settle(work) == 0 &&
           conn_write(&work->session->conn, (struct slice){.at = response, .length = length},
                      write_deadline_ns(work)) == 0;
}

/* How a connection is left: what still comes behind the last answer would make the close a reset. */
enum leave {
    LEAVE_AT_ONCE,
    LEAVE_LOOKING, /* behind an answer: linger if something has come by then */
    LEAVE_LINGERING
};

/* find_route - who handles the request; NULL: it is refused, and the response is there. */
static const struct route *find_route(struct work *work, struct http_exchange *exchange)
{
    uint64_t wall_ns = carrier_wall_ns(work->session->conn.carrier);
    const struct route *route =
        router_find(&work->session->service->setup.router, exchange, wall_ns);
    if (route == NULL || (route->check != NULL && !route->check(exchange))) {
        return NULL;
    }
    if ((route->flags & ROUTE_BODY) != 0 && work->parser.body_expected > ROUTE_BODY_MAX) {
        http_respond_error(exchange, 413, SLICE("body is too large"), wall_ns);
        return NULL;
    }
    return route;
}

/* exchange_one - one request and its response. Returns true when the connection persists. */
static bool exchange_one(struct work *work, enum leave *leave)
{
    struct service *service = work->session->service;
    struct http_response response = {0};
    struct http_exchange exchange = {.request = &work->parser.request,
                                     .response = &response,
                                     .arena = &work->arena,
                                     .context = service->setup.context};
    const struct route *route = NULL;
    bool refused_early = false;

    enum read_result read = read_on(work);
    if (read == READ_HEAD || read == READ_REQUEST) {
        route = find_route(work, &exchange);
    }
    if (read == READ_HEAD) {
        read = read_body(work, route, &refused_early);
    }
    if (read == READ_ENDED) {
        return false;
    }
    if (read == READ_NO_ROOM) {
        *leave = refuse_for_room(work) ? LEAVE_LINGERING : LEAVE_AT_ONCE;
        return false;
    }
    if (read == READ_REFUSED) {
        const struct parser_refusal *refusal = &work->parser.refusal;
        response = (struct http_response){0};
        http_respond_error(&exchange, refusal->status, slice_of(refusal->message), sys_wall_ns());
    } else if (route != NULL && handle(work, route, &exchange) < 0) {
        return false;
    }
    bool in_doubt = read == READ_REFUSED || refused_early;
    struct writer_framing framing = {
        .version_minor = work->parser.request.version_minor,
        .keep_alive = work->parser.request.keep_alive && !response.close && !in_doubt &&
                      !atomic_load_explicit(&service->draining, memory_order_relaxed),
        .head_only = parser_is_head_request(&work->parser),
        .date = carrier_date(work->session->conn.carrier),
    };
    work->session->lane->requests++;
    work->requests++;
    int result = respond(work, &response, &framing);
    log_request(work, &response, &framing);
    if (result < 0) {
        if (result == -ENOMEM && refuse_for_room(work)) {
            *leave = LEAVE_LINGERING;
        }
        return false;
    }
    if (!framing.keep_alive) {
        if (flush(work) == 0) {
            *leave = in_doubt ? LEAVE_LINGERING : LEAVE_LOOKING;
        }
        return false;
    }
    parser_next(&work->parser);
    arena_reset(&work->arena);
    work->head_until_ns = 0;
    return true;
}

static void session_end(struct session *session)
{
    struct service *service = session->service;
    struct listener *listener = session->listener;

    conn_close(&session->conn);
    must(session->leaving == NULL);
    list_remove(&session->link);
    slab_give(&session->lane->slab, session);
    listener_release(listener);
    if (atomic_load_explicit(&service->draining, memory_order_relaxed)) {
        service->setup.on_ended(service->setup.context);
    }
}

void session__run(void *argument)
{
    struct session *session = argument;
    const struct service_setup *setup = &session->service->setup;
    struct work work;
    enum leave leave = LEAVE_AT_ONCE;

    session__work_init(&work, session);
    work.opened_ns = fiber_current()->sched->now_ns;
    parser_init_requests(&work.parser, &setup->limits, &work.arena);
    while (exchange_one(&work, &leave)) {
    }
    (void)settle(&work); /* a client that finished sending still gets what is on its way */
    arena_reset(&work.arena);
    work.out_length = 0;
    session__rest(&work);
    if (leave == LEAVE_LINGERING || (leave == LEAVE_LOOKING && conn_has_more(&session->conn))) {
        conn_linger(&session->conn, LINGER_BYTES, fiber_current()->sched->now_ns + LINGER_NS);
    }
    session_end(session);
}
