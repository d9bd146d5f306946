/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor.h - `ringspun doctor`: what this host allows, and which limit is met first.
 *
 *   doctor_host_read -> struct doctor_host -> doctor_judge -> struct doctor_report
 *       facts, from the kernel               pure                -> doctor_table, doctor_json
 *
 * A row is a warning when the server runs, but
 *  - fewer than DOCTOR_FEW connections or fibers fit,
 *  - net.core.somaxconn or, without SYN cookies, tcp_max_syn_backlog is below DOCTOR_BACKLOG,
 *  - fewer than DOCTOR_FEW local ports are left for calls to one address,
 *  - an old kernel makes it fall back: no guard markers, or a feature of io_uring is absent,
 *  - rings must be made smaller for want of locked memory,
 *  - carriers outnumber the processor time that the cgroup gives, or threads what it lets start,
 *  - server.tomcat.max-connections asks for more than fits.
 * What is hidden (a container that masks /proc/sys) is unknown, and no warning.
 */
#ifndef APP_DOCTOR_H
#define APP_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "app/config.h"
#include "base/attr.h"
#include "ring/ring_probe.h"
#include "ring/sys_host.h"

#define DOCTOR_FEW 10000u
#define DOCTOR_BACKLOG 4096u

/* An idle connection: its fiber's page and records (measured: 4.25 KiB), and the kernel's socket
 * (slabs: 4.5 KiB, to which the other end adds the same when it is on this host). */
#define DOCTOR_FIBER_BYTES 4352u
#define DOCTOR_SOCKET_BYTES 4608u

#define DOCTOR_NO_LIMIT UINT64_MAX
#define DOCTOR_UNKNOWN (UINT64_MAX - 1)

/* The facts; each number may be DOCTOR_NO_LIMIT or DOCTOR_UNKNOWN. */
struct doctor_host {
    char kernel[64];
    uint64_t io_uring_disabled; /* kernel.io_uring_disabled: 0, 1, 2 */
    uint64_t seccomp;           /* 0 none, 1 strict, 2 filter */
    struct ring_probe ring;
    char refusal[384];  /* why ring.error, by ring_refusal */
    bool guard_markers; /* MADV_GUARD_INSTALL works */

    struct sys_limit_pair descriptors;
    uint64_t nr_open;    /* the most that a hard limit can be */
    uint64_t file_max;   /* of the whole host */
    uint64_t files_open; /* by the whole host */
    struct sys_limit_pair locked;
    struct sys_limit_pair address;
    struct sys_limit_pair processes;
    uint64_t capabilities; /* effective ones, bit by bit */

    uint64_t mappings_max; /* vm.max_map_count */
    uint64_t mappings;     /* of this process, now */
    uint64_t address_used; /* bytes */
    uint64_t memory_available;
    uint64_t memory_total;
    uint64_t overcommit; /* vm.overcommit_memory: 2 is strict */
    uint64_t commit_limit;
    uint64_t committed;

    uint64_t group_memory_max; /* of the cgroup that leaves least, its parents included */
    uint64_t group_memory_left;
    uint64_t group_pids_max;
    uint64_t group_pids_left;
    uint64_t group_processor_milli; /* thousandths of a processor */

    uint64_t threads_max; /* kernel.threads-max */
    uint64_t somaxconn;
    uint64_t syn_backlog;
    uint64_t syn_cookies;
    uint64_t port_first, port_last; /* net.ipv4.ip_local_port_range */
    uint64_t conntrack_max;         /* unknown where the module is not loaded */
    uint64_t conntrack_count;
    uint64_t processors; /* that sched_getaffinity(2) allows, so cpuset too */
};

/* What the configuration asks of the host. */
struct doctor_plan {
    unsigned carriers;
    unsigned listeners;
    unsigned threads; /* of the platform pools; 0 with fibers */
    uint64_t stack_bytes;
    uint64_t max_connections; /* 0: from the descriptor limit */
};

enum doctor_grade { DOCTOR_FINE, DOCTOR_UNSEEN, DOCTOR_WARNING, DOCTOR_FAILURE };

/* What a row's limit counts. Connections and fibers bind: each connection is a fiber. */
enum doctor_unit {
    DOCTOR_CONNECTIONS,
    DOCTOR_FIBERS,
    DOCTOR_RINGS,
    DOCTOR_THREADS,
    DOCTOR_WAITING,  /* in a listener's queue */
    DOCTOR_CALLS,    /* to one address and port */
    DOCTOR_CARRIERS, /* that find a processor */
    DOCTOR_NOTHING   /* the row is no number */
};

enum doctor_kind { DOCTOR_COUNT, DOCTOR_BYTES, DOCTOR_MILLI, DOCTOR_TEXT };

/* One figure of a row, as it is read. */
struct doctor_fact {
    const char *name; /* static */
    enum doctor_kind kind;
    uint64_t number;
    const char *text; /* DOCTOR_TEXT: static or the host's */
};

#define DOCTOR_FACTS_MAX 5

struct doctor_row {
    const char *id;   /* for machines */
    const char *name; /* for people */
    enum doctor_grade grade;
    struct doctor_fact facts[DOCTOR_FACTS_MAX];
    size_t fact_count;
    enum doctor_unit unit;
    uint64_t allows;
    char limit[64]; /* what binds: "hard limit 20000" */
    char lift[96];  /* the command that lifts it */
    char also[96];  /* the same for services and containers, or what else is to be known */
    char why[384];  /* of a warning or failure */
};

#define DOCTOR_ROWS_MAX 20

struct doctor_report {
    const struct doctor_host *host; /* borrowed */
    struct doctor_plan plan;
    struct doctor_row rows[DOCTOR_ROWS_MAX];
    size_t row_count;
    size_t first_wall; /* index; row_count: nothing known binds */
    int exit_code;
};

/* doctor - collect, judge, print. Returns the exit code: 0 fine, 1 warnings, 69 io_uring is refused. */
int doctor(const struct config *config) WARN_UNUSED;

/*
 * doctor_host_read - ask the kernel. What cannot be read is DOCTOR_UNKNOWN.
 *
 * @read_file  sys_read_file but in tests
 */
void doctor_host_read(struct doctor_host *host, config_read_file *read_file);

/* doctor_judge - what each limit allows, what binds first, what is a warning. Pure. */
void doctor_judge(struct doctor_report *report, const struct doctor_host *host,
                  const struct doctor_plan *plan);

/*
 * doctor_table, doctor_json - the report as text: lines of at most 120 columns; one object.
 *
 * Returns  bytes that the whole needs, as snprintf(3)
 */
size_t doctor_table(char *dst, size_t capacity, const struct doctor_report *report, bool colour);
size_t doctor_json(char *dst, size_t capacity, const struct doctor_report *report);

/* doctor_summary - the last line: "first wall: …", without line end. */
size_t doctor_summary(char *dst, size_t capacity, const struct doctor_report *report);

#endif
