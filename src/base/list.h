/* SPDX-License-Identifier: Apache-2.0 */
/*
 * list.h - an intrusive, circular, doubly linked list.
 *
 * The head is a node of its own; an empty list points at itself. A node that is
 * on no list points at itself as well, so list_remove may be called twice.
 */
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include <stdbool.h>

struct list {
    struct list *next;
    struct list *previous;
};

static inline void list_init(struct list *node)
{
    node->next = node;
    node->previous = node;
}

static inline bool list_empty(const struct list *head)
{
    return head->next == head;
}

static inline void list_append(struct list *head, struct list *node)
{
    node->previous = head->previous;
    node->next = head;
    head->previous->next = node;
    head->previous = node;
}

static inline void list_remove(struct list *node)
{
    node->previous->next = node->next;
    node->next->previous = node->previous;
    list_init(node);
}

/* list_take_all - move every node of from to the (empty, initialised) list to. */
static inline void list_take_all(struct list *from, struct list *to)
{
    if (list_empty(from)) {
        return;
    }
    to->next = from->next;
    to->previous = from->previous;
    to->next->previous = to;
    to->previous->next = to;
    list_init(from);
}

#endif
