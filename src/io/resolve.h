/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resolve.h - a host name becomes addresses, off the carriers.
 */
#ifndef IO_RESOLVE_H
#define IO_RESOLVE_H

#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "ring/sys.h"

struct pool;

#define RESOLVE_ADDRESSES_MAX 8
#define RESOLVE_HOST_MAX 255

struct resolve_target {
    const char *host; /* name or numeric address without brackets, at most RESOLVE_HOST_MAX bytes */
    uint16_t port;
};

struct resolve_result {
    struct sys_address addresses[RESOLVE_ADDRESSES_MAX];
    size_t count;
};

/*
 * resolve - the addresses of a host, in the resolver's order.
 *
 * Returns  0; -ENOENT no such name; -EAGAIN the resolver failed for now;
 *          -ETIMEDOUT; -ECANCELED; -ENOMEM
 * Parks    yes, unless host is numeric; a platform thread asks the resolver itself
 *          (then the deadline is the resolver's own)
 */
int resolve(struct pool *offload, const struct resolve_target *target, uint64_t deadline_ns,
            struct resolve_result *result) WARN_UNUSED;

#endif
