/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ring_restrict.h - the few operations that a ring of ours takes.
 *
 * A process that may use io_uring may ask it for all that system calls do, past
 * its seccomp filter. The kernel therefore keeps a list for each ring, which
 * cannot be taken back once the ring is enabled. For ring.c.
 */
#ifndef RING_RING_RESTRICT_H
#define RING_RING_RESTRICT_H

struct io_uring;

/*
 * ring__restrict - only what op.c submits, and what ring.c still registers; between
 *                  the ring's set-up (R_DISABLED) and its enabling.
 *
 * Returns  how many operations are allowed; 0 the kernel has no restrictions, and any is
 * Source   io_uring_register(2) IORING_REGISTER_RESTRICTIONS, Linux 5.10
 */
unsigned ring__restrict(struct io_uring *uring);

#endif
