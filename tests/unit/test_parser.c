/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property: a sequence of requests is understood or refused alike, however it is cut
 * into pieces, within the limits while bytes come, and without reading one byte more.
 *
 * Method: a table of inputs with what must come of each, run whole, byte by byte, cut
 * at every two places and at random, each piece in front of a PROT_NONE page; then
 * generated inputs around each limit; then mutated ones, of which only that all ways
 * of cutting agree is known.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "fiber_kit.h"
#include "parse_trace.h"
#include "parser_cases.h"

static void check_all(const struct parser_case *cases, size_t count)
{
    struct parse_setup setup = parse_setup_default();
    for (size_t i = 0; i < count; i++) {
        parse_check(&setup, cases[i].name, cases[i].input, cases[i].expected);
    }
}

static void test_valid(void **state)
{
    (void)state;
    check_all(valid_cases, sizeof(valid_cases) / sizeof(valid_cases[0]));
}

static void test_refused(void **state)
{
    (void)state;
    check_all(refused_cases, sizeof(refused_cases) / sizeof(refused_cases[0]));
    check_all(refused_body_cases, sizeof(refused_body_cases) / sizeof(refused_body_cases[0]));
}

static void test_drops_body_that_nobody_wants(void **state)
{
    (void)state;
    struct parse_setup setup = parse_setup_default();
    setup.drop_body = true;
    parse_check(
        &setup, "dropped",
        SLICE("POST / HTTP/1.1\r\n" H "Content-Length: 5\r\n\r\nhelloGET / HTTP/1.1\r\n" H "\r\n"),
        "head\nPOST / 1.1 keep host=h [Host=h] [Content-Length=5] 5\nGET / 1.1 keep host=h "
        "[Host=h]\n");
}

static void test_end_of_input(void **state)
{
    (void)state;
    struct parse_setup setup = parse_setup_default();
    setup.finish = true;
    parse_check(&setup, "nothing", SLICE(""), "finish\n");
    parse_check(&setup, "empty line", SLICE("\r\n\r"), "finish\n");
    parse_check(&setup, "between", SLICE("GET / HTTP/1.0\r\n\r\n"),
                "GET / 1.0 close host=\nfinish\n");
    parse_check(&setup, "in a head", SLICE("GET / HT"), "finish refused 400\n");
    parse_check(&setup, "in a body", SLICE("POST / HTTP/1.0\r\nContent-Length: 2\r\n\r\na"),
                "head\nfinish refused 400\n");
}

/* ------------------------------------------------------------------------ the limits */

struct builder {
    char *text;
    size_t length;
    size_t capacity;
};

static void add(struct builder *builder, const char *text, size_t times)
{
    size_t length = strlen(text);
    if (builder->length + length * times >= builder->capacity) {
        builder->capacity = (builder->length + length * times) * 2 + 1;
        builder->text = realloc(builder->text, builder->capacity);
        assert_non_null(builder->text);
    }
    for (size_t i = 0; i < times; i++) {
        memcpy(builder->text + builder->length, text, length);
        builder->length += length;
    }
}

static struct slice built(const struct builder *builder)
{
    return (struct slice){.at = builder->text, .length = builder->length};
}

static void test_target_limit(void **state)
{
    (void)state;
    struct parse_setup setup = parse_setup_default();
    for (size_t length = 7999; length <= 8001; length++) {
        struct builder b = {.text = NULL};
        char expected[100] = "refused 414\n";
        add(&b, "GET /", 1);
        add(&b, "a", length - 1);
        add(&b, " HTTP/1.1\r\n" H "\r\n", 1);
        if (length <= HTTP_TARGET_MAX) {
            snprintf(expected, sizeof(expected), "GET %zu bytes 1.1 keep host=h [Host=h]\n",
                     length);
        }
        parse_check(&setup, "target", built(&b), expected);
        free(b.text);
    }
}

static void test_million_character_target(void **state)
{
    (void)state;
    static struct parse_trace trace;
    struct parse_setup setup = parse_setup_default();
    struct builder b = {.text = NULL};
    add(&b, "GET /", 1);
    add(&b, "a", 1000000);
    add(&b, "\x01 HTTP/1.1\r\n" H "\r\n", 1);
    parse_check(&setup, "million", built(&b), "refused 414\n");
    parse_run(&trace, &setup, built(&b), (struct parse_cut){.step = 0});
    assert_true(trace.consumed <= 8192);
    assert_true(trace.arena_peak <= 65536);
    /* A bad byte right behind the limit makes no difference to how it is cut. */
    b.length = 0;
    add(&b, "GET /", 1);
    add(&b, "a", 8010);
    add(&b, "\x01", 1);
    parse_check(&setup, "bad byte behind", built(&b), "refused 414\n");
    free(b.text);
}

static void test_head_limit(void **state)
{
    (void)state;
    struct parse_setup setup = parse_setup_default();
    for (size_t limit = 40; limit <= 8192; limit = limit * 5 + 3) {
        setup.limits.head_bytes_max = limit;
        for (size_t length = limit - 1; length <= limit + 1; length++) {
            struct builder b = {.text = NULL};
            add(&b, "GET / HTTP/1.1\r\n" H "A: ", 1);
            size_t value = length - b.length - 4;
            add(&b, "x", value);
            add(&b, "\r\n\r\n", 1);
            assert_int_equal(b.length, length);
            static struct parse_trace whole;
            parse_run(&whole, &setup, built(&b), (struct parse_cut){.step = 0});
            assert_int_equal(whole.refused, length <= limit ? 0 : 431);
            parse_check(&setup, "head", built(&b), whole.text);
            free(b.text);
        }
    }
    setup.limits.head_bytes_max = 40;
    parse_check(&setup, "long line",
                SLICE("GET /aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa HTTP/1.1\r\n" H "\r\n"),
                "refused 414\n");
}

static void test_field_limit(void **state)
{
    (void)state;
    struct parse_setup setup = parse_setup_default();
    for (size_t count = HTTP_FIELDS_MAX - 1; count <= HTTP_FIELDS_MAX + 1; count++) {
        struct builder b = {.text = NULL};
        char expected[200] = "refused 431\n";
        add(&b, "GET / HTTP/1.1\r\n" H, 1);
        add(&b, "A: b\r\n", count - 1);
        add(&b, "\r\n", 1);
        if (count <= HTTP_FIELDS_MAX) {
            snprintf(expected, sizeof(expected),
                     "GET / 1.1 keep host=h [Host=h] [A=b] [A=b] [A=b] [A=b] [A=b] [A=b] [A=b] and "
                     "%zu more\n",
                     count - 8);
        }
        parse_check(&setup, "fields", built(&b), expected);
        free(b.text);
    }
}

/* Fields are found again after the head has moved into larger blocks. */
static void test_growing_head(void **state)
{
    (void)state;
    struct parse_setup setup = parse_setup_default();
    struct builder b = {.text = NULL};
    struct builder expected = {.text = NULL};
    add(&b, "GET /path?query HTTP/1.1\r\n" H "B: ", 1);
    add(&b, "b", 3000);
    add(&b, "\r\nC: ", 1);
    add(&b, "c", 3000);
    add(&b, "\r\nConnection: close\r\n\r\n", 1);
    add(&expected, "GET /path?query 1.1 close host=h [Host=h] [B=", 1);
    add(&expected, "b", 3000);
    add(&expected, "] [C=", 1);
    add(&expected, "c", 3000);
    add(&expected, "] [Connection=close]\n", 1);
    add(&expected, "", 1);
    expected.text[expected.length] = '\0';
    parse_check(&setup, "growing", built(&b), expected.text);
    free(b.text);
    free(expected.text);
}

/* The answer to a refused request names its path, once the request line is known to be sound. */
static void test_refused_path(void **state)
{
    (void)state;
    static const struct {
        const char *input, *path;
    } refused[] = {
        {"GET /a?b HTTP/1.1\r\n\r\n", "/a"},
        {"GET /a HTTP/2.0\r\n", "/a"},
        {"GET /a HTTP/1.1\r\nHost : h\r\n", "/a"},
        {"GET /a b HTTP/1.1\r\n", ""},
        {"\r\r", ""},
    };
    struct parse_setup setup = parse_setup_default();
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        static _Alignas(16) char memory[2048];
        struct arena arena;
        struct parser parser;
        size_t used;
        arena_init(&arena, memory, sizeof(memory), sizeof(memory));
        parser_init_requests(&parser, &setup.limits, &arena);
        assert_int_equal(parser_feed(&parser, slice_of(refused[i].input), &used), PARSER_REFUSED);
        char path[16] = "";
        strncat(path, parser.request.path.at == NULL ? "" : parser.request.path.at,
                parser.request.path.length);
        assert_string_equal(path, refused[i].path);
    }
}

static void test_body_limit(void **state)
{
    (void)state;
    struct parse_setup setup = parse_setup_default();
    setup.limits.body_bytes_max = 10;
    parse_check(&setup, "at the limit",
                SLICE("POST / HTTP/1.0\r\nContent-Length: 10\r\n\r\n0123456789"),
                "head\nPOST / 1.0 close host= [Content-Length=10] 10 body=0123456789\n");
    parse_check(&setup, "over the limit",
                SLICE("POST / HTTP/1.0\r\nContent-Length: 11\r\n\r\n0123456789a"), "refused 413\n");
    parse_check(
        &setup, "chunks at the limit", SLICE(CHUNKED "5\r\n01234\r\n5\r\n56789\r\n0\r\n\r\n"),
        "head\nPOST / 1.1 keep host=h [Host=h] [Transfer-Encoding=chunked] 10 body=0123456789\n");
    parse_check(&setup, "chunks over the limit",
                SLICE(CHUNKED "5\r\n01234\r\n6\r\n567890\r\n0\r\n\r\n"), "head\nrefused 413\n");
}

static void test_large_body(void **state)
{
    (void)state;
    struct parse_setup setup = parse_setup_default();
    struct builder b = {.text = NULL};
    add(&b, "POST / HTTP/1.0\r\nContent-Length: 1048576\r\n\r\n", 1);
    add(&b, "x", 1048576);
    parse_check(
        &setup, "1 MB", built(&b),
        "head\nPOST / 1.0 close host= [Content-Length=1048576] 1048576 body=1048576 bytes\n");
    setup.arena_bytes_max = 100000;
    parse_check(&setup, "no memory for it", built(&b), "head\nrefused 503\n");
    setup.drop_body = true;
    parse_check(&setup, "no memory needed", built(&b),
                "head\nPOST / 1.0 close host= [Content-Length=1048576] 1048576\n");
    free(b.text);
}

/* Each stretch between data has 32 bytes free; what exceeds them counts against 8192. */
static void test_chunk_framing_limit(void **state)
{
    (void)state;
    struct parse_setup setup = parse_setup_default();
    static const struct {
        const char *before, *filler, *after;
        size_t free_bytes; /* of the 32, less what before and after take of them */
    } kinds[] = {
        {"1;", "e", "\r\na\r\n0\r\n\r\n", 32 - 4},
        {"1;e=\"", "v", "\"\r\na\r\n0\r\n\r\n", 32 - 8},
        {"", "0", "1\r\na\r\n0\r\n\r\n", 32 - 3},
        {"0\r\nA: ", "t", "\r\n\r\n", 32 - 7},
    };
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        for (size_t excess = 8191; excess <= 8193; excess++) {
            struct builder b = {.text = NULL};
            add(&b, CHUNKED, 1);
            add(&b, kinds[i].before, 1);
            add(&b, kinds[i].filler, kinds[i].free_bytes + excess);
            add(&b, kinds[i].after, 1);
            static struct parse_trace whole;
            parse_run(&whole, &setup, built(&b), (struct parse_cut){.step = 0});
            parse_check(&setup, "framing", built(&b), whole.text);
            assert_int_equal(whole.refused, excess <= 8192 ? 0 : 431);
            free(b.text);
        }
    }
    struct builder b = {.text = NULL};
    add(&b, CHUNKED, 1);
    add(&b, "1;eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee\r\na\r\n", 1000);
    parse_check(&setup, "extensions of many chunks", built(&b), "head\nrefused 431\n");
    b.length = 0;
    add(&b, CHUNKED, 1);
    add(&b, "00000001\r\na\r\n", 100000);
    add(&b, "0\r\n\r\n", 1);
    parse_check(&setup, "many small chunks", built(&b),
                "head\nPOST / 1.1 keep host=h [Host=h] [Transfer-Encoding=chunked] 100000 "
                "body=100000 bytes\n");
    b.length = 0;
    add(&b, CHUNKED "0\r\n", 1);
    add(&b, "A: b\r\n", 99);
    add(&b, "\r\n", 1);
    parse_check(&setup, "too many trailers", built(&b), "head\nrefused 431\n");
    free(b.text);
}

static void test_no_memory(void **state)
{
    (void)state;
    static struct parse_trace trace;
    struct builder b = {.text = NULL};
    add(&b, "GET / HTTP/1.1\r\n" H "A: ", 1);
    add(&b, "x", 6000);
    add(&b, "\r\n", 1);
    add(&b, "B: c\r\n", 90);
    add(&b, "\r\n", 1);
    struct parse_setup setup = parse_setup_default();
    size_t refused = 0;
    for (size_t bytes = 2048; bytes < 40000; bytes += 997) {
        setup.arena_bytes_max = bytes;
        parse_run(&trace, &setup, built(&b), (struct parse_cut){.step = 0});
        assert_true(trace.refused == 0 || trace.refused == 503);
        refused += trace.refused == 503;
        parse_check(&setup, "memory", built(&b), trace.text);
    }
    assert_in_range(refused, 1, 38);
    free(b.text);
}

/* The next message costs no memory before it has begun. */
static void test_idle_parser_holds_no_memory(void **state)
{
    (void)state;
    struct arena arena;
    struct parser parser;
    struct parse_setup setup = parse_setup_default();
    size_t used;
    arena_init(&arena, NULL, 0, 1 << 16);
    parser_init_requests(&parser, &setup.limits, &arena);
    assert_int_equal(parser_feed(&parser, SLICE("\r\n"), &used), PARSER_MORE);
    assert_int_equal(arena.bytes_total, 0);
    assert_int_equal(parser_feed(&parser, SLICE("GET / HTTP/1.0\r\n\r\n\r\n"), &used),
                     PARSER_MESSAGE);
    assert_int_equal(used, 18);
    assert_int_equal(parser.head_bytes, 18);
    parser_next(&parser);
    arena_reset(&arena);
    assert_int_equal(parser_feed(&parser, SLICE("\r\n"), &used), PARSER_MORE);
    assert_false(parser.started);
    assert_int_equal(arena.bytes_total, 0);
}

/* ------------------------------------------------------------------------- mutations */

/* All ways of cutting agree on what is refused and on every message before it. */
static void test_mutations(void **state)
{
    (void)state;
    static struct parse_trace whole;
    static struct parse_trace cut;
    static const char bytes[] = "\r\n\r\n :;,\t\"#%/?*@[]0159aAfF\x7f\x80";
    struct parse_setup setup = parse_setup_default();
    setup.limits.body_bytes_max = 40;
    uint64_t seed = 20240607;
    size_t count = sizeof(valid_cases) / sizeof(valid_cases[0]);
    size_t rounds = kit_rounds(100000, 100000, 10000);
    for (size_t round = 0; round < rounds; round++) {
        uint64_t round_seed = seed;
        const struct slice *from = &valid_cases[parse_random(&seed) % count].input;
        char text[1024];
        size_t length = from->length;
        assert_true(length < sizeof(text));
        memcpy(text, from->at, length);
        size_t changes = 1 + (size_t)(parse_random(&seed) % 3);
        for (size_t i = 0; i < changes && length > 0; i++) {
            size_t at = (size_t)(parse_random(&seed) % length);
            char c = bytes[parse_random(&seed) % sizeof(bytes)];
            switch (parse_random(&seed) % 3) {
            case 0:
                text[at] = c;
                break;
            case 1:
                memmove(text + at, text + at + 1, length - at - 1);
                length--;
                break;
            default:
                memmove(text + at + 1, text + at, length - at);
                text[at] = c;
                length++;
                break;
            }
        }
        struct slice input = {.at = text, .length = length};
        parse_run(&whole, &setup, input, (struct parse_cut){.step = 0});
        for (int way = 0; way < 2; way++) {
            parse_run(&cut, &setup, input,
                      (struct parse_cut){.step = way == 0, .random = seed | 1});
            if (strcmp(whole.text, cut.text) != 0) {
                fail_msg("seed %llu, round %zu: %.*s\nwhole: %s (%s)\ncut: %s (%s)",
                         (unsigned long long)round_seed, round, (int)length, text, whole.text,
                         whole.message, cut.text, cut.message);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_valid),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_drops_body_that_nobody_wants),
        cmocka_unit_test(test_end_of_input),
        cmocka_unit_test(test_target_limit),
        cmocka_unit_test(test_million_character_target),
        cmocka_unit_test(test_head_limit),
        cmocka_unit_test(test_field_limit),
        cmocka_unit_test(test_growing_head),
        cmocka_unit_test(test_refused_path),
        cmocka_unit_test(test_body_limit),
        cmocka_unit_test(test_large_body),
        cmocka_unit_test(test_chunk_framing_limit),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_idle_parser_holds_no_memory),
        cmocka_unit_test(test_mutations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
