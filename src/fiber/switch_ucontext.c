/* SPDX-License-Identifier: Apache-2.0 */
/*
 * switch_ucontext.c - the switch by swapcontext(3), for processors without
 * assembly here and for comparison. Each switch makes a system call for the
 * signal mask. Compiled always, empty where the assembly serves.
 */
#include "fiber/switch.h"

#ifdef SWITCH_UCONTEXT

#include "base/must.h"

void switch__swap(struct switch_context *from, struct switch_context *to);
void switch__enter(struct switch_context *from, const ucontext_t *first);

/*
 * What swapcontext and our own frame may use below the frame's address while
 * they run, generously: stack_pointer must not lie above anything in use.
 */
#define FRAME_BYTES 1024

void switch__swap(struct switch_context *from, struct switch_context *to)
{
    from->stack_pointer = (char *)__builtin_frame_address(0) - FRAME_BYTES;
    must(swapcontext(&from->ucontext, &to->ucontext) == 0);
}

void switch__enter(struct switch_context *from, const ucontext_t *first)
{
    from->stack_pointer = (char *)__builtin_frame_address(0) - FRAME_BYTES;
    must(swapcontext(&from->ucontext, first) == 0);
}

#endif
