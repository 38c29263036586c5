/* SPDX-License-Identifier: BSD-3-Clause */
/* The commands that compare and draw; see command.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "mdconfig/description/command.h"
#include "mdconfig/description/text.h"
#include "mdconfig/pictures/diff.h"
#include "mdconfig/pictures/dot.h"
#include "mdconfig/pictures/draw.h"
#include "mdconfig/pictures/layout.h"
#include "mdconfig/pictures/plot.h"

/* ---- diff --------------------------------------------------------------- */

int chempi_command_diff(int argc, char **argv, struct chempi_err *err)
{
    struct chempi_command_line line;
    struct chempi_desc before;
    struct chempi_desc after;
    struct chempi_graph a;
    struct chempi_graph b;
    size_t found;
    int rc = chempi_command_read_line(argc, argv, "--json", 2, 2, &line, err);

    if (rc)
        return rc;
    if (chempi_desc_open(line.arguments[0], &before, err) != 0)
        return CHEMPI_COMMAND_FAILED;
    if (chempi_desc_open(line.arguments[1], &after, err) != 0) {
        chempi_desc_fini(&before);
        return CHEMPI_COMMAND_FAILED;
    }
    chempi_graph_init(&a, &before);
    chempi_graph_init(&b, &after);
    found = chempi_diff(&a, &b, line.is_json, stdout);
    chempi_graph_fini(&a);
    chempi_graph_fini(&b);
    chempi_desc_fini(&before);
    chempi_desc_fini(&after);
    return found ? CHEMPI_COMMAND_FAILED : CHEMPI_COMMAND_OK;
}

/* ---- pictures ----------------------------------------------------------- */

static FILE *open_picture(const char *path, struct chempi_err *err)
{
    FILE *out = path ? fopen(path, "w") : stdout;

    if (!out)
        (void)chempi_err_set(err, -errno, "%s: %s", path, strerror(errno));
    return out;
}

/* A device or a pipe is not ours to remove. */
static bool is_regular(FILE *out)
{
    struct stat st;

    return fstat(fileno(out), &st) == 0 && S_ISREG(st.st_mode);
}

/* Close the file; a picture that failed or is incomplete is removed. */
static int close_picture(FILE *out, const char *path, bool drawn,
                         struct chempi_err *err)
{
    bool bad = fflush(out) != 0 || ferror(out) != 0;

    if (path) {
        bool removable = is_regular(out);

        bad = fclose(out) != 0 || bad;
        if ((bad || !drawn) && removable)
            (void)remove(path); /* the error is told already or below */
    }
    if (bad)
        (void)chempi_err_set(err, -EIO, "%s: cannot be written",
                             path ? path : "standard output");
    return bad || !drawn ? CHEMPI_COMMAND_FAILED : CHEMPI_COMMAND_OK;
}

enum layout { LAYOUT_AUTO, LAYOUT_GRAPHVIZ, LAYOUT_BUILT_IN, LAYOUT_NONE };

static enum layout layout_of(const char *word)
{
    static const char *const words[] = {"auto", "graphviz", "built-in"};
    uint32_t i = 0;

    while (word && i < LAYOUT_NONE && strcmp(word, words[i]) != 0)
        i++;
    return (enum layout)i;
}

static int draw_built_in(const struct chempi_graph *graph, uint32_t from,
                         uint64_t len, FILE *out, struct chempi_err *err)
{
    int rc = chempi_draw(graph, from, len, out);

    if (rc)
        (void)chempi_err_set(err, rc,
                             "%s: more than %u networks or classes of nodes "
                             "do not fit into a picture without Graphviz "
                             "(Debian's package is graphviz)",
                             graph->desc->file, CHEMPI_DRAW_MAX);
    return rc;
}

/* By Graphviz where it is; where it is not, or fails, by ourselves. */
static int draw_svg(const struct chempi_graph *graph, enum layout layout,
                    uint32_t from, uint64_t len, FILE *out,
                    struct chempi_err *err)
{
    struct chempi_err why = {.text = ""};
    int rc;

    if (layout == LAYOUT_GRAPHVIZ)
        return chempi_layout_draw(graph, from, len, out, err);
    if (layout == LAYOUT_AUTO) {
        rc = chempi_layout_draw(graph, from, len, out, &why);
        if (rc == 0)
            return 0;
        if (rc != -ENOENT)
            (void)fprintf(stderr,
                          "mdconfig: warning: %s; the built-in layout is "
                          "used\n",
                          why.text);
    }
    return draw_built_in(graph, from, len, out, err);
}

static int draw(const struct chempi_desc *desc,
                const struct chempi_command_line *line, uint64_t len,
                struct chempi_err *err)
{
    uint32_t from = CHEMPI_SEARCH_NONE;
    struct chempi_graph graph;
    FILE *out;
    int rc;

    if (line->from) {
        from = chempi_command_find_node(desc, line->from, err);
        if (from == CHEMPI_NAMES_NONE)
            return CHEMPI_COMMAND_FAILED;
    }
    out = open_picture(line->output, err);
    if (!out)
        return CHEMPI_COMMAND_FAILED;
    chempi_graph_init(&graph, desc);
    if (line->dot) {
        chempi_dot(&graph, from, len, out);
        rc = 0;
    } else {
        rc = draw_svg(&graph, layout_of(line->layout), from, len, out, err);
    }
    chempi_graph_fini(&graph);
    return close_picture(out, line->output, rc == 0, err);
}

int chempi_command_graph(int argc, char **argv, struct chempi_err *err)
{
    struct chempi_command_line line;
    struct chempi_desc desc;
    uint64_t len = 0;
    int rc = chempi_command_read_line(
        argc, argv, "-o --from --size --dot --layout", 1, 1, &line, err);

    if (rc)
        return rc;
    if (!line.from != !line.size)
        return chempi_command_usage(err, "expected both --from and --size", "");
    if (layout_of(line.layout) == LAYOUT_NONE || (line.layout && line.dot))
        return chempi_command_usage(
            err, "expected --layout auto, graphviz or built-in, or --dot", "");
    if (line.size && chempi_text_typed_size(line.size, &len) != 0)
        return chempi_command_usage(
            err, "expected a size such as 64KiB, found ", line.size);
    if (chempi_desc_open(line.arguments[0], &desc, err) != 0)
        return CHEMPI_COMMAND_FAILED;
    rc = draw(&desc, &line, len, err);
    chempi_desc_fini(&desc);
    return rc;
}

static int plot(const struct chempi_desc *desc,
                const struct chempi_command_line *line, struct chempi_err *err)
{
    uint32_t from = chempi_command_find_node(desc, line->arguments[1], err);
    uint32_t to = CHEMPI_NAMES_NONE;
    struct chempi_graph graph;
    bool found;
    FILE *out;

    if (from != CHEMPI_NAMES_NONE)
        to = chempi_command_find_node(desc, line->arguments[2], err);
    if (to == CHEMPI_NAMES_NONE)
        return CHEMPI_COMMAND_FAILED;
    out = open_picture(line->output, err);
    if (!out)
        return CHEMPI_COMMAND_FAILED;
    chempi_graph_init(&graph, desc);
    found = chempi_plot(&graph, from, to, line->csv, out);
    if (!found)
        (void)chempi_err_set(err, -EHOSTUNREACH,
                             "%s: there is no way from %s to %s", desc->file,
                             line->arguments[1], line->arguments[2]);
    chempi_graph_fini(&graph);
    return close_picture(out, line->output, found, err);
}

int chempi_command_plot(int argc, char **argv, struct chempi_err *err)
{
    struct chempi_command_line line;
    struct chempi_desc desc;
    int rc = chempi_command_read_line(argc, argv, "-o --csv", 3, 3, &line, err);

    if (rc)
        return rc;
    if (chempi_desc_open(line.arguments[0], &desc, err) != 0)
        return CHEMPI_COMMAND_FAILED;
    rc = plot(&desc, &line, err);
    chempi_desc_fini(&desc);
    return rc;
}
