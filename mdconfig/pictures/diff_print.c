/* SPDX-License-Identifier: BSD-3-Clause */
/* Printing differences; see diff_print.h. */
#include "mdconfig/pictures/diff_print.h"

#include <string.h>

#include "common/words/fold.h"
#include "mdconfig/description/text.h"
#include "mdconfig/routes/ways.h"

#define NAMES_LEN 200

/* ---- JSON --------------------------------------------------------------- */

/* One of the list of differences; the caller closes it. */
static struct chempi_json *open_json(const struct chempi_diff *d,
                                     const char *kind)
{
    chempi_json_open(d->json, NULL);
    chempi_json_text(d->json, "what", kind);
    return d->json;
}

static void way_json(struct chempi_json *j, const char *name,
                     const struct chempi_graph *g, const struct chempi_route *r)
{
    if (r)
        chempi_ways_json(j, name, g, r->stages, r->stage_count);
    else
        chempi_json_text(j, name, NULL);
}

/* ---- nodes and networks ------------------------------------------------- */

void chempi_diff_print_nodes(struct chempi_diff *d, const char *word,
                             const char *const *names, size_t count)
{
    char text[NAMES_LEN];

    d->found++;
    if (d->json) {
        chempi_json_texts(open_json(d, "nodes"), word, names, count);
        chempi_json_close(d->json);
        return;
    }
    chempi_fold_sorted(names, count, text, sizeof(text));
    if (strcmp(word, "changed") == 0)
        (void)fprintf(d->out,
                      "slots, forwarding or attachments of %s changed\n", text);
    else
        (void)fprintf(d->out, "%s node%s %s\n", word, chempi_text_plural(count),
                      text);
}

void chempi_diff_print_network(struct chempi_diff *d, const char *word,
                               const struct chempi_desc_network *n)
{
    struct chempi_json *j;

    d->found++;
    if (!d->json) {
        (void)fprintf(d->out, "%s network %s (%s, device %s)\n", word, n->name,
                      n->type, n->device);
        return;
    }
    j = open_json(d, "network");
    chempi_json_text(j, word, n->name);
    chempi_json_text(j, "type", n->type);
    chempi_json_text(j, "device", n->device);
    chempi_json_close(j);
}

void chempi_diff_print_type(struct chempi_diff *d,
                            const struct chempi_desc_network *a,
                            const struct chempi_desc_network *b)
{
    const struct chempi_desc_network *const both[] = {a, b};
    struct chempi_json *j = d->json;

    d->found++;
    if (!j) {
        (void)fprintf(d->out, "network %s: %s, device %s -> %s, device %s\n",
                      a->name, a->type, a->device, b->type, b->device);
        return;
    }
    (void)open_json(d, "type");
    chempi_json_text(j, "network", a->name);
    for (int i = 0; i < 2; i++) {
        chempi_json_open(j, i ? "after" : "before");
        chempi_json_text(j, "type", both[i]->type);
        chempi_json_text(j, "device", both[i]->device);
        chempi_json_close(j);
    }
    chempi_json_close(j);
}

/* ---- figures ------------------------------------------------------------ */

static void print_value(FILE *out, enum chempi_diff_unit unit,
                        union chempi_diff_value v, const char *after)
{
    (void)fprintf(out, "%s%s",
                  unit == CHEMPI_DIFF_US ? chempi_text_put_time(v.x).text
                  : unit == CHEMPI_DIFF_BYTES_PER_US
                      ? chempi_text_put_bandwidth(v.x).text
                  : unit == CHEMPI_DIFF_BYTES ? chempi_text_put_size(v.len).text
                                              : v.word,
                  after);
}

static void value_json(struct chempi_json *j, const char *name,
                       enum chempi_diff_unit unit, union chempi_diff_value v)
{
    if (unit == CHEMPI_DIFF_WORD)
        chempi_json_text(j, name, v.word);
    else if (unit == CHEMPI_DIFF_BYTES)
        chempi_json_limit(j, name, v.len);
    else
        chempi_json_real(j, name, v.x);
}

static void figure_json(struct chempi_diff *d,
                        const struct chempi_diff_figure *f,
                        union chempi_diff_value before,
                        union chempi_diff_value after)
{
    static const char *const units[] = {[CHEMPI_DIFF_WORD] = NULL,
                                        [CHEMPI_DIFF_US] = "us",
                                        [CHEMPI_DIFF_BYTES_PER_US] = "MB/s",
                                        [CHEMPI_DIFF_BYTES] = "bytes"};
    struct chempi_json *j = open_json(d, f->network ? "figure" : "forwarding");

    if (f->network) {
        chempi_json_text(j, "network", f->network);
        chempi_json_text(j, "protocol", f->protocol);
    }
    chempi_json_text(j, "name", f->name);
    chempi_json_text(j, "unit", units[f->unit]);
    value_json(j, "before", f->unit, before);
    value_json(j, "after", f->unit, after);
    chempi_json_close(j);
}

void chempi_diff_print_figure(struct chempi_diff *d,
                              const struct chempi_diff_figure *f,
                              union chempi_diff_value before,
                              union chempi_diff_value after)
{
    d->found++;
    if (d->json) {
        figure_json(d, f, before, after);
        return;
    }
    if (f->network)
        (void)fprintf(d->out, "network %s: %s: ", f->network, f->protocol);
    else
        (void)fprintf(d->out, "forwarding: ");
    (void)fprintf(d->out, "%s ", f->name);
    print_value(d->out, f->unit, before, " -> ");
    print_value(d->out, f->unit, after, "\n");
}

/* ---- ways --------------------------------------------------------------- */

static void print_head(const struct chempi_diff *d, struct chempi_diff_ends *e)
{
    char source[NAMES_LEN];
    char target[NAMES_LEN];

    if (e->is_told)
        return;
    e->is_told = true;
    chempi_fold_sorted(e->from->names, e->from->count, source, sizeof(source));
    if (!e->to) {
        (void)fprintf(d->out, "ways inside %s\n", source);
        return;
    }
    chempi_fold_sorted(e->to->names, e->to->count, target, sizeof(target));
    (void)fprintf(d->out, "ways from %s to %s\n", source, target);
}

static void stretch_json(const struct chempi_diff *d,
                         const struct chempi_diff_stretch *s, uint64_t to_len,
                         const struct chempi_diff_ends *e)
{
    struct chempi_json *j = open_json(d, "ways");

    chempi_json_texts(j, e->to ? "from" : "inside", e->from->names,
                      e->from->count);
    if (e->to)
        chempi_json_texts(j, "to", e->to->names, e->to->count);
    chempi_json_number(j, "min_bytes", s->from_len);
    chempi_json_limit(j, "max_bytes", to_len);
    way_json(j, "before", d->a, s->x);
    way_json(j, "after", d->b, s->y);
    chempi_json_close(j);
}

void chempi_diff_print_stretch(struct chempi_diff *d,
                               const struct chempi_diff_stretch *s,
                               uint64_t to_len, struct chempi_diff_ends *e)
{
    d->found++;
    if (d->json) {
        stretch_json(d, s, to_len, e);
        return;
    }
    print_head(d, e);
    (void)fprintf(d->out, "  %s .. %s: %s\n    -> %s\n",
                  chempi_text_put_size(s->from_len).text,
                  chempi_text_put_size(to_len).text, s->before, s->after);
}
