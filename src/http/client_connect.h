/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client_connect.h - find the remote's address and connect. Inside http/ only.
 */
#ifndef HTTP_CLIENT_CONNECT_H
#define HTTP_CLIENT_CONNECT_H

#include <stdint.h>

#include "base/attr.h"
#include "http/client_pool.h"

/*
 * client_set_url - fill the pool's host, port, authority and path prefix.
 *
 * Returns  0; -EINVAL no such URL (url_parse), or a longer one than we keep
 */
int client_set_url(struct client_pool *pool, const char *text) WARN_UNUSED;

/*
 * client_forget_addresses - the host does not answer any more: resolve the name anew before the
 * next connect, and use no idle connection that is open to it.
 */
void client_forget_addresses(struct client_pool *pool);

/*
 * client_connect - connect to the first of the remote's addresses that answers.
 *
 * A name is resolved off the carriers; what it resolved to is kept until a
 * connect fails, then asked again, so that a remote that moved is found: within
 * this call, also when nothing answers at the old address.
 *
 * Returns  0; -ETIMEDOUT resolving and connecting took longer than timeout_ns;
 *          what conn_connect or resolve returned
 * Parks    yes
 */
int client_connect(struct client_pool *pool, struct conn *conn, uint64_t timeout_ns) WARN_UNUSED;

#endif
