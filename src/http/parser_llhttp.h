/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parser_llhttp.h - the one door to <llhttp.h>, for parser.c, which drives it, and
 * parser_llhttp.c, whom it calls.
 */
#ifndef HTTP_PARSER_LLHTTP_H
#define HTTP_PARSER_LLHTTP_H

#include <assert.h>

/* llhttp names its methods as message.h does ours; theirs get a name of their own here. */
#define HTTP_GET LLHTTP_GET
#define HTTP_HEAD LLHTTP_HEAD
#define HTTP_POST LLHTTP_POST
#define HTTP_PUT LLHTTP_PUT
#define HTTP_DELETE LLHTTP_DELETE
#define HTTP_OPTIONS LLHTTP_OPTIONS
#define HTTP_PATCH LLHTTP_PATCH
#define HTTP_TRACE LLHTTP_TRACE
#define HTTP_CONNECT LLHTTP_CONNECT
#include <llhttp.h>
#undef HTTP_GET
#undef HTTP_HEAD
#undef HTTP_POST
#undef HTTP_PUT
#undef HTTP_DELETE
#undef HTTP_OPTIONS
#undef HTTP_PATCH
#undef HTTP_TRACE
#undef HTTP_CONNECT

#include "http/parser_parts.h"

static_assert(sizeof(llhttp_t) <= sizeof(((struct parser *)NULL)->llhttp),
              "struct parser has no room for this llhttp");
static_assert(_Alignof(llhttp_t) <= 8, "struct parser aligns llhttp to 8 bytes");
static_assert(sizeof(struct parser) <= 400, "sits in the first page of a fiber's stack");

static inline llhttp_t *llhttp_of(struct parser *parser)
{
    return (llhttp_t *)(void *)parser->llhttp;
}

static inline struct parser *parser_of(llhttp_t *llhttp)
{
    return container_of(llhttp, struct parser, llhttp);
}

extern const llhttp_settings_t parser__request_callbacks;
extern const llhttp_settings_t parser__reply_callbacks;

/* parser__method_of - the method that llhttp has read; HTTP_METHOD_UNKNOWN for those that only it knows. */
enum http_method parser__method_of(const llhttp_t *llhttp);

/* parser__refuse_for_llhttp - the refusal for an error of llhttp's. Returns PARSER_REFUSED. */
enum parser_event parser__refuse_for_llhttp(struct parser *parser, enum llhttp_errno error);

#endif
