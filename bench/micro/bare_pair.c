/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bare_pair.c - what a greeter costs without fibers, threads and rings: two
 * processes with plain blocking calls, a greeter and its client, one connection
 * after the other. bench/run holds the echo profile against it.
 *
 *   bare_pair COUNT        both: the greeter in a child
 *   bare_pair COUNT PORT   the client alone, against somebody else's greeter
 *
 * Prints a line of JSON: seconds in all; with its own greeter the average and
 * longest wait to accept, from the hand-over of one connection to that of the next.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ring/sys.h"

static const char greeting[] = "[echo] Hello World\n";

static int fail(const char *what)
{
    perror(what);
    return 1;
}

static struct sockaddr_in loopback(uint16_t port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

/* greet - count clients; then average and longest wait to accept, in ns, go to report_fd. */
static int greet(int listener, long count, int report_fd)
{
    uint64_t waits[2] = {0, 0}, last_ns = 0;

    for (long i = 0; i < count; i++) {
        int fd = accept(listener, NULL, NULL);
        if (fd < 0) {
            return fail("accept");
        }
        uint64_t now_ns = sys_clock_ns();
        if (i > 0) {
            uint64_t wait_ns = now_ns - last_ns;
            waits[0] += wait_ns;
            waits[1] = wait_ns > waits[1] ? wait_ns : waits[1];
        }
        last_ns = now_ns;
        if (send(fd, greeting, sizeof(greeting) - 1, MSG_NOSIGNAL) < 0) {
            return fail("send");
        }
        close(fd);
    }
    waits[0] /= count > 1 ? (uint64_t)count - 1 : 1;
    return write(report_fd, waits, sizeof(waits)) == sizeof(waits) ? 0 : fail("write");
}

/* visit - count connections, one after the other, each read to its end. */
static int visit(uint16_t port, long count)
{
    struct sockaddr_in address = loopback(port);
    char bytes[256];

    for (long i = 0; i < count; i++) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
            return fail("connect");
        }
        size_t length = 0;
        ssize_t got;
        while ((got = recv(fd, bytes + length, sizeof(bytes) - length, 0)) > 0) {
            length += (size_t)got;
        }
        if (got < 0 || length != sizeof(greeting) - 1 || memcmp(bytes, greeting, length) != 0) {
            fprintf(stderr, "bare_pair: connection %ld had no whole greeting\n", i + 1);
            return 1;
        }
        close(fd);
    }
    return 0;
}

static int visit_timed(uint16_t port, long count, double *seconds)
{
    uint64_t began_ns = sys_clock_ns();
    int code = visit(port, count);
    *seconds = (double)(sys_clock_ns() - began_ns) / 1e9;
    return code;
}

static int both(long count)
{
    struct sockaddr_in address = loopback(0);
    socklen_t length = sizeof(address);
    uint64_t waits[2];
    double seconds;
    int report[2], status;
    int listener = socket(AF_INET, SOCK_STREAM, 0);

    if (listener < 0 || bind(listener, (struct sockaddr *)&address, length) < 0 ||
        listen(listener, 4096) < 0 || pipe(report) < 0 ||
        getsockname(listener, (struct sockaddr *)&address, &length) < 0) {
        return fail("bare_pair");
    }
    pid_t child = fork();
    if (child == 0) {
        _exit(greet(listener, count, report[1]));
    }
    int code = child < 0 ? fail("fork") : visit_timed(ntohs(address.sin_port), count, &seconds);
    if (child > 0 && (waitpid(child, &status, 0) < 0 || status != 0)) {
        code = 1;
    }
    if (code != 0 || read(report[0], waits, sizeof(waits)) != sizeof(waits)) {
        return 1;
    }
    printf("{\"seconds\":%.3f,\"averageMillis\":%.6f,\"maxMillis\":%.6f}\n", seconds,
           (double)waits[0] / 1e6, (double)waits[1] / 1e6);
    return 0;
}

int main(int argument_count, char **arguments)
{
    long count = argument_count > 1 ? strtol(arguments[1], NULL, 10) : 0;
    double seconds;

    if (count < 1 || argument_count > 3) {
        fprintf(stderr, "usage: bare_pair COUNT [PORT]\n");
        return 2;
    }
    if (argument_count == 2) {
        return both(count);
    }
    int code = visit_timed((uint16_t)strtol(arguments[2], NULL, 10), count, &seconds);
    if (code == 0) {
        printf("{\"seconds\":%.3f}\n", seconds);
    }
    return code;
}
