/* SPDX-License-Identifier: BSD-3-Clause */
/* The description once it is read; see desc.h. */
#include "mdconfig/desc.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void chempi_desc_fini(struct chempi_desc *desc)
{
    for (uint32_t i = 0; i < desc->node_count; i++)
        free(desc->nodes[i].attachments);
    free(desc->nodes);
    free(desc->networks);
    chempi_names_fini(&desc->node_names);
    chempi_names_fini(&desc->network_names);
    chempi_arena_fini(&desc->arena);
    *desc = (struct chempi_desc){.file = NULL};
}

const struct chempi_desc_attachment *
chempi_desc_attached(const struct chempi_desc *desc, uint32_t node,
                     uint32_t network)
{
    const struct chempi_desc_node *n = &desc->nodes[node];
    size_t low = 0;
    size_t high = n->attachment_count;

    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if (n->attachments[mid].network == network)
            return &n->attachments[mid];
        if (n->attachments[mid].network < network)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}

/* ---- classes ------------------------------------------------------------ */

#define KEY_LEN_PER_ATTACHMENT 12 /* number, direction, space */
#define KEY_LEN_HEAD 64

/* Text that is equal for nodes of one class. */
static void put_key(const struct chempi_desc_node *n, char *key)
{
    int at;

    at = snprintf(key, KEY_LEN_HEAD, "%d %a ", n->gateway,
                  n->gateway ? n->forward_us : 0.0);
    for (size_t i = 0; i < n->attachment_count; i++)
        at += snprintf(key + at, KEY_LEN_PER_ATTACHMENT, "%" PRIu32 "%c%c ",
                       n->attachments[i].network,
                       n->attachments[i].can_send ? 's' : '-',
                       n->attachments[i].can_receive ? 'r' : '-');
}

void chempi_desc_classify(struct chempi_desc *desc)
{
    struct chempi_names classes = {.count = 0};
    struct chempi_arena keys = {.blocks = NULL};
    size_t longest = 0;
    char *key;

    for (uint32_t i = 0; i < desc->node_count; i++) {
        if (desc->nodes[i].attachment_count > longest)
            longest = desc->nodes[i].attachment_count;
    }
    key = chempi_mem_get(KEY_LEN_HEAD + longest * KEY_LEN_PER_ATTACHMENT, 1);
    desc->class_count = 0;
    for (uint32_t i = 0; i < desc->node_count; i++) {
        struct chempi_desc_node *n = &desc->nodes[i];

        put_key(n, key);
        n->node_class = chempi_names_find(&classes, key);
        if (n->node_class == CHEMPI_NAMES_NONE) {
            n->node_class = desc->class_count++;
            chempi_names_add(&classes, chempi_arena_text(&keys, key),
                             n->node_class);
        }
    }
    free(key);
    chempi_names_fini(&classes);
    chempi_arena_fini(&keys);
}

/* ---- names with ranges -------------------------------------------------- */

/* A name in three: text, last number, text behind it. */
struct split {
    const char *name;
    size_t head; /* bytes before the number */
    size_t digits;
    uint32_t number;
};

static struct split split_name(const char *name)
{
    struct split s = {.name = name};
    size_t end = strlen(name);
    size_t start;

    while (end > 0 && !(name[end - 1] >= '0' && name[end - 1] <= '9'))
        end--;
    start = end;
    while (start > 0 && end - start < 9 && name[start - 1] >= '0' &&
           name[start - 1] <= '9')
        start--;
    s.head = start;
    s.digits = end - start;
    for (size_t i = start; i < end; i++)
        s.number = s.number * 10 + (uint32_t)(name[i] - '0');
    return s;
}

/* Do both fit in one pair of brackets? */
static bool is_alike(const struct split *a, const struct split *b)
{
    return a->digits > 0 && b->digits > 0 && a->head == b->head &&
           strncmp(a->name, b->name, a->head) == 0 &&
           strcmp(a->name + a->head + a->digits,
                  b->name + b->head + b->digits) == 0 &&
           (a->digits == b->digits ||
            (a->name[a->head] != '0' && b->name[b->head] != '0'));
}

struct output {
    char *buf;
    size_t len;
    size_t at;
};

static void put(struct output *o, const char *text, size_t n)
{
    if (n >= o->len - o->at) { /* does not fit: end with dots */
        if (o->len > 4) {
            size_t dots = o->at < o->len - 4 ? o->at : o->len - 4;

            memcpy(o->buf + dots, "...", 4);
        }
        o->at = o->len - 1;
        return;
    }
    memcpy(o->buf + o->at, text, n);
    o->at += n;
    o->buf[o->at] = '\0';
}

/* Names first .. end - 1 are alike. */
static void put_group(struct output *o, const struct split *names, size_t first,
                      size_t end)
{
    const struct split *s = &names[first];
    const char *tail = s->name + s->head + s->digits;

    if (end - first == 1) {
        put(o, s->name, strlen(s->name));
        return;
    }
    put(o, s->name, s->head);
    put(o, "[", 1);
    for (size_t i = first; i < end;) {
        size_t last = i;

        while (last + 1 < end &&
               names[last + 1].number == names[last].number + 1)
            last++;
        put(o, names[i].name + names[i].head, names[i].digits);
        if (last > i) {
            put(o, last == i + 1 ? "," : "-", 1);
            put(o, names[last].name + names[last].head, names[last].digits);
        }
        i = last + 1;
        if (i < end)
            put(o, ",", 1);
    }
    put(o, "]", 1);
    put(o, tail, strlen(tail));
}

void chempi_desc_fold(const char *const *names, size_t count, char *buf,
                      size_t len)
{
    struct split *list = chempi_mem_get(count, sizeof(*list));
    struct output o = {.buf = buf, .len = len};
    size_t end;

    buf[0] = '\0';
    for (size_t i = 0; i < count; i++)
        list[i] = split_name(names[i]);
    for (size_t i = 0; i < count; i = end) {
        end = i + 1;
        while (end < count && is_alike(&list[i], &list[end]))
            end++;
        if (i > 0)
            put(&o, ", ", 2);
        put_group(&o, list, i, end);
    }
    free(list);
}
