/* SPDX-License-Identifier: BSD-3-Clause */
/* YAML documents over libyaml; see yaml.h. */
#define _GNU_SOURCE
#include "mdconfig/description/yaml.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#define FOUND_MAX 40   /* bytes of a scalar shown in a message */
#define MARK_STEP 512u /* characters */

struct chempi_yaml {
    yaml_document_t *doc; /* &loaded, since libyaml wants it writable */
    yaml_document_t loaded;
    char *name;
    size_t *marks; /* byte of every MARK_STEP-th character */
    size_t mark_count;
    char *text; /* a copy of what was parsed */
    size_t len;
    bool has_doc;
};

static yaml_node_t *node_of(const struct chempi_yaml *yaml,
                            chempi_yaml_value value)
{
    return yaml->has_doc ? yaml_document_get_node(yaml->doc, value) : NULL;
}

/* ---- errors ------------------------------------------------------------- */

const struct chempi_yaml_pair *
chempi_yaml_find(const struct chempi_yaml_pair *pairs, size_t count,
                 const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(pairs[i].name, name) == 0)
            return &pairs[i];
    }
    return NULL;
}

int chempi_yaml_fail(const struct chempi_yaml *yaml, chempi_yaml_value value,
                     struct chempi_err *err, const char *fmt, ...)
{
    const yaml_node_t *node = node_of(yaml, value);
    size_t line = node ? node->start_mark.line + 1 : 1;
    size_t column = node ? node->start_mark.column + 1 : 1;
    char text[CHEMPI_ERR_TEXT_MAX];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args); /* cut at the limit */
    va_end(args);
    return chempi_err_set(err, -EINVAL, "%s:%zu:%zu: %s", yaml->name, line,
                          column, text);
}

/* Printable form of a scalar's start. */
static void put_found(const char *text, char out[FOUND_MAX + 4])
{
    size_t n = 0;

    for (; *text && n < FOUND_MAX; text++)
        out[n++] = (unsigned char)*text < 0x20 || *text == 0x7f ? '?' : *text;
    /* Do not end in the middle of a UTF-8 sequence. */
    while (*text && n > 0 && ((unsigned char)out[n - 1] & 0x80) != 0)
        n--;
    memcpy(out + n, *text ? "..." : "", *text ? 4 : 1);
}

int chempi_yaml_expected(const struct chempi_yaml *yaml,
                         chempi_yaml_value value, struct chempi_err *err,
                         const char *what)
{
    char found[FOUND_MAX + 4];

    switch (chempi_yaml_kind_of(yaml, value)) {
    case CHEMPI_YAML_LIST:
        return chempi_yaml_fail(yaml, value, err, "expected %s, found a list",
                                what);
    case CHEMPI_YAML_MAPPING:
        return chempi_yaml_fail(yaml, value, err,
                                "expected %s, found a mapping", what);
    case CHEMPI_YAML_SCALAR:
        put_found(chempi_yaml_text(yaml, value), found);
        return chempi_yaml_fail(yaml, value, err, "expected %s, found '%s'",
                                what, found);
    default:
        return chempi_yaml_fail(yaml, value, err, "expected %s, found nothing",
                                what);
    }
}

/* ---- reading ------------------------------------------------------------ */

/* Where a line begins; they count from 0. */
static const char *find_line(const struct chempi_yaml *yaml, size_t line)
{
    const char *end = yaml->text + yaml->len;
    const char *at = yaml->text;

    for (; line > 0 && at < end; at++)
        line -= *at == '\n';
    return at;
}

/* The column of a tab before the first word of a line, counted from 1; 0:
 * there is none. */
static size_t find_tab(const struct chempi_yaml *yaml, size_t line)
{
    const char *end = yaml->text + yaml->len;
    const char *start = find_line(yaml, line);

    for (const char *at = start; at < end && (*at == ' ' || *at == '\t');
         at++) {
        if (*at == '\t')
            return (size_t)(at - start) + 1;
    }
    return 0;
}

/* What libyaml says where it finds a tab that indents; others are legal, as
 * between braces. */
static bool is_about_tabs(const char *problem)
{
    return strstr(problem, "cannot start any token") ||
           strstr(problem, "tab character");
}

/* Does a range in brackets follow a name there, as in node[0-3]? Between
 * brackets or braces YAML takes it for another list. */
static bool is_range(const struct chempi_yaml *yaml, const yaml_mark_t *mark)
{
    const char *end = yaml->text + yaml->len;
    const char *at = find_line(yaml, mark->line);
    char before = ' ';

    for (size_t i = 0; i < mark->column && at < end; i++) {
        before = *at++;
        while (at < end && (*at & 0xc0) == 0x80) /* columns are characters */
            at++;
    }
    return at < end && *at == '[' && !strchr(" \t[]{},\"'", before);
}

static int parser_failed(const yaml_parser_t *parser,
                         const struct chempi_yaml *yaml, struct chempi_err *err)
{
    const size_t line = parser->problem_mark.line;
    const char *name = yaml->name;
    const char *problem = parser->problem ? parser->problem : "not YAML";
    const char *context = parser->context ? parser->context : "";
    const size_t column = parser->problem_mark.column + 1;

    if (parser->error == YAML_MEMORY_ERROR)
        return chempi_err_set(err, -ENOMEM, "%s: no memory to read it", name);
    if (parser->error == YAML_READER_ERROR)
        return chempi_err_set(err, -EINVAL,
                              "%s: byte %zu: expected UTF-8 text, found bytes "
                              "that are none (%s)",
                              name, parser->problem_offset, problem);
    if (find_tab(yaml, line) == column && is_about_tabs(problem))
        return chempi_err_set(err, -EINVAL,
                              "%s:%zu:%zu: expected spaces before the first "
                              "word, found a tab, which YAML does not let "
                              "indent",
                              name, line + 1, column);
    if (strstr(context, "flow") && is_range(yaml, &parser->problem_mark))
        return chempi_err_set(err, -EINVAL,
                              "%s:%zu:%zu: expected quotes around a name with "
                              "a range between brackets or braces, such as "
                              "\"node[00-31]\", found none",
                              name, line + 1, column);
    return chempi_err_set(err, -EINVAL, "%s:%zu:%zu: not valid YAML: %s%s%s",
                          name, line + 1, column, context, *context ? ", " : "",
                          problem);
}

/* A text with an embedded zero would look shorter than it is. */
static int check_scalars(const struct chempi_yaml *yaml, struct chempi_err *err)
{
    for (int i = 1;; i++) {
        const yaml_node_t *node = node_of(yaml, i);

        if (!node)
            return 0;
        if (node->type == YAML_SCALAR_NODE &&
            memchr(node->data.scalar.value, 0, node->data.scalar.length))
            return chempi_yaml_fail(yaml, i, err,
                                    "expected text, found a zero byte");
    }
}

static int load(yaml_parser_t *parser, struct chempi_yaml *yaml,
                struct chempi_err *err)
{
    yaml_document_t second;
    bool more;

    if (!yaml_parser_load(parser, yaml->doc))
        return parser_failed(parser, yaml, err);
    yaml->has_doc = true;
    if (!yaml_document_get_root_node(yaml->doc))
        return 0;
    if (!yaml_parser_load(parser, &second))
        return parser_failed(parser, yaml, err);
    more = yaml_document_get_root_node(&second) != NULL;
    if (more) {
        size_t line = second.start_mark.line + 1;

        yaml_document_delete(&second);
        return chempi_err_set(err, -EINVAL,
                              "%s:%zu:1: expected the end of the file, found "
                              "a second document",
                              yaml->name, line);
    }
    yaml_document_delete(&second);
    return check_scalars(yaml, err);
}

/* libyaml counts characters; a byte order mark is none. */
static size_t next_character(const struct chempi_yaml *yaml, size_t at)
{
    at++;
    while (at < yaml->len && ((unsigned char)yaml->text[at] & 0xc0) == 0x80)
        at++;
    return at;
}

static void find_marks(struct chempi_yaml *yaml)
{
    size_t at =
        yaml->len >= 3 && memcmp(yaml->text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    size_t room = 0;

    for (size_t i = 0; at <= yaml->len; i++) {
        if (i % MARK_STEP == 0) {
            yaml->marks = chempi_mem_grow(yaml->marks, yaml->mark_count, &room,
                                          sizeof(*yaml->marks));
            yaml->marks[yaml->mark_count++] = at;
        }
        at = next_character(yaml, at);
    }
}

int chempi_yaml_parse(const char *name, const void *text, size_t len,
                      struct chempi_yaml **out, struct chempi_err *err)
{
    struct chempi_yaml *yaml = chempi_mem_get(1, sizeof(*yaml));
    yaml_parser_t parser;
    int rc;

    yaml->doc = &yaml->loaded;
    yaml->name = chempi_mem_get(strlen(name) + 1, 1);
    memcpy(yaml->name, name, strlen(name) + 1);
    yaml->text = chempi_mem_get(len + 1, 1);
    memcpy(yaml->text, text, len);
    yaml->len = len;
    if (!yaml_parser_initialize(&parser)) {
        chempi_yaml_close(yaml);
        return chempi_err_set(err, -ENOMEM, "%s: no memory to read it", name);
    }
    yaml_parser_set_input_string(&parser, text, len);
    rc = load(&parser, yaml, err);
    yaml_parser_delete(&parser);
    if (rc) {
        chempi_yaml_close(yaml);
        return rc;
    }
    find_marks(yaml);
    *out = yaml;
    return 0;
}

static int read_stream(FILE *file, const char *path, char **text, size_t *len,
                       struct chempi_err *err)
{
    size_t room = 0;
    char *data = NULL;
    size_t n = 0;

    do {
        data = chempi_mem_grow(data, n, &room, 1);
        n += fread(data + n, 1, room - n, file);
    } while (!feof(file) && !ferror(file) && n <= CHEMPI_YAML_FILE_MAX);
    *text = data;
    *len = n;
    if (ferror(file))
        return chempi_err_set(err, -EIO, "%s: cannot be read: %s", path,
                              chempi_err_name(errno));
    if (n > CHEMPI_YAML_FILE_MAX)
        return chempi_err_set(err, -EFBIG,
                              "%s: a description has at most %u bytes", path,
                              CHEMPI_YAML_FILE_MAX);
    return 0;
}

int chempi_yaml_read(const char *path, char **text, size_t *len,
                     struct chempi_err *err)
{
    bool from_stdin = strcmp(path, "-") == 0;
    FILE *file = from_stdin ? stdin : fopen(path, "re");
    int rc;

    if (!file) {
        rc = -errno;
        return chempi_err_set(err, rc, "%s: %s", path, chempi_err_name(rc));
    }
    rc = read_stream(file, path, text, len, err);
    if (!from_stdin)
        (void)fclose(file); /* only read */
    if (rc)
        free(*text);
    return rc;
}

int chempi_yaml_open(const char *path, struct chempi_yaml **out,
                     struct chempi_err *err)
{
    char *text;
    size_t len;
    int rc = chempi_yaml_read(path, &text, &len, err);

    if (rc)
        return rc;
    rc = chempi_yaml_parse(path, text, len, out, err);
    free(text);
    return rc;
}

void chempi_yaml_close(struct chempi_yaml *yaml)
{
    if (!yaml)
        return;
    if (yaml->has_doc)
        yaml_document_delete(yaml->doc);
    free(yaml->name);
    free(yaml->text);
    free(yaml->marks);
    free(yaml);
}

/* ---- looking ------------------------------------------------------------ */

chempi_yaml_value chempi_yaml_root(const struct chempi_yaml *yaml)
{
    return node_of(yaml, 1) ? 1 : 0;
}

static bool is_null(const yaml_node_t *node)
{
    const char *text = (const char *)node->data.scalar.value;

    return node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
           (!*text || strcmp(text, "~") == 0 || strcmp(text, "null") == 0);
}

enum chempi_yaml_kind chempi_yaml_kind_of(const struct chempi_yaml *yaml,
                                          chempi_yaml_value value)
{
    const yaml_node_t *node = node_of(yaml, value);

    if (!node)
        return CHEMPI_YAML_NULL;
    switch (node->type) {
    case YAML_SCALAR_NODE:
        return is_null(node) ? CHEMPI_YAML_NULL : CHEMPI_YAML_SCALAR;
    case YAML_SEQUENCE_NODE:
        return CHEMPI_YAML_LIST;
    case YAML_MAPPING_NODE:
        return CHEMPI_YAML_MAPPING;
    default:
        return CHEMPI_YAML_NULL;
    }
}

const char *chempi_yaml_text(const struct chempi_yaml *yaml,
                             chempi_yaml_value value)
{
    const yaml_node_t *node = node_of(yaml, value);

    if (!node || node->type != YAML_SCALAR_NODE)
        return "";
    return (const char *)node->data.scalar.value;
}

size_t chempi_yaml_line(const struct chempi_yaml *yaml, chempi_yaml_value value)
{
    const yaml_node_t *node = node_of(yaml, value);

    return node ? node->start_mark.line + 1 : 1;
}

size_t chempi_yaml_column(const struct chempi_yaml *yaml,
                          chempi_yaml_value value)
{
    const yaml_node_t *node = node_of(yaml, value);

    return node ? node->start_mark.column + 1 : 1;
}

static size_t byte_of(const struct chempi_yaml *yaml, size_t character)
{
    size_t mark = character / MARK_STEP;
    size_t at = mark < yaml->mark_count ? yaml->marks[mark] : yaml->len;

    for (size_t i = mark * MARK_STEP; i < character && at < yaml->len; i++)
        at = next_character(yaml, at);
    return at < yaml->len ? at : yaml->len;
}

void chempi_yaml_span(const struct chempi_yaml *yaml, chempi_yaml_value value,
                      size_t *from, size_t *to)
{
    const yaml_node_t *node = node_of(yaml, value);

    *from = node ? byte_of(yaml, node->start_mark.index) : 0;
    *to = node ? byte_of(yaml, node->end_mark.index) : 0;
}

bool chempi_yaml_is_flow(const struct chempi_yaml *yaml,
                         chempi_yaml_value value)
{
    const yaml_node_t *node = node_of(yaml, value);

    return node && ((node->type == YAML_MAPPING_NODE &&
                     node->data.mapping.style == YAML_FLOW_MAPPING_STYLE) ||
                    (node->type == YAML_SEQUENCE_NODE &&
                     node->data.sequence.style == YAML_FLOW_SEQUENCE_STYLE));
}

size_t chempi_yaml_count(const struct chempi_yaml *yaml,
                         chempi_yaml_value value)
{
    const yaml_node_t *node = node_of(yaml, value);

    if (node && node->type == YAML_SEQUENCE_NODE)
        return (size_t)(node->data.sequence.items.top -
                        node->data.sequence.items.start);
    if (node && node->type == YAML_MAPPING_NODE)
        return (size_t)(node->data.mapping.pairs.top -
                        node->data.mapping.pairs.start);
    return 0;
}

chempi_yaml_value chempi_yaml_item(const struct chempi_yaml *yaml,
                                   chempi_yaml_value list, size_t i)
{
    const yaml_node_t *node = node_of(yaml, list);

    return node->data.sequence.items.start[i];
}

struct sorted {
    const char *name;
    size_t index;
};

static int order_names(const void *a, const void *b)
{
    const struct sorted *x = a;
    const struct sorted *y = b;
    int order = strcmp(x->name, y->name);

    return order ? order : (x->index > y->index) - (x->index < y->index);
}

static int find_twice(const struct chempi_yaml *yaml,
                      const struct chempi_yaml_pair *pairs, size_t count,
                      struct chempi_arena *arena, struct chempi_err *err)
{
    struct sorted *list = chempi_arena_get(arena, count, sizeof(*list));

    for (size_t i = 0; i < count; i++)
        list[i] = (struct sorted){.name = pairs[i].name, .index = i};
    qsort(list, count, sizeof(*list), order_names);
    for (size_t i = 1; i < count; i++) {
        if (strcmp(list[i - 1].name, list[i].name) == 0)
            return chempi_yaml_fail(
                yaml, pairs[list[i].index].key, err,
                "expected each key once, found '%.*s' again (first in line "
                "%zu)",
                FOUND_MAX, list[i].name,
                chempi_yaml_line(yaml, pairs[list[i - 1].index].key));
    }
    return 0;
}

int chempi_yaml_pairs(const struct chempi_yaml *yaml, chempi_yaml_value value,
                      const char *what, struct chempi_arena *arena,
                      struct chempi_yaml_pair **out, size_t *count,
                      struct chempi_err *err)
{
    size_t n = chempi_yaml_count(yaml, value);
    struct chempi_yaml_pair *pairs;
    const yaml_node_t *node;

    if (chempi_yaml_kind_of(yaml, value) != CHEMPI_YAML_MAPPING)
        return chempi_yaml_expected(yaml, value, err, what);
    node = node_of(yaml, value);
    pairs = chempi_arena_get(arena, n, sizeof(*pairs));
    for (size_t i = 0; i < n; i++) {
        const yaml_node_pair_t *pair = &node->data.mapping.pairs.start[i];

        if (chempi_yaml_kind_of(yaml, pair->key) != CHEMPI_YAML_SCALAR)
            return chempi_yaml_expected(yaml, pair->key, err, "a key");
        pairs[i] = (struct chempi_yaml_pair){
            .key = pair->key,
            .value = pair->value,
            .name = chempi_yaml_text(yaml, pair->key),
        };
    }
    *out = pairs;
    *count = n;
    return find_twice(yaml, pairs, n, arena, err);
}
