/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_parts.h - what session.c, session_memory.c and service.c share.
 * For these alone.
 */
#ifndef HTTP_SESSION_PARTS_H
#define HTTP_SESSION_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/list.h"
#include "http/parser.h"
#include "http/service.h"
#include "io/conn.h"

/*
 * Where the bytes of a session are:
 *
 *   desk    lent by the lane while a request is in work: its arena, and responses
 *           that the pocket is too small for. A few desks serve all connections of
 *           a carrier, since most are given back before anybody parks.
 *   pocket  on the fiber's stack, in its first page: a small response until it is
 *           sent, and a packed request while its handler waits.
 *
 * A connection that is idle, or asleep in a handler, holds no desk and so costs
 * the one page that its frames, its pocket and its struct fiber share.
 */
#define DESK_OUT_BYTES ((size_t)4096)
#define DESK_BLOCK_BYTES ((size_t)4096)
#define POCKET_OUT_BYTES ((size_t)256)
#define POCKET_BLOCK_BYTES ((size_t)512)

struct desk {
    char out[DESK_OUT_BYTES];     /* responses not yet sent */
    char block[DESK_BLOCK_BYTES]; /* first block of the request's arena */
};

/* What others reach of a connection: the ring its conn, the drain its link. */
struct session {
    struct conn conn;
    struct list link; /* service_lane.sessions */
    struct service *service;
    struct service_lane *lane;
    struct listener *listener;
    struct desk *leaving; /* its out is being sent, for nobody else: given back when that is done */
};

/* What the fiber works with; on its stack, reached by nobody else. */
struct work {
    struct session *session;
    struct parser parser;
    struct arena arena; /* of the request in work; over the desk's block or the pocket's */
    struct desk *desk;  /* NULL while there is no need of one */
    char *out;          /* responses not yet sent: the pocket's, or desk->out */
    size_t out_room;
    size_t out_length;
    bool out_fresh;          /* nothing of it is on its way out */
    uint64_t write_until_ns; /* deadline of what is */
    uint64_t requests;       /* answered on this connection */
    uint64_t opened_ns;
    uint64_t head_until_ns; /* deadline of the message in work; 0: none has begun */
    bool graced;
    char pocket_out[POCKET_OUT_BYTES];
    _Alignas(16) char pocket_block[POCKET_BLOCK_BYTES];
};

/* session__run - the entry of a connection's fiber; argument is its struct session. */
void session__run(void *argument);

/* ---- session_memory.c; none of these parks */

/* session__work_init - no desk, nothing to send. */
void session__work_init(struct work *work, struct session *session);

/* session__begin - bytes of a new message have come: a desk, and an empty arena. Returns 0; -ENOMEM. */
int session__begin(struct work *work) WARN_UNUSED;

/*
 * session__rest - no request is in work and no response is collected: what may be on
 * its way out stays until it is sent, the desk goes.
 */
void session__rest(struct work *work);

/*
 * session__pack - a handler may wait for long: move the request into the pocket (and
 * what does not fit there into a block of its own), and let the desk go. No response
 * is collected. Where that cannot be done the desk stays.
 */
void session__pack(struct work *work, struct http_exchange *exchange);

/* session__widen - the pocket is too small for the responses: go on in a desk. Returns 0; -ENOMEM. */
int session__widen(struct work *work) WARN_UNUSED;

#endif
