/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conn_receive.c - bytes from the peer: arm, hold, peek, consume.
 *
 * Hop of the data path: the fiber has bytes.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/must.h"
#include "base/time.h"
#include "fiber/fiber.h"
#include "io/conn.h"
#include "io/conn_parts.h"
#include "io/pool.h"
#include "ring/carrier.h"

/*
 * A connection that does not read holds at most CONN_PIECES_MAX buffers. The kernel
 * does not cut the last piece (seen on 6.18): a capped recv ends with the piece that
 * reaches the cap, and that one may be a whole buffer.
 */
#define RECV_CAP_BYTES (((size_t)CONN_PIECES_MAX - 1) * RING_BUFFER_BYTES + 1)

void conn__release_piece(struct conn *conn, const struct conn_piece *piece)
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
    conn->held[conn->held_count++] = (struct conn_piece){.at = at, .length = length, .buffer = id};
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
            conn__fail(conn, event->result);
        }
    }
    if (event->final && conn->bound != NULL) {
        conn__watch(conn);
    }
    conn__wake_reader(conn);
}

static void deliver_recv_own(struct op *op, const struct op_event *event, void *owner)
{
    (void)op;
    struct conn *conn = owner;

    must(event->final && conn->held_count == 0);
    conn->recv_op = NULL;
    conn->starved = false;
    if (event->result > 0) {
        conn->held[conn->held_count++] = (struct conn_piece){
            .at = conn->own_buffer, .length = (uint32_t)event->result, .buffer = CONN_OWN_BUFFER};
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
            conn__fail(conn, event->result);
        }
    }
    if (conn->bound != NULL) {
        conn__watch(conn);
    }
    conn__wake_reader(conn);
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
    conn->recv_op = op_recv_into_arm(
        ops, conn->fd, (struct op_room){.dst = conn->own_buffer, .capacity = RING_BUFFER_BYTES},
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

/*
 * A FIN or a reset right behind data can be lost: seen on 6.18, both wake the poll of
 * a multishot recv before its task work runs, which takes the data and drops both
 * wake-ups. Nothing follows a FIN, so nothing would ever tell. Whoever waits after
 * data therefore asks the socket once, after so long.
 */
#define AUDIT_NS (10 * NS_PER_MS)
#define AUDIT_IDLE_NS (250 * NS_PER_MS)

/* audit - what the armed recv has missed, its successor will find: cancel it. */
static void audit(struct conn *conn)
{
    char byte;
    ssize_t pending = sys_peek(conn->fd, &byte, 1);
    if (pending == -EAGAIN) {
        return;
    }
    if (pending < 0) {
        conn__fail(conn, (int)pending); /* asking has taken the error off the socket */
    } else if (conn->recv_op != NULL) {
        op_cancel(&conn->carrier->ops, conn->recv_op);
    }
}

/* park_reader - until something is told, or the deadline. Returns what fiber_park does. */
static int park_reader(struct conn *conn, uint64_t deadline_ns, bool idle)
{
    conn->reader = fiber_current();
    int result = idle ? fiber_park_idle("recv", deadline_ns) : fiber_park("recv", deadline_ns);
    conn->reader = NULL;
    return result;
}

static ssize_t peek_fiber(struct conn *conn, uint64_t deadline_ns, bool idle)
{
    uint64_t audit_ns = conn->carrier->sched.now_ns + (idle ? AUDIT_IDLE_NS : AUDIT_NS);
    bool audited = !conn->carrier->ring.recv_cap; /* one-shot recvs lose nothing */
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
        bool sooner = !audited && (deadline_ns == 0 || audit_ns < deadline_ns);
        parked = park_reader(conn, sooner ? audit_ns : deadline_ns, idle);
        if (sooner && parked == -ETIMEDOUT) {
            parked = 0;
            audited = true;
            audit(conn);
        }
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
            conn->held[conn->held_count++] = (struct conn_piece){
                .at = conn->own_buffer, .length = (uint32_t)got, .buffer = CONN_OWN_BUFFER};
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
        conn__release_piece(conn, &conn->held[0]);
        conn->held[0] = conn->held[1];
        conn->held_count--;
    }
}

bool conn_has_unread(const struct conn *conn)
{
    return conn->held_count > 0;
}

bool conn_has_more(const struct conn *conn)
{
    return conn_has_unread(conn) || (conn->recv_op == NULL && conn_has_pending(conn));
}
