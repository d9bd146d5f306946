/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seccomp_deny.c - run a program as Docker's default profile would: io_uring_setup
 * returns EPERM, everything else is allowed. Compiled and used by test_config.py.
 *
 * usage: seccomp_deny PROGRAM [ARGUMENT...]
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    /* No check of the architecture: the test runs programs of one only. */
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof rules / sizeof *rules, .filter = rules};

    if (argc < 2) {
        fprintf(stderr, "usage: seccomp_deny PROGRAM [ARGUMENT...]\n");
        return 2;
    }
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0)) {
        perror("seccomp_deny: prctl");
        return 1;
    }
    execv(argv[1], argv + 1);
    perror(argv[1]);
    return 1;
}
