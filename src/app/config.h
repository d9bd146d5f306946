/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.h - what the server was asked to be: every key, read from every source.
 *
 *   defaults < application.json < environment < SPRING_APPLICATION_JSON < --key=value
 *
 * Reads nothing itself and prints nothing: files come through a function
 * pointer, a failure is one line of text for main to print.
 */
#ifndef APP_CONFIG_H
#define APP_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/attr.h"
#include "base/log.h"

/* What a failed config_load tells the shell. */
enum config_exit { CONFIG_EXIT_FAILURE = 1, CONFIG_EXIT_USAGE = 2, CONFIG_EXIT_CONFIG = 78 };

enum config_action { CONFIG_RUN, CONFIG_HELP, CONFIG_VERSION, CONFIG_DOCTOR, CONFIG_HEALTHCHECK };

enum config_profile {
    CONFIG_SPRING = 1 << 0,
    CONFIG_LOOMYLIN = 1 << 1,
    CONFIG_ECHO = 1 << 2,
    CONFIG_ALL = CONFIG_SPRING | CONFIG_LOOMYLIN | CONFIG_ECHO
};

enum config_threads { CONFIG_FIBERS, CONFIG_PLATFORM };

enum config_shutdown { CONFIG_GRACEFUL, CONFIG_IMMEDIATE };

enum config_format { CONFIG_TEXT, CONFIG_JSON };

/* Typed values; the keys they belong to are in config_keys.c. Strings are owned by the config. */
struct config {
    enum config_action action; /* with HELP and VERSION nothing else is set */

    /* of a command, not of the server */
    bool doctor_json; /* doctor --json */
    char *health_url; /* healthcheck --url=URL, checked with url_parse; NULL: from server.port */

    /* what is served, and where */
    uint32_t profiles;    /* of enum config_profile, at least one */
    int server_port;      /* 0: a free one */
    char *server_address; /* a numeric address; NULL: all addresses */
    int remote_port;      /* 0: a free one; -1: not served here */
    char *remote_url;     /* checked with url_parse; NULL: 127.0.0.1 and the remote port as bound */
    int loomylin_ports[3]; /* pool of 4, pool of 32, fibers; each 0: a free one, -1: not served */
    int greeter_port;      /* likewise */
    int echo_port;         /* likewise */

    /* how */
    enum config_threads echo_threads;
    bool virtual_threads;   /* fibers on server.port, else the platform pool */
    bool threads_max_given; /* has no effect with fibers: to be said in the log */
    int threads_max;        /* platform threads */
    int carriers;           /* 0: as many as processors are allowed */
    uint64_t stack_bytes;   /* a multiple of 4096 */
    uint64_t pinned_threshold_ns;

    /* limits */
    uint64_t connection_timeout_ns; /* for a whole request head */
    uint64_t keep_alive_timeout_ns; /* idle between requests */
    int max_connections;            /* 0: from the descriptor limit */
    int remote_pool_max;            /* 0: no bound */
    uint64_t header_bytes_max;
    uint64_t body_bytes_max;
    int directory_entries_max;
    uint64_t directory_bytes_max;

    /* how it ends */
    enum config_shutdown shutdown;
    uint64_t shutdown_timeout_ns; /* for all phases together */
    uint64_t shutdown_delay_ns;

    /* what it tells */
    enum log_level log_level;
    enum config_format log_format;
    bool access_log;

    /* for demonstration, and for tests */
    bool demo_pinned;
    uint64_t stuck_carrier_after_ns; /* 0: never */
    int ring_entries;                /* of a ring's submission queue */
    int completion_entries;          /* of its completion queue */
};

/*
 * config_read_file - reads a whole file into dst.
 *
 * Returns  bytes; -ENOENT and the like; -EFBIG when it is larger than capacity
 */
typedef ssize_t config_read_file(const char *path, char *dst, size_t capacity);

struct config_sources {
    int argument_count;
    char *const *arguments;   /* argument_count of them; the first is the program's name */
    char *const *environment; /* NAME=value, ends with NULL */
    config_read_file *read_file;
    const char *directory;        /* "." but in tests: application.json here and in ./config */
    const char *system_directory; /* "/etc/ringspun" but in tests */
};

struct config_error {
    int exit_code;
    char text[512]; /* one line without line end; what was given is escaped in it */
};

/*
 * config_load - read all sources and check every value.
 *
 * @out    filled on success; then config_fini is due
 * @error  filled on failure
 *
 * Returns  0; -EINVAL bad usage or configuration; -ENOMEM
 * Parks    no, but reads files: for the main thread
 * Source   Spring Boot 3 reference, "Externalized Configuration"
 */
int config_load(struct config *out, const struct config_sources *sources,
                struct config_error *error) WARN_UNUSED;

/* config_fini - free what config_load allocated. */
void config_fini(struct config *config);

/*
 * config_help - the text of --help: usage, and every key with its default and meaning.
 *
 * Returns  bytes that the whole text needs, its NUL not counted; like snprintf(3)
 *          it writes what fits
 */
size_t config_help(char *dst, size_t capacity);

#endif
