/* SPDX-License-Identifier: Apache-2.0 */
/*
 * product.h - what the app's product routes and the remote's three share.
 */
#ifndef APP_PRODUCT_H
#define APP_PRODUCT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/attr.h"
#include "base/slice.h"
#include "base/time.h"
#include "http/message.h"

#define PRODUCT_ID_MAX 128 /* bytes of an id, decoded */

/* How long the remote takes for each part. */
#define PRODUCT_INFO_NS NS_PER_S
#define PRODUCT_REVIEWS_NS (2 * NS_PER_S)
#define PRODUCT_DELIVERY_NS NS_PER_S

/*
 * product_check - the check of a route whose first placeholder is an id: a 400 when it
 * is too long or no UTF-8, or when ?fail= or ?deadline= is none that the route knows.
 */
bool product_check(struct http_exchange *exchange) WARN_UNUSED;    /* /product/{id} */
bool product_v2_check(struct http_exchange *exchange) WARN_UNUSED; /* /v2/product/{id} */
bool product_remote_check(struct http_exchange *exchange) WARN_UNUSED;

/* product_id_check - the id alone, for all three. */
bool product_id_check(struct http_exchange *exchange) WARN_UNUSED;

#endif
