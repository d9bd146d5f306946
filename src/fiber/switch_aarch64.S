/* SPDX-License-Identifier: Apache-2.0 */
/*
 * switch_aarch64.S - the switch for aarch64, AAPCS64 calling convention.
 *
 * What the convention makes a function preserve, in one frame of 176 bytes:
 *
 *   | x29 x30 | x19 .. x28 | d8 .. d15 | fpcr, unused |
 *   ^ switch_context.stack_pointer, low addresses to the left
 *
 * We leave by br, not by ret: the processor predicts a ret from its stack of
 * calls, and a switch returns where another call came from. FPCR is written only
 * when it differs, since writing it drains the pipeline on some cores.
 *
 * No .note.gnu.property: br to a return address has no bti to land on, and a
 * guarded control stack would have to be switched as well. Without the note the
 * linker leaves BTI and GCS out of the program's own note. Return addresses
 * signed by -mbranch-protection are the callers' own and pass through.
 */
#if defined(__aarch64__) && !defined(SWITCH_UCONTEXT)

    .macro save_registers
    stp     x29, x30, [sp, #-176]!
    .cfi_def_cfa_offset 176
    .cfi_offset x29, -176
    .cfi_offset x30, -168
    stp     x19, x20, [sp, #16]
    .cfi_offset x19, -160
    .cfi_offset x20, -152
    stp     x21, x22, [sp, #32]
    .cfi_offset x21, -144
    .cfi_offset x22, -136
    stp     x23, x24, [sp, #48]
    .cfi_offset x23, -128
    .cfi_offset x24, -120
    stp     x25, x26, [sp, #64]
    .cfi_offset x25, -112
    .cfi_offset x26, -104
    stp     x27, x28, [sp, #80]
    .cfi_offset x27, -96
    .cfi_offset x28, -88
    stp     d8, d9, [sp, #96]
    stp     d10, d11, [sp, #112]
    stp     d12, d13, [sp, #128]
    stp     d14, d15, [sp, #144]
    mrs     x9, fpcr
    str     x9, [sp, #160]
    mov     x10, sp
    str     x10, [x0]
    .endm

    .text

/* void switch__swap(struct switch_context *from, struct switch_context *to) */
    .globl  switch__swap
    .hidden switch__swap
    .type   switch__swap, %function
    .p2align 6
switch__swap:
    .cfi_startproc
    save_registers
    ldr     x10, [x1]
    mov     sp, x10
    ldr     x10, [sp, #160]
    cmp     x9, x10
    b.eq    1f
    msr     fpcr, x10
1:  ldp     d14, d15, [sp, #144]
    ldp     d12, d13, [sp, #128]
    ldp     d10, d11, [sp, #112]
    ldp     d8, d9, [sp, #96]
    ldp     x27, x28, [sp, #80]
    ldp     x25, x26, [sp, #64]
    ldp     x23, x24, [sp, #48]
    ldp     x21, x22, [sp, #32]
    ldp     x19, x20, [sp, #16]
    ldp     x29, x30, [sp], #176
    .cfi_def_cfa_offset 0
    .cfi_restore x19
    .cfi_restore x20
    .cfi_restore x21
    .cfi_restore x22
    .cfi_restore x23
    .cfi_restore x24
    .cfi_restore x25
    .cfi_restore x26
    .cfi_restore x27
    .cfi_restore x28
    .cfi_restore x29
    .cfi_restore x30
    br      x30
    .cfi_endproc
    .size   switch__swap, . - switch__swap

/*
 * void switch__enter(struct switch_context *from, const ucontext_t *first)
 *
 * Saves here as switch__swap does and resumes a context of makecontext(3). When
 * somebody switches back to from, this call returns. setcontext fails only if
 * the kernel refuses the signal mask, which it does not.
 */
    .globl  switch__enter
    .hidden switch__enter
    .type   switch__enter, %function
    .p2align 4
switch__enter:
    .cfi_startproc
    save_registers
    mov     x0, x1
    bl      setcontext
    brk     #1
    .cfi_endproc
    .size   switch__enter, . - switch__enter

#endif

    .section .note.GNU-stack, "", %progbits
