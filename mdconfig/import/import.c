/* SPDX-License-Identifier: BSD-3-Clause */
/* What sources have in common, and the description; see import.h. */
#define _GNU_SOURCE
#include "mdconfig/import/import.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/compiler.h"
#include "common/words/fold.h"
#include "mdconfig/description/desc.h"

#define GATEWAY_HINT "Say `gateway: true` if it may forward."
#define NAME_MAX_LEN 63 /* of a node or network */

void chempi_import_fini(struct chempi_import *import)
{
    for (size_t i = 0; i < import->network_count; i++)
        free(import->networks[i].attachments);
    free(import->networks);
    free(import->nodes);
    chempi_names_fini(&import->node_index);
    chempi_names_fini(&import->network_index);
    chempi_arena_fini(&import->arena);
    *import = (struct chempi_import){.node_count = 0};
}

/* ---- the model ---------------------------------------------------------- */

uint32_t chempi_import_node(struct chempi_import *import, const char *name)
{
    uint32_t at = chempi_names_find(&import->node_index, name);

    if (at != CHEMPI_NAMES_NONE)
        return at;
    name = chempi_arena_text(&import->arena, name);
    import->nodes = chempi_mem_grow(import->nodes, import->node_count,
                                    &import->node_room, sizeof(*import->nodes));
    at = (uint32_t)import->node_count++;
    import->nodes[at] = (struct chempi_import_node){.name = name};
    chempi_names_add(&import->node_index, name, at);
    return at;
}

uint32_t chempi_import_network(struct chempi_import *import, const char *name,
                               const char *type, const char *remark)
{
    uint32_t at = chempi_names_find(&import->network_index, name);

    if (at != CHEMPI_NAMES_NONE)
        return at;
    name = chempi_arena_text(&import->arena, name);
    import->networks =
        chempi_mem_grow(import->networks, import->network_count,
                        &import->network_room, sizeof(*import->networks));
    at = (uint32_t)import->network_count++;
    import->networks[at] = (struct chempi_import_network){
        .name = name,
        .type = type,
        .remark = remark ? chempi_arena_text(&import->arena, remark) : NULL};
    chempi_names_add(&import->network_index, name, at);
    return at;
}

void chempi_import_attach(struct chempi_import *import, uint32_t network,
                          uint32_t node, const char *address,
                          const char *interface)
{
    struct chempi_import_network *n = &import->networks[network];
    struct chempi_arena *arena = &import->arena;
    char key[32];

    /* Known pairs stand among the names of networks, which hold no blank. */
    (void)snprintf(key, sizeof(key), "%u %u", network, node);
    if (chempi_names_find(&import->network_index, key) != CHEMPI_NAMES_NONE)
        return;
    chempi_names_add(&import->network_index, chempi_arena_text(arena, key), 0);
    n->attachments = chempi_mem_grow(n->attachments, n->count, &n->room,
                                     sizeof(*n->attachments));
    n->attachments[n->count++] = (struct chempi_import_attachment){
        .node = node,
        .address = address ? chempi_arena_text(arena, address) : NULL,
        .interface = interface ? chempi_arena_text(arena, interface) : NULL};
    import->nodes[node].networks++;
}

const char *chempi_import_guess_type(const char *name)
{
    static const struct {
        const char *part;
        const char *type;
    } guesses[] = {{"ib", "infiniband"},
                   {"opa", "omni-path"},
                   {"myri", "myrinet"},
                   {"sci", "sci"}};

    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(guesses); i++) {
        if (strncasecmp(name, guesses[i].part, strlen(guesses[i].part)) == 0)
            return guesses[i].type;
    }
    return "ethernet";
}

/* ---- text --------------------------------------------------------------- */

int chempi_import_text_open(struct chempi_import_text *text, const char *file,
                            struct chempi_err *err)
{
    const bool is_stdin = strcmp(file, "-") == 0;

    *text = (struct chempi_import_text){
        .file = is_stdin ? "standard input" : file, .err = err};
    text->stream = is_stdin ? stdin : fopen(file, "r");
    if (!text->stream)
        return chempi_err_set(err, -errno, "%s: %s", file, strerror(errno));
    return 0;
}

int chempi_import_text_next(struct chempi_import_text *text)
{
    ssize_t len;

    errno = 0;
    len = getline(&text->line, &text->room, text->stream);
    if (len < 0 && (ferror(text->stream) || errno == ENOMEM))
        return chempi_err_set(text->err, errno ? -errno : -EIO, "%s: %s",
                              text->file, strerror(errno ? errno : EIO));
    if (len < 0)
        return 0;
    text->number++;
    if (len > (ssize_t)CHEMPI_IMPORT_LINE_MAX)
        return chempi_err_set(text->err, -EINVAL,
                              "%s:%zu:1: expected a line of at most %u bytes",
                              text->file, text->number, CHEMPI_IMPORT_LINE_MAX);
    if (strlen(text->line) != (size_t)len)
        return chempi_err_set(text->err, -EINVAL,
                              "%s:%zu:%zu: expected text, found a zero byte",
                              text->file, text->number, strlen(text->line) + 1);
    if (len > 0 && text->line[len - 1] == '\n')
        text->line[len - 1] = '\0';
    return 1;
}

void chempi_import_text_close(struct chempi_import_text *text)
{
    free(text->line);
    if (text->stream != stdin)
        (void)fclose(text->stream); /* only read */
}

int chempi_import_expected(const struct chempi_import_text *text,
                           const char *at, const char *what)
{
    int len = (int)strcspn(at, " \t");

    return chempi_err_set(text->err, -EINVAL,
                          "%s:%zu:%zu: expected %s, found '%.*s'", text->file,
                          text->number, (size_t)(at - text->line) + 1, what,
                          len < 80 ? len : 80, at);
}

/* Words that mean something else in a description. */
static bool is_reserved(const char *name, size_t len)
{
    static const char *const words[] = {"all", "null"};

    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(words); i++) {
        if (strlen(words[i]) == len && strncasecmp(name, words[i], len) == 0)
            return true;
    }
    return false;
}

bool chempi_import_is_name(const char *name, size_t len)
{
    static const char chars[] = "abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

    return len > 0 && len <= NAME_MAX_LEN && name[0] != '.' && name[0] != '-' &&
           strspn(name, chars) >= len && !is_reserved(name, len);
}

int chempi_import_check_name(const struct chempi_import_text *text,
                             const char *at, size_t len, const char *what)
{
    return chempi_import_is_name(at, len)
               ? 0
               : chempi_import_expected(text, at, what);
}

/* ---- the description ---------------------------------------------------- */

static void write_head(FILE *out)
{
    (void)fputs(
        "# Made by mdconfig import, for you to look at: chempi-network(5) says "
        "what can\n"
        "# stand here, `mdconfig check` what is still wrong. Without figures "
        "for its\n"
        "# protocols a network gets defaults.\n",
        out);
}

/* Names with ranges, one pattern a line. */
static void write_patterns(const char *const *names, size_t count,
                           const char *before, const char *after, FILE *out)
{
    size_t len = count * (NAME_MAX_LEN + 3) + 1;
    char *all = chempi_mem_get(len, 1);
    const char *quote;
    char *rest;

    chempi_fold_names(names, count, all, len);
    for (char *at = all; at; at = rest) {
        rest = strstr(at, ", ");
        if (rest) {
            *rest = '\0';
            rest += 2;
        }
        quote = *at == '[' ? "'" : ""; /* names that are numbers */
        (void)fprintf(out, "%s%s%s%s%s\n", before, quote, at, quote, after);
    }
    free(all);
}

/* Nodes with the same properties one after the other become patterns. */
static void write_nodes(const struct chempi_import *im, FILE *out)
{
    const char **names = chempi_mem_get(im->node_count, sizeof(*names));
    size_t first = 0;

    (void)fputs("nodes:\n", out);
    for (size_t i = 0; i < im->node_count; i++) {
        const struct chempi_import_node *n = &im->nodes[i];
        const struct chempi_import_node *next = n + 1;
        char after[128];

        names[i - first] = n->name;
        if (i + 1 < im->node_count && next->slots == n->slots &&
            (next->networks > 1) == (n->networks > 1))
            continue;
        (void)snprintf(after, sizeof(after), ": { slots: %u }%s%s",
                       n->slots ? n->slots : 1,
                       n->slots ? "" : "  # check: how many processes?",
                       n->networks < 2 ? ""
                       : n->slots      ? "  # " GATEWAY_HINT
                                       : " " GATEWAY_HINT);
        write_patterns(names, i + 1 - first, "  ", after, out);
        first = i + 1;
    }
    free(names);
}

static void write_attachment(const struct chempi_import *im,
                             const struct chempi_import_attachment *a,
                             FILE *out)
{
    (void)fprintf(out, "      %s:", im->nodes[a->node].name);
    if (a->address && a->interface)
        (void)fprintf(out, " { address: '%s', interface: %s }", a->address,
                      a->interface);
    else if (a->address)
        (void)fprintf(out, " '%s'", a->address);
    else if (a->interface)
        (void)fprintf(out, " { interface: %s }", a->interface);
    (void)fputs("\n", out);
}

static void write_network(const struct chempi_import *im,
                          const struct chempi_import_network *n, FILE *out)
{
    const char **names = chempi_mem_get(n->count, sizeof(*names));
    bool plain = true;

    (void)fprintf(out, "  %s:%s%s\n    type: %s\n", n->name,
                  n->remark ? "  # " : "", n->remark ? n->remark : "", n->type);
    if (strcmp(n->type, "sci") == 0 || strcmp(n->type, "myrinet") == 0)
        (void)fputs("    device: tcp  # over addresses of its adapters\n", out);
    for (size_t i = 0; i < n->count; i++) {
        names[i] = im->nodes[n->attachments[i].node].name;
        plain =
            plain && !n->attachments[i].address && !n->attachments[i].interface;
    }
    (void)fputs("    attach:\n", out);
    if (plain)
        write_patterns(names, n->count, "      - ", "", out);
    for (size_t i = 0; !plain && i < n->count; i++)
        write_attachment(im, &n->attachments[i], out);
    free(names);
}

/* Whoever is attached to nothing joins one network. */
static void attach_rest(struct chempi_import *im)
{
    uint32_t lan = CHEMPI_NAMES_NONE;

    for (size_t i = 0; i < im->node_count; i++) {
        if (im->nodes[i].networks > 0)
            continue;
        if (lan == CHEMPI_NAMES_NONE)
            lan = chempi_import_network(im, "lan", "ethernet",
                                        "check: no source names its network");
        chempi_import_attach(im, lan, (uint32_t)i, NULL, NULL);
    }
}

void chempi_import_write(struct chempi_import *import, FILE *out)
{
    attach_rest(import);
    write_head(out);
    write_nodes(import, out);
    (void)fputs("networks:\n", out);
    for (size_t i = 0; i < import->network_count; i++) {
        if (import->networks[i].count > 0)
            write_network(import, &import->networks[i], out);
    }
}
