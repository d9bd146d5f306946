/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.c - see plan.h. Called by main.c. Raises the descriptor limit.
 */
#include "ringload/plan.h"

#include <stdio.h>
#include <stdlib.h>

#include "ring/sys.h"
#include "ringload/options.h"

#define USAGE 2

/* Descriptors beside the connections: standard streams, signals, what was inherited; and a carrier's. */
#define DESCRIPTORS_FIXED 32u
#define DESCRIPTORS_PER_CARRIER 4u

/*
 * Of the ports that the kernel chooses from. Others use some, and its search for a free one
 * tries one after the other: where it costs but two calls to use more addresses, we fill none.
 */
#define PORTS_USABLE(count) ((count) / 10 * 9)
#define PORTS_COMFORTABLE(count) ((count) / 4)

typedef unsigned long long ull;

/* The queue of a listener elsewhere: what kernels since 5.4 allow by default. */
#define QUEUE_DEFAULT 4096u

/* numbers - two, or one, from a file of the kernel's. Returns how many there were. */
static int numbers(const char *path, uint64_t *first, uint64_t *second)
{
    char text[64], *end;
    ssize_t length = sys_read_file(path, text, sizeof(text) - 1);
    if (length <= 0) {
        return 0;
    }
    text[length] = '\0';
    *first = strtoul(text, &end, 10);
    if (end == text) {
        return 0;
    }
    *second = strtoul(end, &end, 10);
    return *second > 0 ? 2 : 1;
}

/* ports - how many the kernel may choose for a client. */
static uint64_t ports(void)
{
    uint64_t low, high;
    if (numbers("/proc/sys/net/ipv4/ip_local_port_range", &low, &high) == 2 && low <= high &&
        high < 65536) {
        return high - low + 1;
    }
    return 28232; /* the kernel's default: 32768 to 60999 */
}

static int check_descriptors(struct plan *plan, const struct options *options)
{
    uint64_t before, limit = sys_descriptors_raise(&before);
    uint64_t reserved = DESCRIPTORS_FIXED + DESCRIPTORS_PER_CARRIER * plan->carriers;
    uint64_t room = limit > reserved ? limit - reserved : 0;
    if (plan->at_once <= room) {
        return 0;
    }
    if (options->users > 0 && room > 0) {
        plan->at_once = room;
        snprintf(plan->note, sizeof(plan->note),
                 "%llu at a time: the descriptor limit (RLIMIT_NOFILE) of %llu allows no more",
                 (ull)room, (ull)limit);
        return 0;
    }
    complain("-c %llu: the descriptor limit (RLIMIT_NOFILE) of %llu allows %llu connections; raise "
             "it ('ulimit -Hn %llu' as root)",
             (ull)plan->at_once, (ull)limit, (ull)room, (ull)plan->at_once + (ull)reserved);
    return USAGE;
}

static int check_ports(struct plan *plan, const struct options *options)
{
    uint64_t usable = PORTS_USABLE(ports()), comfortable = PORTS_COMFORTABLE(ports());
    plan->sources = 1;
    if (options->target.is_loopback) {
        uint64_t needed = (plan->at_once + comfortable - 1) / comfortable;
        plan->sources = options->sources > 0 ? options->sources : (unsigned)needed;
        return 0;
    }
    if (options->sources > 1) {
        complain("--sources is for targets in 127.0.0.0/8, and %s is none", options->target.host);
        return USAGE;
    }
    if (plan->at_once <= usable) {
        return 0;
    }
    if (options->users > 0) {
        plan->at_once = usable;
        snprintf(plan->note, sizeof(plan->note),
                 "%llu at a time: the ports (net.ipv4.ip_local_port_range) allow no more",
                 (ull)usable);
        return 0;
    }
    complain(
        "-c %llu: the ports (net.ipv4.ip_local_port_range) allow %llu connections to one address",
        (ull)plan->at_once, (ull)usable);
    return USAGE;
}

int plan_make(struct plan *plan, const struct options *options)
{
    *plan = (struct plan){
        .at_once = options->connections,
        .carriers = options->carriers > 0 ? options->carriers : sys_processors(),
    };
    if (plan->carriers > OPTIONS_CARRIERS_MAX) {
        plan->carriers = OPTIONS_CARRIERS_MAX;
    }
    if (plan->carriers > plan->at_once) {
        plan->carriers = (unsigned)plan->at_once;
    }
    uint64_t none;
    if (!options->burst && (!options->target.is_loopback ||
                            numbers("/proc/sys/net/core/somaxconn", &plan->queue, &none) == 0)) {
        plan->queue = QUEUE_DEFAULT;
    }
    int code = check_descriptors(plan, options);
    return code != 0 ? code : check_ports(plan, options);
}
