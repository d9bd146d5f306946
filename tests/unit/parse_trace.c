/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parse_trace.c - see parse_trace.h.
 */
#include "parse_trace.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <setjmp.h>

#include <cmocka.h>

#define PIECE_MAX (UINT64_C(4) << 20)
#define PAIRS_LENGTH_MAX 160
#define FIRST_BLOCK 2048

struct parse_setup parse_setup_default(void)
{
    return (struct parse_setup){.limits = {.head_bytes_max = 8192, .body_bytes_max = 1 << 20},
                                .arena_bytes_max = 1 << 22};
}

uint64_t parse_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* The first byte that must not be read. */
static char *guard_page(void)
{
    static char *guard;
    if (guard == NULL) {
        size_t page = (size_t)sysconf(_SC_PAGESIZE);
        char *memory = mmap(NULL, PIECE_MAX + page, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_true(memory != MAP_FAILED);
        assert_int_equal(mprotect(memory + PIECE_MAX, page, PROT_NONE), 0);
        guard = memory + PIECE_MAX;
    }
    return guard;
}

static void say(struct parse_trace *trace, const char *format, ...) PRINTF_LIKE(2, 3);

static void say(struct parse_trace *trace, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    size_t room = sizeof(trace->text) - trace->length;
    int length = vsnprintf(trace->text + trace->length, room, format, values);
    va_end(values);
    assert_true(length >= 0 && (size_t)length < room);
    trace->length += (size_t)length;
}

static void say_fields(struct parse_trace *trace, const struct http_field *fields, size_t count)
{
    for (size_t i = 0; i < count && i < 8; i++) {
        say(trace, " [%.*s=%.*s]", (int)fields[i].name.length, fields[i].name.at,
            (int)fields[i].value.length, fields[i].value.at);
    }
    if (count > 8) {
        say(trace, " and %zu more", count - 8);
    }
}

static void say_body(struct parse_trace *trace, const struct parser *parser, struct slice body)
{
    if (parser->body_bytes > 0) {
        say(trace, " %llu", (unsigned long long)parser->body_bytes);
    }
    if (body.length > 64) {
        say(trace, " body=%zu bytes", body.length);
    } else if (body.length > 0) {
        say(trace, " body=%.*s", (int)body.length, body.at);
    }
}

static void say_message(struct parse_trace *trace, const struct parser *parser)
{
    if (parser->reads_replies) {
        const struct http_reply *reply = &parser->reply;
        say(trace, "%d 1.%d %s", reply->status, reply->version_minor,
            reply->keep_alive ? "keep" : "close");
        say_fields(trace, reply->fields, reply->field_count);
        say_body(trace, parser, reply->body);
        say(trace, "\n");
        return;
    }
    const struct http_request *request = &parser->request;
    struct slice path = request->path;
    say(trace, "%s%.*s ", request->method == HTTP_METHOD_UNKNOWN ? "?" : "",
        (int)request->method_text.length, request->method_text.at);
    if (path.length > 64) {
        say(trace, "%zu bytes", path.length);
    } else {
        say(trace, "%.*s", (int)path.length, path.at);
    }
    if (request->query.at != NULL) {
        say(trace, "?%.*s", (int)request->query.length, request->query.at);
    }
    say(trace, " 1.%d %s%s host=%.*s", request->version_minor,
        request->keep_alive ? "keep" : "close", request->expect_continue ? " expect" : "",
        (int)request->host.length, request->host.at);
    say_fields(trace, request->fields, request->field_count);
    say_body(trace, parser, request->body);
    say(trace, "\n");
}

static size_t piece_length(struct parse_cut *cut, size_t at, size_t left)
{
    size_t length = left;
    if (cut->step > 0) {
        length = cut->step;
    } else if (cut->random > 0) {
        size_t most = parse_random(&cut->random) % 8 == 0 ? 600 : 12;
        length = 1 + (size_t)(parse_random(&cut->random) % most);
    } else if (at < cut->first) {
        length = cut->first - at;
    } else if (at < cut->second) {
        length = cut->second - at;
    }
    return length < left ? length : left;
}

/* Feed one piece to its end; false after a refusal. */
static bool feed_piece(struct parse_trace *trace, const struct parse_setup *setup,
                       struct parser *parser, struct slice piece)
{
    bool more = true;
    while (more) {
        size_t used = 0;
        enum parser_event event = parser_feed(parser, piece, &used);
        assert_in_range(used, 0, piece.length);
        piece.at += used;
        piece.length -= used;
        trace->consumed += used;
        if (parser->arena->bytes_total > trace->arena_peak) {
            trace->arena_peak = parser->arena->bytes_total;
        }
        switch (event) {
        case PARSER_MORE:
            assert_int_equal(piece.length, 0);
            more = false;
            break;
        case PARSER_HEAD:
            say(trace, "head\n");
            parser->keep_body = !setup->drop_body;
            break;
        case PARSER_MESSAGE:
            say_message(trace, parser);
            parser_next(parser);
            arena_reset(parser->arena);
            break;
        case PARSER_REFUSED:
            trace->refused = parser->refusal.status;
            trace->message = parser->refusal.message;
            say(trace, "refused %d\n", parser->refusal.status);
            /* It stays refused. */
            assert_int_equal(parser_feed(parser, SLICE("GET"), &used), PARSER_REFUSED);
            assert_int_equal(used, 0);
            assert_int_equal(parser_finish(parser), PARSER_REFUSED);
            return false;
        }
    }
    return true;
}

static void finish(struct parse_trace *trace, const struct parse_setup *setup,
                   struct parser *parser)
{
    if (!setup->finish) {
        if (parser->started) {
            say(trace, "unfinished\n");
        }
        return;
    }
    switch (parser_finish(parser)) {
    case PARSER_MESSAGE:
        say_message(trace, parser);
        break;
    case PARSER_REFUSED:
        say(trace, "finish refused %d\n", parser->refusal.status);
        break;
    case PARSER_MORE:
        say(trace, "finish\n");
        break;
    case PARSER_HEAD:
        fail_msg("HEAD at the end");
    }
}

void parse_run(struct parse_trace *trace, const struct parse_setup *setup, struct slice input,
               struct parse_cut cut)
{
    static _Alignas(16) char first[FIRST_BLOCK];
    struct arena arena;
    struct parser parser;
    trace->length = 0;
    trace->text[0] = '\0';
    trace->refused = 0;
    trace->message = "";
    trace->consumed = 0;
    trace->arena_peak = 0;
    arena_init(&arena, first, sizeof(first), setup->arena_bytes_max);
    if (setup->replies) {
        parser_init_replies(&parser, &setup->limits, &arena);
        if (setup->answers_head) {
            parser_expect_no_body(&parser);
        }
    } else {
        parser_init_requests(&parser, &setup->limits, &arena);
    }
    char *guard = guard_page();
    size_t at = 0;
    bool alive = true;
    while (alive && at < input.length) {
        size_t length = piece_length(&cut, at, input.length - at);
        assert_true(length <= PIECE_MAX);
        struct slice piece = {.at = guard - length, .length = length};
        memcpy(guard - length, input.at + at, length);
        alive = feed_piece(trace, setup, &parser, piece);
        memset(guard - length, '!', length);
        at += length;
    }
    if (alive) {
        finish(trace, setup, &parser);
    }
    arena_reset(&arena);
}

static void expect_trace(const struct parse_trace *trace, const char *name, const char *cut_name,
                         const char *expected)
{
    if (strcmp(trace->text, expected) != 0) {
        fail_msg("%s, %s:\nexpected\n%s\ngot\n%s(%s)", name, cut_name, expected, trace->text,
                 trace->message);
    }
}

void parse_check(const struct parse_setup *setup, const char *name, struct slice input,
                 const char *expected)
{
    static struct parse_trace trace;
    char cut_name[64];
    parse_run(&trace, setup, input, (struct parse_cut){.step = 0});
    expect_trace(&trace, name, "whole", expected);
    parse_run(&trace, setup, input, (struct parse_cut){.step = 1});
    expect_trace(&trace, name, "byte by byte", expected);
    for (uint64_t seed = 1; seed <= 5; seed++) {
        parse_run(&trace, setup, input, (struct parse_cut){.random = seed * 7919});
        snprintf(cut_name, sizeof(cut_name), "random cut %llu", (unsigned long long)seed);
        expect_trace(&trace, name, cut_name, expected);
    }
    if (input.length > PAIRS_LENGTH_MAX) {
        return;
    }
    for (size_t first = 1; first < input.length; first++) {
        for (size_t second = first; second < input.length; second++) {
            parse_run(&trace, setup, input, (struct parse_cut){.first = first, .second = second});
            snprintf(cut_name, sizeof(cut_name), "cut at %zu and %zu", first, second);
            expect_trace(&trace, name, cut_name, expected);
        }
    }
}
