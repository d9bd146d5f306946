/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_config.c - the configuration's readers: a file's JSON, SPRING_APPLICATION_JSON,
 * arguments and an environment. What is accepted is in its range, and what is refused is
 * told in one printable line.
 *
 * The first byte chooses the source; arguments and variables end with NUL.
 */
#include <errno.h>

#include "app/config.h"
#include "fuzz.h"
#include "http/url.h"

#define TEXT_MAX 8192
#define WORDS_MAX 32

static struct slice document; /* of the file that is read */

static ssize_t read_document(const char *path, char *dst, size_t capacity)
{
    if (strcmp(path, "./application.json") != 0 || document.at == NULL) {
        return -ENOENT;
    }
    if (document.length > capacity) {
        return -EFBIG;
    }
    memcpy(dst, document.at, document.length);
    return (ssize_t)document.length;
}

static void check_config(const struct config *config)
{
    if (config->action != CONFIG_RUN) {
        return;
    }
    hold(config->profiles != 0, "some profile is served");
    hold(config->server_port >= 0 && config->server_port <= UINT16_MAX, "server.port is a port");
    hold(config->remote_port >= -1 && config->remote_port <= UINT16_MAX, "remote.port is a port");
    hold(config->stack_bytes > 0 && config->stack_bytes % 4096 == 0, "stacks are pages");
    hold(config->threads_max > 0, "some platform thread runs");
    hold(config->carriers >= 0 && config->max_connections >= 0 && config->remote_pool_max >= 0,
         "counts are not negative");
    hold(config->header_bytes_max > 0, "some head is allowed");
    hold(config->log_level <= LOG_OFF, "the level is one of ours");
    if (config->remote_url != NULL) {
        struct url url;
        hold(url_parse(slice_of(config->remote_url), &url) == 0, "remote.url is a URL");
    }
}

static void check_error(const struct config_error *error)
{
    hold(error->exit_code == CONFIG_EXIT_FAILURE || error->exit_code == CONFIG_EXIT_USAGE ||
             error->exit_code == CONFIG_EXIT_CONFIG,
         "the exit code is one of ours");
    size_t length = strnlen(error->text, sizeof(error->text));
    hold(length > 0 && length < sizeof(error->text), "there is a text");
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)error->text[i];
        hold(c >= ' ' && c != 0x7f, "the text is one line without control characters");
    }
}

/* Words that NUL ends, from at on; their number. */
static int split(char *text, size_t length, char **words)
{
    int count = 0;
    for (size_t at = 0; at < length && count < WORDS_MAX; at += strlen(text + at) + 1) {
        words[count++] = text + at;
    }
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char text[TEXT_MAX + 64];
    char *arguments[WORDS_MAX + 2] = {(char *)(uintptr_t) "ringspun"};
    char *environment[WORDS_MAX + 1] = {NULL};
    struct config_sources sources = {.argument_count = 1,
                                     .arguments = arguments,
                                     .environment = environment,
                                     .read_file = read_document,
                                     .directory = ".",
                                     .system_directory = "/etc/ringspun"};
    if (size == 0 || size > TEXT_MAX) {
        return 0;
    }
    static const char variable[] = "SPRING_APPLICATION_JSON=";
    size_t prefix = data[0] % 4 == 1 ? sizeof(variable) - 1 : 0;
    memcpy(text, variable, prefix);
    memcpy(text + prefix, data + 1, size - 1);
    size_t length = prefix + size - 1;
    text[length] = '\0';
    document = (struct slice){.at = NULL};
    switch (data[0] % 4) {
    case 0:
        document = (struct slice){.at = text, .length = length};
        break;
    case 1:
        environment[0] = text;
        break;
    case 2:
        sources.argument_count += split(text, length, arguments + 1);
        break;
    default:
        (void)split(text, length, environment);
        break;
    }
    struct config config;
    struct config_error error = {.exit_code = 0};
    int result = config_load(&config, &sources, &error);
    if (result == 0) {
        check_config(&config);
        config_fini(&config);
    } else {
        check_error(&error);
    }
    return 0;
}
