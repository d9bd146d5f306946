/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property: every mistake in the configuration ends with its exit code and one
 * line that names key, value, source, place and what would be right. Method:
 * tables of mistakes with the literal line; files come from a fake that also
 * refuses with what the kernel may say.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "app/config.h"
#include "config_fixture.h"

static void assert_refused(int exit_code, const char *text)
{
    int result = load();
    if (result == 0) {
        fail_msg("accepted, not refused with: %s", text);
    }
    assert_string_equal(error.text, text);
    assert_int_equal(error.exit_code, exit_code);
    assert_int_equal(result, -EINVAL);
    assert_null(config.server_address);
    assert_null(config.remote_url);
}

static void bad_arguments_are_told_apart(void **state)
{
    (void)state;
    static const struct {
        const char *argument;
        int exit_code;
        const char *text;
    } cases[] = {
        {"foo", 2, "unknown command \"foo\"; the nearest is doctor (see --help)"},
        {"", 2, "argument \"\" is not of the form --key=value (see --help)"},
        {"-x", 2, "argument \"-x\" is not of the form --key=value (see --help)"},
        {"-server.port=80", 2,
         "argument \"-server.port=80\" is not of the form --key=value (see --help)"},
        {"--", 2, "argument \"--\" is not of the form --key=value (see --help)"},
        {"--=80", 2, "argument \"--=80\" is not of the form --key=value (see --help)"},
        {"--server.port", 2,
         "argument \"--server.port\" lacks its value: --server.port=VALUE (see --help)"},
        {"--serverport", 2,
         "argument \"--serverport\" is not of the form --key=value; the nearest "
         "known key is server.port (see --help)"},
        {"--server.prot=80", 78,
         "unknown key \"server.prot\" (value \"80\") from the command line; "
         "the nearest known key is server.port"},
        {"--port=80", 78,
         "unknown key \"port\" (value \"80\") from the command line; the nearest "
         "known key is server.port"},
        {"--server=80", 78,
         "unknown key \"server\" (value \"80\") from the command line; the nearest "
         "known key is server.port"},
        {"--help=1", 78,
         "unknown key \"help\" (value \"1\") from the command line; the nearest known "
         "key is server.port"},
        {"--server.port=99999999999999999999", 78,
         "bad value \"99999999999999999999\" for server.port from the command line: expected a "
         "whole "
         "number from 0 to 65535"},
        {"--server.port=65536", 78,
         "bad value \"65536\" for server.port from the command line: "
         "expected a whole number from 0 to 65535"},
        {"--server.port=-1", 78,
         "bad value \"-1\" for server.port from the command line: expected a "
         "whole number from 0 to 65535"},
        {"--server.port=", 78,
         "bad value \"\" for server.port from the command line: expected a whole "
         "number from 0 to 65535"},
        {"--server.port=80\r\n", 78,
         "bad value \"80\\r\\n\" for server.port from the command line: "
         "expected a whole number from 0 to 65535"},
        {"--server.port=8e3", 78,
         "bad value \"8e3\" for server.port from the command line: expected a "
         "whole number from 0 to 65535"},
        {"--remote.port=-2", 78,
         "bad value \"-2\" for remote.port from the command line: expected a "
         "whole number from -1 to 65535"},
        {"--spring.threads.virtual.enabled=", 78,
         "bad value \"\" for spring.threads.virtual.enabled from the command line: expected true "
         "or "
         "false"},
        {"--ringspun.pinned-threshold=0", 78,
         "bad value \"0\" for ringspun.pinned-threshold from the command line: expected a duration "
         "such as 250ms, 10s or 2m, from 1ms to 1h"},
        {"--server.shutdown.delay=-1s", 78,
         "bad value \"-1s\" for server.shutdown.delay from the command line: expected a duration "
         "such "
         "as 250ms, 10s or 2m, from 0 to 1d"},
        {"--server.shutdown.delay=18446744073709551615h", 78,
         "bad value \"18446744073709551615h\" for server.shutdown.delay from the command line: "
         "expected a duration such as 250ms, 10s or 2m, from 0 to 1d"},
        {"--server.shutdown.delay=5 minutes", 78,
         "bad value \"5 minutes\" for server.shutdown.delay from the command line: expected a "
         "duration such as 250ms, 10s or 2m, from 0 to 1d"},
        {"--ringspun.stack-size=31KB", 78,
         "bad value \"31KB\" for ringspun.stack-size from the command line: expected a size such "
         "as "
         "8KB or 1MB, from 48KB to 8MB"},
        {"--ringspun.stack-size=10s", 78,
         "bad value \"10s\" for ringspun.stack-size from the command line: expected a size such as "
         "8KB or 1MB, from 48KB to 8MB"},
        {"--ringspun.carriers=0", 78,
         "bad value \"0\" for ringspun.carriers from the command line: "
         "expected a whole number from 1 to 256"},
        {"--server.shutdown=grace", 78,
         "bad value \"grace\" for server.shutdown from the command "
         "line: expected one of graceful|immediate"},
        {"--server.shutdown=graceful|immediate", 78,
         "bad value \"graceful|immediate\" for server.shutdown from the command line: expected one "
         "of "
         "graceful|immediate"},
        {"--server.address=example.com", 78,
         "bad value \"example.com\" for server.address from the "
         "command line: expected a numeric IPv4 or IPv6 address"},
        {"--remote.url=https://remote", 78,
         "bad value \"https://remote\" for remote.url from the "
         "command line: expected http://host[:port][/path]"},
        {"--spring.profiles.active=loom", 78,
         "bad value \"loom\" for spring.profiles.active from the command line: expected a list of "
         "spring, loomylin and echo, or all"},
        {"--spring.profiles.active=spring,", 78,
         "bad value \"spring,\" for spring.profiles.active from the command line: expected a list "
         "of spring, loomylin and echo, or all"},
        {"--spring.profiles.active=spring echo", 78,
         "bad value \"spring echo\" for spring.profiles.active from the command line: expected a "
         "list of spring, loomylin and echo, or all"},
        {"--echo.threads=virtual", 78,
         "bad value \"virtual\" for echo.threads from the command line: expected one of "
         "fibers|platform"},
        {"--loomylin.port.pool4=-2", 78,
         "bad value \"-2\" for loomylin.port.pool4 from the command line: expected a whole number "
         "from -1 to 65535"},
        {"--spring.config.location=", 78,
         "bad value \"\" for spring.config.location from the command "
         "line: expected the name of a file"},
        {"--spring.config.location=none.json", 78,
         "cannot read configuration file none.json: No such file or directory"},
        {"--spring.application.json={", 78,
         "bad JSON in SPRING_APPLICATION_JSON, line 1 column 2: a comma, colon, bracket or value "
         "is "
         "misplaced"},
        {"--remote.port=8080", 78,
         "server.port (from the defaults) and remote.port (from the command "
         "line) are both 8080; give one of them another value"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        clear();
        arguments[1] = cases[i].argument;
        assert_refused(cases[i].exit_code, cases[i].text);
    }
}

static void bad_files_are_named_with_the_place(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int result;
        const char *message;
    } cases[] = {
        {"{\n  \"server\": {\n    \"prot\": 80\n  }\n}", 0,
         "unknown key \"server.prot\" (value \"80\") from ./application.json, line 3 column 13; "
         "the "
         "nearest known key is server.port"},
        {"\xef\xbb\xbf{\r\n\"server.port\":\"x\"}", 0,
         "bad value \"x\" for server.port from ./application.json, line 2 column 15: expected a "
         "whole "
         "number from 0 to 65535"},
        {"{\"server\":{\"port\":null}}", 0,
         "bad value null for server.port from ./application.json, line 1 column 19: no value"},
        {"{\"server\":{\"port\":{}}}", 0,
         "bad value {} or [] for server.port from ./application.json, line 1 column 19: no value"},
        {"{\"server\":{\"port\":[[8080]]}}", 0,
         "unknown key \"server.port[0][0]\" (value \"8080\") from ./application.json, line 1 "
         "column "
         "21; the nearest known key is server.port"},
        {"{\"server\":null}", 0,
         "unknown key \"server\" (value \"null\") from ./application.json, line 1 column 11; the "
         "nearest known key is server.port"},
        {"{\"server\":{\"x\":{}}}", 0,
         "unknown key \"server.x\" (value \"{}\") from ./application.json, line 1 column 16; the "
         "nearest known key is server.port"},
        {"{\"spring.profiles.active\":[\"spring\",\"ecoh\"]}", 0,
         "bad value \"spring,ecoh\" for spring.profiles.active from ./application.json, line 1 "
         "column "
         "37: expected a list of spring, loomylin and echo, or all"},
        {"{\"server.port\":8080.5}", 0,
         "bad value \"8080.5\" for server.port from ./application.json, line 1 column 16: expected "
         "a "
         "whole number from 0 to 65535"},
        {"{\"spring.config.location\":\"x\"}", 0,
         "spring.config.location cannot be set in ./application.json, line 1 column 27: it says "
         "what "
         "is read and must come from the environment or the command line"},
        {"{\"server.port\":8080,}", 0,
         "bad JSON in ./application.json, line 1 column 21: a comma, colon, bracket or value is "
         "misplaced"},
        {"", 0, "bad JSON in ./application.json, line 1 column 1: the document is empty"},
        {"[]", 0,
         "bad JSON in ./application.json, line 1 column 1: the document is not an object in "
         "{ }"},
        {NULL, -EISDIR, "cannot read configuration file ./application.json: Is a directory"},
        {NULL, -EACCES, "cannot read configuration file ./application.json: Permission denied"},
        {NULL, -EFBIG, "cannot read configuration file ./application.json: larger than 1 MB"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        clear();
        files[0] = (struct fake_file){
            .path = "./application.json", .text = cases[i].text, .result = cases[i].result};
        assert_refused(CONFIG_EXIT_CONFIG, cases[i].message);
    }
}

static void the_environment_is_shared_with_others(void **state)
{
    (void)state;
    static const char *const harmless[] = {
        "SERVER_SOFTWARE=x",
        "SPRING_DATASOURCE_URL=x",
        "REMOTE_ADDR=1.2.3.4",
        "LOGGING=x",
        "RINGSPUN=x",
        "NONSENSE",
        "=x",
        "",
        "RINGSPUN_PORT=tcp://10.0.0.1:8080",
        "RINGSPUN_SERVICE_HOST=10.0.0.1",
        "RINGSPUN_PORT_8080_TCP_ADDR=10.0.0.1",
        "SPRING_APPLICATION_JSON=",
    };
    for (size_t i = 0; i < sizeof(harmless) / sizeof(harmless[0]); i++) {
        clear();
        environment[0] = harmless[i];
        load_good();
        config_fini(&config);
    }
    clear();
    environment[0] = "RINGSPUN_CARIERS=2";
    assert_refused(CONFIG_EXIT_CONFIG, "unknown key \"RINGSPUN_CARIERS\" (value \"2\") from the "
                                       "environment; the nearest known key is ringspun.carriers");
    environment[0] = "SERVER_PORT=tcp://10.0.0.1:80";
    assert_refused(CONFIG_EXIT_CONFIG,
                   "bad value \"tcp://10.0.0.1:80\" for server.port from environment variable "
                   "SERVER_PORT: expected a whole number from 0 to 65535");
    environment[0] = "SPRING_APPLICATION_JSON={\"server\":{\"port\":\n-5}}";
    assert_refused(
        CONFIG_EXIT_CONFIG,
        "bad value \"-5\" for server.port from SPRING_APPLICATION_JSON, line 2 column 1: "
        "expected a whole number from 0 to 65535");
    environment[0] = "SPRING_APPLICATION_JSON={\"spring.application.json\":\"{}\"}";
    assert_refused(
        CONFIG_EXIT_CONFIG,
        "spring.application.json cannot be set in SPRING_APPLICATION_JSON, line 1 column "
        "28: it says what is read and must come from the environment or the command line");
}

/* Two servers on one port, also across profiles; but not a port that no profile serves, nor 0 or -1 twice. */
static void two_servers_on_one_port_are_refused(void **state)
{
    (void)state;
    clear();
    arguments[1] = "--spring.profiles.active=all";
    arguments[2] = "--echo.port.echo=8080";
    assert_refused(CONFIG_EXIT_CONFIG,
                   "server.port (from the defaults) and echo.port.echo (from the command line) are "
                   "both 8080; give one of them another value");
    clear();
    arguments[1] = "--spring.profiles.active=loomylin";
    arguments[2] = "--loomylin.port.fibers=7000";
    assert_refused(CONFIG_EXIT_CONFIG,
                   "loomylin.port.pool4 (from the defaults) and loomylin.port.fibers (from the "
                   "command line) are both 7000; give one of them another value");
    clear();
    arguments[1] = "--echo.port.echo=8080";
    load_good();
    config_fini(&config);
    clear();
    arguments[1] = "--spring.profiles.active=all";
    arguments[2] = "--echo.port.echo=-1";
    arguments[3] = "--echo.port.greeter=-1";
    arguments[4] = "--loomylin.port.pool4=0";
    arguments[5] = "--loomylin.port.pool32=0";
    load_good();
    config_fini(&config);
}

static void nothing_to_serve_is_refused(void **state)
{
    (void)state;
    clear();
    arguments[1] = "--spring.profiles.active=echo";
    arguments[2] = "--echo.port.echo=-1";
    arguments[3] = "--echo.port.greeter=-1";
    assert_refused(CONFIG_EXIT_CONFIG,
                   "nothing is left to serve: every port of spring.profiles.active (from the "
                   "command line) is -1");
}

static void a_long_list_is_refused(void **state)
{
    (void)state;
    static char text[16384];
    size_t length = (size_t)sprintf(text, "{\"spring.profiles.active\":[\"spring\"");
    for (int i = 0; i < 1000; i++) {
        length += (size_t)sprintf(text + length, ",\"spring\"");
    }
    strcpy(text + length, "]}");
    clear();
    files[0] = (struct fake_file){.path = "./application.json", .text = text};
    assert_refused(CONFIG_EXIT_CONFIG,
                   "bad value for spring.profiles.active from ./application.json, line 1 column "
                   "5293: too long a list");
}

static void messages_are_one_line_whatever_is_given(void **state)
{
    (void)state;
    static char argument[8192];
    for (size_t length = 0; length < 600; length++) {
        int start = snprintf(argument, sizeof(argument), "--k\x1b[31m");
        memset(argument + start, length % 2 == 0 ? '\n' : 0xc3, length);
        strcpy(argument + start + length, "=v\xff\n");
        clear();
        arguments[1] = argument;
        assert_int_equal(load(), -EINVAL);
        assert_int_equal(error.exit_code, CONFIG_EXIT_CONFIG);
        for (const char *c = error.text; *c != '\0'; c++) {
            assert_true((unsigned char)*c >= 0x20);
        }
        assert_non_null(strstr(error.text, "the nearest known key is "));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_arguments_are_told_apart),
        cmocka_unit_test(bad_files_are_named_with_the_place),
        cmocka_unit_test(the_environment_is_shared_with_others),
        cmocka_unit_test(a_long_list_is_refused),
        cmocka_unit_test(two_servers_on_one_port_are_refused),
        cmocka_unit_test(nothing_to_serve_is_refused),
        cmocka_unit_test(messages_are_one_line_whatever_is_given),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
