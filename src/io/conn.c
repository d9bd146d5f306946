/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conn.c - a TCP connection on the ring, or on plain system calls: its life.
 *
 * Opening, closing, resets. conn_receive.c and conn_send.c move the bytes.
 * Called by http/session.c, http/client.c and app/echo.c. Knows no HTTP.
 */
#include "io/conn.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/must.h"
#include "base/time.h"
#include "fiber/fiber.h"
#include "io/conn_parts.h"
#include "io/pool.h"
#include "ring/carrier.h"

/* Probes of a half-closed peer, seconds. */
#define KEEPALIVE_IDLE_S 10
#define KEEPALIVE_INTERVAL_S 5

/* How long the shut-down socket may take to end its recv before that is cancelled. */
#define CLOSE_PATIENCE_NS (20 * NS_PER_MS)

static void watch_again(struct deferred *deferred)
{
    struct conn *conn = container_of(deferred, struct conn, watch_again);
    if (conn->bound != NULL) {
        conn__watch(conn);
    }
}

static void conn_init(struct conn *conn, int fd, struct carrier *carrier)
{
    memset(conn, 0, sizeof(*conn));
    conn->fd = fd;
    conn->carrier = carrier;
    conn->watch_again.run = watch_again;
    list_init(&conn->watch_again.node);
}

void conn_open(struct conn *conn, int fd)
{
    must(carrier_current() != NULL);
    conn_init(conn, fd, carrier_current());
}

void conn__fail(struct conn *conn, int error)
{
    conn->error = error;
    if (conn->bound != NULL) {
        fiber_cancel(conn->bound);
    }
}

static void deliver_watch(struct op *op, const struct op_event *event, void *owner)
{
    (void)op;
    struct conn *conn = owner;
    if (event->final) {
        conn->watch_op = NULL;
    }
    /* The ring's poll tells of POLLRDHUP as well, unasked: a FIN alone is no reset. Nor is
     * POLLHUP alone, which means that both sides have finished. */
    if (event->result > 0 && (event->result & POLLERR) != 0) {
        int error = sys_socket_error(conn->fd);
        conn__fail(conn, error < 0 ? error : -ECONNRESET);
    } else if (event->final && event->result >= 0 && conn->bound != NULL) {
        /* A full completion queue ended the multishot. Armed from here it would tell of the
         * half-close at once, find the queue full again, and so on: none of them would stay. */
        carrier_defer(conn->carrier, &conn->watch_again);
    }
    conn__wake_reader(conn);
}

/* watch - notice a reset while nothing receives; with keep-alive, a peer that is gone. */
void conn__watch(struct conn *conn)
{
    if (conn->watch_op != NULL || conn->error != 0) {
        return;
    }
    if (!conn->probed) {
        sys_keepalive(conn->fd, KEEPALIVE_IDLE_S, KEEPALIVE_INTERVAL_S);
        conn->probed = true;
    }
    /* Multishot, and so edge-triggered: one shot would end at once with the POLLRDHUP of a
     * half-close, again and again. Without memory for a record the write notices the reset. */
    conn->watch_op =
        op_poll_arm(&conn->carrier->ops, conn->fd, 0, /* errors and hang-ups are always told */
                    (struct op_target){.deliver = deliver_watch, .owner = conn});
}

void conn_linger(struct conn *conn, size_t bytes_max, uint64_t deadline_ns)
{
    struct slice bytes;
    size_t dropped = 0;

    if (conn->error != 0) {
        return;
    }
    sys_shutdown(conn->fd, SHUT_WR);
    while (dropped < bytes_max && conn_peek(conn, &bytes, deadline_ns) > 0) {
        dropped += bytes.length;
        conn_consume(conn, bytes.length);
    }
}

/* let_go - park until no op of this connection is in flight. */
static void let_go(struct conn *conn, bool cancel)
{
    struct ops *ops = &conn->carrier->ops;
    uint64_t patience_ns = 0;

    conn->reader = fiber_current();
    conn->settling = true;
    while (conn->recv_op != NULL || conn->watch_op != NULL || conn->send_op != NULL) {
        if (conn->watch_op != NULL) {
            op_cancel(ops, conn->watch_op);
        }
        if (cancel && conn->recv_op != NULL) {
            op_cancel(ops, conn->recv_op);
        }
        if (conn->send_op != NULL) {
            op_cancel(ops, conn->send_op); /* who wants it sent settles before */
        }
        patience_ns = cancel ? 0 : conn->carrier->sched.now_ns + CLOSE_PATIENCE_NS;
        cancel = fiber_park_through("close", patience_ns) != 0 || cancel;
    }
    conn->reader = NULL;
}

static void finish(struct conn *conn)
{
    while (conn->held_count > 0) {
        conn__release_piece(conn, &conn->held[--conn->held_count]);
    }
    free(conn->own_buffer);
    sys_close(conn->fd);
    list_remove(&conn->watch_again.node);
    conn->own_buffer = NULL;
    conn->fd = -1;
}

void conn_close(struct conn *conn)
{
    conn->bound = NULL;
    if (conn->carrier != NULL &&
        (conn->recv_op != NULL || conn->watch_op != NULL || conn->send_op != NULL)) {
        /* Closing with an op in flight would send no FIN: the op holds the file. A plain
         * shutdown ends the recv with 0 (the ring's own always goes to a worker thread). */
        sys_shutdown(conn->fd, SHUT_RDWR);
        let_go(conn, false);
    }
    finish(conn);
}

void conn_abort(struct conn *conn)
{
    conn->bound = NULL;
    if (conn->carrier != NULL) {
        let_go(conn, true);
    }
    sys_reset_on_close(conn->fd);
    finish(conn);
}

void conn_bind(struct conn *conn, struct fiber *fiber)
{
    conn->bound = fiber;
    if (fiber == NULL || conn->carrier == NULL) {
        return;
    }
    if (conn->error != 0) {
        fiber_cancel(fiber);
    } else if (conn->recv_op == NULL) {
        conn__watch(conn);
    } else {
        /* A reset right behind the request may have been lost, see conn_receive.c. */
        char byte;
        ssize_t pending = sys_peek(conn->fd, &byte, 1);
        if (pending < 0 && pending != -EAGAIN) {
            conn__fail(conn, (int)pending);
        }
    }
}

void conn_interrupt(struct conn *conn)
{
    conn->interrupted = true;
    conn__wake_reader(conn);
}

bool conn_is_dead(const struct conn *conn)
{
    if (conn->finished || conn->error != 0 || conn->held_count > 0) {
        return true;
    }
    /* Nothing is armed that would have told: a platform thread's, or a fiber's whose recv ended
     * with the last answer. */
    return conn->recv_op == NULL && conn_has_pending(conn);
}

static int connect_thread(struct conn *conn, const struct sys_address *address,
                          uint64_t deadline_ns)
{
    int result = sys_connect(conn->fd, address);
    if (result == -EINPROGRESS) {
        int ready = pool_thread_wait(conn->fd, POLLOUT, deadline_ns);
        result = ready == 0 ? -ETIMEDOUT : ready < 0 ? ready : sys_socket_error(conn->fd);
    }
    if (result == 0) {
        conn->own_buffer = malloc(RING_BUFFER_BYTES);
        result = conn->own_buffer != NULL ? 0 : -ENOMEM;
    }
    return result;
}

int conn_connect(struct conn *conn, const struct sys_address *address, uint64_t deadline_ns)
{
    struct carrier *carrier = fiber_current() != NULL ? carrier_current() : NULL;
    int fd = sys_socket(address, carrier == NULL);
    if (fd < 0) {
        return fd;
    }
    conn_init(conn, fd, carrier);
    int result = carrier != NULL ? op_connect(&carrier->ops, fd, address, deadline_ns)
                                 : connect_thread(conn, address, deadline_ns);
    if (result < 0) {
        finish(conn);
    }
    return result;
}
