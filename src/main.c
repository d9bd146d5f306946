/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - argv and environment -> configuration -> run -> exit code.
 */
#include <stdio.h>
#include <unistd.h>

#include "app/config.h"
#include "app/doctor.h"
#include "app/healthcheck.h"
#include "app/run.h"
#include "app/version.h"
#include "ring/sys.h"

static int print_help(void)
{
    static char text[16384];
    size_t length = config_help(text, sizeof(text));
    return sys_write_all(1, text, length < sizeof(text) ? length : sizeof(text) - 1) < 0;
}

static int print_version(void)
{
    char text[512];
    size_t length = version_format(text, sizeof(text));
    return sys_write_all(1, text, length) < 0;
}

int main(int argument_count, char **arguments)
{
    struct config config;
    struct config_error error;
    struct config_sources sources = {.argument_count = argument_count,
                                     .arguments = arguments,
                                     .environment = environ,
                                     .read_file = sys_read_file,
                                     .directory = ".",
                                     .system_directory = "/etc/ringspun"};

    if (config_load(&config, &sources, &error) < 0) {
        fprintf(stderr, "ringspun: %s\n", error.text);
        return error.exit_code;
    }
    int code;
    switch (config.action) {
    case CONFIG_HELP:
        code = print_help();
        break;
    case CONFIG_VERSION:
        code = print_version();
        break;
    case CONFIG_DOCTOR:
        code = doctor(&config);
        break;
    case CONFIG_HEALTHCHECK:
        code = healthcheck(&config);
        break;
    default: {
        struct log_setup log = {.level = config.log_level,
                                .json = config.log_format == CONFIG_JSON};
        log_init(&log);
        log_set_thread("main");
        code = run(&config, environ);
    }
    }
    config_fini(&config);
    return code;
}
