/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sys_client.c - see sys_client.h. Called by bench/ringload, never by the server.
 */
#include "ring/sys_client.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/mman.h>

#include "base/must.h"

int sys_bind_source(int fd, const struct sys_address *source)
{
    int on = 1;
    if (setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on)) < 0 ||
        bind(fd, (const struct sockaddr *)&source->storage, source->length) < 0) {
        return -errno;
    }
    return 0;
}

void *sys_memory(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        return NULL;
    }
    (void)madvise(memory, bytes, MADV_HUGEPAGE);
    (void)madvise(memory, bytes, MADV_POPULATE_WRITE);
    return memory;
}

void sys_memory_free(void *memory, size_t bytes)
{
    must(munmap(memory, bytes) == 0);
}
