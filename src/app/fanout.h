/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fanout.h - GET /fanout/{k}/{n}.
 */
#ifndef APP_FANOUT_H
#define APP_FANOUT_H

#include <stdbool.h>

#include "base/attr.h"
#include "http/message.h"

#define FANOUT_CALLS_MAX 1000

/* fanout_check - a 400 when k is no number from 1 to FANOUT_CALLS_MAX, or n no delay. */
bool fanout_check(struct http_exchange *exchange) WARN_UNUSED;

#endif
