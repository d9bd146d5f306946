/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_socket.c - the scripted kernel's connections, from both sides.
 *
 * A connection is two files that know each other. What TCP does is kept as far as
 * programs notice: windows, half-closes, a reset on close with unread bytes, a
 * reset as the answer to bytes for a closed socket, -EPIPE instead of -ECONNRESET
 * once a FIN had come. A peer that is reset loses what it had not read, as
 * clients on many systems do.
 */
#include "kernel_parts.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

unsigned kernel__ready(const struct kernel_file *file)
{
    switch (file->kind) {
    case KERNEL_LISTENER:
        return file->queue_first != NULL ? POLLIN : 0;
    case KERNEL_EVENTFD:
        return file->count > 0 ? POLLIN : 0;
    case KERNEL_SOCKET:
        break;
    }
    unsigned events = 0;
    bool no_more = file->finished_by_peer || file->shut_read || file->dead;
    if (file->error != 0) {
        events |= POLLERR | POLLIN | POLLOUT;
    }
    if (file->dead || (no_more && file->shut_write)) {
        events |= POLLHUP | POLLIN | POLLOUT;
    }
    if (file->rx_length > 0 || no_more) {
        events |= POLLIN;
    }
    if (file->finished_by_peer || file->shut_read) {
        events |= POLLRDHUP;
    }
    if (file->connected && (file->shut_write || file->other->rx_length < file->other->window)) {
        events |= POLLOUT;
    }
    return events;
}

static void reset_arrives(struct kernel_file *file)
{
    if (file->dead || file->closed) {
        return;
    }
    file->dead = true;
    file->error = file->finished_by_peer ? -EPIPE : -ECONNRESET;
    if (file->of_test) {
        file->rx_length = 0;
    }
    kernel__wake(file);
}

void kernel__sever(struct kernel_file *file)
{
    if (file->connected) {
        reset_arrives(file->other);
        reset_arrives(file);
    }
}

static int take_error(struct kernel_file *file)
{
    int error = file->error;
    file->error = 0;
    return error;
}

ssize_t kernel__recv(struct kernel_file *file, void *dst, size_t capacity, bool peek)
{
    if (file->kind != KERNEL_SOCKET) {
        kernel_violation("recv on descriptor %d, which is no socket", file->fd);
    }
    if (file->rx_length == 0) {
        if (file->error != 0) {
            return take_error(file);
        }
        if (file->finished_by_peer || file->shut_read || file->dead) {
            return 0;
        }
        return file->connected ? -EAGAIN : -ENOTCONN;
    }
    size_t length = file->rx_length < capacity ? file->rx_length : capacity;
    memcpy(dst, file->rx, length);
    if (!peek) {
        file->rx_length -= length;
        memmove(file->rx, file->rx + length, file->rx_length);
        kernel__wake(file->other); /* it may send again */
    }
    return (ssize_t)length;
}

ssize_t kernel__send(struct kernel_file *file, const void *src, size_t length)
{
    if (file->error != 0) {
        return take_error(file);
    }
    if (file->shut_write || file->dead) {
        return -EPIPE;
    }
    if (!file->connected) {
        return -ENOTCONN;
    }
    if (length == 0) {
        return 0;
    }
    struct kernel_file *other = file->other;
    if (other->closed) {
        reset_arrives(file); /* the bytes left, and met nobody */
        return (ssize_t)length;
    }
    size_t room = other->window > other->rx_length ? other->window - other->rx_length : 0;
    if (room == 0) {
        return -EAGAIN;
    }
    if (length > room) {
        length = room;
    }
    if (other->rx_length + length > other->rx_capacity) {
        other->rx_capacity = (other->rx_length + length) * 2;
        other->rx = realloc(other->rx, other->rx_capacity);
        if (other->rx == NULL) {
            abort();
        }
    }
    memcpy(other->rx + other->rx_length, src, length);
    other->rx_length += length;
    kernel__wake(other);
    return (ssize_t)length;
}

void kernel__shutdown(struct kernel_file *file, int how)
{
    if (!file->connected || file->dead) {
        return;
    }
    if (how != SHUT_RD && !file->shut_write) {
        file->shut_write = true;
        file->other->finished_by_peer = true;
        kernel__wake(file->other);
    }
    if (how != SHUT_WR && !kernel_knobs.deaf_shutdown) {
        file->shut_read = true;
    }
    kernel__wake(file);
}

void kernel__release(struct kernel_file *file)
{
    if (file->closed) {
        kernel_violation("a file is closed twice");
    }
    while (file->queue_first != NULL) {
        struct kernel_file *waiting = file->queue_first;
        file->queue_first = waiting->queue_next;
        waiting->linger_reset = true;
        kernel__release(waiting);
    }
    if (file->kind == KERNEL_SOCKET && file->connected && !file->dead) {
        if (file->linger_reset || file->rx_length > 0) {
            reset_arrives(file->other);
            file->dead = true;
        } else {
            kernel__shutdown(file, SHUT_WR);
        }
    }
    file->closed = true;
    kernel__wake(file);
}

static uint16_t port_of(const struct sys_address *address)
{
    if (address->storage.ss_family == AF_INET6) {
        return ntohs(((const struct sockaddr_in6 *)(const void *)&address->storage)->sin6_port);
    }
    return ntohs(((const struct sockaddr_in *)(const void *)&address->storage)->sin_port);
}

static void join(struct kernel_file *one, struct kernel_file *other)
{
    one->other = other;
    other->other = one;
    one->connected = other->connected = true;
    kernel__wake(one);
    kernel__wake(other);
}

int kernel__connect(struct kernel_file *file, const struct sys_address *address)
{
    struct kernel_file *listener = kernel__listener(port_of(address));
    if (listener == NULL || listener->serving == KERNEL_REFUSES) {
        return -ECONNREFUSED;
    }
    if (listener->serving == KERNEL_HANGS) {
        file->port = listener->port; /* to be settled later */
        return -EINPROGRESS;
    }
    struct kernel_file *accepted = kernel__file_new(KERNEL_SOCKET);
    accepted->of_test = listener->of_test;
    join(file, accepted);
    if (listener->queue_first == NULL) {
        listener->queue_first = accepted;
    } else {
        listener->queue_last->queue_next = accepted;
    }
    listener->queue_last = accepted;
    kernel__wake(listener);
    return 0;
}

struct kernel_file *kernel__accept(struct kernel_file *listener)
{
    struct kernel_file *file = listener->queue_first;
    if (file != NULL) {
        listener->queue_first = file->queue_next;
        file->queue_next = NULL;
    }
    return file;
}

/* ------------------------------------------------------------ peers */

struct kernel_file *kernel_connect(uint16_t port)
{
    struct sys_address address;
    (void)sys_parse_address("127.0.0.1", port, &address);
    kernel__lock();
    struct kernel_file *peer = kernel__file_new(KERNEL_SOCKET);
    peer->of_test = true;
    int result = kernel__connect(peer, &address);
    peer->closed = result != 0;
    kernel__unlock();
    return result == 0 ? peer : NULL;
}

int kernel_pair(struct kernel_file **peer)
{
    kernel__lock();
    struct kernel_file *file = kernel__file_new(KERNEL_SOCKET);
    *peer = kernel__file_new(KERNEL_SOCKET);
    (*peer)->of_test = true;
    join(file, *peer);
    int fd = kernel__install(file);
    kernel__unlock();
    return fd;
}

struct kernel_file *kernel_accept(uint16_t port)
{
    kernel__lock();
    struct kernel_file *listener = kernel__listener(port);
    struct kernel_file *peer = listener != NULL ? kernel__accept(listener) : NULL;
    kernel__unlock();
    return peer;
}

ssize_t peer_send(struct kernel_file *peer, const void *src, size_t length)
{
    kernel__lock();
    ssize_t sent = kernel__send(peer, src, length);
    kernel__unlock();
    return sent == -EAGAIN ? 0 : sent;
}

void peer_say(struct kernel_file *peer, const char *text)
{
    ssize_t sent = peer_send(peer, text, strlen(text));
    if (sent != (ssize_t)strlen(text)) {
        kernel_violation("peer_say: %zd of %zu bytes could be sent", sent, strlen(text));
    }
}

ssize_t peer_receive(struct kernel_file *peer, void *dst, size_t capacity)
{
    kernel__lock();
    ssize_t got = kernel__recv(peer, dst, capacity, false);
    kernel__unlock();
    return got;
}

const char *peer_heard(struct kernel_file *peer)
{
    static char text[1 << 20];
    ssize_t got = peer_receive(peer, text, sizeof(text) - 1);
    text[got > 0 ? got : 0] = '\0';
    return text;
}

void peer_finish(struct kernel_file *peer)
{
    kernel__lock();
    kernel__shutdown(peer, SHUT_WR);
    kernel__unlock();
}

void peer_reset(struct kernel_file *peer)
{
    kernel__lock();
    if (!peer->dead) {
        reset_arrives(peer->other);
        peer->dead = true;
    }
    kernel__unlock();
}

void peer_close(struct kernel_file *peer)
{
    kernel__lock();
    kernel__release(peer);
    kernel__unlock();
}

void peer_vanish(struct kernel_file *peer)
{
    kernel__lock();
    peer->dead = true;
    peer->other->dead = true;
    peer->other->error = -ETIMEDOUT;
    kernel__wake(peer->other);
    kernel__unlock();
}

void peer_window(struct kernel_file *peer, size_t bytes)
{
    kernel__lock();
    peer->window = bytes;
    kernel__wake(peer->other);
    kernel__unlock();
}

bool peer_got_fin(const struct kernel_file *peer)
{
    kernel__lock();
    bool got = peer->finished_by_peer;
    kernel__unlock();
    return got;
}

bool peer_got_reset(const struct kernel_file *peer)
{
    kernel__lock();
    bool got = peer->dead;
    kernel__unlock();
    return got;
}

bool peer_probed(const struct kernel_file *peer)
{
    kernel__lock();
    bool probed = peer->other->probed;
    kernel__unlock();
    return probed;
}

size_t peer_unread(const struct kernel_file *peer)
{
    kernel__lock();
    size_t unread = peer->other->rx_length;
    kernel__unlock();
    return unread;
}
