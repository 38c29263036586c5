/* SPDX-License-Identifier: BSD-3-Clause */
/* SVG pictures; see svg.h. */
#include "mdconfig/pictures/svg.h"

#include "common/base/compiler.h"

void chempi_svg_begin(FILE *out, double width, double height)
{
    (void)fprintf(out,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" "
                  "height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" "
                  "font-family=\"DejaVu Sans, Helvetica, sans-serif\">\n"
                  "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
                  width, height, width, height);
}

void chempi_svg_end(FILE *out)
{
    (void)fprintf(out, "</svg>\n");
}

static void put_style(FILE *out, const struct chempi_svg_style *style)
{
    (void)fprintf(out, "fill=\"%s\"", style->fill ? style->fill : "none");
    if (style->stroke)
        (void)fprintf(out, " stroke=\"%s\" stroke-width=\"%.1f\"",
                      style->stroke, style->width);
    if (style->dash)
        (void)fprintf(out, " stroke-dasharray=\"%s\"", style->dash);
    (void)fprintf(out, "/>\n");
}

void chempi_svg_line(FILE *out, struct chempi_svg_point from,
                     struct chempi_svg_point to,
                     const struct chempi_svg_style *style)
{
    (void)fprintf(out, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" ",
                  from.x, from.y, to.x, to.y);
    put_style(out, style);
}

void chempi_svg_polyline(FILE *out, const struct chempi_svg_point *points,
                         size_t count, const struct chempi_svg_style *style)
{
    (void)fprintf(out, "<polyline stroke-linejoin=\"round\" points=\"");
    for (size_t i = 0; i < count; i++)
        (void)fprintf(out, "%s%.1f,%.1f", i ? " " : "", points[i].x,
                      points[i].y);
    (void)fprintf(out, "\" ");
    put_style(out, style);
}

void chempi_svg_rect(FILE *out, struct chempi_svg_point corner, double width,
                     double height, const struct chempi_svg_style *style)
{
    (void)fprintf(out,
                  "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
                  "height=\"%.1f\" rx=\"4\" ",
                  corner.x, corner.y, width, height);
    put_style(out, style);
}

void chempi_svg_circle(FILE *out, struct chempi_svg_point centre, double radius,
                       const struct chempi_svg_style *style)
{
    (void)fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\" ", centre.x,
                  centre.y, radius);
    put_style(out, style);
}

static void put_escaped(FILE *out, const char *text)
{
    for (; *text; text++) {
        switch (*text) {
        case '<':
            (void)fputs("&lt;", out);
            break;
        case '>':
            (void)fputs("&gt;", out);
            break;
        case '&':
            (void)fputs("&amp;", out);
            break;
        case '"':
            (void)fputs("&quot;", out);
            break;
        default:
            (void)fputc(*text, out);
        }
    }
}

void chempi_svg_text(FILE *out, struct chempi_svg_point at, double size,
                     enum chempi_svg_anchor anchor, const char *colour,
                     const char *text)
{
    static const char *const anchors[] = {"start", "middle", "end"};

    (void)fprintf(out,
                  "<text x=\"%.1f\" y=\"%.1f\" font-size=\"%.0f\" "
                  "text-anchor=\"%s\" fill=\"%s\">",
                  at.x, at.y, size, anchors[anchor], colour);
    put_escaped(out, text);
    (void)fprintf(out, "</text>\n");
}

const char *chempi_svg_colour(size_t i)
{
    static const char *const colours[] = {
        "#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e",
        "#17becf", "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22"};

    return colours[i % CHEMPI_ARRAY_LEN(colours)];
}
