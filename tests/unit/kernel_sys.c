/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_sys.c - ring/sys.h on the scripted kernel. sys_resolve is in kernel_file.c.
 *
 * What only the running process can tell (its threads, processors, files) is asked
 * of the real system or left out.
 */
#include "kernel_parts.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/time.h"

#define WALL_BASE_NS (UINT64_C(1794000000) * NS_PER_S)
#define PORT_FREE_FIRST 20000

uint64_t sys_clock_ns(void)
{
    return kernel_now_ns();
}

uint64_t sys_wall_ns(void)
{
    return WALL_BASE_NS + kernel_now_ns();
}

void sys_sleep_until(uint64_t deadline_ns)
{
    kernel__lock();
    while (kernel_now_ns() < deadline_ns) {
        kernel__wait();
    }
    kernel__unlock();
}

int sys_listen(const char *address, uint16_t *port)
{
    struct sys_address at;
    int fd = -EMFILE;

    if (address != NULL && sys_parse_address(address, *port, &at) == 0) {
        return -EINVAL;
    }
    kernel__lock();
    if (*port == 0) {
        *port = PORT_FREE_FIRST;
        while (kernel__listener(*port) != NULL) {
            (*port)++;
        }
    }
    if (kernel__listener(*port) != NULL) {
        fd = -EADDRINUSE;
    } else if (kernel__descriptor_free()) {
        struct kernel_file *file = kernel__file_new(KERNEL_LISTENER);
        file->port = *port;
        fd = kernel__install(file);
    }
    kernel__unlock();
    return fd;
}

int sys_accept(int listener)
{
    kernel__lock();
    struct kernel_file *file = kernel__file_at(listener);
    int result = kernel__script(KERNEL_SYS_ACCEPT, &(struct kernel_request){.file = file}, NULL);
    if (result == 0 && !kernel__descriptor_free()) {
        result = -EMFILE; /* the number is taken before the queue is looked at */
    }
    if (result == 0) {
        struct kernel_file *accepted = kernel__accept(file);
        result = accepted != NULL ? kernel__install(accepted) : -EAGAIN;
    }
    kernel__note("accept", (uint64_t)listener, (uint64_t)(int64_t)result, 0);
    kernel__unlock();
    return result;
}

int sys_socket(const struct sys_address *address, bool nonblocking)
{
    (void)address;
    kernel__lock();
    int result = kernel__script(KERNEL_SYS_SOCKET, &(struct kernel_request){.file = NULL}, NULL);
    if (result == 0) {
        result = -EMFILE;
        if (kernel__descriptor_free()) {
            struct kernel_file *file = kernel__file_new(KERNEL_SOCKET);
            file->nonblocking = nonblocking;
            result = kernel__install(file);
        }
    }
    kernel__unlock();
    return result;
}

int sys_connect(int fd, const struct sys_address *address)
{
    kernel__lock();
    struct kernel_file *file = kernel__file_at(fd);
    int result = kernel__script(KERNEL_CONNECT, &(struct kernel_request){.file = file}, NULL);
    if (result == 0) {
        result = kernel__connect(file, address);
    }
    kernel__unlock();
    return result;
}

int sys_socket_error(int fd)
{
    kernel__lock();
    struct kernel_file *file = kernel__file_at(fd);
    int error = file->error;
    file->error = 0;
    kernel__unlock();
    return error;
}

void sys_peer(int fd, char *dst, size_t size)
{
    kernel__lock();
    snprintf(dst, size, kernel__file_at(fd)->dead ? "-" : "192.0.2.1");
    kernel__unlock();
}

ssize_t sys_recv(int fd, void *dst, size_t capacity)
{
    kernel__lock();
    ssize_t got = kernel__recv(kernel__file_at(fd), dst, capacity, false);
    kernel__unlock();
    return got;
}

ssize_t sys_peek(int fd, void *dst, size_t capacity)
{
    kernel__lock();
    ssize_t got = kernel__recv(kernel__file_at(fd), dst, capacity, true);
    kernel__unlock();
    return got;
}

ssize_t sys_send(int fd, const void *src, size_t length)
{
    size_t at_most;
    kernel__lock();
    struct kernel_file *file = kernel__file_at(fd);
    ssize_t sent =
        kernel__script(KERNEL_SYS_SEND, &(struct kernel_request){.file = file}, &at_most);
    if (sent == 0) {
        sent = kernel__send(file, src, length < at_most ? length : at_most);
    }
    kernel__unlock();
    return sent;
}

ssize_t sys_send_last(int fd, const void *src, size_t length)
{
    return sys_send(fd, src, length);
}

ssize_t sys_recv_wait(int fd, void *dst, size_t capacity)
{
    kernel__lock();
    struct kernel_file *file = kernel__file_at(fd);
    ssize_t got;
    while ((got = kernel__recv(file, dst, capacity, false)) == -EAGAIN) {
        kernel__wait();
    }
    kernel__unlock();
    return got;
}

int sys_send_wait(int fd, const void *src, size_t length)
{
    const char *at = src;
    ssize_t sent = 0;
    kernel__lock();
    struct kernel_file *file = kernel__file_at(fd);
    while (length > 0 && (sent >= 0 || sent == -EAGAIN)) {
        sent = kernel__send(file, at, length);
        if (sent > 0) {
            at += sent;
            length -= (size_t)sent;
        } else if (sent == -EAGAIN) {
            kernel__wait();
        }
    }
    kernel__unlock();
    return sent < 0 ? (int)sent : 0;
}

int sys_poll(int fd, short events, uint64_t deadline_ns)
{
    unsigned asked = (unsigned)(unsigned short)events | POLLERR | POLLHUP;
    unsigned ready;
    kernel__lock();
    struct kernel_file *file = kernel__file_at(fd);
    for (;;) {
        ready = kernel__ready(file) & asked;
        if (ready != 0 || (deadline_ns != 0 && kernel_now_ns() >= deadline_ns)) {
            break;
        }
        kernel__wait();
    }
    kernel__unlock();
    return (int)ready;
}

void sys_wake_signal_block(void)
{
    sigset_t wake;
    sigemptyset(&wake);
    sigaddset(&wake, SYS_WAKE_SIGNAL);
    pthread_sigmask(SIG_BLOCK, &wake, NULL);
}

/* wake_signal_taken - it is pending, for it is blocked and nobody waits for it. */
static bool wake_signal_taken(void)
{
    static const struct timespec not_at_all;
    sigset_t wake;
    sigemptyset(&wake);
    sigaddset(&wake, SYS_WAKE_SIGNAL);
    return sigtimedwait(&wake, NULL, &not_at_all) == SYS_WAKE_SIGNAL;
}

int sys_poll_interruptible(int fd, short events, uint64_t deadline_ns)
{
    unsigned asked = (unsigned)(unsigned short)events | POLLERR | POLLHUP;
    int result = 0;
    kernel__lock();
    for (;;) {
        result = fd >= 0 ? (int)(kernel__ready(kernel__file_at(fd)) & asked) : 0;
        if (result != 0 || (deadline_ns != 0 && kernel_now_ns() >= deadline_ns)) {
            break;
        }
        if (wake_signal_taken()) {
            result = -EINTR;
            break;
        }
        kernel__wait_a_while(); /* a signal does not end a wait for a condition */
    }
    kernel__unlock();
    return result;
}

int sys_wait(int first, int second, uint64_t deadline_ns)
{
    int ready;
    kernel__lock();
    for (;;) {
        ready = ((kernel__ready(kernel__file_at(first)) & POLLIN) != 0 ? 1 : 0) |
                ((kernel__ready(kernel__file_at(second)) & POLLIN) != 0 ? 2 : 0);
        if (ready != 0 || (deadline_ns != 0 && kernel_now_ns() >= deadline_ns)) {
            break;
        }
        kernel__wait();
    }
    kernel__unlock();
    return ready;
}

void sys_shutdown(int fd, int how)
{
    kernel__lock();
    kernel__note("shutdown", (uint64_t)fd, (uint64_t)how, 0);
    kernel__shutdown(kernel__file_at(fd), how);
    kernel__unlock();
}

void sys_reset_on_close(int fd)
{
    kernel__lock();
    kernel__file_at(fd)->linger_reset = true;
    kernel__unlock();
}

void sys_keepalive(int fd, int idle_s, int interval_s)
{
    (void)idle_s;
    (void)interval_s;
    kernel__lock();
    kernel__file_at(fd)->probed = true;
    kernel__unlock();
}

void sys_close(int fd)
{
    kernel__lock();
    kernel__note("close", (uint64_t)fd, 0, 0);
    kernel__descriptor_close(fd);
    kernel__unlock();
}

int sys_eventfd(void)
{
    kernel__lock();
    int result = kernel__script(KERNEL_SYS_EVENTFD, &(struct kernel_request){.file = NULL}, NULL);
    if (result == 0) {
        result =
            kernel__descriptor_free() ? kernel__install(kernel__file_new(KERNEL_EVENTFD)) : -EMFILE;
    }
    kernel__unlock();
    return result;
}

void sys_eventfd_signal(int fd)
{
    kernel__lock();
    struct kernel_file *file = kernel__file_at(fd);
    file->count++;
    kernel__wake(file);
    kernel__unlock();
}

void sys_eventfd_clear(int fd)
{
    kernel__lock();
    kernel__file_at(fd)->count = 0;
    kernel__unlock();
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

/* ------------------------------------------------------------ of the process */

ssize_t sys_read_file(const char *path, char *dst, size_t capacity)
{
    (void)path;
    (void)dst;
    (void)capacity;
    return -ENOENT;
}

int sys_write_all(int fd, const char *src, size_t length)
{
    return write(fd, src, length) == (ssize_t)length ? 0 : -EIO;
}

uint64_t sys_descriptors_raise(uint64_t *before)
{
    *before = kernel_knobs.descriptors;
    return kernel_knobs.descriptors;
}

unsigned sys_processors(void)
{
    return 2;
}

int sys_thread_id(void)
{
    return gettid();
}

int sys_processor(void)
{
    return 0;
}

void sys_thread_figures(struct sys_thread_figures *figures)
{
    *figures = (struct sys_thread_figures){.processor_ns = 0};
}

void sys_thread_name(const char *name)
{
    (void)name;
}

void sys_timer_slack(uint64_t slack_ns)
{
    (void)slack_ns;
}

uint64_t sys_process_age_ns(void)
{
    return 0;
}

int sys_signals_open(void)
{
    return sys_eventfd();
}

int sys_signals_next(int fd)
{
    (void)fd;
    return 0;
}

void sys_kernel_release(char *dst, size_t size)
{
    snprintf(dst, size, "scripted");
}

void sys_host_name(char *dst, size_t size)
{
    snprintf(dst, size, "scripted");
}

void sys_random(void *dst, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        ((unsigned char *)dst)[i] = (unsigned char)kernel_random(256);
    }
}

void sys_exit_now(int code)
{
    _exit(code);
}
