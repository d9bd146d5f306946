/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conn_send.c - bytes to the peer: written whole, or started and settled later.
 *
 * Hop of the data path: the response's bytes leave.
 */
#include <errno.h>
#include <poll.h>

#include "base/must.h"
#include "fiber/fiber.h"
#include "io/conn.h"
#include "io/conn_parts.h"
#include "io/pool.h"
#include "ring/carrier.h"

static void deliver_send(struct op *op, const struct op_event *event, void *owner);

static int send_on(struct conn *conn)
{
    conn->send_op =
        op_send_arm(&conn->carrier->ops, conn->fd,
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
    if (conn->send_op != NULL) {
        return;
    }
    if (conn->sent != NULL) {
        conn->sent(conn);
    }
    bool lost = conn->send_error != 0 && !cancelled;
    if (lost && conn->error == 0) {
        conn__fail(conn, conn->send_error); /* nobody is to wait for an answer to what was lost */
    }
    if (conn->settling || lost) {
        conn__wake_reader(conn);
    }
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
