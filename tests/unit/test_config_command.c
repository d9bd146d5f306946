/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property: the first word chooses a command, whose options belong to it alone, and a
 * word that is none is refused with the nearest. Method: tables of command lines.
 */
#include <stdlib.h>

#include "config_fixture.h"

static void set_arguments(const char *const *words)
{
    clear();
    for (size_t i = 0; words[i] != NULL; i++) {
        arguments[i + 1] = words[i];
    }
}

static void first_word_chooses_the_command(void **state)
{
    (void)state;
    static const struct {
        const char *words[5];
        enum config_action action;
        bool json;
        const char *url;
        int port;
    } cases[] = {
        {{NULL}, CONFIG_RUN, false, NULL, 8080},
        {{"--server.port=1"}, CONFIG_RUN, false, NULL, 1},
        {{"doctor"}, CONFIG_DOCTOR, false, NULL, 8080},
        {{"doctor", "--json"}, CONFIG_DOCTOR, true, NULL, 8080},
        {{"doctor", "--server.port=2", "--json", "--json"}, CONFIG_DOCTOR, true, NULL, 2},
        {{"healthcheck"}, CONFIG_HEALTHCHECK, false, NULL, 8080},
        {{"healthcheck", "--server.port=3"}, CONFIG_HEALTHCHECK, false, NULL, 3},
        {{"healthcheck", "--url=http://a", "--url=http://b:1/c"},
         CONFIG_HEALTHCHECK,
         false,
         "http://b:1/c",
         8080},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        set_arguments(cases[i].words);
        load_good();
        assert_int_equal(config.action, cases[i].action);
        assert_int_equal(config.doctor_json, cases[i].json);
        assert_int_equal(config.server_port, cases[i].port);
        if (cases[i].url == NULL) {
            assert_null(config.health_url);
        } else {
            assert_string_equal(config.health_url, cases[i].url);
        }
        config_fini(&config);
        assert_null(config.health_url);
    }
}

static void bad_command_lines_are_told_apart(void **state)
{
    (void)state;
    static const struct {
        const char *words[4];
        const char *text;
    } cases[] = {
        {{"doctr"}, "unknown command \"doctr\"; the nearest is doctor (see --help)"},
        {{"health"}, "unknown command \"health\"; the nearest is healthcheck (see --help)"},
        {{"Health-Check!"},
         "unknown command \"Health-Check!\"; the nearest is healthcheck (see --help)"},
        {{"\x1b[31m"}, "unknown command \"\\u001b[31m\"; the nearest is doctor (see --help)"},
        {{"server.port=80"},
         "argument \"server.port=80\" is not of the form --key=value (see --help)"},
        {{"doctor", "doctor"}, "argument \"doctor\" is not of the form --key=value (see --help)"},
        {{"--server.port=1", "doctor"},
         "argument \"doctor\" is not of the form --key=value (see --help)"},
        {{"doctor", "--json=1"}, "--json takes no value (see --help)"},
        {{"healthcheck", "--url"}, "argument \"--url\" lacks its value: --url=URL (see --help)"},
        {{"healthcheck", "--url="}, "bad value \"\" for --url: expected http://HOST[:PORT][/PATH]"},
        {{"healthcheck", "--url=http://good", "--url=x"},
         "bad value \"x\" for --url: expected http://HOST[:PORT][/PATH]"},
        {{"healthcheck", "--json"},
         "argument \"--json\" is not of the form --key=value; the nearest known key is "
         "remote.url (see --help)"},
        {{"--json"},
         "argument \"--json\" is not of the form --key=value; the nearest known key is "
         "remote.url (see --help)"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        set_arguments(cases[i].words);
        assert_int_equal(load(), -EINVAL);
        assert_string_equal(error.text, cases[i].text);
        assert_int_equal(error.exit_code, CONFIG_EXIT_USAGE);
        assert_null(config.health_url);
    }
}

static void help_lists_the_commands(void **state)
{
    (void)state;
    size_t needed = config_help(NULL, 0);
    char *text = malloc(needed + 1);
    assert_int_equal(config_help(text, needed + 1), needed);
    assert_non_null(strstr(text, "\n  ringspun doctor [--json] [--KEY=VALUE ...]\n"));
    assert_non_null(strstr(text, "\n  ringspun healthcheck [--url=URL] [--KEY=VALUE ...]\n"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_word_chooses_the_command),
        cmocka_unit_test(bad_command_lines_are_told_apart),
        cmocka_unit_test(help_lists_the_commands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
