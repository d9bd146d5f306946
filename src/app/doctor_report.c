/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor_report.c - the judged rows as a table for people and as JSON for machines.
 * Pure. Called by doctor.c.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "app/doctor_parts.h"
#include "base/text.h"

#define CELL_BYTES_MAX 512
#define COLUMNS 120
#define GLUE '\x1f' /* a space at which no line ends */

static const char *const grade_names[] = {[DOCTOR_FINE] = "ok",
                                          [DOCTOR_UNSEEN] = "?",
                                          [DOCTOR_WARNING] = "warn",
                                          [DOCTOR_FAILURE] = "FAIL"};
static const char *const grade_ids[] = {[DOCTOR_FINE] = "ok",
                                        [DOCTOR_UNSEEN] = "unknown",
                                        [DOCTOR_WARNING] = "warning",
                                        [DOCTOR_FAILURE] = "failure"};
static const char *const role_ids[] = {
    [RING_NEEDED] = "needed", [RING_FALLBACK] = "optional", [RING_UNUSED] = "unused"};

const char *doctor__unit_name(enum doctor_unit unit)
{
    static const char *const names[] = {[DOCTOR_CONNECTIONS] = "connections",
                                        [DOCTOR_FIBERS] = "fibers",
                                        [DOCTOR_RINGS] = "rings",
                                        [DOCTOR_THREADS] = "threads",
                                        [DOCTOR_WAITING] = "waiting",
                                        [DOCTOR_CALLS] = "to one address",
                                        [DOCTOR_CARRIERS] = "carriers",
                                        [DOCTOR_NOTHING] = ""};
    return names[unit];
}

void doctor__number(char *dst, size_t capacity, enum doctor_kind kind, uint64_t number)
{
    static const char *const sizes[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    if (number == DOCTOR_UNKNOWN || number == DOCTOR_NO_LIMIT) {
        snprintf(dst, capacity, "%s", number == DOCTOR_UNKNOWN ? "unknown" : "unlimited");
        return;
    }
    if (kind == DOCTOR_COUNT) {
        snprintf(dst, capacity, "%" PRIu64, number);
        return;
    }
    if (kind == DOCTOR_MILLI) {
        snprintf(dst, capacity, "%" PRIu64 ".%02" PRIu64, number / 1000, number % 1000 / 10);
        return;
    }
    size_t size = 0;
    uint64_t tenths = number <= UINT64_MAX / 10 ? number * 10 : UINT64_MAX;
    while (tenths >= 10240 && size + 1 < sizeof(sizes) / sizeof(sizes[0])) {
        tenths /= 1024;
        size++;
    }
    if (tenths % 10 == 0) {
        snprintf(dst, capacity, "%" PRIu64 " %s", tenths / 10, sizes[size]);
    } else {
        snprintf(dst, capacity, "%" PRIu64 ".%" PRIu64 " %s", tenths / 10, tenths % 10,
                 sizes[size]);
    }
}

/* ---------------------------------------------------------------- lines */

/* A cell of the table: its text goes over as many lines as its width needs. */
struct cell {
    const char *rest;
    size_t width;
};

/* put_line - the next line of a cell, padded to its width when more stands beside it. */
static void put_line(struct text *text, struct cell *cell, bool pad)
{
    const char *line = cell->rest + strspn(cell->rest, " ");
    size_t length = strcspn(line, "\n");
    if (length > cell->width) {
        length = cell->width;
        for (size_t i = cell->width; i > 0; i--) {
            if (line[i] == ' ') {
                length = i;
                break;
            }
        }
    }
    for (size_t i = 0; i < length; i++) {
        text_put(text, "%c", line[i] == GLUE ? ' ' : line[i]);
    }
    if (pad) {
        text_put(text, "%*s", (int)(cell->width - length + 1), "");
    }
    cell->rest = line + length;
    cell->rest += *cell->rest == '\n' || *cell->rest == ' ';
}

/* put_paragraph - text over the whole width, the lines after the first set in. */
static void put_paragraph(struct text *text, const char *words)
{
    struct cell cell = {.rest = words, .width = COLUMNS};
    put_line(text, &cell, false);
    cell.width = COLUMNS - 2;
    while (*cell.rest != '\0') {
        text_put(text, "\n  ");
        put_line(text, &cell, false);
    }
    text_put(text, "\n");
}

/* ---------------------------------------------------------------- rows */

static const size_t widths[] = {4, 16, 26, 19, COLUMNS - 4 - 16 - 26 - 19 - 4};
#define CELLS (sizeof(widths) / sizeof(widths[0]))

static void put_cells(struct text *text, const char *const texts[CELLS], const char *colour)
{
    struct cell cells[CELLS];
    for (size_t i = 0; i < CELLS; i++) {
        cells[i] = (struct cell){.rest = texts[i], .width = widths[i]};
    }
    for (bool more = true; more;) {
        size_t last = CELLS; /* cells behind the last that has something */
        while (last > 1 && *cells[last - 1].rest == '\0') {
            last--;
        }
        for (size_t i = 0; i < last; i++) {
            bool coloured = i == 0 && colour != NULL && *cells[0].rest != '\0';
            text_put(text, "%s", coloured ? colour : "");
            put_line(text, &cells[i], i + 1 < last);
            text_put(text, "%s", coloured ? "\033[0m" : "");
        }
        text_put(text, "\n");
        more = false;
        for (size_t i = 0; i < CELLS; i++) {
            more = more || *cells[i].rest != '\0';
        }
    }
}

static void format_facts(const struct doctor_row *row, char *dst, size_t capacity)
{
    struct text text = {.dst = dst, .capacity = capacity};
    dst[0] = '\0';
    for (size_t i = 0; i < row->fact_count; i++) {
        const struct doctor_fact *fact = &row->facts[i];
        char number[32];
        doctor__number(number, sizeof(number), fact->kind, fact->number);
        size_t before = text.length;
        text_put(&text, "%s %s", fact->name, fact->kind == DOCTOR_TEXT ? fact->text : number);
        for (size_t at = before; at < text.length && at < capacity; at++) {
            dst[at] = dst[at] == ' ' ? GLUE : dst[at];
        }
        text_put(&text, "%s", i + 1 < row->fact_count ? ", " : "");
    }
}

static void put_row(struct text *text, const struct doctor_row *row, bool colour)
{
    static const char *const colours[] = {[DOCTOR_FINE] = "\033[32m",
                                          [DOCTOR_UNSEEN] = "\033[36m",
                                          [DOCTOR_WARNING] = "\033[33m",
                                          [DOCTOR_FAILURE] = "\033[31m"};
    char facts[CELL_BYTES_MAX], allows[64], lift[CELL_BYTES_MAX], number[32];
    format_facts(row, facts, sizeof(facts));
    allows[0] = '\0';
    if (row->unit != DOCTOR_NOTHING) {
        doctor__number(number, sizeof(number), DOCTOR_COUNT, row->allows);
        bool is_number = doctor__is_known(row->allows);
        snprintf(allows, sizeof(allows), is_number ? "%s %s" : "%s", number,
                 doctor__unit_name(row->unit));
    }
    snprintf(lift, sizeof(lift), row->also[0] != '\0' ? "%s\n%s" : "%s", row->lift, row->also);
    const char *texts[CELLS] = {grade_names[row->grade], row->name, facts, allows, lift};
    put_cells(text, texts, colour ? colours[row->grade] : NULL);
}

static void put_features(struct text *text, const struct doctor_host *host)
{
    char words[2048];
    struct text present = {.dst = words, .capacity = sizeof(words)};
    text_put(&present, "present:");
    for (size_t i = 0; i < host->ring.capability_count; i++) {
        if (host->ring.capabilities[i].present) {
            text_put(&present, " %s", host->ring.capabilities[i].name);
        }
    }
    put_paragraph(text, words);
    for (size_t i = 0; i < host->ring.capability_count; i++) {
        const struct ring_capability *one = &host->ring.capabilities[i];
        if (!one->present) {
            snprintf(words, sizeof(words), "absent: %s (Linux %s): %s", one->name, one->since,
                     one->without != NULL ? one->without : "the server does not start without");
            put_paragraph(text, words);
        }
    }
}

size_t doctor_summary(char *dst, size_t capacity, const struct doctor_report *report)
{
    struct text text = {.dst = dst, .capacity = capacity};
    if (report->host->ring.error < 0) {
        text_put(&text, "cannot run: %s", report->host->refusal);
        return text.length;
    }
    if (report->first_wall == report->row_count) {
        text_put(&text, "first wall: unknown, since this host hides its limits");
        return text.length;
    }
    const struct doctor_row *wall = &report->rows[report->first_wall];
    text_put(&text, "first wall: %s, %s: %" PRIu64 " connections", wall->name, wall->limit,
             wall->allows);
    if (wall->unit == DOCTOR_CONNECTIONS && wall->allows > 1) {
        text_put(&text, " (%" PRIu64 " on server.port)", wall->allows / 2);
    }
    text_put(&text, "; lift with: %s", wall->lift);
    return text.length;
}

size_t doctor_table(char *dst, size_t capacity, const struct doctor_report *report, bool colour)
{
    struct text text = {.dst = dst, .capacity = capacity};
    static const char *const heads[CELLS] = {"", "limit", "value", "allows", "lifted by"};
    char words[1024];
    text_put(&text,
             "ringspun doctor: what this host allows to %u carriers with stacks of %" PRIu64
             " KiB\n\n",
             report->plan.carriers, report->plan.stack_bytes / 1024);
    put_cells(&text, heads, NULL);
    for (size_t i = 0; i < report->row_count; i++) {
        put_row(&text, &report->rows[i], colour);
    }
    text_put(&text, "\n");
    put_features(&text, report->host);
    for (size_t i = 0; i < report->row_count; i++) {
        const struct doctor_row *row = &report->rows[i];
        if (row->grade >= DOCTOR_WARNING) {
            snprintf(words, sizeof(words), "%s: %s: %s", grade_ids[row->grade], row->name,
                     row->why);
            put_paragraph(&text, words);
        }
    }
    (void)doctor_summary(words, sizeof(words), report);
    put_paragraph(&text, words);
    return text.length;
}

/* ---------------------------------------------------------------- JSON */

static void put_key(struct text *text, const char *key, const char *value)
{
    text_put(text, ",\"%s\":", key);
    if (value == NULL || value[0] == '\0') {
        text_put(text, "null");
    } else {
        text_put_json(text, slice_of(value));
    }
}

/* What is unknown is null, what has no limit a string: no number may stand for it. */
static void put_number(struct text *text, uint64_t number)
{
    if (number == DOCTOR_UNKNOWN) {
        text_put(text, "null");
    } else if (number == DOCTOR_NO_LIMIT) {
        text_put(text, "\"unlimited\"");
    } else {
        text_put(text, "%" PRIu64, number);
    }
}

static void put_row_json(struct text *text, const struct doctor_row *row)
{
    text_put(text, "{\"id\":\"%s\"", row->id);
    put_key(text, "name", row->name);
    put_key(text, "grade", grade_ids[row->grade]);
    text_put(text, ",\"facts\":{");
    for (size_t i = 0; i < row->fact_count; i++) {
        const struct doctor_fact *fact = &row->facts[i];
        text_put(text, i > 0 ? "," : "");
        text_put_json(text, slice_of(fact->name));
        text_put(text, ":");
        if (fact->kind == DOCTOR_TEXT) {
            text_put_json(text, slice_of(fact->text));
        } else {
            put_number(text, fact->number);
        }
    }
    text_put(text, "},\"allows\":");
    if (row->unit == DOCTOR_NOTHING) {
        text_put(text, "null");
    } else {
        put_number(text, row->allows);
    }
    put_key(text, "unit", doctor__unit_name(row->unit));
    put_key(text, "lift", row->lift);
    put_key(text, "also", row->also);
    put_key(text, "why", row->why);
    text_put(text, "}");
}

size_t doctor_json(char *dst, size_t capacity, const struct doctor_report *report)
{
    struct text text = {.dst = dst, .capacity = capacity};
    const struct ring_probe *ring = &report->host->ring;
    char summary[1024];
    text_put(&text, "{\"version\":\"%s\"", RINGSPUN_VERSION);
    put_key(&text, "kernel", report->host->kernel);
    text_put(&text, ",\"carriers\":%u,\"stackSize\":%" PRIu64 ",\"limits\":[",
             report->plan.carriers, report->plan.stack_bytes);
    for (size_t i = 0; i < report->row_count; i++) {
        text_put(&text, "%s", i > 0 ? "," : "");
        put_row_json(&text, &report->rows[i]);
    }
    text_put(&text, "],\"features\":[");
    for (size_t i = 0; i < ring->capability_count; i++) {
        const struct ring_capability *one = &ring->capabilities[i];
        text_put(&text, "%s{\"name\":\"%s\",\"since\":\"%s\",\"role\":\"%s\",\"present\":%s}",
                 i > 0 ? "," : "", one->name, one->since, role_ids[one->role],
                 one->present ? "true" : "false");
    }
    text_put(&text, "],\"firstWall\":");
    if (report->first_wall < report->row_count) {
        const struct doctor_row *wall = &report->rows[report->first_wall];
        text_put(&text, "{\"id\":\"%s\",\"connections\":%" PRIu64, wall->id, wall->allows);
        put_key(&text, "limit", wall->limit);
        put_key(&text, "lift", wall->lift);
        text_put(&text, "}");
    } else {
        text_put(&text, "null");
    }
    (void)doctor_summary(summary, sizeof(summary), report);
    put_key(&text, "summary", summary);
    text_put(&text, ",\"exitCode\":%d}\n", report->exit_code);
    return text.length;
}
