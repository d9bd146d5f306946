/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hold.h - a carrier that is held on purpose, for tests of what is to happen
 * then: ringspun.debug.stuck-carrier-after.
 */
#ifndef APP_HOLD_H
#define APP_HOLD_H

#include "ring/carrier.h"

/*
 * hold_carrier - from now on a fiber of that carrier computes and never yields, as
 * a handler in an endless loop would. Any thread, once.
 */
void hold_carrier(struct carrier *carrier);

#endif
