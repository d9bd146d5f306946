/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stuck.h - a carrier that is held on purpose, for tests of what is to happen
 * then: ringspun.debug.stuck-carrier-after.
 */
#ifndef APP_STUCK_H
#define APP_STUCK_H

#include "ring/carrier.h"

/*
 * stuck_carrier - from now on a fiber of that carrier computes and never yields, as
 * a handler in an endless loop would. Any thread, once.
 */
void stuck_carrier(struct carrier *carrier);

#endif
