/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.h - log lines of Spring Boot's shape on stdout.
 *
 *   2026-11-30T15:58:44.030Z  INFO 4242 --- [        carrier-0] http.listener : text
 *
 * A line is formatted on the caller's stack and leaves in one write(2), so lines
 * of several threads never mix. A line longer than LOG_LINE_MAX is cut and ends in "...".
 * In text form control characters and bytes that are no UTF-8 appear as \xNN, so
 * what strangers sent cannot forge a line or drive a terminal; in JSON form they
 * are escaped as JSON has it. Logging never fails the caller and never parks: a
 * line that stdout refuses is lost.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/slice.h"

#define LOG_LINE_MAX 1024

/* In rising order of weight, as Spring Boot has them. */
enum log_level { LOG_TRACE, LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR, LOG_OFF };

struct log_setup {
    enum log_level level; /* lines below it are dropped */
    bool json;            /* one JSON object a line instead of text */
};

/* log_init - set level and form for the process; call before threads start. */
void log_init(const struct log_setup *setup);

/* log_set_thread - the name in brackets for this thread (copied, at most 31 bytes). */
void log_set_thread(const char *name);

/* log_thread - that name; "main" until it is set. */
const char *log_thread(void);

/* log_enabled - would a line of this level be written? For what is costly to format. */
bool log_enabled(enum log_level level);

/* log_at - write one line; logger is a short dotted name such as "http.listener". errno is kept. */
void log_at(enum log_level level, const char *logger, const char *format, ...) PRINTF_LIKE(3, 4);

#define log_debug(logger, ...) log_at(LOG_DEBUG, logger, __VA_ARGS__)
#define log_info(logger, ...) log_at(LOG_INFO, logger, __VA_ARGS__)
#define log_warn(logger, ...) log_at(LOG_WARN, logger, __VA_ARGS__)
#define log_error(logger, ...) log_at(LOG_ERROR, logger, __VA_ARGS__)

/* log_access - write one ready access-log line (without line end) to stdout, whatever the level. */
void log_access(struct slice line);

#endif
