/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sys_host.h - the part of the door to system calls that asks what this process
 * may use. For the doctor and the load generator; what /proc tells is read with sys_read_file.
 */
#ifndef RING_SYS_HOST_H
#define RING_SYS_HOST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"

enum sys_limit {
    SYS_LIMIT_DESCRIPTORS, /* RLIMIT_NOFILE */
    SYS_LIMIT_LOCKED,      /* RLIMIT_MEMLOCK, bytes */
    SYS_LIMIT_ADDRESS,     /* RLIMIT_AS, bytes */
    SYS_LIMIT_PROCESSES    /* RLIMIT_NPROC: the user's threads */
};

#define SYS_NO_LIMIT UINT64_MAX

struct sys_limit_pair {
    uint64_t soft; /* in force; SYS_NO_LIMIT: none */
    uint64_t hard; /* as far as the process may raise it */
};

/* sys_limit_get - getrlimit(2). Returns 0; -errno. */
int sys_limit_get(enum sys_limit which, struct sys_limit_pair *pair) WARN_UNUSED;

/* sys_is_terminal - does somebody read along? isatty(3). */
bool sys_is_terminal(int fd);

#endif
