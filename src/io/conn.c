/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conn.c - a TCP connection on the ring, or on plain system calls.
 *
 * Hop of the data path: the fiber has bytes, and later the response's bytes
 * leave. Called by http/session.c and http/client.c. Knows no HTTP.
 */
#include "io/conn.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/must.h"
#include "base/time.h"
#include "fiber/fiber.h"
#include "io/pool.h"
#include "ring/carrier.h"

/*
 * A connection that does not read holds at most CONN_PIECES_MAX buffers. The kernel
 * does not cut the last piece (seen on 6.18): a capped recv ends with the piece that
 * reaches the cap, and that one may be a whole buffer.
 */
#define RECV_CAP_BYTES (((size_t)CONN_PIECES_MAX - 1) * RING_BUFFER_BYTES + 1)

/* Probes of a half-closed peer, seconds. */
#define KEEPALIVE_IDLE_S 10
#define KEEPALIVE_INTERVAL_S 5

/* How long the shut-down socket may take to end its recv before that is cancelled. */
#define CLOSE_PATIENCE_NS (20 * NS_PER_MS)

static void conn_init(struct conn *conn, int fd, struct carrier *carrier)
{
    memset(conn, 0, sizeof(*conn));
    conn->fd = fd;
    conn->carrier = carrier;
}

void conn_open(struct conn *conn, int fd)
{
    must(carrier_current() != NULL);
    conn_init(conn, fd, carrier_current());
}

static void wake_reader(struct conn *conn)
{
    if (conn->reader != NULL) {
        fiber_wake(conn->reader);
    }
}

static void fail(struct conn *conn, int error)
{
    conn->error = error;
    if (conn->bound != NULL) {
        fiber_cancel(conn->bound);
    }
}

static void watch(struct conn *conn);

static void deliver_watch(struct op *op, const struct op_event *event, void *owner)
{
    (void)op;
    struct conn *conn = owner;
    if (event->final) {
        conn->watch_op = NULL;
    }
    /* The ring's poll tells of POLLRDHUP as well, unasked: a FIN alone is no reset. */
    if (event->result > 0 && (event->result & (POLLERR | POLLHUP)) != 0) {
        int error = sys_socket_error(conn->fd);
        fail(conn, error < 0 ? error : -ECONNRESET);
    } else if (event->final && event->result >= 0 && conn->bound != NULL) {
        watch(conn); /* a full completion queue ended the multishot */
    }
    wake_reader(conn);
}

/* watch - notice a reset while nothing receives; with keep-alive, a peer that is gone. */
static void watch(struct conn *conn)
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
    conn->watch_op = op_poll_arm(
        &conn->carrier->ops, conn->fd, 0, /* errors and hang-ups are always told */
        (struct op_target){.deliver = deliver_watch, .owner = conn});
}

static void piece_release(struct conn *conn, const struct conn_piece *piece)
{
    if (piece->buffer != CONN_OWN_BUFFER) {
        op_buffer_give(&conn->carrier->ops, (uint16_t)piece->buffer);
    } else if (conn->carrier != NULL) {
        free(conn->own_buffer); /* a platform thread keeps its one */
        conn->own_buffer = NULL;
    }
}

/*
 * hold - keep what came in a provided buffer.
 *
 * Small pieces are moved together, so that the two buffers' worth of bytes that a
 * capped recv brings never needs more than two buffers, however it was cut.
 */
static void hold(struct conn *conn, uint16_t id, uint32_t length)
{
    struct ops *ops = &conn->carrier->ops;
    char *at = op_buffer(ops, id);

    if (conn->held_count > 0) {
        struct conn_piece *last = &conn->held[conn->held_count - 1];
        uint32_t room = 0;
        if (last->buffer != CONN_OWN_BUFFER) {
            char *end = op_buffer(ops, (uint16_t)last->buffer) + RING_BUFFER_BYTES;
            room = (uint32_t)(end - (last->at + last->length));
        }
        uint32_t moved = room < length ? room : length;
        memcpy(last->at + last->length, at, moved);
        last->length += moved;
        length -= moved;
        if (length == 0) {
            op_buffer_give(ops, id);
            return;
        }
        memmove(at, at + moved, length);
    }
    must(conn->held_count < CONN_PIECES_MAX);
    conn->held[conn->held_count++] =
        (struct conn_piece){.at = at, .length = length, .buffer = id};
}

static void deliver_recv(struct op *op, const struct op_event *event, void *owner)
{
    (void)op;
    struct conn *conn = owner;

    if (event->final) {
        conn->recv_op = NULL;
    }
    if (event->result > 0) {
        must(event->has_buffer);
        hold(conn, event->buffer, (uint32_t)event->result);
    } else {
        must(event->final);
        if (event->has_buffer) {
            op_buffer_give(&conn->carrier->ops, event->buffer);
        }
        switch (event->result) {
        case 0:
            conn->finished = true;
            break;
        case -ENOBUFS:
            conn->starved = true;
            break;
        case -ECANCELED:
        case -EAGAIN:
        case -EINTR:
            break; /* the next peek arms it again */
        default:
            fail(conn, event->result);
        }
    }
    if (event->final && conn->bound != NULL) {
        watch(conn);
    }
    wake_reader(conn);
}

static void deliver_recv_own(struct op *op, const struct op_event *event, void *owner)
{
    (void)op;
    struct conn *conn = owner;

    must(event->final && conn->held_count == 0);
    conn->recv_op = NULL;
    conn->starved = false;
    if (event->result > 0) {
        conn->held[conn->held_count++] = (struct conn_piece){.at = conn->own_buffer,
                                                             .length = (uint32_t)event->result,
                                                             .buffer = CONN_OWN_BUFFER};
    } else {
        free(conn->own_buffer);
        conn->own_buffer = NULL;
        switch (event->result) {
        case 0:
            conn->finished = true;
            break;
        case -ECANCELED:
        case -EAGAIN:
        case -EINTR:
            break;
        default:
            fail(conn, event->result);
        }
    }
    if (conn->bound != NULL) {
        watch(conn);
    }
    wake_reader(conn);
}

static void deliver_send(struct op *op, const struct op_event *event, void *owner);

static int send_on(struct conn *conn)
{
    conn->send_op = op_send_arm(
        &conn->carrier->ops, conn->fd,
        (struct op_bytes){.src = conn->sending.at, .length = conn->sending.length},
        (struct op_target){.deliver = deliver_send, .owner = conn});
    return conn->send_op != NULL ? 0 : -ENOMEM;
}

static void deliver_send(struct op *op, const struct op_event *event, void *owner)
{
    struct conn *conn = owner;
    bool cancelled = op->cancelling;

    must(event->final);
    conn->send_op = NULL;
    if (event->result >= 0) {
        must((size_t)event->result <= conn->sending.length);
        conn->sending.at += event->result;
        conn->sending.length -= (size_t)event->result;
    } else if (event->result != -EINTR && event->result != -EAGAIN) {
        conn->send_error = event->result;
    }
    /* A short send goes on, unless it was cut by its cancel. */
    if (conn->sending.length > 0 && conn->send_error == 0 && !cancelled) {
        conn->send_error = send_on(conn);
    }
    if (conn->send_op != NULL || conn->reader == NULL) {
        return;
    }
    if (conn->settling) {
        fiber_wake(conn->reader);
    } else if (conn->resting) {
        fiber_rest(conn->reader);
    }
}

static int arm(struct conn *conn)
{
    struct ops *ops = &conn->carrier->ops;
    must(conn->held_count == 0 && conn->recv_op == NULL);
    if (likely(!conn->starved)) {
        conn->recv_op = op_recv_arm(ops, conn->fd, RECV_CAP_BYTES,
                                    (struct op_target){.deliver = deliver_recv, .owner = conn});
        return conn->recv_op != NULL ? 0 : -ENOMEM;
    }
    must(conn->own_buffer == NULL);
    conn->own_buffer = malloc(RING_BUFFER_BYTES);
    if (conn->own_buffer == NULL) {
        return -ENOMEM;
    }
    conn->recv_op =
        op_recv_into_arm(ops, conn->fd,
                         (struct op_room){.dst = conn->own_buffer, .capacity = RING_BUFFER_BYTES},
                         (struct op_target){.deliver = deliver_recv_own, .owner = conn});
    if (conn->recv_op == NULL) {
        free(conn->own_buffer);
        conn->own_buffer = NULL;
        return -ENOMEM;
    }
    return 0;
}

bool conn_has_pending(const struct conn *conn)
{
    char byte;
    return sys_peek(conn->fd, &byte, 1) != -EAGAIN;
}

static ssize_t peek_fiber(struct conn *conn, uint64_t deadline_ns, bool idle)
{
    int parked = 0;
    for (;;) {
        if (conn->held_count > 0) {
            return (ssize_t)conn->held[0].length;
        }
        if (conn->error != 0) {
            return conn->error;
        }
        if (conn->finished) {
            return 0;
        }
        if (parked != 0) {
            return parked;
        }
        if (idle && conn->interrupted && !conn_has_pending(conn)) {
            return -ECANCELED;
        }
        if (conn->recv_op == NULL) {
            int result = arm(conn);
            if (result < 0) {
                return result;
            }
        }
        conn->reader = fiber_current();
        conn->resting = idle;
        parked = idle && conn->send_op == NULL ? fiber_park_idle("recv", deadline_ns)
                                               : fiber_park("recv", deadline_ns);
        conn->reader = NULL;
    }
}

static ssize_t peek_thread(struct conn *conn, uint64_t deadline_ns)
{
    if (conn->held_count > 0) {
        return (ssize_t)conn->held[0].length;
    }
    for (;;) {
        ssize_t got = sys_recv(conn->fd, conn->own_buffer, RING_BUFFER_BYTES);
        if (got > 0) {
            conn->held[conn->held_count++] = (struct conn_piece){.at = conn->own_buffer,
                                                                 .length = (uint32_t)got,
                                                                 .buffer = CONN_OWN_BUFFER};
            return got;
        }
        if (got != -EAGAIN) {
            conn->finished = got == 0;
            return got;
        }
        int ready = pool_thread_wait(conn->fd, POLLIN, deadline_ns);
        if (ready <= 0) {
            return ready == 0 ? -ETIMEDOUT : ready;
        }
    }
}

static ssize_t peek(struct conn *conn, struct slice *bytes, uint64_t deadline_ns, bool idle)
{
    ssize_t got;
    if (conn->carrier != NULL) {
        must(carrier_current() == conn->carrier && fiber_current() != NULL);
        got = peek_fiber(conn, deadline_ns, idle);
    } else {
        got = peek_thread(conn, deadline_ns);
    }
    if (got > 0) {
        *bytes = (struct slice){.at = conn->held[0].at, .length = conn->held[0].length};
    }
    return got;
}

ssize_t conn_peek(struct conn *conn, struct slice *bytes, uint64_t deadline_ns)
{
    return peek(conn, bytes, deadline_ns, false);
}

ssize_t conn_peek_idle(struct conn *conn, struct slice *bytes, uint64_t deadline_ns)
{
    return peek(conn, bytes, deadline_ns, true);
}

void conn_consume(struct conn *conn, size_t length)
{
    if (length == 0) {
        return;
    }
    must(conn->held_count > 0 && length <= conn->held[0].length);
    conn->held[0].at += length;
    conn->held[0].length -= (uint32_t)length;
    if (conn->held[0].length == 0) {
        piece_release(conn, &conn->held[0]);
        conn->held[0] = conn->held[1];
        conn->held_count--;
    }
}

bool conn_has_unread(const struct conn *conn)
{
    return conn->held_count > 0;
}

int conn_write(struct conn *conn, struct slice src, uint64_t deadline_ns)
{
    while (src.length > 0) {
        ssize_t sent;
        if (conn->carrier != NULL) {
            sent = op_send(&conn->carrier->ops, conn->fd,
                           (struct op_bytes){.src = src.at, .length = src.length}, deadline_ns);
        } else {
            sent = sys_send(conn->fd, src.at, src.length);
        }
        if (sent == -EAGAIN && conn->carrier == NULL) {
            int ready = pool_thread_wait(conn->fd, POLLOUT, deadline_ns);
            if (ready <= 0) {
                return ready == 0 ? -ETIMEDOUT : ready;
            }
            continue;
        }
        if (sent == -EINTR || sent == -EAGAIN) {
            continue;
        }
        if (sent < 0) {
            return (int)sent;
        }
        src.at += sent;
        src.length -= (size_t)sent;
    }
    return 0;
}

int conn_write_start(struct conn *conn, struct slice src)
{
    must(conn->carrier != NULL && conn->send_op == NULL && src.length > 0);
    conn->sending = src;
    return send_on(conn);
}

bool conn_is_writing(const struct conn *conn)
{
    return conn->send_op != NULL;
}

int conn_write_settle(struct conn *conn, uint64_t deadline_ns)
{
    int parked = 0;
    conn->settling = true;
    while (conn->send_op != NULL) {
        if (parked != 0) {
            op_cancel(&conn->carrier->ops, conn->send_op);
            deadline_ns = 0;
        }
        conn->reader = fiber_current();
        int result = fiber_park_through("send", deadline_ns);
        conn->reader = NULL;
        parked = parked != 0 ? parked : result;
    }
    conn->settling = false;
    if (conn->sending.length == 0) {
        return 0; /* sent whole, whatever came first */
    }
    return parked != 0 ? parked : conn->send_error;
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
        piece_release(conn, &conn->held[--conn->held_count]);
    }
    free(conn->own_buffer);
    sys_close(conn->fd);
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
        watch(conn);
    }
}

void conn_interrupt(struct conn *conn)
{
    conn->interrupted = true;
    wake_reader(conn);
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
