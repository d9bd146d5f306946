/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property: a list keeps its order, a node leaves it once however often it is
 * removed, and a whole list moves at once. Method: small lists compared with
 * their expected order, forwards and backwards.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/attr.h"
#include "base/list.h"

struct item {
    char name;
    struct list link;
};

static struct item items[4];

static void assert_order(const struct list *head, const char *forwards)
{
    char got[16] = "";
    size_t length = 0;
    for (struct list *at = head->next; at != head; at = at->next) {
        got[length++] = container_of(at, struct item, link)->name;
    }
    assert_string_equal(got, forwards);
    for (struct list *at = head->previous; at != head; at = at->previous) {
        assert_int_equal(container_of(at, struct item, link)->name, forwards[--length]);
    }
    assert_int_equal(length, 0);
    assert_int_equal(list_empty(head), forwards[0] == '\0');
}

static int set_up(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        items[i].name = (char)('a' + i);
        list_init(&items[i].link);
    }
    return 0;
}

static void nodes_come_and_go(void **state)
{
    (void)state;
    struct list head;
    list_init(&head);
    assert_order(&head, "");
    for (int i = 0; i < 4; i++) {
        list_append(&head, &items[i].link);
    }
    assert_order(&head, "abcd");
    list_remove(&items[1].link);
    list_remove(&items[1].link);
    assert_order(&head, "acd");
    list_remove(&items[0].link);
    list_remove(&items[3].link);
    assert_order(&head, "c");
    list_append(&head, &items[0].link);
    list_append(items[2].link.previous->next, &items[1].link); /* before c: to the front */
    assert_order(&head, "bca");
}

static void a_list_moves_as_a_whole(void **state)
{
    (void)state;
    struct list from, to;
    list_init(&from);
    list_init(&to);
    list_take_all(&from, &to);
    assert_order(&to, "");
    for (int i = 0; i < 3; i++) {
        list_append(&from, &items[i].link);
        list_take_all(&from, &to);
        assert_order(&from, "");
        list_take_all(&to, &from);
        assert_order(&to, "");
    }
    assert_order(&from, "abc");
    list_remove(&items[1].link);
    assert_order(&from, "ac");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(nodes_come_and_go, set_up),
        cmocka_unit_test_setup(a_list_moves_as_a_whole, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
