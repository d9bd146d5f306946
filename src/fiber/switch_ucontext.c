/* SPDX-License-Identifier: Apache-2.0 */
/*
 * switch_ucontext.c - the switch by swapcontext(3), for processors without
 * assembly here and for comparison. Each switch makes a system call for the
 * signal mask. Compiled always, empty where the assembly serves.
 *
 * A context that is not running lies in a ucontext_t on its own stack, in the
 * frame of the call that saved it; switch_context.stack_pointer points there.
 */
#include "fiber/switch.h"

#ifdef SWITCH_UCONTEXT

#include <string.h>
#include <ucontext.h>

#include "base/must.h"

void switch__swap(struct switch_context *from, struct switch_context *to);
void switch__enter(struct switch_context *from, const ucontext_t *first);

/* ucontext_t has 4560 bytes on aarch64. */
#pragma GCC diagnostic ignored "-Wframe-larger-than="

/* On its real stack, where stack_trim expects it, and not on ASan's fake one. */
static __attribute__((noinline, no_sanitize_address)) void swap(struct switch_context *from,
                                                                const ucontext_t *to)
{
    ucontext_t here;
    /* ASan's swapcontext looks at it when we are switched to */
    memset(&here.uc_stack, 0, sizeof here.uc_stack);
    here.uc_link = NULL;
    from->stack_pointer = &here;
    must(swapcontext(&here, to) == 0);
}

void switch__swap(struct switch_context *from, struct switch_context *to)
{
    swap(from, to->stack_pointer);
}

void switch__enter(struct switch_context *from, const ucontext_t *first)
{
    swap(from, first);
}

#endif
