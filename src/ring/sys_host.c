/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sys_host.c - see sys_host.h and sys.c.
 */
#include "ring/sys_host.h"

#include <errno.h>
#include <sys/resource.h>
#include <unistd.h>

int sys_limit_get(enum sys_limit which, struct sys_limit_pair *pair)
{
    static const int resources[] = {
        [SYS_LIMIT_DESCRIPTORS] = RLIMIT_NOFILE,
        [SYS_LIMIT_LOCKED] = RLIMIT_MEMLOCK,
        [SYS_LIMIT_ADDRESS] = RLIMIT_AS,
        [SYS_LIMIT_PROCESSES] = RLIMIT_NPROC,
    };
    struct rlimit limit;
    if (getrlimit((__rlimit_resource_t)resources[which], &limit) < 0) {
        return -errno;
    }
    *pair = (struct sys_limit_pair){
        .soft = limit.rlim_cur == RLIM_INFINITY ? SYS_NO_LIMIT : (uint64_t)limit.rlim_cur,
        .hard = limit.rlim_max == RLIM_INFINITY ? SYS_NO_LIMIT : (uint64_t)limit.rlim_max};
    return 0;
}

bool sys_is_terminal(int fd)
{
    return isatty(fd) == 1;
}
