/* SPDX-License-Identifier: Apache-2.0 */
/*
 * healthcheck.h - `ringspun healthcheck`: is a server up? For containers and scripts.
 */
#ifndef APP_HEALTHCHECK_H
#define APP_HEALTHCHECK_H

#include "app/config.h"
#include "base/attr.h"

/* All of it, the resolver's time included. */
#define HEALTHCHECK_TIMEOUT_MS 2000u

/*
 * healthcheck - one GET to --url, or to /actuator/health on server.address and server.port.
 *
 * Blocks the thread, at most HEALTHCHECK_TIMEOUT_MS. Uses neither fibers nor a ring, so it
 * answers where io_uring is refused. Says UP on stdout, else why not in one line on stderr.
 *
 * Returns  the exit code: 0 answered 200 and UP; 1 anything else; 2 no port is known
 */
int healthcheck(const struct config *config) WARN_UNUSED;

#endif
