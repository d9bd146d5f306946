/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client.h - HTTP GET on pooled keep-alive connections, from a fiber or a platform thread.
 *
 *   get -> take a connection (idle one | new one | wait for one) -> send -> read
 *       -> back to the pool, or closed
 *
 * A pooled connection that the peer closed meanwhile is tried once more on a fresh
 * one, if no byte of the answer had come: GET is idempotent.
 */
#ifndef HTTP_CLIENT_H
#define HTTP_CLIENT_H

#include <stdint.h>

#include "base/arena.h"
#include "base/attr.h"
#include "http/client_pool.h"
#include "http/message.h"

struct http_call {
    struct slice path; /* origin-form target, encoded */
    uint64_t connect_timeout_ns;
    uint64_t answer_timeout_ns; /* from sending to the answer's last byte */
    uint64_t body_bytes_max;
    struct arena *arena; /* the reply's memory */
    /* out */
    struct http_reply reply;
    const char *failure; /* static text, when the call failed */
};

/*
 * client_get - make the call and wait for the whole answer.
 *
 * Returns  0 whatever the status is; -ETIMEDOUT no connection or no answer in
 *          time; -ECONNREFUSED, -ECONNRESET, -ENOENT (no such name), … ; -EPROTO
 *          the answer is nonsense; -EMFILE, -ENFILE no descriptor; -ENOMEM;
 *          -EINVAL the path cannot be sent; -ECANCELED (the connection was reset,
 *          so that the remote stops)
 * Parks    yes; on a platform thread it blocks that thread
 * Source   RFC 9110 section 9.2.2, RFC 9112 section 9.3.1
 */
int client_get(struct client_pool *pool, struct http_call *call) WARN_UNUSED;

#endif
