/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client.h - a simulated client: one connection, what it asks on it, how it behaves,
 * and what it must get.
 *
 *   out  [request 1][request 2][request 3] ...   sent in pieces; the last may stay a torso
 *              begin^        ^end
 *
 * client.c acts, request.c makes requests and knows the right answers, answer.c reads
 * answers and judges, crowd.c makes clients come.
 */
#ifndef SIM_CLIENT_H
#define SIM_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel.h"
#include "sim.h"

#define REQUESTS_MAX 12
#define BODY_MAX 512

/* What the body of the right answer is. */
enum body_kind {
    BODY_TEXT,        /* the text in body */
    BODY_ERROR,       /* Spring's error body, with path */
    BODY_THREAD,      /* Fiber[#61,http-8080-conn-12]/runnable@carrier-1 */
    BODY_THREAD_JSON, /* the same with figures */
    BODY_FANOUT,      /* figures of that many calls */
    BODY_ECHOES,      /* figures of the echo listeners */
    BODY_REMOTE,      /* what the remote answered to remote_path */
    BODY_PRODUCT      /* what the remote answered to several */
};

/* One request, and the answer that it must get. */
struct request {
    size_t begin, end;  /* in the client's out */
    size_t pause_at;    /* wait for 100 Continue here; 0: no */
    bool may_continue;  /* a 100 may come */
    bool must_continue; /* and it does, unless something fails */
    bool head_only;
    bool ends; /* the server closes behind its answer */
    bool http_1_0;
    bool calls;  /* the server asks its remote for it */
    bool health; /* says 503 from the SIGTERM on */
    int status;
    enum body_kind kind;
    const char *allow;
    const char *method;   /* NULL: as request.c draws it */
    bool directory;       /* of /directory */
    uint64_t delay_ns;    /* its answer comes so much later, not earlier */
    uint64_t deadline_ns; /* of /product; 0: none */
    unsigned count;       /* of /fanout */
    unsigned parts;       /* of /product: 2 or 3 */
    char path[BODY_MAX];  /* as an error body has it */
    char token[96];       /* id, or n */
    char body[BODY_MAX];
    uint64_t first_ns, sent_ns; /* when its first and last byte went; 0: not yet */
    bool continued;
};

enum conduct {
    FINISHES,   /* half-closes behind its last request, and hears all answers */
    LEAVES,     /* closes when all is answered */
    STAYS,      /* idles until the server has had enough */
    RESETS,     /* at a moment of its own */
    GOES,       /* closes while answers are due */
    FALLS_MUTE, /* sends and reads nothing more from some moment on */
    CONDUCTS
};

enum talk { TALK_HTTP, TALK_ECHO, TALK_GREETER };

struct client {
    unsigned number;
    struct kernel_file *peer; /* NULL: has not come yet */
    uint16_t port;
    enum talk talk;
    enum conduct conduct;
    bool slow_reader; /* in pieces, at its own pace, through a small window */
    bool half_closes; /* behind its last request, whatever it does then */
    bool dawdles;     /* pauses of many seconds between its pieces */
    size_t piece_max;
    uint64_t come_ns, act_ns, quit_ns; /* quit_ns: when it resets, goes or falls mute */
    uint64_t read_ns, left_ns;
    uint64_t seen_wakes;
    /* what it says */
    struct request requests[REQUESTS_MAX];
    unsigned count, answered;
    char *out;
    size_t out_length, out_capacity, sent;
    size_t torso; /* so much of the last request is never sent */
    bool finished, mute, left;
    /* what it has heard */
    char *in;
    size_t in_length, in_capacity;
    bool told_close;         /* an answer said so: nothing more may come */
    bool refused;            /* there was no place for it */
    bool over;               /* judged */
    uint64_t last_answer_ns; /* or when it came */
    /* the entry that it has in /directory */
    unsigned entry_stage;
    char entry_key[32], entry_json[96];
    uint64_t conn_number; /* of the fiber that answered /currentThread */
    /* what had gone wrong in the world when it came */
    unsigned memory_faults, descriptor_faults, upstream_faults, upstream_trouble;
};

/* request_add - one more request of a kind that the seed draws; says whether more may follow. */
bool request_add(struct client *client);

/* client_is_at_torso - what is answered next is a request that is never sent whole. */
bool client_is_at_torso(const struct client *client);

/* client_put - text to be said. */
void client_put(struct client *client, const char *text, size_t length);

/* client_act - come, say, hear, go: whatever is due. */
void client_act(struct client *client);

/* client_next_ns - when it does something unasked. */
uint64_t client_next_ns(const struct client *client);

/* answers_take - read and judge the answers that have come whole. */
void answers_take(struct client *client);

/* client_judge - the connection has ended, by whomever: what is missing must have an excuse. */
void client_judge(struct client *client, bool reset);

/* client_check_due - what should have come by now has. */
void client_check_due(const struct client *client);

/* client_is_excused - something failed meanwhile that may have cost it answers. */
bool client_is_excused(const struct client *client);

/* crowd_come - so many clients, over some time. crowd_act; crowd_next_ns; crowd_gone: all are over. */
void crowd_come(unsigned count);
void crowd_act(void);
uint64_t crowd_next_ns(void);
bool crowd_gone(void);
void crowd_free(void);
#endif
