/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property: a document is either refused with the place of the mistake, or every
 * leaf is visited once, in order, with its dotted key, text and position; no
 * document crashes it. Method: tables of documents; each also cut at every byte
 * and with every byte replaced, in blocks of exactly their size for ASan.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/json.h"

/* Leaves as text: key=value@line:column, a letter for the kind, one a line. */
struct record {
    char text[2048];
    size_t length;
    int stop_at; /* leaf at which the visit returns 42; 0: never */
    int count;
};

static int record_leaf(void *context, const struct json_leaf *leaf)
{
    struct record *record = context;
    static const char kinds[] = "snbze";
    int length =
        snprintf(record->text + record->length, sizeof(record->text) - record->length,
                 "%c %s=%.*s@%zu:%zu\n", kinds[leaf->kind], leaf->key, (int)leaf->value.length,
                 leaf->value.at, leaf->position.line, leaf->position.column);
    if (length > 0 && record->length + (size_t)length < sizeof(record->text)) {
        record->length += (size_t)length;
    }
    record->count++;
    return record->count == record->stop_at ? 42 : 0;
}

static int count_leaf(void *context, const struct json_leaf *leaf)
{
    (void)leaf;
    ++*(size_t *)context;
    return 0;
}

/* json_flatten on a block of exactly this size. */
static int flatten_exact(struct slice document, json_visit *visit, void *context,
                         struct json_error *error)
{
    char *at = malloc(document.length > 0 ? document.length : 1);
    assert_non_null(at);
    memcpy(at, document.at, document.length);
    int result =
        json_flatten((struct slice){.at = at, .length = document.length}, visit, context, error);
    free(at);
    return result;
}

static const char *const documents[][2] = {
    {"{}", ""},
    {" {\r\n}\n", ""},
    {"{\"server\": {\"port\": 8080}}", "n server.port=8080@1:21\n"},
    {"{\"server.port\":\"8080\"}", "s server.port=8080@1:16\n"},
    {"{\n  \"a\": true,\r\n  \"b\": [1, {\"c\": \"x\"}, [2]]\n}",
     "b a=true@2:8\nn b[0]=1@3:9\ns b[1].c=x@3:18\nn b[2][0]=2@3:25\n"},
    {"{\"a\":1,\"a\":2,\"A\":3}", "n a=1@1:6\nn a=2@1:12\nn A=3@1:18\n"},
    {"{\"a\":null,\"b\":{},\"c\":[],\"d\":[ ]}",
     "z a=null@1:6\ne b={}@1:15\ne c=[]@1:22\ne d=[ ]@1:29\n"},
    {"{\"a\":99999999999999999999,\"b\":-0.5e+10,\"c\":1e999}",
     "n a=99999999999999999999@1:6\nn b=-0.5e+10@1:31\nn c=1e999@1:44\n"},
    {"{\"\":{\"\":1},\"x\":{\"\":2}}", "n =1@1:9\nn x.=2@1:20\n"},
    /* What looks like structure within strings is none. */
    {"{\"a{\\\"}\":\"]:,{\\\\\",\"b\":\"\\\"\"}", "s a{\"}=]:,{\\@1:10\ns b=\"@1:23\n"},
    /* Columns count characters; escapes become characters. */
    {"{\"\xc3\xbc\":\"\xe2\x82\xac\",\"b\":\"\\u20ac\\n\\ud83c\\udf00\"}",
     "s \xc3\xbc=\xe2\x82\xac@1:6\ns b=\xe2\x82\xac\n\xf0\x9f\x8c\x80@1:14\n"},
    {"\xef\xbb\xbf{\"a\":1}", "n a=1@1:6\n"},
    {"{\"a\":\"\\\\u0000\"}", "s a=\\u0000@1:6\n"},
};

static void leaves_come_in_order_with_their_places(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(documents) / sizeof(documents[0]); i++) {
        struct record record = {.length = 0};
        struct json_error error = {.text = NULL};
        int result = flatten_exact(slice_of(documents[i][0]), record_leaf, &record, &error);
        if (result != 0) {
            fail_msg("%s: %d %s", documents[i][0], result, error.text);
        }
        assert_string_equal(record.text, documents[i][1]);
    }
}

static void mistakes_are_refused_where_they_stand(void **state)
{
    (void)state;
    static const struct {
        struct slice document;
        size_t line, column;
        const char *part; /* of the message */
    } cases[] = {
#define CASE(text, line, column, part) {{text, sizeof(text) - 1}, line, column, part}
        CASE("", 1, 1, "empty"),
        CASE(" \r\n ", 1, 1, "empty"),
        CASE("\xef\xbb\xbf", 1, 1, "empty"),
        CASE("[1]", 1, 1, "not an object"),
        CASE("\"a\"", 1, 1, "not an object"),
        CASE("null", 1, 1, "not an object"),
        CASE("{\"a\":1", 1, 7, "misplaced"),
        CASE("{\"a\":1}}", 1, 8, "misplaced"),
        CASE("{\"a\":1} x", 1, 9, "neither"),
        CASE("{\"a\":1}{}", 1, 8, "misplaced"),
        CASE("{\n \"a\":1,\n}", 3, 1, "misplaced"),
        CASE("{,\"a\":1}", 1, 2, "misplaced"),
        CASE("{\"a\":[1,]}", 1, 9, "misplaced"),
        CASE("{\"a\":1,,}", 1, 8, "misplaced"),
        CASE("{\"a\":[1,{}", 1, 11, "misplaced"),
        CASE("{\"a\":[1,{},}]}", 1, 12, "misplaced"),
        CASE("{]", 1, 2, "misplaced"),
        CASE("{", 1, 2, "misplaced"),
        CASE("{\"a\" 1}", 1, 6, "misplaced"),
        CASE("{a:1}", 1, 2, "neither"),
        CASE("{'a':1}", 1, 2, "neither"),
        CASE("{\"a\":True}", 1, 6, "neither"),
        CASE("{\"a\":007}", 1, 6, "neither"),
        CASE("{\"a\":1.}", 1, 6, "neither"),
        CASE("{\"a\":.5}", 1, 6, "neither"),
        CASE("{\"a\":+1}", 1, 6, "neither"),
        CASE("{\"a\":1e}", 1, 6, "neither"),
        CASE("{\"a\":0x10}", 1, 6, "neither"),
        CASE("{\"a\":NaN}", 1, 6, "neither"),
        CASE("{\"a\":-}", 1, 6, "neither"),
        CASE("{\"a\":1/* x */}", 1, 6, "neither"),
        CASE("{\"a\":\"b}", 1, 6, "not closed"),
        CASE("{\"a\":\"b\\\"}", 1, 6, "not closed"),
        CASE("{\"a\":\"", 1, 6, "not closed"),
        CASE("{\"a\":\"b\\", 1, 6, "not closed"),
        CASE("{\"a\":\"b\nc\"}", 1, 8, "control"),
        CASE("{\"a\":\"b\0c\"}", 1, 8, "control"),
        CASE("{\"a\":1\0}", 1, 6, "neither"),
        CASE("{\"a\":\v1}", 1, 6, "neither"),
        CASE("{\"a\":\"\\u0000\"}", 1, 7, "\\u0000"),
        CASE("{\"\\u0000\":1}", 1, 3, "\\u0000"),
        CASE("{\"a\":\"\\x\"}", 1, 7, "not followed by an escape"),
        CASE("{\"a\":\"b\\u00g0\"}", 1, 8, "not followed by an escape"),
        CASE("{\"a\":\"\\uZZZZblue\"}", 1, 7, "not followed by an escape"),
        CASE("{\"a\":\"\\u12\"}", 1, 7, "not followed by an escape"),
        CASE("{\"te\\u 001am\":1}", 1, 5, "not followed by an escape"),
        CASE("{\"a\":1234567890123456789012345678901234567890123456789012345678901234}", 1, 6,
             "longer than 63"),
        CASE("{\"a\":\"\\ud800\"}", 1, 7, "misplaced"),
        CASE("{\"a\":\"\xff\"}", 1, 7, "UTF-8"),
        CASE("\xff\xfe{\0}\0", 1, 1, "neither"), /* UTF-16 */
#undef CASE
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct record record = {.length = 0};
        struct json_error error = {.text = "none"};
        int result = flatten_exact(cases[i].document, record_leaf, &record, &error);
        if (result != -EINVAL || strstr(error.text, cases[i].part) == NULL) {
            fail_msg("%s: %d %s, not %s", cases[i].document.at, result, error.text, cases[i].part);
        }
        if (error.position.line != cases[i].line || error.position.column != cases[i].column) {
            fail_msg("%s: at %zu:%zu, not %zu:%zu", cases[i].document.at, error.position.line,
                     error.position.column, cases[i].line, cases[i].column);
        }
        assert_int_equal(record.count, 0);
    }
}

static void depth_length_and_key_are_bounded(void **state)
{
    (void)state;
    char text[2048];
    for (size_t depth = JSON_DEPTH_MAX - 2; depth < JSON_DEPTH_MAX + 3; depth++) {
        char *next = text;
        next += sprintf(next, "{\"a\":");
        memset(next, '[', depth - 1);
        next += depth - 1;
        *next++ = '1';
        memset(next, ']', depth - 1);
        next += depth - 1;
        strcpy(next, "}");
        size_t count = 0;
        struct json_error error;
        int result = flatten_exact(slice_of(text), count_leaf, &count, &error);
        assert_int_equal(result, depth <= JSON_DEPTH_MAX ? 0 : -EINVAL);
        assert_int_equal(count, depth <= JSON_DEPTH_MAX ? 1 : 0);
    }
    for (size_t length = JSON_KEY_MAX - 3; length < JSON_KEY_MAX + 3; length++) {
        snprintf(text, sizeof(text), "{\"%0*d\":1}", (int)length, 7);
        size_t count = 0;
        struct json_error error;
        int result = flatten_exact(slice_of(text), count_leaf, &count, &error);
        assert_int_equal(result, length < JSON_KEY_MAX ? 0 : -EINVAL);
    }
    /* A deep document that is all brackets must not cost a stack. */
    char *deep = malloc(JSON_DOCUMENT_MAX + 1);
    memset(deep, '[', JSON_DOCUMENT_MAX + 1);
    size_t count = 0;
    struct json_error error;
    struct slice document = {.at = deep, .length = JSON_DOCUMENT_MAX};
    assert_int_equal(json_flatten(document, count_leaf, &count, &error), -EINVAL);
    assert_string_equal(error.text, "nested too deep");
    document.length++;
    assert_int_equal(json_flatten(document, count_leaf, &count, &error), -EINVAL);
    assert_string_equal(error.text, "the document is larger than 1 MB");
    free(deep);
}

static void a_large_document_takes_linear_time(void **state)
{
    (void)state;
    char *text = malloc(JSON_DOCUMENT_MAX);
    size_t length = (size_t)sprintf(text, "{\"a\":[1");
    size_t wanted = 1;
    while (length + 4 < JSON_DOCUMENT_MAX) {
        memcpy(text + length, ",\n1", 3);
        length += 3;
        wanted++;
    }
    memcpy(text + length, "]}", 2);
    size_t count = 0;
    struct json_error error;
    struct slice document = {.at = text, .length = length + 2};
    assert_int_equal(json_flatten(document, count_leaf, &count, &error), 0);
    assert_int_equal(count, wanted);
    free(text);
}

static void a_visit_can_end_the_walk(void **state)
{
    (void)state;
    struct record record = {.stop_at = 2};
    struct json_error error;
    assert_int_equal(flatten_exact(SLICE("{\"a\":[1,2,3],\"b\":4}"), record_leaf, &record, &error),
                     42);
    assert_int_equal(record.count, 2);
}

static void broken_documents_do_no_harm(void **state)
{
    (void)state;
    static const char replacements[] = "{}[]\",:\\x0-\n\x80\xff";
    size_t tried = 0;
    for (size_t i = 0; i < sizeof(documents) / sizeof(documents[0]); i++) {
        size_t length = strlen(documents[i][0]);
        for (size_t cut = 0; cut < length; cut++) {
            struct record record = {.length = 0};
            struct json_error error;
            struct slice document = {.at = documents[i][0], .length = cut};
            int result = flatten_exact(document, record_leaf, &record, &error);
            assert_true(result == 0 || result == -EINVAL);
            tried++;
            for (size_t r = 0; r < sizeof(replacements); r++) {
                char text[256];
                memcpy(text, documents[i][0], length);
                text[cut] = replacements[r];
                record = (struct record){.length = 0};
                document = (struct slice){.at = text, .length = length};
                result = flatten_exact(document, record_leaf, &record, &error);
                assert_true(result == 0 || result == -EINVAL);
                tried++;
            }
        }
    }
    print_message("%zu documents\n", tried);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(leaves_come_in_order_with_their_places),
        cmocka_unit_test(mistakes_are_refused_where_they_stand),
        cmocka_unit_test(depth_length_and_key_are_bounded),
        cmocka_unit_test(a_large_document_takes_linear_time),
        cmocka_unit_test(a_visit_can_end_the_walk),
        cmocka_unit_test(broken_documents_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
