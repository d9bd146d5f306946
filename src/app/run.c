/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.c - have everything started, wait for signals, drain, stop.
 *
 * Called by main with a checked configuration. Runs on the main thread, which is
 * no carrier: it sleeps on a signal descriptor and an eventfd.
 */
#include "app/run.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>

#include "app/dump.h"
#include "app/hold.h"
#include "app/process.h"
#include "app/servers.h"
#include "base/log.h"
#include "ring/monitor.h"
#include "ring/sys.h"
#include "ring/sys_systemd.h"

/* Beyond what the configuration gives a shutdown: ending threads, giving memory back. */
#define STOP_SLACK_NS (10 * NS_PER_S)

static void announce_start(struct process *process, uint64_t began_ns)
{
    const struct config *config = process->config;
    if (config->virtual_threads && config->threads_max_given) {
        log_info("app.run",
                 "server.tomcat.threads.max=%d has no effect with "
                 "spring.threads.virtual.enabled=true",
                 config->threads_max);
    }
    servers_start(process);
    uint64_t took_ms = (sys_clock_ns() - began_ns) / NS_PER_MS;
    uint64_t age_ms = sys_process_age_ns() / NS_PER_MS;
    if (age_ms < took_ms) {
        age_ms = took_ms; /* the kernel counts it in steps of 10 ms */
    }
    log_info("ringspun",
             "Started ringspun in %" PRIu64 ".%03" PRIu64 " seconds (process running for %" PRIu64
             ".%03" PRIu64 ")",
             took_ms / 1000, took_ms % 1000, age_ms / 1000, age_ms % 1000);
}

/* tell_ready - to the service manager, when everything accepts. */
static void tell_ready(struct process *process)
{
    char status[192];
    servers_describe(process, status, sizeof(status));
    systemd_ready(&process->systemd, status);
}

static void begin_drain(struct process *process, uint64_t now_ns)
{
    log_info("ringspun", "Commencing graceful shutdown. Waiting for active requests to complete");
    atomic_store(&process->app.life, LIFE_DRAINING);
    process->phase = PHASE_DRAINING_FRONT;
    process->until_ns = now_ns + process->config->shutdown_timeout_ns;
    servers_drain(process, SERVER_FRONT);
    systemd_status(&process->systemd, "Draining: waiting for active requests to complete");
}

/* advance - go on to the next phase as far as the present one is over. */
static void advance(struct process *process)
{
    uint64_t now_ns = sys_clock_ns();
    if (process->phase == PHASE_LEAVING && now_ns >= process->until_ns) {
        begin_drain(process, now_ns);
    }
    if (process->phase == PHASE_DRAINING_FRONT && servers_are_drained(process, SERVER_FRONT)) {
        /* Nobody calls the remote any more: its idle connections end, then it does. */
        client_pool_close(&process->remote_calls);
        process->phase = PHASE_DRAINING_REMOTE;
        servers_drain(process, SERVER_REMOTE);
    }
    if (process->phase == PHASE_DRAINING_REMOTE && servers_are_drained(process, SERVER_REMOTE)) {
        process->phase = PHASE_DRAINED;
    }
    if (process->phase == PHASE_DRAINED) {
        log_info("ringspun", "Graceful shutdown complete");
    } else if (process->phase >= PHASE_DRAINING_FRONT && now_ns >= process->until_ns) {
        log_warn("ringspun", "Graceful shutdown aborted with one or more requests still active");
        sys_exit_now(RUN_ENDED);
    }
}

static void on_end_signal(struct process *process)
{
    const struct config *config = process->config;
    if (process->phase != PHASE_SERVING) {
        log_warn("ringspun", "Second signal: ending at once");
        sys_exit_now(RUN_ENDED);
    }
    systemd_stopping(&process->systemd,
                     config->shutdown_delay_ns + config->shutdown_timeout_ns + STOP_SLACK_NS);
    if (config->shutdown == CONFIG_IMMEDIATE) {
        sys_exit_now(RUN_ENDED);
    }
    atomic_store(&process->app.life, LIFE_LEAVING);
    process->phase = PHASE_LEAVING;
    process->until_ns = sys_clock_ns() + config->shutdown_delay_ns;
    if (config->shutdown_delay_ns > 0) {
        log_info("ringspun", "Shutting down in %" PRIu64 " ms; readiness says OUT_OF_SERVICE",
                 config->shutdown_delay_ns / NS_PER_MS);
        systemd_status(&process->systemd, "Serving until a load balancer has turned away");
    }
}

static uint64_t earlier(uint64_t a_ns, uint64_t b_ns)
{
    return a_ns == 0 || (b_ns != 0 && b_ns < a_ns) ? b_ns : a_ns;
}

/* wake_ns - when the main thread has something to do, whatever happens; 0: nothing. */
static uint64_t wake_ns(const struct process *process)
{
    uint64_t debts_ns = earlier(watchdog_deadline_ns(&process->watchdog), process->stuck_at_ns);
    return earlier(process->until_ns, debts_ns);
}

static void look_after(struct process *process)
{
    uint64_t now_ns = sys_clock_ns();
    if (watchdog_look(&process->watchdog, now_ns)) {
        systemd_feed(&process->systemd);
    }
    if (process->stuck_at_ns != 0 && now_ns >= process->stuck_at_ns) {
        process->stuck_at_ns = 0;
        hold_carrier(&process->carriers[process->carrier_count - 1]);
    }
}

static void serve(struct process *process)
{
    look_after(process);
    while (process->phase != PHASE_DRAINED) {
        int ready = sys_wait(process->signal_fd, process->app.wake_fd, wake_ns(process));
        if ((ready & 2) != 0) {
            sys_eventfd_clear(process->app.wake_fd);
        }
        int signal;
        while ((ready & 1) != 0 && (signal = sys_signals_next(process->signal_fd)) != 0) {
            if (signal == SIGQUIT) {
                dump_fibers(process->carriers, process->carrier_count);
            } else {
                on_end_signal(process);
            }
        }
        if (servers_failed(process)) {
            sys_exit_now(process_refuse(RUN_FAILED, "no memory to start"));
        }
        advance(process);
        look_after(process);
    }
}

static void stop(struct process *process)
{
    if (pool_is_busy(&process->offload)) {
        sys_exit_now(RUN_ENDED); /* a name is being resolved for nobody: do not wait for it */
    }
    monitor_stop();
    process_stop_carriers(process);
    watchdog_fini(&process->watchdog);
    systemd_close(&process->systemd);
    servers_close(process);
    client_pool_fini(&process->remote_calls);
    directory_fini(&process->directory);
    pool_fini(&process->offload);
    process_free_carriers(process);
    sys_close(process->signal_fd);
    sys_close(process->app.wake_fd);
}

int run(const struct config *config, char **environment)
{
    struct process *process = calloc(1, sizeof(*process));
    uint64_t began_ns = sys_clock_ns();
    char why[256];

    if (process == NULL) {
        return process_refuse(RUN_FAILED, "no memory to start");
    }
    process->config = config;
    systemd_read(&process->systemd, environment, sys_process_id());
    if (systemd_adopt(&process->systemd, why, sizeof(why)) < 0) {
        free(process);
        return process_refuse(CONFIG_EXIT_CONFIG, "%s", why);
    }
    systemd_open(&process->systemd);
    process->app.started_ns = began_ns;
    process->signal_fd = sys_signals_open();
    process->app.wake_fd = sys_eventfd();
    if (process->signal_fd < 0 || process->app.wake_fd < 0) {
        free(process);
        return process_refuse(RUN_FAILED, "too few file descriptors: raise the limit with 'ulimit "
                                          "-n 1024'");
    }
    int code = process_start(process);
    if (code == 0) {
        announce_start(process, began_ns);
        tell_ready(process);
        if (config->stuck_carrier_after_ns > 0) {
            process->stuck_at_ns = sys_clock_ns() + config->stuck_carrier_after_ns;
        }
        serve(process);
        stop(process);
    }
    free(process);
    return code;
}
