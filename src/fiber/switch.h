/* SPDX-License-Identifier: Apache-2.0 */
/*
 * switch.h - leave one context and go on in another.
 *
 * First entry by makecontext(3) and setcontext(3), which restores the signal
 * mask of the thread as it was at switch_adopt (one system call); later switches
 * by our own assembly: callee-saved registers, MXCSR and x87 control word (FPCR
 * on aarch64), no signal mask. A context starts with the floating-point modes of
 * switch_adopt and keeps its own from then on. Building with SWITCH_UCONTEXT
 * (make SWITCH=ucontext, or any other processor) uses swapcontext(3) throughout.
 * Sanitizers and valgrind are told of each switch here and nowhere else. A context
 * never leaves its thread: the address of a thread-local, or of errno, that a compiler
 * has kept from before a switch is right after it; the value is whoever's that ran last.
 */
#ifndef FIBER_SWITCH_H
#define FIBER_SWITCH_H

#include <stddef.h>

#if !defined(SWITCH_UCONTEXT) && !defined(__x86_64__) && !defined(__aarch64__)
#define SWITCH_UCONTEXT
#endif

struct switch_context {
    /* the switch's */
    void *stack_pointer;   /* while it is not running; the first field, for the assembly */
    void (*entry)(void);   /* what it will run; NULL once it was entered */
    const void *stack_low; /* bounds of its stack; the loop's are known to ASan alone */
    size_t stack_bytes;
    /* what tools keep about it */
    void *fake_stack;     /* ASan's, while it is not running */
    void *tsan_fiber;     /* NULL without TSan */
    unsigned valgrind_id; /* stack number, of no meaning outside valgrind */
};

/*
 * switch_adopt - describe the calling thread's own context (the loop's).
 *
 * Signal mask and floating-point modes of this moment are what every context
 * that is first entered on this thread starts with.
 */
void switch_adopt(struct switch_context *context);

/*
 * switch_prepare - a context that, on its first switch_to, runs entry on a stack.
 *
 * @stack_low, @stack_bytes  the stack; it is unpoisoned, for it may come from a pool
 * @entry                    never returns: it leaves by switch_leave
 *
 * Owner  the stack stays the caller's, and alive until the context was left
 * Source makecontext(3), at the first switch_to
 */
void switch_prepare(struct switch_context *context, void *stack_low, size_t stack_bytes,
                    void (*entry)(void));

/*
 * switch_to - save here in from, go on in to. Returns when somebody switches to from.
 *
 * Both belong to the calling thread, which has called switch_adopt.
 */
void switch_to(struct switch_context *from, struct switch_context *to);

/* switch_leave - go on in to, for the last time: from's stack may be reused afterwards. */
_Noreturn void switch_leave(struct switch_context *from, struct switch_context *to);

/*
 * switch_forget - release what tools keep about a context that was left for good,
 * or never entered.
 */
void switch_forget(struct switch_context *context);

/* switch_stack_pointer - lowest address in use of a context that was entered and is not running. */
const void *switch_stack_pointer(const struct switch_context *context);

/* switch_name - "x86-64 assembly", "aarch64 assembly" or "swapcontext", for logs. */
const char *switch_name(void);

#endif
