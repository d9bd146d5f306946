/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parser_store.c - what llhttp finds, kept: the bytes of a head, its field table and
 * a body that is wanted, all in the caller's arena, with the limits enforced while
 * bytes come. Called by parser.c and, through the callbacks, by llhttp. An outgrown
 * block is given back with the arena; all of them together are at most a third of
 * the last one.
 */
#include "http/parser_parts.h"

#include "base/must.h"

/* One block holds most heads that browsers send; a small request costs no more. */
#define HEAD_BYTES_FIRST 512
#define HEAD_GROWTH 4
#define FIELDS_FIRST 16
#define BODY_BYTES_FIRST 1024
/* A client that announces a long body gets this much before it has sent any of it. */
#define BODY_BYTES_TRUSTED 16384
/* Free for each chunk: CRLF, sixteen digits, CRLF, and then some. More counts as header. */
#define CHUNK_FRAMING_FREE 32

_Static_assert(HTTP_FIELDS_MAX <= UINT8_MAX, "field_count is one byte");

/* Let the answer to a refused request name its path, if the request line was sound. */
static void note_path(struct parser *parser)
{
    struct http_request *request = &parser->request;
    if (parser->reads_replies || !parser->version_seen || request->target.at == NULL ||
        request->path.at != NULL) {
        return;
    }
    const char *mark = memchr(request->target.at, '?', request->target.length);
    request->path = request->target;
    if (mark != NULL) {
        request->path.length = (size_t)(mark - request->target.at);
    }
}

int parser__refuse(struct parser *parser, int status, const char *message)
{
    if (parser->refusal.status == 0) {
        parser->refusal.status = parser->reads_replies && status != 503 ? 502 : status;
        parser->refusal.message = message;
        note_path(parser);
    }
    return -1;
}

static int refuse_memory(struct parser *parser)
{
    return parser__refuse(parser, 503, "no memory left for this message");
}

static void slice_rebase(struct slice *s, const char *from, const char *to)
{
    if (s->at != NULL) {
        s->at = to + (s->at - from);
    }
}

int parser__head_reserve(struct parser *parser)
{
    if (likely(parser->head_bytes < parser->head_capacity)) {
        return 0;
    }
    size_t limit = parser->limits.head_bytes_max;
    if (parser->head_capacity >= limit) {
        if (!parser->reads_replies && !parser->version_seen) {
            return parser__refuse(parser, 414, "request target is too long");
        }
        return parser__refuse(parser, 431, "request header is too large");
    }
    size_t capacity =
        parser->head_capacity == 0 ? HEAD_BYTES_FIRST : (size_t)parser->head_capacity * HEAD_GROWTH;
    capacity = capacity > limit ? limit : capacity;
    char *head = arena_alloc(parser->arena, capacity);
    if (head == NULL) {
        return refuse_memory(parser);
    }
    if (parser->head_bytes > 0) {
        memcpy(head, parser->head, parser->head_bytes);
        if (!parser->reads_replies) {
            slice_rebase(&parser->request.target, parser->head, head);
        }
        for (size_t i = 0; i < parser->field_count; i++) {
            slice_rebase(&parser->fields[i].name, parser->head, head);
            slice_rebase(&parser->fields[i].value, parser->head, head);
        }
    }
    parser->head = head;
    parser->head_capacity = (uint32_t)capacity;
    return 0;
}

static int field_add(struct parser *parser)
{
    if (parser->field_count == HTTP_FIELDS_MAX) {
        return parser__refuse(parser, 431, "too many header fields");
    }
    if (parser->field_count == parser->field_capacity) {
        size_t capacity =
            parser->field_capacity == 0 ? FIELDS_FIRST : (size_t)parser->field_capacity * 2;
        capacity = capacity > HTTP_FIELDS_MAX ? HTTP_FIELDS_MAX : capacity;
        struct http_field *fields = arena_alloc(parser->arena, capacity * sizeof(*fields));
        if (fields == NULL) {
            return refuse_memory(parser);
        }
        if (parser->field_count > 0) {
            memcpy(fields, parser->fields, parser->field_count * sizeof(*fields));
        }
        parser->fields = fields;
        parser->field_capacity = (uint8_t)capacity;
    }
    parser->fields[parser->field_count] = (struct http_field){.value = {.at = NULL}};
    parser->field_count++;
    return 0;
}

/* The capacity for a body of which needed bytes have come. */
static size_t body_capacity_next(const struct parser *parser, size_t needed)
{
    size_t capacity = parser->body_capacity * 2;
    uint64_t trusted = parser->body_expected;
    trusted = trusted > BODY_BYTES_TRUSTED ? BODY_BYTES_TRUSTED : trusted;
    trusted = trusted == 0 ? BODY_BYTES_FIRST : trusted;
    capacity = capacity < trusted ? (size_t)trusted : capacity;
    if (parser->body_expected > 0 && capacity > parser->body_expected) {
        capacity = (size_t)parser->body_expected;
    }
    return capacity < needed ? needed : capacity;
}

static int body_add(struct parser *parser, struct slice bytes)
{
    if (bytes.length > parser__body_max(parser) - parser->body_bytes) {
        return parser__refuse(parser, 413, "body is too large");
    }
    parser->body_bytes += bytes.length;
    if (!parser->keep_body || bytes.length == 0) {
        return 0;
    }
    struct slice *body = parser->reads_replies ? &parser->reply.body : &parser->request.body;
    size_t length = body->length + bytes.length;
    if (length > parser->body_capacity) {
        size_t capacity = body_capacity_next(parser, length);
        char *at = arena_alloc(parser->arena, capacity);
        if (at == NULL) {
            return refuse_memory(parser);
        }
        if (body->length > 0) {
            memcpy(at, body->at, body->length);
        }
        body->at = at;
        parser->body_capacity = capacity;
    }
    must(length <= parser->body_capacity);
    memcpy((char *)body->at + body->length, bytes.at, bytes.length);
    body->length = length;
    return 0;
}

static uint32_t framing_excess(const struct parser *parser)
{
    return parser->framing_bytes > CHUNK_FRAMING_FREE ? parser->framing_bytes - CHUNK_FRAMING_FREE
                                                      : 0;
}

int parser__count_framing(struct parser *parser, uint64_t bytes)
{
    bytes += parser->framing_bytes;
    parser->framing_bytes = bytes > UINT32_MAX ? UINT32_MAX : (uint32_t)bytes;
    if ((uint64_t)parser->framing_total + framing_excess(parser) > parser->limits.head_bytes_max) {
        return parser__refuse(parser, 431, "chunk extensions or trailers are too large");
    }
    return 0;
}

void parser__end_framing(struct parser *parser)
{
    parser->framing_total += framing_excess(parser);
    parser->framing_bytes = 0;
}

/* ------------------------------------------------------------ what llhttp has found */

static struct parser *parser_of(struct llhttp__internal_s *llhttp)
{
    return container_of(llhttp, struct parser, llhttp);
}

int parser__on_url(struct llhttp__internal_s *llhttp, const char *at, size_t length)
{
    struct parser *parser = parser_of(llhttp);
    struct slice *target = &parser->request.target;
    if (target->at == NULL) {
        /* llhttp skips any number of spaces in front of the target. */
        if (at - parser->head >= 2 && at[-2] == ' ') {
            return parser__refuse(parser, 400, "request line is malformed");
        }
        target->at = at;
    }
    target->length = (size_t)(at - target->at) + length;
    if (target->length > HTTP_TARGET_MAX) {
        return parser__refuse(parser, 414, "request target is too long");
    }
    return 0;
}

int parser__on_url_complete(struct llhttp__internal_s *llhttp)
{
    return parser__check_line_goes_on(parser_of(llhttp));
}

int parser__on_version(struct llhttp__internal_s *llhttp, const char *at, size_t length)
{
    (void)length;
    struct parser *parser = parser_of(llhttp);
    if (parser->version_seen) {
        return 0;
    }
    parser->version_seen = true;
    /* llhttp takes RTSP/ and ICE/ as well, and any number of spaces in front. */
    const char *expected = parser->head;
    if (!parser->reads_replies) {
        expected = parser->request.target.at + parser->request.target.length + 1;
    }
    if (at - expected != sizeof("HTTP/") - 1 ||
        memcmp(expected, "HTTP/", sizeof("HTTP/") - 1) != 0) {
        return parser__refuse(parser, 400, "start line is malformed");
    }
    return 0;
}

/*
 * Fields after a chunked body are counted and dropped. Those that would change the
 * framing are refused here, since llhttp refuses only some of them; Connection:
 * close it notes in its flags.
 */
static int on_trailer_name(struct parser *parser, const char *at, size_t length)
{
    static const char refused[] = "transfer-encoding";
    if (!parser->in_name) {
        if (parser->field_count == HTTP_FIELDS_MAX) {
            return parser__refuse(parser, 431, "too many header fields");
        }
        parser->field_count++;
        parser->in_name = true;
        parser->trailer_name = 0;
    }
    for (size_t i = 0; i < length; i++) {
        bool same = parser->trailer_name < sizeof(refused) - 1 &&
                    (at[i] | 0x20) == refused[parser->trailer_name];
        /* A name that differs never matches again. */
        parser->trailer_name = same ? (uint8_t)(parser->trailer_name + 1) : UINT8_MAX;
    }
    return 0;
}

static int on_trailer_value(struct parser *parser)
{
    if (parser->in_name && parser->trailer_name == sizeof("transfer-encoding") - 1) {
        return parser__refuse(parser, 400, "Transfer-Encoding after the body");
    }
    parser->in_name = false;
    return 0;
}

int parser__on_header_field(struct llhttp__internal_s *llhttp, const char *at, size_t length)
{
    struct parser *parser = parser_of(llhttp);
    if (unlikely(parser->head_complete)) {
        return on_trailer_name(parser, at, length);
    }
    if (!parser->in_name) {
        if (field_add(parser) != 0) {
            return -1;
        }
        parser->fields[parser->field_count - 1].name.at = at;
        parser->in_name = true;
    }
    struct slice *name = &parser->fields[parser->field_count - 1].name;
    name->length = (size_t)(at - name->at) + length;
    return 0;
}

int parser__on_header_value(struct llhttp__internal_s *llhttp, const char *at, size_t length)
{
    struct parser *parser = parser_of(llhttp);
    if (unlikely(parser->head_complete)) {
        return on_trailer_value(parser);
    }
    struct slice *value = &parser->fields[parser->field_count - 1].value;
    if (parser->in_name) {
        parser->in_name = false;
        value->at = at;
    }
    value->length = (size_t)(at - value->at) + length;
    return 0;
}

int parser__on_body(struct llhttp__internal_s *llhttp, const char *at, size_t length)
{
    return body_add(parser_of(llhttp), (struct slice){.at = at, .length = length});
}
