/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sys_systemd.c - the part of the door to system calls that the talk with a
 * service manager needs. See sys.c. Called by app/systemd.c.
 */
#include "ring/sys_systemd.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/must.h"

static_assert(sizeof(((struct sockaddr_un *)NULL)->sun_path) == SYS_LOCAL_NAME_MAX + 1,
              "a name fits with its NUL");
static_assert(offsetof(struct sockaddr_in, sin_port) == offsetof(struct sockaddr_in6, sin6_port),
              "both families have the port at the same place");

int sys_process_id(void)
{
    return getpid();
}

int sys_notify_open(void)
{
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return -errno;
    }
    /* A manager that does not read must not hold the main thread, which waits for signals, for ever. */
    struct timeval limit = {.tv_sec = 1};
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    return fd;
}

int sys_notify_send(int fd, const char *receiver, const char *text)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    size_t length = strlen(receiver);
    ssize_t sent;

    must(length >= 2 && length <= SYS_LOCAL_NAME_MAX);
    memcpy(to.sun_path, receiver, length);
    if (receiver[0] == '@') {
        to.sun_path[0] = '\0';
    }
    socklen_t to_length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
    do {
        sent = sendto(fd, text, strlen(text), MSG_NOSIGNAL, (struct sockaddr *)&to, to_length);
    } while (sent < 0 && errno == EINTR);
    return sent < 0 ? -errno : 0;
}

/* option_of - an integer option of a socket; -errno. */
static int option_of(int fd, int option)
{
    int value = 0;
    socklen_t length = sizeof(value);
    return getsockopt(fd, SOL_SOCKET, option, &value, &length) < 0 ? -errno : value;
}

int sys_listener_adopt(int fd, uint16_t *port)
{
    struct sockaddr_storage at;
    socklen_t length = sizeof(at);
    int one = 1;

    int family = option_of(fd, SO_DOMAIN);
    if (family < 0) {
        return family;
    }
    if ((family != AF_INET && family != AF_INET6) || option_of(fd, SO_TYPE) != SOCK_STREAM ||
        option_of(fd, SO_PROTOCOL) != IPPROTO_TCP) {
        return -EPROTOTYPE;
    }
    if (option_of(fd, SO_ACCEPTCONN) != 1) {
        return -EINVAL;
    }
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ||
        fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 ||
        getsockname(fd, (struct sockaddr *)&at, &length) < 0) {
        return -errno;
    }
    /* Accepted sockets inherit it; setting it cannot fail on a TCP socket. */
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    uint16_t port_in_network_order;
    memcpy(&port_in_network_order, (char *)&at + offsetof(struct sockaddr_in, sin_port),
           sizeof(port_in_network_order));
    *port = ntohs(port_in_network_order);
    return 0;
}
