/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire.c - see wire.h. Called by seat.c and the exchanges.
 */
#include "ringload/wire.h"

#include <errno.h>
#include <string.h>

#include "base/must.h"
#include "fiber/fiber.h"
#include "ring/carrier.h"
#include "ring/sys_client.h"

static void deliver_recv(struct op *op, const struct op_event *event, void *owner)
{
    (void)op;
    struct wire *wire = owner;
    must(event->final);
    wire->recv_op = NULL;
    wire->received = event->result;
    if (wire->fiber != NULL) {
        fiber_wake(wire->fiber);
    }
}

static void deliver_send(struct op *op, const struct op_event *event, void *owner);

static int send_on(struct wire *wire)
{
    wire->send_op =
        op_send_arm(&wire->carrier->ops, wire->fd,
                    (struct op_bytes){.src = wire->sending.at, .length = wire->sending.length},
                    (struct op_target){.deliver = deliver_send, .owner = wire});
    return wire->send_op != NULL ? 0 : -ENOMEM;
}

static void deliver_send(struct op *op, const struct op_event *event, void *owner)
{
    struct wire *wire = owner;
    bool cancelled = op->cancelling;
    must(event->final);
    wire->send_op = NULL;
    if (event->result >= 0) {
        must((size_t)event->result <= wire->sending.length);
        wire->sending.at += event->result;
        wire->sending.length -= (size_t)event->result;
    } else if (event->result != -EINTR && event->result != -EAGAIN) {
        wire->send_error = event->result;
    }
    if (wire->sending.length > 0 && wire->send_error == 0 && !cancelled) {
        wire->send_error = send_on(wire);
    }
    /* Only wire_close waits for a send; the fiber in wire_recv looks again and parks. */
    if (wire->recv_op == NULL && wire->send_op == NULL && wire->fiber != NULL) {
        fiber_wake(wire->fiber);
    }
}

int wire_connect(struct wire *wire, const struct sys_address *address,
                 const struct sys_address *source, uint64_t deadline_ns)
{
    struct carrier *carrier = carrier_current();
    must(!wire_is_open(wire) && carrier != NULL);
    int fd = sys_socket(address, false);
    if (fd < 0) {
        return fd;
    }
    int result = source != NULL ? sys_bind_source(fd, source) : 0;
    if (result == 0) {
        result = op_connect(&carrier->ops, fd, address, deadline_ns);
    }
    if (result < 0) {
        sys_close(fd);
        return result;
    }
    *wire = (struct wire){.carrier = carrier, .fd = fd};
    return 0;
}

bool wire_is_open(const struct wire *wire)
{
    return wire->carrier != NULL;
}

int wire_send(struct wire *wire, struct slice src)
{
    must(wire_is_open(wire) && wire->send_op == NULL);
    wire->sending = src;
    return src.length > 0 ? send_on(wire) : 0;
}

bool wire_is_sending(const struct wire *wire)
{
    return wire->sending.length > 0;
}

ssize_t wire_recv(struct wire *wire, struct op_room room, uint64_t deadline_ns)
{
    struct ops *ops = &wire->carrier->ops;
    int reason = 0;
    must(wire->recv_op == NULL);
    do {
        wire->recv_op = op_recv_into_arm(
            ops, wire->fd, room, (struct op_target){.deliver = deliver_recv, .owner = wire});
        if (wire->recv_op == NULL) {
            return -ENOMEM;
        }
        wire->fiber = fiber_current();
        while (wire->recv_op != NULL) {
            int parked =
                reason == 0 ? fiber_park("recv", deadline_ns) : fiber_park_through("recv", 0);
            if (parked != 0 && wire->recv_op != NULL) {
                reason = parked;
                op_cancel(ops, wire->recv_op);
            }
        }
        wire->fiber = NULL;
    } while (reason == 0 && (wire->received == -EINTR || wire->received == -EAGAIN));
    /* What came although it was to be cancelled counts. */
    return wire->received < 0 && reason != 0 ? reason : wire->received;
}

bool wire_is_quiet(const struct wire *wire)
{
    char byte;
    return sys_peek(wire->fd, &byte, 1) == -EAGAIN;
}

void wire_close(struct wire *wire, bool reset)
{
    must(wire_is_open(wire) && wire->recv_op == NULL);
    wire->fiber = fiber_current();
    while (wire->send_op != NULL) {
        op_cancel(&wire->carrier->ops, wire->send_op);
        (void)fiber_park_through("close", 0);
    }
    if (reset) {
        sys_reset_on_close(wire->fd);
    }
    sys_close(wire->fd);
    memset(wire, 0, sizeof(*wire));
}
