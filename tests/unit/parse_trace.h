/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parse_trace.h - runs a parser over an input cut into pieces and writes down what
 * it says, so that two ways of cutting can be compared as strings. Every piece ends
 * right before a PROT_NONE page, and is overwritten once it was fed.
 *
 *   head                                     the event PARSER_HEAD
 *   GET /a?b 1.1 keep host=h [A=1][B=2]      a request; [body=...] where it was kept
 *   200 1.1 close [A=1] body=...             a reply
 *   refused 400                              nothing follows
 *   unfinished                               the input ended within a message
 */
#ifndef TEST_PARSE_TRACE_H
#define TEST_PARSE_TRACE_H

#include "http/parser.h"

struct parse_setup {
    bool replies;
    bool answers_head; /* the first reply answers a HEAD */
    bool drop_body;    /* do not keep a request's body */
    bool finish;       /* the peer finishes at the end of the input */
    struct parser_limits limits;
    size_t arena_bytes_max;
};

/* How an input is cut: into pieces of step bytes, or of random size, or at two places. */
struct parse_cut {
    size_t step;     /* 0: not used */
    uint64_t random; /* seed; 0: not used */
    size_t first;
    size_t second;
};

struct parse_trace {
    char text[1 << 16];
    size_t length;
    int refused;         /* status, or 0 */
    const char *message; /* of the refusal */
    size_t consumed;     /* bytes fed before the refusal, or all */
    size_t arena_peak;   /* most bytes that the arena held */
};

/* A setup with the server's default limits. */
struct parse_setup parse_setup_default(void);

/* parse_run - parse the whole input, and fill trace. */
void parse_run(struct parse_trace *trace, const struct parse_setup *setup, struct slice input,
               struct parse_cut cut);

/*
 * parse_check - run the input whole, byte by byte, cut at random and, if it is short,
 * at every two places; all must give expected.
 */
void parse_check(const struct parse_setup *setup, const char *name, struct slice input,
                 const char *expected);

/* parse_random - the next number of a xorshift generator. */
uint64_t parse_random(uint64_t *state);

#endif
