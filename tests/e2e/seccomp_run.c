/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seccomp_run.c - run a program under a filter in which what is not allowed ends it by SIGSYS, so that no
 * refusal goes unnoticed. Compiled by seccomp_profile.py, which hands the filter over as FILTER_FILE: lines of
 * struct sock_filter. Opens no descriptor: tests start the program with hardly any.
 *
 * usage: seccomp_run PROGRAM [ARGUMENT...]
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    struct sock_filter rules[] = {
#include FILTER_FILE
    };
    struct sock_fprog program = {.len = sizeof rules / sizeof *rules, .filter = rules};

    if (argc < 2) {
        fprintf(stderr, "usage: seccomp_run PROGRAM [ARGUMENT...]\n");
        return 2;
    }
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0)) {
        perror("seccomp_run: prctl");
        return 1;
    }
    execv(argv[1], argv + 1);
    perror(argv[1]);
    return 1;
}
