/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.c - see log.h. Called from carriers, pool threads and main; not from
 * signal handlers. Set-up is written once before threads start and only read
 * afterwards; the thread's name is thread-local.
 */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "base/time.h"
#include "base/utf8.h"

#define LOG_THREAD_COLUMNS 17 /* width of the thread's name in text form */

static struct log_setup log_setup = {.level = LOG_INFO, .json = false};
static _Thread_local char log_thread_name[32] = "main";

static const char *const log_level_names[] = {"TRACE", "DEBUG", "INFO", "WARN", "ERROR"};

/* A line in work. Everything that is put keeps room for what must end the line. */
struct log_line {
    char bytes[LOG_LINE_MAX];
    size_t length;
};

void log_init(const struct log_setup *setup)
{
    log_setup = *setup;
}

void log_set_thread(const char *name)
{
    snprintf(log_thread_name, sizeof(log_thread_name), "%s", name);
}

const char *log_thread(void)
{
    return log_thread_name;
}

bool log_enabled(enum log_level level)
{
    return level >= log_setup.level && level < LOG_OFF;
}

/* Write everything, or give up on the first error but an interruption. */
static void log_write(struct iovec *parts, int count)
{
    while (count > 0) {
        ssize_t written = writev(STDOUT_FILENO, parts, count);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            return; /* a full non-blocking pipe, a closed one: the log must not stop the server */
        }
        size_t left = (size_t)written;
        while (count > 0 && left >= parts->iov_len) {
            left -= parts->iov_len;
            parts++;
            count--;
        }
        if (count > 0) {
            parts->iov_base = (char *)parts->iov_base + left;
            parts->iov_len -= left;
        }
    }
}

/* The text form of one character: itself, or \xNN for each byte of what a terminal must not see. */
static struct slice log_visible(struct slice character, bool valid, char out[16])
{
    unsigned char first = (unsigned char)character.at[0];
    bool control = first < 0x20 || first == 0x7f;
    /* U+0080 to U+009F are controls as well; a terminal takes U+009B for ESC [. */
    bool control_c1 =
        character.length == 2 && first == 0xc2 && (unsigned char)character.at[1] < 0xa0;
    if (valid && !control && !control_c1) {
        return character;
    }
    static const char digits[] = "0123456789abcdef";
    size_t length = 0;
    for (size_t i = 0; i < character.length; i++) {
        unsigned char byte = (unsigned char)character.at[i];
        out[length++] = '\\';
        out[length++] = 'x';
        out[length++] = digits[byte >> 4];
        out[length++] = digits[byte & 15];
    }
    return (struct slice){.at = out, .length = length};
}

/* The JSON form of one character. */
static struct slice log_json(struct slice character, char out[16])
{
    return (struct slice){.at = out, .length = json_escape(out, 16, character)};
}

/*
 * Put the message character by character in the form of the set-up, keeping room
 * for tail_max bytes behind it. When it was cut, here or by the caller, the last
 * characters that do not leave room for "..." are taken back.
 */
static void log_put_message(struct log_line *line, struct slice message, bool cut, size_t tail_max)
{
    size_t end_max = LOG_LINE_MAX - tail_max;
    size_t length_cut = line->length; /* how far the line is sure to keep room for "..." */
    for (size_t i = 0; i < message.length;) {
        bool valid;
        char out[16];
        struct slice rest = {.at = message.at + i, .length = message.length - i};
        struct slice character = {.at = rest.at, .length = utf8_next(rest, &valid)};
        struct slice form =
            log_setup.json ? log_json(character, out) : log_visible(character, valid, out);
        if (line->length + form.length > end_max) {
            cut = true;
            break;
        }
        memcpy(line->bytes + line->length, form.at, form.length);
        line->length += form.length;
        if (line->length + 3 <= end_max) {
            length_cut = line->length;
        }
        i += character.length;
    }
    if (cut) {
        memcpy(line->bytes + length_cut, "...", 3);
        line->length = length_cut + 3;
    }
}

/* Everything before the message. */
static void log_put_head(struct log_line *line, enum log_level level, const char *logger)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    char time_text[TIME_LOG_SIZE];
    time_format_log(time_text, (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec);

    const char *level_name = log_level_names[level];
    int length;
    if (log_setup.json) {
        char thread[sizeof(log_thread_name) * JSON_ESCAPE_GROWTH];
        size_t thread_length = json_escape(thread, sizeof(thread), slice_of(log_thread_name));
        length = snprintf(line->bytes, LOG_LINE_MAX / 2,
                          "{\"@timestamp\":\"%s\",\"level\":\"%s\",\"pid\":%d,\"thread\":\"%.*s\","
                          "\"logger\":\"%.40s\",\"message\":\"",
                          time_text, level_name, (int)getpid(), (int)thread_length, thread, logger);
    } else {
        /* A longer name loses its beginning, as in Spring Boot: the number at its end matters. */
        size_t name_length = strlen(log_thread_name);
        size_t skip = name_length > LOG_THREAD_COLUMNS ? name_length - LOG_THREAD_COLUMNS : 0;
        length =
            snprintf(line->bytes, LOG_LINE_MAX / 2, "%s %5s %d --- [%*s] %.40s : ", time_text,
                     level_name, (int)getpid(), LOG_THREAD_COLUMNS, log_thread_name + skip, logger);
    }
    line->length = length > 0 ? (size_t)length : 0;
}

void log_at(enum log_level level, const char *logger, const char *format, ...)
{
    if (!log_enabled(level)) {
        return;
    }
    int errno_kept = errno;
    char message[LOG_LINE_MAX];
    va_list values;
    va_start(values, format);
    errno = errno_kept; /* for %m */
    int formatted = vsnprintf(message, sizeof(message), format, values);
    va_end(values);
    size_t length = formatted > 0 ? (size_t)formatted : 0;
    bool cut = length >= sizeof(message);
    length = cut ? sizeof(message) - 1 : length;

    struct log_line line;
    const char *tail = log_setup.json ? "\"}\n" : "\n";
    size_t tail_length = strlen(tail);
    log_put_head(&line, level, logger);
    log_put_message(&line, (struct slice){.at = message, .length = length}, cut, tail_length);
    memcpy(line.bytes + line.length, tail, tail_length);
    line.length += tail_length;

    struct iovec part = {.iov_base = line.bytes, .iov_len = line.length};
    log_write(&part, 1);
    errno = errno_kept;
}

void log_access(struct slice line)
{
    int errno_kept = errno;
    char line_end = '\n';
    struct iovec parts[2] = {
        {.iov_base = (void *)(uintptr_t)line.at, .iov_len = line.length},
        {.iov_base = &line_end, .iov_len = 1},
    };
    log_write(parts, 2);
    errno = errno_kept;
}
