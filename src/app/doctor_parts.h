/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor_parts.h - what the doctor's own files share, for app/doctor* only.
 */
#ifndef APP_DOCTOR_PARTS_H
#define APP_DOCTOR_PARTS_H

#include <stdio.h>

#include "app/doctor.h"

/* doctor__read_text - a whole file, at most 1 MiB, with a NUL behind it; "" when it cannot be read. Free it; NULL: no memory. */
char *doctor__read_text(config_read_file *read_file, const char *path);

/* doctor__read_number - the n-th (from 0) number of a file; "max" and -1 are DOCTOR_NO_LIMIT. */
uint64_t doctor__read_number(config_read_file *read_file, const char *path, unsigned n);

/* doctor__find_number - the number behind a key of text such as /proc/meminfo. */
uint64_t doctor__find_number(const char *text, const char *key);

/* doctor__group_read - the cgroup part of the host (version 2 and 1, and both at once). */
void doctor__group_read(struct doctor_host *host, config_read_file *read_file);

/* doctor__is_known - is it a number, and not one of the two words? */
bool doctor__is_known(uint64_t number);

/* doctor__lower_of - the lower of two limits; what is unknown does not count. */
uint64_t doctor__lower_of(uint64_t a, uint64_t b);

/* doctor__shares - what is left of max, divided by the cost of one; what is not known stays so. */
uint64_t doctor__shares(uint64_t max, uint64_t used, uint64_t cost);

/* doctor__add_row - one more, fine and without limit; doctor__add_fact, doctor__add_text - one more figure of it. */
struct doctor_row *doctor__add_row(struct doctor_report *report, const char *id, const char *name,
                                   enum doctor_unit unit);
void doctor__add_fact(struct doctor_row *row, const char *name, enum doctor_kind kind,
                      uint64_t number);
void doctor__add_text(struct doctor_row *row, const char *name, const char *text);

/* doctor__complain - a grade and its reason; of several the worst is told, of equals the first. */
void doctor__complain(struct doctor_row *row, enum doctor_grade grade, const char *format, ...)
    PRINTF_LIKE(3, 4);

/* A field of a row, formatted and cut to its size. */
#define DOCTOR__FILL(field, ...) ((void)snprintf((field), sizeof(field), __VA_ARGS__))

/* One function a row (or two), in doctor_limits.c and doctor_network.c. */
void doctor__judge_io_uring(struct doctor_report *report, const struct doctor_host *host);
void doctor__judge_features(struct doctor_report *report, const struct doctor_host *host);
void doctor__judge_locked(struct doctor_report *report, const struct doctor_host *host);
void doctor__judge_descriptors(struct doctor_report *report, const struct doctor_host *host);
void doctor__judge_files(struct doctor_report *report, const struct doctor_host *host);
void doctor__judge_configuration(struct doctor_report *report);
void doctor__judge_mappings(struct doctor_report *report, const struct doctor_host *host);
void doctor__judge_memory(struct doctor_report *report, const struct doctor_host *host);
void doctor__judge_address_space(struct doctor_report *report, const struct doctor_host *host);
void doctor__judge_threads(struct doctor_report *report, const struct doctor_host *host);
void doctor__judge_processors(struct doctor_report *report, const struct doctor_host *host);
void doctor__judge_queues(struct doctor_report *report, const struct doctor_host *host);
void doctor__judge_ports(struct doctor_report *report, const struct doctor_host *host);
void doctor__judge_conntrack(struct doctor_report *report, const struct doctor_host *host);

/* doctor__unit_name - "connections". Static text. */
const char *doctor__unit_name(enum doctor_unit unit);

/* doctor__number - a number as people read it: "8 MiB", "unlimited", "unknown". */
void doctor__number(char *dst, size_t capacity, enum doctor_kind kind, uint64_t number);

#endif
