/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor_network.c - the rows about threads, processors and the network. Pure. Called by
 * doctor_judge.c.
 */
#include <inttypes.h>
#include <stdio.h>

#include "app/doctor_parts.h"

/* Beside carriers and platform threads: the monitor, and the offload pool. */
#define THREADS_FIXED 5u

#define CAPABILITY_SYS_ADMIN 21
#define CAPABILITY_SYS_RESOURCE 24

/* ---------------------------------------------------------------- processors, threads */

void doctor__judge_threads(struct doctor_report *report, const struct doctor_host *host)
{
    struct doctor_row *row = doctor__add_row(report, "threads", "threads", DOCTOR_THREADS);
    uint64_t needed = (uint64_t)report->plan.carriers + THREADS_FIXED + report->plan.threads;
    bool exempt = (host->capabilities >> CAPABILITY_SYS_ADMIN & 1) != 0 ||
                  (host->capabilities >> CAPABILITY_SYS_RESOURCE & 1) != 0;
    uint64_t user = exempt ? DOCTOR_NO_LIMIT : host->processes.soft;
    doctor__add_fact(row, "needed", DOCTOR_COUNT, needed);
    doctor__add_fact(row, "pids.max", DOCTOR_COUNT, host->group_pids_max);
    doctor__add_fact(row, "nproc", DOCTOR_COUNT, host->processes.soft);
    doctor__add_fact(row, "kernel.threads-max", DOCTOR_COUNT, host->threads_max);
    row->allows =
        doctor__lower_of(doctor__lower_of(host->group_pids_left, user), host->threads_max);
    if (doctor__is_known(row->allows) && row->allows == host->group_pids_left) {
        DOCTOR__FILL(row->lift, "docker run --pids-limit=-1");
        DOCTOR__FILL(row->also, "TasksMax=infinity in the unit");
    } else if (doctor__is_known(row->allows) && row->allows == user) {
        DOCTOR__FILL(row->lift, "ulimit -u unlimited");
        DOCTOR__FILL(row->also, "LimitNPROC=infinity in the unit");
    } else {
        DOCTOR__FILL(row->lift, "sysctl -w kernel.threads-max=1000000");
    }
    if (doctor__is_known(row->allows) && row->allows < needed) {
        doctor__complain(row, DOCTOR_WARNING, "%" PRIu64 " are needed, so the start fails", needed);
    }
}

void doctor__judge_processors(struct doctor_report *report, const struct doctor_host *host)
{
    struct doctor_row *row = doctor__add_row(report, "processors", "processors", DOCTOR_CARRIERS);
    uint64_t share = host->group_processor_milli;
    doctor__add_fact(row, "allowed", DOCTOR_COUNT, host->processors);
    doctor__add_fact(row, "cpu.max", DOCTOR_MILLI, share);
    doctor__add_fact(row, "carriers", DOCTOR_COUNT, report->plan.carriers);
    uint64_t whole = doctor__is_known(share) ? (share + 999) / 1000 : share;
    row->allows = doctor__lower_of(host->processors, whole);
    if (!doctor__is_known(row->allows) || report->plan.carriers <= row->allows) {
        DOCTOR__FILL(row->lift, "taskset, docker run --cpus=, --cpuset-cpus=");
        DOCTOR__FILL(row->also, "CPUQuota=, AllowedCPUs= in the unit");
        return;
    }
    DOCTOR__FILL(row->lift, "--ringspun.carriers=%" PRIu64, row->allows);
    DOCTOR__FILL(row->also, "or more processor time: docker run --cpus=%u, CPUQuota=%u%%",
                 report->plan.carriers, report->plan.carriers * 100);
    doctor__complain(row, DOCTOR_WARNING,
                     "%u carriers share the time of %" PRIu64 ": each is stopped in turn",
                     report->plan.carriers, row->allows);
}

/* ---------------------------------------------------------------- network */

void doctor__judge_queues(struct doctor_report *report, const struct doctor_host *host)
{
    struct doctor_row *row = doctor__add_row(report, "somaxconn", "accept queue", DOCTOR_WAITING);
    doctor__add_fact(row, "net.core.somaxconn", DOCTOR_COUNT, host->somaxconn);
    row->allows = host->somaxconn;
    DOCTOR__FILL(row->lift, "sysctl -w net.core.somaxconn=65535");
    DOCTOR__FILL(row->also, "docker run --sysctl net.core.somaxconn=65535");
    if (doctor__is_known(row->allows) && row->allows < DOCTOR_BACKLOG) {
        doctor__complain(row, DOCTOR_WARNING,
                         "a burst of more than %" PRIu64
                         " new connections loses some, which come again "
                         "after a second",
                         row->allows);
    }

    row = doctor__add_row(report, "syn_backlog", "SYN queue", DOCTOR_WAITING);
    bool cookies = doctor__is_known(host->syn_cookies) && host->syn_cookies > 0;
    doctor__add_fact(row, "tcp_max_syn_backlog", DOCTOR_COUNT, host->syn_backlog);
    doctor__add_fact(row, "tcp_syncookies", DOCTOR_COUNT, host->syn_cookies);
    row->allows = host->syn_backlog;
    DOCTOR__FILL(row->lift, "sysctl -w net.ipv4.tcp_max_syn_backlog=65535");
    DOCTOR__FILL(row->also, "%s", cookies ? "no limit while SYN cookies are on" : "");
    if (!cookies && doctor__is_known(row->allows) && row->allows < DOCTOR_BACKLOG) {
        doctor__complain(row, DOCTOR_WARNING, "without SYN cookies a burst of more loses some");
    }
}

void doctor__judge_ports(struct doctor_report *report, const struct doctor_host *host)
{
    struct doctor_row *row = doctor__add_row(report, "local_ports", "local ports", DOCTOR_CALLS);
    doctor__add_fact(row, "first", DOCTOR_COUNT, host->port_first);
    doctor__add_fact(row, "last", DOCTOR_COUNT, host->port_last);
    row->allows = DOCTOR_UNKNOWN;
    if (doctor__is_known(host->port_first) && doctor__is_known(host->port_last)) {
        row->allows =
            host->port_last >= host->port_first ? host->port_last - host->port_first + 1 : 0;
    }
    DOCTOR__FILL(row->lift, "sysctl -w net.ipv4.ip_local_port_range=\"1024 65535\"");
    DOCTOR__FILL(row->also, "for calls to remote.url and load generators, not for clients");
    if (doctor__is_known(row->allows) && row->allows < DOCTOR_FEW) {
        doctor__complain(row, DOCTOR_WARNING, "few calls to remote.url at the same time");
    }
}

void doctor__judge_conntrack(struct doctor_report *report, const struct doctor_host *host)
{
    struct doctor_row *row = doctor__add_row(report, "conntrack", "conntrack", DOCTOR_CONNECTIONS);
    if (host->conntrack_max == DOCTOR_UNKNOWN && host->somaxconn != DOCTOR_UNKNOWN) {
        doctor__add_text(row, "nf_conntrack", "not loaded");
        DOCTOR__FILL(row->lift, "none is due");
        return;
    }
    doctor__add_fact(row, "nf_conntrack_max", DOCTOR_COUNT, host->conntrack_max);
    doctor__add_fact(row, "in use", DOCTOR_COUNT, host->conntrack_count);
    row->allows = doctor__shares(host->conntrack_max, host->conntrack_count, 1);
    DOCTOR__FILL(row->limit, "nf_conntrack_max");
    DOCTOR__FILL(row->lift, "sysctl -w net.netfilter.nf_conntrack_max=1048576");
}
