/* SPDX-License-Identifier: BSD-3-Clause */
/* Lost gateways and what they cut off; see gateway_failures.h. */
#include "chempid/launcher/gateway_failures.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "chempid/launcher/verdict.h"
#include "common/words/fold.h"

#define NAMED_MAX 8u    /* lost gateways that are named with their reason */
#define PAIRS_TEXT 260  /* bytes of pairs of nodes in words */
#define LOST_TEXT 240   /* bytes of lost gateways in words */
#define REASON_TEXT 120 /* bytes of one reason */
#define EFFECT_TEXT 480 /* bytes: what a lost gateway cuts off */

/* The sentence of chempi_gateway_failures_put(): what would help, which is
 * last, must not be cut off. */
#define WHO_TEXT 160
#define PUT_WORDS                                                              \
    "%s; no other way is left%s%s, and %.160s needs one; what would help: %s"
#define BETWEEN " between "

_Static_assert(sizeof(PUT_WORDS) + sizeof(BETWEEN) + LOST_TEXT + PAIRS_TEXT +
                       WHO_TEXT + CHEMPI_REACHABILITY_HINT_MAX <=
                   CHEMPI_VERDICT_CUT_MAX,
               "a sentence that is cut");

void chempi_gateway_failures_init(struct chempi_gateway_failures *f,
                                  const struct chempi_spec *spec)
{
    *f = (struct chempi_gateway_failures){.spec = spec};
}

void chempi_gateway_failures_fini(struct chempi_gateway_failures *f)
{
    chempi_pool_fini(&f->pool);
}

bool chempi_gateway_failures_note(struct chempi_gateway_failures *f,
                                  uint32_t proc, const char *why)
{
    const uint32_t i = proc - f->spec->size;
    const char *copy;

    if (proc < f->spec->size || proc >= chempi_spec_procs(f->spec))
        return false;
    if (!f->why)
        f->why = chempi_pool_array(&f->pool, f->spec->gateway_count,
                                   sizeof(*f->why));
    if (!f->why || f->why[i])
        return !f->why; /* without memory it is told, though not kept */
    copy = chempi_pool_str(&f->pool, why);
    f->why[i] = copy ? copy : "?";
    f->has_told = false;
    return true;
}

bool chempi_gateway_failures_is_lost(const struct chempi_gateway_failures *f,
                                     uint32_t proc)
{
    return f->why && proc >= f->spec->size &&
           proc < chempi_spec_procs(f->spec) && f->why[proc - f->spec->size];
}

void chempi_gateway_failures_cut(struct chempi_gateway_failures *f,
                                 uint32_t rank)
{
    if (!f->cuts)
        f->cuts = chempi_pool_array(&f->pool, f->spec->size, 1);
    if (f->cuts && rank < f->spec->size)
        f->cuts[rank] = 1; /* without memory its own words must do */
}

bool chempi_gateway_failures_is_cut(const struct chempi_gateway_failures *f,
                                    uint32_t rank)
{
    return f->cuts && rank < f->spec->size && f->cuts[rank];
}

static const char *node_of(const struct chempi_spec *spec, uint32_t gateway)
{
    return spec->node_names[spec->node_of_rank[spec->size + gateway]];
}

static bool is_usable(void *arg, const char *gateway)
{
    const struct chempi_gateway_failures *f = arg;

    for (uint32_t i = 0; i < f->spec->gateway_count; i++)
        if (strcmp(node_of(f->spec, i), gateway) == 0)
            return !f->why || !f->why[i];
    return false; /* not one of the job's */
}

static int find(const struct chempi_spec *spec,
                struct chempi_gateway_failures *f,
                struct chempi_reachability *out)
{
    const char *dir = spec->own_tables;
    const struct chempi_reachability_question q = {
        .nodes = (const char *const *)spec->node_names,
        .node_count = chempi_spec_first_spare(spec),
        .dirs = &dir,
        .dir_count = 1,
        .is_usable = f ? is_usable : NULL,
        .arg = f,
    };

    *out = (struct chempi_reachability){.pairs = 0};
    return dir ? chempi_reachability_find(&q, out) : 0;
}

void chempi_gateway_failures_effect(struct chempi_gateway_failures *f,
                                    char *buf, size_t len)
{
    struct chempi_reachability cuts;
    char pairs[PAIRS_TEXT];

    buf[0] = '\0';
    if (find(f->spec, f, &cuts))
        return; /* without memory the loss alone is told */
    chempi_reachability_put(&cuts, pairs, sizeof(pairs));
    if (cuts.pairs)
        (void)snprintf(buf, len, "; no other way is left" BETWEEN "%s", pairs);
    f->has_told = cuts.pairs > 0;
    chempi_reachability_fini(&cuts);
}

void chempi_gateway_failures_tell(struct chempi_gateway_failures *f,
                                  uint32_t node, uint32_t proc,
                                  enum chempi_fall how, const char *why,
                                  char *buf, size_t len)
{
    static const char *const words[] = {"lost", "lost", "drained", "lost",
                                        "in use again"};
    char effect[EFFECT_TEXT] = "";

    if (how == CHEMPI_FALL_LOST) {
        (void)chempi_gateway_failures_note(f, proc, why);
        chempi_gateway_failures_effect(f, effect, sizeof(effect));
    }
    (void)snprintf(buf, len, "the gateway on node %s is %s: %.300s%s",
                   f->spec->node_names[node], words[how], why, effect);
}

/* "the gateways on nodes g[0,1] are lost (g0: killed; g1: it exited)" */
static void put_lost(const struct chempi_gateway_failures *f, char *buf,
                     size_t len)
{
    const char *names[NAMED_MAX] = {NULL};
    char list[REASON_TEXT];
    uint32_t count = 0;
    uint32_t first = 0;
    size_t at;

    for (uint32_t i = 0; i < f->spec->gateway_count; i++) {
        if (!f->why[i])
            continue;
        first = count ? first : i;
        if (count < NAMED_MAX)
            names[count] = node_of(f->spec, i);
        count++;
    }
    chempi_fold_names(names, count < NAMED_MAX ? count : NAMED_MAX, list,
                      sizeof(list));
    if (count < 2) {
        (void)snprintf(buf, len,
                       "the gateway on node %.55s (process %u of the job) is "
                       "lost: %.*s",
                       list, f->spec->size + first, REASON_TEXT, f->why[first]);
        return;
    }
    (void)snprintf(buf, len, "the gateways on nodes %s%s are lost (", list,
                   count > NAMED_MAX ? " and others" : "");
    at = strlen(buf);
    for (uint32_t i = 0, n = 0; i < f->spec->gateway_count; i++) {
        if (!f->why[i] || at + REASON_TEXT > len || n >= NAMED_MAX)
            continue;
        (void)snprintf(buf + at, len - at, "%s%.40s: %.60s", n++ ? "; " : "",
                       node_of(f->spec, i), f->why[i]);
        at += strlen(buf + at);
    }
    (void)snprintf(buf + at, len - at, ")");
}

void chempi_gateway_failures_put(const struct chempi_gateway_failures *f,
                                 const char *who, char *buf, size_t len)
{
    struct chempi_gateway_failures now = *f;
    struct chempi_reachability cuts;
    char pairs[PAIRS_TEXT];
    char lost[LOST_TEXT];

    buf[0] = '\0';
    if (!f->why || find(f->spec, &now, &cuts))
        return;
    chempi_reachability_put(&cuts, pairs, sizeof(pairs));
    if (cuts.pairs) {
        put_lost(f, lost, sizeof(lost));
        (void)snprintf(buf, len, PUT_WORDS, lost, f->has_told ? "" : BETWEEN,
                       f->has_told ? "" : pairs, who, cuts.hint);
    }
    chempi_reachability_fini(&cuts);
}

int chempi_gateway_failures_check(const struct chempi_spec *spec,
                                  uint32_t *unseen, struct chempi_err *err)
{
    const uint32_t nodes = chempi_spec_first_spare(spec);
    struct chempi_reachability cuts;
    char pairs[PAIRS_TEXT];
    int rc = find(spec, NULL, &cuts);

    *unseen = 0;
    if (rc)
        return chempi_err_set(err, rc, "out of memory");
    if (cuts.unknown + 1 < nodes)
        *unseen = cuts.unknown;
    chempi_reachability_put(&cuts, pairs, sizeof(pairs));
    if (cuts.pairs)
        rc = chempi_err_set(err, -EHOSTUNREACH,
                            "no way leads between the nodes %s; what would "
                            "join them: %s",
                            pairs, cuts.hint);
    chempi_reachability_fini(&cuts);
    return rc;
}
