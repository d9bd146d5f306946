/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace.c - what happened: a hash over every event, the events themselves on
 * request, and figures for the report.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

static struct sim_report *report;
static bool prints;

void trace_into(struct sim_report *into)
{
    const char *wanted = getenv("SIM_TRACE");
    report = into;
    report->hash = UINT64_C(0xcbf29ce484222325);
    prints = wanted != NULL && strcmp(wanted, "1") == 0;
    if (prints) {
        (void)setvbuf(stdout, NULL, _IOLBF, 0); /* what comes before an abort is seen */
    }
}

void sim_count(const char *what)
{
    struct sim_figure *figure = report->figures;
    while (figure->name[0] != '\0' && strcmp(figure->name, what) != 0) {
        figure++;
        if (figure == report->figures + SIM_FIGURES) {
            abort();
        }
    }
    if (figure->name[0] == '\0') {
        snprintf(figure->name, sizeof(figure->name), "%s", what);
    }
    figure->count++;
}

/* mix - FNV-1a, a word at a time. */
static void mix(uint64_t value)
{
    report->hash = (report->hash ^ value) * UINT64_C(0x100000001b3);
    report->hash ^= report->hash >> 29;
}

void sim_note(const char *what, uint64_t a, uint64_t b, uint64_t c)
{
    for (const char *at = what; *at != '\0'; at++) {
        mix((unsigned char)*at);
    }
    mix(a);
    mix(b);
    mix(c);
    report->events++;
    if (what[0] == '!') {
        sim_count(what);
    }
    if (prints) {
        printf("%12" PRIu64 " %-24s %" PRIx64 " %" PRId64 " %" PRIx64 "\n",
               kernel_now_ns() % (1000000 * NS_PER_S), what, a, (int64_t)b, c);
    }
}
