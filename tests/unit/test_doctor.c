/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property: each limit allows what arithmetic says, the lowest is named as the first
 * wall with the command that lifts it, what is hidden is no warning, and no line is
 * longer than 120 columns. Method: made-up hosts, judged and printed; made-up files,
 * read.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/doctor_parts.h"
#include "app/limits.h"
#include "ring/ring.h"

#define KIB UINT64_C(1024)
#define GIB (KIB * KIB * KIB)

static struct doctor_host host;
static struct doctor_plan plan;
static struct doctor_report report;
static char text[65536];

/* A host on which nothing is wrong, and descriptors are what binds. */
static void make_host(void)
{
    host = (struct doctor_host){
        .kernel = "6.18.0",
        .guard_markers = true,
        .descriptors = {1024, 20000},
        .nr_open = 1048576,
        .file_max = DOCTOR_NO_LIMIT,
        .files_open = 1000,
        .locked = {8192 * KIB, 8192 * KIB},
        .address = {DOCTOR_NO_LIMIT, DOCTOR_NO_LIMIT},
        .processes = {96000, 96000},
        .mappings_max = 65530,
        .mappings = 106,
        .address_used = 64 * KIB * KIB,
        .memory_available = 16 * GIB,
        .memory_total = 24 * GIB,
        .commit_limit = 12 * GIB,
        .committed = 4 * GIB,
        .group_memory_max = DOCTOR_NO_LIMIT,
        .group_memory_left = DOCTOR_NO_LIMIT,
        .group_pids_max = DOCTOR_NO_LIMIT,
        .group_pids_left = DOCTOR_NO_LIMIT,
        .group_processor_milli = DOCTOR_NO_LIMIT,
        .threads_max = 190000,
        .somaxconn = 4096,
        .syn_backlog = 2048,
        .syn_cookies = 1,
        .port_first = 32768,
        .port_last = 60999,
        .conntrack_max = DOCTOR_UNKNOWN,
        .conntrack_count = DOCTOR_UNKNOWN,
        .processors = 2,
    };
    host.ring.locked_bytes = 116 * KIB;
    host.ring.capabilities[0] =
        (struct ring_capability){"DEFER_TASKRUN", "6.1", RING_NEEDED, NULL, true};
    host.ring.capabilities[1] =
        (struct ring_capability){"RECV_CAP", "6.17", RING_FALLBACK, "one by one", true};
    host.ring.capabilities[2] =
        (struct ring_capability){"MSG_RING", "5.18", RING_UNUSED, "nothing", true};
    host.ring.capability_count = 3;
    plan = (struct doctor_plan){.carriers = 2, .listeners = 2, .stack_bytes = 64 * KIB};
}

static void judge(void)
{
    doctor_judge(&report, &host, &plan);
}

static const struct doctor_row *row_of(const char *id)
{
    for (size_t i = 0; i < report.row_count; i++) {
        if (strcmp(report.rows[i].id, id) == 0) {
            return &report.rows[i];
        }
    }
    fail_msg("no row %s", id);
    return NULL;
}

static const char *wall(void)
{
    return report.first_wall < report.row_count ? report.rows[report.first_wall].id : "none";
}

/* What came of it, in one word each, so that an assertion prints both. */
static void expect(const char *id, uint64_t allows, enum doctor_grade grade)
{
    judge();
    const struct doctor_row *row = row_of(id);
    if (row->allows != allows || row->grade != grade) {
        fail_msg("%s allows %llu, not %llu; grade %d, not %d: %s", id,
                 (unsigned long long)row->allows, (unsigned long long)allows, row->grade, grade,
                 row->why);
    }
    assert_true((grade >= DOCTOR_WARNING) == (row->why[0] != '\0'));
    assert_true(strcmp(id, "io_uring") == 0 || strcmp(id, "io_uring_features") == 0 ||
                row->lift[0] != '\0');
}

static void a_good_host_has_no_warning_and_descriptors_bind(void **state)
{
    (void)state;
    make_host();
    judge();
    for (size_t i = 0; i < report.row_count; i++) {
        if (report.rows[i].grade != DOCTOR_FINE) {
            fail_msg("%s: grade %d: %s", report.rows[i].id, report.rows[i].grade,
                     report.rows[i].why);
        }
    }
    assert_int_equal(report.exit_code, 0);
    doctor_summary(text, sizeof(text), &report);
    assert_string_equal(text, "first wall: file descriptors, hard limit 20000: 19936 connections "
                              "(9968 on server.port); lift with: ulimit -Hn 1048576");
}

static void descriptors_are_counted_as_the_server_counts(void **state)
{
    (void)state;
    static const uint64_t cases[][3] = {
        /* limit, carriers, connections */
        {20000, 2, 19936},    {1024, 2, 960}, {129, 2, 65}, {128, 2, 56}, {64, 2, 24},
        {23, 2, 4},           {22, 2, 0},     {0, 2, 0},    {65, 23, 4},  {1000064, 2, 1000000},
        {1048576, 2, 1000000}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(limits_connections(cases[i][0], limits_needed(2, (unsigned)cases[i][1])),
                         cases[i][2]);
    }
    make_host();
    host.descriptors.hard = 1024;
    expect("descriptors", 960, DOCTOR_WARNING);
    assert_int_equal(report.exit_code, 1);
    host.descriptors.hard = 12;
    expect("descriptors", 0, DOCTOR_FAILURE);
    assert_string_equal(wall(), "descriptors");
    host.descriptors.hard = host.nr_open; /* no ulimit goes beyond */
    expect("descriptors", 1000000, DOCTOR_FINE);
    assert_string_equal(row_of("descriptors")->lift, "sysctl -w fs.nr_open=2097152");
}

static void each_limit_allows_what_arithmetic_says(void **state)
{
    (void)state;
    const uint64_t cost = DOCTOR_FIBER_BYTES + DOCTOR_SOCKET_BYTES;
    make_host();
    host.file_max = 9000;
    expect("host_files", 8000, DOCTOR_WARNING);
    assert_string_equal(wall(), "host_files");

    make_host();
    host.memory_available = 100 * cost + 1;
    expect("memory", 100, DOCTOR_WARNING);
    assert_string_equal(wall(), "memory");

    make_host();
    host.group_memory_max = 2 * GIB;
    host.group_memory_left = 12000 * cost;
    expect("cgroup_memory", 12000, DOCTOR_FINE);
    assert_string_equal(wall(), "cgroup_memory");
    assert_int_equal(report.exit_code, 0);

    make_host();
    host.address.soft = host.address_used + 15000 * plan.stack_bytes;
    expect("address_space", 15000, DOCTOR_FINE);
    assert_string_equal(wall(), "address_space");
    assert_string_equal(row_of("address_space")->lift, "ulimit -v unlimited");

    make_host();
    host.conntrack_max = 65536;
    host.conntrack_count = 60000;
    expect("conntrack", 5536, DOCTOR_WARNING);
    assert_string_equal(wall(), "conntrack");

    make_host();
    host.port_first = 60000;
    expect("local_ports", 1000, DOCTOR_WARNING);
    assert_string_equal(wall(), "descriptors"); /* ports bind calls, not clients */
}

static void strict_overcommit_counts_whole_stacks(void **state)
{
    (void)state;
    make_host();
    host.overcommit = 2;
    expect("address_space", 8 * GIB / (64 * KIB), DOCTOR_FINE);
    assert_string_equal(row_of("address_space")->lift, "sysctl -w vm.overcommit_memory=0");
    host.commit_limit = host.committed - 1;
    expect("address_space", 0, DOCTOR_WARNING);
    host.overcommit = 0; /* stacks are mapped without reserve */
    expect("address_space", DOCTOR_NO_LIMIT, DOCTOR_FINE);
}

static void mappings_bind_only_without_guard_markers(void **state)
{
    (void)state;
    make_host();
    expect("mappings", DOCTOR_NO_LIMIT, DOCTOR_FINE);
    host.guard_markers = false;
    expect("mappings", (65530 - 106 - 1024) / 2, DOCTOR_WARNING);
    host.mappings_max = 1000;
    expect("mappings", 0, DOCTOR_WARNING);
    assert_string_equal(wall(), "mappings");
    host.mappings_max = DOCTOR_UNKNOWN;
    expect("mappings", DOCTOR_UNKNOWN, DOCTOR_WARNING);
}

static void locked_memory_counts_only_where_the_kernel_counts_it(void **state)
{
    (void)state;
    make_host();
    host.locked.soft = 64 * KIB;
    expect("locked_memory", DOCTOR_NO_LIMIT, DOCTOR_FINE);
    host.ring.locked_counts = true;
    expect("locked_memory", 0, DOCTOR_WARNING);
    host.locked.soft = 2 * 116 * KIB;
    expect("locked_memory", 2, DOCTOR_FINE);
    plan.carriers = 3;
    expect("locked_memory", 2, DOCTOR_WARNING);
    host.locked.soft = DOCTOR_NO_LIMIT;
    expect("locked_memory", DOCTOR_NO_LIMIT, DOCTOR_FINE);
    host.ring.halved = 1;
    expect("locked_memory", DOCTOR_NO_LIMIT, DOCTOR_WARNING);
}

static void threads_and_processors_are_held_against_the_plan(void **state)
{
    (void)state;
    make_host();
    expect("threads", 96000, DOCTOR_FINE);
    host.capabilities = UINT64_C(1) << 21; /* root is not held to nproc */
    expect("threads", 190000, DOCTOR_FINE);
    host.group_pids_max = 100;
    host.group_pids_left = 99;
    expect("threads", 99, DOCTOR_FINE);
    plan.threads = 200;
    expect("threads", 99, DOCTOR_WARNING);
    assert_string_equal(row_of("threads")->lift, "docker run --pids-limit=-1");

    make_host();
    expect("processors", 2, DOCTOR_FINE);
    host.group_processor_milli = 1500;
    expect("processors", 2, DOCTOR_FINE);
    host.group_processor_milli = 500;
    expect("processors", 1, DOCTOR_WARNING);
    assert_string_equal(row_of("processors")->lift, "--ringspun.carriers=1");
    plan.carriers = 1;
    expect("processors", 1, DOCTOR_FINE);
}

static void queues_below_4096_are_warnings(void **state)
{
    (void)state;
    make_host();
    host.somaxconn = 128;
    expect("somaxconn", 128, DOCTOR_WARNING);
    host.somaxconn = 4095;
    expect("somaxconn", 4095, DOCTOR_WARNING);
    expect("syn_backlog", 2048, DOCTOR_FINE);
    host.syn_cookies = 0;
    expect("syn_backlog", 2048, DOCTOR_WARNING);
    host.syn_backlog = 4096;
    expect("syn_backlog", 4096, DOCTOR_FINE);
}

static void who_asks_for_few_connections_is_not_warned(void **state)
{
    (void)state;
    make_host();
    plan.max_connections = 500;
    host.descriptors.hard = 1024;
    expect("max_connections", 500, DOCTOR_FINE);
    assert_string_equal(wall(), "max_connections");
    assert_int_equal(row_of("descriptors")->grade, DOCTOR_FINE);
    assert_int_equal(report.exit_code, 0);
    plan.max_connections = 961;
    expect("max_connections", 961, DOCTOR_WARNING);
    assert_string_equal(wall(), "descriptors");
}

static void old_kernels_are_warnings_and_refusals_are_69(void **state)
{
    (void)state;
    make_host();
    host.ring.capabilities[2].present = false; /* nobody uses it */
    expect("io_uring_features", DOCTOR_NO_LIMIT, DOCTOR_FINE);
    host.ring.capabilities[1].present = false;
    expect("io_uring_features", DOCTOR_NO_LIMIT, DOCTOR_WARNING);
    assert_string_equal(row_of("io_uring_features")->why, "RECV_CAP is absent: one by one");
    assert_string_equal(row_of("io_uring_features")->lift, "upgrade the kernel to 6.17 or newer");
    host.ring.capabilities[0].present = false;
    expect("io_uring_features", DOCTOR_NO_LIMIT, DOCTOR_FAILURE);
    assert_int_equal(report.exit_code, 1);

    make_host();
    host.ring = (struct ring_probe){.error = -EPERM};
    host.seccomp = 2;
    ring_refusal(-EPERM, host.refusal, sizeof(host.refusal));
    expect("io_uring", DOCTOR_NO_LIMIT, DOCTOR_FAILURE);
    assert_int_equal(report.exit_code, 69);
    assert_string_equal(row_of("io_uring")->why, host.refusal);
    doctor_summary(text, sizeof(text), &report);
    assert_true(strncmp(text, "cannot run: ", 12) == 0);
    assert_string_equal(text + 12, host.refusal);
}

/* Everything that can be hidden is. */
static void hide(void)
{
    make_host();
    uint64_t *const numbers[] = {
        &host.io_uring_disabled, &host.seccomp,          &host.nr_open,
        &host.file_max,          &host.files_open,       &host.mappings_max,
        &host.mappings,          &host.address_used,     &host.memory_available,
        &host.memory_total,      &host.overcommit,       &host.commit_limit,
        &host.committed,         &host.group_memory_max, &host.group_memory_left,
        &host.group_pids_max,    &host.group_pids_left,  &host.group_processor_milli,
        &host.threads_max,       &host.somaxconn,        &host.syn_backlog,
        &host.syn_cookies,       &host.port_first,       &host.port_last,
        &host.conntrack_max,     &host.conntrack_count};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        *numbers[i] = DOCTOR_UNKNOWN;
    }
}

static void what_is_hidden_is_unknown_and_no_warning(void **state)
{
    (void)state;
    hide();
    judge();
    assert_int_equal(report.exit_code, 0);
    assert_string_equal(wall(), "descriptors");
    static const char *const unseen[] = {"host_files",  "memory",      "cgroup_memory", "somaxconn",
                                         "syn_backlog", "local_ports", "conntrack"};
    for (size_t i = 0; i < sizeof(unseen) / sizeof(unseen[0]); i++) {
        expect(unseen[i], DOCTOR_UNKNOWN, DOCTOR_UNSEEN);
    }
    host.descriptors = (struct sys_limit_pair){DOCTOR_UNKNOWN, DOCTOR_UNKNOWN};
    judge();
    assert_int_equal(report.exit_code, 0);
    assert_string_equal(wall(), "max_connections"); /* the server's own ceiling is always known */
}

/* Lines of the table, none too long, and every capacity gives a prefix of the whole. */
static void check_table(void)
{
    size_t needed = doctor_table(NULL, 0, &report, false);
    assert_true(needed < sizeof(text));
    assert_int_equal(doctor_table(text, sizeof(text), &report, false), needed);
    assert_int_equal(strlen(text), needed);
    for (const char *line = text; *line != '\0'; line += strcspn(line, "\n") + 1) {
        size_t length = strcspn(line, "\n");
        if (length > 120 || (length > 0 && line[length - 1] == ' ')) {
            fail_msg("%zu columns: %.*s", length, (int)length, line);
        }
        assert_null(memchr(line, '\x1f', length));
    }
    for (size_t capacity = 1; capacity <= needed; capacity += 97) {
        char *part = malloc(capacity);
        assert_int_equal(doctor_table(part, capacity, &report, false), needed);
        assert_memory_equal(part, text, capacity - 1);
        free(part);
    }
}

static void no_line_is_longer_than_120_columns(void **state)
{
    (void)state;
    make_host();
    judge();
    check_table();
    assert_non_null(strstr(text, "\nok   file descriptors soft 1024, hard 20000,"));
    hide();
    judge();
    check_table();
    make_host();
    host.ring.error = -EPERM;
    memset(host.kernel, 'k', sizeof(host.kernel) - 1);
    memset(host.refusal, 'r', sizeof(host.refusal) - 1);
    host.conntrack_max = host.memory_available = UINT64_MAX / 2;
    judge();
    check_table();
}

static void colour_is_only_around_the_grade(void **state)
{
    (void)state;
    make_host();
    host.somaxconn = 1;
    judge();
    assert_null(strchr((doctor_table(text, sizeof(text), &report, false), text), '\033'));
    (void)doctor_table(text, sizeof(text), &report, true);
    assert_non_null(strstr(text, "\n\033[33mwarn \033[0maccept queue "));
}

static void json_escapes_and_is_whole_at_every_capacity(void **state)
{
    (void)state;
    make_host();
    snprintf(host.kernel, sizeof(host.kernel), "6\"\\\n\x01");
    host.file_max = DOCTOR_UNKNOWN;
    judge();
    size_t needed = doctor_json(NULL, 0, &report);
    assert_int_equal(doctor_json(text, sizeof(text), &report), needed);
    assert_non_null(strstr(text, "\"kernel\":\"6\\\"\\\\\\n\\u0001\""));
    assert_non_null(strstr(text, "\"fs.file-max\":null,\"open\":1000},\"allows\":null"));
    assert_non_null(
        strstr(text, "\"facts\":{\"memory.max\":\"unlimited\"},\"allows\":\"unlimited\""));
    assert_non_null(strstr(text, "\"firstWall\":{\"id\":\"descriptors\",\"connections\":19936,"));
    assert_non_null(strstr(text, "\"exitCode\":0}\n"));
    for (size_t capacity = 1; capacity <= needed; capacity += 53) {
        char *part = malloc(capacity);
        assert_int_equal(doctor_json(part, capacity, &report), needed);
        assert_true(strlen(part) < capacity);
        assert_memory_equal(part, text, strlen(part));
        free(part);
    }
}

/* ---------------------------------------------------------------- reading */

struct fake_file {
    const char *path;
    const char *text;
};

static const struct fake_file *files;

static ssize_t read_fake(const char *path, char *dst, size_t capacity)
{
    for (const struct fake_file *file = files; file->path != NULL; file++) {
        if (strcmp(file->path, path) == 0) {
            size_t length = strlen(file->text);
            if (length > capacity) {
                return -EFBIG;
            }
            memcpy(dst, file->text, length);
            return (ssize_t)length;
        }
    }
    return -ENOENT;
}

static void cgroups_of_both_versions_are_read_with_their_parents(void **state)
{
    (void)state;
    static const struct fake_file second[] = {
        {"/proc/self/cgroup", "0::/a/b\n"},
        {"/sys/fs/cgroup/cgroup.controllers", "cpu memory pids\n"},
        {"/sys/fs/cgroup/a/b/memory.max", "max\n"},
        {"/sys/fs/cgroup/a/memory.max", "1000000\n"},
        {"/sys/fs/cgroup/a/memory.current", "600000\n"},
        {"/sys/fs/cgroup/a/memory.stat", "anon 1\ninactive_file 200000\n"},
        {"/sys/fs/cgroup/a/b/pids.max", "50\n"},
        {"/sys/fs/cgroup/a/b/pids.current", "8\n"},
        {"/sys/fs/cgroup/a/b/cpu.max", "150000 100000\n"},
        {"/sys/fs/cgroup/a/cpu.max", "max 100000\n"},
        {NULL, NULL}};
    files = second;
    doctor__group_read(&host, read_fake);
    assert_int_equal(host.group_memory_max, 1000000);
    assert_int_equal(host.group_memory_left, 600000);
    assert_int_equal(host.group_pids_max, 50);
    assert_int_equal(host.group_pids_left, 42);
    assert_int_equal(host.group_processor_milli, 1500);

    static const struct fake_file first[] = {
        {"/proc/self/cgroup", "5:cpu,cpuacct:/\n4:memory:/host/only\n3:pids:/p\n0::/\n"},
        {"/sys/fs/cgroup/memory/cgroup.clone_children", "0\n"},
        {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "500\n"}, /* a container sees its root */
        {"/sys/fs/cgroup/pids/cgroup.clone_children", "0\n"},
        {"/sys/fs/cgroup/cpu/cgroup.clone_children", "0\n"},
        {"/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"},
        {NULL, NULL}};
    files = first;
    doctor__group_read(&host, read_fake);
    assert_int_equal(host.group_memory_left, 500);
    assert_true(host.group_pids_left == DOCTOR_NO_LIMIT);
    assert_true(host.group_processor_milli == DOCTOR_NO_LIMIT);

    static const struct fake_file broken[] = {{"/proc/self/cgroup", "nonsense\n:\n::\n\n0"},
                                              {NULL, NULL}};
    files = broken;
    doctor__group_read(&host, read_fake);
    assert_true(host.group_memory_left == DOCTOR_UNKNOWN);
    assert_true(host.group_pids_left == DOCTOR_UNKNOWN);
    assert_true(host.group_processor_milli == DOCTOR_UNKNOWN);
}

static void numbers_are_read_or_unknown(void **state)
{
    (void)state;
    static const struct fake_file some[] = {{"range", "32768\t60999\n"},
                                            {"max", "max\n"},
                                            {"minus", "-1\n"},
                                            {"long", "9223372036854775807\n"},
                                            {"pages", "9223372036854771712\n"},
                                            {"huge", "99999999999999999999999\n"},
                                            {"empty", ""},
                                            {"words", "on\n"},
                                            {NULL, NULL}};
    files = some;
    assert_int_equal(doctor__read_number(read_fake, "range", 0), 32768);
    assert_int_equal(doctor__read_number(read_fake, "range", 1), 60999);
    static const char *const none[] = {"max", "minus", "long", "pages", "huge"};
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
        assert_true(doctor__read_number(read_fake, none[i], 0) == DOCTOR_NO_LIMIT);
    }
    assert_true(doctor__read_number(read_fake, "range", 2) == DOCTOR_UNKNOWN);
    static const char *const unknown[] = {"empty", "words", "absent"};
    for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
        assert_true(doctor__read_number(read_fake, unknown[i], 0) == DOCTOR_UNKNOWN);
    }
    assert_int_equal(doctor__find_number("A: 1\nB:\t2 kB\nAB: 3", "B:"), 2);
    assert_int_equal(doctor__find_number("A: 1\nB: 2\nAB: 3", "AB:"), 3);
    assert_true(doctor__find_number("A: 1\n", "B:") == DOCTOR_UNKNOWN);
    assert_true(doctor__find_number("", "B:") == DOCTOR_UNKNOWN);
}

static void a_host_that_hides_every_file_is_read_and_judged(void **state)
{
    (void)state;
    static const struct fake_file none[] = {{NULL, NULL}};
    files = none;
    make_host();
    doctor_host_read(&host, read_fake);
    assert_true(host.somaxconn == DOCTOR_UNKNOWN);
    assert_true(host.memory_available == DOCTOR_UNKNOWN);
    assert_true(host.mappings == DOCTOR_UNKNOWN);
    judge();
    check_table();
    assert_true(doctor_json(text, sizeof(text), &report) < sizeof(text));
}

static void sizes_are_read_by_people(void **state)
{
    (void)state;
    static const struct {
        enum doctor_kind kind;
        uint64_t number;
        const char *expected;
    } cases[] = {{DOCTOR_BYTES, 0, "0 B"},
                 {DOCTOR_BYTES, 1023, "1023 B"},
                 {DOCTOR_BYTES, 1024, "1 KiB"},
                 {DOCTOR_BYTES, 4352, "4.2 KiB"},
                 {DOCTOR_BYTES, 8192 * KIB, "8 MiB"},
                 {DOCTOR_BYTES, 24 * GIB, "24 GiB"},
                 {DOCTOR_MILLI, 500, "0.50"},
                 {DOCTOR_COUNT, 20000, "20000"},
                 {DOCTOR_COUNT, DOCTOR_UNKNOWN, "unknown"},
                 {DOCTOR_BYTES, DOCTOR_NO_LIMIT, "unlimited"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char got[32];
        doctor__number(got, sizeof(got), cases[i].kind, cases[i].number);
        assert_string_equal(got, cases[i].expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_good_host_has_no_warning_and_descriptors_bind),
        cmocka_unit_test(descriptors_are_counted_as_the_server_counts),
        cmocka_unit_test(each_limit_allows_what_arithmetic_says),
        cmocka_unit_test(strict_overcommit_counts_whole_stacks),
        cmocka_unit_test(mappings_bind_only_without_guard_markers),
        cmocka_unit_test(locked_memory_counts_only_where_the_kernel_counts_it),
        cmocka_unit_test(threads_and_processors_are_held_against_the_plan),
        cmocka_unit_test(queues_below_4096_are_warnings),
        cmocka_unit_test(who_asks_for_few_connections_is_not_warned),
        cmocka_unit_test(old_kernels_are_warnings_and_refusals_are_69),
        cmocka_unit_test(what_is_hidden_is_unknown_and_no_warning),
        cmocka_unit_test(no_line_is_longer_than_120_columns),
        cmocka_unit_test(colour_is_only_around_the_grade),
        cmocka_unit_test(json_escapes_and_is_whole_at_every_capacity),
        cmocka_unit_test(cgroups_of_both_versions_are_read_with_their_parents),
        cmocka_unit_test(numbers_are_read_or_unknown),
        cmocka_unit_test(a_host_that_hides_every_file_is_read_and_judged),
        cmocka_unit_test(sizes_are_read_by_people),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
