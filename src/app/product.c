/* SPDX-License-Identifier: Apache-2.0 */
/*
 * product.c - GET /product/{id} and /v2/product/{id}: structured concurrency.
 *
 *   /product      info (1 s) | reviews (2 s)                          -> 2 s
 *   /v2/product   info (1 s), then delivery (1 s) | reviews (2 s)     -> 2 s
 *
 * Each part is a child of one scope: the first that fails cancels the others, whose
 * calls are reset, so that the remote stops; ?deadline= and a client that resets
 * cancel all of them. No child, call or connection outlives the answer.
 *
 * ?fail=PART has the remote fail that part after 100 ms. The delivery is then asked
 * for at once, though it needs the info otherwise: it is to fail, and not to wait.
 */
#include "app/product.h"

#include <errno.h>

#include "app/app.h"
#include "app/call.h"
#include "app/delay.h"
#include "app/json.h"
#include "app/query.h"
#include "app/routes.h"
#include "base/json.h"
#include "base/must.h"
#include "fiber/scope.h"
#include "fiber/semaphore.h"
#include "ring/sys.h"

#define PART_BYTES_MAX ((size_t)4 * 1024 * 1024)
#define PART_KEPT_BYTES 512 /* of a part's answer that need no malloc */
#define FAIL_AFTER "100ms"

enum part_kind { PART_INFO, PART_REVIEWS, PART_DELIVERY, PARTS };

static const struct part_facts {
    struct slice fail; /* value of ?fail= */
    const char *route; /* of the remote */
    const char *key;   /* in our answer */
    uint64_t delay_ns;
} facts[PARTS] = {
    [PART_INFO] = {SLICE("info"), "/productInfo", "productInfo", PRODUCT_INFO_NS},
    [PART_REVIEWS] = {SLICE("reviews"), "/reviews", "reviews", PRODUCT_REVIEWS_NS},
    [PART_DELIVERY] = {SLICE("delivery"), "/deliveryDetails", "deliveryDetails",
                       PRODUCT_DELIVERY_NS},
};

/* One call to the remote, and the child that makes it. */
struct part {
    struct scope_child child;
    struct product *product;
    enum part_kind kind;
    bool fails;
    struct call_failure failure; /* its message is static, or in kept */
    struct slice body;           /* in kept */
    struct arena kept; /* what outlives the child; on a platform server that is a thread */
    char kept_first[PART_KEPT_BYTES];
};

/* One request in work; in its arena, where the children reach it. */
struct product {
    struct app *app;
    char id[PRODUCT_ID_MAX * 3]; /* percent-encoded */
    size_t id_length;
    struct semaphore info_there;
    unsigned count; /* of parts */
    struct part parts[PARTS];
};

/* ------------------------------------------------------------ what is asked */

/* find_fail - the part that ?fail= names. Returns false when it is none of the first count. */
static bool find_fail(struct slice query, unsigned count, enum part_kind *kind)
{
    struct slice text;
    *kind = PARTS;
    if (!query_find(query, SLICE("fail"), &text)) {
        return true;
    }
    for (unsigned i = 0; i < count; i++) {
        if (slice_equal(text, facts[i].fail)) {
            *kind = (enum part_kind)i;
            return true;
        }
    }
    return false;
}

static bool check(struct http_exchange *exchange, unsigned count)
{
    struct slice text;
    enum part_kind kind;
    uint64_t ignored;
    if (!product_id_check(exchange)) {
        return false;
    }
    if (!find_fail(exchange->request->query, count, &kind)) {
        http_respond_error(exchange, 400,
                           count == PARTS ? SLICE("fail is info, reviews or delivery")
                                          : SLICE("fail is info or reviews"),
                           sys_wall_ns());
        return false;
    }
    if (query_find(exchange->request->query, SLICE("deadline"), &text) &&
        delay_parse(text, &ignored) < 0) {
        http_respond_error(exchange, 400,
                           SLICE("deadline is digits with an optional fraction and an optional "
                                 "unit ms, s, m or h, at most 24 h"),
                           sys_wall_ns());
        return false;
    }
    return true;
}

bool product_check(struct http_exchange *exchange)
{
    return check(exchange, PART_REVIEWS + 1);
}

bool product_v2_check(struct http_exchange *exchange)
{
    return check(exchange, PARTS);
}

/* encode - all but what RFC 3986 calls unreserved. Returns the length. */
static size_t encode(char *dst, struct slice src)
{
    static const char digits[] = "0123456789ABCDEF";
    static const char unreserved[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
    size_t length = 0;
    for (size_t i = 0; i < src.length; i++) {
        char c = src.at[i];
        if (c != '\0' && strchr(unreserved, c) != NULL) {
            dst[length++] = c;
        } else {
            dst[length++] = '%';
            dst[length++] = digits[(unsigned char)c >> 4];
            dst[length++] = digits[(unsigned char)c & 15];
        }
    }
    return length;
}

/* ------------------------------------------------------------ the parts */

static int ignore_leaf(void *context, const struct json_leaf *leaf)
{
    (void)context;
    (void)leaf;
    return 0;
}

/* check_reply - what the remote sent will stand within our own JSON. */
static int check_reply(struct part *part, struct slice body)
{
    struct json_error error;
    int result = json_flatten(body, ignore_leaf, NULL, &error);
    if (result == -ENOMEM) {
        call_fail(&part->failure, result);
    } else if (result < 0) {
        part->failure = (struct call_failure){
            .status = 502, .message = SLICE("the remote's answer is no JSON object")};
    }
    return result;
}

/* ask - the call itself. The answer, or why there is none, is kept. */
static int ask(struct part *part, struct arena *arena)
{
    const struct product *product = part->product;
    const struct part_facts *fact = &facts[part->kind];
    struct http_call call = {
        .path = arena_printf(arena, "%s/%.*s%s", fact->route, (int)product->id_length, product->id,
                             part->fails ? "?fail=" FAIL_AFTER : ""),
        .arena = arena,
    };
    int result = call_remote(product->app, &call, fact->delay_ns, &part->failure);
    if (result == 0) {
        result = check_reply(part, call.reply.body);
    }
    struct slice *kept = result == 0 ? &part->body : &part->failure.message;
    *kept = arena_copy(&part->kept, result == 0 ? call.reply.body : part->failure.message);
    if (kept->at == NULL && result == 0) {
        result = -ENOMEM;
        call_fail(&part->failure, result);
    }
    return result;
}

static int run_part(void *argument)
{
    struct part *part = argument;
    struct arena arena;

    if (part->kind == PART_DELIVERY && !part->fails) {
        int result = semaphore_take(&part->product->info_there, 0);
        if (result < 0) {
            return result;
        }
    }
    call_arena(&arena, PART_BYTES_MAX);
    int result = ask(part, &arena);
    arena_reset(&arena);
    if (result == 0 && part->kind == PART_INFO) {
        semaphore_give(&part->product->info_there);
    }
    return result;
}

/* ------------------------------------------------------------ the answer */

static void respond_failure(struct http_exchange *exchange, const struct product *product,
                            int result)
{
    struct call_failure failure = {.status = 0};
    for (unsigned i = 0; i < product->count && failure.status == 0; i++) {
        const struct part *part = &product->parts[i];
        if (part->child.result == result) {
            failure = part->failure;
        }
    }
    if (failure.status == 0 && result == -ETIMEDOUT) {
        failure = (struct call_failure){
            .status = 504, .message = SLICE("the product was not complete at the deadline")};
    } else if (failure.status == 0) {
        failure = (struct call_failure){.status = 503,
                                        .message = SLICE("no fiber or thread for the calls")};
    }
    struct slice message =
        failure.message.at != NULL ? arena_copy(exchange->arena, failure.message) : failure.message;
    http_respond_error(exchange, failure.status, message.at != NULL ? message : SLICE(""),
                       sys_wall_ns());
}

static void append(char *dst, size_t *at, struct slice s)
{
    memcpy(dst + *at, s.at, s.length);
    *at += s.length;
}

static void respond(struct http_exchange *exchange, const struct product *product)
{
    struct slice id = exchange->params[0];
    size_t capacity = 64 + id.length * JSON_ESCAPE_GROWTH;
    for (unsigned i = 0; i < product->count; i++) {
        capacity += product->parts[i].body.length + 32;
    }
    char *body = arena_alloc(exchange->arena, capacity);
    if (body == NULL) {
        http_respond_error(exchange, 503, SLICE("no memory for the answer"), sys_wall_ns());
        return;
    }
    size_t at = 0;
    append(body, &at, SLICE("{\"productId\":\""));
    at += json_escape(body + at, capacity - at, id);
    append(body, &at, SLICE("\""));
    for (unsigned i = 0; i < product->count; i++) {
        append(body, &at, SLICE(",\""));
        append(body, &at, slice_of(facts[i].key));
        append(body, &at, SLICE("\":"));
        append(body, &at, product->parts[i].body);
    }
    append(body, &at, SLICE("}"));
    must(at <= capacity);
    http_respond_json(exchange, 200, (struct slice){.at = body, .length = at});
}

/* run_scope - fork a child a part and wait for all of them. Returns what the join, or a fork, did. */
static int run_scope(struct product *product, uint64_t deadline_ns)
{
    struct scope scope;
    int result = 0;
    scope_open(&scope, "product-", SCOPE_FAIL_FAST);
    for (unsigned i = 0; i < product->count && result == 0; i++) {
        struct part *part = &product->parts[i];
        result = scope_fork(&scope, &part->child, run_part, part);
    }
    /* A thread may have failed before its siblings were forked: then the join tells why. */
    if (result == 0 || result == -ECANCELED) {
        result = scope_join_until(&scope, deadline_ns);
    }
    scope_close(&scope);
    return result;
}

static void handle(struct http_exchange *exchange, unsigned count)
{
    uint64_t asked_ns = sys_clock_ns();
    uint64_t deadline_ns = 0;
    struct slice text;
    enum part_kind fails;
    must(find_fail(exchange->request->query, count, &fails)); /* the check has seen it */
    if (query_find(exchange->request->query, SLICE("deadline"), &text)) {
        must(delay_parse(text, &deadline_ns) == 0);
        deadline_ns += asked_ns;
    }
    struct product *product = arena_alloc(exchange->arena, sizeof(*product));
    if (product == NULL) {
        http_respond_error(exchange, 503, SLICE("no memory for the calls"), sys_wall_ns());
        return;
    }
    memset(product, 0, sizeof(*product));
    product->app = exchange->context;
    product->count = count;
    product->id_length = encode(product->id, exchange->params[0]);
    semaphore_init(&product->info_there, "product info", 0);
    for (unsigned i = 0; i < count; i++) {
        struct part *part = &product->parts[i];
        part->product = product;
        part->kind = (enum part_kind)i;
        part->fails = part->kind == fails;
        arena_init(&part->kept, part->kept_first, sizeof(part->kept_first), PART_BYTES_MAX);
    }
    int result = run_scope(product, deadline_ns);
    if (result == 0) {
        respond(exchange, product);
    } else if (result != -ECANCELED) { /* else our own client reset: nobody reads an answer */
        respond_failure(exchange, product, result);
    }
    for (unsigned i = 0; i < count; i++) {
        arena_reset(&product->parts[i].kept);
    }
    semaphore_fini(&product->info_there);
}

void product_handle(struct http_exchange *exchange)
{
    handle(exchange, PART_REVIEWS + 1);
}

void product_v2_handle(struct http_exchange *exchange)
{
    handle(exchange, PARTS);
}
