/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bare_loop.c - the least that an io_uring server can do, to measure ringspun against.
 *
 * One thread, one ring, multishot accept, multishot recv from a provided-buffer
 * ring, one send per recv of an answer that never changes. It does not parse (one
 * recv counts as one request), keeps no state per connection but the descriptor
 * in user_data, has no deadline, and treats pipelined or split requests wrongly.
 * What it costs is the kernel's share of a request; what ringspun costs beyond it
 * is ringspun's. Run by bench/micro/compare.py. Kernel 6.1.
 *
 * usage: bare_loop PORT [CPU [BYTES]]
 *   PORT   on 127.0.0.1; 0 takes a free one; it is printed
 *   CPU    to be pinned to; -1 (or nothing) leaves that to the caller
 *   BYTES  length of the whole answer, head and body
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* CPU_SET */
#endif
#include <arpa/inet.h>
#include <errno.h>
#include <liburing.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The same sizes as ringspun's carriers, so that the rings cost the same. */
#define SQ_ENTRIES 256
#define CQ_ENTRIES 4096
#define BUFFER_COUNT 4096 /* a power of two */
#define BUFFER_BYTES 2048
#define BUFFER_GROUP 0
#define REAP_BATCH 256

#define ANSWER_BYTES_DEFAULT 167
#define ANSWER_BYTES_MAX 4096

/* The low half of user_data says what the completion is of, the high half the descriptor. */
enum kind { KIND_ACCEPT, KIND_RECV, KIND_SEND };

static struct io_uring ring;
static struct io_uring_buf_ring *buffer_ring;
static unsigned char *buffers;
static int listener;
static char answer[ANSWER_BYTES_MAX + 1];
static size_t answer_bytes;

static void die(const char *what, int error)
{
    fprintf(stderr, "bare_loop: %s: %s\n", what, strerror(error));
    exit(1);
}

/* A full submission queue is submitted and tried again: it is empty afterwards. */
static struct io_uring_sqe *sqe_take(void)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);
    if (!sqe) {
        io_uring_submit(&ring);
        sqe = io_uring_get_sqe(&ring);
    }
    if (!sqe) {
        die("the submission queue stays full", EBUSY);
    }
    return sqe;
}

static void sqe_mark(struct io_uring_sqe *sqe, enum kind kind, int fd)
{
    io_uring_sqe_set_data64(sqe, (uint64_t)(uint32_t)fd << 32 | kind);
}

static void accept_arm(void)
{
    struct io_uring_sqe *sqe = sqe_take();
    io_uring_prep_multishot_accept(sqe, listener, NULL, NULL, SOCK_CLOEXEC);
    sqe_mark(sqe, KIND_ACCEPT, listener);
}

static void recv_arm(int fd)
{
    struct io_uring_sqe *sqe = sqe_take();
    io_uring_prep_recv_multishot(sqe, fd, NULL, 0, 0);
    sqe->flags |= IOSQE_BUFFER_SELECT;
    sqe->buf_group = BUFFER_GROUP;
    sqe_mark(sqe, KIND_RECV, fd);
}

static void send_start(int fd)
{
    struct io_uring_sqe *sqe = sqe_take();
    io_uring_prep_send(sqe, fd, answer, answer_bytes, MSG_WAITALL | MSG_NOSIGNAL);
    sqe_mark(sqe, KIND_SEND, fd);
}

static void buffer_put(unsigned id)
{
    io_uring_buf_ring_add(buffer_ring, buffers + (size_t)id * BUFFER_BYTES, BUFFER_BYTES,
                          (unsigned short)id, io_uring_buf_ring_mask(BUFFER_COUNT), 0);
    io_uring_buf_ring_advance(buffer_ring, 1);
}

static void on_accept(int result, unsigned flags)
{
    if (result >= 0) {
        int one = 1;
        (void)setsockopt(result, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        recv_arm(result);
    } else if (result != -ECONNABORTED) {
        die("accept", -result);
    }
    if (!(flags & IORING_CQE_F_MORE)) {
        accept_arm();
    }
}

static void on_recv(int fd, int result, unsigned flags)
{
    if (flags & IORING_CQE_F_BUFFER) {
        buffer_put(flags >> IORING_CQE_BUFFER_SHIFT);
    }
    if (result > 0) {
        send_start(fd);
    }
    if (flags & IORING_CQE_F_MORE) {
        return;
    }
    if (result > 0 || result == -ENOBUFS) {
        recv_arm(fd);
    } else {
        close(fd); /* no other op is in flight on it: a client that went has had its answer */
    }
}

static void answer_init(void)
{
    const char *head = "HTTP/1.1 200 OK\r\n"
                       "Content-Type: text/plain;charset=UTF-8\r\n"
                       "Content-Length: %zu\r\n"
                       "Date: Mon, 30 Nov 2026 15:58:44 GMT\r\n\r\n";
    /* The number's width is part of the head's length: try the widths there are. */
    for (size_t body = 0; body < answer_bytes; body++) {
        size_t length = (size_t)snprintf(answer, sizeof answer, head, body);
        if (length + body == answer_bytes) {
            memset(answer + length, '#', body);
            return;
        }
    }
    die("BYTES is too small for a head", EINVAL);
}

static void listener_init(uint16_t port)
{
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0) {
        die("socket", errno);
    }
    int one = 1;
    (void)setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    if (bind(listener, (struct sockaddr *)&address, length) || listen(listener, 4096) ||
        getsockname(listener, (struct sockaddr *)&address, &length)) {
        die("bind or listen", errno);
    }
    printf("bare_loop started on port %u\n", ntohs(address.sin_port));
    fflush(stdout);
}

static void ring_init(void)
{
    struct io_uring_params params = {.flags = IORING_SETUP_SINGLE_ISSUER |
                                              IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_SUBMIT_ALL |
                                              IORING_SETUP_CLAMP | IORING_SETUP_CQSIZE,
                                     .cq_entries = CQ_ENTRIES};
    int result = io_uring_queue_init_params(SQ_ENTRIES, &ring, &params);
    if (result < 0) {
        die("io_uring_setup", -result);
    }
    (void)io_uring_register_ring_fd(&ring);
    buffer_ring = io_uring_setup_buf_ring(&ring, BUFFER_COUNT, BUFFER_GROUP, 0, &result);
    buffers = aligned_alloc(4096, (size_t)BUFFER_COUNT * BUFFER_BYTES);
    if (!buffer_ring || !buffers) {
        die("buffer ring", buffer_ring ? ENOMEM : -result);
    }
    for (unsigned id = 0; id < BUFFER_COUNT; id++) {
        buffer_put(id);
    }
}

static void dispatch(const struct io_uring_cqe *cqe)
{
    int fd = (int)(cqe->user_data >> 32);
    switch ((enum kind)(uint32_t)cqe->user_data) {
    case KIND_ACCEPT:
        on_accept(cqe->res, cqe->flags);
        break;
    case KIND_RECV:
        on_recv(fd, cqe->res, cqe->flags);
        break;
    case KIND_SEND: /* a client that left is seen by its recv */
        break;
    }
}

int main(int argc, char **argv)
{
    if (argc < 2 || argc > 4) {
        fprintf(stderr, "usage: bare_loop PORT [CPU [BYTES]]\n");
        return 2;
    }
    int cpu = argc > 2 ? atoi(argv[2]) : -1;
    answer_bytes = argc > 3 ? (size_t)atoi(argv[3]) : ANSWER_BYTES_DEFAULT;
    if (answer_bytes > ANSWER_BYTES_MAX) {
        die("BYTES", EINVAL);
    }
    answer_init();
    if (cpu >= 0) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET((size_t)cpu, &set);
        if (sched_setaffinity(0, sizeof set, &set)) {
            die("sched_setaffinity", errno);
        }
    }
    listener_init((uint16_t)atoi(argv[1]));
    ring_init();
    accept_arm();
    for (;;) {
        int result = io_uring_submit_and_wait(&ring, 1);
        if (result < 0 && result != -EINTR && result != -EBUSY) {
            die("io_uring_enter", -result);
        }
        struct io_uring_cqe *ready[REAP_BATCH];
        unsigned count = io_uring_peek_batch_cqe(&ring, ready, REAP_BATCH);
        for (unsigned i = 0; i < count; i++) {
            struct io_uring_cqe copy = *ready[i]; /* each once; handlers only queue SQEs */
            dispatch(&copy);
        }
        io_uring_cq_advance(&ring, count);
    }
}
