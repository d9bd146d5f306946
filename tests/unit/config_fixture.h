/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config_fixture.h - sources of configuration that a test fills in, for
 * test_config.c and test_config_refusals.c: arguments, an environment and a few
 * files that a fake serves.
 */
#ifndef TESTS_UNIT_CONFIG_FIXTURE_H
#define TESTS_UNIT_CONFIG_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "app/config.h"

/* What the fake file system holds; text NULL: reading it gives result. */
struct fake_file {
    const char *path;
    const char *text;
    ssize_t result;
};

#define FILES_MAX 4
static struct fake_file files[FILES_MAX];
static const char *arguments[10];
static const char *environment[8];

static struct config config;
static struct config_error error;

static ssize_t read_fake(const char *path, char *dst, size_t capacity)
{
    for (size_t i = 0; i < FILES_MAX && files[i].path != NULL; i++) {
        if (strcmp(files[i].path, path) != 0) {
            continue;
        }
        if (files[i].text == NULL) {
            return files[i].result;
        }
        size_t length = strlen(files[i].text);
        if (length > capacity) {
            return -EFBIG;
        }
        memcpy(dst, files[i].text, length);
        return (ssize_t)length;
    }
    return -ENOENT;
}

/* Nothing but the defaults. */
static inline void clear(void)
{
    memset(files, 0, sizeof(files));
    memset(arguments, 0, sizeof(arguments));
    memset(environment, 0, sizeof(environment));
    arguments[0] = "ringspun";
}

static inline int load(void)
{
    struct config_sources sources = {
        .arguments = (char *const *)(uintptr_t)arguments,
        .environment = (char *const *)(uintptr_t)environment,
        .read_file = read_fake,
        .directory = ".",
        .system_directory = "/etc/ringspun",
    };
    while (arguments[sources.argument_count] != NULL) {
        sources.argument_count++;
    }
    return config_load(&config, &sources, &error);
}

/* Load what must be good; the caller calls config_fini. */
static inline void load_good(void)
{
    int result = load();
    if (result != 0) {
        fail_msg("refused with %d: %s", error.exit_code, error.text);
    }
}

#endif
