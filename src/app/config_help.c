/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config_help.c - the text of --help, written from the table of keys, so that it
 * cannot lag behind it. Pure.
 */
#include "app/config.h"
#include "app/config_keys.h"
#include "app/config_load.h"
#include "app/config_value.h"
#include "base/text.h"

size_t config_help(char *dst, size_t capacity)
{
    struct text text = {.dst = dst, .capacity = capacity};
    text_put(&text, "Usage: ringspun [COMMAND] [--KEY=VALUE ...]\n"
                    "\n"
                    "An HTTP server in which every connection is a fiber parked on io_uring.\n"
                    "Without a command it serves. Commands read the same configuration:\n"
                    "\n");
    const char *usage, *meaning;
    for (size_t i = 0; config__command_text(i, &usage, &meaning); i++) {
        text_put(&text, "  %s\n      %s\n", usage, meaning);
    }
    text_put(&text,
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
            text_put(&text, "\n  %s = %s\n", key->name, key->fallback);
        } else {
            text_put(&text, "\n  %s (%s)\n", key->name, key->fallback_text);
        }
        text_put(&text, "      %s [%s]\n", key->meaning, expected);
    }
    return text.length;
}
