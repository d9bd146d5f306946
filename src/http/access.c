/* SPDX-License-Identifier: Apache-2.0 */
/*
 * access.c - one line of the access log. Called by session.c when it is switched on.
 */
#include "http/access.h"

#include <stdbool.h>
#include <stdio.h>

#include "base/log.h"
#include "base/time.h"

#define LINE_MAX_BYTES 2816
#define FOREIGN_MAX_BYTES                                                                          \
    192 /* of each of the client's texts, so that none pushes the others out of the line */

struct line {
    char text[LINE_MAX_BYTES];
    size_t length;
};

static void put(struct line *line, char c)
{
    if (line->length < sizeof(line->text)) {
        line->text[line->length++] = c;
    }
}

static void put_text(struct line *line, const char *text)
{
    while (*text != '\0') {
        put(line, *text++);
    }
}

/* put_foreign - bytes of the client's: quotes, backslashes and what is unprintable are escaped. */
static void put_foreign(struct line *line, struct slice s)
{
    static const char hex[] = "0123456789abcdef";
    if (s.length == 0) {
        put(line, '-');
    }
    bool cut = s.length > FOREIGN_MAX_BYTES;
    for (size_t i = 0; i < (cut ? FOREIGN_MAX_BYTES : s.length); i++) {
        unsigned char c = (unsigned char)s.at[i];
        if (c >= 0x20 && c < 0x7f && c != '"' && c != '\\') {
            put(line, (char)c);
            continue;
        }
        put_text(line, "\\x");
        put(line, hex[c >> 4]);
        put(line, hex[c & 15]);
    }
    if (cut) {
        put_text(line, "...");
    }
}

static void put_field(struct line *line, const struct http_request *request, struct slice name)
{
    const struct slice *value = http_field_find(request->fields, request->field_count, name);
    put_text(line, " \"");
    put_foreign(line, value != NULL ? *value : (struct slice){0});
    put(line, '"');
}

void access_log(const struct access_entry *entry)
{
    struct line line = {.length = 0};
    char when[TIME_ACCESS_SIZE];
    char numbers[48];

    time_format_access(when, entry->wall_ns);
    put_text(&line, entry->peer);
    put_text(&line, " - - [");
    put_text(&line, when);
    put_text(&line, "] \"");
    if (entry->request->target.length > 0) {
        put_foreign(&line, entry->request->method_text);
        put(&line, ' ');
        put_foreign(&line, entry->request->target);
        put_text(&line, entry->request->version_minor == 0 ? " HTTP/1.0" : " HTTP/1.1");
    } else {
        put(&line, '-');
    }
    snprintf(numbers, sizeof(numbers), "\" %d %zu", entry->status, entry->body_length);
    put_text(&line, numbers);
    put_field(&line, entry->request, SLICE("Referer"));
    put_field(&line, entry->request, SLICE("User-Agent"));
    log_access((struct slice){.at = line.text, .length = line.length});
}
