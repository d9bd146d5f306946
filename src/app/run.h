/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.h - the service from start to end: carriers, ports, signals, drain.
 */
#ifndef APP_RUN_H
#define APP_RUN_H

#include "app/config.h"
#include "base/attr.h"

enum run_exit { RUN_ENDED = 0, RUN_FAILED = 1, RUN_BAD_USAGE = 2, RUN_NO_IO_URING = 69 };

/*
 * run - serve until a signal ends it; blocks the main thread.
 *
 * @environment  environ: what a service manager put there for us is taken out
 *
 * Returns  the exit code; a failure to start has been told in one line on stderr
 */
int run(const struct config *config, char **environment) WARN_UNUSED;

#endif
