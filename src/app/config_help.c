/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config_help.c - the text of --help, written from the table of keys, so that it
 * cannot lag behind it. Pure.
 */
#include <stdarg.h>
#include <stdio.h>

#include "app/config.h"
#include "app/config_keys.h"
#include "app/config_value.h"

struct config_text {
    char *dst;
    size_t capacity;
    size_t length; /* of the whole text, what did not fit included */
};

static PRINTF_LIKE(2, 3) void config_text_put(struct config_text *text, const char *format, ...)
{
    size_t left = text->length < text->capacity ? text->capacity - text->length : 0;
    va_list values;
    va_start(values, format);
    int length = vsnprintf(left > 0 ? text->dst + text->length : NULL, left, format, values);
    va_end(values);
    text->length += length > 0 ? (size_t)length : 0;
}

size_t config_help(char *dst, size_t capacity)
{
    struct config_text text = {.dst = dst, .capacity = capacity};
    config_text_put(
        &text, "Usage: ringspun [--KEY=VALUE ...]\n"
               "\n"
               "An HTTP server in which every connection is a fiber parked on io_uring.\n"
               "\n"
               "  --help     print this text\n"
               "  --version  print the versions of ringspun, its libraries and the kernel\n"
               "\n"
               "A key may be set, later ones win, in application.json (in /etc/ringspun/, ./ and\n"
               "./config/), in the environment (SERVER_PORT for server.port), in\n"
               "SPRING_APPLICATION_JSON and by --KEY=VALUE. Each key with its default:\n");
    for (size_t i = 0; i < config__key_count; i++) {
        const struct config__key *key = &config__keys[i];
        char expected[CONFIG__EXPECTED_MAX];
        config__value_expected(key, expected);
        if (key->fallback != NULL) {
            config_text_put(&text, "\n  %s = %s\n", key->name, key->fallback);
        } else {
            config_text_put(&text, "\n  %s (%s)\n", key->name, key->fallback_text);
        }
        config_text_put(&text, "      %s [%s]\n", key->meaning, expected);
    }
    return text.length;
}
