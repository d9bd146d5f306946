/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process.c - start what the configuration asks for, or say in one line why not.
 *
 * Called by run.c on the main thread.
 */
#include "app/process.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/limits.h"
#include "app/run.h"
#include "app/servers.h"
#include "base/log.h"
#include "fiber/overflow.h"
#include "ring/monitor.h"
#include "ring/sys.h"

#define OFFLOAD_THREADS 4

int process_refuse(int code, const char *format, ...)
{
    char line[512];
    va_list values;

    va_start(values, format);
    int length = vsnprintf(line, sizeof(line) - 1, format, values);
    va_end(values);
    if (length < 0) {
        return code;
    }
    size_t end = (size_t)length < sizeof(line) - 1 ? (size_t)length : sizeof(line) - 2;
    line[end] = '\n';
    (void)sys_write_all(2, "ringspun: ", 10);
    (void)sys_write_all(2, line, end + 1);
    return code;
}

/* size_limits - how many connections may live, from the descriptor limit. Returns an exit code. */
static int size_limits(struct process *process, unsigned carrier_count)
{
    const struct config *config = process->config;
    uint64_t before, limit = sys_descriptors_raise(&before);
    uint64_t needed = limits_needed(servers_wanted(config), carrier_count);

    if (limit < needed) {
        return process_refuse(RUN_FAILED,
                              "too few file descriptors: the limit is %" PRIu64
                              ", %u carriers need %" PRIu64
                              "; raise it with 'ulimit -n 1024' (64 are enough to start with two "
                              "carriers)",
                              limit, carrier_count, needed);
    }
    if (limit != before) {
        log_info("app.run", "file descriptor limit raised from %" PRIu64 " to %" PRIu64, before,
                 limit);
    }
    uint64_t connections = limits_connections(limit, needed);
    process->total.max = (unsigned)connections;
    if (config->max_connections > 0) {
        if ((uint64_t)config->max_connections > connections) {
            log_warn("app.run",
                     "server.tomcat.max-connections=%d is more than the descriptor limit allows: "
                     "%" PRIu64 " are served; raise the limit ('ulimit -n', LimitNOFILE=)",
                     config->max_connections, connections);
        } else {
            process->total.max = (unsigned)config->max_connections;
        }
    }
    return 0;
}

void process_stop_carriers(struct process *process)
{
    for (unsigned i = 0; i < process->carrier_count; i++) {
        carrier_stop(&process->carriers[i]);
    }
    for (unsigned i = 0; i < process->carrier_count; i++) {
        carrier_join(&process->carriers[i]);
    }
}

void process_free_carriers(struct process *process)
{
    for (unsigned i = 0; i < process->carrier_count; i++) {
        carrier_free(&process->carriers[i]);
    }
    free(process->carriers);
}

/* The kernel takes no completion queue that is shorter than the submission queue. */
static struct ring_setup ring_of(const struct config *config)
{
    unsigned submissions = (unsigned)config->ring_entries;
    unsigned completions = (unsigned)config->completion_entries;
    return (struct ring_setup){
        .sq_entries = submissions < completions ? submissions : completions,
        .cq_entries = completions,
    };
}

static int start_carriers(struct process *process, unsigned count)
{
    process->carriers = aligned_alloc(64, count * sizeof(struct carrier));
    if (process->carriers == NULL) {
        return process_refuse(RUN_FAILED, "no memory for %u carriers", count);
    }
    while (process->carrier_count < count) {
        struct carrier_setup setup = {.number = process->carrier_count,
                                      .stack_bytes = process->config->stack_bytes,
                                      .ring = ring_of(process->config)};
        int result = carrier_start(&process->carriers[process->carrier_count], &setup);
        if (result < 0) {
            char why[384];
            bool refused =
                result == -EPERM || result == -EACCES || result == -ENOSYS || result == -EINVAL;
            if (result == -EAGAIN) {
                snprintf(why, sizeof(why),
                         "no thread for carrier-%u: raise the limit of processes and threads "
                         "('ulimit -u', TasksMax=, --pids-limit), or that of memory",
                         process->carrier_count);
            } else {
                ring_refusal(result, why, sizeof(why));
            }
            process_stop_carriers(process);
            process_free_carriers(process);
            return process_refuse(refused ? RUN_NO_IO_URING : RUN_FAILED, "%s", why);
        }
        process->carrier_count++;
    }
    unsigned halved = 0;
    for (unsigned i = 0; i < count; i++) {
        halved += process->carriers[i].ring.halved > 0;
    }
    if (halved > 0) {
        log_warn("app.run",
                 "%u of %u rings made smaller for want of locked memory: raise it with 'ulimit -l "
                 "unlimited'",
                 halved, count);
    }
    return 0;
}

static int open_remote_calls(struct process *process)
{
    const struct config *config = process->config;
    char url[96];
    const char *address = config->server_address;
    int port = servers_remote_port(process);

    if (address == NULL || strcmp(address, "::") == 0 || strcmp(address, "0.0.0.0") == 0) {
        address = "127.0.0.1";
    }
    snprintf(url, sizeof(url), strchr(address, ':') != NULL ? "http://[%s]:%d" : "http://%s:%d",
             address, port);
    struct client_pool_setup setup = {
        .url = config->remote_url != NULL ? config->remote_url : url,
        .bound = (unsigned)config->remote_pool_max,
        .offload = &process->offload,
        .carriers = process->carriers,
        .carrier_count = process->carrier_count,
    };
    int result = client_pool_init(&process->remote_calls, &setup);
    if (result < 0) {
        return process_refuse(RUN_FAILED, "cannot call remote.url %s: %s", setup.url,
                              strerrordesc_np(-result));
    }
    process->app.remote = &process->remote_calls;
    process->app.fanout_calls_max = limits_fanout_calls(process->total.max);
    process->app.carriers = process->carriers;
    process->app.carrier_count = process->carrier_count;
    process->app.demo_pinned = config->demo_pinned;
    return 0;
}

static int open_directory(struct process *process)
{
    struct directory_setup setup = {
        .entries_max = (uint64_t)process->config->directory_entries_max,
        .bytes_max = process->config->directory_bytes_max,
    };
    sys_random(&setup.hash_key, sizeof(setup.hash_key));
    process->app.directory = &process->directory;
    return directory_init(&process->directory, &setup);
}

int process_start(struct process *process)
{
    const struct config *config = process->config;
    unsigned count = config->carriers > 0 ? (unsigned)config->carriers : sys_processors();
    if (count > CARRIERS_MAX) {
        count = CARRIERS_MAX;
    }
    int code = size_limits(process, count);
    if (code != 0) {
        return code;
    }
    if (overflow_install_process() < 0 ||
        pool_init(&process->offload, "offload-", OFFLOAD_THREADS) < 0) {
        return process_refuse(RUN_FAILED, "no memory to start");
    }
    if (open_directory(process) < 0) {
        pool_fini(&process->offload);
        return process_refuse(RUN_FAILED, "no memory to start");
    }
    code = start_carriers(process, count);
    if (code != 0) {
        goto undo_directory;
    }
    code = servers_open(process);
    if (code != 0) {
        goto undo_carriers;
    }
    code = open_remote_calls(process);
    if (code != 0) {
        goto undo_servers;
    }
    struct watchdog_setup watchdog = {.carriers = process->carriers,
                                      .carrier_count = process->carrier_count,
                                      .interval_ns = process->systemd.watchdog_ns,
                                      .wake_fd = process->app.wake_fd};
    if (watchdog_init(&process->watchdog, &watchdog) < 0) {
        code = process_refuse(RUN_FAILED, "no memory to start");
        goto undo_calls;
    }
    if (monitor_start(process->carriers, count, config->pinned_threshold_ns) < 0) {
        code = process_refuse(RUN_FAILED, "no thread for the monitor");
        goto undo_watchdog;
    }
    return 0;

undo_watchdog:
    watchdog_fini(&process->watchdog);
undo_calls:
    client_pool_fini(&process->remote_calls);
undo_servers:
    servers_close(process);
undo_carriers:
    process_stop_carriers(process);
    process_free_carriers(process);
undo_directory:
    directory_fini(&process->directory);
    pool_fini(&process->offload);
    return code;
}
