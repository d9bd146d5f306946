/* SPDX-License-Identifier: Apache-2.0 */
/*
 * servers.h - which servers this process has: one row each in servers.c, chosen
 * by the profiles and the ports of the configuration.
 *
 * Called by process.c and run.c on the main thread. A server is opened by
 * servers_open and found in process->servers from then on; servers of one place
 * drain together.
 */
#ifndef APP_SERVERS_H
#define APP_SERVERS_H

#include <stdbool.h>

#include "app/config.h"
#include "app/process.h"
#include "app/server.h"
#include "base/attr.h"

/* servers_wanted - how many the configuration asks for; servers_threads - with how many platform threads in their pools. */
unsigned servers_wanted(const struct config *config);
unsigned servers_threads(const struct config *config);

/*
 * servers_open - bind every port that is asked for, or take the socket for it that
 * was passed by systemd; nothing is accepted yet.
 *
 * Returns  0; an exit code after one line on stderr: none is open then
 */
int servers_open(struct process *process) WARN_UNUSED;

/* servers_start - accept on all of them, a line of log each. */
void servers_start(struct process *process);

/* servers_failed - one of them got no memory to accept: the start has failed after all. */
bool servers_failed(const struct process *process);

/* servers_describe - in a line: "8080 http, 8085 remote; 2 carriers"; cut to size. */
void servers_describe(const struct process *process, char *dst, size_t size);

/* servers_drain - those of one place; servers_are_drained tells when they are done. */
void servers_drain(struct process *process, enum server_place place);
bool servers_are_drained(struct process *process, enum server_place place);

/* servers_close - when the carriers have ended, or before servers_start. */
void servers_close(struct process *process);

/* servers_remote_port - as bound; where it is not served here, the port it has elsewhere. */
int servers_remote_port(const struct process *process);

#endif
