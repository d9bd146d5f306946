/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sys.c - the one door to the system calls that do not go through a ring.
 *
 * Called by io/, app/ and main, from fibers where the call cannot block and from
 * platform threads where it may. Does not log and keeps no state.
 */
#include "ring/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/must.h"
#include "base/time.h"

static uint64_t clock_read(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static struct timespec timespec_of(uint64_t ns)
{
    return (struct timespec){.tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S)};
}

static int result_of(long result)
{
    return result < 0 ? -errno : (int)result;
}

uint64_t sys_clock_ns(void)
{
    return clock_read(CLOCK_MONOTONIC);
}

uint64_t sys_wall_ns(void)
{
    return clock_read(CLOCK_REALTIME);
}

void sys_sleep_until(uint64_t deadline_ns)
{
    struct timespec until = timespec_of(deadline_ns);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) {
    }
}

/* poll_until - ppoll that goes on after EINTR; deadline_ns 0 waits for ever. */
static int poll_until(struct pollfd *fds, nfds_t count, uint64_t deadline_ns)
{
    for (;;) {
        struct timespec left, *timeout = NULL;
        if (deadline_ns != 0) {
            uint64_t now_ns = sys_clock_ns();
            left = timespec_of(deadline_ns > now_ns ? deadline_ns - now_ns : 0);
            timeout = &left;
        }
        int ready = ppoll(fds, count, timeout, NULL);
        if (ready >= 0 || errno != EINTR) {
            return result_of(ready);
        }
    }
}

static void ignore_wake(int signal)
{
    (void)signal; /* ending the wait is all that it is for */
}

void sys_wake_signal_block(void)
{
    struct sigaction present;
    sigset_t wake;

    /* A signal whose default action is to be ignored interrupts nothing: it needs some handler. */
    if (sigaction(SYS_WAKE_SIGNAL, NULL, &present) == 0 && present.sa_handler == SIG_DFL) {
        struct sigaction action = {.sa_handler = ignore_wake, .sa_flags = SA_RESTART};
        sigemptyset(&action.sa_mask);
        sigaction(SYS_WAKE_SIGNAL, &action, NULL);
    }
    sigemptyset(&wake);
    sigaddset(&wake, SYS_WAKE_SIGNAL);
    pthread_sigmask(SIG_BLOCK, &wake, NULL);
}

int sys_poll_interruptible(int fd, short events, uint64_t deadline_ns)
{
    struct pollfd one = {.fd = fd, .events = events};
    struct timespec left, *timeout = NULL;
    sigset_t mask;

    if (deadline_ns != 0) {
        uint64_t now_ns = sys_clock_ns();
        left = timespec_of(deadline_ns > now_ns ? deadline_ns - now_ns : 0);
        timeout = &left;
    }
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    sigdelset(&mask, SYS_WAKE_SIGNAL);
    int ready = ppoll(&one, 1, timeout, &mask);
    return ready > 0 ? one.revents : result_of(ready);
}

int sys_poll(int fd, short events, uint64_t deadline_ns)
{
    struct pollfd one = {.fd = fd, .events = events};
    int ready = poll_until(&one, 1, deadline_ns);
    return ready > 0 ? one.revents : ready;
}

void sys_close(int fd)
{
    int result = close(fd);
    must(result == 0 || errno != EBADF); /* a descriptor closed twice is another connection's */
}

int sys_eventfd(void)
{
    return result_of(eventfd(0, EFD_CLOEXEC));
}

void sys_eventfd_signal(int fd)
{
    uint64_t one = 1;
    while (write(fd, &one, sizeof(one)) < 0 && errno == EINTR) {
    }
}

void sys_eventfd_clear(int fd)
{
    uint64_t count;
    while (read(fd, &count, sizeof(count)) < 0 && errno == EINTR) {
    }
}

ssize_t sys_read_file(const char *path, char *dst, size_t capacity)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return -errno;
    }
    size_t length = 0;
    ssize_t result;
    for (;;) {
        char beyond;
        bool full = length == capacity;
        ssize_t got = full ? read(fd, &beyond, 1) : read(fd, dst + length, capacity - length);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            result = -errno;
            break;
        }
        if (got == 0) {
            result = (ssize_t)length;
            break;
        }
        if (full) {
            result = -EFBIG;
            break;
        }
        length += (size_t)got;
    }
    close(fd);
    return result;
}

int sys_write_all(int fd, const char *src, size_t length)
{
    while (length > 0) {
        ssize_t put = write(fd, src, length);
        if (put < 0 && errno != EINTR) {
            return -errno;
        }
        if (put > 0) {
            src += put;
            length -= (size_t)put;
        }
    }
    return 0;
}

uint64_t sys_descriptors_raise(uint64_t *before)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0) {
        *before = 0;
        return 0;
    }
    *before = limit.rlim_cur;
    if (limit.rlim_cur < limit.rlim_max) {
        struct rlimit raised = {.rlim_cur = limit.rlim_max, .rlim_max = limit.rlim_max};
        if (setrlimit(RLIMIT_NOFILE, &raised) == 0) {
            return raised.rlim_cur;
        }
    }
    return limit.rlim_cur;
}

unsigned sys_processors(void)
{
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0 && CPU_COUNT(&allowed) > 0) {
        return (unsigned)CPU_COUNT(&allowed);
    }
    /* More processors than a cpu_set_t holds. */
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (unsigned)online : 1;
}

int sys_thread_id(void)
{
    return gettid();
}

int sys_processor(void)
{
    return sched_getcpu();
}

void sys_thread_figures(struct sys_thread_figures *figures)
{
    struct rusage usage;
    pthread_attr_t attributes;
    void *low = NULL;
    size_t bytes = 0;

    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
        (void)pthread_attr_getstack(&attributes, &low, &bytes);
        pthread_attr_destroy(&attributes);
    }
    *figures = (struct sys_thread_figures){.processor_ns = clock_read(CLOCK_THREAD_CPUTIME_ID),
                                           .stack_low = low,
                                           .stack_bytes = bytes};
    if (getrusage(RUSAGE_THREAD, &usage) == 0) {
        figures->switches = (uint64_t)usage.ru_nvcsw + (uint64_t)usage.ru_nivcsw;
    }
}

void sys_thread_name(const char *name)
{
    char short_name[16];
    snprintf(short_name, sizeof(short_name), "%s", name);
    (void)pthread_setname_np(pthread_self(), short_name);
}

void sys_timer_slack(uint64_t slack_ns)
{
    (void)prctl(PR_SET_TIMERSLACK, (unsigned long)slack_ns, 0, 0, 0);
}

uint64_t sys_process_age_ns(void)
{
    /* Field 22 of /proc/self/stat, counted from 1: start time in clock ticks since boot. The
     * command in field 2 may hold spaces and parentheses, so count from the last ')'. */
    char stat[1024];
    ssize_t length = sys_read_file("/proc/self/stat", stat, sizeof(stat) - 1);
    if (length <= 0) {
        return 0;
    }
    stat[length] = '\0';
    const char *at = strrchr(stat, ')');
    for (int field = 2; at != NULL && field < 22; field++) {
        at = strchr(at + 1, ' ');
    }
    if (at == NULL) {
        return 0;
    }
    uint64_t ticks = strtoull(at, NULL, 10);
    uint64_t started_ns = ticks * (NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK));
    uint64_t now_ns = clock_read(CLOCK_BOOTTIME);
    return now_ns > started_ns ? now_ns - started_ns : 0;
}

int sys_signals_open(void)
{
    sigset_t ours;
    sigemptyset(&ours);
    sigaddset(&ours, SIGTERM);
    sigaddset(&ours, SIGINT);
    sigaddset(&ours, SIGQUIT);
    pthread_sigmask(SIG_BLOCK, &ours, NULL);
    signal(SIGPIPE, SIG_IGN);
    return result_of(signalfd(-1, &ours, SFD_NONBLOCK | SFD_CLOEXEC));
}

int sys_signals_next(int fd)
{
    struct signalfd_siginfo info;
    ssize_t got;
    do {
        got = read(fd, &info, sizeof(info));
    } while (got < 0 && errno == EINTR);
    return got == (ssize_t)sizeof(info) ? (int)info.ssi_signo : 0;
}

int sys_wait(int first, int second, uint64_t deadline_ns)
{
    struct pollfd two[2] = {{.fd = first, .events = POLLIN}, {.fd = second, .events = POLLIN}};
    int ready = poll_until(two, 2, deadline_ns);
    if (ready <= 0) {
        return 0;
    }
    return (two[0].revents != 0 ? 1 : 0) | (two[1].revents != 0 ? 2 : 0);
}

void sys_kernel_release(char *dst, size_t size)
{
    struct utsname host;
    snprintf(dst, size, "%s", uname(&host) == 0 ? host.release : "unknown");
}

void sys_host_name(char *dst, size_t size)
{
    struct utsname host;
    snprintf(dst, size, "%s", uname(&host) == 0 ? host.nodename : "unknown");
}

void sys_random(void *dst, size_t length)
{
    must(length <= 256); /* then it comes whole: getrandom(2) */
    while (getrandom(dst, length, 0) < 0) {
        must(errno == EINTR);
    }
}

void sys_exit_now(int code)
{
    _exit(code);
}
