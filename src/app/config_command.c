/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config_command.c - the first word of the command line, and the options that
 * belong to it and to no key. Called by config.c. Pure but for the URL it keeps.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "app/config_load.h"
#include "http/url.h"

struct config_command {
    const char *name;
    enum config_action action;
    const char *usage;
    const char *meaning;
};

static const struct config_command config_commands[] = {
    {"doctor", CONFIG_DOCTOR, "ringspun doctor [--json] [--KEY=VALUE ...]",
     "report what this host allows, which limit is met first, and what lifts it: exit 0 fine,\n"
     "      1 warnings, 69 io_uring is refused"},
    {"healthcheck", CONFIG_HEALTHCHECK, "ringspun healthcheck [--url=URL] [--KEY=VALUE ...]",
     "ask a running server for its health, within 2 seconds: exit 0 when it is up, else 1\n"
     "      [http://127.0.0.1:{server.port}/actuator/health]"},
};

#define COMMAND_COUNT (sizeof(config_commands) / sizeof(config_commands[0]))

bool config__command_text(size_t n, const char **usage, const char **meaning)
{
    if (n >= COMMAND_COUNT) {
        return false;
    }
    *usage = config_commands[n].usage;
    *meaning = config_commands[n].meaning;
    return true;
}

int config__command_find(struct config__load *load, enum config_action *action)
{
    *action = CONFIG_RUN;
    if (load->sources->argument_count < 2) {
        return 0;
    }
    struct slice word = slice_of(load->sources->arguments[1]);
    if (word.length == 0 || word.at[0] == '-' || memchr(word.at, '=', word.length) != NULL) {
        return 0; /* a key, or refused as one */
    }
    const struct config_command *nearest = &config_commands[0];
    size_t distance = SIZE_MAX;
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        struct slice name = slice_of(config_commands[i].name);
        if (slice_equal(word, name)) {
            *action = config_commands[i].action;
            return 0;
        }
        if (config__distance(word, name) < distance) {
            distance = config__distance(word, name);
            nearest = &config_commands[i];
        }
    }
    return config__refuse(load, CONFIG_EXIT_USAGE,
                          "unknown command %s; the nearest is %s (see --help)",
                          config__quote(load, word), nearest->name);
}

static int take_url(struct config__load *load, struct slice value)
{
    struct url url;
    if (url_parse(value, &url) < 0) {
        return config__refuse(load, CONFIG_EXIT_USAGE,
                              "bad value %s for --url: expected http://HOST[:PORT][/PATH]",
                              config__quote(load, value));
    }
    free(load->out->health_url);
    load->out->health_url = strndup(value.at, value.length);
    return load->out->health_url != NULL ? 1 : -ENOMEM;
}

int config__command_option(struct config__load *load, struct slice argument)
{
    struct slice url = SLICE("--url=");
    switch (load->out->action) {
    case CONFIG_DOCTOR:
        if (slice_equal(argument, SLICE("--json"))) {
            load->out->doctor_json = true;
            return 1;
        }
        if (slice_starts_with(argument, SLICE("--json="))) {
            return config__refuse(load, CONFIG_EXIT_USAGE, "--json takes no value (see --help)");
        }
        return 0;
    case CONFIG_HEALTHCHECK:
        if (slice_equal(argument, SLICE("--url"))) {
            return config__refuse(load, CONFIG_EXIT_USAGE,
                                  "argument \"--url\" lacks its value: --url=URL (see --help)");
        }
        if (slice_starts_with(argument, url)) {
            return take_url(load, (struct slice){.at = argument.at + url.length,
                                                 .length = argument.length - url.length});
        }
        return 0;
    case CONFIG_RUN:
    case CONFIG_HELP:
    case CONFIG_VERSION:
        break;
    }
    return 0;
}
