/* SPDX-License-Identifier: Apache-2.0 */
/*
 * overflow.h - a fiber that overruns its stack says so before the process dies.
 *
 * The guard below the stack turns the overrun into SIGSEGV. The handler runs on
 * an alternate stack, writes
 *
 *   ringspun: stack overflow in Fiber[#61,http-8080-conn-12]/runnable@carrier-1: its stack has
 *   48 KiB (ringspun.stack-size=64KB); raise ringspun.stack-size
 *
 * as one line to stderr, and lets the signal kill the process, so that exit
 * status and core dump are those of the fault. Any other SIGSEGV or SIGBUS gets
 * what was in place before.
 */
#ifndef FIBER_OVERFLOW_H
#define FIBER_OVERFLOW_H

#include "base/attr.h"

/*
 * overflow_install_process - install the handlers, once, before threads start.
 * Returns 0 or -errno.
 */
int overflow_install_process(void) WARN_UNUSED;

/*
 * overflow_install_thread - give the calling thread its alternate stack; each
 * carrier does. Without it an overflow kills without a word.
 *
 * Returns  0; -ENOMEM
 * Source   sigaltstack(2), getauxval(3) AT_MINSIGSTKSZ
 */
int overflow_install_thread(void) WARN_UNUSED;

/*
 * overflow_fini_thread - back to the alternate stack that was there before; not
 * while a fiber runs.
 */
void overflow_fini_thread(void);

#endif
