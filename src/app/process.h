/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process.h - everything that runs in this process, for process.c, which starts
 * it, and run.c, which waits for signals and ends it.
 */
#ifndef APP_PROCESS_H
#define APP_PROCESS_H

#include <stdint.h>

#include "app/app.h"
#include "app/config.h"
#include "app/directory.h"
#include "app/server.h"
#include "app/systemd.h"
#include "app/watchdog.h"
#include "base/attr.h"
#include "http/client_pool.h"
#include "io/listener.h"
#include "io/pool.h"
#include "ring/carrier.h"

#define SERVERS_MAX 8

enum phase {
    PHASE_SERVING,
    PHASE_LEAVING,         /* readiness says no, all is served */
    PHASE_DRAINING_FRONT,  /* all listeners closed but the remote's */
    PHASE_DRAINING_REMOTE, /* and that one */
    PHASE_DRAINED
};

struct process {
    const struct config *config;
    struct app app;
    struct systemd systemd;
    struct carrier *carriers;
    unsigned carrier_count; /* running */
    struct connection_limit total;
    struct connection_limit front; /* of the servers in front of the remote together */
    struct pool offload;
    struct client_pool remote_calls;
    struct directory directory;
    struct server servers[SERVERS_MAX]; /* see servers.h */
    unsigned server_count;              /* opened */
    int signal_fd;
    enum phase phase;
    uint64_t until_ns; /* of the phase; 0: none */
    struct watchdog watchdog;
    uint64_t stuck_at_ns; /* ringspun.debug.stuck-carrier-after; 0: never, or done */
};

/*
 * process_start - carriers, ports, calls to the remote, monitor; nothing is accepted yet.
 *
 * @process  zeroed but for config, systemd, app.started_ns, app.wake_fd and signal_fd
 *
 * Returns  0; an exit code (enum run_exit) after one line on stderr: what was
 *          started by then has been stopped
 */
int process_start(struct process *process) WARN_UNUSED;

/* process_refuse - one line on stderr that says why there is no start. Returns code. */
int process_refuse(int code, const char *format, ...) PRINTF_LIKE(2, 3);

/* process_stop_carriers - end and join them; process_free_carriers - once the pools' threads, which post to them, have ended too. */
void process_stop_carriers(struct process *process);
void process_free_carriers(struct process *process);

#endif
