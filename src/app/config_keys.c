/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config_keys.c - the table of keys and how names match it. Pure.
 */
#include "app/config_keys.h"

#include <assert.h>

#include "app/config.h"
#include "base/time.h"

#define FIELD(member) offsetof(struct config, member)
#define MS ((int64_t)NS_PER_MS)
#define HOUR (3600 * (int64_t)NS_PER_S)
#define KB INT64_C(1024)
#define MB (1024 * KB)
#define GB (1024 * MB)

/* Longer names are as unknown as their beginning. */
#define CONFIG_RELAXED_MAX 128

/* In the order in which --help tells of them, in a form that clang-format cannot keep. */
/* clang-format off */
const struct config__key config__keys[] = {
    {.name = "spring.profiles.active", .type = CONFIG__PROFILES, .offset = FIELD(profiles),
     .fallback = "spring",
     .meaning = "what is served: spring, loomylin and echo with commas between, or all"},
    {.name = "server.port", .type = CONFIG__INTEGER, .offset = FIELD(server_port), .min = 0,
     .max = 65535, .port_of = CONFIG_SPRING, .fallback = "8080",
     .meaning = "the app's port; 0: a free one, printed"},
    {.name = "server.address", .type = CONFIG__ADDRESS, .offset = FIELD(server_address),
     .fallback_text = "all addresses, IPv6 and IPv4", .empty_is_default = true,
     .meaning = "numeric address to listen on"},
    {.name = "remote.port", .type = CONFIG__INTEGER, .offset = FIELD(remote_port), .min = -1,
     .max = 65535, .port_of = CONFIG_SPRING, .fallback = "8085",
     .meaning = "the remote's port; 0: a free one, -1: not served here"},
    {.name = "remote.url", .type = CONFIG__URL, .offset = FIELD(remote_url),
     .fallback_text = "http://127.0.0.1:{remote.port}", .empty_is_default = true,
     .meaning = "the server that /blocking, /product and /fanout call"},
    {.name = "remote.pool.max", .type = CONFIG__INTEGER, .offset = FIELD(remote_pool_max), .min = 0,
     .max = 1000000, .fallback = "0",
     .meaning = "connections to the remote; 0: no bound"},
    {.name = "loomylin.port.pool4", .type = CONFIG__INTEGER, .offset = FIELD(loomylin_ports[0]),
     .min = -1, .max = 65535, .port_of = CONFIG_LOOMYLIN, .fallback = "7000",
     .meaning = "port of the app on 4 platform threads; 0: a free one, -1: not served"},
    {.name = "loomylin.port.pool32", .type = CONFIG__INTEGER, .offset = FIELD(loomylin_ports[1]),
     .min = -1, .max = 65535, .port_of = CONFIG_LOOMYLIN, .fallback = "7001",
     .meaning = "port of the app on 32 platform threads; likewise"},
    {.name = "loomylin.port.fibers", .type = CONFIG__INTEGER, .offset = FIELD(loomylin_ports[2]),
     .min = -1, .max = 65535, .port_of = CONFIG_LOOMYLIN, .fallback = "7002",
     .meaning = "port of the app on fibers; likewise"},
    {.name = "echo.port.greeter", .type = CONFIG__INTEGER, .offset = FIELD(greeter_port),
     .min = -1, .max = 65535, .port_of = CONFIG_ECHO, .fallback = "10000",
     .meaning = "port that greets each connection and closes it; likewise"},
    {.name = "echo.port.echo", .type = CONFIG__INTEGER, .offset = FIELD(echo_port),
     .min = -1, .max = 65535, .port_of = CONFIG_ECHO, .fallback = "10007",
     .meaning = "port that echoes every byte (RFC 862); likewise"},
    {.name = "echo.threads", .type = CONFIG__CHOICE, .offset = FIELD(echo_threads),
     .choices = "fibers|platform", .fallback = "fibers",
     .meaning = "platform: one new platform thread per connection of the echo profile"},
    {.name = "spring.threads.virtual.enabled", .type = CONFIG__BOOLEAN,
     .offset = FIELD(virtual_threads), .fallback = "true",
     .meaning = "requests on server.port run on fibers, else on platform threads"},
    {.name = "server.tomcat.threads.max", .type = CONFIG__INTEGER, .offset = FIELD(threads_max),
     .min = 1, .max = 10000, .fallback = "200",
     .meaning = "platform threads (no effect with fibers)"},
    {.name = "server.tomcat.connection-timeout", .type = CONFIG__DURATION,
     .offset = FIELD(connection_timeout_ns), .min = MS, .max = 24 * HOUR, .fallback = "20s",
     .meaning = "a whole request head must arrive in this time"},
    {.name = "server.tomcat.keep-alive-timeout", .type = CONFIG__DURATION,
     .offset = FIELD(keep_alive_timeout_ns), .min = MS, .max = 24 * HOUR, .fallback = "60s",
     .meaning = "how long a connection may be idle between requests"},
    {.name = "server.tomcat.max-connections", .type = CONFIG__INTEGER,
     .offset = FIELD(max_connections), .min = 1, .max = 1000000,
     .fallback_text = "the descriptor limit less 64, at most 1 million",
     .meaning = "beyond it: 503 and close; app and echo ports share half of it (echo alone: all)"},
    {.name = "server.max-http-request-header-size", .type = CONFIG__SIZE,
     .offset = FIELD(header_bytes_max), .min = KB, .max = MB, .fallback = "8KB",
     .meaning = "request line and header fields together"},
    {.name = "server.max-http-request-body-size", .type = CONFIG__SIZE,
     .offset = FIELD(body_bytes_max), .min = 0, .max = GB, .fallback = "1MB",
     .meaning = "a longer request body is refused with 413"},
    {.name = "server.tomcat.accesslog.enabled", .type = CONFIG__BOOLEAN,
     .offset = FIELD(access_log), .fallback = "false",
     .meaning = "a line for each request on stdout, combined format"},
    {.name = "server.shutdown", .type = CONFIG__CHOICE, .offset = FIELD(shutdown),
     .choices = "graceful|immediate", .fallback = "graceful",
     .meaning = "graceful: requests in flight are finished"},
    {.name = "server.shutdown.delay", .type = CONFIG__DURATION, .offset = FIELD(shutdown_delay_ns),
     .min = 0, .max = 24 * HOUR, .fallback = "0s",
     .meaning = "after SIGTERM, readiness says 503 so long while all is still served"},
    {.name = "spring.lifecycle.timeout-per-shutdown-phase", .type = CONFIG__DURATION,
     .offset = FIELD(shutdown_timeout_ns), .min = 0, .max = 24 * HOUR, .fallback = "30s",
     .meaning = "the longest that a graceful shutdown waits"},
    {.name = "logging.level.root", .type = CONFIG__CHOICE, .offset = FIELD(log_level),
     .choices = "TRACE|DEBUG|INFO|WARN|ERROR|OFF", .fallback = "INFO",
     .meaning = "lines below this level are dropped"},
    {.name = "logging.structured.format.console", .type = CONFIG__CHOICE,
     .offset = FIELD(log_format), .choices = "text|json", .fallback = "text",
     .empty_is_default = true,
     .meaning = "json: one object a line"},
    {.name = "ringspun.carriers", .type = CONFIG__INTEGER, .offset = FIELD(carriers), .min = 1,
     .max = 256, .fallback_text = "the processors that this process may use",
     .meaning = "carrier threads, one ring each"},
    {.name = "ringspun.stack-size", .type = CONFIG__SIZE, .offset = FIELD(stack_bytes),
     .min = 48 * KB, .max = 8 * MB, .fallback = "64KB",
     .meaning = "virtual size of a fiber's stack, rounded up to 4 KB"},
    {.name = "ringspun.pinned-threshold", .type = CONFIG__DURATION,
     .offset = FIELD(pinned_threshold_ns), .min = MS, .max = HOUR, .fallback = "20ms",
     .meaning = "a fiber that holds its carrier longer is reported"},
    {.name = "ringspun.directory.entries-max", .type = CONFIG__INTEGER,
     .offset = FIELD(directory_entries_max), .min = 0, .max = 10000000, .fallback = "100000",
     .meaning = "entries that /directory takes; beyond it: 507"},
    {.name = "ringspun.directory.bytes-max", .type = CONFIG__SIZE,
     .offset = FIELD(directory_bytes_max), .min = 0, .max = 1024 * GB, .fallback = "64MB",
     .meaning = "bytes of its entries and index; beyond it: 507"},
    {.name = "ringspun.demo.pinned", .type = CONFIG__BOOLEAN,
     .offset = FIELD(demo_pinned), .fallback = "false",
     .meaning = "GET /pinned is served, which holds a carrier for ten seconds"},
    {.name = "ringspun.debug.stuck-carrier-after", .type = CONFIG__DURATION,
     .offset = FIELD(stuck_carrier_after_ns), .min = MS, .max = 24 * HOUR,
     .fallback_text = "never",
     .meaning = "for tests of a watchdog: a carrier is then held for ever"},
    {.name = "ringspun.debug.ring-entries", .type = CONFIG__INTEGER, .offset = FIELD(ring_entries),
     .min = 8, .max = 32768, .fallback = "256",
     .meaning = "for tests: submissions that a ring queues"},
    {.name = "ringspun.debug.completion-entries", .type = CONFIG__INTEGER,
     .offset = FIELD(completion_entries), .min = 64, .max = 65536, .fallback = "4096",
     .meaning = "for tests: completions that a ring keeps before it overflows"},
    {.name = "spring.config.location", .type = CONFIG__SOURCE,
     .fallback_text = "application.json in ./config/, ./ and /etc/ringspun/",
     .meaning = "the only file to read; optional:FILE may be missing"},
    {.name = "spring.application.json", .type = CONFIG__SOURCE, .fallback_text = "none",
     .meaning = "keys as a JSON object"},
};
/* clang-format on */

const size_t config__key_count = sizeof(config__keys) / sizeof(config__keys[0]);

static_assert(sizeof(config__keys) / sizeof(config__keys[0]) <= CONFIG__KEY_COUNT_MAX,
              "config_load has a slot for each key");

/* A name in lower case without '-' and '_'. */
struct config_relaxed {
    char bytes[CONFIG_RELAXED_MAX];
    size_t length;
};

static char config_lower(char c)
{
    return (char)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
}

static struct config_relaxed config_relax(struct slice name)
{
    struct config_relaxed relaxed = {.length = 0};
    for (size_t i = 0; i < name.length && relaxed.length < CONFIG_RELAXED_MAX; i++) {
        if (name.at[i] != '-' && name.at[i] != '_') {
            relaxed.bytes[relaxed.length++] = config_lower(name.at[i]);
        }
    }
    return relaxed;
}

static struct slice config_relaxed_slice(const struct config_relaxed *relaxed)
{
    return (struct slice){.at = relaxed->bytes, .length = relaxed->length};
}

const struct config__key *config__key_find(struct slice name)
{
    struct config_relaxed wanted = config_relax(name);
    for (size_t i = 0; i < config__key_count; i++) {
        struct config_relaxed known = config_relax(slice_of(config__keys[i].name));
        if (slice_equal(config_relaxed_slice(&known), config_relaxed_slice(&wanted))) {
            return &config__keys[i];
        }
    }
    return NULL;
}

/* Is name the key with '.' as '_', and with '-' as '_' or, without keep_dashes, left out? */
static bool config_is_environment_form(struct slice name, const char *key, bool keep_dashes)
{
    size_t at = 0;
    for (const char *k = key; *k != '\0'; k++) {
        if (*k == '-' && !keep_dashes) {
            continue;
        }
        char expected = *k == '.' || *k == '-' ? '_' : *k;
        if (at == name.length || config_lower(name.at[at]) != expected) {
            return false;
        }
        at++;
    }
    return at == name.length;
}

const struct config__key *config__key_find_environment(struct slice name)
{
    for (size_t i = 0; i < config__key_count; i++) {
        const char *key = config__keys[i].name;
        if (config_is_environment_form(name, key, false) ||
            config_is_environment_form(name, key, true)) {
            return &config__keys[i];
        }
    }
    return NULL;
}

bool config__key_is_group(struct slice name)
{
    struct config_relaxed group = config_relax(name);
    for (size_t i = 0; i < config__key_count; i++) {
        struct config_relaxed known = config_relax(slice_of(config__keys[i].name));
        if (slice_starts_with(config_relaxed_slice(&known), config_relaxed_slice(&group)) &&
            known.length > group.length && known.bytes[group.length] == '.') {
            return true;
        }
    }
    return false;
}

/* Levenshtein's distance, one row of the table at a time. */
static size_t config_distance(const struct config_relaxed *a, const struct config_relaxed *b)
{
    size_t row[CONFIG_RELAXED_MAX + 1];
    for (size_t j = 0; j <= b->length; j++) {
        row[j] = j;
    }
    for (size_t i = 1; i <= a->length; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b->length; j++) {
            size_t replaced = diagonal + (a->bytes[i - 1] != b->bytes[j - 1]);
            size_t edited = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            diagonal = row[j];
            row[j] = replaced < edited ? replaced : edited;
        }
    }
    return row[b->length];
}

size_t config__distance(struct slice a, struct slice b)
{
    struct config_relaxed first = config_relax(a), second = config_relax(b);
    return config_distance(&first, &second);
}

const struct config__key *config__key_nearest(struct slice name)
{
    struct config_relaxed wanted = config_relax(name);
    const struct config__key *nearest = &config__keys[0];
    size_t nearest_distance = SIZE_MAX;
    for (size_t i = 0; i < config__key_count; i++) {
        struct config_relaxed known = config_relax(slice_of(config__keys[i].name));
        size_t distance = config_distance(&wanted, &known);
        if (distance < nearest_distance) {
            nearest = &config__keys[i];
            nearest_distance = distance;
        }
    }
    return nearest;
}
