/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_memory.c - a session's desk and pocket, drawn in session_parts.h. Called by
 * session.c on the connection's fiber; the send's completion comes from the loop.
 */
#include <errno.h>
#include <string.h>

#include "base/must.h"
#include "base/slab.h"
#include "http/session_parts.h"

/* What a request may take beside its head and body: fields, and a reply of 1 MB of the remote as it grows. */
#define ARENA_EXTRA_BYTES ((size_t)4 * 1024 * 1024)

static size_t arena_bytes_max(const struct work *work)
{
    const struct parser_limits *limits = &work->session->service->setup.limits;
    return limits->head_bytes_max * 2 + (size_t)limits->body_bytes_max * 2 + ARENA_EXTRA_BYTES;
}

static void use_pocket_block(struct work *work)
{
    arena_init(&work->arena, work->pocket_block, sizeof(work->pocket_block), arena_bytes_max(work));
}

static void use_pocket_out(struct work *work)
{
    work->out = work->pocket_out;
    work->out_room = sizeof(work->pocket_out);
}

/* The ring has let go of what was being sent. */
static void take_leave(struct conn *conn)
{
    struct session *session = container_of(conn, struct session, conn);
    if (session->leaving != NULL) {
        slab_give(&session->lane->desks, session->leaving);
        session->leaving = NULL;
    }
}

static int take_desk(struct work *work)
{
    if (work->desk == NULL) {
        work->desk = slab_take_dirty(&work->session->lane->desks);
    }
    return work->desk != NULL ? 0 : -ENOMEM;
}

/* The arena has left the desk, and nothing is collected in it. */
static void let_desk_go(struct work *work)
{
    struct session *session = work->session;
    must(work->out_length == 0);
    if (work->desk == NULL) {
        return;
    }
    if (work->out == work->desk->out && conn_is_writing(&session->conn)) {
        must(session->leaving == NULL);
        session->leaving = work->desk;
    } else {
        slab_give(&session->lane->desks, work->desk);
    }
    work->desk = NULL;
    use_pocket_out(work);
}

void session__work_init(struct work *work, struct session *session)
{
    *work = (struct work){.session = session, .out_fresh = true};
    session->conn.sent = take_leave;
    use_pocket_out(work);
    use_pocket_block(work);
}

int session__begin(struct work *work)
{
    int result = take_desk(work);
    if (result == 0) {
        arena_init(&work->arena, work->desk->block, sizeof(work->desk->block),
                   arena_bytes_max(work));
    }
    return result;
}

void session__rest(struct work *work)
{
    if (work->desk != NULL) {
        must(work->arena.chunks == NULL);
        use_pocket_block(work);
        let_desk_go(work);
    }
}

void session__pack(struct work *work, struct http_exchange *exchange)
{
    struct arena packed;
    if (work->desk == NULL || work->parser.request.body.at != NULL) {
        return; /* a kept body is long, or it would not be worth its route's flag */
    }
    arena_init(&packed, work->pocket_block, sizeof(work->pocket_block), arena_bytes_max(work));
    if (parser_pack(&work->parser, exchange, &packed) < 0) {
        arena_reset(&packed);
        return;
    }
    arena_reset(&work->arena);
    work->arena = packed;
    let_desk_go(work);
}

int session__widen(struct work *work)
{
    must(work->out == work->pocket_out);
    int result = take_desk(work);
    if (result == 0) {
        memcpy(work->desk->out, work->out, work->out_length);
        work->out = work->desk->out;
        work->out_room = sizeof(work->desk->out);
    }
    return result;
}
