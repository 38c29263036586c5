/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading values of a description; see reader.h. */
#include "mdconfig/description/reader.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/control/client.h"
#include "common/words/size.h"
#include "mdconfig/description/text.h"

static int unknown_key(struct chempi_desc_reader *r,
                       const struct chempi_yaml_pair *pair, const char *what,
                       const struct chempi_reader_field *fields, size_t count)
{
    const char *words[32];
    const char *near;
    char list[512] = "";
    size_t at = 0;

    for (size_t i = 0; i < count; i++) {
        int n = snprintf(list + at, sizeof(list) - at, "%s%s", i ? ", " : "",
                         fields[i].name);

        words[i] = fields[i].name;
        if (n > 0 && at + (size_t)n < sizeof(list))
            at += (size_t)n;
    }
    near = chempi_text_suggest(pair->name, words, count);
    if (near)
        return chempi_yaml_fail(r->yaml, pair->key, r->err,
                                "expected a key of %s, found '%.40s'; did you "
                                "mean '%s'?",
                                what, pair->name, near);
    return chempi_yaml_fail(r->yaml, pair->key, r->err,
                            "expected a key of %s (%s), found '%.40s'", what,
                            list, pair->name);
}

static bool is_field(const struct chempi_reader_field *fields, size_t count,
                     const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(fields[i].name, name) == 0)
            return true;
    }
    return false;
}

int chempi_reader_fields(struct chempi_desc_reader *r, chempi_yaml_value value,
                         const char *what,
                         const struct chempi_reader_field *fields, size_t count,
                         void *target)
{
    struct chempi_yaml_pair *pairs;
    size_t n;
    int rc;

    rc = chempi_yaml_pairs(r->yaml, value, what, &r->scratch, &pairs, &n,
                           r->err);
    if (rc)
        return rc;
    for (size_t i = 0; i < n; i++) {
        if (!is_field(fields, count, pairs[i].name))
            return unknown_key(r, &pairs[i], what, fields, count);
    }
    for (size_t i = 0; i < count; i++) {
        const struct chempi_yaml_pair *pair =
            chempi_yaml_find(pairs, n, fields[i].name);

        if (!pair && fields[i].required)
            return chempi_yaml_fail(r->yaml, value, r->err,
                                    "expected the key '%s' in %s, found none",
                                    fields[i].name, what);
        rc = pair ? fields[i].read(r, pair->value, target) : 0;
        if (rc)
            return rc;
    }
    return 0;
}

/* ---- scalars ------------------------------------------------------------ */

int chempi_reader_text(struct chempi_desc_reader *r, chempi_yaml_value value,
                       const char *what, const char **out)
{
    if (chempi_yaml_kind_of(r->yaml, value) != CHEMPI_YAML_SCALAR)
        return chempi_yaml_expected(r->yaml, value, r->err, what);
    *out = chempi_yaml_text(r->yaml, value);
    return 0;
}

static bool is_name(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789._-";
    size_t len = strlen(name);

    return len > 0 && len < CHEMPI_NODE_NAME_MAX && name[0] != '.' &&
           name[0] != '-' && strspn(name, letters) == len;
}

int chempi_reader_check_name(struct chempi_desc_reader *r,
                             chempi_yaml_value value, const char *what,
                             const char *name)
{
    if (strcmp(name, "all") == 0)
        return chempi_yaml_fail(r->yaml, value, r->err,
                                "expected %s, found 'all', which means every "
                                "node",
                                what);
    if (is_name(name))
        return 0;
    return chempi_yaml_fail(r->yaml, value, r->err,
                            "expected %s (at most %d letters, digits, '.', "
                            "'_' and '-', not led by '.' or '-'), found "
                            "'%.80s'",
                            what, CHEMPI_NODE_NAME_MAX - 1, name);
}

int chempi_reader_pattern(struct chempi_desc_reader *r, chempi_yaml_value value,
                          const char *what, struct chempi_unfold *out)
{
    const char *text = "";
    const char *why = "";
    size_t at = 0;
    int rc = chempi_reader_text(r, value, what, &text);

    if (rc)
        return rc;
    rc = chempi_unfold_parse(text, strlen(text), out, &why, &at);
    if (rc)
        return chempi_yaml_fail(r->yaml, value, r->err,
                                "expected %s at character %zu of %s, found "
                                "'%.40s'",
                                why, at + 1, what, text + at);
    return 0;
}

int chempi_reader_size(struct chempi_desc_reader *r, chempi_yaml_value value,
                       uint64_t *out)
{
    const char *text = "";
    int rc = chempi_reader_text(r, value, "a size such as 16 KiB", &text);

    if (rc)
        return rc;
    rc = chempi_size_parse(text, UINT64_MAX, out);
    if (rc == -ENOTSUP)
        return chempi_yaml_fail(r->yaml, value, r->err,
                                "expected a size with a unit of %s, found "
                                "'%.40s'",
                                chempi_size_units, text);
    if (rc)
        return chempi_yaml_expected(r->yaml, value, r->err,
                                    "a size in whole bytes such as 16 KiB");
    return 0;
}

#define TIME_MAX_US 1e9
#define FIGURE_MAX 64 /* bytes of a figure without its spread */

/* The text of a figure, and its spread unless NULL. */
static int read_figure(struct chempi_desc_reader *r, chempi_yaml_value value,
                       const char *what, char text[FIGURE_MAX], double *spread)
{
    const char *whole = "";
    double ignored = 0;
    int rc = chempi_reader_text(r, value, what, &whole);

    if (rc)
        return rc;
    rc = chempi_text_split_spread(whole, text, FIGURE_MAX, &ignored);
    if (rc == -EINVAL)
        return chempi_yaml_expected(r->yaml, value, r->err,
                                    "a spread such as '± 4 %' behind the "
                                    "figure");
    if (rc || (ignored > 0 && !spread))
        return chempi_yaml_expected(r->yaml, value, r->err, what);
    if (spread)
        *spread = ignored;
    return 0;
}

int chempi_reader_time(struct chempi_desc_reader *r, chempi_yaml_value value,
                       bool positive, double *out, double *spread)
{
    char text[FIGURE_MAX] = "";
    double us;
    int rc = read_figure(r, value, "a time such as 12 us", text, spread);

    if (rc)
        return rc;
    rc = chempi_text_time(text, &us);
    if (rc == -ENOTSUP)
        return chempi_yaml_fail(r->yaml, value, r->err,
                                "expected a time with a unit of %s, found "
                                "'%.40s'",
                                chempi_text_time_units, text);
    if (rc)
        return chempi_yaml_expected(r->yaml, value, r->err,
                                    "a time such as 12 us");
    if (us > TIME_MAX_US || (positive && us < 1e-6))
        return chempi_yaml_expected(r->yaml, value, r->err,
                                    positive ? "a time above 0, at most "
                                               "1000 s"
                                             : "a time of at most 1000 s");
    *out = us;
    return 0;
}

int chempi_reader_bandwidth(struct chempi_desc_reader *r,
                            chempi_yaml_value value, double *out,
                            double *spread)
{
    char text[FIGURE_MAX] = "";
    double bw;
    int rc =
        read_figure(r, value, "a bandwidth such as 87.7 MB/s", text, spread);

    if (rc)
        return rc;
    rc = chempi_text_bandwidth(text, &bw);
    if (rc == -ENOTSUP)
        return chempi_yaml_fail(r->yaml, value, r->err,
                                "expected a bandwidth with a unit of %s, "
                                "found '%.40s'",
                                chempi_text_bandwidth_units, text);
    if (rc)
        return chempi_yaml_expected(r->yaml, value, r->err,
                                    "a bandwidth such as 87.7 MB/s");
    if (bw < 1e-6 || bw > 1e9)
        return chempi_yaml_expected(r->yaml, value, r->err,
                                    "a bandwidth from 1 B/s to 1 PB/s");
    *out = bw;
    return 0;
}

int chempi_reader_choice(struct chempi_desc_reader *r, chempi_yaml_value value,
                         const char *what, const char *const *words,
                         size_t count, size_t *out)
{
    const char *text = "";
    const char *near;
    int rc = chempi_reader_text(r, value, what, &text);

    if (rc)
        return rc;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(text, words[i]) == 0) {
            *out = i;
            return 0;
        }
    }
    near = chempi_text_suggest(text, words, count);
    if (near)
        return chempi_yaml_fail(r->yaml, value, r->err,
                                "expected %s, found '%.40s'; did you mean "
                                "'%s'?",
                                what, text, near);
    return chempi_yaml_expected(r->yaml, value, r->err, what);
}
