/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor_judge.c - facts become rows, in the order in which they are shown; then the
 * lowest. Pure. Called by doctor.c. The rows themselves are in doctor_limits.c and
 * doctor_network.c.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "app/doctor_parts.h"
#include "app/run.h"
#include "base/must.h"

bool doctor__is_known(uint64_t number)
{
    return number != DOCTOR_UNKNOWN && number != DOCTOR_NO_LIMIT;
}

uint64_t doctor__lower_of(uint64_t a, uint64_t b)
{
    if (a == DOCTOR_UNKNOWN || b == DOCTOR_UNKNOWN) {
        return a == DOCTOR_UNKNOWN ? b : a;
    }
    return a < b ? a : b;
}

/* What is left of max, divided by the cost of one; what is not known stays so. */
uint64_t doctor__shares(uint64_t max, uint64_t used, uint64_t cost)
{
    if (!doctor__is_known(max)) {
        return max;
    }
    used = doctor__is_known(used) ? used : 0;
    return max > used ? (max - used) / cost : 0;
}

struct doctor_row *doctor__add_row(struct doctor_report *report, const char *id, const char *name,
                                   enum doctor_unit unit)
{
    must(report->row_count < DOCTOR_ROWS_MAX);
    struct doctor_row *row = &report->rows[report->row_count++];
    *row = (struct doctor_row){.id = id, .name = name, .unit = unit, .allows = DOCTOR_NO_LIMIT};
    return row;
}

void doctor__add_fact(struct doctor_row *row, const char *name, enum doctor_kind kind,
                      uint64_t number)
{
    must(row->fact_count < DOCTOR_FACTS_MAX && kind != DOCTOR_TEXT);
    row->facts[row->fact_count++] =
        (struct doctor_fact){.name = name, .kind = kind, .number = number};
}

void doctor__add_text(struct doctor_row *row, const char *name, const char *text)
{
    must(row->fact_count < DOCTOR_FACTS_MAX);
    row->facts[row->fact_count++] =
        (struct doctor_fact){.name = name, .kind = DOCTOR_TEXT, .text = text};
}

void doctor__complain(struct doctor_row *row, enum doctor_grade grade, const char *format, ...)
{
    if (grade <= row->grade) {
        return; /* the worst is told */
    }
    va_list values;
    va_start(values, format);
    vsnprintf(row->why, sizeof(row->why), format, values);
    va_end(values);
    row->grade = grade;
}

/* ---------------------------------------------------------------- all of them */

static bool binds(const struct doctor_row *row)
{
    return (row->unit == DOCTOR_CONNECTIONS || row->unit == DOCTOR_FIBERS) &&
           doctor__is_known(row->allows);
}

static void grade_all(struct doctor_report *report)
{
    uint64_t asked = report->plan.max_connections;
    /* Who asks for few gets few, and wants no warning of it. */
    uint64_t few = asked > 0 && asked < DOCTOR_FEW ? asked : DOCTOR_FEW;
    report->first_wall = report->row_count;
    for (size_t i = 0; i < report->row_count; i++) {
        struct doctor_row *row = &report->rows[i];
        if (binds(row) && row->allows < few) {
            doctor__complain(row, DOCTOR_WARNING, "fewer than %" PRIu64 " connections fit", few);
        }
        if (row->allows == DOCTOR_UNKNOWN && row->grade == DOCTOR_FINE) {
            row->grade = DOCTOR_UNSEEN;
        }
        if (binds(row) && (report->first_wall == report->row_count ||
                           row->allows < report->rows[report->first_wall].allows)) {
            report->first_wall = i;
        }
        if (row->grade >= DOCTOR_WARNING && report->exit_code == RUN_ENDED) {
            report->exit_code = RUN_FAILED;
        }
    }
    if (report->host->ring.error < 0) {
        report->exit_code = RUN_NO_IO_URING;
    }
}

void doctor_judge(struct doctor_report *report, const struct doctor_host *host,
                  const struct doctor_plan *plan)
{
    *report = (struct doctor_report){.host = host, .plan = *plan, .exit_code = RUN_ENDED};
    doctor__judge_io_uring(report, host);
    doctor__judge_features(report, host);
    doctor__judge_locked(report, host);
    doctor__judge_descriptors(report, host);
    doctor__judge_files(report, host);
    doctor__judge_configuration(report);
    doctor__judge_mappings(report, host);
    doctor__judge_memory(report, host);
    doctor__judge_address_space(report, host);
    doctor__judge_threads(report, host);
    doctor__judge_processors(report, host);
    doctor__judge_queues(report, host);
    doctor__judge_ports(report, host);
    doctor__judge_conntrack(report, host);
    grade_all(report);
}
