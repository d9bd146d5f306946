/* SPDX-License-Identifier: Apache-2.0 */
/*
 * faults.c - calls that fail, by the seed: what a real kernel may answer to each.
 *
 * Each is counted, and told to those whom it may excuse: the connection it was made
 * on is hurt; one of the server's own, to its remote, is a fault of the upstream.
 */
#include <errno.h>

#include "kernel_parts.h"
#include "sim.h"

struct fault {
    const char *name;
    int error;
};

/* What a program repeats, or a connection survives. */
static const struct fault recv_faults[] = {
    {"!recv EINTR", -EINTR},
    {"!recv EAGAIN", -EAGAIN},
    {"!recv ECANCELED", -ECANCELED},
    {"!recv ENOBUFS", -ENOBUFS}, /* the last one: only with provided buffers */
};
static const struct fault send_faults[] = {
    {"!send EINTR", -EINTR},
    {"!send EAGAIN", -EAGAIN},
};
static const struct fault read_faults[] = {
    {"!eventfd EINTR", -EINTR},
    {"!eventfd EAGAIN", -EAGAIN},
    {"!eventfd ENOMEM", -ENOMEM},
    {"!eventfd ECANCELED", -ECANCELED},
};
/* What ends a connection, or the attempt at one. */
static const struct fault recv_ends[] = {{"!recv ENOMEM", -ENOMEM}};
static const struct fault send_ends[] = {{"!send ENOMEM", -ENOMEM}, {"!send ENOBUFS", -ENOBUFS}};
static const struct fault connect_ends[] = {
    {"!connect ECONNREFUSED", -ECONNREFUSED},
    {"!connect ETIMEDOUT", -ETIMEDOUT},
    {"!connect EHOSTUNREACH", -EHOSTUNREACH},
    {"!connect EADDRNOTAVAIL", -EADDRNOTAVAIL},
};
/* What is short. */
static const struct fault accept_faults[] = {
    {"!accept EMFILE", -EMFILE},
    {"!accept ENFILE", -ENFILE},
    {"!accept ENOMEM", -ENOMEM},
    {"!accept ECONNABORTED", -ECONNABORTED},
};
static const struct fault socket_faults[] = {
    {"!socket EMFILE", -EMFILE},
    {"!socket ENFILE", -ENFILE},
    {"!socket ENOBUFS", -ENOBUFS},
};
static const struct fault direct_faults[] = {
    {"!direct accept ENFILE", -ENFILE},
    {"!direct accept ENOMEM", -ENOMEM},
};

#define pick(table) draw((table), sizeof(table) / sizeof((table)[0]))

static int draw(const struct fault *table, size_t count)
{
    const struct fault *fault = &table[kernel_random(count)];
    sim_note(fault->name, 0, 0, 0);
    return fault->error;
}

static bool comes(unsigned per_mille)
{
    return per_mille > 0 && kernel_random(1000) < per_mille;
}

/* hurt - both ends have an excuse. A connection without a client is one to the remote. */
static void hurt(struct kernel_file *file)
{
    bool of_client = file->mark != 0;
    file->hurt = true;
    if (file->other != NULL) {
        file->other->hurt = true;
        of_client = of_client || file->other->mark != 0;
    }
    if (!of_client) {
        sim_world.upstream_faults++;
    }
}

static int on_recv(struct kernel_file *file, const struct io_uring_sqe *sqe, size_t *bytes)
{
    bool provided = (sqe->flags & IOSQE_BUFFER_SELECT) != 0;
    if (comes(sim_world.rates.severs)) {
        hurt(file);
        if (kernel_random(3) == 0) {
            return pick(recv_ends);
        }
        sim_note("!reset by the network", 0, 0, 0);
        kernel__sever(file);
        return 0;
    }
    if ((sqe->flags & IOSQE_FIXED_FILE) != 0 || !comes(sim_world.rates.calls)) {
        return 0;
    }
    if (kernel_random(3) == 0) {
        sim_note("!short recv", 0, 0, 0);
        *bytes = 1 + kernel_random(16);
        return 0;
    }
    size_t count = sizeof(recv_faults) / sizeof(recv_faults[0]);
    return draw(recv_faults, provided ? count : count - 1);
}

static int on_send(struct kernel_file *file, const struct io_uring_sqe *sqe, size_t *bytes)
{
    if (comes(sim_world.rates.severs)) {
        hurt(file);
        if (kernel_random(2) == 0) {
            return pick(send_ends);
        }
        sim_note("!reset by the network", 0, 0, 0);
        kernel__sever(file);
        return 0;
    }
    if ((sqe->flags & IOSQE_FIXED_FILE) != 0 || !comes(sim_world.rates.calls)) {
        return 0;
    }
    if (kernel_random(2) == 0) {
        sim_note("!short send", 0, 0, 0);
        *bytes = 1 + kernel_random(64);
        return 0;
    }
    return pick(send_faults);
}

static int short_of(const struct fault *table, size_t count)
{
    if (!comes(sim_world.rates.descriptors)) {
        return 0;
    }
    sim_world.descriptor_faults++;
    sim_world.shortage_ns = kernel_now_ns();
    return draw(table, count);
}

#define shortage(table) short_of((table), sizeof(table) / sizeof((table)[0]))

static int fault(enum kernel_call call, struct kernel_file *file, const struct io_uring_sqe *sqe,
                 size_t *bytes)
{
    if (!sim_world.armed) {
        return 0;
    }
    switch (call) {
    case KERNEL_RECV:
        return on_recv(file, sqe, bytes);
    case KERNEL_SEND:
        return on_send(file, sqe, bytes);
    case KERNEL_CONNECT:
        if (comes(sim_world.rates.severs)) {
            sim_world.upstream_faults++;
            return pick(connect_ends);
        }
        return 0;
    case KERNEL_READ:
        return comes(sim_world.rates.calls) ? pick(read_faults) : 0;
    case KERNEL_SYS_ACCEPT:
        return shortage(accept_faults);
    case KERNEL_SYS_SOCKET:
        return shortage(socket_faults);
    case KERNEL_ACCEPT_DIRECT:
        return shortage(direct_faults);
    default:
        return 0;
    }
}

void faults_install(void)
{
    kernel_hooks = (struct kernel_hooks){.fault = fault, .note = sim_note};
}

void faults_peace(void)
{
    sim_world.armed = false;
    kernel_knobs.stall_percent = 0;
    kernel_knobs.slow_percent = 0;
    kernel_knobs.ghost_percent = 0;
    kernel_knobs.break_percent = 0;
}
