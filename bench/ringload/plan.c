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

/* Of the ports that the kernel chooses from: others use some, and a search for the last few is slow. */
#define PORTS_USABLE(count) ((count) / 4 * 3)

typedef unsigned long long ull;

/* ports - how many the kernel may choose for a client. */
static uint64_t ports(void)
{
    char text[64];
    ssize_t length =
        sys_read_file("/proc/sys/net/ipv4/ip_local_port_range", text, sizeof(text) - 1);
    char *end;
    if (length > 0) {
        text[length] = '\0';
        unsigned long low = strtoul(text, &end, 10);
        unsigned long high = strtoul(end, NULL, 10);
        if (low > 0 && high >= low && high < 65536) {
            return high - low + 1;
        }
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
             (ull)plan->at_once, (ull)limit, (ull)room, (ull)(plan->at_once + reserved));
    return USAGE;
}

static int check_ports(struct plan *plan, const struct options *options)
{
    uint64_t usable = PORTS_USABLE(ports());
    plan->sources = 1;
    if (options->target.is_loopback) {
        uint64_t needed = (plan->at_once + usable - 1) / usable;
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
    int code = check_descriptors(plan, options);
    return code != 0 ? code : check_ports(plan, options);
}
