/* SPDX-License-Identifier: BSD-3-Clause */
/* SVG pictures: shapes and text, escaped, into a stream. Lengths are pixels;
 * colours are SVG's. The caller looks at ferror() once, at the end. */
#ifndef CHEMPI_MDCONFIG_SVG_H
#define CHEMPI_MDCONFIG_SVG_H

#include <stdio.h>

#define CHEMPI_SVG_CHAR 6.6 /* width of a character at size 11 */

struct chempi_svg_style {
    const char *stroke; /* NULL: none */
    const char *fill;   /* NULL: none */
    const char *dash;   /* NULL: solid */
    double width;
};

enum chempi_svg_anchor { CHEMPI_SVG_LEFT, CHEMPI_SVG_MIDDLE, CHEMPI_SVG_RIGHT };

struct chempi_svg_point {
    double x;
    double y;
};

void chempi_svg_begin(FILE *out, double width, double height);
void chempi_svg_end(FILE *out);
void chempi_svg_line(FILE *out, struct chempi_svg_point from,
                     struct chempi_svg_point to,
                     const struct chempi_svg_style *style);
void chempi_svg_polyline(FILE *out, const struct chempi_svg_point *points,
                         size_t count, const struct chempi_svg_style *style);
void chempi_svg_rect(FILE *out, struct chempi_svg_point corner, double width,
                     double height, const struct chempi_svg_style *style);
void chempi_svg_circle(FILE *out, struct chempi_svg_point centre, double radius,
                       const struct chempi_svg_style *style);
/* Text at its baseline; size in pixels. */
void chempi_svg_text(FILE *out, struct chempi_svg_point at, double size,
                     enum chempi_svg_anchor anchor, const char *colour,
                     const char *text);
/* One of ten colours that can be told apart; repeats. */
const char *chempi_svg_colour(size_t i);

#endif
