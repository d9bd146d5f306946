/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_scan.c - see json_scan.h. One pass each, no recursion, no memory.
 */
#include "app/json_scan.h"

#include <ctype.h>

#include "base/utf8.h"

/* Characters of a number that cJSON reads. */
#define NUMBER_MAX 63

static bool json_scan_is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Does c end a number or a literal? */
static bool json_scan_is_delimiter(char c)
{
    return json_scan_is_space(c) || (c != '\0' && strchr("{}[],:\"", c) != NULL);
}

static size_t json_scan_skip_space(struct slice text, size_t offset)
{
    while (offset < text.length && json_scan_is_space(text.at[offset])) {
        offset++;
    }
    return offset;
}

/* Behind the string that begins at offset; the end of the text when it is not closed. */
static size_t json_scan_skip_string(struct slice text, size_t offset)
{
    for (size_t i = offset + 1; i < text.length; i++) {
        if (text.at[i] == '\\') {
            i++;
        } else if (text.at[i] == '"') {
            return i + 1;
        }
    }
    return text.length;
}

/* Behind the number or literal that begins at offset. */
static size_t json_scan_skip_word(struct slice text, size_t offset)
{
    while (offset < text.length && !json_scan_is_delimiter(text.at[offset])) {
        offset++;
    }
    return offset;
}

static size_t json_scan_skip_digits(struct slice text, size_t offset)
{
    while (offset < text.length && text.at[offset] >= '0' && text.at[offset] <= '9') {
        offset++;
    }
    return offset;
}

/* Is the word a number as RFC 8259 section 6 has it? cJSON takes 007 and 1. as well. */
static bool json_scan_is_number(struct slice word)
{
    size_t start = word.length > 0 && word.at[0] == '-' ? 1 : 0;
    size_t at = json_scan_skip_digits(word, start);
    if (at == start || (word.at[start] == '0' && at > start + 1)) {
        return false;
    }
    if (at < word.length && word.at[at] == '.') {
        size_t fraction = at + 1;
        at = json_scan_skip_digits(word, fraction);
        if (at == fraction) {
            return false;
        }
    }
    if (at < word.length && (word.at[at] == 'e' || word.at[at] == 'E')) {
        at++;
        if (at < word.length && (word.at[at] == '+' || word.at[at] == '-')) {
            at++;
        }
        size_t exponent = at;
        at = json_scan_skip_digits(word, exponent);
        if (at == exponent) {
            return false;
        }
    }
    return at == word.length;
}

/*
 * How long the escape is that s begins with; 0: none of RFC 8259's. cJSON takes hexadecimal
 * digits that are none for a NUL, which would end the string there.
 */
static size_t json_scan_escape(struct slice s)
{
    if (s.length < 2) {
        return 1; /* the string is not closed, which the caller finds */
    }
    if (s.at[1] == '\0' || strchr("\"\\/bfnrtu", s.at[1]) == NULL) {
        return 0;
    }
    if (s.at[1] != 'u') {
        return 2;
    }
    for (size_t i = 2; i < 6; i++) {
        if (i >= s.length || !isxdigit((unsigned char)s.at[i])) {
            return 0;
        }
    }
    return 6;
}

/* What is wrong within the closed string [from, to), or NULL. */
static const char *json_scan_check_string(struct slice text, size_t from, size_t to, size_t *offset)
{
    for (size_t i = from; i < to;) {
        bool valid;
        struct slice rest = {.at = text.at + i, .length = to - i};
        size_t length = utf8_next(rest, &valid);
        *offset = i;
        if (!valid) {
            return "the text is not UTF-8";
        }
        if ((unsigned char)rest.at[0] < 0x20) {
            return "a string holds a control character or is not closed on its line";
        }
        if (slice_starts_with(rest, SLICE("\\u0000"))) {
            return "a string holds \\u0000";
        }
        if (rest.at[0] == '\\' && (length = json_scan_escape(rest)) == 0) {
            return "a backslash in a string is not followed by an escape";
        }
        i += length;
    }
    return NULL;
}

/* What is wrong with the word [from, to), or NULL. */
static const char *json_scan_check_word(struct slice text, size_t from, size_t to)
{
    struct slice word = {.at = text.at + from, .length = to - from};
    if (slice_equal(word, SLICE("true")) || slice_equal(word, SLICE("false")) ||
        slice_equal(word, SLICE("null")) ||
        (json_scan_is_number(word) && word.length <= NUMBER_MAX)) {
        return NULL;
    }
    return word.length > NUMBER_MAX
               ? "a number is longer than 63 characters"
               : "neither a string in quotes, nor a number, true, false or null";
}

const char *json_scan_check(struct slice text, size_t *offset)
{
    size_t depth = 0;
    const char *wrong = NULL;
    size_t i = json_scan_skip_space(text, 0);
    *offset = 0;
    if (i == text.length) {
        return "the document is empty";
    }
    while (i < text.length) {
        *offset = i;
        char c = text.at[i];
        size_t end = i + 1;
        if (c == '"') {
            end = json_scan_skip_string(text, i);
            wrong = json_scan_check_string(text, i, end, offset);
            if (wrong == NULL && (end - i < 2 || text.at[end - 1] != '"')) {
                *offset = i;
                wrong = "a string is not closed";
            }
        } else if (c == '{' || c == '[') {
            depth++;
            if (depth > JSON_DEPTH_MAX) {
                wrong = "nested too deep";
            }
        } else if (c == '}' || c == ']') {
            depth -= depth > 0; /* cJSON finds the one too many */
        } else if (c != ',' && c != ':') {
            end = json_scan_skip_word(text, i);
            wrong = json_scan_check_word(text, i, end);
        }
        if (wrong != NULL) {
            return wrong;
        }
        i = json_scan_skip_space(text, end);
    }
    return NULL;
}

bool json_scan_leaf(struct slice text, size_t *offset, struct slice *leaf)
{
    size_t i = json_scan_skip_space(text, *offset);
    while (i < text.length) {
        char c = text.at[i];
        size_t end = i + 1;
        bool found = false;
        if (c == '"') {
            end = json_scan_skip_string(text, i);
            size_t next = json_scan_skip_space(text, end);
            found = next == text.length || text.at[next] != ':'; /* else it is a name */
        } else if (c == '{' || c == '[') {
            size_t next = json_scan_skip_space(text, end);
            found = next < text.length && text.at[next] == (c == '{' ? '}' : ']');
            end = found ? next + 1 : end;
        } else if (!json_scan_is_delimiter(c)) {
            end = json_scan_skip_word(text, i);
            found = true;
        }
        if (found) {
            *leaf = (struct slice){.at = text.at + i, .length = end - i};
            *offset = end;
            return true;
        }
        i = json_scan_skip_space(text, end);
    }
    *offset = text.length;
    return false;
}

struct json_position json_scan_position(struct slice text, size_t offset)
{
    struct json_position position = {.line = 1, .column = 1};
    for (size_t i = 0; i < offset && i < text.length; i++) {
        if (text.at[i] == '\n') {
            position.line++;
            position.column = 1;
        } else if (((unsigned char)text.at[i] & 0xc0) != 0x80) {
            position.column++;
        }
    }
    return position;
}
