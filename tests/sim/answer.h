/* SPDX-License-Identifier: Apache-2.0 */
/*
 * answer.h - what answer.c, which reads an answer, and judge.c, which knows whether it
 * is a right one, share.
 */
#ifndef SIM_ANSWER_H
#define SIM_ANSWER_H

#include "client.h"

/* What lies between the server's clock and what a client sees: late completions, and slow ones. */
#define SLACK_NS (600 * NS_PER_MS)

struct answer {
    int status;
    const char *head;
    size_t head_length;
    const char *body;
    size_t body_length; /* of what was sent; length says how many there would be */
    size_t length;
    bool closes, keeps;
    char reason[48], date[48], type[48], allow[64], retry[8];
};

/* remote_is_excused - a call of this request to the remote may have failed. */
bool remote_is_excused(const struct client *client, const struct request *request);

/* answer_judge - status, type and body are those of the right answer, or have an excuse. */
void answer_judge(struct client *client, const struct request *request,
                  const struct answer *answer);

#endif
