/* SPDX-License-Identifier: Apache-2.0 */
/*
 * switch.c - what all switches share: the first entry, and what sanitizers and
 * valgrind are told. The machine's part is switch__swap and switch__enter in
 * switch_x86_64.S, switch_aarch64.S or switch_ucontext.c.
 *
 * AddressSanitizer wants start_switch_fiber on the old stack right before the
 * switch, and finish_switch_fiber first of all on the new one, with the fake
 * stack that start saved for it; NULL given to start destroys the old fake stack.
 * TSan wants its switch last on the old stack.
 */
#include "fiber/switch.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>

#include "base/attr.h"
#include "base/must.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SWITCH_ASAN
#endif
#if __has_feature(thread_sanitizer)
#define SWITCH_TSAN
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#define SWITCH_ASAN
#endif
#ifdef __SANITIZE_THREAD__
#define SWITCH_TSAN
#endif

#ifdef SWITCH_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef SWITCH_TSAN
#include <sanitizer/tsan_interface.h>
#endif
#if defined(__has_include)
#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#define SWITCH_VALGRIND
#endif
#endif

/* Inlined even at -O0: between TSan's switch and ours no function may be left. */
#define SWITCH_INLINE static inline __attribute__((always_inline))

_Static_assert(offsetof(struct switch_context, stack_pointer) == 0, "the assembly stores there");

/* The machine's part. */
void switch__swap(struct switch_context *from, struct switch_context *to);
void switch__enter(struct switch_context *from, const ucontext_t *first);

/* What a first entry starts from; made by switch_adopt. */
static _Thread_local struct {
    bool adopted;
    ucontext_t template;
    struct switch_context *from; /* who is entering a new context */
    void (*entry)(void);         /* what the new context runs */
} first;

/* On the old stack, right before the switch; keep is false when nobody comes back. */
SWITCH_INLINE void tell_leaving(struct switch_context *from, struct switch_context *to, bool keep)
{
    (void)from, (void)to, (void)keep;
#ifdef SWITCH_ASAN
    __sanitizer_start_switch_fiber(keep ? &from->fake_stack : NULL, to->stack_low, to->stack_bytes);
#endif
#ifdef SWITCH_TSAN
    __tsan_switch_to_fiber(to->tsan_fiber, 0);
#endif
}

/* On the stack of here, first of all after the switch. */
SWITCH_INLINE void tell_arrived(struct switch_context *here)
{
    (void)here;
#ifdef SWITCH_ASAN
    __sanitizer_finish_switch_fiber(here->fake_stack, NULL, NULL);
#endif
}

/* The first function on a new stack. It has no locals, for which ASan would use a fake stack. */
static void first_entry(void)
{
    /* the caller is a stub of libc without unwind rules: walks along the stack end here */
#if defined(__x86_64__)
    __asm__ volatile(".cfi_undefined rip");
#elif defined(__aarch64__)
    __asm__ volatile(".cfi_undefined x30");
#endif
#ifdef SWITCH_ASAN
    /* here ASan tells the bounds of the stack we came from, the loop's too */
    __sanitizer_finish_switch_fiber(NULL, &first.from->stack_low, &first.from->stack_bytes);
#endif
    first.entry();
    must_fail("a context's entry never returns", __FILE__, __LINE__);
}

/* Make the template run first_entry on the stack of to. Not inlined: it is the rare path. */
static __attribute__((noinline)) void prepare_entry(struct switch_context *from,
                                                    struct switch_context *to)
{
    must(first.adopted);
    first.from = from;
    first.entry = to->entry;
    to->entry = NULL;
    first.template.uc_stack.ss_sp = (void *)(uintptr_t)to->stack_low;
    first.template.uc_stack.ss_size = to->stack_bytes;
    makecontext(&first.template, first_entry, 0);
}

void switch_adopt(struct switch_context *context)
{
    memset(context, 0, sizeof *context);
    must(getcontext(&first.template) == 0);
    first.template.uc_link = NULL;
#ifdef __x86_64__
    /* makecontext leaves it, and walks along frame pointers shall end at the entry */
    first.template.uc_mcontext.gregs[REG_RBP] = 0;
#endif
    first.adopted = true;
#ifdef SWITCH_TSAN
    context->tsan_fiber = __tsan_get_current_fiber();
#endif
}

void switch_prepare(struct switch_context *context, void *stack_low, size_t stack_bytes,
                    void (*entry)(void))
{
    memset(context, 0, sizeof *context);
    context->entry = entry;
    context->stack_low = stack_low;
    context->stack_bytes = stack_bytes;
#ifdef SWITCH_ASAN
    __asan_unpoison_memory_region(stack_low, stack_bytes);
#endif
#ifdef SWITCH_TSAN
    context->tsan_fiber = __tsan_create_fiber(0);
#endif
#ifdef SWITCH_VALGRIND
    context->valgrind_id =
        (unsigned)VALGRIND_STACK_REGISTER(stack_low, (char *)stack_low + stack_bytes);
#endif
}

void switch_to(struct switch_context *from, struct switch_context *to)
{
    if (unlikely(to->entry != NULL)) {
        prepare_entry(from, to);
        tell_leaving(from, to, true);
        switch__enter(from, &first.template);
    } else {
        tell_leaving(from, to, true);
        switch__swap(from, to);
    }
    tell_arrived(from);
}

void switch_leave(struct switch_context *from, struct switch_context *to)
{
    must(to->entry == NULL);
    tell_leaving(from, to, false);
    switch__swap(from, to);
    __builtin_unreachable();
}

void switch_forget(struct switch_context *context)
{
#ifdef SWITCH_TSAN
    __tsan_destroy_fiber(context->tsan_fiber);
#endif
#ifdef SWITCH_VALGRIND
    VALGRIND_STACK_DEREGISTER(context->valgrind_id);
#endif
    memset(context, 0, sizeof *context);
}

const void *switch_stack_pointer(const struct switch_context *context)
{
    must(context->entry == NULL && context->stack_pointer != NULL);
#if defined(SWITCH_UCONTEXT) && defined(__x86_64__)
    /* of whoever called libc's swapcontext, a sanitizer's own function perhaps */
    const ucontext_t *saved = context->stack_pointer;
    return (const void *)(uintptr_t)saved->uc_mcontext.gregs[REG_RSP];
#elif defined(SWITCH_UCONTEXT) && defined(__aarch64__)
    const ucontext_t *saved = context->stack_pointer;
    return (const void *)(uintptr_t)saved->uc_mcontext.sp;
#elif defined(SWITCH_UCONTEXT)
    /* what the frame of the ucontext_t may have below it, generously */
    return (const char *)context->stack_pointer - 256;
#else
    return context->stack_pointer;
#endif
}

const char *switch_name(void)
{
#if defined(SWITCH_UCONTEXT)
    return "swapcontext";
#elif defined(__x86_64__)
    return "x86-64 assembly";
#else
    return "aarch64 assembly";
#endif
}
