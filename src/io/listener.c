/* SPDX-License-Identifier: Apache-2.0 */
/*
 * listener.c - accept, balance, refuse, drain.
 *
 * First file of a connection's life; its serve function takes it from here: that of
 * http/service.c, or of app/echo.c.
 */
#include "io/listener.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/must.h"
#include "io/conn.h"
#include "io/sleep.h"
#include "ring/sys.h"

#define ACCEPTS_PER_TURN 16

/* Refused clients that are drained at the same time, per carrier; more are just closed. */
#define REFUSALS_MAX 16
#define REFUSAL_LINGER_NS (NS_PER_S / 2)
#define REFUSAL_LINGER_BYTES ((size_t)65536)

/* Out of descriptors and of slots: look again after this. */
#define SHORTAGE_WAIT_NS (100 * NS_PER_MS)
/* Descriptors are being closed for us. */
#define SHORTAGE_ENDS_NS NS_PER_MS
#define COMPLAINT_INTERVAL_NS (60 * NS_PER_S)

static bool limit_take(struct connection_limit *limit)
{
    if (limit == NULL) {
        return true;
    }
    /* Never beyond max, not even for a moment: another carrier would refuse for that. */
    unsigned live = atomic_load(&limit->live);
    do {
        if (live >= limit->max) {
            return false;
        }
    } while (!atomic_compare_exchange_weak(&limit->live, &live, live + 1));
    return true;
}

static void limit_give(struct connection_limit *limit)
{
    if (limit != NULL) {
        atomic_fetch_sub(&limit->live, 1);
    }
}

static bool admit(struct listener *listener)
{
    for (int i = 0; i < LISTENER_LIMITS; i++) {
        if (!limit_take(listener->setup.limits[i])) {
            while (i > 0) {
                limit_give(listener->setup.limits[--i]);
            }
            return false;
        }
    }
    return true;
}

static void give_places(struct listener *listener)
{
    for (int i = 0; i < LISTENER_LIMITS; i++) {
        limit_give(listener->setup.limits[i]);
    }
}

void listener_release(struct listener *listener)
{
    atomic_fetch_sub_explicit(&carrier_current()->connections, 1, memory_order_relaxed);
    give_places(listener);
}

/* refuse_now - answer and close without waiting: best effort, the close may become a reset. */
static void refuse_now(struct listener *listener, int fd)
{
    char response[LISTENER_REFUSAL_BYTES];
    char request[2048];
    size_t length = listener->setup.refusal(response, sizeof(response));

    /* What has come already is read, so that the close is none with unread bytes. */
    (void)sys_recv(fd, request, sizeof(request));
    (void)sys_send(fd, response, length);
    sys_shutdown(fd, SHUT_WR);
    sys_close(fd);
}

struct refusal {
    struct acceptor *acceptor;
    int fd;
};

static void refusal_run(void *argument)
{
    struct refusal refusal = *(struct refusal *)argument;
    struct listener *listener = refusal.acceptor->listener;
    char response[LISTENER_REFUSAL_BYTES];
    struct conn conn;

    free(argument);
    size_t length = listener->setup.refusal(response, sizeof(response));
    uint64_t deadline_ns = sys_clock_ns() + REFUSAL_LINGER_NS;
    conn_open(&conn, refusal.fd);
    if (conn_write(&conn, (struct slice){.at = response, .length = length}, deadline_ns) == 0) {
        conn_linger(&conn, REFUSAL_LINGER_BYTES, deadline_ns);
    }
    conn_close(&conn);
    refusal.acceptor->refusals--;
}

/* refuse - tell a client that there is no place for it, and drain it so that it can read that. */
static void refuse(struct acceptor *acceptor, int fd)
{
    atomic_fetch_add_explicit(&acceptor->listener->refused, 1, memory_order_relaxed);
    struct refusal *refusal = NULL;
    if (acceptor->refusals < REFUSALS_MAX) {
        refusal = malloc(sizeof(*refusal));
    }
    if (refusal != NULL) {
        *refusal = (struct refusal){.acceptor = acceptor, .fd = fd};
        struct fiber_name name = {.prefix = "refusal"};
        if (fiber_spawn(&acceptor->carrier->sched, name, refusal_run, refusal) != NULL) {
            acceptor->refusals++;
            return;
        }
        free(refusal);
    }
    refuse_now(acceptor->listener, fd);
}

/* serve_here - the connection's places are taken; it is counted on this carrier. */
static void serve_here(struct acceptor *acceptor, int fd)
{
    struct listener *listener = acceptor->listener;
    if (listener->setup.serve(listener, fd) < 0) {
        listener_release(listener);
        refuse(acceptor, fd);
    }
}

/* A descriptor on its way to another carrier. */
struct handover {
    struct message message;
    struct acceptor *acceptor; /* of the receiving carrier */
    int fd;
};

static void run_handover(struct message *message)
{
    struct handover *handover = container_of(message, struct handover, message);
    serve_here(handover->acceptor, handover->fd);
    free(handover);
}

/* idlest - the acceptor whose carrier has fewest connections, when that is clearly fewer than ours. */
static struct acceptor *idlest(struct acceptor *self)
{
    struct listener *listener = self->listener;
    unsigned own = atomic_load_explicit(&self->carrier->connections, memory_order_relaxed);
    unsigned fewest = own;
    struct acceptor *best = self;

    for (unsigned i = 0; i < listener->setup.carrier_count; i++) {
        struct acceptor *other = &listener->acceptors[i];
        unsigned live = atomic_load_explicit(&other->carrier->connections, memory_order_relaxed);
        if (live < fewest) {
            fewest = live;
            best = other;
        }
    }
    unsigned slack = fewest / 10 > 2 ? fewest / 10 : 2;
    return own > fewest + slack ? best : self;
}

static void place(struct acceptor *acceptor, int fd)
{
    struct listener *listener = acceptor->listener;
    if (!admit(listener)) {
        refuse(acceptor, fd);
        return;
    }
    atomic_fetch_add_explicit(&listener->accepted, 1, memory_order_relaxed);
    struct acceptor *target = idlest(acceptor);
    struct handover *handover = NULL;
    if (target != acceptor) {
        handover = malloc(sizeof(*handover)); /* NULL: serve it here */
    }
    if (handover == NULL) {
        atomic_fetch_add_explicit(&acceptor->carrier->connections, 1, memory_order_relaxed);
        serve_here(acceptor, fd);
        return;
    }
    /* Counted before it arrives, so that the next ones are spread by it. */
    atomic_fetch_add_explicit(&target->carrier->connections, 1, memory_order_relaxed);
    *handover = (struct handover){.message = {.run = run_handover}, .acceptor = target, .fd = fd};
    carrier_post(target->carrier, &handover->message);
}

/*
 * refuse_direct - no descriptor is left: accept into a direct slot, which needs
 * none, answer and close. Returns 0; -EAGAIN nobody waits; other errors.
 */
static int refuse_direct(struct acceptor *acceptor)
{
    struct ops *ops = &acceptor->carrier->ops;
    char response[LISTENER_REFUSAL_BYTES];
    char request[2048];

    int slot = op_accept_direct(ops, acceptor->listener->fd);
    if (slot < 0) {
        return slot;
    }
    atomic_fetch_add_explicit(&acceptor->listener->refused, 1, memory_order_relaxed);
    size_t length = acceptor->listener->setup.refusal(response, sizeof(response));
    ssize_t ignored =
        op_recv_direct(ops, slot, (struct op_room){.dst = request, .capacity = sizeof(request)});
    ignored = op_send_direct(ops, slot, (struct op_bytes){.src = response, .length = length},
                             sys_clock_ns() + REFUSAL_LINGER_NS);
    (void)ignored; /* the client may have gone: it is closed either way */
    int closed;
    while ((closed = op_close_direct(ops, slot)) == -ENOMEM) {
        (void)sleep_for(SHORTAGE_WAIT_NS); /* without its close the slot would be lost */
    }
    must(closed == 0);
    return 0;
}

static void complain(struct acceptor *acceptor, int error)
{
    uint64_t now_ns = sys_clock_ns();
    if (acceptor->complained_ns != 0 && now_ns - acceptor->complained_ns < COMPLAINT_INTERVAL_NS) {
        return;
    }
    acceptor->complained_ns = now_ns;
    if (error == -EMFILE || error == -ENFILE) {
        log_warn("io.listener",
                 "out of file descriptors on port %u: new connections get 503; raise the limit "
                 "('ulimit -n', LimitNOFILE=, --ulimit nofile=) or lower "
                 "server.tomcat.max-connections",
                 acceptor->listener->port);
    } else {
        log_warn("io.listener", "cannot accept on port %u: %s; trying again every 100 ms",
                 acceptor->listener->port, strerror(-error));
    }
}

/*
 * lose - a connection failed before it was accepted (or the call was interrupted): on
 * to the next, but when it is so each time something is wrong, and nothing to spin for.
 */
static void lose(struct acceptor *acceptor, int error)
{
    if (++acceptor->lost_in_a_row >= ACCEPTS_PER_TURN) {
        acceptor->lost_in_a_row = 0;
        complain(acceptor, error);
        (void)sleep_for(SHORTAGE_WAIT_NS);
    }
}

/* accept_some - take at most a turn's worth. Returns 0 when there may be more, -EAGAIN when the queue is empty. */
static int accept_some(struct acceptor *acceptor)
{
    /* With one, the connection is served before the next is looked for. */
    int count = acceptor->listener->setup.wakes_one ? 1 : ACCEPTS_PER_TURN;
    for (int i = 0; i < count; i++) {
        int fd = sys_accept(acceptor->listener->fd);
        if (fd >= 0) {
            acceptor->lost_in_a_row = 0;
            place(acceptor, fd);
            continue;
        }
        int error = fd;
        if (error == -EMFILE || error == -ENFILE) {
            if (acceptor->listener->on_shortage != NULL &&
                acceptor->listener->on_shortage(acceptor->listener)) {
                (void)sleep_for(SHORTAGE_ENDS_NS);
                return 0;
            }
            error = refuse_direct(acceptor);
        }
        switch (error) {
        case 0:
            complain(acceptor, -EMFILE);
            break;
        case -EAGAIN:
            return -EAGAIN;
        case -ECONNABORTED:
        case -EINTR:
            lose(acceptor, error);
            break;
        default: /* no slot, no memory: wait for things to get better, do not spin */
            complain(acceptor, error);
            (void)sleep_for(SHORTAGE_WAIT_NS);
            return 0;
        }
    }
    return 0;
}

static void deliver_poll(struct op *op, const struct op_event *event, void *owner)
{
    (void)op;
    struct acceptor *acceptor = owner;
    must(event->result >= 0 || event->result == -ECANCELED);
    if (event->final) {
        acceptor->poll_op = NULL;
    }
    acceptor->ready = true;
    if (acceptor->fiber != NULL) {
        fiber_wake(acceptor->fiber);
    }
}

static void wait_ready(struct acceptor *acceptor)
{
    if (acceptor->poll_op == NULL) {
        struct op_target target = {.deliver = deliver_poll, .owner = acceptor};
        struct ops *ops = &acceptor->carrier->ops;
        int fd = acceptor->listener->fd;
        acceptor->poll_op = acceptor->listener->setup.wakes_one
                                ? op_poll_one_arm(ops, fd, POLLIN, target)
                                : op_poll_arm(ops, fd, POLLIN, target);
        if (acceptor->poll_op == NULL) {
            (void)sleep_for(SHORTAGE_WAIT_NS);
            return;
        }
    }
    while (!acceptor->ready && !acceptor->draining) {
        (void)fiber_park("accept", 0);
    }
}

static void acceptor_run(void *argument)
{
    struct acceptor *acceptor = argument;
    struct listener *listener = acceptor->listener;

    for (;;) {
        bool draining = acceptor->draining; /* read before the queue is found empty */
        acceptor->ready = false;            /* likewise: who comes while it parks in there counts */
        if (accept_some(acceptor) == 0) {
            fiber_yield();
        } else if (draining) {
            break;
        } else {
            wait_ready(acceptor);
        }
    }
    while (acceptor->poll_op != NULL) {
        op_cancel(&acceptor->carrier->ops, acceptor->poll_op);
        (void)fiber_park_through("close", 0);
    }
    acceptor->fiber = NULL;
    if (atomic_fetch_sub(&listener->open_acceptors, 1) == 1) {
        sys_close(listener->fd);
        listener->fd = -1;
        if (listener->on_closed != NULL) {
            listener->on_closed(listener);
        }
    }
}

static void run_start(struct message *message)
{
    struct acceptor *acceptor = container_of(message, struct acceptor, start);
    struct fiber_name name = {.prefix = acceptor->listener->setup.name};
    acceptor->fiber = fiber_spawn(&acceptor->carrier->sched, name, acceptor_run, acceptor);
    if (acceptor->fiber == NULL) {
        /* Whoever started it ends the start. */
        atomic_store(&acceptor->listener->failed, true);
        if (acceptor->listener->on_closed != NULL) {
            acceptor->listener->on_closed(acceptor->listener);
        }
    }
}

static void run_drain(struct message *message)
{
    struct acceptor *acceptor = container_of(message, struct acceptor, drain);
    acceptor->draining = true;
    if (acceptor->fiber != NULL) {
        fiber_wake(acceptor->fiber);
    }
}

int listener_open(struct listener *listener, const struct listener_setup *setup)
{
    memset(listener, 0, sizeof(*listener));
    must(setup->carrier_count > 0 && setup->carrier_count <= CARRIERS_MAX);
    listener->setup = *setup;
    listener->port = setup->port;
    listener->acceptors = calloc(setup->carrier_count, sizeof(*listener->acceptors));
    if (listener->acceptors == NULL) {
        return -ENOMEM;
    }
    listener->fd =
        setup->inherited > 0 ? setup->inherited : sys_listen(setup->address, &listener->port);
    if (listener->fd < 0) {
        free(listener->acceptors);
        return listener->fd;
    }
    for (unsigned i = 0; i < setup->carrier_count; i++) {
        listener->acceptors[i] = (struct acceptor){.listener = listener,
                                                   .carrier = &setup->carriers[i],
                                                   .start = {.run = run_start},
                                                   .drain = {.run = run_drain}};
    }
    atomic_store(&listener->open_acceptors, setup->carrier_count);
    return 0;
}

void listener_start(struct listener *listener)
{
    for (unsigned i = 0; i < listener->setup.carrier_count; i++) {
        carrier_post(listener->acceptors[i].carrier, &listener->acceptors[i].start);
    }
}

void listener_drain(struct listener *listener)
{
    for (unsigned i = 0; i < listener->setup.carrier_count; i++) {
        carrier_post(listener->acceptors[i].carrier, &listener->acceptors[i].drain);
    }
}

void listener_fini(struct listener *listener)
{
    if (listener->fd >= 0) {
        sys_close(listener->fd);
    }
    free(listener->acceptors);
}
