/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sys_systemd.h - the system calls that only the talk with a service manager
 * needs; see sys.h for the rest. For the main thread.
 */
#ifndef RING_SYS_SYSTEMD_H
#define RING_SYS_SYSTEMD_H

#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"

/* The longest name of a local socket, its NUL not counted (sun_path is 108 bytes). */
#define SYS_LOCAL_NAME_MAX 107

/* sys_process_id - getpid(2). */
int sys_process_id(void);

/* sys_notify_open - an unconnected local datagram socket. Returns a descriptor; -EMFILE, -EAFNOSUPPORT … */
int sys_notify_open(void) WARN_UNUSED;

/*
 * sys_notify_send - one datagram.
 *
 * @fd        of sys_notify_open
 * @receiver  path of a local socket, or '@' and an abstract name: 2 to
 *            SYS_LOCAL_NAME_MAX bytes
 *
 * Blocks the thread while the receiver's queue is full, for a second at most.
 *
 * Returns  0; -EAGAIN the queue stayed full; -ENOENT, -ECONNREFUSED nobody is there …
 * Source   sd_notify(3), "Notes"; unix(7)
 */
int sys_notify_send(int fd, const char *receiver, const char *text);

/*
 * sys_listener_adopt - make a descriptor that this process was started with a
 * listener like those of sys_listen: non-blocking, closed on exec, TCP_NODELAY.
 *
 * @port  the port it listens on is stored here
 *
 * Returns  0; -EBADF no such descriptor; -ENOTSOCK; -EPROTOTYPE no TCP socket;
 *          -EINVAL one that does not listen
 */
int sys_listener_adopt(int fd, uint16_t *port) WARN_UNUSED;

#endif
