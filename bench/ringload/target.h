/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target.h - whom the load is for: a URL taken apart, and the request's bytes.
 */
#ifndef BENCH_TARGET_H
#define BENCH_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/slice.h"
#include "ring/sys.h"
#include "ringload/template.h"

#define TARGET_ADDRESSES_MAX 8
#define TARGET_HOST_SIZE 256

struct options;

struct target {
    bool is_http;           /* else raw TCP */
    struct slice authority; /* as it is written: the value of Host. Borrowed from the URL */
    struct slice path;      /* with the query: "/…", never empty for HTTP. Borrowed, or static */
    char host[TARGET_HOST_SIZE];
    uint16_t port;
    struct sys_address addresses[TARGET_ADDRESSES_MAX];
    size_t address_count;
    bool is_loopback;     /* an address of 127.0.0.0/8: clients may choose one of their own too */
    struct slice request; /* what a user sends, owned by the target; empty: nothing */
    size_t body_length;   /* of it */
    struct template template; /* what differs from request to request */
};

/*
 * target_parse - take http://host[:port][/path][?query] or tcp://host:port apart.
 *
 * Returns  0; -EINVAL, with *why a line for people (static text)
 */
int target_parse(struct target *target, const char *url, const char **why) WARN_UNUSED;

/*
 * target_resolve - find the addresses of its host. Blocks.
 *
 * Returns  0; -ENOENT no such name; -EAGAIN the resolver failed for now; -ENOMEM
 */
int target_resolve(struct target *target) WARN_UNUSED;

/*
 * target_format - put the bytes of a request together, once for all users.
 *
 * Returns  0; -ENOMEM; -EINVAL a {random:N} in path or body is none
 */
int target_format(struct target *target, const struct options *options) WARN_UNUSED;

/* target_free - the request's memory. */
void target_free(struct target *target);

#endif
