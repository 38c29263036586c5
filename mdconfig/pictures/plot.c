/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cost curves as a picture; see plot.h. Both axes are logarithmic: sizes from
 * 1 B to 16 MiB, times over the decades that occur.
 */
#include "mdconfig/pictures/plot.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "mdconfig/description/text.h"
#include "mdconfig/pictures/svg.h"
#include "mdconfig/routes/ways.h"

#define CURVES_MIN 8u /* or all ways; more, if more are best anywhere */
#define SAMPLES 193   /* eight per doubling */
#define DOUBLINGS 24
#define SWITCHES_MAX 64u /* more have a line without a label */
#define LABEL_HEIGHT 12

static const double left = 70;
static const double plot_width = 720;
static const double plot_height = 420;

struct curve {
    const struct chempi_way *way;
    double nearest; /* least ratio to the envelope */
    bool is_wanted; /* best anywhere, of all ways or of the direct ones */
};

struct plotting {
    const struct chempi_graph *graph;
    const struct chempi_route_list *list;
    struct curve *curves;
    size_t count;
    int decade_from; /* 10^n us */
    int decade_to;
    double top;                /* of the curves: below title and labels */
    size_t rows[SWITCHES_MAX]; /* of the labels of switching points */
    FILE *out;
};

static uint64_t sample_len(int i)
{
    return (uint64_t)llround(exp2(i / 8.0));
}

static double x_of(double len)
{
    return left + plot_width * log2(len) / DOUBLINGS;
}

static double y_of(const struct plotting *p, double us)
{
    double decades = p->decade_to - p->decade_from;

    return p->top + plot_height * (p->decade_to - log10(us)) / decades;
}

static double envelope_at(const struct plotting *p, uint64_t len)
{
    const struct chempi_route *r = chempi_route_for(p->list, len);

    return chempi_route_time(p->graph, r->stages, r->stage_count, r->chunk,
                             len);
}

/* ---- what to draw ------------------------------------------------------- */

/* Ways are compared at the sizes of the picture, and at the last one of each
 * range of the table, which may be between two of these. */
static size_t count_points(const struct plotting *p)
{
    return SAMPLES + p->list->count;
}

static uint64_t point_len(const struct plotting *p, size_t i)
{
    const uint64_t most = sample_len(SAMPLES - 1);
    uint64_t len;

    if (i < SAMPLES)
        return sample_len((int)i);
    len = p->list->routes[i - SAMPLES].max_len;
    return len < 1 ? 1 : len < most ? len : most;
}

/* The least times of direct ways at these points; infinite: there is none. */
static double *find_direct(const struct plotting *p,
                           const struct chempi_ways *ways)
{
    const size_t count = count_points(p);
    double *best = chempi_mem_get(count, sizeof(*best));

    for (size_t k = 0; k < count; k++) {
        best[k] = INFINITY;
        for (size_t i = 0; i < ways->count; i++)
            if (ways->list[i].count == 1)
                best[k] =
                    fmin(best[k], chempi_ways_time(p->graph, &ways->list[i],
                                                   point_len(p, k)));
    }
    return best;
}

static struct curve rate(const struct plotting *p, const struct chempi_way *way,
                         const double *direct)
{
    static const double same = 1 + 1e-9;
    struct curve c = {.way = way, .nearest = INFINITY};

    for (size_t k = 0; k < count_points(p); k++) {
        const uint64_t len = point_len(p, k);
        const double us = chempi_ways_time(p->graph, way, len);

        if (isinf(us))
            continue;
        c.nearest = fmin(c.nearest, us / envelope_at(p, len));
        c.is_wanted |= way->count == 1 && us <= direct[k] * same;
    }
    c.is_wanted |= c.nearest <= same;
    return c;
}

static int order_curves(const void *a, const void *b)
{
    const struct curve *x = a;
    const struct curve *y = b;

    if (x->is_wanted != y->is_wanted)
        return x->is_wanted ? -1 : 1;
    if (x->nearest < y->nearest || x->nearest > y->nearest)
        return x->nearest < y->nearest ? -1 : 1;
    return (x->way > y->way) - (x->way < y->way);
}

static void choose_curves(struct plotting *p, const struct chempi_ways *ways)
{
    double *direct = find_direct(p, ways);

    p->curves = chempi_mem_get(ways->count, sizeof(*p->curves));
    for (size_t i = 0; i < ways->count; i++)
        p->curves[i] = rate(p, &ways->list[i], direct);
    qsort(p->curves, ways->count, sizeof(*p->curves), order_curves);
    while (p->count < ways->count &&
           (p->count < CURVES_MIN || p->curves[p->count].is_wanted))
        p->count++;
    free(direct);
}

static void choose_decades(struct plotting *p)
{
    double least = envelope_at(p, 1);
    double most = envelope_at(p, sample_len(SAMPLES - 1));

    for (size_t i = 0; i < p->count; i++) {
        double us = chempi_ways_time(p->graph, p->curves[i].way, sample_len(0));

        if (!isinf(us))
            least = fmin(least, us);
        us = chempi_ways_time(p->graph, p->curves[i].way,
                              sample_len(SAMPLES - 1));
        if (!isinf(us) && us < most * 100)
            most = fmax(most, us);
    }
    p->decade_from = (int)floor(log10(least));
    p->decade_to = (int)ceil(log10(most));
    if (p->decade_to == p->decade_from)
        p->decade_to++;
}

/* ---- drawing ------------------------------------------------------------ */

static void draw_axes(const struct plotting *p)
{
    static const struct chempi_svg_style grid = {.stroke = "#dddddd",
                                                 .width = 1};
    static const struct chempi_svg_style frame = {.stroke = "#444444",
                                                  .width = 1};

    for (int i = 0; i <= DOUBLINGS; i += 2) {
        double x = x_of(exp2(i));

        chempi_svg_line(p->out, (struct chempi_svg_point){x, p->top},
                        (struct chempi_svg_point){x, p->top + plot_height},
                        &grid);
        chempi_svg_text(p->out,
                        (struct chempi_svg_point){x, p->top + plot_height + 16},
                        11, CHEMPI_SVG_MIDDLE, "#444444",
                        chempi_text_put_size(UINT64_C(1) << i).text);
    }
    for (int i = p->decade_from; i <= p->decade_to; i++) {
        double y = y_of(p, pow(10, i));

        chempi_svg_line(p->out, (struct chempi_svg_point){left, y},
                        (struct chempi_svg_point){left + plot_width, y}, &grid);
        chempi_svg_text(p->out, (struct chempi_svg_point){left - 6, y + 4}, 11,
                        CHEMPI_SVG_RIGHT, "#444444",
                        i == 3 ? "1 ms"
                               : chempi_text_put_time(pow(10, i)).text);
    }
    chempi_svg_rect(p->out, (struct chempi_svg_point){left, p->top}, plot_width,
                    plot_height, &frame);
}

/* A curve is drawn where its protocols take the size and it is inside. */
static void draw_curve(const struct plotting *p, size_t i)
{
    const struct chempi_svg_style style = {.stroke = chempi_svg_colour(i),
                                           .width = 1.5};
    struct chempi_svg_point points[SAMPLES];
    size_t n = 0;

    for (int k = 0; k < SAMPLES; k++) {
        double us = chempi_ways_time(p->graph, p->curves[i].way, sample_len(k));

        if (isinf(us) || us > pow(10, p->decade_to))
            continue;
        points[n++] =
            (struct chempi_svg_point){x_of((double)sample_len(k)), y_of(p, us)};
    }
    chempi_svg_polyline(p->out, points, n, &style);
}

static void draw_envelope(const struct plotting *p)
{
    static const struct chempi_svg_style style = {.stroke = "#00000033",
                                                  .width = 8};
    struct chempi_svg_point points[SAMPLES];

    for (int k = 0; k < SAMPLES; k++)
        points[k] =
            (struct chempi_svg_point){x_of((double)sample_len(k)),
                                      y_of(p, envelope_at(p, sample_len(k)))};
    chempi_svg_polyline(p->out, points, SAMPLES, &style);
}

static bool is_shown(const struct plotting *p, size_t i)
{
    const uint64_t len = p->list->routes[i].max_len;

    return i + 1 < p->list->count && len > 0 && len < UINT64_C(1) << DOUBLINGS;
}

/* Labels that would overprint go into rows of their own: the lowest one whose
 * last label ends before this one begins. */
static void place_labels(struct plotting *p)
{
    double ends[SWITCHES_MAX] = {0}; /* of each row */
    size_t count = 0;

    for (size_t i = 0; i < p->list->count && i < SWITCHES_MAX; i++) {
        double x;
        double half;

        if (!is_shown(p, i))
            continue;
        x = x_of((double)p->list->routes[i].max_len);
        half = ((double)strlen(
                    chempi_text_put_size(p->list->routes[i].max_len).text) +
                1) *
               CHEMPI_SVG_CHAR / 2;
        while (p->rows[i] < count && ends[p->rows[i]] > x - half)
            p->rows[i]++;
        ends[p->rows[i]] = x + half;
        count += p->rows[i] == count;
    }
    p->top = 38 + LABEL_HEIGHT * (double)(count ? count : 1);
}

static void draw_switches(const struct plotting *p)
{
    static const struct chempi_svg_style style = {
        .stroke = "#444444", .width = 1, .dash = "4 3"};

    for (size_t i = 0; i + 1 < p->list->count; i++) {
        uint64_t len = p->list->routes[i].max_len;
        double x = x_of((double)len);

        if (!is_shown(p, i))
            continue;
        chempi_svg_line(p->out, (struct chempi_svg_point){x, p->top - 4},
                        (struct chempi_svg_point){x, p->top + plot_height},
                        &style);
        if (i >= SWITCHES_MAX)
            continue;
        chempi_svg_text(p->out,
                        (struct chempi_svg_point){
                            x, p->top - 8 - (double)p->rows[i] * LABEL_HEIGHT},
                        11, CHEMPI_SVG_MIDDLE, "#444444",
                        chempi_text_put_size(len).text);
    }
}

static void draw_legend(const struct plotting *p)
{
    static const struct chempi_svg_style envelope = {.stroke = "#00000033",
                                                     .width = 8};
    double y = p->top + plot_height + 52;
    char name[256];

    chempi_svg_line(p->out, (struct chempi_svg_point){left, y - 4},
                    (struct chempi_svg_point){left + 30, y - 4}, &envelope);
    chempi_svg_text(p->out, (struct chempi_svg_point){left + 38, y}, 11,
                    CHEMPI_SVG_LEFT, "#444444",
                    "what the table says (dashed: switching points, last "
                    "size before them)");
    for (size_t i = 0; i < p->count; i++) {
        const struct chempi_svg_style style = {.stroke = chempi_svg_colour(i),
                                               .width = 2};
        const struct chempi_way *way = p->curves[i].way;

        y += 18;
        chempi_svg_line(p->out, (struct chempi_svg_point){left, y - 4},
                        (struct chempi_svg_point){left + 30, y - 4}, &style);
        (void)chempi_ways_name(p->graph, way->stages, way->count, name,
                               sizeof(name) - 16);
        if (way->is_shut_out)
            (void)strcat(name, " (not used)");
        chempi_svg_text(p->out, (struct chempi_svg_point){left + 38, y}, 11,
                        CHEMPI_SVG_LEFT, "#444444", name);
    }
}

static void draw(const struct plotting *p, const char *from, const char *to)
{
    char title[256];

    chempi_svg_begin(p->out, left + plot_width + 40,
                     p->top + plot_height + 80 + 18 * (double)p->count);
    (void)snprintf(title, sizeof(title),
                   "Time of a message from %.64s to %.64s over its size", from,
                   to);
    chempi_svg_text(p->out, (struct chempi_svg_point){left, 20}, 14,
                    CHEMPI_SVG_LEFT, "black", title);
    draw_axes(p);
    draw_envelope(p);
    for (size_t i = 0; i < p->count; i++)
        draw_curve(p, i);
    draw_switches(p);
    draw_legend(p);
    chempi_svg_end(p->out);
}

/* ---- figures ------------------------------------------------------------ */

/* A field in quotes, which are doubled inside. */
static void put_quoted(FILE *out, const char *text)
{
    (void)fputc('"', out);
    for (; *text; text++) {
        if (*text == '"')
            (void)fputc('"', out);
        (void)fputc(*text, out);
    }
    (void)fputc('"', out);
}

static void put_header(const struct plotting *p)
{
    char name[256];

    (void)fputs("bytes,table_us,table_way", p->out);
    for (size_t i = 0; i < p->count; i++) {
        const struct chempi_way *way = p->curves[i].way;

        (void)fputc(',', p->out);
        (void)chempi_ways_name(p->graph, way->stages, way->count, name,
                               sizeof(name) - 16);
        if (way->is_shut_out)
            (void)strcat(name, " (not used)");
        put_quoted(p->out, name);
    }
    (void)fputc('\n', p->out);
}

static void put_row(const struct plotting *p, uint64_t len)
{
    const struct chempi_route *r = chempi_route_for(p->list, len);
    char name[256];

    (void)fprintf(p->out, "%" PRIu64 ",%.4f,", len, envelope_at(p, len));
    (void)chempi_ways_name(p->graph, r->stages, r->stage_count, name,
                           sizeof(name));
    put_quoted(p->out, name);
    for (size_t i = 0; i < p->count; i++) {
        double us = chempi_ways_time(p->graph, p->curves[i].way, len);

        (void)fputc(',', p->out);
        if (!isinf(us)) /* else its protocols do not take this size */
            (void)fprintf(p->out, "%.4f", us);
    }
    (void)fputc('\n', p->out);
}

/* The sizes of the picture, and those on both sides of a switching point. */
static void put_figures(const struct plotting *p)
{
    size_t next = 0;
    uint64_t least = 0; /* of the rows to come */

    put_header(p);
    for (int k = 0; k < SAMPLES; k++) {
        const uint64_t len = sample_len(k);

        while (least <= len) {
            uint64_t at = len;

            while (next + 1 < p->list->count &&
                   p->list->routes[next].max_len + 1 < least)
                next++;
            if (next + 1 < p->list->count) {
                const uint64_t end = p->list->routes[next].max_len;

                at = end < least ? least : end < len ? end : len;
            }
            put_row(p, at);
            least = at + 1;
        }
    }
}

bool chempi_plot(const struct chempi_graph *graph, uint32_t from, uint32_t to,
                 bool is_figures, FILE *out)
{
    const struct chempi_desc *d = graph->desc;
    uint32_t source = d->nodes[from].node_class;
    uint32_t target = d->nodes[to].node_class;
    struct plotting p = {.graph = graph, .out = out};
    struct chempi_routes routes;
    struct chempi_ways ways;
    bool found;

    chempi_route_source(graph, source, &routes);
    p.list = &routes.lists[from == to ? graph->class_count : target];
    found = p.list->count > 0;
    if (found) {
        chempi_ways_find(graph, source, target, from == to, &ways);
        choose_curves(&p, &ways);
        choose_decades(&p);
        place_labels(&p);
        if (is_figures)
            put_figures(&p);
        else
            draw(&p, d->nodes[from].name, d->nodes[to].name);
        free(p.curves);
        chempi_ways_fini(&ways);
    }
    chempi_routes_fini(&routes);
    return found;
}
