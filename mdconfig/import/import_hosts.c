/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A hosts file, hosts(5). "10.1.0.7 node7-ib" is node7 on network ib when
 * there is a host node7; any other host is a node on network lan.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mdconfig/import/import.h"

struct entry {
    const char *address;
    const char *name; /* without a domain */
};

struct entries {
    struct entry *list;
    size_t count;
    size_t room;
    struct chempi_names names;
    struct chempi_arena arena;
};

/* Addresses that lead to this host itself or to groups of hosts. */
static bool is_special(const char *address)
{
    return strncmp(address, "127.", 4) == 0 ||
           strncmp(address, "255.", 4) == 0 || strcmp(address, "::1") == 0 ||
           strncasecmp(address, "ff", 2) == 0 ||
           strncasecmp(address, "fe00:", 5) == 0;
}

static bool is_address(const char *address)
{
    unsigned char bytes[16];

    return inet_pton(AF_INET, address, bytes) == 1 ||
           inet_pton(AF_INET6, address, bytes) == 1;
}

static int read_line(struct entries *e, struct chempi_import_text *text)
{
    char *at = text->line + strspn(text->line, " \t\r");
    char address[64];
    size_t len;
    size_t label;
    char *name;
    int rc;

    text->line[strcspn(text->line, "#\r")] = '\0';
    len = strcspn(at, " \t");
    if (*at == '\0')
        return 0;
    if (len >= sizeof(address))
        return chempi_import_expected(text, at, "an IPv4 or IPv6 address");
    (void)snprintf(address, sizeof(address), "%.*s", (int)len, at);
    if (strchr(address, '%'))
        return 0; /* link-local with a scope: of this host only */
    if (!is_address(address))
        return chempi_import_expected(text, at, "an IPv4 or IPv6 address");
    at += len;
    at += strspn(at, " \t");
    if (*at == '\0')
        return chempi_import_expected(text, at, "a name behind the address");
    if (is_special(address))
        return 0;
    label = strcspn(at, ". \t");
    rc = chempi_import_check_name(
        text, at, label, "a name of letters, digits, hyphens and underscores");
    if (rc)
        return rc;
    at[label] = '\0';
    name = chempi_arena_text(&e->arena, at);
    e->list = chempi_mem_grow(e->list, e->count, &e->room, sizeof(*e->list));
    e->list[e->count++] =
        (struct entry){chempi_arena_text(&e->arena, address), name};
    if (chempi_names_find(&e->names, name) == CHEMPI_NAMES_NONE)
        chempi_names_add(&e->names, name, 0);
    return 0;
}

/* The network that a name speaks of: NULL for lan. *node is its node. */
static const char *split_name(struct entries *e, const char *name,
                              const char **node)
{
    char *base = chempi_arena_text(&e->arena, name);

    *node = name;
    for (char *dash = strrchr(base, '-'); dash && dash > base;
         dash = strrchr(base, '-')) {
        *dash = '\0';
        if (chempi_import_is_name(name + (dash - base) + 1,
                                  strlen(name + (dash - base) + 1)) &&
            chempi_names_find(&e->names, base) != CHEMPI_NAMES_NONE) {
            *node = base;
            return name + (dash - base) + 1;
        }
    }
    return NULL;
}

static void add_entry(struct chempi_import *im, struct entries *e,
                      const struct entry *entry)
{
    const char *node;
    const char *name = split_name(e, entry->name, &node);
    uint32_t network =
        name ? chempi_import_network(im, name, chempi_import_guess_type(name),
                                     "check: the type is a guess by the name")
             : chempi_import_network(im, "lan", "ethernet", NULL);

    chempi_import_attach(im, network, chempi_import_node(im, node),
                         entry->address, NULL);
}

int chempi_import_hosts(struct chempi_import *import, const char *file,
                        struct chempi_err *err)
{
    struct entries e = {.count = 0};
    struct chempi_import_text text;
    int rc = chempi_import_text_open(&text, file, err);

    if (rc)
        return rc;
    while ((rc = chempi_import_text_next(&text)) > 0) {
        rc = read_line(&e, &text);
        if (rc)
            break;
    }
    chempi_import_text_close(&text);
    if (!rc && e.count == 0)
        rc = chempi_err_set(err, -EINVAL,
                            "%s: expected hosts other than this one, found "
                            "none",
                            text.file);
    for (size_t i = 0; i < e.count && !rc; i++)
        add_entry(import, &e, &e.list[i]);
    free(e.list);
    chempi_names_fini(&e.names);
    chempi_arena_fini(&e.arena);
    return rc;
}
