/* SPDX-License-Identifier: Apache-2.0 */
/*
 * systemd.h - what a service manager and this process tell each other: sd_notify(3),
 * sd_watchdog_enabled(3), sd_listen_fds(3), without libsystemd.
 *
 *   NOTIFY_SOCKET                          READY=1, STATUS=…, STOPPING=1, WATCHDOG=1 go there
 *   WATCHDOG_USEC, WATCHDOG_PID            how often WATCHDOG=1 is expected
 *   LISTEN_PID, LISTEN_FDS, LISTEN_FDNAMES descriptors 3 and up are listening sockets
 *
 * The variables are read once and taken out of the environment, so that they
 * reach nobody else. Nonsense in them is told and otherwise as if unset. Without
 * a manager every function does nothing. Called by run.c and process.c on the
 * main thread.
 */
#ifndef APP_SYSTEMD_H
#define APP_SYSTEMD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/slice.h"

#define SYSTEMD_LISTENERS_MAX 64
#define SYSTEMD_COMPLAINTS_MAX 4

/* One descriptor that was passed. */
struct systemd_listener {
    int fd;
    struct slice name; /* of LISTEN_FDNAMES, borrowed from the environment; may be empty */
    uint16_t port;     /* once adopted */
    bool claimed;      /* some server listens on it */
};

struct systemd {
    const char *notify_socket; /* borrowed from the environment; NULL: nobody wants to be told */
    int notify_fd;             /* -1: not open */
    bool notify_failed;        /* and the log says so */
    uint64_t watchdog_ns;      /* a WATCHDOG=1 at least this often; 0: none is expected */
    struct systemd_listener listeners[SYSTEMD_LISTENERS_MAX];
    unsigned listener_count;
    char complaints[SYSTEMD_COMPLAINTS_MAX][128]; /* about the environment, a line each */
    unsigned complaint_count;
};

/*
 * systemd_read - take what is there for us out of the environment. Pure.
 *
 * @environment  as environ: NAME=value, ends with NULL; our six variables are
 *               removed from it. The strings must outlive out
 * @process_id   ours: values for another process are no nonsense, but not for us
 */
void systemd_read(struct systemd *out, char **environment, int process_id);

/*
 * systemd_adopt - look at what was passed, before this process opens anything:
 * a number without a descriptor could be one of our own by then.
 *
 * @why, @size  one line that says what is wrong
 *
 * Returns  0; -EINVAL some descriptor is no listening TCP socket
 */
int systemd_adopt(struct systemd *systemd, char *why, size_t size) WARN_UNUSED;

/*
 * systemd_claim - the passed socket for a server.
 *
 * @name  that the socket unit must have given it (FileDescriptorName=); NULL: any
 * @port  that it must listen on; -1: any
 *
 * Returns  NULL: none fits that nobody has claimed
 * Owner    its descriptor is the caller's
 */
struct systemd_listener *systemd_claim(struct systemd *systemd, const char *name, int port);

/* systemd_unclaimed - the first passed socket that no server wanted; NULL: none. */
const struct systemd_listener *systemd_unclaimed(const struct systemd *systemd);

/* systemd_open - make the socket to tell the manager by; log what systemd_read complained about. */
void systemd_open(struct systemd *systemd);

/* systemd_ready, systemd_status, systemd_feed - we serve; what we do now, for 'systemctl status'; we live. */
void systemd_ready(struct systemd *systemd, const char *status);
void systemd_status(struct systemd *systemd, const char *status);
void systemd_feed(struct systemd *systemd);

/* systemd_stopping - we are about to end, and may take up to within_ns for it whatever TimeoutStopSec= says. */
void systemd_stopping(struct systemd *systemd, uint64_t within_ns);

void systemd_close(struct systemd *systemd);

#endif
