/* SPDX-License-Identifier: BSD-3-Clause */
/* Figures into the text of a description; see figures.h. */
#define _GNU_SOURCE
#include "mdconfig/measure/figures.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/compiler.h"
#include "mdconfig/description/edit.h"
#include "mdconfig/description/text.h"

#define FIGURE_MAX 96   /* bytes of "31.2 us ± 4 %" and of its key */
#define INDENT_MAX 256  /* bytes */
#define PRECISION 0.002 /* four digits, as figures are written */

enum { LATENCY, BANDWIDTH, COST, FIGURES };

static const char *const figure_names[FIGURES] = {"latency", "bandwidth",
                                                  "cost"};

struct putting {
    const struct chempi_desc *desc;
    const struct chempi_yaml *yaml;
    const char *text;
    size_t len;
    const struct chempi_figures *figures;
    size_t count;
    const char *newline; /* as the text ends its lines */
    struct chempi_edits edits;
    struct chempi_arena scratch;
    struct chempi_err *err;
};

/* ---- one figure in words ------------------------------------------------ */

static const struct chempi_fit_figure *figure_of(const struct chempi_fit *fit,
                                                 int which)
{
    return which == LATENCY ? &fit->latency
           : which == COST  ? &fit->cost
                            : &fit->bw;
}

/* What the measurement says, or, where it says nothing, what was assumed. */
static double value_of(const struct putting *p, const struct chempi_figures *f,
                       int which)
{
    const struct chempi_desc_protocol *old =
        &p->desc->networks[f->network].protocols[f->protocol];

    if (figure_of(&f->fit, which)->is_known)
        return figure_of(&f->fit, which)->value;
    return which == LATENCY ? old->latency_us
           : which == COST  ? old->cost_us
                            : old->bw_bytes_per_us;
}

/* "31.2 us ± 4 %", in the unit of what stood there before. */
static void put_figure(const struct putting *p, const struct chempi_figures *f,
                       int which, const char *before, char out[FIGURE_MAX])
{
    char model[CHEMPI_TEXT_QUANTITY_MAX * 2];
    struct chempi_text_quantity q;
    double value = value_of(p, f, which);
    double percent = figure_of(&f->fit, which)->spread * 100;
    double ignored;

    if (chempi_text_split_spread(before, model, sizeof(model), &ignored) != 0)
        model[0] = '\0';
    q = which == BANDWIDTH ? chempi_text_put_bandwidth_like(value, model)
                           : chempi_text_put_time_like(value, model);
    if (!figure_of(&f->fit, which)->is_known)
        (void)snprintf(out, FIGURE_MAX, "%s", q.text);
    else
        (void)snprintf(out, FIGURE_MAX, "%s \xc2\xb1 %.*f %%", q.text,
                       percent < 1 ? 1 : 0, fmin(percent, 999));
}

/* "latency: 31.2 us, ..." of the figures that are wanted, or of all. */
static char *put_list(struct putting *p, const struct chempi_figures *f,
                      const bool wanted[FIGURES], const char *between)
{
    char *list = chempi_arena_text(&p->scratch, "");

    for (int i = 0; i < FIGURES; i++) {
        char text[FIGURE_MAX];

        if (wanted && !wanted[i])
            continue;
        put_figure(p, f, i, "", text);
        list = chempi_arena_format(&p->scratch, "%s%s%s: %s", list,
                                   *list ? between : "", figure_names[i], text);
    }
    return list;
}

/* ---- places ------------------------------------------------------------- */

static void find_newline(struct putting *p)
{
    const char *end = memchr(p->text, '\n', p->len);

    p->newline = end && end > p->text && end[-1] == '\r' ? "\r\n" : "\n";
}

/* Where the line of a byte ends, before the characters that end it. */
static size_t line_end(const struct putting *p, size_t at)
{
    while (at < p->len && p->text[at] != '\n')
        at++;
    return at > 0 && at < p->len && p->text[at - 1] == '\r' ? at - 1 : at;
}

/* What stands before a key in its line, when that is nothing but blanks;
 * otherwise as many blanks. */
static const char *indent_of(struct putting *p, size_t key)
{
    char blanks[INDENT_MAX] = "";
    size_t start = key;
    size_t len;

    while (start > 0 && p->text[start - 1] != '\n')
        start--;
    len = key - start < sizeof(blanks) ? key - start : sizeof(blanks) - 1;
    memset(blanks, ' ', len);
    return chempi_arena_text(&p->scratch, blanks);
}

/* Pairs of a mapping whose form has been checked before. */
static int pairs_of(struct putting *p, chempi_yaml_value value,
                    struct chempi_yaml_pair **pairs, size_t *count)
{
    *count = 0;
    *pairs = NULL;
    if (chempi_yaml_kind_of(p->yaml, value) == CHEMPI_YAML_NULL)
        return 0;
    return chempi_yaml_pairs(p->yaml, value, "a mapping", &p->scratch, pairs,
                             count, p->err);
}

/* Add to a mapping behind the pair that ends last; its value is no block. */
static void add_behind(struct putting *p, chempi_yaml_value mapping,
                       const struct chempi_yaml_pair *pairs, size_t count,
                       const char *flow, const char *block)
{
    size_t last = 0;
    size_t key = 0;

    for (size_t i = 0; i < count; i++) {
        size_t from;
        size_t to;

        chempi_yaml_span(p->yaml, pairs[i].key, &from, &to);
        key = i == 0 ? from : key;
        last = to > last ? to : last;
        chempi_yaml_span(p->yaml, pairs[i].value, &from, &to);
        last = to > last ? to : last;
    }
    if (chempi_yaml_is_flow(p->yaml, mapping))
        chempi_edits_add(&p->edits, last, 0,
                         chempi_arena_format(&p->scratch, ", %s", flow));
    else
        chempi_edits_add(&p->edits, line_end(p, last), 0,
                         chempi_arena_format(&p->scratch, "%s%s%s", p->newline,
                                             indent_of(p, key), block));
}

/* ---- protocols ---------------------------------------------------------- */

/* An empty value after "key:", or a null, becomes a mapping. */
static void fill_empty(struct putting *p, const struct chempi_yaml_pair *pair,
                       const char *inside)
{
    const char *before = "";
    size_t from;
    size_t to;
    size_t key;

    chempi_yaml_span(p->yaml, pair->value, &from, &to);
    if (from == to) { /* wherever that is: what counts is the colon */
        chempi_yaml_span(p->yaml, pair->key, &key, &from);
        for (to = from; to < p->len && p->text[to] == ' '; to++)
            continue;
        before = to < p->len && p->text[to] == ':' ? " " : ": ";
        from = to = *before == ' ' ? to + 1 : from;
    }
    chempi_edits_add(
        &p->edits, from, to - from,
        chempi_arena_format(&p->scratch, "%s{ %s }", before, inside));
}

static int edit_protocol(struct putting *p, const struct chempi_yaml_pair *pair,
                         const struct chempi_figures *f)
{
    struct chempi_yaml_pair *pairs;
    bool missing[FIGURES];
    bool any = false;
    size_t count;
    size_t from;
    size_t to;
    int rc = pairs_of(p, pair->value, &pairs, &count);

    if (rc)
        return rc;
    if (chempi_yaml_kind_of(p->yaml, pair->value) == CHEMPI_YAML_NULL) {
        fill_empty(p, pair, put_list(p, f, NULL, ", "));
        return 0;
    }
    for (int i = 0; i < FIGURES; i++) {
        const struct chempi_yaml_pair *figure =
            chempi_yaml_find(pairs, count, figure_names[i]);
        char text[FIGURE_MAX];

        missing[i] = !figure;
        any = any || !figure;
        if (!figure || !figure_of(&f->fit, i)->is_known)
            continue;
        put_figure(p, f, i, chempi_yaml_text(p->yaml, figure->value), text);
        chempi_yaml_span(p->yaml, figure->value, &from, &to);
        chempi_edits_add(&p->edits, from, to - from, text);
    }
    if (any && count > 0) {
        size_t key;

        chempi_yaml_span(p->yaml, pairs[0].key, &key, &to);
        add_behind(p, pair->value, pairs, count, put_list(p, f, missing, ", "),
                   put_list(p, f, missing,
                            chempi_arena_format(&p->scratch, "%s%s", p->newline,
                                                indent_of(p, key))));
    } else if (any) {
        chempi_yaml_span(p->yaml, pair->value, &from, &to);
        chempi_edits_add(&p->edits, from, to - from,
                         chempi_arena_format(&p->scratch, "{ %s }",
                                             put_list(p, f, NULL, ", ")));
    }
    return 0;
}

/* ---- networks ----------------------------------------------------------- */

/* The new figures of a protocol, or those that it had, as nothing known. */
static struct chempi_figures figures_of(const struct putting *p,
                                        uint32_t network, size_t protocol)
{
    for (size_t i = 0; i < p->count; i++) {
        if (p->figures[i].network == network &&
            p->figures[i].protocol == protocol)
            return p->figures[i];
    }
    return (struct chempi_figures){.network = network, .protocol = protocol};
}

/* All protocols of a network, since a list of some would take the others away:
 * "NAME: { ... }" with something in between. */
static char *put_protocols(struct putting *p, uint32_t network,
                           const char *between)
{
    const struct chempi_desc_network *net = &p->desc->networks[network];
    char *list = chempi_arena_text(&p->scratch, "");

    for (size_t i = 0; i < net->protocol_count; i++) {
        const struct chempi_figures f = figures_of(p, network, i);

        list = chempi_arena_format(&p->scratch, "%s%s%s: { %s }", list,
                                   *list ? between : "", net->protocols[i].name,
                                   put_list(p, &f, NULL, ", "));
    }
    return list;
}

/* "protocols: ..." as a block under a key with this indentation. */
static char *put_block(struct putting *p, uint32_t network, const char *indent)
{
    const char *between =
        chempi_arena_format(&p->scratch, "%s%s  ", p->newline, indent);

    return chempi_arena_format(&p->scratch, "protocols:%s%s", between,
                               put_protocols(p, network, between));
}

static char *put_flow(struct putting *p, uint32_t network)
{
    return chempi_arena_format(&p->scratch, "protocols: { %s }",
                               put_protocols(p, network, ", "));
}

/* Type and device stand in one line each: what is missing goes behind them. */
static void add_protocols(struct putting *p, chempi_yaml_value mapping,
                          const struct chempi_yaml_pair *pairs, size_t count,
                          uint32_t network)
{
    struct chempi_yaml_pair near[2];
    size_t near_count = 0;
    size_t key;
    size_t to;

    for (size_t i = 0; i < count && near_count < CHEMPI_ARRAY_LEN(near); i++) {
        if (strcmp(pairs[i].name, "type") == 0 ||
            strcmp(pairs[i].name, "device") == 0)
            near[near_count++] = pairs[i];
    }
    chempi_yaml_span(p->yaml, near[0].key, &key, &to);
    add_behind(p, mapping, near, near_count, put_flow(p, network),
               put_block(p, network, indent_of(p, key)));
}

static int edit_network(struct putting *p, const struct chempi_yaml_pair *pair,
                        uint32_t network)
{
    const struct chempi_desc_network *net = &p->desc->networks[network];
    const struct chempi_yaml_pair *protocols;
    struct chempi_yaml_pair *pairs;
    size_t count;
    int rc = pairs_of(p, pair->value, &pairs, &count);

    if (rc)
        return rc;
    protocols = chempi_yaml_find(pairs, count, "protocols");
    if (!protocols) {
        add_protocols(p, pair->value, pairs, count, network);
        return 0;
    }
    rc = pairs_of(p, protocols->value, &pairs, &count);
    for (size_t i = 0; i < p->count && !rc; i++) {
        const struct chempi_figures *f = &p->figures[i];
        const struct chempi_yaml_pair *at;

        if (f->network != network)
            continue;
        at = chempi_yaml_find(pairs, count, net->protocols[f->protocol].name);
        rc = at ? edit_protocol(p, at, f)
                : chempi_yaml_fail(p->yaml, protocols->key, p->err,
                                   "expected protocol '%s', found it nowhere",
                                   net->protocols[f->protocol].name);
    }
    return rc;
}

/* A network that the description implies is written down before the others. */
static int add_network(struct putting *p, const struct chempi_yaml_pair *top,
                       const struct chempi_yaml_pair *first, uint32_t network)
{
    const struct chempi_desc_network *net = &p->desc->networks[network];
    const char *indent = "  ";
    const char *inner;
    size_t key;
    size_t to;

    if (first) {
        chempi_yaml_span(p->yaml, first->key, &key, &to);
        indent = indent_of(p, key);
        if (chempi_yaml_is_flow(p->yaml, top->value)) {
            chempi_edits_add(&p->edits, key, 0,
                             chempi_arena_format(
                                 &p->scratch, "%s: { type: %s, %s }, ",
                                 net->name, net->type, put_flow(p, network)));
            return 0;
        }
    }
    inner = chempi_arena_format(&p->scratch, "%s%s  ", p->newline, indent);
    inner = chempi_arena_format(
        &p->scratch, "%s:%stype: %s%s%s", net->name, inner, net->type, inner,
        put_block(p, network, inner + strlen(p->newline)));
    if (first) {
        chempi_edits_add(&p->edits, key, 0,
                         chempi_arena_format(&p->scratch, "%s%s%s", inner,
                                             p->newline, indent));
        return 0;
    }
    if (chempi_yaml_is_flow(p->yaml, chempi_yaml_root(p->yaml)) || top)
        return chempi_yaml_fail(p->yaml, top ? top->key : 0, p->err,
                                "expected networks to be calibrated, found "
                                "none");
    chempi_edits_add(
        &p->edits, p->len, 0,
        chempi_arena_format(
            &p->scratch, "%snetworks:%s%s%s%s",
            p->len > 0 && p->text[p->len - 1] != '\n' ? p->newline : "",
            p->newline, indent, inner, p->newline));
    return 0;
}

static const struct chempi_yaml_pair *
find_network(const struct putting *p, const struct chempi_yaml_pair *pairs,
             size_t count, const struct chempi_desc_network *net)
{
    for (size_t i = 0; i < count; i++) {
        if (chempi_yaml_line(p->yaml, pairs[i].key) == net->line &&
            chempi_yaml_column(p->yaml, pairs[i].key) == net->column)
            return &pairs[i];
    }
    return NULL;
}

static bool is_first_of_network(const struct putting *p, size_t figure)
{
    for (size_t i = 0; i < figure; i++) {
        if (p->figures[i].network == p->figures[figure].network)
            return false;
    }
    return true;
}

static int edit_all(struct putting *p)
{
    const struct chempi_yaml_pair *networks;
    struct chempi_yaml_pair *pairs;
    size_t count;
    int rc = pairs_of(p, chempi_yaml_root(p->yaml), &pairs, &count);

    if (rc)
        return rc;
    networks = chempi_yaml_find(pairs, count, "networks");
    rc = pairs_of(p, networks ? networks->value : 0, &pairs, &count);
    for (size_t i = 0; i < p->count && !rc; i++) {
        uint32_t network = p->figures[i].network;
        const struct chempi_yaml_pair *pair;

        if (!is_first_of_network(p, i))
            continue;
        pair = find_network(p, pairs, count, &p->desc->networks[network]);
        rc = pair ? edit_network(p, pair, network)
                  : add_network(p, networks, count ? pairs : NULL, network);
    }
    return rc;
}

/* ---- the result --------------------------------------------------------- */

static bool is_near(double a, double b)
{
    return fabs(a - b) <= PRECISION * fmax(a, b) + 0.001;
}

static bool is_same_protocol(const struct chempi_desc_protocol *old,
                             const struct chempi_desc_protocol *new,
                             const struct chempi_fit *fit)
{
    double latency_us = old->latency_us;
    double bw = old->bw_bytes_per_us;
    double cost_us = old->cost_us;

    if (fit) {
        latency_us = fit->latency.value;
        bw = fit->bw.is_known ? fit->bw.value : bw;
        cost_us = fit->cost.is_known ? fit->cost.value : cost_us;
    }
    return strcmp(old->name, new->name) == 0 && old->min_len == new->min_len &&
           old->max_len ==
               new->max_len &&is_near(latency_us, new->latency_us) &&
           is_near(cost_us, new->cost_us) && is_near(bw, new->bw_bytes_per_us);
}

/* What was put into the key of a network. */
static const struct chempi_fit *fit_of(const struct putting *p,
                                       const struct chempi_desc_network *net,
                                       size_t protocol)
{
    for (size_t i = 0; i < p->count; i++) {
        const struct chempi_desc_network *key =
            &p->desc->networks[p->figures[i].network];

        if (p->figures[i].protocol == protocol && key->line == net->line &&
            key->column == net->column)
            return &p->figures[i].fit;
    }
    return NULL;
}

static bool is_same_network(const struct putting *p,
                            const struct chempi_desc *new,
                            const struct chempi_desc_network *old)
{
    uint32_t at = chempi_names_find(&new->network_names, old->name);
    const struct chempi_desc_network *other = &new->networks[at];

    if (at == CHEMPI_NAMES_NONE || strcmp(old->type, other->type) != 0 ||
        strcmp(old->device, other->device) != 0 ||
        old->protocol_count != other->protocol_count)
        return false;
    for (size_t i = 0; i < old->protocol_count; i++) {
        if (!is_same_protocol(&old->protocols[i], &other->protocols[i],
                              fit_of(p, old, i)))
            return false;
    }
    return true;
}

/* The new text, read again, must differ in the figures alone. */
static int check_result(struct putting *p, const char *text, size_t len)
{
    struct chempi_desc new;
    bool is_same;
    int rc = chempi_desc_parse(p->desc->file, text, len, &new, p->err);

    if (rc)
        return chempi_err_prefix(p->err,
                                 "the figures cannot be put into %s; write "
                                 "the `protocols` of its networks in a "
                                 "plainer way",
                                 p->desc->file);
    is_same = new.node_count == p->desc->node_count &&new.network_count ==
              p->desc->network_count &&new.attachment_total ==
              p->desc->attachment_total;
    for (uint32_t i = 0; is_same && i < new.network_count; i++)
        is_same = is_same_network(p, &new, &p->desc->networks[i]);
    chempi_desc_fini(&new);
    if (is_same)
        return 0;
    return chempi_err_set(p->err, -EINVAL,
                          "the figures cannot be put into %s without changing "
                          "more than them; write the `protocols` of each "
                          "network for itself, without aliases",
                          p->desc->file);
}

static int shared_figure(struct putting *p, size_t where)
{
    size_t line = 1;

    for (size_t i = 0; i < where; i++)
        line += p->text[i] == '\n';
    return chempi_err_set(p->err, -EINVAL,
                          "%s:%zu: expected figures of one network, found "
                          "some that several share by an alias; write them "
                          "out for each",
                          p->desc->file, line);
}

int chempi_figures_put(const struct chempi_desc *desc, const char *text,
                       size_t len, const struct chempi_figures *figures,
                       size_t count, char **out, size_t *out_len,
                       struct chempi_err *err)
{
    struct putting p = {.desc = desc,
                        .text = text,
                        .len = len,
                        .figures = figures,
                        .count = count,
                        .err = err};
    struct chempi_yaml *yaml;
    char *made = NULL;
    size_t made_len = 0;
    size_t where = 0;
    int rc = chempi_yaml_parse(desc->file, text, len, &yaml, err);

    if (rc)
        return rc;
    p.yaml = yaml;
    find_newline(&p);
    rc = edit_all(&p);
    if (!rc) {
        made = chempi_edits_apply(&p.edits, text, len, &made_len, &where);
        rc = made ? check_result(&p, made, made_len) : shared_figure(&p, where);
    }
    chempi_edits_fini(&p.edits);
    chempi_arena_fini(&p.scratch);
    chempi_yaml_close(yaml);
    if (rc) {
        free(made);
        return rc;
    }
    *out = made;
    *out_len = made_len;
    return 0;
}
