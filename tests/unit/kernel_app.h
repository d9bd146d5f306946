/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_app.h - the app's and the remote's real routes on two ports of the scripted
 * kernel, as app/run.c opens them; or the test as the remote.
 */
#ifndef KERNEL_APP_H
#define KERNEL_APP_H

#include <stdbool.h>
#include <stdint.h>

#include "app/app.h"
#include "kernel_server.h"

#define REMOTE_PORT 8085

extern struct client_pool world_calls;
extern struct app world_app;
extern struct connection_limit world_limit;

/* world_start - round as for kernel_start; remote_ours: false, and the test accepts the calls. */
void world_start(unsigned round, bool remote_ours);

/* world_stop - drain both ports; nothing is left of connections, calls and fibers. */
void world_stop(void);

/* world_get - a client that has asked for path. */
struct kernel_file *world_get(const char *path);

/* world_expect - the next answer that it heard has that status and part in its body. */
void world_expect(struct kernel_file *client, int status, const char *part);

#endif
