/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parser_pack.c - a parsed request moves out of the memory it was parsed in, whose
 * blocks are larger than most requests. Called by session_memory.c before a handler that
 * may wait for long; llhttp is not involved.
 */
#include <errno.h>
#include <string.h>

#include "base/must.h"
#include "http/parser.h"

/* The head moves: where it was, how long it is, where it goes. */
struct move {
    const char *from;
    size_t length;
    char *to;
};

static bool is_in(const struct move *move, const struct slice *s)
{
    uintptr_t at = (uintptr_t)s->at;
    uintptr_t from = (uintptr_t)move->from;
    return at >= from && at - from < move->length;
}

/* A slice that does not lie in the head is static text, or nothing. */
static void rebase(const struct move *move, struct slice *s)
{
    if (is_in(move, s)) {
        s->at = move->to + (s->at - move->from);
    }
}

int parser_pack(struct parser *parser, struct http_exchange *exchange, struct arena *to)
{
    struct http_request *request = &parser->request;
    struct move move = {.from = parser->head, .length = parser->head_bytes};
    struct slice decoded[HTTP_PARAMS_MAX];

    must(parser->complete && !parser->reads_replies && request->body.at == NULL);
    size_t fields_bytes = request->field_count * sizeof(*request->fields);
    struct http_field *fields = arena_alloc(to, fields_bytes);
    move.to = arena_alloc(to, move.length);
    if (fields == NULL || move.to == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < exchange->param_count; i++) {
        decoded[i] = exchange->params[i];
        if (!is_in(&move, &decoded[i])) {
            decoded[i] = arena_copy(to, decoded[i]);
            if (decoded[i].at == NULL) {
                return -ENOMEM;
            }
        }
    }
    memcpy(move.to, move.from, move.length);
    for (size_t i = 0; i < exchange->param_count; i++) {
        exchange->params[i] = decoded[i];
        rebase(&move, &exchange->params[i]);
    }
    for (size_t i = 0; i < request->field_count; i++) {
        fields[i] = request->fields[i];
        rebase(&move, &fields[i].name);
        rebase(&move, &fields[i].value);
    }
    rebase(&move, &request->method_text);
    rebase(&move, &request->target);
    rebase(&move, &request->path);
    rebase(&move, &request->query);
    rebase(&move, &request->host);
    request->fields = fields;
    parser->fields = fields;
    parser->head = move.to;
    return 0;
}
