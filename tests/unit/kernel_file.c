/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_file.c - the scripted kernel's descriptors, and the names its resolver knows.
 */
#include "kernel_parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DESCRIPTORS_MAX 65536u
#define DESCRIPTOR_FIRST 3u /* the lower ones are the process's own */
#define NAMES_MAX 16u

static struct kernel_file *table[DESCRIPTORS_MAX];
static struct kernel_file *all;

static struct {
    char host[64];
    char address[64]; /* empty: the error */
    int error;
} names[NAMES_MAX];
static size_t name_count;
static bool resolver_held;
static unsigned resolutions;

struct kernel_file *kernel__file_new(enum kernel_kind kind)
{
    struct kernel_file *file = calloc(1, sizeof(*file));
    if (file == NULL) {
        abort();
    }
    file->kind = kind;
    file->fd = -1;
    file->slot = -1;
    file->window = kernel_knobs.window;
    file->all_next = all;
    all = file;
    return file;
}

void kernel__files_reset(void)
{
    while (all != NULL) {
        struct kernel_file *next = all->all_next;
        free(all->rx);
        free(all);
        all = next;
    }
    memset(table, 0, sizeof(table));
}

static unsigned lowest_free(void)
{
    unsigned fd = DESCRIPTOR_FIRST;
    while (fd < kernel_knobs.descriptors && table[fd] != NULL) {
        fd++;
    }
    return fd;
}

bool kernel__descriptor_free(void)
{
    return lowest_free() < kernel_knobs.descriptors;
}

int kernel__install(struct kernel_file *file)
{
    /* The lowest number, as the real one: what is used after its close meets another's. */
    unsigned fd = lowest_free();
    if (fd >= kernel_knobs.descriptors) {
        return -EMFILE;
    }
    table[fd] = file;
    file->fd = (int)fd;
    return (int)fd;
}

struct kernel_file *kernel__file_at(int fd)
{
    if (fd < 0 || (unsigned)fd >= DESCRIPTORS_MAX || table[fd] == NULL) {
        kernel_violation("descriptor %d is used but not open", fd);
    }
    return table[fd];
}

void kernel__descriptor_close(int fd)
{
    struct kernel_file *file = kernel__file_at(fd);
    if (file->ops > 0) {
        kernel_violation("descriptor %d is closed with %u ops in flight on it", fd, file->ops);
    }
    table[fd] = NULL;
    file->fd = -1;
    kernel__release(file);
}

struct kernel_file *kernel__listener(uint16_t port)
{
    for (struct kernel_file *file = all; file != NULL; file = file->all_next) {
        if (file->kind == KERNEL_LISTENER && file->port == port && !file->closed) {
            return file;
        }
    }
    return NULL;
}

unsigned kernel_open_descriptors(void)
{
    unsigned count = 0;
    kernel__lock();
    for (unsigned fd = 0; fd < DESCRIPTORS_MAX; fd++) {
        count += table[fd] != NULL;
    }
    kernel__unlock();
    return count;
}

/* settle_hanging - those who wait for this port get through, or are refused. */
static void settle_hanging(struct kernel_file *listener, int error)
{
    for (struct kernel_file *file = all; file != NULL; file = file->all_next) {
        if (file->kind != KERNEL_SOCKET || file->port != listener->port || file->connected ||
            file->closed || file->error != 0) {
            continue;
        }
        if (error != 0) {
            file->error = error;
            file->port = 0;
            kernel__wake(file);
        } else {
            struct sys_address address;
            (void)sys_parse_address("127.0.0.1", file->port, &address);
            (void)kernel__connect(file, &address);
        }
    }
}

static struct kernel_file *serving(uint16_t port, enum kernel_serving how)
{
    struct kernel_file *listener = kernel__listener(port);
    if (listener == NULL) {
        listener = kernel__file_new(KERNEL_LISTENER);
        listener->of_test = true;
        listener->port = port;
    }
    listener->serving = how;
    return listener;
}

void kernel_serve(uint16_t port)
{
    kernel__lock();
    (void)serving(port, KERNEL_ACCEPTS);
    kernel__unlock();
}

void kernel_refuse(uint16_t port)
{
    kernel__lock();
    settle_hanging(serving(port, KERNEL_REFUSES), -ECONNREFUSED);
    kernel__unlock();
}

void kernel_hang(uint16_t port)
{
    kernel__lock();
    (void)serving(port, KERNEL_HANGS);
    kernel__unlock();
}

void kernel_answer(uint16_t port)
{
    kernel__lock();
    settle_hanging(serving(port, KERNEL_ACCEPTS), 0);
    kernel__unlock();
}

/* ------------------------------------------------------------ names */

void kernel__names_reset(void)
{
    name_count = 0;
    resolver_held = false;
    resolutions = 0;
}

void kernel_name(const char *host, const char *address, int error)
{
    kernel__lock();
    size_t at = 0;
    while (at < name_count && strcmp(names[at].host, host) != 0) {
        at++;
    }
    if (at == NAMES_MAX) {
        abort();
    }
    name_count += at == name_count;
    snprintf(names[at].host, sizeof(names[at].host), "%s", host);
    snprintf(names[at].address, sizeof(names[at].address), "%s", address != NULL ? address : "");
    names[at].error = error;
    kernel__unlock();
}

void kernel_resolver_hold(bool hold)
{
    kernel__lock();
    resolver_held = hold;
    kernel__wake(NULL);
    kernel__unlock();
}

unsigned kernel_resolutions(void)
{
    kernel__lock();
    unsigned count = resolutions;
    kernel__unlock();
    return count;
}

int sys_resolve(const char *host, uint16_t port, struct sys_address *dst, size_t capacity)
{
    int result = -ENOENT;
    kernel__lock();
    resolutions++;
    while (resolver_held) {
        kernel__wait();
    }
    for (size_t i = 0; i < name_count; i++) {
        if (strcmp(names[i].host, host) == 0) {
            result = names[i].error;
            if (names[i].address[0] != '\0' && capacity > 0) {
                result = sys_parse_address(names[i].address, port, dst);
            }
        }
    }
    kernel__unlock();
    return result;
}
