/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dump.h - what SIGQUIT asks for: every fiber, one a line, on stderr.
 */
#ifndef APP_DUMP_H
#define APP_DUMP_H

#include "ring/carrier.h"

/*
 * dump_fibers - have each carrier write its fibers to stderr; returns at once.
 *
 * A dump that is still under way is not asked for again. A carrier that is held
 * by its fiber writes when it comes free; the monitor tells about that one.
 */
void dump_fibers(struct carrier *carriers, unsigned count);

#endif
