/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sleepers.c - many connections that wait for an answer whose time is known, and how
 * late each one came. Compiled and used by test_memory_sleeping.py: Python's own loop
 * would be later than what it measures.
 *
 * usage: sleepers PORT COUNT PATH DELAY_MS
 *
 * Connects and asks on one connection after the other, says "asked" on stdout, and
 * when all have been answered prints: answers that are a 200, and the lateness in
 * microseconds (from just before each send, less the delay): median, 99 %, 99.9 %,
 * maximum, and the earliest.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>

#ifndef IP_BIND_ADDRESS_NO_PORT
#define IP_BIND_ADDRESS_NO_PORT 24
#endif

#define BATCH 256
#define PATIENCE_US 20000000

static int64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

/* Spread over 127.0.1.x, each of which has ephemeral ports of its own. */
static int connect_to(uint16_t port, unsigned index)
{
    int one = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        fail("socket");
    }
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof(one));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    struct linger reset = {.l_onoff = 1}; /* a FIN would be a half-close, and the server go on */
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    struct sockaddr_in from = {.sin_family = AF_INET,
                               .sin_addr.s_addr = htonl(0x7f000101u + index % 200)};
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (bind(fd, (struct sockaddr *)&from, sizeof(from)) < 0 ||
        connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0) {
        fail("connect");
    }
    return fd;
}

int main(int argc, char **argv)
{
    if (argc != 5) {
        fprintf(stderr, "usage: sleepers PORT COUNT PATH DELAY_MS\n");
        return 2;
    }
    uint16_t port = (uint16_t)atoi(argv[1]);
    unsigned count = (unsigned)atoi(argv[2]);
    int64_t delay_us = atoll(argv[4]) * 1000;
    int *fds = calloc(count, sizeof(*fds));
    int64_t *late_us = calloc(count, sizeof(*late_us)); /* until the answer: minus its time */
    char request[512];
    int length = snprintf(request, sizeof(request),
                          "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nUser-Agent: sleepers\r\n"
                          "Accept: */*\r\n\r\n",
                          argv[3], port);
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    if (fds == NULL || late_us == NULL || epoll < 0) {
        fail("start");
    }
    for (unsigned i = 0; i < count; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = i};
        fds[i] = connect_to(port, i);
        epoll_ctl(epoll, EPOLL_CTL_ADD, fds[i], &event);
        late_us[i] = -(now_us() + delay_us);
        if (send(fds[i], request, (size_t)length, MSG_NOSIGNAL) != length) {
            fail("send");
        }
    }
    int64_t until_us = now_us() + delay_us + PATIENCE_US;
    printf("asked\n");
    fflush(stdout);

    unsigned came = 0, good = 0;
    while (came < count && now_us() < until_us) {
        struct epoll_event events[BATCH];
        int ready = epoll_wait(epoll, events, BATCH, 100);
        for (int i = 0; i < ready; i++) {
            static const char wanted[] = "HTTP/1.1 200 ";
            char answer[4096];
            unsigned index = events[i].data.u32;
            late_us[index] += now_us();
            ssize_t got = recv(fds[index], answer, sizeof(answer), 0);
            good +=
                got >= (ssize_t)sizeof(wanted) && memcmp(answer, wanted, sizeof(wanted) - 1) == 0;
            epoll_ctl(epoll, EPOLL_CTL_DEL, fds[index], NULL);
            came++;
        }
    }
    qsort(late_us, count, sizeof(*late_us), compare);
    printf("%u %lld %lld %lld %lld %lld\n", good, (long long)late_us[count / 2],
           (long long)late_us[(size_t)count * 99 / 100],
           (long long)late_us[(size_t)count * 999 / 1000], (long long)late_us[count - 1],
           (long long)late_us[0]);
    return came == count ? 0 : 1;
}
