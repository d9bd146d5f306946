/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.c - see config.h. Collects values from arguments and environment, lets
 * config_file.c add those from JSON, then parses what won. The table of keys is
 * config_keys.c, the parsing of values config_value.c.
 */
#include "app/config.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "app/config_keys.h"
#include "app/config_load.h"
#include "app/config_value.h"
#include "base/json.h"
#include "base/must.h"

#define CONFIG_QUOTE_MAX 80           /* bytes of a name or value that a message shows */
#define CONFIG_ARENA_MAX (16ul << 20) /* bytes; a file of 1 MB that repeats one key takes 6 */

struct config__slot *config__slot_of(struct config__load *load, const struct config__key *key)
{
    return &load->slots[key - config__keys];
}

const char *config__quote_path(struct config__load *load, const char *path)
{
    size_t length = json_escape(NULL, 0, slice_of(path));
    char *escaped = arena_alloc(&load->arena, length + 1);
    if (escaped == NULL) {
        return "";
    }
    json_escape(escaped, length, slice_of(path));
    escaped[length] = '\0';
    return escaped;
}

const char *config__quote(struct config__load *load, struct slice text)
{
    char escaped[CONFIG_QUOTE_MAX];
    memset(escaped, 0, sizeof(escaped));
    size_t needed = json_escape(escaped, sizeof(escaped) - 1, text);
    const char *more = needed < sizeof(escaped) ? "" : "...";
    struct slice quoted = arena_printf(&load->arena, "\"%s\"%s", escaped, more);
    return quoted.at != NULL ? quoted.at : "";
}

const char *config__source_text(struct config__load *load, const struct config__slot *slot)
{
    if (slot->position.line == 0) {
        return slot->source;
    }
    struct slice text = arena_printf(&load->arena, "%s, line %zu column %zu", slot->source,
                                     slot->position.line, slot->position.column);
    return text.at != NULL ? text.at : slot->source;
}

int config__refuse(struct config__load *load, int exit_code, const char *format, ...)
{
    load->error->exit_code = exit_code;
    va_list values;
    va_start(values, format);
    vsnprintf(load->error->text, sizeof(load->error->text), format, values);
    va_end(values);
    return -EINVAL;
}

int config__refuse_unknown(struct config__load *load, struct slice name,
                           const struct config__slot *offered)
{
    return config__refuse(load, CONFIG_EXIT_CONFIG,
                          "unknown key %s (value %s) from %s; the nearest known key is %s",
                          config__quote(load, name), config__quote(load, offered->value),
                          config__source_text(load, offered), config__key_nearest(name)->name);
}

static void config_offer(struct config__load *load, const struct config__key *key,
                         const struct config__slot *offered)
{
    struct config__slot *slot = config__slot_of(load, key);
    if (offered->rank >= slot->rank) {
        *slot = *offered;
    }
}

/* An argument without '=': a boolean key switched on, else bad usage. */
static int config_read_switch(struct config__load *load, struct slice argument, struct slice name)
{
    const struct config__key *key = config__key_find(name);
    if (key == NULL) {
        return config__refuse(load, CONFIG_EXIT_USAGE,
                              "argument %s is not of the form --key=value; the nearest known key "
                              "is %s (see --help)",
                              config__quote(load, argument), config__key_nearest(name)->name);
    }
    if (key->type != CONFIG__BOOLEAN) {
        return config__refuse(load, CONFIG_EXIT_USAGE,
                              "argument %s lacks its value: --%s=VALUE (see --help)",
                              config__quote(load, argument), key->name);
    }
    config_offer(load, key,
                 &(struct config__slot){.rank = CONFIG__RANK_ARGUMENT,
                                        .value = SLICE("true"),
                                        .source = "the command line"});
    return 0;
}

static int config_read_argument(struct config__load *load, struct slice argument)
{
    int taken = config__command_option(load, argument);
    if (taken != 0) {
        return taken < 0 ? taken : 0;
    }
    const char *equals = memchr(argument.at, '=', argument.length);
    bool dashes = slice_starts_with(argument, SLICE("--"));
    if (!dashes || argument.length == 2 || argument.at[2] == '=') {
        return config__refuse(load, CONFIG_EXIT_USAGE,
                              "argument %s is not of the form --key=value (see --help)",
                              config__quote(load, argument));
    }
    struct slice name = {.at = argument.at + 2, .length = argument.length - 2};
    if (equals == NULL) {
        return config_read_switch(load, argument, name);
    }
    name.length = (size_t)(equals - name.at);
    struct config__slot offered = {
        .rank = CONFIG__RANK_ARGUMENT, .value = slice_of(equals + 1), .source = "the command line"};
    const struct config__key *key = config__key_find(name);
    if (key == NULL) {
        return config__refuse_unknown(load, name, &offered);
    }
    config_offer(load, key, &offered);
    return 0;
}

/*
 * Kubernetes sets RINGSPUN_PORT, RINGSPUN_PORT_8080_TCP ... and RINGSPUN_SERVICE_...
 * in every container beside a service of our name: not meant for us.
 */
static bool config_is_service_link(struct slice name)
{
    return slice_equal(name, SLICE("RINGSPUN_PORT")) ||
           slice_starts_with(name, SLICE("RINGSPUN_PORT_")) ||
           slice_starts_with(name, SLICE("RINGSPUN_SERVICE_"));
}

/* The environment is everyone's: what is unknown is an error only where the name is ours alone. */
static int config_read_variable(struct config__load *load, const char *variable)
{
    const char *equals = strchr(variable, '=');
    if (equals == NULL) {
        return 0;
    }
    struct slice name = {.at = variable, .length = (size_t)(equals - variable)};
    struct config__slot offered = {.rank = CONFIG__RANK_ENVIRONMENT,
                                   .value = slice_of(equals + 1),
                                   .source = "the environment"};
    const struct config__key *key = config__key_find_environment(name);
    if (key == NULL) {
        bool ours = slice_starts_with(name, SLICE("RINGSPUN_")) && !config_is_service_link(name);
        return ours ? config__refuse_unknown(load, name, &offered) : 0;
    }
    struct slice source =
        arena_printf(&load->arena, "environment variable %.*s", (int)name.length, name.at);
    if (source.at == NULL) {
        return -ENOMEM;
    }
    offered.source = source.at;
    config_offer(load, key, &offered);
    return 0;
}

/* Bring every slot into its field; a slot that nobody filled gives the default. */
static int config_parse_slots(struct config__load *load, struct config *out)
{
    for (size_t i = 0; i < config__key_count; i++) {
        const struct config__key *key = &config__keys[i];
        struct config__slot slot = load->slots[i];
        if (key->fallback != NULL) {
            /* First of all, so that an empty value leaves it standing where that is allowed. */
            int result = config__value_set(out, key, slice_of(key->fallback));
            must(result == 0);
        }
        int result = 0;
        if (slot.rank != CONFIG__RANK_DEFAULT) {
            result = config__value_set(out, key, slot.value);
        }
        if (result == -EINVAL) {
            char expected[CONFIG__EXPECTED_MAX];
            config__value_expected(key, expected);
            return config__refuse(load, CONFIG_EXIT_CONFIG,
                                  "bad value %s for %s from %s: expected %s",
                                  config__quote(load, slot.value), key->name,
                                  config__source_text(load, &slot), expected);
        }
        if (result != 0) {
            return result;
        }
    }
    const struct config__key *threads_max = config__key_find(SLICE("server.tomcat.threads.max"));
    out->threads_max_given = config__slot_of(load, threads_max)->rank != CONFIG__RANK_DEFAULT;
    return 0;
}

/* config_served_port - the port that this key asks to have served; -1 none. */
static int config_served_port(const struct config *config, const struct config__key *key)
{
    int port;
    if ((config->profiles & key->port_of) == 0) {
        return -1;
    }
    memcpy(&port, (const char *)config + key->offset, sizeof(port));
    return port;
}

/* config_origin - where a key's value comes from, for people. */
static const char *config_origin(struct config__load *load, const struct config__key *key)
{
    const struct config__slot *slot = config__slot_of(load, key);
    return slot->rank != CONFIG__RANK_DEFAULT ? config__source_text(load, slot) : "the defaults";
}

/* What each value alone does not show: two servers on one port, or no server at all. */
static int config_check_together(struct config__load *load, const struct config *config)
{
    bool served = false;
    for (size_t i = 0; i < config__key_count; i++) {
        const struct config__key *one = &config__keys[i];
        int port = config_served_port(config, one);
        served = served || port >= 0;
        for (size_t j = i + 1; port > 0 && j < config__key_count; j++) {
            const struct config__key *other = &config__keys[j];
            if (config_served_port(config, other) == port) {
                return config__refuse(load, CONFIG_EXIT_CONFIG,
                                      "%s (from %s) and %s (from %s) are both %d; "
                                      "give one of them another value",
                                      one->name, config_origin(load, one), other->name,
                                      config_origin(load, other), port);
            }
        }
    }
    if (!served) {
        return config__refuse(
            load, CONFIG_EXIT_CONFIG,
            "nothing is left to serve: every port of spring.profiles.active "
            "(from %s) is -1",
            config_origin(load, config__key_find(SLICE("spring.profiles.active"))));
    }
    return 0;
}

/* --help and --version win wherever they stand, whatever else is wrong. */
static enum config_action config_find_action(const struct config_sources *sources)
{
    for (int i = 1; i < sources->argument_count; i++) {
        if (strcmp(sources->arguments[i], "--help") == 0) {
            return CONFIG_HELP;
        }
        if (strcmp(sources->arguments[i], "--version") == 0) {
            return CONFIG_VERSION;
        }
    }
    return CONFIG_RUN;
}

static int config_read_sources(struct config__load *load)
{
    const struct config_sources *sources = load->sources;
    int result = config__command_find(load, &load->out->action);
    for (int i = load->out->action == CONFIG_RUN ? 1 : 2;
         i < sources->argument_count && result == 0; i++) {
        result = config_read_argument(load, slice_of(sources->arguments[i]));
    }
    for (size_t i = 0; sources->environment[i] != NULL && result == 0; i++) {
        result = config_read_variable(load, sources->environment[i]);
    }
    if (result == 0) {
        result = config__load_json(load);
    }
    if (result == 0) {
        result = config__load_files(load);
    }
    return result;
}

int config_load(struct config *out, const struct config_sources *sources,
                struct config_error *error)
{
    *out = (struct config){.action = config_find_action(sources)};
    *error = (struct config_error){.exit_code = 0};
    if (out->action != CONFIG_RUN) {
        return 0;
    }
    struct config__load load = {.sources = sources, .error = error, .out = out};
    arena_init(&load.arena, NULL, 0, CONFIG_ARENA_MAX);
    int result = config_read_sources(&load);
    if (result == 0) {
        result = config_parse_slots(&load, out);
    }
    if (result == 0) {
        result = config_check_together(&load, out);
    }
    if (result == -ENOMEM) {
        error->exit_code = CONFIG_EXIT_FAILURE;
        snprintf(error->text, sizeof(error->text), "no memory to read the configuration");
    }
    arena_reset(&load.arena);
    if (result != 0) {
        config_fini(out);
    }
    return result;
}

void config_fini(struct config *config)
{
    free(config->server_address);
    free(config->remote_url);
    free(config->health_url);
    config->health_url = NULL;
    config->server_address = NULL;
    config->remote_url = NULL;
}
