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

static int diff(const struct chempi_graph *before,
                const struct chempi_command_line *line, struct chempi_err *err)
{
    struct chempi_desc desc;
    struct chempi_graph after;
    size_t found;

    if (chempi_desc_open(line->arguments[1], &desc, err) != 0)
        return CHEMPI_COMMAND_FAILED;
    chempi_graph_init(&after, &desc);
    found = chempi_diff(before, &after, line->is_json, stdout);
    chempi_graph_fini(&after);
    chempi_desc_fini(&desc);
    return found ? CHEMPI_COMMAND_FAILED : CHEMPI_COMMAND_OK;
}

int chempi_command_diff(struct chempi_command_line *line,
                        struct chempi_err *err)
{
    return chempi_graph_use(line, diff, err);
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

static int draw(const struct chempi_graph *graph,
                const struct chempi_command_line *line, struct chempi_err *err)
{
    uint32_t from = CHEMPI_SEARCH_NONE;
    FILE *out;
    int rc = 0;

    if (line->from) {
        from = chempi_command_find_node(graph->desc, line->from, err);
        if (from == CHEMPI_NAMES_NONE)
            return CHEMPI_COMMAND_FAILED;
    }
    out = open_picture(line->output, err);
    if (!out)
        return CHEMPI_COMMAND_FAILED;
    if (line->dot)
        chempi_dot(graph, from, line->len, out);
    else
        rc =
            draw_svg(graph, layout_of(line->layout), from, line->len, out, err);
    return close_picture(out, line->output, rc == 0, err);
}

int chempi_command_graph(struct chempi_command_line *line,
                         struct chempi_err *err)
{
    int rc = 0;

    if (!line->from != !line->size)
        return chempi_command_usage(err, "expected both --from and --size", "");
    if (layout_of(line->layout) == LAYOUT_NONE || (line->layout && line->dot))
        return chempi_command_usage(
            err, "expected --layout auto, graphviz or built-in, or --dot", "");
    if (line->size)
        rc = chempi_command_read_size(line->size, &line->len, err);
    return rc ? rc : chempi_graph_use(line, draw, err);
}

static int plot(const struct chempi_graph *graph,
                const struct chempi_command_line *line, struct chempi_err *err)
{
    uint32_t from;
    uint32_t to;
    bool found;
    FILE *out;

    if (!chempi_command_find_ends(graph->desc, line, &from, &to, err))
        return CHEMPI_COMMAND_FAILED;
    out = open_picture(line->output, err);
    if (!out)
        return CHEMPI_COMMAND_FAILED;
    found = chempi_plot(graph, from, to, line->csv, out);
    if (!found)
        (void)chempi_err_set(
            err, -EHOSTUNREACH, "%s: there is no way from %s to %s",
            graph->desc->file, line->arguments[1], line->arguments[2]);
    return close_picture(out, line->output, found, err);
}

int chempi_command_plot(struct chempi_command_line *line,
                        struct chempi_err *err)
{
    return chempi_graph_use(line, plot, err);
}
