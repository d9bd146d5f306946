/* SPDX-License-Identifier: Apache-2.0 */
/*
 * systemd.c - read the manager's variables, adopt its sockets, tell it how we are.
 */
#include "app/systemd.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/time.h"
#include "ring/sys.h"
#include "ring/sys_systemd.h"

/* The first descriptor that is passed: SD_LISTEN_FDS_START. */
#define FIRST_FD 3

/* A longer watchdog interval is as good as this one, and deadlines do not overflow. */
#define WATCHDOG_US_MAX (UINT64_C(365) * 24 * 3600 * 1000000)

enum variable {
    NOTIFY_SOCKET,
    WATCHDOG_USEC,
    WATCHDOG_PID,
    LISTEN_PID,
    LISTEN_FDS,
    LISTEN_FDNAMES,
    VARIABLES
};

static const char *const variable_names[VARIABLES] = {
    "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"};

/* take_variables - the values of ours, NULL where unset; of one given twice the first, as getenv(3) has it. */
static void take_variables(char **environment, const char *values[VARIABLES])
{
    char **keep = environment;

    for (int v = 0; v < VARIABLES; v++) {
        values[v] = NULL;
    }
    for (char **at = environment; *at != NULL; at++) {
        const char *equals = strchr(*at, '=');
        size_t length = equals != NULL ? (size_t)(equals - *at) : 0;
        int v = 0;
        while (v < VARIABLES && (strlen(variable_names[v]) != length ||
                                 memcmp(variable_names[v], *at, length) != 0)) {
            v++;
        }
        if (v == VARIABLES) {
            *keep++ = *at;
        } else if (values[v] == NULL) {
            values[v] = equals + 1;
        }
    }
    *keep = NULL;
}

static void complain(struct systemd *systemd, enum variable variable, const char *problem)
{
    if (systemd->complaint_count < SYSTEMD_COMPLAINTS_MAX) {
        snprintf(systemd->complaints[systemd->complaint_count++], sizeof(systemd->complaints[0]),
                 "%s is ignored: %s", variable_names[variable], problem);
    }
}

/* is_for_us - does the variable name our process? *valid: is it a number at all? */
static bool is_for_us(const char *value, int process_id, bool *valid)
{
    uint64_t number;
    *valid = slice_to_u64(slice_of(value), &number) == 0 && number > 0 && number <= INT32_MAX;
    return *valid && number == (uint64_t)process_id;
}

static void read_notify(struct systemd *systemd, const char *value)
{
    if (value == NULL) {
        return;
    }
    size_t length = strlen(value);
    if ((value[0] != '/' && value[0] != '@') || length < 2 || length > SYS_LOCAL_NAME_MAX) {
        complain(systemd, NOTIFY_SOCKET, "neither the path of a socket nor an abstract name (@…)");
        return;
    }
    systemd->notify_socket = value;
}

static void read_watchdog(struct systemd *systemd, const char *microseconds, const char *process,
                          int process_id)
{
    uint64_t us;
    bool valid = true;

    if (microseconds == NULL) {
        return;
    }
    if (process != NULL && !is_for_us(process, process_id, &valid)) {
        if (!valid) {
            complain(systemd, WATCHDOG_PID, "no process id, and no watchdog is fed");
        }
        return;
    }
    if (slice_to_u64(slice_of(microseconds), &us) < 0 || us == 0) {
        complain(systemd, WATCHDOG_USEC, "no number of microseconds, and no watchdog is fed");
        return;
    }
    if (systemd->notify_socket != NULL) {
        systemd->watchdog_ns = (us < WATCHDOG_US_MAX ? us : WATCHDOG_US_MAX) * 1000;
    }
}

static void name_listeners(struct systemd *systemd, const char *names)
{
    for (unsigned i = 0; i < systemd->listener_count && names != NULL; i++) {
        const char *colon = strchr(names, ':');
        size_t length = colon != NULL ? (size_t)(colon - names) : strlen(names);
        systemd->listeners[i].name = (struct slice){.at = names, .length = length};
        names = colon != NULL ? colon + 1 : NULL;
    }
}

static void read_listeners(struct systemd *systemd, const char *const values[VARIABLES],
                           int process_id)
{
    uint64_t count;
    bool valid;

    if (values[LISTEN_FDS] == NULL || values[LISTEN_PID] == NULL) {
        return;
    }
    if (!is_for_us(values[LISTEN_PID], process_id, &valid)) {
        if (!valid) {
            complain(systemd, LISTEN_PID, "no process id, and no socket is taken over");
        }
        return;
    }
    if (slice_to_u64(slice_of(values[LISTEN_FDS]), &count) < 0 || count > SYSTEMD_LISTENERS_MAX) {
        complain(systemd, LISTEN_FDS, "no number from 0 to 64, and no socket is taken over");
        return;
    }
    systemd->listener_count = (unsigned)count;
    for (unsigned i = 0; i < systemd->listener_count; i++) {
        systemd->listeners[i].fd = FIRST_FD + (int)i;
        systemd->listeners[i].name = SLICE("");
    }
    name_listeners(systemd, values[LISTEN_FDNAMES]);
}

void systemd_read(struct systemd *out, char **environment, int process_id)
{
    const char *values[VARIABLES];

    memset(out, 0, sizeof(*out));
    out->notify_fd = -1;
    take_variables(environment, values);
    read_notify(out, values[NOTIFY_SOCKET]);
    read_watchdog(out, values[WATCHDOG_USEC], values[WATCHDOG_PID], process_id);
    read_listeners(out, values, process_id);
}

int systemd_adopt(struct systemd *systemd, char *why, size_t size)
{
    for (unsigned i = 0; i < systemd->listener_count; i++) {
        struct systemd_listener *listener = &systemd->listeners[i];
        const char *problem;
        switch (sys_listener_adopt(listener->fd, &listener->port)) {
        case 0:
            continue;
        case -EBADF:
            problem = "is not open";
            break;
        case -EINVAL:
            problem = "is a TCP socket that does not listen (Accept=yes? it must be no)";
            break;
        default:
            problem = "is no TCP socket (only ListenStream=PORT or ADDRESS:PORT serves)";
            break;
        }
        snprintf(why, size, "descriptor %d (%.*s) of LISTEN_FDS=%u %s: mend ringspun.socket",
                 listener->fd, (int)(listener->name.length < 64 ? listener->name.length : 64),
                 listener->name.at, systemd->listener_count, problem);
        return -EINVAL;
    }
    return 0;
}

struct systemd_listener *systemd_claim(struct systemd *systemd, const char *name, int port)
{
    for (unsigned i = 0; i < systemd->listener_count; i++) {
        struct systemd_listener *listener = &systemd->listeners[i];
        if (!listener->claimed && (name == NULL || slice_equal(listener->name, slice_of(name))) &&
            (port < 0 || listener->port == port)) {
            listener->claimed = true;
            return listener;
        }
    }
    return NULL;
}

const struct systemd_listener *systemd_unclaimed(const struct systemd *systemd)
{
    for (unsigned i = 0; i < systemd->listener_count; i++) {
        if (!systemd->listeners[i].claimed) {
            return &systemd->listeners[i];
        }
    }
    return NULL;
}

static void notify_failed(struct systemd *systemd, int error)
{
    if (!systemd->notify_failed) {
        systemd->notify_failed = true;
        log_warn("app.systemd", "cannot tell the service manager at %s: %s", systemd->notify_socket,
                 strerrordesc_np(-error));
    }
}

void systemd_open(struct systemd *systemd)
{
    for (unsigned i = 0; i < systemd->complaint_count; i++) {
        log_warn("app.systemd", "%s", systemd->complaints[i]);
    }
    if (systemd->notify_socket == NULL) {
        return;
    }
    systemd->notify_fd = sys_notify_open();
    if (systemd->notify_fd < 0) {
        notify_failed(systemd, systemd->notify_fd);
    }
}

static PRINTF_LIKE(2, 3) void notify(struct systemd *systemd, const char *format, ...)
{
    char text[512];
    va_list values;

    if (systemd->notify_fd < 0) {
        return;
    }
    va_start(values, format);
    vsnprintf(text, sizeof(text), format, values);
    va_end(values);
    int result = sys_notify_send(systemd->notify_fd, systemd->notify_socket, text);
    if (result < 0) {
        notify_failed(systemd, result);
    }
}

void systemd_ready(struct systemd *systemd, const char *status)
{
    notify(systemd, "READY=1\nSTATUS=%s\nMAINPID=%d", status, sys_process_id());
}

void systemd_status(struct systemd *systemd, const char *status)
{
    notify(systemd, "STATUS=%s", status);
}

void systemd_feed(struct systemd *systemd)
{
    notify(systemd, "WATCHDOG=1");
}

void systemd_stopping(struct systemd *systemd, uint64_t within_ns)
{
    notify(systemd, "STOPPING=1\nEXTEND_TIMEOUT_USEC=%" PRIu64, within_ns / 1000);
}

void systemd_close(struct systemd *systemd)
{
    if (systemd->notify_fd >= 0) {
        sys_close(systemd->notify_fd);
        systemd->notify_fd = -1;
    }
}
