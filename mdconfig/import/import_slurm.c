/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What Slurm knows: the output of `scontrol show nodes`, and topology.conf.
 * Switches that are joined, directly or by others, are one network: a message
 * needs no gateway between them.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/words/unfold.h"
#include "mdconfig/description/desc.h"
#include "mdconfig/import/import.h"

/* The value behind "key=" when the word at *at is that key, else NULL. */
static const char *value_of(const char *at, const char *key)
{
    size_t len = strlen(key);

    return strncasecmp(at, key, len) == 0 && at[len] == '=' ? at + len + 1
                                                            : NULL;
}

/* The next word of a line, or NULL. */
static const char *next_word(const char *at)
{
    at += strcspn(at, " \t\r");
    at += strspn(at, " \t\r");
    return *at ? at : NULL;
}

static const char *first_word(const char *line)
{
    line += strspn(line, " \t\r");
    return *line ? line : NULL;
}

/* ---- scontrol show nodes ------------------------------------------------ */

static int read_node_name(struct chempi_import *im,
                          const struct chempi_import_text *text,
                          const char *value, uint32_t *node)
{
    size_t len = strcspn(value, " \t\r");
    char name[64];
    int rc = chempi_import_check_name(text, value, len, "the name of one node");

    if (rc)
        return rc;
    (void)snprintf(name, sizeof(name), "%.*s", (int)len, value);
    *node = chempi_import_node(im, name);
    return 0;
}

static int read_slots(struct chempi_import *im,
                      const struct chempi_import_text *text, const char *value,
                      uint32_t node)
{
    char *end;
    unsigned long slots = strtoul(value, &end, 10);

    if (end == value || !strchr(" \t\r", *end) || slots < 1 || slots > 65535)
        return chempi_import_expected(text, value,
                                      "a number of processors from 1 to 65535");
    im->nodes[node].slots = (uint32_t)slots;
    return 0;
}

/* An address; a name of a host tells nothing new. */
static void read_address(struct chempi_import *im, const char *value,
                         uint32_t node)
{
    unsigned char bytes[16];
    char address[64];

    (void)snprintf(address, sizeof(address), "%.*s",
                   (int)strcspn(value, " \t\r"), value);
    if (inet_pton(AF_INET, address, bytes) == 1 ||
        inet_pton(AF_INET6, address, bytes) == 1)
        chempi_import_attach(im,
                             chempi_import_network(im, "lan", "ethernet", NULL),
                             node, address, NULL);
}

static int read_scontrol_line(struct chempi_import *im,
                              const struct chempi_import_text *text,
                              uint32_t *node)
{
    int rc = 0;

    for (const char *at = first_word(text->line); at && !rc;
         at = next_word(at)) {
        const char *value = value_of(at, "NodeName");

        if (value) {
            rc = read_node_name(im, text, value, node);
            continue;
        }
        if (*node == CHEMPI_NAMES_NONE)
            return chempi_import_expected(
                text, at, "NodeName=, as `scontrol show nodes` begins");
        if ((value = value_of(at, "CPUTot")))
            rc = read_slots(im, text, value, *node);
        else if ((value = value_of(at, "NodeAddr")))
            read_address(im, value, *node);
    }
    return rc;
}

int chempi_import_scontrol(struct chempi_import *import, const char *file,
                           struct chempi_err *err)
{
    uint32_t node = CHEMPI_NAMES_NONE;
    struct chempi_import_text text;
    int rc = chempi_import_text_open(&text, file, err);

    if (rc)
        return rc;
    while ((rc = chempi_import_text_next(&text)) > 0) {
        rc = read_scontrol_line(import, &text, &node);
        if (rc)
            break;
    }
    chempi_import_text_close(&text);
    if (!rc && node == CHEMPI_NAMES_NONE)
        rc = chempi_err_set(err, -EINVAL,
                            "%s: expected the output of `scontrol show "
                            "nodes`, found no NodeName=",
                            text.file);
    return rc;
}

/* ---- topology.conf ------------------------------------------------------ */

struct switches {
    struct chempi_import *import;
    struct chempi_import_text text;
    struct chempi_names index; /* names of switches */
    const char **names;
    uint32_t *above; /* towards the root; itself: a root */
    size_t count;
    size_t name_room;
    size_t above_room;
    uint32_t *node; /* a node at a switch, and which */
    uint32_t *at;
    size_t pair_count;
    size_t node_room;
    size_t at_room;
    struct chempi_arena arena;
};

static uint32_t switch_of(struct switches *s, const char *name)
{
    uint32_t i = chempi_names_find(&s->index, name);

    if (i != CHEMPI_NAMES_NONE)
        return i;
    name = chempi_arena_text(&s->arena, name);
    s->names =
        chempi_mem_grow(s->names, s->count, &s->name_room, sizeof(*s->names));
    s->above =
        chempi_mem_grow(s->above, s->count, &s->above_room, sizeof(*s->above));
    i = (uint32_t)s->count++;
    s->names[i] = name;
    s->above[i] = i;
    chempi_names_add(&s->index, name, i);
    return i;
}

static uint32_t root_of(struct switches *s, uint32_t i)
{
    while (s->above[i] != i) {
        s->above[i] = s->above[s->above[i]]; /* keeps the chains short */
        i = s->above[i];
    }
    return i;
}

static void add_node(struct switches *s, uint32_t at, const char *name)
{
    s->node = chempi_mem_grow(s->node, s->pair_count, &s->node_room,
                              sizeof(*s->node));
    s->at = chempi_mem_grow(s->at, s->pair_count, &s->at_room, sizeof(*s->at));
    s->node[s->pair_count] = chempi_import_node(s->import, name);
    s->at[s->pair_count++] = at;
}

/* Join a switch below another one; the upper root stays the root. */
static void add_below(struct switches *s, uint32_t upper, const char *name)
{
    uint32_t root = root_of(s, switch_of(s, name));

    if (root != root_of(s, upper))
        s->above[root] = root_of(s, upper);
}

/* One pattern of a list of names, "n[0-3,7]". */
static int read_pattern(struct switches *s, uint32_t at, bool nodes,
                        const char *where, size_t len)
{
    struct chempi_unfold pattern;
    const char *why;
    size_t offset;

    if (chempi_unfold_parse(where, len, &pattern, &why, &offset) != 0)
        return chempi_import_expected(&s->text, where, why);
    if (pattern.count > CHEMPI_DESC_NODES_MAX ||
        s->import->node_count > CHEMPI_DESC_NODES_MAX)
        return chempi_import_expected(&s->text, where, "at most 131072 names");
    for (uint32_t i = 0; i < pattern.count; i++) {
        char name[CHEMPI_UNFOLD_NAME_MAX];

        chempi_unfold_name(&pattern, i, name);
        if (!chempi_import_is_name(name, strlen(name)))
            return chempi_import_expected(&s->text, where,
                                          "names of nodes or switches");
        if (nodes)
            add_node(s, at, name);
        else
            add_below(s, at, name);
    }
    return 0;
}

/* A list with commas, but not those inside brackets. */
static int read_list(struct switches *s, uint32_t at, bool nodes,
                     const char *list)
{
    const size_t len = strcspn(list, " \t\r");
    int rc = 0;

    for (size_t from = 0; from <= len && !rc;) {
        const size_t word = chempi_unfold_word(list + from, len - from);

        rc = read_pattern(s, at, nodes, list + from, word);
        from += word + 1;
    }
    return rc;
}

static int read_switch(struct switches *s, const char *value)
{
    size_t len = strcspn(value, " \t\r");
    char name[64];
    uint32_t at;
    int rc = chempi_import_check_name(&s->text, value, len,
                                      "the name of one switch");

    if (rc)
        return rc;
    (void)snprintf(name, sizeof(name), "%.*s", (int)len, value);
    at = switch_of(s, name);
    for (const char *word = next_word(value); word && !rc;
         word = next_word(word)) {
        const char *list;

        if ((list = value_of(word, "Nodes")))
            rc = read_list(s, at, true, list);
        else if ((list = value_of(word, "Switches")))
            rc = read_list(s, at, false, list);
        else if (!value_of(word, "LinkSpeed"))
            rc = chempi_import_expected(&s->text, word,
                                        "Nodes=, Switches= or LinkSpeed=");
    }
    return rc;
}

static int read_topology_line(struct switches *s)
{
    const char *first;
    const char *value;

    s->text.line[strcspn(s->text.line, "#")] = '\0';
    first = first_word(s->text.line);
    if (!first || value_of(first, "BlockSizes"))
        return 0;
    value = value_of(first, "SwitchName");
    if (!value)
        value = value_of(first, "BlockName");
    if (!value)
        return chempi_import_expected(&s->text, first,
                                      "SwitchName= or BlockName=");
    return read_switch(s, value);
}

static void add_networks(struct switches *s)
{
    for (size_t i = 0; i < s->pair_count; i++) {
        const char *name = s->names[root_of(s, s->at[i])];
        uint32_t network = chempi_import_network(
            s->import, name, chempi_import_guess_type(name),
            "check: the type; topology.conf does not say");

        chempi_import_attach(s->import, network, s->node[i], NULL, NULL);
    }
}

int chempi_import_topology(struct chempi_import *import, const char *file,
                           struct chempi_err *err)
{
    struct switches s = {.import = import};
    int rc = chempi_import_text_open(&s.text, file, err);

    if (rc)
        return rc;
    while ((rc = chempi_import_text_next(&s.text)) > 0) {
        rc = read_topology_line(&s);
        if (rc)
            break;
    }
    chempi_import_text_close(&s.text);
    if (!rc && s.pair_count == 0)
        rc = chempi_err_set(err, -EINVAL,
                            "%s: expected switches with nodes, found none",
                            s.text.file);
    if (!rc)
        add_networks(&s);
    free(s.names);
    free(s.above);
    free(s.node);
    free(s.at);
    chempi_names_fini(&s.index);
    chempi_arena_fini(&s.arena);
    return rc;
}
