/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parser_line.c - the start line: empty lines before it, and the forms of version,
 * target and host, which llhttp takes more widely than HTTP/1.1 does. Called by
 * parser.c and parser_check.c.
 *
 * Source  RFC 9112 sections 2 and 3, RFC 3986 section 3.2
 */
#include "http/parser_parts.h"

#define BLANK_BYTES_MAX 8 /* empty lines before a request line: RFC 9112 section 2.2 */

#define CHAR_HOST 1 /* reg-name without percent codes: unreserved and sub-delims */
#define CHAR_HEX 2
#define CHAR_TOKEN 4

/* Source: RFC 3986 section 2 and 3.2.2, RFC 9110 section 5.6.2. */
static const unsigned char char_classes[256] = {
    ['0' ... '9'] = CHAR_HOST | CHAR_HEX | CHAR_TOKEN,
    ['A' ... 'F'] = CHAR_HOST | CHAR_HEX | CHAR_TOKEN,
    ['a' ... 'f'] = CHAR_HOST | CHAR_HEX | CHAR_TOKEN,
    ['G' ... 'Z'] = CHAR_HOST | CHAR_TOKEN,
    ['g' ... 'z'] = CHAR_HOST | CHAR_TOKEN,
    ['-'] = CHAR_HOST | CHAR_TOKEN,
    ['.'] = CHAR_HOST | CHAR_TOKEN,
    ['_'] = CHAR_HOST | CHAR_TOKEN,
    ['~'] = CHAR_HOST | CHAR_TOKEN,
    ['!'] = CHAR_HOST | CHAR_TOKEN,
    ['$'] = CHAR_HOST | CHAR_TOKEN,
    ['&'] = CHAR_HOST | CHAR_TOKEN,
    ['\''] = CHAR_HOST | CHAR_TOKEN,
    ['*'] = CHAR_HOST | CHAR_TOKEN,
    ['+'] = CHAR_HOST | CHAR_TOKEN,
    ['('] = CHAR_HOST,
    [')'] = CHAR_HOST,
    [','] = CHAR_HOST,
    [';'] = CHAR_HOST,
    ['='] = CHAR_HOST,
    ['#'] = CHAR_TOKEN,
    ['%'] = CHAR_TOKEN,
    ['^'] = CHAR_TOKEN,
    ['`'] = CHAR_TOKEN,
    ['|'] = CHAR_TOKEN,
};

static bool is_class(char c, unsigned class)
{
    return (char_classes[(unsigned char)c] & class) != 0;
}

bool parser__is_token_char(char c)
{
    return is_class(c, CHAR_TOKEN);
}

/* Length of the host at the start of s, without port; 0 also when it is malformed. */
static size_t host_name_length(struct slice s)
{
    size_t i = 0;
    if (s.length > 0 && s.at[0] == '[') {
        for (i = 1; i < s.length && s.at[i] != ']'; i++) {
            if (!is_class(s.at[i], CHAR_HEX) && s.at[i] != ':' && s.at[i] != '.') {
                return 0;
            }
        }
        return i < s.length && i > 2 ? i + 1 : 0;
    }
    while (i < s.length) {
        if (is_class(s.at[i], CHAR_HOST)) {
            i++;
        } else if (s.at[i] == '%' && s.length - i > 2 && is_class(s.at[i + 1], CHAR_HEX) &&
                   is_class(s.at[i + 2], CHAR_HEX)) {
            i += 3;
        } else {
            break;
        }
    }
    return i;
}

bool parser__host_is_valid(struct slice s, bool port_needed)
{
    size_t name = host_name_length(s);
    if (name == 0) {
        return false;
    }
    if (name == s.length) {
        return !port_needed;
    }
    if (s.at[name] != ':') {
        return false;
    }
    struct slice digits = {.at = s.at + name + 1, .length = s.length - name - 1};
    if (digits.length == 0) {
        return !port_needed; /* "host:" is allowed, RFC 3986 section 3.2.3 */
    }
    uint64_t port;
    return slice_to_u64(digits, &port) == 0 && port <= UINT16_MAX;
}

int parser__skip_blank(struct parser *parser, const char **at, const char *end)
{
    while (*at < end && (**at == '\r' || **at == '\n')) {
        char expected = parser->blank_bytes % 2 == 0 ? '\r' : '\n';
        if (**at != expected || parser->blank_bytes == BLANK_BYTES_MAX || parser->reads_replies) {
            return parser__refuse(parser, 400, "empty lines before the start line");
        }
        parser->blank_bytes++;
        (*at)++;
    }
    if (*at < end) {
        if (parser->blank_bytes % 2 != 0) {
            return parser__refuse(parser, 400, "CR without LF before the start line");
        }
        parser->started = true;
    }
    return 0;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/*
 * llhttp reads a line without a version as HTTP/0.9, and fields after it; it says so
 * only when one more byte has come, which a client of 0.9 does not send.
 */
int parser__check_line_goes_on(struct parser *parser)
{
    const struct slice *target = &parser->request.target;
    if (parser->reads_replies || target->at == NULL) {
        return 0;
    }
    const char *end = target->at + target->length;
    if (end < parser->head + parser->head_bytes && *end != ' ') {
        return parser__refuse(parser, 400, "request line has no version");
    }
    return 0;
}

/* llhttp stops at 1.2 as it does at 1.x; the first is a version that we don't speak. */
int parser__refuse_version(struct parser *parser)
{
    size_t rest = 0;
    const char *version = NULL;
    if (!parser->reads_replies && parser->request.target.at != NULL) {
        version = parser->request.target.at + parser->request.target.length + sizeof(" HTTP/") - 1;
        rest = (size_t)(parser->head + parser->head_bytes - version);
    }
    bool well_formed =
        rest >= 3 && is_digit(version[0]) && version[1] == '.' && is_digit(version[2]);
    bool spoken = well_formed && version[0] == '1' && (version[2] == '0' || version[2] == '1');
    if (well_formed && !spoken) {
        return parser__refuse(parser, 505, "only HTTP/1.0 and HTTP/1.1 are spoken here");
    }
    return parser__refuse(parser, 400, "start line is malformed");
}

/* The same refusal whether the bytes came at once or one by one: too long goes before malformed. */
int parser__refuse_target(struct parser *parser, const char *error_at)
{
    const char *space = memchr(parser->head, ' ', parser->head_bytes);
    if (space != NULL && error_at - (space + 1) > HTTP_TARGET_MAX) {
        return parser__refuse(parser, 414, "request target is too long");
    }
    return parser__refuse(parser, 400, "request target is malformed");
}

/* Part origin-form text, "/path?query", into path and query. */
static void part_origin(struct http_request *request, struct slice s)
{
    const char *mark = s.length > 0 ? memchr(s.at, '?', s.length) : NULL;
    request->path = s;
    if (mark != NULL) {
        request->path.length = (size_t)(mark - s.at);
        request->query.at = mark + 1;
        request->query.length = s.length - request->path.length - 1;
    }
}

/* "http://host:port/path?query"; the host replaces the Host field's. */
static int check_absolute(struct parser *parser)
{
    struct http_request *request = &parser->request;
    struct slice rest = request->target;
    const char *colon = memchr(rest.at, ':', rest.length);
    size_t scheme = colon != NULL ? (size_t)(colon - rest.at) : 0;
    struct slice name = {.at = rest.at, .length = scheme};
    if ((!slice_equal_nocase(name, SLICE("http")) && !slice_equal_nocase(name, SLICE("https"))) ||
        rest.length < scheme + 3 || rest.at[scheme + 1] != '/' || rest.at[scheme + 2] != '/') {
        return parser__refuse(parser, 400, "request target is malformed");
    }
    rest.at += scheme + 3;
    rest.length -= scheme + 3;
    size_t length = 0;
    while (length < rest.length && rest.at[length] != '/' && rest.at[length] != '?') {
        length++;
    }
    request->host = (struct slice){.at = rest.at, .length = length};
    if (!parser__host_is_valid(request->host, false)) {
        return parser__refuse(parser, 400, "host in the request target is malformed");
    }
    rest.at += length;
    rest.length -= length;
    part_origin(request, rest);
    if (request->path.length == 0) {
        bool star = request->method == HTTP_OPTIONS && rest.length == 0;
        request->path = star ? SLICE("*") : SLICE("/");
    }
    return 0;
}

int parser__check_target(struct parser *parser)
{
    struct http_request *request = &parser->request;
    struct slice target = request->target;
    /* llhttp takes a fragment for part of the target. */
    if (memchr(target.at, '#', target.length) != NULL) {
        return parser__refuse(parser, 400, "request target has a fragment");
    }
    if (request->method == HTTP_CONNECT) {
        if (!parser__host_is_valid(target, true)) {
            return parser__refuse(parser, 400, "CONNECT needs a host and a port");
        }
        request->host = target;
        request->path = target;
        return 0;
    }
    if (target.at[0] == '/') {
        part_origin(request, target);
        return 0;
    }
    if (target.at[0] == '*') {
        if (target.length > 1 || request->method != HTTP_OPTIONS) {
            return parser__refuse(parser, 400, "request target is malformed");
        }
        request->path = target;
        return 0;
    }
    return check_absolute(parser);
}
