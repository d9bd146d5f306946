/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property: of all sources the right value wins, in whatever form name and value
 * are written, and becomes the right field. Method: tables of arguments,
 * environments and files; files come from a fake.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "app/config.h"
#include "app/config_keys.h"
#include "config_fixture.h"

static void the_defaults_are_those_of_the_table(void **state)
{
    (void)state;
    clear();
    load_good();
    assert_int_equal(config.action, CONFIG_RUN);
    assert_int_equal(config.profiles, CONFIG_SPRING);
    assert_int_equal(config.server_port, 8080);
    assert_null(config.server_address);
    assert_int_equal(config.remote_port, 8085);
    assert_null(config.remote_url);
    assert_int_equal(config.loomylin_ports[0], 7000);
    assert_int_equal(config.loomylin_ports[1], 7001);
    assert_int_equal(config.loomylin_ports[2], 7002);
    assert_int_equal(config.greeter_port, 10000);
    assert_int_equal(config.echo_port, 10007);
    assert_int_equal(config.echo_threads, CONFIG_FIBERS);
    assert_true(config.virtual_threads);
    assert_false(config.threads_max_given);
    assert_int_equal(config.threads_max, 200);
    assert_int_equal(config.carriers, 0);
    assert_int_equal(config.stack_bytes, 65536);
    assert_int_equal(config.pinned_threshold_ns, 20000000);
    assert_int_equal(config.connection_timeout_ns, UINT64_C(20000000000));
    assert_int_equal(config.keep_alive_timeout_ns, UINT64_C(60000000000));
    assert_int_equal(config.max_connections, 0);
    assert_int_equal(config.remote_pool_max, 0);
    assert_int_equal(config.header_bytes_max, 8192);
    assert_int_equal(config.body_bytes_max, 1048576);
    assert_int_equal(config.shutdown, CONFIG_GRACEFUL);
    assert_int_equal(config.shutdown_timeout_ns, UINT64_C(30000000000));
    assert_int_equal(config.shutdown_delay_ns, 0);
    assert_int_equal(config.log_level, LOG_INFO);
    assert_int_equal(config.log_format, CONFIG_TEXT);
    assert_false(config.access_log);
    config_fini(&config);
}

/* Each step adds a source above all earlier ones. */
static void later_sources_win(void **state)
{
    (void)state;
    clear();
    files[0] = (struct fake_file){.path = "/etc/ringspun/application.json",
                                  .text = "{\"server\":{\"port\":1}}"};
    load_good();
    assert_int_equal(config.server_port, 1);
    files[1] = (struct fake_file){.path = "./application.json",
                                  .text = "{\"server\":{\"port\":2},\"remote.port\":7}"};
    load_good();
    assert_int_equal(config.server_port, 2);
    files[2] = (struct fake_file){.path = "./config/application.json",
                                  .text = "{\"server.port\":3,\"server\":{\"port\":\"33\"}}"};
    load_good();
    assert_int_equal(config.server_port, 33); /* of one key given twice the last */
    environment[0] = "SERVER_PORT=4";
    load_good();
    assert_int_equal(config.server_port, 4);
    environment[1] = "SPRING_APPLICATION_JSON={\"server.port\":5}";
    load_good();
    assert_int_equal(config.server_port, 5);
    arguments[1] = "--server.port=6";
    arguments[2] = "--server.port=66";
    load_good();
    assert_int_equal(config.server_port, 66);
    assert_int_equal(config.remote_port, 7); /* from the file, all along */

    files[3] = (struct fake_file){.path = "mine.json", .text = "{\"remote.port\":8}"};
    environment[2] = "SPRING_CONFIG_LOCATION=mine.json";
    load_good();
    assert_int_equal(config.remote_port, 8); /* the other files are not read */
    arguments[3] = "--spring.application.json={\"remote.port\":9}";
    load_good();
    assert_int_equal(config.remote_port, 9);
    config_fini(&config);
}

static void names_match_when_relaxed(void **state)
{
    (void)state;
    static const char *const given[] = {
        "--server.tomcat.connection-timeout=7s",
        "--server.tomcat.connectionTimeout=7s",
        "--SERVER.TOMCAT.CONNECTION_TIMEOUT=7s",
        "--server.tomcat.connectiontimeout=7s",
        "SERVER_TOMCAT_CONNECTIONTIMEOUT=7s",
        "SERVER_TOMCAT_CONNECTION_TIMEOUT=7s",
        "server_tomcat_connectiontimeout=7s",
        "{\"server\":{\"tomcat\":{\"connectionTimeout\":\"7s\"}}}",
        "{\"Server.Tomcat\":{\"connection_timeout\":7000}}",
    };
    for (size_t i = 0; i < sizeof(given) / sizeof(given[0]); i++) {
        clear();
        if (given[i][0] == '-') {
            arguments[1] = given[i];
        } else if (given[i][0] == '{') {
            files[0] = (struct fake_file){.path = "./application.json", .text = given[i]};
        } else {
            environment[0] = given[i];
        }
        load_good();
        assert_int_equal(config.connection_timeout_ns, UINT64_C(7000000000));
        config_fini(&config);
    }
}

/* Every key is reached by its own name and its own variable and by no other's. */
static void no_two_keys_share_a_form(void **state)
{
    (void)state;
    for (size_t i = 0; i < config__key_count; i++) {
        const struct config__key *key = &config__keys[i];
        char variable[128];
        size_t length = 0;
        for (const char *k = key->name; *k != '\0'; k++) {
            if (*k != '-') {
                variable[length++] = *k == '.' ? '_' : (char)(*k >= 'a' ? *k - 32 : *k);
            }
        }
        assert_ptr_equal(config__key_find(slice_of(key->name)), key);
        assert_ptr_equal(config__key_find_environment((struct slice){variable, length}), key);
        assert_ptr_equal(config__key_nearest(slice_of(key->name)), key);
    }
}

static void values_are_read_in_all_their_forms(void **state)
{
    (void)state;
    static const struct {
        const char *argument;
        size_t offset, size;
        uint64_t value;
    } cases[] = {
#define CASE(argument, field, value)                                                               \
    {argument, offsetof(struct config, field), sizeof(config.field), value}
        CASE("--server.port=0", server_port, 0),
        CASE("--server.port=65535", server_port, 65535),
        CASE("--server.port= 0080 ", server_port, 80),
        CASE("--remote.port=-1", remote_port, UINT32_MAX),
        CASE("--spring.threads.virtual.enabled=FALSE", virtual_threads, 0),
        CASE("--spring.threads.virtual.enabled=off", virtual_threads, 0),
        CASE("--spring.threads.virtual.enabled=no", virtual_threads, 0),
        CASE("--spring.threads.virtual.enabled=0", virtual_threads, 0),
        CASE("--server.tomcat.accesslog.enabled=on", access_log, 1),
        CASE("--server.tomcat.accesslog.enabled=Yes", access_log, 1),
        CASE("--server.tomcat.accesslog.enabled", access_log, 1),
        CASE("--server.tomcat.threads.max=10", threads_max, 10),
        CASE("--server.tomcat.threads.max=10", threads_max_given, 1),
        CASE("--server.tomcat.connection-timeout=250", connection_timeout_ns, 250000000),
        CASE("--server.tomcat.connection-timeout=250ms", connection_timeout_ns, 250000000),
        CASE("--server.tomcat.connection-timeout=1000us", connection_timeout_ns, 1000000),
        CASE("--server.tomcat.connection-timeout=1000000ns", connection_timeout_ns, 1000000),
        CASE("--server.tomcat.keep-alive-timeout=2M", keep_alive_timeout_ns,
             UINT64_C(120000000000)),
        CASE("--server.tomcat.keep-alive-timeout=1h", keep_alive_timeout_ns,
             UINT64_C(3600000000000)),
        CASE("--server.tomcat.keep-alive-timeout=1d", keep_alive_timeout_ns,
             UINT64_C(86400000000000)),
        CASE("--server.shutdown.delay=0", shutdown_delay_ns, 0),
        CASE("--server.max-http-request-header-size=16KB", header_bytes_max, 16384),
        CASE("--server.max-http-request-header-size=2000", header_bytes_max, 2000),
        CASE("--server.max-http-request-header-size=2000b", header_bytes_max, 2000),
        CASE("--server.max-http-request-body-size=1gb", body_bytes_max, 1073741824),
        CASE("--server.max-http-request-body-size=0", body_bytes_max, 0),
        CASE("--ringspun.stack-size=49KB", stack_bytes, 53248),
        CASE("--ringspun.stack-size=8MB", stack_bytes, 8388608),
        CASE("--server.shutdown=IMMEDIATE", shutdown, CONFIG_IMMEDIATE),
        CASE("--logging.level.root=off", log_level, LOG_OFF),
        CASE("--logging.level.root=trace", log_level, LOG_TRACE),
        CASE("--logging.structured.format.console=json", log_format, CONFIG_JSON),
        CASE("--logging.structured.format.console=", log_format, CONFIG_TEXT),
        CASE("--spring.profiles.active=spring, spring", profiles, CONFIG_SPRING),
        CASE("--spring.profiles.active=loomylin", profiles, CONFIG_LOOMYLIN),
        CASE("--spring.profiles.active=echo,spring", profiles, CONFIG_SPRING | CONFIG_ECHO),
        CASE("--spring.profiles.active=all", profiles,
             CONFIG_SPRING | CONFIG_LOOMYLIN | CONFIG_ECHO),
        CASE("--spring.profiles.active=all,echo", profiles, CONFIG_ALL),
        CASE("--loomylin.port.pool4=1", loomylin_ports[0], 1),
        CASE("--loomylin.port.pool32=0", loomylin_ports[1], 0),
        CASE("--loomylin.port.fibers=-1", loomylin_ports[2], UINT32_MAX),
        CASE("--echo.port.greeter=2", greeter_port, 2),
        CASE("--echo.port.echo=3", echo_port, 3),
        CASE("--echo.threads=Platform", echo_threads, CONFIG_PLATFORM),
        CASE("--ringspun.carriers=256", carriers, 256),
        CASE("--server.tomcat.max-connections=1000000", max_connections, 1000000),
#undef CASE
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        clear();
        arguments[1] = cases[i].argument;
        load_good();
        uint64_t value = 0; /* little-endian and big-endian differ, so by size */
        const char *field = (const char *)&config + cases[i].offset;
        if (cases[i].size == sizeof(bool)) {
            value = *(const bool *)(const void *)field;
        } else if (cases[i].size == sizeof(uint32_t)) {
            value = *(const uint32_t *)(const void *)field;
        } else {
            value = *(const uint64_t *)(const void *)field;
        }
        if (value != cases[i].value) {
            fail_msg("%s: %llu, not %llu", cases[i].argument, (unsigned long long)value,
                     (unsigned long long)cases[i].value);
        }
        config_fini(&config);
    }
}

static void texts_are_owned_and_normalised(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"--server.address=127.0.0.1", "127.0.0.1"}, {"--server.address=localhost", "127.0.0.1"},
        {"--server.address=[::1]", "::1"},           {"--server.address= ::", "::"},
        {"--server.address=0.0.0.0", "0.0.0.0"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        clear();
        arguments[1] = cases[i][0];
        load_good();
        assert_string_equal(config.server_address, cases[i][1]);
        config_fini(&config);
    }
    clear();
    arguments[1] = "--server.address=";
    arguments[2] = "--remote.url=http://remote:8085/x";
    load_good();
    assert_null(config.server_address);
    assert_string_equal(config.remote_url, "http://remote:8085/x");
    config_fini(&config);
}

static void good_files_may_be_odd(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{}",
        "{\"server\":{},\"spring\":{\"profiles\":{\"active\":[\"spring\"]}}}",
        "{\"server.shutdown\":\"graceful\",\"server\":{\"shutdown\":{\"delay\":\"0s\"}}}",
        "\xef\xbb\xbf{\r\n\"spring.threads.virtual.enabled\" : true\r\n}\r\n",
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        clear();
        files[0] = (struct fake_file){.path = "./application.json", .text = texts[i]};
        load_good();
        config_fini(&config);
    }
    clear(); /* a value that does not win is not looked at */
    files[0] = (struct fake_file){.path = "./application.json", .text = "{\"server.port\":\"x\"}"};
    arguments[1] = "--server.port=1";
    load_good();
    assert_int_equal(config.server_port, 1);
    config_fini(&config);

    clear();
    arguments[1] = "--spring.config.location=optional:file:none.json";
    load_good();
    config_fini(&config);
    clear();
    files[0] = (struct fake_file){.path = "a.json", .text = "{\"server.port\":2}"};
    arguments[1] = "--spring.config.location=file:a.json";
    load_good();
    assert_int_equal(config.server_port, 2);
    config_fini(&config);
}

static void help_and_version_win(void **state)
{
    (void)state;
    clear();
    arguments[1] = "foo";
    arguments[2] = "--help";
    arguments[3] = "--version";
    load_good();
    assert_int_equal(config.action, CONFIG_HELP);
    arguments[2] = "--version";
    arguments[3] = "--help";
    load_good();
    assert_int_equal(config.action, CONFIG_VERSION);
}

static void help_tells_every_key_at_every_capacity(void **state)
{
    (void)state;
    size_t needed = config_help(NULL, 0);
    char *whole = malloc(needed + 1);
    assert_int_equal(config_help(whole, needed + 1), needed);
    assert_int_equal(strlen(whole), needed);
    for (size_t i = 0; i < config__key_count; i++) {
        assert_non_null(strstr(whole, config__keys[i].name));
        assert_non_null(strstr(whole, config__keys[i].meaning));
    }
    for (size_t capacity = 1; capacity <= needed; capacity += 13) {
        char *part = malloc(capacity);
        assert_int_equal(config_help(part, capacity), needed);
        assert_int_equal(strlen(part), capacity - 1);
        assert_memory_equal(part, whole, capacity - 1);
        free(part);
    }
    free(whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_defaults_are_those_of_the_table),
        cmocka_unit_test(later_sources_win),
        cmocka_unit_test(names_match_when_relaxed),
        cmocka_unit_test(no_two_keys_share_a_form),
        cmocka_unit_test(values_are_read_in_all_their_forms),
        cmocka_unit_test(texts_are_owned_and_normalised),
        cmocka_unit_test(good_files_may_be_odd),
        cmocka_unit_test(help_and_version_win),
        cmocka_unit_test(help_tells_every_key_at_every_capacity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
