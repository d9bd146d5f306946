/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property: a client reads replies to their last byte and not one further, whatever
 * their framing and however they are cut, and takes nonsense for a 502.
 *
 * Method: as in test_parser.c: a table of inputs with what must come of each, run
 * whole, byte by byte, cut at every two places and at random, before a PROT_NONE page.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "parse_trace.h"

struct reply_case {
    const char *name;
    struct slice input;
    const char *expected;
};

#define CASE(name_, input_, expected_)                                                             \
    {                                                                                              \
        .name = (name_), .input = {(input_), sizeof(input_) - 1}, .expected = (expected_)          \
    }

/* The peer finishes at the end of each. */
static const struct reply_case cases[] = {
    CASE("nothing", "", "finish\n"),
    CASE("length", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
         "head\n200 1.1 keep [Content-Length=5] 5 body=hello\nfinish\n"),
    CASE("no reason", "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n",
         "200 1.1 keep [Content-Length=0]\nfinish\n"),
    CASE("empty reason", "HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n",
         "200 1.1 keep [Content-Length=0]\nfinish\n"),
    CASE("two on one connection",
         "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\naHTTP/1.1 404 No\r\nContent-Length: "
         "1\r\n\r\nb",
         "head\n200 1.1 keep [Content-Length=1] 1 body=a\nhead\n404 1.1 keep [Content-Length=1] 1 "
         "body=b\nfinish\n"),
    CASE("chunked",
         "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x\r\nde\r\n0\r\nT: "
         "t\r\n\r\n",
         "head\n200 1.1 keep [Transfer-Encoding=chunked] 5 body=abcde\nfinish\n"),
    CASE("close in a trailer",
         "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nConnection: close\r\n\r\n",
         "head\n200 1.1 close [Transfer-Encoding=chunked]\nfinish\n"),
    CASE("until the end", "HTTP/1.1 200 OK\r\n\r\nhello", "head\n200 1.1 close 5 body=hello\n"),
    CASE("until the end, empty", "HTTP/1.0 200 OK\r\n\r\n", "head\n200 1.0 close\n"),
    CASE("close", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\na",
         "head\n200 1.1 close [Connection=close] [Content-Length=1] 1 body=a\nfinish\n"),
    CASE("HTTP/1.0", "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\na",
         "head\n200 1.0 close [Content-Length=1] 1 body=a\nfinish\n"),
    CASE("HTTP/1.0 that persists",
         "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\na",
         "head\n200 1.0 keep [Connection=keep-alive] [Content-Length=1] 1 body=a\nfinish\n"),
    CASE("204", "HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
         "204 1.1 keep\n200 1.1 keep [Content-Length=0]\nfinish\n"),
    CASE("304 with a length",
         "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: "
         "0\r\n\r\n",
         "304 1.1 keep [Content-Length=9]\n200 1.1 keep [Content-Length=0]\nfinish\n"),
    CASE("interim replies",
         "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 199 "
         "X\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na",
         "head\n200 1.1 keep [Content-Length=1] 1 body=a\nfinish\n"),
    CASE("interim reply alone", "HTTP/1.1 100 Continue\r\n\r\n", "finish refused 502\n"),
    CASE("Upgrade is only offered",
         "HTTP/1.1 200 OK\r\nConnection: upgrade\r\nUpgrade: h2c\r\nContent-Length: 1\r\n\r\na",
         "head\n200 1.1 keep [Connection=upgrade] [Upgrade=h2c] [Content-Length=1] 1 "
         "body=a\nfinish\n"),
    CASE("cut short in the head", "HTTP/1.1 200 OK\r\nContent-Le", "finish refused 502\n"),
    CASE("cut short in the body", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell",
         "head\nfinish refused 502\n"),
    CASE("cut short in a chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
         "head\nfinish refused 502\n"),
    CASE("cut short before the last chunk",
         "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n",
         "head\nfinish refused 502\n"),
    /* nonsense */
    CASE("other protocol", "SSH-2.0-OpenSSH_9.2\r\n", "refused 502\n"),
    CASE("request", "GET / HTTP/1.1\r\nHost: h\r\n\r\n", "refused 502\n"),
    CASE("empty line in front", "\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
         "refused 502\n"),
    CASE("HTTP/2.0", "HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n", "refused 502\n"),
    CASE("HTTP/0.9", "HTTP/0.9 200 OK\r\nContent-Length: 0\r\n\r\n", "refused 502\n"),
    CASE("HTTP/1.2", "HTTP/1.2 200 OK\r\nContent-Length: 0\r\n\r\n", "refused 502\n"),
    CASE("RTSP", "RTSP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", "refused 502\n"),
    CASE("two digits", "HTTP/1.1 20 OK\r\nContent-Length: 0\r\n\r\n", "refused 502\n"),
    CASE("four digits", "HTTP/1.1 2000 OK\r\nContent-Length: 0\r\n\r\n", "refused 502\n"),
    CASE("status below 100", "HTTP/1.1 099 X\r\nContent-Length: 0\r\n\r\n", "refused 502\n"),
    CASE("switched protocols", "HTTP/1.1 101 X\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n",
         "refused 502\n"),
    CASE("CR CR ends no line", "HTTP/1.1 200 OK\r\rContent-Length: 1\r\n\r\na", "refused 502\n"),
    CASE("NUL in the reason", "HTTP/1.1 200 O\0K\r\nContent-Length: 0\r\n\r\n", "refused 502\n"),
    CASE("escape in the reason", "HTTP/1.1 200 O\x1b[K\r\nContent-Length: 0\r\n\r\n",
         "refused 502\n"),
    CASE("DEL in the reason", "HTTP/1.1 200 O\x7fK\r\nContent-Length: 0\r\n\r\n", "refused 502\n"),
    CASE("tab and high bytes in the reason",
         "HTTP/1.1 200 A\t\x80\xff\r\nContent-Length: 0\r\n\r\n",
         "200 1.1 keep [Content-Length=0]\nfinish\n"),
    CASE("LF ends no line", "HTTP/1.1 200 OK\nContent-Length: 1\r\n\r\na", "refused 502\n"),
    CASE("length and chunked",
         "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
         "refused 502\n"),
    CASE("chunked and length",
         "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n",
         "refused 502\n"),
    CASE("two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
         "refused 502\n"),
    CASE("gzip", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", "refused 502\n"),
    CASE("chunked twice", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\n",
         "refused 502\n"),
    CASE("gzip, and chunked in a field of its own",
         "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n",
         "refused 502\n"),
    CASE("chunked in HTTP/1.0", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
         "refused 502\n"),
    CASE("body over the limit", "HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n", "refused 502\n"),
    CASE("chunk over the limit", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n",
         "head\nrefused 502\n"),
    CASE(
        "coding in a trailer",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nTransfer-Encoding: gzip\r\n\r\n",
        "head\nrefused 502\n"),
    CASE("bad chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
         "head\nrefused 502\n"),
};

static struct parse_setup client_setup(void)
{
    struct parse_setup setup = parse_setup_default();
    setup.replies = true;
    setup.finish = true;
    setup.limits = (struct parser_limits){.head_bytes_max = 16384, .body_bytes_max = 1000};
    return setup;
}

static void test_cases(void **state)
{
    (void)state;
    struct parse_setup setup = client_setup();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        parse_check(&setup, cases[i].name, cases[i].input, cases[i].expected);
    }
}

static void test_answer_to_head(void **state)
{
    (void)state;
    struct parse_setup setup = client_setup();
    setup.answers_head = true;
    parse_check(&setup, "length",
                SLICE("HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\nHTTP/1.1 200 "
                      "OK\r\nContent-Length: 1\r\n\r\na"),
                "200 1.1 keep [Content-Length=99999]\nhead\n200 1.1 keep [Content-Length=1] 1 "
                "body=a\nfinish\n");
    parse_check(&setup, "chunked", SLICE("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
                "200 1.1 keep [Transfer-Encoding=chunked]\nfinish\n");
    parse_check(&setup, "behind an interim reply",
                SLICE("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"),
                "200 1.1 keep\nfinish\n");
}

static void test_endless_interim_replies(void **state)
{
    (void)state;
    struct parse_setup setup = client_setup();
    static char text[17 * 25];
    for (size_t i = 0; i < 17; i++) {
        memcpy(text + i * 25, "HTTP/1.1 100 Continue\r\n\r\n", 25);
    }
    parse_check(&setup, "17", (struct slice){.at = text, .length = sizeof(text)}, "refused 502\n");
    parse_check(&setup, "16", (struct slice){.at = text, .length = sizeof(text) - 25},
                "finish refused 502\n");
}

static void test_limits(void **state)
{
    (void)state;
    struct parse_setup setup = client_setup();
    static char text[20000];
    int head = snprintf(text, sizeof(text), "HTTP/1.1 200 OK\r\nA: ");
    memset(text + head, 'a', sizeof(text) - (size_t)head);
    parse_check(&setup, "head", (struct slice){.at = text, .length = sizeof(text)},
                "refused 502\n");
    head = snprintf(text, sizeof(text), "HTTP/1.1 200 OK\r\n\r\n");
    parse_check(&setup, "body", (struct slice){.at = text, .length = (size_t)head + 1001},
                "head\nrefused 502\n");
    parse_check(&setup, "body at the limit",
                (struct slice){.at = text, .length = (size_t)head + 1000},
                "head\n200 1.1 close 1000 body=1000 bytes\n");
    setup.arena_bytes_max = 2048;
    setup.limits.body_bytes_max = 100000;
    parse_check(&setup, "memory", (struct slice){.at = text, .length = sizeof(text)},
                "head\nrefused 503\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_answer_to_head),
        cmocka_unit_test(test_endless_interim_replies),
        cmocka_unit_test(test_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
