/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bare_sleeper.c - the least that a server needs to answer after 100 ms: one thread,
 * epoll, and a queue of answers in the order of their times. No parser, no fibers.
 * bench/run holds /wait-blocking on fibers against it: bare_sleeper [PORT].
 *
 * A request is what ends with an empty line; it has no body, and all is keep-alive.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/time.h"
#include "ring/sys.h"

#define WAIT_NS (100 * NS_PER_MS)
#define CLIENTS_MAX 65536 /* a power of two: the queue goes round */
#define EVENTS_MAX 256

static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Type: text/plain;charset=UTF-8\r\n"
                             "Content-Length: 12\r\n\r\nHello, World";

/* How much of the empty line each client has sent, by descriptor. */
static unsigned char matched[CLIENTS_MAX];

static struct {
    int fd;
    uint64_t due_ns;
} queue[CLIENTS_MAX];
static unsigned queue_first, queue_end;

static int fail(const char *what)
{
    perror(what);
    return 1;
}

static void put(int fd)
{
    queue[queue_end % CLIENTS_MAX].fd = fd;
    queue[queue_end++ % CLIENTS_MAX].due_ns = sys_clock_ns() + WAIT_NS;
}

static void receive(int fd)
{
    char bytes[2048];
    ssize_t got = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);

    if (got == 0 || (got < 0 && errno != EAGAIN)) {
        close(fd);
        return;
    }
    for (ssize_t i = 0; i < got; i++) {
        unsigned char seen = matched[fd];
        matched[fd] = bytes[i] == "\r\n\r\n"[seen] ? seen + 1 : bytes[i] == '\r';
        if (matched[fd] == 4) {
            matched[fd] = 0;
            put(fd);
        }
    }
}

static void take_in(int epoll, int listener)
{
    int fd;
    while ((fd = accept4(listener, NULL, NULL, 0)) >= 0) {
        if (fd >= CLIENTS_MAX) {
            close(fd);
            continue;
        }
        struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
        matched[fd] = 0;
        (void)epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
    }
}

/* answer_due - what is due leaves. Returns how long until the next, NULL: there is none. */
static struct timespec *answer_due(struct timespec *left)
{
    while (queue_first != queue_end) {
        uint64_t now_ns = sys_clock_ns(), due_ns = queue[queue_first % CLIENTS_MAX].due_ns;
        if (due_ns > now_ns) {
            *left = (struct timespec){.tv_nsec = (long)(due_ns - now_ns)};
            return left;
        }
        (void)send(queue[queue_first++ % CLIENTS_MAX].fd, answer, sizeof(answer) - 1, MSG_NOSIGNAL);
    }
    return NULL;
}

int main(int argument_count, char **arguments)
{
    uint16_t port = argument_count > 1 ? (uint16_t)strtoul(arguments[1], NULL, 10) : 0;
    static struct epoll_event events[EVENTS_MAX];
    struct epoll_event event = {.events = EPOLLIN, .data.fd = -1};
    struct timespec left;
    int listener = sys_listen("127.0.0.1", &port), epoll = epoll_create1(0);

    if (listener < 0 || epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event) < 0) {
        return fail("bare_sleeper");
    }
    printf("bare_sleeper started on port %u\n", port);
    (void)fflush(stdout);
    for (;;) {
        int count = epoll_pwait2(epoll, events, EVENTS_MAX, answer_due(&left), NULL);
        for (int i = 0; i < count; i++) {
            if (events[i].data.fd < 0) {
                take_in(epoll, listener);
            } else {
                receive(events[i].data.fd);
            }
        }
    }
}
