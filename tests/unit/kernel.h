/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel.h - a scripted kernel: every function of ring/ring.h and ring/sys.h,
 * simulated in memory, in place of ring.o and sys.o.
 *
 *   test (the peers)  <-->  kernel_socket.c  <-->  kernel_op.c  <-- SQEs --  code under test
 *                           queues, FIN, RST       executes ops -- CQEs -->
 *
 * Time is virtual: it stands still unless the test lets it pass (drive_pass). The
 * seed decides what real kernels leave open: in which order what is ready is done,
 * whether now or at a later enter, into how many pieces received bytes are cut,
 * who wins when a cancel races a completion. The script decides what fails.
 *
 * What no correct program does to a kernel ends the test with a message and abort:
 * a descriptor closed with an op in flight on it or used when it is closed, a
 * user_data in flight twice, a buffer given back twice, a turn that never comes to rest.
 *
 * A test program that contains the line "links: scripted kernel" in a comment
 * links it. Platform threads may call sys.h too: their waits block for real.
 */
#ifndef KERNEL_H
#define KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/attr.h"

struct carrier;
struct fiber;

/* One end of a connection in the test's hands, or a listening port of the test. */
struct kernel_file;

/* ------------------------------------------------------------ the world */

/* What may be changed at any time; kernel_start sets what is said here. */
struct kernel_knobs {
    unsigned late_percent;  /* 25: what is ready is done at a later enter instead */
    unsigned chop_percent;  /* 25: a recv brings less than there is */
    unsigned race_percent;  /* 30: what is ready when it is cancelled wins all the same */
    unsigned break_percent; /* 5: a multishot op ends (F_MORE clear) though it could go on */
    unsigned uncut_percent; /* 50: the piece that reaches a recv's cap is not cut to it (6.18) */
    unsigned descriptors;   /* 4096: how many numbers there are, the first three included */
    bool deaf_shutdown;     /* false: a shutdown of the reading side does not end a recv */
    size_t window;          /* 65536: bytes that a new connection's end takes unread */
    unsigned stall_percent; /* 0: an enter leaves the queue as it is (-EAGAIN, -EBUSY) */
    unsigned ghost_percent; /* 0: a final completion comes a second time, later */
    unsigned slow_percent;  /* 0: what is ready is done after some time, at most slow_ns */
    uint64_t slow_ns;
    /* before drive_start */
    bool recv_cap;       /* true: sqe->optlen caps a multishot recv */
    bool direct_slots;   /* true */
    unsigned sq_entries; /* 256 */
    unsigned cq_entries; /* 4096 */
    unsigned buffers;    /* 64, provided for receiving */
};

extern struct kernel_knobs kernel_knobs;

/*
 * kernel_start - a new world; round makes its seed another one. The seed is SEED of
 * the environment, or the clock, and printed.
 */
void kernel_start(uint64_t round);

/* kernel_start_uneven - likewise, with recv_cap in every other round and a late_percent of the seed. */
void kernel_start_uneven(uint64_t round);

/*
 * kernel_stop - no descriptor and no op is left, every buffer is back. Peers can be
 * asked until the next start.
 */
void kernel_stop(void);

/* kernel_seed - the seed of all worlds from now on, in place of SEED; nothing is printed. */
void kernel_seed(uint64_t seed);

/* kernel_random - below bound, from the seed. */
uint64_t kernel_random(uint64_t bound);

/* kernel_now_ns - the virtual clock; kernel_pass moves it alone, without running anybody. */
uint64_t kernel_now_ns(void);
void kernel_pass(uint64_t ns);

/* What can be made to fail, and is counted. */
enum kernel_call {
    KERNEL_RECV,
    KERNEL_SEND,
    KERNEL_CONNECT,
    KERNEL_POLL,
    KERNEL_READ,
    KERNEL_ACCEPT_DIRECT,
    KERNEL_CANCEL,
    KERNEL_SYS_ACCEPT,
    KERNEL_SYS_SOCKET,
    KERNEL_SYS_SEND,
    KERNEL_SYS_EVENTFD,
    KERNEL_RING_INIT,
    KERNEL_CALLS
};

/* kernel_fail - the nth call from now (1: the next), and so many in a row, end with -errno. */
void kernel_fail(enum kernel_call call, unsigned nth, unsigned times, int error);

/* kernel_short - the nth recv or send from now moves at most so many bytes and is complete then. */
void kernel_short(enum kernel_call call, unsigned nth, size_t bytes);

/* kernel_count - how many calls there have been. */
uint64_t kernel_count(enum kernel_call call);

/* What the simulation (tests/sim) adds to the script; all may be NULL. */
struct io_uring_sqe;
struct kernel_hooks {
    /* asked for each call that the script lets pass; returns 0 or -errno, and may shorten it */
    int (*fault)(enum kernel_call call, struct kernel_file *file, const struct io_uring_sqe *sqe,
                 size_t *bytes);
    /* told what happens, in order; never an address. A name that begins with '!' is a fault */
    void (*note)(const char *what, uint64_t a, uint64_t b, uint64_t c);
};

extern struct kernel_hooks kernel_hooks;

/* kernel_violation - print it with the seed and abort. */
_Noreturn void kernel_violation(const char *format, ...) PRINTF_LIKE(1, 2);

/* figures of the world */
unsigned kernel_open_descriptors(void);
unsigned kernel_ops_in_flight(void);
unsigned kernel_buffers_out(void); /* provided buffers that the program holds */

/* ------------------------------------------------------------ peers */

/* kernel_connect - a client: connect to a port of the program. NULL: refused. */
struct kernel_file *kernel_connect(uint16_t port);

/* kernel_pair - a connected descriptor of the program, and its peer. */
int kernel_pair(struct kernel_file **peer);

/* kernel_serve - a server: a port that the program can connect to. kernel_accept: who came. */
void kernel_serve(uint16_t port);
struct kernel_file *kernel_accept(uint16_t port);

/*
 * kernel_refuse, kernel_hang - what happens to those who connect to that port, or
 * hang there. kernel_answer: those who hang get through.
 */
void kernel_refuse(uint16_t port);
void kernel_hang(uint16_t port);
void kernel_answer(uint16_t port);

/* peer_send - as much as the program's window takes. Returns bytes; -ECONNRESET, -EPIPE. */
ssize_t peer_send(struct kernel_file *peer, const void *src, size_t length);

/* peer_say - all of a string, or the test fails. */
void peer_say(struct kernel_file *peer, const char *text);

/* peer_receive - 0: the program finished sending; -EAGAIN; -ECONNRESET, unread bytes are lost. */
ssize_t peer_receive(struct kernel_file *peer, void *dst, size_t capacity);

/* peer_heard - all that has come and was not heard yet, a string; valid until the next call. */
const char *peer_heard(struct kernel_file *peer);

/* peer_finish: FIN. peer_reset: RST. peer_close: FIN, and what still comes is answered by RST. */
void peer_finish(struct kernel_file *peer);
void peer_reset(struct kernel_file *peer);
void peer_close(struct kernel_file *peer);

/* peer_window - how many unread bytes the peer takes before the program's sends must wait. */
void peer_window(struct kernel_file *peer, size_t bytes);

bool peer_got_fin(const struct kernel_file *peer);
bool peer_got_reset(const struct kernel_file *peer);

/* peer_probed - the program switched keep-alive probes on. peer_vanish: they find nobody. */
bool peer_probed(const struct kernel_file *peer);
void peer_vanish(struct kernel_file *peer);

/* peer_unread - bytes sent to the program that it has not read. */
size_t peer_unread(const struct kernel_file *peer);

/* ------------------------------------------------------------ names */

/* kernel_name - what the resolver says: a numeric address, or NULL and an error (-errno). */
void kernel_name(const char *host, const char *address, int error);

/* kernel_resolver_hold - while held, sys_resolve blocks its thread. */
void kernel_resolver_hold(bool hold);
unsigned kernel_resolutions(void);

/* kernel_blocked_threads - platform threads waiting in sys_poll, sys_recv_wait, sys_sleep_until and the like. */
unsigned kernel_blocked_threads(void);

/* ------------------------------------------------------------ the carriers (kernel_drive.c) */

/*
 * drive_start - so many carriers; one lives on the test's own thread, more on
 * threads of their own that run one at a time, when they are told to.
 */
void drive_start(unsigned count);

/* drive_stop - carriers come to rest, no fiber, stack or op is left; kernel_stop follows. */
void drive_stop(void);

struct carrier *drive_carriers(void); /* array of them */

/* drive_run - turn until nothing can go on unless time passes or a peer does something. */
void drive_run(void);

/* drive_pass - the same, while so much time passes. */
void drive_pass(uint64_t ns);

/*
 * In steps: drive_turn - one turn of one carrier. drive_is_quiet - nothing can go on
 * unless time passes or a peer does something. drive_next_ns - when time alone brings
 * something; UINT64_MAX: never.
 */
void drive_turn(unsigned carrier);
bool drive_is_quiet(void);
uint64_t drive_next_ns(void);

/* drive_until - turn until done(argument), while real threads run; for 10 real seconds at most. */
void drive_until(bool (*done)(void *argument), void *argument);

/* drive_call - run it on a carrier's thread, between two turns. */
void drive_call(unsigned carrier, void (*run)(void *argument), void *argument);

/* drive_spawn - a fiber on the first carrier, named after the text. */
struct fiber *drive_spawn(const char *name, void (*entry)(void *argument), void *argument);

/* drive_turns - of all carriers so far. */
uint64_t drive_turns(void);

#endif
