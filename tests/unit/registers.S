/* SPDX-License-Identifier: Apache-2.0 */
/*
 * registers.S - see registers.h. On x86-64 rbx, rbp and r12 to r15, on aarch64 x19
 * to x29 and d8 to d15; register number N gets seed + N.
 */
    .text
    .globl  registers_survive

#if defined(__x86_64__)

    .macro differ number, register
    leaq    \number(%rdx), %rcx
    xorq    \register, %rcx
    orq     %rcx, %rax
    .endm

    .type   registers_survive, @function
registers_survive:
    pushq   %rbp
    pushq   %rbx
    pushq   %r12
    pushq   %r13
    pushq   %r14
    pushq   %r15
    subq    $8, %rsp
    movq    %rdx, (%rsp)
    leaq    1(%rdx), %rbx
    leaq    2(%rdx), %rbp
    leaq    12(%rdx), %r12
    leaq    13(%rdx), %r13
    leaq    14(%rdx), %r14
    leaq    15(%rdx), %r15
    call    switch_to@PLT
    movq    (%rsp), %rdx
    xorl    %eax, %eax
    differ  1, %rbx
    differ  2, %rbp
    differ  12, %r12
    differ  13, %r13
    differ  14, %r14
    differ  15, %r15
    addq    $8, %rsp
    popq    %r15
    popq    %r14
    popq    %r13
    popq    %r12
    popq    %rbx
    popq    %rbp
    ret
    .size   registers_survive, . - registers_survive

#elif defined(__aarch64__)

    .type   registers_survive, %function
registers_survive:
    stp     x29, x30, [sp, #-176]!
    stp     x19, x20, [sp, #16]
    stp     x21, x22, [sp, #32]
    stp     x23, x24, [sp, #48]
    stp     x25, x26, [sp, #64]
    stp     x27, x28, [sp, #80]
    stp     d8, d9, [sp, #96]
    stp     d10, d11, [sp, #112]
    stp     d12, d13, [sp, #128]
    stp     d14, d15, [sp, #144]
    str     x2, [sp, #160]
    .irp    number, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29
    add     x\number, x2, #\number
    .endr
    .irp    number, 8, 9, 10, 11, 12, 13, 14, 15
    add     x9, x2, #\number
    fmov    d\number, x9
    .endr
    bl      switch_to
    ldr     x2, [sp, #160]
    mov     x0, #0
    .irp    number, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29
    add     x9, x2, #\number
    eor     x9, x9, x\number
    orr     x0, x0, x9
    .endr
    .irp    number, 8, 9, 10, 11, 12, 13, 14, 15
    add     x9, x2, #\number
    fmov    x10, d\number
    eor     x9, x9, x10
    orr     x0, x0, x9
    .endr
    ldp     d14, d15, [sp, #144]
    ldp     d12, d13, [sp, #128]
    ldp     d10, d11, [sp, #112]
    ldp     d8, d9, [sp, #96]
    ldp     x27, x28, [sp, #80]
    ldp     x25, x26, [sp, #64]
    ldp     x23, x24, [sp, #48]
    ldp     x21, x22, [sp, #32]
    ldp     x19, x20, [sp, #16]
    ldp     x29, x30, [sp], #176
    ret
    .size   registers_survive, . - registers_survive

#endif

    .section .note.GNU-stack, "", %progbits
