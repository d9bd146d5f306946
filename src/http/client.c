/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client.c - one GET: send it, read the reply, decide about the connection.
 *
 * Called by handlers, on a fiber or a platform thread. The connections are
 * client_pool.c's.
 */
#include "http/client.h"

#include <errno.h>

#include "base/must.h"
#include "http/client_connect.h"
#include "http/parser.h"
#include "http/writer.h"
#include "io/conn.h"
#include "ring/sys.h"

#define REPLY_HEAD_BYTES_MAX ((size_t)16384)

/* Room for a request's fixed parts; host and path come on top. */
#define REQUEST_BYTES_EXTRA 128

/* is_stale - the error is what a pooled connection gives that its peer had already closed. */
static bool is_stale(int error)
{
    return error == -ECONNRESET || error == -EPIPE || error == -ENOTCONN;
}

/* is_gone - the error is the kernel's who reaches that host no more, see sys_socket; not our own deadline. */
static bool is_gone(int error, uint64_t deadline_ns)
{
    return (error == -ETIMEDOUT && sys_clock_ns() < deadline_ns) || error == -EHOSTUNREACH ||
           error == -ENETUNREACH;
}

static int send_request(struct upstream *upstream, struct http_call *call, uint64_t deadline_ns)
{
    const struct client_pool *pool = upstream->pool;
    struct slice host = slice_of(pool->authority);
    struct slice path =
        arena_printf(call->arena, "%s%.*s", pool->path, (int)call->path.length, call->path.at);
    size_t capacity = host.length + path.length + REQUEST_BYTES_EXTRA;
    char *request = arena_alloc(call->arena, capacity);
    if (request == NULL || path.at == NULL) {
        return -ENOMEM;
    }
    size_t length = writer_request(request, capacity, host, path);
    if (length == 0) {
        return -EINVAL;
    }
    return conn_write(&upstream->conn, (struct slice){.at = request, .length = length},
                      deadline_ns);
}

/* read_reply - until it is complete; *any tells whether some byte of it had come. */
static int read_reply(struct upstream *upstream, struct parser *parser, uint64_t deadline_ns,
                      bool *any)
{
    for (;;) {
        struct slice bytes;
        size_t consumed;
        enum parser_event event;
        ssize_t got = conn_peek(&upstream->conn, &bytes, deadline_ns);
        if (got < 0) {
            return (int)got;
        }
        if (got == 0) {
            event = parser_finish(parser);
            return event == PARSER_MESSAGE ? 0 : event == PARSER_MORE ? -ECONNRESET : -EPROTO;
        }
        *any = true;
        event = parser_feed(parser, bytes, &consumed);
        conn_consume(&upstream->conn, consumed);
        switch (event) {
        case PARSER_MORE:
        case PARSER_HEAD:
            break;
        case PARSER_MESSAGE:
            return 0;
        case PARSER_REFUSED:
            return parser->refusal.status == 503 ? -ENOMEM : -EPROTO;
        }
    }
}

/* attempt - the call on one connection. *stale: it had been closed before, try a fresh one. */
static int attempt(struct upstream *upstream, struct http_call *call, uint64_t deadline_ns,
                   bool *stale)
{
    struct parser_limits limits = {.head_bytes_max = REPLY_HEAD_BYTES_MAX,
                                   .body_bytes_max = call->body_bytes_max};
    struct parser parser;
    bool any = false;

    parser_init_replies(&parser, &limits, call->arena);
    parser.keep_body = true;
    int result = send_request(upstream, call, deadline_ns);
    if (result == 0 || is_stale(result)) {
        /* Also after a failed send: the peer may have answered before it closed. */
        int sent = result;
        result = read_reply(upstream, &parser, deadline_ns, &any);
        result = sent != 0 && result < 0 ? sent : result;
    }
    if (result == 0) {
        call->reply = parser.reply;
    }
    if (result == -EPROTO) {
        call->failure = parser.refusal.message;
    }
    bool gone = is_gone(result, deadline_ns);
    if (gone) {
        client_forget_addresses(upstream->pool);
    }
    *stale = upstream->reused && !any && (is_stale(result) || gone);
    return result;
}

int client_get(struct client_pool *pool, struct http_call *call)
{
    struct upstream *upstream = NULL;
    call->failure = NULL;
    int result = client_pool_take(pool, call->connect_timeout_ns, &upstream);
    if (result < 0) {
        return result;
    }
    bool stale;
    uint64_t deadline_ns = sys_clock_ns() + call->answer_timeout_ns; /* of both attempts */
    result = attempt(upstream, call, deadline_ns, &stale);
    if (result < 0 && stale) {
        result = client_pool_renew(upstream, call->connect_timeout_ns);
        if (result < 0) {
            return result; /* the connection's place went with it */
        }
        result = attempt(upstream, call, deadline_ns, &stale);
    }
    if (result == 0) {
        client_pool_put(upstream, call->reply.keep_alive);
    } else {
        /* The remote may be at work for us: a reset tells it to stop. */
        client_pool_abort(upstream);
    }
    return result;
}
