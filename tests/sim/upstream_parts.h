/* SPDX-License-Identifier: Apache-2.0 */
/*
 * upstream_parts.h - what upstream.c, which accepts and sends, and upstream_answer.c, which
 * knows what, share.
 */
#ifndef SIM_UPSTREAM_PARTS_H
#define SIM_UPSTREAM_PARTS_H

#include "kernel_parts.h"
#include "sim.h"

#define PATH_MAX_BYTES 128
#define HEARD_MAX 2048

enum fate {
    BY_LENGTH,
    BY_CHUNKS,
    UNTIL_CLOSE,
    AND_CLOSE,
    AFTER_INTERIM,
    AND_MORE, /* bytes behind the answer that nobody asked for */
    GOOD_FATES,
    STATUS_500 = GOOD_FATES,
    STATUS_503,
    NONSENSE,
    CUT,
    RESET,
    CLOSE_AT_ONCE,
    HANG,
    FATES
};

/* One call, from its request to its fate. */
struct record {
    char path[PATH_MAX_BYTES];
    char body[PATH_MAX_BYTES + 64];
    bool good, done;
};

/* One connection of the server's. */
struct line {
    struct kernel_file *peer; /* NULL: free */
    uint64_t seen_wakes;
    char heard[HEARD_MAX];
    size_t heard_length;
    struct record *record; /* in work */
    enum fate fate;
    char answer[1024];
    size_t answer_length, sent;
    uint64_t due_ns;  /* when the next piece leaves */
    uint64_t hush_ns; /* when it closes though it is pooled; 0: it does not */
};

/* record_new - of a call of that path, with the body of its answer. */
struct record *record_new(const char *path);

/* delay_of - that the path asks for; what its text says is checked on the other side. */
uint64_t delay_of(const char *path);

/* compose - the bytes of line->answer, as its fate has it. */
void compose(struct line *line);

#endif
