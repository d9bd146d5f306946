/* SPDX-License-Identifier: Apache-2.0 */
/*
 * delay.h - the {n} of /remote/{n}, /blocking/{n} and /fanout/{k}/{n}, and a ?deadline=. Pure.
 */
#ifndef APP_DELAY_H
#define APP_DELAY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/slice.h"
#include "http/message.h"

#define DELAY_TEXT_MAX 64 /* bytes of n */

/*
 * delay_parse - digits, an optional fraction, an optional unit ms, s, m or h (none: seconds).
 *
 * @ns  out: the delay in nanoseconds; what is finer is rounded up, so that a sleep is never short
 *
 * Returns  0; -EINVAL no such number (a sign or an exponent included); -ERANGE more than 24 h
 */
int delay_parse(struct slice text, uint64_t *ns) WARN_UNUSED;

/* delay_check - the check of a route whose first placeholder is a delay: a 400 when it is none. */
bool delay_check(struct http_exchange *exchange) WARN_UNUSED;

/* delay_check_text - the same of a text, which is another placeholder. */
bool delay_check_text(struct http_exchange *exchange, struct slice text) WARN_UNUSED;

#endif
