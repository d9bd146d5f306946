/* SPDX-License-Identifier: Apache-2.0 */
/*
 * differ.c - see differ.h. parse_trace.c, the unit tests' own, feeds the parser: every
 * piece ends before a page that must not be read, and is overwritten afterwards.
 */
#include "differ.h"

#include "fuzz.h"

struct parse_setup differ_setup(const uint8_t *data)
{
    static const size_t head_bytes[] = {8192, 8192, 600, 64};
    static const uint64_t body_bytes[] = {1 << 20, 1000, 5, 0};
    static const size_t arena_bytes[] = {1 << 22, 1 << 22, 1 << 22, 4096};
    struct parse_setup setup = parse_setup_default();
    setup.limits.head_bytes_max = head_bytes[data[0] & 3];
    setup.limits.body_bytes_max = body_bytes[(data[0] >> 2) & 3];
    setup.arena_bytes_max = arena_bytes[(data[0] >> 4) & 3];
    setup.finish = (data[1] & 1) != 0;
    setup.drop_body = (data[1] & 2) != 0;
    setup.answers_head = (data[1] & 4) != 0;
    return setup;
}

/* 502: of a reply, whatever is wrong with it. */
static bool for_its_form(int refused)
{
    return refused == 400 || refused == 502;
}

static bool for_room(int refused)
{
    return refused == 413 || refused == 431 || refused == 503;
}

/*
 * Text that is malformed and too much at that, or too much in two ways, is refused for
 * whichever the reader meets first: a field has its place in the table from its first byte on that has come, and the
 * limit of a chunk's extensions is looked at after each piece.
 */
static bool refused_for_either(const struct parse_trace *whole, const struct parse_trace *cut)
{
    if (!(for_its_form(whole->refused) || for_room(whole->refused)) ||
        !(for_its_form(cut->refused) || for_room(cut->refused))) {
        return false;
    }
    const char *told = strstr(whole->text, "refused ");
    const char *told_cut = strstr(cut->text, "refused ");
    size_t before = told != NULL ? (size_t)(told - whole->text) : 0;
    return told != NULL && told_cut != NULL && before == (size_t)(told_cut - cut->text) &&
           memcmp(whole->text, cut->text, before) == 0;
}

static void compare(const struct parse_trace *whole, const struct parse_trace *cut, const char *how)
{
    if (strcmp(whole->text, cut->text) != 0 && !refused_for_either(whole, cut)) {
        fprintf(stderr, "whole:\n%s(%s)\n%s:\n%s(%s)\n", whole->text, whole->message, how,
                cut->text, cut->message);
        abort();
    }
}

void differ_run(const struct parse_setup *setup, struct slice text, uint64_t seed)
{
    static struct parse_trace whole;
    static struct parse_trace cut;
    parse_run(&whole, setup, text, (struct parse_cut){.step = 0});
    parse_run(&cut, setup, text, (struct parse_cut){.step = 1});
    compare(&whole, &cut, "byte by byte");
    parse_run(&cut, setup, text, (struct parse_cut){.random = seed + 1});
    compare(&whole, &cut, "cut at random");
}
