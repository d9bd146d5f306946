/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parser_parts.h - what the files of the parser share and nobody else calls:
 * parser.c drives llhttp, parser_llhttp.c hears from it, parser_store.c keeps what it
 * finds in the arena, parser_line.c judges a start line and parser_check.c a complete
 * head.
 *
 * Where nothing else is said they return 0, or -1 after parser__refuse, which is
 * also what stops llhttp when one of its callbacks returns it.
 */
#ifndef HTTP_PARSER_PARTS_H
#define HTTP_PARSER_PARTS_H

#include "http/parser.h"

/* llhttp's state, the member llhttp of struct parser; only parser_llhttp.h includes <llhttp.h>. */
struct llhttp__internal_s;

/* parser__refuse - note why (the first reason stands; a reply's is a 502, or a 503); returns -1. */
int parser__refuse(struct parser *parser, int status, const char *message);

/* parser__body_max - how long the body of the message in work may be. */
static inline uint64_t parser__body_max(const struct parser *parser)
{
    uint64_t limit = parser->limits.body_bytes_max;
    return parser->body_max > 0 && parser->body_max < limit ? parser->body_max : limit;
}

/* ---- parser_store.c */

/* parser__head_reserve - make room for at least one more byte of the head. */
int parser__head_reserve(struct parser *parser) WARN_UNUSED;

/* parser__on_* - llhttp's callbacks that record and count. */
int parser__on_url(struct llhttp__internal_s *llhttp, const char *at, size_t length);
int parser__on_url_complete(struct llhttp__internal_s *llhttp);
int parser__on_version(struct llhttp__internal_s *llhttp, const char *at, size_t length);
int parser__on_header_field(struct llhttp__internal_s *llhttp, const char *at, size_t length);
int parser__on_header_value(struct llhttp__internal_s *llhttp, const char *at, size_t length);
int parser__on_body(struct llhttp__internal_s *llhttp, const char *at, size_t length);

/*
 * parser__count_framing - count bytes of a chunked body that are not data; beyond a
 * free allowance for each chunk they count against the head's limit.
 * parser__end_framing - a chunk's size line is complete, its data begin.
 */
int parser__count_framing(struct parser *parser, uint64_t bytes) WARN_UNUSED;
void parser__end_framing(struct parser *parser);

/* ---- parser_line.c */

/* parser__is_token_char - may the byte occur in a method? Source: RFC 9110 section 5.6.2. */
bool parser__is_token_char(char c);

/* parser__skip_blank - skip a few empty lines before a request line; *at moves on. */
int parser__skip_blank(struct parser *parser, const char **at, const char *end) WARN_UNUSED;

/* parser__check_line_goes_on - what follows the target, if it has come, must be a space. */
int parser__check_line_goes_on(struct parser *parser) WARN_UNUSED;

/* parser__host_is_valid - is s a host with an optional port, or with one if it is needed? */
bool parser__host_is_valid(struct slice s, bool port_needed);

/* parser__check_target - part the target into path, query and, if it is absolute, host. */
int parser__check_target(struct parser *parser) WARN_UNUSED;

/* parser__refuse_version / parser__refuse_target - the refusal for a place where llhttp stopped. */
int parser__refuse_version(struct parser *parser);
int parser__refuse_target(struct parser *parser, const char *error_at);

/* ---- parser_check.c */

/*
 * parser__check_request / parser__check_reply - judge the complete head: fields,
 * framing, and a request's target and Host. Expects fields, body_expected and
 * what llhttp found in the start line (method, target, version, status); fills
 * the rest of request or reply, and chunked.
 */
int parser__check_request(struct parser *parser) WARN_UNUSED;
int parser__check_reply(struct parser *parser) WARN_UNUSED;

#endif
