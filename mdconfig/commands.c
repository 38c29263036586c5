/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands that need nothing but a description; see description/command.h. */
#include "mdconfig/description/command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/table/format.h"
#include "common/table/load.h"
#include "common/words/json.h"
#include "mdconfig/description/text.h"
#include "mdconfig/pictures/explain.h"
#include "mdconfig/pictures/show.h"
#include "mdconfig/routes/check.h"
#include "mdconfig/routes/compile.h"

/* ---- check -------------------------------------------------------------- */

static const char *const level_names[] = {"note", "warning", "error"};

/* Print findings at or above a level; *worst is the highest of all. */
static void print_findings(const struct chempi_check *check,
                           enum chempi_check_level from, FILE *out)
{
    for (size_t i = 0; i < check->count; i++) {
        const struct chempi_check_finding *f = &check->findings[i];

        if (f->level >= from)
            (void)fprintf(out, "%s: %s\n", level_names[f->level], f->text);
    }
}

static size_t count_findings(const struct chempi_check *check,
                             enum chempi_check_level level, bool reach_too)
{
    size_t n = 0;

    for (size_t i = 0; i < check->count; i++)
        n += check->findings[i].level == level &&
             (reach_too || !check->findings[i].is_reach);
    return n;
}

static void print_check_json(const struct chempi_desc *desc,
                             const struct chempi_check *check, size_t errors,
                             size_t warnings)
{
    struct chempi_json j = {.file = stdout};

    chempi_json_open(&j, NULL);
    chempi_json_text(&j, "file", desc->file);
    chempi_json_number(&j, "nodes", desc->node_count);
    chempi_json_number(&j, "networks", desc->network_count);
    chempi_json_number(&j, "errors", errors);
    chempi_json_number(&j, "warnings", warnings);
    chempi_json_open_list(&j, "findings");
    for (size_t i = 0; i < check->count; i++) {
        chempi_json_open(&j, NULL);
        chempi_json_text(&j, "level", level_names[check->findings[i].level]);
        chempi_json_text(&j, "text", check->findings[i].text);
        chempi_json_close(&j);
    }
    chempi_json_close_list(&j);
    chempi_json_close(&j);
    chempi_json_end(&j);
}

static void print_check(const struct chempi_desc *desc,
                        const struct chempi_check *check, size_t errors,
                        size_t warnings)
{
    print_findings(check, CHEMPI_CHECK_NOTE, stdout);
    (void)printf(
        "%s: %u node%s, %u network%s: %zu error%s, %zu warning%s\n", desc->file,
        desc->node_count, chempi_text_plural(desc->node_count),
        desc->network_count, chempi_text_plural(desc->network_count), errors,
        chempi_text_plural(errors), warnings, chempi_text_plural(warnings));
}

static int check(const struct chempi_graph *graph,
                 const struct chempi_command_line *line, struct chempi_err *err)
{
    struct chempi_check check;
    size_t errors;
    size_t warnings;

    (void)err; /* findings are the command's result */
    chempi_check_run(graph, CHEMPI_CHECK_NOTE, line->all, &check);
    errors = count_findings(&check, CHEMPI_CHECK_ERROR, true);
    warnings = count_findings(&check, CHEMPI_CHECK_WARNING, true);
    (line->is_json ? print_check_json : print_check)(graph->desc, &check,
                                                     errors, warnings);
    chempi_check_fini(&check);
    return errors > 0 || (line->strict && warnings > 0) ? CHEMPI_COMMAND_FAILED
                                                        : CHEMPI_COMMAND_OK;
}

int chempi_command_check(struct chempi_command_line *line,
                         struct chempi_err *err)
{
    return chempi_graph_use(line, check, err);
}

/* ---- compile ------------------------------------------------------------ */

static bool may_compile(const struct chempi_graph *graph,
                        bool allow_unreachable, struct chempi_err *err)
{
    struct chempi_check check;
    size_t errors;

    chempi_check_run(graph, CHEMPI_CHECK_WARNING, false, &check);
    errors = count_findings(&check, CHEMPI_CHECK_ERROR, !allow_unreachable);
    print_findings(&check, CHEMPI_CHECK_WARNING, stderr);
    if (errors > 0)
        (void)chempi_err_set(
            err, -EINVAL, "%s: not compiled%s", graph->desc->file,
            count_findings(&check, CHEMPI_CHECK_ERROR, false) == 0
                ? " (--allow-unreachable would accept pairs "
                  "without a way)"
                : "");
    chempi_check_fini(&check);
    return errors == 0;
}

static int compile(const struct chempi_graph *graph,
                   const struct chempi_command_line *line,
                   struct chempi_err *err)
{
    enum chempi_compile_layout layout = line->alone    ? CHEMPI_COMPILE_ALONE
                                        : line->shared ? CHEMPI_COMPILE_SHARED
                                                       : CHEMPI_COMPILE_AUTO;
    const char *dir = line->output ? line->output : ".";
    struct chempi_compile_result result;

    if (!may_compile(graph, line->allow_unreachable, err) ||
        chempi_compile_write(graph, dir, layout, &result, err) != 0)
        return CHEMPI_COMMAND_FAILED;
    (void)printf("%u table%s in %s, each at most %zu bytes%s\n",
                 result.table_count, chempi_text_plural(result.table_count),
                 dir, result.table_len_max,
                 result.shared ? " with its shared parts" : "");
    return CHEMPI_COMMAND_OK;
}

int chempi_command_compile(struct chempi_command_line *line,
                           struct chempi_err *err)
{
    if (line->alone && line->shared)
        return chempi_command_usage(
            err, "--alone and --shared exclude each other", "");
    return chempi_graph_use(line, compile, err);
}

/* ---- show --------------------------------------------------------------- */

static bool is_table(const char *path)
{
    unsigned char head[sizeof(CHEMPI_TABLE_MAGIC) - 1];
    struct stat st;
    FILE *file;
    bool is;

    if (strcmp(path, "-") == 0 || stat(path, &st) != 0 || !S_ISREG(st.st_mode))
        return false; /* what comes through a pipe can be read once only */
    file = fopen(path, "r");
    if (!file)
        return false;
    is = fread(head, sizeof(head), 1, file) == 1 &&
         memcmp(head, CHEMPI_TABLE_MAGIC, sizeof(head)) == 0;
    (void)fclose(file); /* only read */
    return is;
}

static int show_image(const void *data, size_t len, struct chempi_err *err)
{
    struct chempi_table *table;
    int rc = chempi_table_open(data, len, &table, err);

    if (rc)
        return CHEMPI_COMMAND_FAILED;
    chempi_show_table(table, stdout);
    chempi_table_close(table);
    return CHEMPI_COMMAND_OK;
}

static int show_table_file(const char *path, struct chempi_err *err)
{
    void *data;
    size_t len;
    int rc;

    if (chempi_table_load(path, &data, &len, err) != 0)
        return CHEMPI_COMMAND_FAILED;
    rc = show_image(data, len, err);
    if (rc)
        (void)chempi_err_prefix(err, "%s", path);
    free(data);
    return rc;
}

static int show_node(const struct chempi_graph *graph, const char *name,
                     struct chempi_err *err)
{
    uint32_t node = chempi_command_find_node(graph->desc, name, err);
    struct chempi_blob image;
    int rc;

    if (node == CHEMPI_NAMES_NONE ||
        chempi_compile_image(graph, node, &image, err) != 0)
        return CHEMPI_COMMAND_FAILED;
    rc = show_image(image.data, image.len, err);
    chempi_blob_fini(&image);
    return rc;
}

static int show(const struct chempi_graph *graph,
                const struct chempi_command_line *line, struct chempi_err *err)
{
    if (line->count > 1)
        return show_node(graph, line->arguments[1], err);
    chempi_show_desc(graph, stdout);
    return CHEMPI_COMMAND_OK;
}

int chempi_command_show(struct chempi_command_line *line,
                        struct chempi_err *err)
{
    if (!is_table(line->arguments[0]))
        return chempi_graph_use(line, show, err);
    if (line->count > 1)
        return chempi_command_usage(
            err,
            "a table is of one node already; too much: ", line->arguments[1]);
    return show_table_file(line->arguments[0], err);
}

/* ---- explain ------------------------------------------------------------ */

static int explain(const struct chempi_graph *graph,
                   const struct chempi_command_line *line,
                   struct chempi_err *err)
{
    uint32_t from;
    uint32_t to;

    if (!chempi_command_find_ends(graph->desc, line, &from, &to, err))
        return CHEMPI_COMMAND_FAILED;
    return (line->is_json ? chempi_explain_json
                          : chempi_explain)(graph, from, to, line->len, stdout)
               ? CHEMPI_COMMAND_OK
               : CHEMPI_COMMAND_FAILED;
}

int chempi_command_explain(struct chempi_command_line *line,
                           struct chempi_err *err)
{
    int rc = chempi_command_read_size(line->arguments[3], &line->len, err);

    return rc ? rc : chempi_graph_use(line, explain, err);
}
