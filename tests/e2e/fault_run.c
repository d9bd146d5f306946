/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fault_run.c - run a program some of whose system calls fail now and then, by seccomp's user notification.
 *
 * The program keeps this process's id; a child of it decides on each of the chosen calls. While the
 * file SWITCH exists every NTH of a call ends with the error and is not made; all others are.
 *
 * usage: fault_run SWITCH CALL:ERRNO:NTH[,...] PROGRAM [ARGUMENT...]    (numbers, all of them)
 *
 * Needs Linux 5.5 (SECCOMP_USER_NOTIF_FLAG_CONTINUE). Source: seccomp_unotify(2).
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FAULTS_MAX 8

struct fault {
    int call, error;
    unsigned nth, count;
};

static struct fault faults[FAULTS_MAX];
static unsigned fault_count;

static void fail(const char *what)
{
    perror(what);
    _exit(3);
}

static int hand_over(int sock, int listener)
{
    char byte = 0;
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec bytes = {&byte, 1};
    struct msghdr message = {.msg_iov = &bytes,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof(control)};
    if (listener < 0) { /* take it */
        if (recvmsg(sock, &message, 0) != 1 || CMSG_FIRSTHDR(&message) == NULL) {
            fail("fault_run: recvmsg");
        }
        memcpy(&listener, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(listener));
        return listener;
    }
    control.head = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
    memcpy(CMSG_DATA(&control.head), &listener, sizeof(listener));
    if (sendmsg(sock, &message, 0) != 1) {
        fail("fault_run: sendmsg");
    }
    return 0;
}

static int decide(int call, const char *file)
{
    for (unsigned i = 0; i < fault_count; i++) {
        if (faults[i].call == call && access(file, F_OK) == 0 &&
            ++faults[i].count % faults[i].nth == 0) {
            return faults[i].error;
        }
    }
    return 0;
}

/* supervise - until the program and all that it started have ended. */
static void supervise(int listener, const char *file)
{
    struct pollfd poll_fd = {.fd = listener, .events = POLLIN};
    for (;;) {
        if (poll(&poll_fd, 1, -1) < 0 || (poll_fd.revents & (POLLHUP | POLLERR)) != 0) {
            _exit(0);
        }
        struct seccomp_notif call = {0};
        if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call) < 0) {
            continue; /* the thread was interrupted or has ended */
        }
        struct seccomp_notif_resp answer = {.id = call.id};
        int error = decide(call.data.nr, file);
        if (error != 0) {
            answer.error = -error;
        } else {
            answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
        }
        (void)ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
    }
}

static int install(void)
{
    struct sock_filter rules[FAULTS_MAX + 3] = {
        {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, nr)}};
    unsigned length = 1;
    for (unsigned i = 0; i < fault_count; i++, length++) {
        rules[length] =
            (struct sock_filter){BPF_JMP | BPF_JEQ | BPF_K, (unsigned char)(fault_count - i), 0,
                                 (unsigned)faults[i].call};
    }
    rules[length++] = (struct sock_filter){BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW};
    rules[length++] = (struct sock_filter){BPF_RET | BPF_K, 0, 0, SECCOMP_RET_USER_NOTIF};
    struct sock_fprog program = {.len = (unsigned short)length, .filter = rules};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) {
        fail("fault_run: prctl");
    }
    int listener = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                                SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
    if (listener < 0) {
        fail("fault_run: seccomp");
    }
    return listener;
}

int main(int argc, char **argv)
{
    int pair[2];
    if (argc < 4) {
        fprintf(stderr, "usage: fault_run SWITCH CALL:ERRNO:NTH[,...] PROGRAM [ARGUMENT...]\n");
        return 2;
    }
    for (char *one = strtok(argv[2], ","); one != NULL; one = strtok(NULL, ",")) {
        struct fault *fault = &faults[fault_count++];
        if (fault_count > FAULTS_MAX ||
            sscanf(one, "%d:%d:%u", &fault->call, &fault->error, &fault->nth) != 3) {
            fprintf(stderr, "fault_run: %s\n", one);
            return 2;
        }
    }
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
        fail("fault_run: socketpair");
    }
    pid_t child = fork();
    if (child < 0) {
        fail("fault_run: fork");
    }
    if (child == 0) {
        close(pair[0]);
        supervise(hand_over(pair[1], -1), argv[1]);
    }
    close(pair[1]);
    int listener = install();
    hand_over(pair[0], listener);
    close(listener);
    close(pair[0]);
    execv(argv[3], argv + 3);
    fail(argv[3]);
}
