/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property: what a service manager says is understood as its manual pages have it,
 * nonsense is told and ignored, nothing of it stays in the environment; messages
 * arrive whole at paths and abstract names; only listening TCP sockets are adopted.
 * Method: tables of environments; real local sockets and real descriptors.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <assert.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "app/systemd.h"
#include "base/log.h"
#include "base/time.h"
#include "ring/sys.h"
#include "ring/sys_systemd.h"

#define US 4711 /* our process id */
#define LENGTH_108                                                                                 \
    "/23456789-123456789-123456789-123456789-123456789-123456789-123456789-123456789-123456789-"   \
    "123456789-12345678"

static_assert(sizeof(LENGTH_108) - 1 == SYS_LOCAL_NAME_MAX + 1, "one byte too long");

struct reading {
    const char *environment[8];
    const char *notify; /* NULL: none */
    uint64_t watchdog_ns;
    unsigned listeners;
    const char *complaint; /* how the only one begins; NULL: none */
};

static const struct reading readings[] = {
    {{NULL}, NULL, 0, 0, NULL},
    {{"NOTIFY_SOCKET=/run/n"}, "/run/n", 0, 0, NULL},
    {{"NOTIFY_SOCKET=@n"}, "@n", 0, 0, NULL},
    {{"NOTIFY_SOCKET=/a", "NOTIFY_SOCKET=/b"}, "/a", 0, 0, NULL},
    {{"NOTIFY_SOCKET="}, NULL, 0, 0, "NOTIFY_SOCKET"},
    {{"NOTIFY_SOCKET=@"}, NULL, 0, 0, "NOTIFY_SOCKET"},
    {{"NOTIFY_SOCKET=/"}, NULL, 0, 0, "NOTIFY_SOCKET"},
    {{"NOTIFY_SOCKET=run/n"}, NULL, 0, 0, "NOTIFY_SOCKET"},
    {{"NOTIFY_SOCKET=vsock:2:1234"}, NULL, 0, 0, "NOTIFY_SOCKET"},
    {{"NOTIFY_SOCKET=" LENGTH_108}, NULL, 0, 0, "NOTIFY_SOCKET"},
    {{"NOTIFY_SOCKET=@n", "WATCHDOG_USEC=10000000"}, "@n", UINT64_C(10000000000), 0, NULL},
    {{"NOTIFY_SOCKET=@n", "WATCHDOG_USEC=1", "WATCHDOG_PID=4711"}, "@n", 1000, 0, NULL},
    {{"NOTIFY_SOCKET=@n", "WATCHDOG_USEC=1", "WATCHDOG_PID=4712"}, "@n", 0, 0, NULL},
    {{"WATCHDOG_USEC=1"}, NULL, 0, 0, NULL}, /* nobody to tell */
    {{"NOTIFY_SOCKET=@n", "WATCHDOG_PID=4711"}, "@n", 0, 0, NULL},
    {{"NOTIFY_SOCKET=@n", "WATCHDOG_USEC=18446744073709551615"},
     "@n",
     UINT64_C(31536000000000000),
     0,
     NULL},
    {{"NOTIFY_SOCKET=@n", "WATCHDOG_USEC=0"}, "@n", 0, 0, "WATCHDOG_USEC"},
    {{"NOTIFY_SOCKET=@n", "WATCHDOG_USEC="}, "@n", 0, 0, "WATCHDOG_USEC"},
    {{"NOTIFY_SOCKET=@n", "WATCHDOG_USEC=-5"}, "@n", 0, 0, "WATCHDOG_USEC"},
    {{"NOTIFY_SOCKET=@n", "WATCHDOG_USEC=10s"}, "@n", 0, 0, "WATCHDOG_USEC"},
    {{"NOTIFY_SOCKET=@n", "WATCHDOG_USEC=18446744073709551616"}, "@n", 0, 0, "WATCHDOG_USEC"},
    {{"NOTIFY_SOCKET=@n", "WATCHDOG_USEC=1", "WATCHDOG_PID=x"}, "@n", 0, 0, "WATCHDOG_PID"},
    {{"LISTEN_PID=4711", "LISTEN_FDS=2"}, NULL, 0, 2, NULL},
    {{"LISTEN_PID=4711", "LISTEN_FDS=64"}, NULL, 0, 64, NULL},
    {{"LISTEN_PID=4711", "LISTEN_FDS=0"}, NULL, 0, 0, NULL},
    {{"LISTEN_PID=4712", "LISTEN_FDS=2"}, NULL, 0, 0, NULL},
    {{"LISTEN_FDS=2"}, NULL, 0, 0, NULL},
    {{"LISTEN_PID=4711"}, NULL, 0, 0, NULL},
    {{"LISTEN_PID=0", "LISTEN_FDS=2"}, NULL, 0, 0, "LISTEN_PID"},
    {{"LISTEN_PID=self", "LISTEN_FDS=2"}, NULL, 0, 0, "LISTEN_PID"},
    {{"LISTEN_PID=9999999999", "LISTEN_FDS=2"}, NULL, 0, 0, "LISTEN_PID"},
    {{"LISTEN_PID=4711", "LISTEN_FDS="}, NULL, 0, 0, "LISTEN_FDS"},
    {{"LISTEN_PID=4711", "LISTEN_FDS=-1"}, NULL, 0, 0, "LISTEN_FDS"},
    {{"LISTEN_PID=4711", "LISTEN_FDS=65"}, NULL, 0, 0, "LISTEN_FDS"},
    {{"LISTEN_PID=4711", "LISTEN_FDS=2 "}, NULL, 0, 0, "LISTEN_FDS"},
    {{"LISTEN_PID=4711", "LISTEN_FDS=99999999999999999999"}, NULL, 0, 0, "LISTEN_FDS"},
};

/* environment_of - a copy with a stranger before and behind, as environ is laid out. */
static void environment_of(const char *const *ours, char **dst)
{
    static char strangers[2][24] = {"HOME=/", "NOTIFY_SOCKETS=x"};
    size_t count = 0;
    dst[count++] = strangers[0];
    for (size_t i = 0; ours[i] != NULL; i++) {
        dst[count++] = (char *)(uintptr_t)ours[i];
    }
    dst[count++] = strangers[1];
    dst[count] = NULL;
}

static void what_a_manager_says_is_read_and_taken_out(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(readings) / sizeof(readings[0]); i++) {
        const struct reading *reading = &readings[i];
        struct systemd systemd;
        char *environment[16];
        char got[256], expected[256];

        environment_of(reading->environment, environment);
        systemd_read(&systemd, environment, US);
        const char *form = "case %zu: notify %s, watchdog %llu, listeners %u, complaints %u";
        snprintf(got, sizeof(got), form, i,
                 systemd.notify_socket != NULL ? systemd.notify_socket : "-",
                 (unsigned long long)systemd.watchdog_ns, systemd.listener_count,
                 systemd.complaint_count);
        snprintf(expected, sizeof(expected), form, i,
                 reading->notify != NULL ? reading->notify : "-",
                 (unsigned long long)reading->watchdog_ns, reading->listeners,
                 reading->complaint != NULL ? 1u : 0u);
        assert_string_equal(got, expected);
        if (reading->complaint != NULL) {
            assert_memory_equal(systemd.complaints[0], reading->complaint,
                                strlen(reading->complaint));
        }
        assert_string_equal(environment[0], "HOME=/");
        assert_string_equal(environment[1], "NOTIFY_SOCKETS=x");
        assert_null(environment[2]);
    }
}

static void complaints_about_every_variable_fit(void **state)
{
    (void)state;
    char *environment[] = {(char[]){"NOTIFY_SOCKET=x"}, (char[]){"WATCHDOG_USEC=x"},
                           (char[]){"LISTEN_PID=4711"}, (char[]){"LISTEN_FDS=x"}, NULL};
    struct systemd systemd;
    systemd_read(&systemd, environment, US);
    assert_int_equal(systemd.complaint_count, 3);
    assert_null(environment[0]);
}

static void names_go_to_descriptors_in_order(void **state)
{
    (void)state;
    static const struct {
        const char *names;
        const char *expected;
    } cases[] = {
        {"LISTEN_FDNAMES=http:remote:x", "http,remote,x"},
        {"LISTEN_FDNAMES=http", "http,,"},
        {"LISTEN_FDNAMES=", ",,"},
        {"LISTEN_FDNAMES=::http:too:many", ",,http"},
        {"LISTEN=", ",,"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char names[64], got[64];
        snprintf(names, sizeof(names), "%s", cases[i].names);
        char *environment[] = {(char[]){"LISTEN_PID=4711"}, (char[]){"LISTEN_FDS=3"}, names, NULL};
        struct systemd systemd;
        systemd_read(&systemd, environment, US);
        assert_int_equal(systemd.listener_count, 3);
        struct systemd_listener *three = systemd.listeners;
        snprintf(got, sizeof(got), "%.*s,%.*s,%.*s", (int)three[0].name.length, three[0].name.at,
                 (int)three[1].name.length, three[1].name.at, (int)three[2].name.length,
                 three[2].name.at);
        assert_string_equal(got, cases[i].expected);
        assert_int_equal(three[0].fd, 3);
        assert_int_equal(three[2].fd, 5);
    }
}

static void a_socket_is_claimed_by_name_and_port_and_once(void **state)
{
    (void)state;
    struct systemd systemd = {.listener_count = 3};
    systemd.listeners[0] = (struct systemd_listener){.fd = 3, .name = SLICE("x"), .port = 8080};
    systemd.listeners[1] = (struct systemd_listener){.fd = 4, .name = SLICE("http"), .port = 80};
    systemd.listeners[2] = (struct systemd_listener){.fd = 5, .name = SLICE(""), .port = 8085};
    assert_null(systemd_claim(&systemd, "http", 8080));
    assert_null(systemd_claim(&systemd, "x", 80));
    assert_int_equal(systemd_claim(&systemd, "http", -1)->fd, 4);
    assert_null(systemd_claim(&systemd, "http", -1));
    assert_null(systemd_claim(&systemd, "htt", -1));
    assert_int_equal(systemd_claim(&systemd, NULL, 8085)->fd, 5);
    assert_null(systemd_claim(&systemd, NULL, 8085));
    assert_null(systemd_claim(&systemd, NULL, 80));
    assert_int_equal(systemd_unclaimed(&systemd)->fd, 3);
    assert_int_equal(systemd_claim(&systemd, NULL, 8080)->fd, 3);
    assert_null(systemd_unclaimed(&systemd));
}

/* receiver - a bound datagram socket; an abstract name begins with '@'. */
static int receiver(const char *name)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    assert_true(fd >= 0);
    memcpy(at.sun_path, name, strlen(name));
    if (name[0] == '@') {
        at.sun_path[0] = '\0';
    } else {
        unlink(name);
    }
    socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name));
    assert_int_equal(bind(fd, (struct sockaddr *)&at, length), 0);
    return fd;
}

static void assert_heard(int fd, const char *expected)
{
    char got[600];
    ssize_t length = recv(fd, got, sizeof(got) - 1, 0);
    assert_true(length >= 0);
    got[length] = '\0';
    assert_string_equal(got, expected);
}

static void messages_arrive_at_paths_and_abstract_names(void **state)
{
    (void)state;
    char names[2][64], ready[128];
    snprintf(names[0], sizeof(names[0]), "/tmp/test_systemd.%d", getpid());
    snprintf(names[1], sizeof(names[1]), "@test_systemd.%d", getpid());
    snprintf(ready, sizeof(ready), "READY=1\nSTATUS=8080 http; 1 carrier\nMAINPID=%d", getpid());
    for (int i = 0; i < 2; i++) {
        int fd = receiver(names[i]);
        struct systemd systemd = {.notify_socket = names[i], .notify_fd = -1};
        systemd_open(&systemd);
        systemd_ready(&systemd, "8080 http; 1 carrier");
        assert_heard(fd, ready);
        systemd_status(&systemd, "Draining");
        assert_heard(fd, "STATUS=Draining");
        systemd_feed(&systemd);
        assert_heard(fd, "WATCHDOG=1");
        systemd_stopping(&systemd, 30 * NS_PER_S);
        assert_heard(fd, "STOPPING=1\nEXTEND_TIMEOUT_USEC=30000000");
        close(fd);
        systemd_feed(&systemd); /* nobody is there any more: no harm */
        assert_true(systemd.notify_failed);
        fd = receiver(names[i]); /* the manager came back */
        systemd_feed(&systemd);
        assert_heard(fd, "WATCHDOG=1");
        close(fd);
        systemd_close(&systemd);
        assert_int_equal(systemd.notify_fd, -1);
    }
    unlink(names[0]);
}

static void a_manager_that_does_not_read_holds_nobody_for_ever(void **state)
{
    (void)state;
    char name[64];
    snprintf(name, sizeof(name), "@test_systemd_deaf.%d", getpid());
    int fd = receiver(name);
    int from = sys_notify_open();
    int sent = 0, result;
    while ((result = sys_notify_send(from, name, "WATCHDOG=1")) == 0) {
        assert_in_range(++sent, 1, 100000);
    }
    assert_int_equal(result, -EAGAIN);
    close(from);
    close(fd);
}

static void nobody_is_told_without_a_manager(void **state)
{
    (void)state;
    char *environment[] = {NULL};
    struct systemd systemd;
    systemd_read(&systemd, environment, US);
    systemd_open(&systemd);
    assert_int_equal(systemd.notify_fd, -1);
    systemd_ready(&systemd, "x");
    systemd_stopping(&systemd, 1);
    systemd_close(&systemd);
    assert_false(systemd.notify_failed);
}

static int bound(int family, bool listens)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(family, SOCK_STREAM, 0);
    int result = family == AF_INET6 ? bind(fd, (struct sockaddr *)&six, sizeof(six))
                                    : bind(fd, (struct sockaddr *)&four, sizeof(four));
    if (fd >= 0 && result == 0 && listens) {
        assert_int_equal(listen(fd, 5), 0);
    }
    return result == 0 ? fd : -1;
}

static void a_listener_is_made_like_ours(void **state)
{
    (void)state;
    static const int families[] = {AF_INET, AF_INET6};
    for (int i = 0; i < 2; i++) {
        int fd = bound(families[i], true);
        if (fd < 0) {
            continue; /* a host without IPv6 */
        }
        struct sockaddr_storage at;
        socklen_t length = sizeof(at);
        uint16_t port = 0;
        int value = 0;
        assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &length), 0);
        assert_int_equal(sys_listener_adopt(fd, &port), 0);
        assert_int_equal(port, ntohs(((struct sockaddr_in *)(void *)&at)->sin_port));
        assert_true((fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
        assert_true((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
        length = sizeof(value);
        assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &value, &length), 0);
        assert_int_equal(value, 1);
        close(fd);
    }
}

static void what_is_no_listening_tcp_socket_is_refused(void **state)
{
    (void)state;
    uint16_t port = 0;
    int ends[2];
    int fd = bound(AF_INET, false);
    assert_int_equal(sys_listener_adopt(fd, &port), -EINVAL);
    close(fd);
    assert_int_equal(sys_listener_adopt(fd, &port), -EBADF);
    fd = socket(AF_INET, SOCK_DGRAM, 0);
    assert_int_equal(sys_listener_adopt(fd, &port), -EPROTOTYPE);
    close(fd);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    assert_int_equal(sys_listener_adopt(ends[0], &port), -EPROTOTYPE);
    close(ends[0]);
    close(ends[1]);
    fd = open("/dev/null", O_RDONLY);
    assert_int_equal(sys_listener_adopt(fd, &port), -ENOTSOCK);
    close(fd);
    assert_int_equal(port, 0);
}

static void a_bad_descriptor_is_named(void **state)
{
    (void)state;
    char why[256];
    int fd = open("/dev/null", O_RDONLY);
    struct systemd systemd = {.listener_count = 1};
    systemd.listeners[0] = (struct systemd_listener){.fd = fd, .name = SLICE("http")};
    assert_int_equal(systemd_adopt(&systemd, why, sizeof(why)), -EINVAL);
    assert_non_null(strstr(why, "(http) of LISTEN_FDS=1 is no TCP socket"));
    close(fd);
    assert_int_equal(systemd_adopt(&systemd, why, sizeof(why)), -EINVAL);
    assert_non_null(strstr(why, "is not open"));
}

int main(void)
{
    struct log_setup quiet = {.level = LOG_OFF};
    log_init(&quiet);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_manager_says_is_read_and_taken_out),
        cmocka_unit_test(complaints_about_every_variable_fit),
        cmocka_unit_test(names_go_to_descriptors_in_order),
        cmocka_unit_test(a_socket_is_claimed_by_name_and_port_and_once),
        cmocka_unit_test(messages_arrive_at_paths_and_abstract_names),
        cmocka_unit_test(a_manager_that_does_not_read_holds_nobody_for_ever),
        cmocka_unit_test(nobody_is_told_without_a_manager),
        cmocka_unit_test(a_listener_is_made_like_ours),
        cmocka_unit_test(what_is_no_listening_tcp_socket_is_refused),
        cmocka_unit_test(a_bad_descriptor_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
