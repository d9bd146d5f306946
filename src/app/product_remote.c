/* SPDX-License-Identifier: Apache-2.0 */
/*
 * product_remote.c - GET /productInfo/{id}, /reviews/{id} and /deliveryDetails/{id}:
 * the slow services that the parts of a product come from.
 *
 * With ?fail=DELAY the answer is a 500 after that delay instead.
 */
#include <errno.h>

#include "app/delay.h"
#include "app/product.h"
#include "app/query.h"
#include "app/routes.h"
#include "base/json.h"
#include "base/must.h"
#include "base/utf8.h"
#include "io/sleep.h"
#include "ring/sys.h"

bool product_id_check(struct http_exchange *exchange)
{
    struct slice id = exchange->params[0];
    if (id.length > PRODUCT_ID_MAX) {
        http_respond_error(exchange, 400, SLICE("a product's id is at most 128 bytes long"),
                           sys_wall_ns());
        return false;
    }
    while (id.length > 0) {
        bool valid;
        size_t length = utf8_next(id, &valid);
        if (!valid) {
            http_respond_error(exchange, 400, SLICE("a product's id is UTF-8"), sys_wall_ns());
            return false;
        }
        id.at += length;
        id.length -= length;
    }
    return true;
}

bool product_remote_check(struct http_exchange *exchange)
{
    struct slice text;
    uint64_t ignored;
    if (!product_id_check(exchange)) {
        return false;
    }
    if (query_find(exchange->request->query, SLICE("fail"), &text) &&
        delay_parse(text, &ignored) < 0) {
        http_respond_error(exchange, 400, SLICE("fail is the delay before the failure: 100ms"),
                           sys_wall_ns());
        return false;
    }
    return true;
}

/* wait - as long as the part takes. False when there is nothing more to answer. */
static bool wait(struct http_exchange *exchange, uint64_t delay_ns)
{
    uint64_t asked_ns = sys_clock_ns();
    struct slice text;
    bool fails = query_find(exchange->request->query, SLICE("fail"), &text);
    if (fails) {
        must(delay_parse(text, &delay_ns) == 0); /* product_remote_check has seen it */
    }
    if (sleep_until(asked_ns + delay_ns) < 0) {
        return false; /* the client reset: nobody reads an answer */
    }
    if (fails) {
        http_respond_error(exchange, 500, SLICE("failed, as it was asked to"), sys_wall_ns());
    }
    return !fails;
}

void product_info_handle(struct http_exchange *exchange)
{
    char id[PRODUCT_ID_MAX * JSON_ESCAPE_GROWTH];
    if (!wait(exchange, PRODUCT_INFO_NS)) {
        return;
    }
    size_t length = json_escape(id, sizeof(id), exchange->params[0]);
    must(length <= sizeof(id));
    struct slice body = arena_printf(
        exchange->arena,
        "{\"productId\":\"%.*s\",\"productOptions\":[{\"size\":\"64GB\",\"color\":\"Black\","
        "\"price\":699.99},{\"size\":\"128GB\",\"color\":\"Black\",\"price\":749.99}]}",
        (int)length, id);
    if (body.at == NULL) {
        http_respond_error(exchange, 503, SLICE("no memory for the answer"), sys_wall_ns());
        return;
    }
    http_respond_json(exchange, 200, body);
}

void product_reviews_handle(struct http_exchange *exchange)
{
    if (wait(exchange, PRODUCT_REVIEWS_NS)) {
        http_respond_json(exchange, 200, SLICE("{\"noOfReviews\":200,\"overallRating\":4.5}"));
    }
}

void product_delivery_handle(struct http_exchange *exchange)
{
    if (wait(exchange, PRODUCT_DELIVERY_NS)) {
        http_respond_json(exchange, 200, SLICE("{\"deliveryOptions\":[\"NEXT_DAY\",\"TWO_DAY\"]}"));
    }
}
