/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sys.h - the one door to the system calls that do not go through a ring, the
 * clock included. A simulated kernel can be linked in its place.
 *
 * Unless a line says otherwise every function returns 0 or a positive value, or
 * -errno; EINTR is retried inside. None parks; those that may block the calling
 * OS thread say so and are for platform threads (or the main thread) only.
 */
#ifndef RING_SYS_H
#define RING_SYS_H

#include <netdb.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "base/attr.h"
#include "fiber/task.h"

struct sys_address {
    socklen_t length;
    struct sockaddr_storage storage;
};

/* sys_clock_ns / sys_wall_ns - CLOCK_MONOTONIC; CLOCK_REALTIME since 1970. */
uint64_t sys_clock_ns(void);
uint64_t sys_wall_ns(void);

/* sys_sleep_until - blocks the thread until CLOCK_MONOTONIC reads deadline_ns: never early. */
void sys_sleep_until(uint64_t deadline_ns);

/*
 * sys_listen - a listening, non-blocking TCP socket.
 *
 * @address  numeric IPv4 or IPv6 address, or NULL for all (both families where
 *           the host has IPv6)
 * @port     0 takes a free one; the port taken is stored back
 *
 * Returns  descriptor; -EADDRINUSE, -EACCES, -EADDRNOTAVAIL, -EINVAL no such address …
 */
int sys_listen(const char *address, uint16_t *port) WARN_UNUSED;

/*
 * sys_accept - the next connection of a listener, TCP_NODELAY.
 *
 * Returns  descriptor; -EAGAIN none is waiting; -ECONNABORTED that one has failed
 *          meanwhile, in whatever way, or -EINTR: try the next; others
 *
 * The descriptor is a blocking one: on a non-blocking one the ring answers
 * -EAGAIN instead of waiting (REQ_F_NOWAIT in the kernel's io_uring.c).
 */
int sys_accept(int listener) WARN_UNUSED;

/*
 * sys_socket - a TCP socket for the address's family, to connect with; TCP_NODELAY.
 *
 * Non-blocking for platform threads only. A peer whose host acknowledges nothing
 * for 3 s (it is gone, or moved) ends the connection with -ETIMEDOUT: without
 * that the kernel tries again for a quarter of an hour.
 */
int sys_socket(const struct sys_address *address, bool nonblocking) WARN_UNUSED;

/* sys_connect - start to connect; -EINPROGRESS is the usual answer. */
int sys_connect(int fd, const struct sys_address *address);

/* sys_socket_error - SO_ERROR, as 0 or -errno. */
int sys_socket_error(int fd);

/* sys_peer - numeric address of the peer, "-" when it is gone. */
void sys_peer(int fd, char *dst, size_t size);

/* sys_recv / sys_peek / sys_send - never block; -EAGAIN when nothing can be done now. peek leaves the bytes. */
ssize_t sys_recv(int fd, void *dst, size_t capacity);
ssize_t sys_peek(int fd, void *dst, size_t capacity);
ssize_t sys_send(int fd, const void *src, size_t length);

/* sys_send_last - a few bytes with nothing behind them: they may wait for the SHUT_WR that must follow and leave with its FIN. */
ssize_t sys_send_last(int fd, const void *src, size_t length);

/* sys_recv_wait / sys_send_wait - block the thread; recv until some bytes have come, send until all are taken. */
ssize_t sys_recv_wait(int fd, void *dst, size_t capacity);
int sys_send_wait(int fd, const void *src, size_t length);

/* sys_poll - blocks the thread until fd is ready for events (poll(2)) or deadline_ns (0: none). Returns the events; 0 at the deadline. */
int sys_poll(int fd, short events, uint64_t deadline_ns);

/*
 * SYS_WAKE_SIGNAL ends a sys_poll_interruptible of the thread that it is sent to
 * (-EINTR), whether it comes before or during the call: threads keep it blocked,
 * and only the wait lets it in. sys_wake_signal_block prepares the calling thread.
 */
#define SYS_WAKE_SIGNAL TASK_WAKE_SIGNAL
void sys_wake_signal_block(void);

/* sys_poll_interruptible - as sys_poll; fd -1 only waits for the deadline; -EINTR SYS_WAKE_SIGNAL came. */
int sys_poll_interruptible(int fd, short events, uint64_t deadline_ns);

/* sys_shutdown - SHUT_WR or SHUT_RDWR; a peer that is gone is no error. */
void sys_shutdown(int fd, int how);

/* sys_reset_on_close - SO_LINGER {1,0}: the close that follows sends a reset. */
void sys_reset_on_close(int fd);

/* sys_keepalive - SO_KEEPALIVE: first probe after idle_s seconds, then every interval_s, three in all. */
void sys_keepalive(int fd, int idle_s, int interval_s);

/* sys_close - must not fail with EBADF. */
void sys_close(int fd);

/* sys_eventfd - a new counter descriptor; sys_eventfd_signal adds one. */
int sys_eventfd(void) WARN_UNUSED;
void sys_eventfd_signal(int fd);

/*
 * sys_resolve - getaddrinfo(3) for TCP: blocks the thread, for the offload pool.
 *
 * Returns  how many addresses, at most capacity; -ENOENT no such name; -EAGAIN the resolver failed for now
 */
int sys_resolve(const char *host, uint16_t port, struct sys_address *dst,
                size_t capacity) WARN_UNUSED;

/* sys_parse_address - the address if host is a numeric one. Returns 1, or 0 when it is a name. */
int sys_parse_address(const char *host, uint16_t port, struct sys_address *dst);

/* sys_read_file - the whole file into dst. Returns bytes; -EFBIG more than capacity; -EISDIR … */
ssize_t sys_read_file(const char *path, char *dst, size_t capacity);

/* sys_write_all - to a pipe, terminal or file; blocks the thread. */
int sys_write_all(int fd, const char *src, size_t length);

/* sys_descriptors_raise - soft RLIMIT_NOFILE up to the hard one. Returns the limit now in force. */
uint64_t sys_descriptors_raise(uint64_t *before);

/* sys_processors - how many sched_getaffinity(2) allows, at least 1. */
unsigned sys_processors(void);

/* sys_thread_id, sys_processor - gettid(2), getcpu(2). */
int sys_thread_id(void);
int sys_processor(void);

/* What the kernel counts for the calling thread. */
struct sys_thread_figures {
    uint64_t processor_ns; /* processor time used */
    uint64_t switches;     /* context switches, of its own will or not */
    char *stack_low;
    size_t stack_bytes;
};

/* sys_thread_figures - getrusage(2) RUSAGE_THREAD, pthread_getattr_np(3). For platform threads. */
void sys_thread_figures(struct sys_thread_figures *figures);

/* sys_thread_name - at most 15 bytes of it are kept (ps -L, gdb). */
void sys_thread_name(const char *name);

/* sys_timer_slack - how late the kernel may wake this thread, nanoseconds. */
void sys_timer_slack(uint64_t slack_ns);

/* sys_process_age_ns - time since the process was started (execve), at 10 ms resolution. */
uint64_t sys_process_age_ns(void);

/*
 * sys_signals_open - block SIGTERM, SIGINT and SIGQUIT for this thread and those it starts, ignore SIGPIPE.
 *
 * Returns  a descriptor to poll for sys_signals_next
 */
int sys_signals_open(void) WARN_UNUSED;

/* sys_signals_next - the next signal's number; 0 when there is none. */
int sys_signals_next(int fd);

/* sys_wait - blocks the thread until one of two descriptors is readable or deadline_ns (0: none). Returns a mask: 1, 2. */
int sys_wait(int first, int second, uint64_t deadline_ns);

/* sys_eventfd_clear - take what was signalled. */
void sys_eventfd_clear(int fd);

/* sys_kernel_release - as uname(2) tells it: "6.18.44". */
void sys_kernel_release(char *dst, size_t size);

/* sys_host_name - as uname(2) tells it now; in a container that is its id or what it was called. */
void sys_host_name(char *dst, size_t size);

/* sys_random - random bytes that nobody can guess; blocks at most while the machine boots. getrandom(2). */
void sys_random(void *dst, size_t length);

/* sys_exit_now - end the process without running anything else. */
_Noreturn void sys_exit_now(int code);

#endif
