/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parser_check.c - judges a head that llhttp has found complete: the form of the
 * target, Host, framing, persistence. Called by parser.c from within llhttp's
 * headers-complete callback; touches no byte that llhttp has vouched for, but for
 * Host and the few fields that steer us.
 *
 * Source  RFC 9110, RFC 9112 sections 3 (target, Host), 6 (framing), 9 (persistence)
 */
#include "http/parser_parts.h"

/* What the fields of a head say about it. */
struct head_facts {
    struct slice host;
    unsigned hosts;   /* fields of that name */
    unsigned codings; /* Transfer-Encoding fields */
    bool coding_chunked;
    bool has_length; /* Content-Length; llhttp has refused a second one */
    bool close;      /* Connection: close */
    bool keep_alive; /* Connection: keep-alive */
    bool expect_continue;
    bool expect_other;
};

static void note_connection(struct head_facts *facts, struct slice value)
{
    struct slice token;
    while (slice_next_token(&value, &token)) {
        if (slice_equal_nocase(token, SLICE("close"))) {
            facts->close = true;
        } else if (slice_equal_nocase(token, SLICE("keep-alive"))) {
            facts->keep_alive = true;
        }
    }
}

static void note_expect(struct head_facts *facts, struct slice value)
{
    struct slice token;
    while (slice_next_token(&value, &token)) {
        if (slice_equal_nocase(token, SLICE("100-continue"))) {
            facts->expect_continue = true;
        } else {
            facts->expect_other = true;
        }
    }
}

static void note_field(struct head_facts *facts, const struct http_field *field)
{
    switch (field->name.length) {
    case sizeof("host") - 1:
        if (slice_equal_nocase(field->name, SLICE("host"))) {
            facts->host = field->value;
            facts->hosts++;
        }
        break;
    case sizeof("Expect") - 1:
        if (slice_equal_nocase(field->name, SLICE("expect"))) {
            note_expect(facts, field->value);
        }
        break;
    case sizeof("connection") - 1:
        if (slice_equal_nocase(field->name, SLICE("connection"))) {
            note_connection(facts, field->value);
        }
        break;
    case sizeof("Content-Length") - 1:
        if (slice_equal_nocase(field->name, SLICE("content-length"))) {
            facts->has_length = true;
        }
        break;
    case sizeof("Transfer-Encoding") - 1:
        if (slice_equal_nocase(field->name, SLICE("transfer-encoding"))) {
            facts->codings++;
            facts->coding_chunked = slice_equal_nocase(field->value, SLICE("chunked"));
        }
        break;
    default: /* a field that does not steer us */
        break;
    }
}

/* llhttp strips white space before a value, not after it. */
static struct head_facts note_fields(struct parser *parser)
{
    struct head_facts facts = {.hosts = 0};
    for (size_t i = 0; i < parser->field_count; i++) {
        struct slice *value = &parser->fields[i].value;
        while (value->length > 0 &&
               (value->at[value->length - 1] == ' ' || value->at[value->length - 1] == '\t')) {
            value->length--;
        }
        note_field(&facts, &parser->fields[i]);
    }
    return facts;
}

/* How the body is delimited: sets chunked, or refuses. */
static int check_framing(struct parser *parser, const struct head_facts *facts, int version_minor)
{
    if (facts->codings > 0) {
        if (facts->has_length) {
            return parser__refuse(parser, 400,
                                  "Content-Length and Transfer-Encoding exclude each other");
        }
        if (version_minor == 0) {
            return parser__refuse(parser, 400, "HTTP/1.0 has no Transfer-Encoding");
        }
        if (facts->codings > 1 || !facts->coding_chunked) {
            return parser__refuse(parser, 501, "transfer coding is not chunked");
        }
        parser->chunked = true;
    }
    if (parser->body_expected > INT64_MAX) {
        return parser__refuse(parser, 400, "Content-Length is absurd");
    }
    return 0;
}

static bool is_persistent(const struct head_facts *facts, int version_minor)
{
    return !facts->close && (version_minor > 0 || facts->keep_alive);
}

int parser__check_request(struct parser *parser)
{
    struct http_request *request = &parser->request;
    struct head_facts facts = note_fields(parser);
    request->fields = parser->fields;
    request->field_count = parser->field_count;
    if (check_framing(parser, &facts, request->version_minor) != 0) {
        return -1;
    }
    if (facts.hosts != 1 && (facts.hosts > 1 || request->version_minor > 0)) {
        return parser__refuse(parser, 400,
                              facts.hosts > 1 ? "more than one Host" : "Host is missing");
    }
    /* An empty Host is what a client sends that has none: RFC 9112 section 3.2. */
    if (facts.host.length > 0 && !parser__host_is_valid(facts.host, false)) {
        return parser__refuse(parser, 400, "Host is malformed");
    }
    request->host = facts.host;
    request->method_text.at = parser->head;
    request->method_text.length = (size_t)(request->target.at - parser->head) - 1;
    if (parser__check_target(parser) != 0) {
        return -1;
    }
    request->keep_alive = is_persistent(&facts, request->version_minor);
    request->has_body = parser->chunked || parser->body_expected > 0;
    if (parser->body_expected > parser->limits.body_bytes_max) {
        return parser__refuse(parser, 413, "body is too large");
    }
    if (request->version_minor > 0) {
        if (facts.expect_other) {
            return parser__refuse(parser, 417, "only 100-continue can be expected");
        }
        request->expect_continue = facts.expect_continue && request->has_body;
    }
    return 0;
}

/*
 * llhttp takes any byte in a reason, and 9.2.1 "\r\r" for the end of its line (fixed in
 * 9.4). Source: RFC 9112 section 4.
 */
static bool status_line_is_valid(const struct parser *parser)
{
    const char *at = parser->head;
    const char *end = parser->head + parser->head_bytes;
    while (at < end && (*at == '\t' || ((unsigned char)*at >= ' ' && *at != 0x7f))) {
        at++;
    }
    return end - at >= 2 && at[0] == '\r' && at[1] == '\n';
}

int parser__check_reply(struct parser *parser)
{
    struct http_reply *reply = &parser->reply;
    struct head_facts facts = note_fields(parser);
    reply->fields = parser->fields;
    reply->field_count = parser->field_count;
    /* We never ask for another protocol. */
    if (reply->status < 100 || reply->status == 101) {
        return parser__refuse(parser, 502, "status of the reply makes no sense");
    }
    if (!status_line_is_valid(parser)) {
        return parser__refuse(parser, 502, "status line of the reply is malformed");
    }
    if (check_framing(parser, &facts, reply->version_minor) != 0) {
        return -1;
    }
    if (parser->body_expected > parser->limits.body_bytes_max && !parser->answers_head) {
        return parser__refuse(parser, 502, "body of the reply is too large");
    }
    bool delimited = parser->chunked || facts.has_length || parser->answers_head ||
                     reply->status < 200 || reply->status == 204 || reply->status == 304;
    reply->keep_alive = delimited && is_persistent(&facts, reply->version_minor);
    return 0;
}
