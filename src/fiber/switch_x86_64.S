/* SPDX-License-Identifier: Apache-2.0 */
/*
 * switch_x86_64.S - the switch for x86-64, System V calling convention.
 *
 * What the convention lets a function change is already saved by whoever called
 * us; what it must preserve is pushed here, below the return address:
 *
 *   | mxcsr, x87 cw | r15 | r14 | r13 | r12 | rbx | rbp | return address |
 *   ^ switch_context.stack_pointer, low addresses to the left
 *
 * We leave by pop and an indirect jmp, not by ret: the processor predicts a ret
 * from its stack of calls, and a switch returns where another call came from, so
 * that each ret would be mispredicted (10.6 ns instead of 4.4).
 *
 * No .note.gnu.property: a shadow stack holds the return addresses a second
 * time and would have to be switched as well, and a jmp to a return address has
 * no endbr64 to land on. Without the note the linker leaves SHSTK and IBT
 * out of the program's own note, and libc then does not turn them on.
 *
 * The unwind rules stay true at each instruction, on either side of the change
 * of stacks, since both stacks have the same layout: gdb, perf and backtrace(3)
 * walk through a switch.
 */
#if defined(__x86_64__) && !defined(SWITCH_UCONTEXT)

    .macro save_registers
    pushq   %rbp
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset rbp, 0
    pushq   %rbx
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset rbx, 0
    pushq   %r12
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset r12, 0
    pushq   %r13
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset r13, 0
    pushq   %r14
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset r14, 0
    pushq   %r15
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset r15, 0
    subq    $8, %rsp
    .cfi_adjust_cfa_offset 8
    stmxcsr (%rsp)
    fnstcw  4(%rsp)
    .endm

    .text

/* void switch__swap(struct switch_context *from, struct switch_context *to) */
    .globl  switch__swap
    .hidden switch__swap
    .type   switch__swap, @function
    .p2align 6
switch__swap:
    .cfi_startproc
    save_registers
    movq    %rsp, (%rdi)
    movq    (%rsi), %rsp
    ldmxcsr (%rsp)
    fldcw   4(%rsp)
    addq    $8, %rsp
    .cfi_adjust_cfa_offset -8
    popq    %r15
    .cfi_adjust_cfa_offset -8
    .cfi_restore r15
    popq    %r14
    .cfi_adjust_cfa_offset -8
    .cfi_restore r14
    popq    %r13
    .cfi_adjust_cfa_offset -8
    .cfi_restore r13
    popq    %r12
    .cfi_adjust_cfa_offset -8
    .cfi_restore r12
    popq    %rbx
    .cfi_adjust_cfa_offset -8
    .cfi_restore rbx
    popq    %rbp
    .cfi_adjust_cfa_offset -8
    .cfi_restore rbp
    popq    %rcx
    .cfi_adjust_cfa_offset -8
    .cfi_register rip, rcx
    jmp     *%rcx
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
    .type   switch__enter, @function
    .p2align 4
switch__enter:
    .cfi_startproc
    save_registers
    movq    %rsp, (%rdi)
    movq    %rsi, %rdi
    call    setcontext@PLT
    ud2
    .cfi_endproc
    .size   switch__enter, . - switch__enter

#endif

    .section .note.GNU-stack, "", @progbits
