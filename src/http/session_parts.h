/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_parts.h - what session.c and session_service.c share. For these alone.
 */
#ifndef HTTP_SESSION_PARTS_H
#define HTTP_SESSION_PARTS_H

#include "base/list.h"
#include "http/session.h"
#include "io/conn.h"

/* What others reach of a connection: the ring its conn, the drain its link. */
struct session {
    struct conn conn;
    struct list link; /* service_lane.sessions */
    struct service *service;
    struct service_lane *lane;
    struct listener *listener;
};

/* session__run - the entry of a connection's fiber; argument is its struct session. */
void session__run(void *argument);

#endif
