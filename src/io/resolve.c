/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resolve.c - getaddrinfo(3) on the offload pool. Called by http/client_connect.c.
 */
#include "io/resolve.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/must.h"
#include "fiber/fiber.h"
#include "io/pool.h"

struct question {
    char host[RESOLVE_HOST_MAX + 1];
    uint16_t port;
    int answer; /* of sys_resolve */
    struct resolve_result result;
};

static void ask(void *argument)
{
    struct question *question = argument;
    question->answer = sys_resolve(question->host, question->port, question->result.addresses,
                                   RESOLVE_ADDRESSES_MAX);
}

int resolve(struct pool *offload, const struct resolve_target *target, uint64_t deadline_ns,
            struct resolve_result *result)
{
    if (sys_parse_address(target->host, target->port, &result->addresses[0]) == 1) {
        result->count = 1;
        return 0;
    }
    struct question *question = calloc(1, sizeof(*question));
    if (question == NULL) {
        return -ENOMEM;
    }
    int length = snprintf(question->host, sizeof(question->host), "%s", target->host);
    must(length >= 0 && (size_t)length < sizeof(question->host));
    question->port = target->port;
    if (fiber_current() != NULL) {
        struct pool_errand errand = {.run = ask, .release = free, .argument = question};
        int executed = pool_run_until(offload, &errand, deadline_ns);
        if (executed == -ETIMEDOUT || executed == -ECANCELED) {
            return executed; /* left behind: the question is not ours any more */
        }
        if (executed < 0) {
            free(question);
            return executed;
        }
    } else {
        ask(question);
    }
    int answer = question->answer;
    if (answer > 0) {
        *result = question->result;
        result->count = (size_t)answer;
    }
    free(question);
    return answer > 0 ? 0 : answer;
}
