/* SPDX-License-Identifier: Apache-2.0 */
/*
 * threads.c - the demo's routes with one platform thread a connection and plain
 * blocking calls: threads PORT REMOTE_PORT.
 *
 * As little HTTP as the load generators need: a request is what ends with an empty
 * line, and has no body. One stack of 64 KiB a thread; each thread keeps its own
 * connection to the remote.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define STACK_BYTES 65536
#define BUFFER_BYTES 4096

static uint16_t remote_port;

static struct sockaddr_in loopback(uint16_t port)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons(port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static int send_all(int fd, const char *src, size_t length)
{
    while (length > 0) {
        ssize_t sent = send(fd, src, length, MSG_NOSIGNAL);
        if (sent < 0) {
            return -1;
        }
        src += sent;
        length -= (size_t)sent;
    }
    return 0;
}

/* read_head - bytes up to and with the empty line, into buffer, ended by NUL; 0 at the peer's end. */
static size_t read_head(int fd, char *buffer, size_t *held)
{
    for (;;) {
        buffer[*held] = '\0';
        char *end = strstr(buffer, "\r\n\r\n");
        if (end != NULL) {
            return (size_t)(end - buffer) + 4;
        }
        if (*held == BUFFER_BYTES - 1) {
            return 0;
        }
        ssize_t got = recv(fd, buffer + *held, BUFFER_BYTES - 1 - *held, 0);
        if (got <= 0) {
            return 0;
        }
        *held += (size_t)got;
    }
}

static int respond(int fd, const char *body, size_t length)
{
    char answer[BUFFER_BYTES];
    int bytes = snprintf(answer, sizeof(answer),
                         "HTTP/1.1 200 OK\r\nContent-Type: text/plain;charset=UTF-8\r\n"
                         "Content-Length: %zu\r\n\r\n%.*s",
                         length, (int)length, body);
    return send_all(fd, answer, (size_t)bytes);
}

/* call_remote - ask it for /remote/n and read the whole answer, on this thread's own connection. */
static int call_remote(int *remote, const char *n, char *body, size_t *length)
{
    char buffer[BUFFER_BYTES];
    size_t held = 0;
    if (*remote < 0) {
        struct sockaddr_in address = loopback(remote_port);
        *remote = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (*remote < 0 || connect(*remote, (struct sockaddr *)&address, sizeof(address)) < 0) {
            return -1;
        }
        setsockopt(*remote, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    }
    int bytes = snprintf(buffer, sizeof(buffer), "GET /remote/%.32s HTTP/1.1\r\nHost: r\r\n\r\n", n);
    if (send_all(*remote, buffer, (size_t)bytes) < 0) {
        return -1;
    }
    size_t head = read_head(*remote, buffer, &held);
    char *field = head > 0 ? strcasestr(buffer, "content-length:") : NULL;
    if (field == NULL) {
        return -1;
    }
    *length = (size_t)strtoul(field + 15, NULL, 10);
    while (held < head + *length && held < BUFFER_BYTES - 1) {
        ssize_t got = recv(*remote, buffer + held, BUFFER_BYTES - 1 - held, 0);
        if (got <= 0) {
            return -1;
        }
        held += (size_t)got;
    }
    memcpy(body, buffer + head, *length);
    return 0;
}

static void *serve(void *argument)
{
    int fd = (int)(intptr_t)argument, remote = -1, going = 1;
    char buffer[BUFFER_BYTES], body[BUFFER_BYTES];
    size_t held = 0, head, length;

    while (going && (head = read_head(fd, buffer, &held)) > 0) {
        double seconds = 0;
        char n[33];
        going = strstr(buffer, "HTTP/1.0") == NULL || strcasestr(buffer, "keep-alive") != NULL;
        if (sscanf(buffer, "GET /remote/%32[^ ]", n) == 1) {
            seconds = strtod(n, NULL);
            struct timespec sleep = {.tv_sec = (time_t)seconds,
                                     .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};
            nanosleep(&sleep, NULL);
            length = (size_t)snprintf(body, sizeof(body), "Hello, delayed by %s seconds.", n);
        } else if (sscanf(buffer, "GET /blocking/%32[^ ]", n) == 1) {
            if (call_remote(&remote, n, body, &length) < 0) {
                break;
            }
        } else {
            length = (size_t)snprintf(body, sizeof(body), "Thread[#%05d,http-exec-00001,5,main]:::::::",
                                      (int)gettid() % 100000);
        }
        if (respond(fd, body, length) < 0) {
            break;
        }
        memmove(buffer, buffer + head, held - head);
        held -= head;
    }
    close(fd);
    if (remote >= 0) {
        close(remote);
    }
    return NULL;
}

int main(int argument_count, char **arguments)
{
    if (argument_count != 3) {
        fprintf(stderr, "usage: threads PORT REMOTE_PORT\n");
        return 2;
    }
    struct sockaddr_in address = loopback((uint16_t)atoi(arguments[1]));
    remote_port = (uint16_t)atoi(arguments[2]);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    signal(SIGPIPE, SIG_IGN);
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
    if (bind(listener, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(listener, 4096) < 0) {
        perror("threads");
        return 1;
    }
    for (;;) {
        int fd = accept(listener, NULL, NULL);
        pthread_t thread;
        if (fd < 0) {
            continue;
        }
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
        if (pthread_create(&thread, &attributes, serve, (void *)(intptr_t)fd) != 0) {
            close(fd);
        }
    }
}
