/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sys_client.h - the part of the door to system calls that only a client at a
 * terminal needs: the load generator. See sys.h.
 */
#ifndef RING_SYS_CLIENT_H
#define RING_SYS_CLIENT_H

#include <stddef.h>

#include "base/attr.h"
#include "ring/sys.h"

/*
 * sys_bind_source - have a socket connect from this address; its port is chosen
 * only by the connect, so that it may serve other targets at the same time.
 *
 * Source  ip(7) IP_BIND_ADDRESS_NO_PORT, Linux 4.2
 */
int sys_bind_source(int fd, const struct sys_address *source) WARN_UNUSED;

/*
 * sys_memory - zeroed memory that is resident from the start, in large pages where
 * there are any. sys_memory_free takes the same size.
 *
 * Returns  the memory, aligned to a page; NULL
 * Source   madvise(2) MADV_POPULATE_WRITE, Linux 5.14
 */
void *sys_memory(size_t bytes) WARN_UNUSED;
void sys_memory_free(void *memory, size_t bytes);

#endif
