/* SPDX-License-Identifier: Apache-2.0 */
/*
 * overflow.c - the SIGSEGV and SIGBUS handler. Nothing in it but memory accesses,
 * write(2) and sigaction(2): it may interrupt any code of the thread.
 */
#include "fiber/overflow.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/must.h"
#include "fiber/describe.h"
#include "fiber/fiber.h"

/* Ours, on top of what the kernel needs for the registers (AVX-512 and AMX: over 8 KiB). */
#define HANDLER_BYTES ((size_t)32768)

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif

static const int signals[] = {SIGSEGV, SIGBUS};

#define SIGNAL_COUNT (sizeof signals / sizeof signals[0])

static struct sigaction previous[SIGNAL_COUNT];

/* The calling thread's alternate stack, and the one that was there before. */
static _Thread_local struct {
    void *memory;
    stack_t before;
} alternate;

static void report(const struct fiber *fiber)
{
    char dst[FIBER_DESCRIBE_SIZE + 160];
    struct text text;
    text_init(&text, dst, sizeof dst);
    text_string(&text, "ringspun: stack overflow in ");
    text_fiber(&text, fiber);
    text_string(&text, ": its stack has ");
    text_number(&text, (fiber->stack.size - STACK_GUARD_BYTES) / 1024);
    text_string(&text, " KiB (ringspun.stack-size=");
    text_number(&text, fiber->stack.size / 1024);
    text_string(&text, "KB); raise ringspun.stack-size\n");
    /* nothing can be done about an error: the process dies either way */
    ssize_t written = write(STDERR_FILENO, text.dst, text.length);
    (void)written;
}

static void on_fault(int signal_number, siginfo_t *info, void *ucontext)
{
    (void)ucontext;
    int saved_errno = errno;
    const struct fiber *fiber = fiber_current();
    /* si_code <= 0: sent by kill(2), and there is no address */
    bool fault = info->si_code > 0;
    if (fault && fiber != NULL && stack_in_guard(fiber->stack, info->si_addr)) {
        report(fiber);
        /* returning runs the faulting instruction again, which then kills */
        struct sigaction die = {.sa_handler = SIG_DFL};
        (void)sigaction(signal_number, &die, NULL);
        return;
    }
    for (size_t i = 0; i < SIGNAL_COUNT; i++) {
        if (signals[i] == signal_number) {
            (void)sigaction(signal_number, &previous[i], NULL);
        }
    }
    if (!fault) {
        /* blocked while we are in here: delivered on return */
        (void)raise(signal_number);
    }
    errno = saved_errno;
}

int overflow_install_process(void)
{
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    (void)sigfillset(&action.sa_mask);
    for (size_t i = 0; i < SIGNAL_COUNT; i++) {
        if (sigaction(signals[i], &action, &previous[i]) != 0) {
            return -errno;
        }
    }
    return 0;
}

int overflow_install_thread(void)
{
    must(alternate.memory == NULL);
    size_t least = (size_t)getauxval(AT_MINSIGSTKSZ);
    least = least > (size_t)MINSIGSTKSZ ? least : (size_t)MINSIGSTKSZ;
    stack_t stack = {.ss_size = least + HANDLER_BYTES};
    stack.ss_sp = malloc(stack.ss_size);
    if (stack.ss_sp == NULL) {
        return -ENOMEM;
    }
    if (sigaltstack(&stack, &alternate.before) < 0) {
        int error = -errno;
        free(stack.ss_sp);
        return error;
    }
    alternate.memory = stack.ss_sp;
    return 0;
}

void overflow_fini_thread(void)
{
    if (alternate.memory == NULL) {
        return;
    }
    must(sigaltstack(&alternate.before, NULL) == 0);
    free(alternate.memory);
    alternate.memory = NULL;
}
