/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor_host.c - the facts that the doctor judges, from /proc, limits and probes.
 *
 * Called by doctor.c. A container may hide any of the files: what is not there, or is not
 * what it should be, is unknown.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/doctor_parts.h"
#include "fiber/guard.h"
#include "ring/ring.h"
#include "ring/sys.h"

#define FILE_BYTES_MAX (1ul << 20) /* of /proc/self/maps that is some 10 000 mappings */

char *doctor__read_text(config_read_file *read_file, const char *path)
{
    char *text = malloc(FILE_BYTES_MAX);
    if (text != NULL) {
        ssize_t length = read_file(path, text, FILE_BYTES_MAX - 1);
        text[length > 0 ? length : 0] = '\0';
    }
    return text;
}

/* parse_number - at the first digit, '-' or "max" behind white space. */
static uint64_t parse_number(const char *text)
{
    text += strspn(text, " \t");
    if (strncmp(text, "max", 3) == 0 || strncmp(text, "-1", 2) == 0) {
        return DOCTOR_NO_LIMIT;
    }
    if (*text < '0' || *text > '9') {
        return DOCTOR_UNKNOWN;
    }
    uint64_t number = strtoull(text, NULL, 10);
    /* Cgroups of version 1 say LONG_MAX, rounded to pages, for "none"; so does fs.file-max. */
    return number >= (uint64_t)INT64_MAX / 2 ? DOCTOR_NO_LIMIT : number;
}

uint64_t doctor__read_number(config_read_file *read_file, const char *path, unsigned n)
{
    char text[256];
    ssize_t length = read_file(path, text, sizeof(text) - 1);
    if (length < 0) {
        return DOCTOR_UNKNOWN;
    }
    text[length] = '\0';
    const char *at = text;
    for (; n > 0; n--) {
        at += strspn(at, " \t");
        at += strcspn(at, " \t");
    }
    return parse_number(at);
}

uint64_t doctor__find_number(const char *text, const char *key)
{
    size_t length = strlen(key);
    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, length) == 0) {
            return parse_number(line + length);
        }
    }
    return DOCTOR_UNKNOWN;
}

static uint64_t find_kib(const char *text, const char *key)
{
    uint64_t kib = doctor__find_number(text, key);
    return doctor__is_known(kib) ? kib * 1024 : kib;
}

static void read_memory(struct doctor_host *host, const char *text)
{
    host->memory_available = find_kib(text, "MemAvailable:");
    host->memory_total = find_kib(text, "MemTotal:");
    host->commit_limit = find_kib(text, "CommitLimit:");
    host->committed = find_kib(text, "Committed_AS:");
}

static void read_status(struct doctor_host *host, const char *text)
{
    host->seccomp = doctor__find_number(text, "Seccomp:");
    host->address_used = find_kib(text, "VmSize:");
    const char *effective = strstr(text, "\nCapEff:");
    host->capabilities =
        effective != NULL ? strtoull(effective + sizeof("\nCapEff:") - 1, NULL, 16) : 0;
}

static void count_mappings(struct doctor_host *host, const char *text)
{
    host->mappings = *text == '\0' ? DOCTOR_UNKNOWN : 0;
    for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++) {
        host->mappings++;
    }
}

/* read_file_with - hand the text of a file, or an empty one, to what takes it apart. */
static void read_file_with(struct doctor_host *host, config_read_file *read_file, const char *path,
                           void (*parse)(struct doctor_host *host, const char *text))
{
    char *text = doctor__read_text(read_file, path);
    parse(host, text != NULL ? text : "");
    free(text);
}

static void read_limit(enum sys_limit which, struct sys_limit_pair *pair)
{
    if (sys_limit_get(which, pair) < 0) {
        *pair = (struct sys_limit_pair){.soft = DOCTOR_UNKNOWN, .hard = DOCTOR_UNKNOWN};
    }
}

static void read_sysctls(struct doctor_host *host, config_read_file *read_file)
{
    const struct {
        uint64_t *number;
        const char *path;
        unsigned n;
    } sysctls[] = {
        {&host->io_uring_disabled, "/proc/sys/kernel/io_uring_disabled", 0},
        {&host->nr_open, "/proc/sys/fs/nr_open", 0},
        {&host->file_max, "/proc/sys/fs/file-max", 0},
        {&host->files_open, "/proc/sys/fs/file-nr", 0},
        {&host->mappings_max, "/proc/sys/vm/max_map_count", 0},
        {&host->overcommit, "/proc/sys/vm/overcommit_memory", 0},
        {&host->threads_max, "/proc/sys/kernel/threads-max", 0},
        {&host->somaxconn, "/proc/sys/net/core/somaxconn", 0},
        {&host->syn_backlog, "/proc/sys/net/ipv4/tcp_max_syn_backlog", 0},
        {&host->syn_cookies, "/proc/sys/net/ipv4/tcp_syncookies", 0},
        {&host->port_first, "/proc/sys/net/ipv4/ip_local_port_range", 0},
        {&host->port_last, "/proc/sys/net/ipv4/ip_local_port_range", 1},
        {&host->conntrack_max, "/proc/sys/net/netfilter/nf_conntrack_max", 0},
        {&host->conntrack_count, "/proc/sys/net/netfilter/nf_conntrack_count", 0},
    };
    for (size_t i = 0; i < sizeof(sysctls) / sizeof(sysctls[0]); i++) {
        *sysctls[i].number = doctor__read_number(read_file, sysctls[i].path, sysctls[i].n);
    }
}

void doctor_host_read(struct doctor_host *host, config_read_file *read_file)
{
    *host = (struct doctor_host){.processors = sys_processors()};
    sys_kernel_release(host->kernel, sizeof(host->kernel));
    read_limit(SYS_LIMIT_DESCRIPTORS, &host->descriptors);
    read_limit(SYS_LIMIT_LOCKED, &host->locked);
    read_limit(SYS_LIMIT_ADDRESS, &host->address);
    read_limit(SYS_LIMIT_PROCESSES, &host->processes);
    read_sysctls(host, read_file);
    read_file_with(host, read_file, "/proc/meminfo", read_memory);
    read_file_with(host, read_file, "/proc/self/status", read_status);
    read_file_with(host, read_file, "/proc/self/maps", count_mappings);
    doctor__group_read(host, read_file);
    host->guard_markers = guard_markers_work();
    ring_probe(&host->ring);
    if (host->ring.error < 0) {
        ring_refusal(host->ring.error, host->refusal, sizeof(host->refusal));
    }
    host->ring.capabilities[host->ring.capability_count++] =
        (struct ring_capability){.name = "GUARD_INSTALL",
                                 .since = "6.13",
                                 .role = RING_FALLBACK,
                                 .without = "stacks are guarded by mprotect, two mappings each",
                                 .present = host->guard_markers};
}
