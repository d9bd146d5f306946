/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor_limits.c - the rows about io_uring, descriptors and memory. Pure. Called by
 * doctor_judge.c.
 *
 * The numbers that the server keeps for itself are those of limits.c and fiber/guard.c.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "app/doctor_parts.h"
#include "app/limits.h"

/* As fiber/guard.c does mappings. */
#define MAPPINGS_RESERVE 1024u
#define MAPPINGS_PER_GUARD 2u

#define DESCRIPTORS_ADVISED UINT64_C(1048576)

/* ---------------------------------------------------------------- io_uring */

static const char *seccomp_name(uint64_t mode)
{
    switch (mode) {
    case 0:
        return "none";
    case 1:
        return "strict";
    case 2:
        return "filter";
    default:
        return "unknown";
    }
}

void doctor__judge_io_uring(struct doctor_report *report, const struct doctor_host *host)
{
    struct doctor_row *row = doctor__add_row(report, "io_uring", "io_uring", DOCTOR_NOTHING);
    doctor__add_text(row, "kernel", host->kernel);
    doctor__add_fact(row, "io_uring_disabled", DOCTOR_COUNT, host->io_uring_disabled);
    doctor__add_text(row, "seccomp", seccomp_name(host->seccomp));
    if (host->ring.operations != 0) {
        doctor__add_fact(row, "operations allowed", DOCTOR_COUNT, host->ring.operations);
    }
    if (host->ring.error < 0) {
        doctor__complain(row, DOCTOR_FAILURE, "%s", host->refusal);
    }
    if (doctor__is_known(host->io_uring_disabled) && host->io_uring_disabled > 0) {
        DOCTOR__FILL(row->lift, "sysctl -w kernel.io_uring_disabled=0");
    } else if (host->ring.error < 0 && host->seccomp == 2) {
        DOCTOR__FILL(row->lift, "docker run --security-opt seccomp=FILE");
        DOCTOR__FILL(row->also, "a profile that allows the three io_uring system calls");
    }
}

/* "6.17" and "6.9" as numbers that compare. */
static unsigned version_of(const char *text)
{
    char *dot;
    unsigned long major = strtoul(text, &dot, 10);
    return (unsigned)(major * 1000 + (*dot == '.' ? strtoul(dot + 1, NULL, 10) : 0));
}

void doctor__judge_features(struct doctor_report *report, const struct doctor_host *host)
{
    struct doctor_row *row =
        doctor__add_row(report, "io_uring_features", "kernel features", DOCTOR_NOTHING);
    uint64_t present = 0, absent = 0;
    const struct ring_capability *newest = NULL;
    for (size_t i = 0; i < host->ring.capability_count; i++) {
        const struct ring_capability *one = &host->ring.capabilities[i];
        present += one->present;
        absent += !one->present;
        if (one->present || one->role == RING_UNUSED) {
            continue;
        }
        if (newest == NULL || version_of(one->since) > version_of(newest->since)) {
            newest = one;
        }
        if (host->ring.error < 0) {
            continue; /* told by the row above: nothing could be tried */
        }
        if (one->role == RING_NEEDED) {
            doctor__complain(row, DOCTOR_FAILURE, "%s is absent, and the server needs it",
                             one->name);
        } else {
            doctor__complain(row, DOCTOR_WARNING, "%s is absent: %s", one->name, one->without);
        }
    }
    doctor__add_fact(row, "present", DOCTOR_COUNT, present);
    doctor__add_fact(row, "absent", DOCTOR_COUNT, absent);
    if (newest != NULL && host->ring.error == 0) {
        DOCTOR__FILL(row->lift, "upgrade the kernel to %s or newer", newest->since);
    }
}

void doctor__judge_locked(struct doctor_report *report, const struct doctor_host *host)
{
    struct doctor_row *row =
        doctor__add_row(report, "locked_memory", "locked memory", DOCTOR_RINGS);
    bool counts = host->ring.locked_counts;
    doctor__add_fact(row, "soft", DOCTOR_BYTES, host->locked.soft);
    doctor__add_fact(row, "a ring", DOCTOR_BYTES,
                     host->ring.locked_bytes > 0 ? host->ring.locked_bytes : DOCTOR_UNKNOWN);
    doctor__add_text(row, "counts", counts ? "yes" : "no");
    DOCTOR__FILL(row->lift, "ulimit -l unlimited");
    DOCTOR__FILL(row->also, "docker run --ulimit memlock=-1, LimitMEMLOCK=infinity");
    if (!counts) {
        return;
    }
    row->allows = host->ring.locked_bytes > 0
                      ? doctor__shares(host->locked.soft, 0, host->ring.locked_bytes)
                      : DOCTOR_UNKNOWN;
    if (host->ring.halved > 0 ||
        (doctor__is_known(row->allows) && row->allows < report->plan.carriers)) {
        doctor__complain(row, DOCTOR_WARNING,
                         "%u rings do not fit and are made smaller, so that bursts wait longer",
                         report->plan.carriers);
    }
}

/* ---------------------------------------------------------------- files */

/* connections_of - of a descriptor limit, as the server counts. */
static uint64_t connections_of(const struct doctor_plan *plan, uint64_t descriptors)
{
    if (!doctor__is_known(descriptors)) {
        return descriptors;
    }
    return limits_connections(descriptors, limits_needed(plan->listeners, plan->carriers));
}

void doctor__judge_descriptors(struct doctor_report *report, const struct doctor_host *host)
{
    struct doctor_row *row =
        doctor__add_row(report, "descriptors", "file descriptors", DOCTOR_CONNECTIONS);
    uint64_t hard = host->descriptors.hard;
    uint64_t most = doctor__is_known(host->nr_open) ? host->nr_open : DESCRIPTORS_ADVISED;
    char number[32];
    doctor__add_fact(row, "soft", DOCTOR_COUNT, host->descriptors.soft);
    doctor__add_fact(row, "hard", DOCTOR_COUNT, hard);
    doctor__add_fact(row, "fs.nr_open", DOCTOR_COUNT, host->nr_open);
    row->allows = connections_of(&report->plan, hard);
    doctor__number(number, sizeof(number), DOCTOR_COUNT, hard);
    DOCTOR__FILL(row->limit, "hard limit %s", number);
    if (doctor__is_known(hard) && hard < most) {
        DOCTOR__FILL(row->lift, "ulimit -Hn %" PRIu64, most);
        DOCTOR__FILL(row->also,
                     "as root; docker run --ulimit nofile=%" PRIu64 ", LimitNOFILE=%" PRIu64, most,
                     most);
    } else {
        DOCTOR__FILL(row->lift, "sysctl -w fs.nr_open=%" PRIu64, 2 * most);
        DOCTOR__FILL(row->also, "then ulimit -Hn %" PRIu64, 2 * most);
    }
    if (row->allows == 0) {
        doctor__complain(row, DOCTOR_FAILURE, "too few to start with %u carriers",
                         report->plan.carriers);
    }
}

void doctor__judge_files(struct doctor_report *report, const struct doctor_host *host)
{
    struct doctor_row *row =
        doctor__add_row(report, "host_files", "host's files", DOCTOR_CONNECTIONS);
    doctor__add_fact(row, "fs.file-max", DOCTOR_COUNT, host->file_max);
    doctor__add_fact(row, "open", DOCTOR_COUNT, host->files_open);
    row->allows = doctor__shares(host->file_max, host->files_open, 1);
    DOCTOR__FILL(row->limit, "fs.file-max");
    DOCTOR__FILL(row->lift, "sysctl -w fs.file-max=%" PRIu64, UINT64_C(9223372036854775807));
}

void doctor__judge_configuration(struct doctor_report *report)
{
    struct doctor_row *row =
        doctor__add_row(report, "max_connections", "max-connections", DOCTOR_CONNECTIONS);
    uint64_t asked = report->plan.max_connections;
    uint64_t descriptors = connections_of(&report->plan, report->host->descriptors.hard);
    if (asked > 0) {
        doctor__add_fact(row, "max", DOCTOR_COUNT, asked);
    } else {
        doctor__add_text(row, "max", "as descriptors allow");
    }
    row->allows = asked > 0 ? asked : LIMITS_CONNECTIONS_MAX;
    DOCTOR__FILL(row->limit, "server.tomcat.max-connections");
    DOCTOR__FILL(row->lift, "--server.tomcat.max-connections=%u", LIMITS_CONNECTIONS_MAX);
    if (asked > 0 && doctor__is_known(descriptors) && asked > descriptors) {
        doctor__complain(
            row, DOCTOR_WARNING,
            "server.tomcat.max-connections=%" PRIu64 " is more than the descriptors allow", asked);
    }
}

/* ---------------------------------------------------------------- memory */

void doctor__judge_mappings(struct doctor_report *report, const struct doctor_host *host)
{
    struct doctor_row *row = doctor__add_row(report, "mappings", "mappings", DOCTOR_FIBERS);
    doctor__add_fact(row, "vm.max_map_count", DOCTOR_COUNT, host->mappings_max);
    doctor__add_fact(row, "in use", DOCTOR_COUNT, host->mappings);
    doctor__add_fact(row, "a guard", DOCTOR_COUNT, host->guard_markers ? 0 : MAPPINGS_PER_GUARD);
    DOCTOR__FILL(row->limit, "vm.max_map_count");
    DOCTOR__FILL(row->lift, "sysctl -w vm.max_map_count=2097152");
    if (!host->guard_markers) {
        uint64_t used = doctor__is_known(host->mappings) ? host->mappings : 0;
        row->allows =
            doctor__shares(host->mappings_max, used + MAPPINGS_RESERVE, MAPPINGS_PER_GUARD);
        doctor__complain(row, DOCTOR_WARNING,
                         "no guard markers before Linux 6.13: two mappings guard each stack");
    }
}

void doctor__judge_memory(struct doctor_report *report, const struct doctor_host *host)
{
    struct doctor_row *row = doctor__add_row(report, "memory", "memory", DOCTOR_CONNECTIONS);
    doctor__add_fact(row, "available", DOCTOR_BYTES, host->memory_available);
    doctor__add_fact(row, "total", DOCTOR_BYTES, host->memory_total);
    row->allows =
        doctor__shares(host->memory_available, 0, DOCTOR_FIBER_BYTES + DOCTOR_SOCKET_BYTES);
    DOCTOR__FILL(row->limit, "available memory");
    DOCTOR__FILL(row->lift, "add memory");
    DOCTOR__FILL(row->also, "idle: 4.25 KiB for the fiber, 4.5 KiB for the kernel's socket");

    row = doctor__add_row(report, "cgroup_memory", "cgroup memory", DOCTOR_CONNECTIONS);
    doctor__add_fact(row, "memory.max", DOCTOR_BYTES, host->group_memory_max);
    if (doctor__is_known(host->group_memory_max)) {
        doctor__add_fact(row, "left", DOCTOR_BYTES, host->group_memory_left);
    }
    row->allows =
        doctor__shares(host->group_memory_left, 0, DOCTOR_FIBER_BYTES + DOCTOR_SOCKET_BYTES);
    DOCTOR__FILL(row->limit, "the cgroup's memory.max");
    DOCTOR__FILL(row->lift, "docker run --memory=4g");
    DOCTOR__FILL(row->also, "MemoryMax= in the unit");
}

void doctor__judge_address_space(struct doctor_report *report, const struct doctor_host *host)
{
    struct doctor_row *row =
        doctor__add_row(report, "address_space", "address space", DOCTOR_FIBERS);
    uint64_t stack_bytes = report->plan.stack_bytes;
    uint64_t own = doctor__shares(host->address.soft, host->address_used, stack_bytes);
    bool strict = host->overcommit == 2;
    uint64_t committed =
        strict ? doctor__shares(host->commit_limit, host->committed, stack_bytes) : DOCTOR_NO_LIMIT;
    doctor__add_fact(row, "soft", DOCTOR_BYTES, host->address.soft);
    doctor__add_fact(row, "vm.overcommit_memory", DOCTOR_COUNT, host->overcommit);
    if (strict) {
        doctor__add_fact(row, "CommitLimit", DOCTOR_BYTES, host->commit_limit);
        doctor__add_fact(row, "committed", DOCTOR_BYTES, host->committed);
    }
    row->allows = doctor__lower_of(own, committed);
    if (strict && committed <= own) {
        DOCTOR__FILL(row->limit, "strict overcommit");
        DOCTOR__FILL(row->lift, "sysctl -w vm.overcommit_memory=0");
        DOCTOR__FILL(row->also, "stacks are reserved whole, and used by the page");
    } else {
        DOCTOR__FILL(row->limit, "ulimit -v");
        DOCTOR__FILL(row->lift, "ulimit -v unlimited");
        DOCTOR__FILL(row->also, "LimitAS=infinity in the unit");
    }
}
