/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call.h - what the handlers that call the remote share: the call's limits, and the
 * status that tells our client whose fault a failure was.
 */
#ifndef APP_CALL_H
#define APP_CALL_H

#include <stdint.h>

#include "base/arena.h"
#include "base/attr.h"
#include "http/client.h"
#include "http/message.h"

struct app;

/* Why there is no answer of the remote to pass on. */
struct call_failure {
    int status; /* 502, 503 or 504; 0: there is one */
    struct slice message;
};

/*
 * call_remote - GET path of remote.url; anything but a 200 is a failure.
 *
 * @call      arena and path set; the reply is there on success
 * @delay_ns  how long the remote is expected to take: the answer must come 5 s later
 * @failure   filled; its message lives in the call's arena, or is static
 *
 * Returns  0; -errno, with a failure; -ECANCELED without one: nobody reads an answer
 * Parks    yes
 */
int call_remote(struct app *app, struct http_call *call, uint64_t delay_ns,
                struct call_failure *failure) WARN_UNUSED;

/*
 * call_arena - the arena of a forked child's calls. The stack pages that these need
 * on a fiber come in one call here, instead of a fault each. What outlives the child
 * is copied out of the arena.
 */
void call_arena(struct arena *arena, size_t bytes_max);

/* call_fail - the failure of an error, for calls that did not come to be. */
void call_fail(struct call_failure *failure, int error);

#endif
