/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sys_socket.c - the part of the door to system calls that is about sockets and
 * their addresses. See sys.c.
 */
#include "ring/sys.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Pending connections that the kernel keeps; net.core.somaxconn caps it. */
#define LISTEN_BACKLOG 65535

/* Four retransmissions, at 0.2, 0.6, 1.4 and 3 s. */
#define UNACKNOWLEDGED_MAX_MS 3000

static int result_of(long result)
{
    return result < 0 ? -errno : (int)result;
}

static void set_option(int fd, int level, int option, int value)
{
    /* Fails only when the peer has gone, which the next read tells. */
    (void)setsockopt(fd, level, option, &value, sizeof(value));
}

static int listen_family(int family, const struct sys_address *address)
{
    int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return -errno;
    }
    set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
    set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1); /* accepted sockets inherit it */
    if (family == AF_INET6) {
        set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
    }
    if (bind(fd, (const struct sockaddr *)&address->storage, address->length) < 0 ||
        listen(fd, LISTEN_BACKLOG) < 0) {
        int error = -errno;
        close(fd);
        return error;
    }
    return fd;
}

static uint16_t port_of(const struct sys_address *address)
{
    if (address->storage.ss_family == AF_INET6) {
        return ntohs(((const struct sockaddr_in6 *)(const void *)&address->storage)->sin6_port);
    }
    return ntohs(((const struct sockaddr_in *)(const void *)&address->storage)->sin_port);
}

int sys_listen(const char *address, uint16_t *port)
{
    struct sys_address at;
    int fd;

    if (address != NULL) {
        if (!sys_parse_address(address, *port, &at)) {
            return -EINVAL;
        }
        fd = listen_family(at.storage.ss_family, &at);
    } else {
        sys_parse_address("::", *port, &at);
        fd = listen_family(AF_INET6, &at);
        /* A host without IPv6 says EAFNOSUPPORT, one with it disabled EADDRNOTAVAIL. */
        if (fd == -EAFNOSUPPORT || fd == -EADDRNOTAVAIL) {
            sys_parse_address("0.0.0.0", *port, &at);
            fd = listen_family(AF_INET, &at);
        }
    }
    if (fd < 0) {
        return fd;
    }
    at.length = sizeof(at.storage);
    if (getsockname(fd, (struct sockaddr *)&at.storage, &at.length) < 0) {
        int error = -errno;
        close(fd);
        return error;
    }
    *port = port_of(&at);
    return fd;
}

int sys_accept(int listener)
{
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd >= 0) {
        return fd;
    }
    switch (errno) {
    /* accept(2): errors of the connection itself, to be treated as "try the next". */
    case EPROTO:
    case ENOPROTOOPT:
    case ENETDOWN:
    case ENETUNREACH:
    case ENONET:
    case EHOSTDOWN:
    case EHOSTUNREACH:
        return -ECONNABORTED;
    default:
        return -errno;
    }
}

int sys_socket(const struct sys_address *address, bool nonblocking)
{
    int type = SOCK_STREAM | SOCK_CLOEXEC | (nonblocking ? SOCK_NONBLOCK : 0);
    int fd = socket(address->storage.ss_family, type, 0);
    if (fd < 0) {
        return -errno;
    }
    set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, UNACKNOWLEDGED_MAX_MS);
    return fd;
}

int sys_connect(int fd, const struct sys_address *address)
{
    return result_of(connect(fd, (const struct sockaddr *)&address->storage, address->length));
}

int sys_socket_error(int fd)
{
    int error = 0;
    socklen_t length = sizeof(error);
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) < 0) {
        return -errno;
    }
    return -error;
}

void sys_peer(int fd, char *dst, size_t size)
{
    struct sys_address peer = {.length = sizeof(peer.storage)};
    if (getpeername(fd, (struct sockaddr *)&peer.storage, &peer.length) < 0 ||
        getnameinfo((struct sockaddr *)&peer.storage, peer.length, dst, (socklen_t)size, NULL, 0,
                    NI_NUMERICHOST) != 0) {
        snprintf(dst, size, "-");
        return;
    }
    /* A client of IPv4 on a socket of both families: "::ffff:127.0.0.1". */
    if (strncmp(dst, "::ffff:", 7) == 0 && strchr(dst, '.') != NULL) {
        memmove(dst, dst + 7, strlen(dst) - 6);
    }
}

static ssize_t receive(int fd, void *dst, size_t capacity, int flags)
{
    ssize_t got;
    do {
        got = recv(fd, dst, capacity, flags);
    } while (got < 0 && errno == EINTR);
    return got < 0 ? -errno : got;
}

ssize_t sys_recv(int fd, void *dst, size_t capacity)
{
    return receive(fd, dst, capacity, MSG_DONTWAIT);
}

ssize_t sys_peek(int fd, void *dst, size_t capacity)
{
    return receive(fd, dst, capacity, MSG_DONTWAIT | MSG_PEEK);
}

static ssize_t send_some(int fd, const void *src, size_t length, int flags)
{
    ssize_t sent;
    do {
        sent = send(fd, src, length, flags | MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    return sent < 0 ? -errno : sent;
}

ssize_t sys_send(int fd, const void *src, size_t length)
{
    return send_some(fd, src, length, MSG_DONTWAIT);
}

ssize_t sys_send_last(int fd, const void *src, size_t length)
{
    return send_some(fd, src, length, MSG_DONTWAIT | MSG_MORE);
}

ssize_t sys_recv_wait(int fd, void *dst, size_t capacity)
{
    return receive(fd, dst, capacity, 0);
}

int sys_send_wait(int fd, const void *src, size_t length)
{
    const char *at = src;
    while (length > 0) {
        ssize_t sent = send_some(fd, at, length, 0);
        if (sent < 0) {
            return (int)sent;
        }
        at += sent;
        length -= (size_t)sent;
    }
    return 0;
}

void sys_shutdown(int fd, int how)
{
    (void)shutdown(fd, how); /* ENOTCONN: the peer reset meanwhile */
}

void sys_reset_on_close(int fd)
{
    struct linger hard = {.l_onoff = 1, .l_linger = 0};
    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
}

void sys_keepalive(int fd, int idle_s, int interval_s)
{
    set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, idle_s);
    set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, interval_s);
    set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, 3);
    set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
}

int sys_resolve(const char *host, uint16_t port, struct sys_address *dst, size_t capacity)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    char service[8];

    snprintf(service, sizeof(service), "%u", port);
    int error = getaddrinfo(host, service, &hints, &found);
    if (error != 0) {
        return error == EAI_NONAME ? -ENOENT : error == EAI_MEMORY ? -ENOMEM : -EAGAIN;
    }
    size_t count = 0;
    for (struct addrinfo *one = found; one != NULL && count < capacity; one = one->ai_next) {
        if (one->ai_addrlen <= sizeof(dst[count].storage)) {
            dst[count].length = one->ai_addrlen;
            memcpy(&dst[count].storage, one->ai_addr, one->ai_addrlen);
            count++;
        }
    }
    freeaddrinfo(found);
    return count > 0 ? (int)count : -ENOENT;
}

int sys_parse_address(const char *host, uint16_t port, struct sys_address *dst)
{
    struct sockaddr_in *four = (struct sockaddr_in *)(void *)&dst->storage;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)(void *)&dst->storage;

    memset(dst, 0, sizeof(*dst));
    if (inet_pton(AF_INET, host, &four->sin_addr) == 1) {
        four->sin_family = AF_INET;
        four->sin_port = htons(port);
        dst->length = sizeof(*four);
        return 1;
    }
    if (inet_pton(AF_INET6, host, &six->sin6_addr) == 1) {
        six->sin6_family = AF_INET6;
        six->sin6_port = htons(port);
        dst->length = sizeof(*six);
        return 1;
    }
    return 0;
}
