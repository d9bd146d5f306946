/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tally.c - see tally.h. Filled by user.c, merged by load.c, read by the reports.
 */
#include "ringload/tally.h"

#include <string.h>

void tally_merge(struct tally *tally, const struct tally *other)
{
    tally->started += other->started;
    tally->complete += other->complete;
    for (int kind = 0; kind < FAILURE_KINDS; kind++) {
        tally->failures[kind] += other->failures[kind];
    }
    tally->cut += other->cut;
    tally->connections += other->connections;
    tally->reused += other->reused;
    tally->lost += other->lost;
    tally->sent_bytes += other->sent_bytes;
    tally->received_bytes += other->received_bytes;
    tally->body_bytes += other->body_bytes;
    if (tally->document_bytes == 0) {
        tally->document_bytes = other->document_bytes;
    }
    for (int status = 0; status < TALLY_STATUSES; status++) {
        tally->statuses[status] += other->statuses[status];
    }
    if (tally->first_reason[0] == '\0') {
        memcpy(tally->first_reason, other->first_reason, sizeof(tally->first_reason));
    }
    histogram_merge(&tally->latency, &other->latency);
    histogram_merge(&tally->connect, &other->connect);
}

uint64_t tally_failed(const struct tally *tally)
{
    uint64_t failed = 0;
    for (int kind = 0; kind < FAILURE_KINDS; kind++) {
        failed += tally->failures[kind];
    }
    return failed;
}

const char *tally_failure_name(enum failure kind)
{
    static const char *const names[] = {
        [FAILURE_CONNECT] = "connect",     [FAILURE_TIMEOUT] = "timeout",
        [FAILURE_RESET] = "reset",         [FAILURE_SHORT] = "short",
        [FAILURE_MALFORMED] = "malformed", [FAILURE_STATUS] = "non-2xx",
    };
    return names[kind];
}
