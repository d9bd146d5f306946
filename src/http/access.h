/* SPDX-License-Identifier: Apache-2.0 */
/*
 * access.h - the access log in the combined format.
 *
 *   127.0.0.1 - - [30/Nov/2026:15:58:44 +0000] "GET /x HTTP/1.1" 200 12 "referer" "agent"
 */
#ifndef HTTP_ACCESS_H
#define HTTP_ACCESS_H

#include <stddef.h>
#include <stdint.h>

#include "http/message.h"

struct access_entry {
    const char *peer; /* numeric address */
    uint64_t wall_ns;
    const struct http_request *request; /* of a refused one, what had been read */
    int status;
    size_t body_length; /* bytes sent after the head */
};

/* access_log - write the entry's line to stdout; what is unprintable in it is escaped as \xNN. */
void access_log(const struct access_entry *entry);

#endif
