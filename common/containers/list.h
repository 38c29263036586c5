/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Intrusive circular doubly linked list. A head and every unlinked node point
 * at themselves, so removal is idempotent. Not thread-safe; never allocates.
 */
#ifndef CHEMPI_COMMON_CONTAINERS_LIST_H
#define CHEMPI_COMMON_CONTAINERS_LIST_H

#include <stdbool.h>

#include "common/base/compiler.h"

struct chempi_list {
    struct chempi_list *next;
    struct chempi_list *prev;
};

static inline void chempi_list_init(struct chempi_list *node)
{
    node->next = node;
    node->prev = node;
}

static inline bool chempi_list_is_empty(const struct chempi_list *head)
{
    return head->next == head;
}

static inline void chempi_list_insert_between(struct chempi_list *node,
                                              struct chempi_list *prev,
                                              struct chempi_list *next)
{
    node->prev = prev;
    node->next = next;
    prev->next = node;
    next->prev = node;
}

static inline void chempi_list_append(struct chempi_list *head,
                                      struct chempi_list *node)
{
    chempi_list_insert_between(node, head->prev, head);
}

static inline void chempi_list_prepend(struct chempi_list *head,
                                       struct chempi_list *node)
{
    chempi_list_insert_between(node, head, head->next);
}

static inline void chempi_list_remove(struct chempi_list *node)
{
    node->prev->next = node->next;
    node->next->prev = node->prev;
    chempi_list_init(node);
}

/* First node of a non-empty list. */
static inline struct chempi_list *chempi_list_first(struct chempi_list *head)
{
    return head->next;
}

/* Move all nodes of `from` to the end of `to`; `from` is empty afterwards. */
static inline void chempi_list_splice(struct chempi_list *to,
                                      struct chempi_list *from)
{
    if (chempi_list_is_empty(from))
        return;
    from->next->prev = to->prev;
    to->prev->next = from->next;
    from->prev->next = to;
    to->prev = from->prev;
    chempi_list_init(from);
}

#define CHEMPI_LIST_FOR(pos, head)                                             \
    for (struct chempi_list *pos = (head)->next; pos != (head); pos = pos->next)

/* The body may remove and free `pos`, nothing else. */
#define CHEMPI_LIST_FOR_SAFE(pos, head)                                        \
    for (struct chempi_list *pos = (head)->next, *pos##_next = pos->next;      \
         pos != (head); pos = pos##_next, pos##_next = pos->next)

#endif
