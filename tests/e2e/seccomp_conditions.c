/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seccomp_conditions.c - make one call that docker/seccomp.json allows or refuses by its arguments. Compiled and
 * used by test_seccomp.py. Exit 0, and a line, when the call was let through (or, clone3, told ENOSYS).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/sched.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static void *run(void *answer)
{
    return answer;
}

static int thread(void)
{
    pthread_t id;
    void *answer = NULL;
    static int something;
    return pthread_create(&id, NULL, run, &something) == 0 && pthread_join(id, &answer) == 0 &&
           answer == &something;
}

static int clone3_is_unknown(void)
{
    struct clone_args arguments = {.exit_signal = SIGCHLD};
    return syscall(SYS_clone3, &arguments, sizeof(arguments)) == -1 && errno == ENOSYS;
}

int main(int argc, char **argv)
{
    const char *what = argc == 2 ? argv[1] : "";
    int pair[2], well = 0;

    if (strcmp(what, "thread") == 0) {
        well = thread();
    } else if (strcmp(what, "clone3") == 0) {
        well = clone3_is_unknown();
    } else if (strcmp(what, "socket-inet") == 0) {
        well = socket(AF_INET, SOCK_STREAM, 0) >= 0;
    } else if (strcmp(what, "socket-inet6") == 0) {
        well = socket(AF_INET6, SOCK_STREAM, 0) >= 0 || errno == EAFNOSUPPORT;
    } else if (strcmp(what, "socket-unix") == 0) {
        well = socket(AF_UNIX, SOCK_DGRAM, 0) >= 0;
    } else if (strcmp(what, "socket-packet") == 0) {
        (void)socket(AF_PACKET, SOCK_RAW, 0);
    } else if (strcmp(what, "socket-vsock") == 0) {
        (void)socket(AF_VSOCK, SOCK_STREAM, 0);
    } else if (strcmp(what, "socketpair-inet") == 0) {
        (void)socketpair(AF_INET, SOCK_STREAM, 0, pair);
    } else if (strcmp(what, "clone-user") == 0) {
        (void)syscall(SYS_clone, (unsigned long)CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL);
    } else if (strcmp(what, "clone-net") == 0) {
        (void)syscall(SYS_clone, (unsigned long)CLONE_NEWNET | SIGCHLD, NULL, NULL, NULL, NULL);
    } else if (strcmp(what, "ioctl") == 0) {
        (void)ioctl(0, TIOCSTI, "x");
    }
    if (well) {
        printf("%s: as it should be\n", what);
    }
    return !well;
}
