/* SPDX-License-Identifier: BSD-3-Clause */
/* Names with ranges; see pattern.h. */
#include "mdconfig/description/pattern.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NUMBER_DIGITS 9u /* so that numbers fit in 32 bits */

struct parser {
    const char *text;
    size_t at;
    const char *why;
    struct chempi_arena *arena;
    size_t name_len; /* of the longest name, so far */
};

static int bad(struct parser *p, const char *why)
{
    p->why = why;
    return -EINVAL;
}

static int parse_number(struct parser *p, uint32_t *value, size_t *digits)
{
    uint32_t v = 0;
    size_t n = 0;

    for (; p->text[p->at] >= '0' && p->text[p->at] <= '9'; p->at++, n++) {
        if (n == NUMBER_DIGITS)
            return bad(p, "a number of at most nine digits");
        v = v * 10 + (uint32_t)(p->text[p->at] - '0');
    }
    if (n == 0)
        return bad(p, "a number");
    *value = v;
    *digits = n;
    return 0;
}

/* "7" or "5-7" */
static int parse_run(struct parser *p, struct chempi_pattern_run *run,
                     size_t *widest)
{
    uint32_t first;
    uint32_t last;
    size_t digits;
    size_t last_digits;
    int rc = parse_number(p, &first, &digits);

    if (rc)
        return rc;
    last = first;
    last_digits = digits;
    if (p->text[p->at] == '-') {
        p->at++;
        rc = parse_number(p, &last, &last_digits);
        if (rc)
            return rc;
    }
    if (last < first)
        return bad(p, "a range that ascends");
    if (last - first >= CHEMPI_PATTERN_COUNT_MAX)
        return bad(p, "at most 1048576 names");
    *run = (struct chempi_pattern_run){
        .first = first, .count = last - first + 1, .width = (int)digits};
    *widest = digits > last_digits ? digits : last_digits;
    return 0;
}

static size_t count_commas(const char *text)
{
    size_t n = 0;

    for (; *text && *text != ']'; text++)
        n += *text == ',';
    return n;
}

/* What stands between brackets; the opening one has been read. */
static int parse_runs(struct parser *p, struct chempi_pattern_group *g)
{
    size_t most = 0;
    size_t widest;
    uint64_t count = 0;
    int rc;

    g->runs = chempi_arena_get(p->arena, count_commas(p->text + p->at) + 1,
                               sizeof(*g->runs));
    for (;;) {
        rc = parse_run(p, &g->runs[g->run_count], &widest);
        if (rc)
            return rc;
        count += g->runs[g->run_count++].count;
        most = widest > most ? widest : most;
        if (p->text[p->at] != ',')
            break;
        p->at++;
    }
    if (p->text[p->at] != ']')
        return bad(p, "',', '-' or ']'");
    p->at++;
    if (count > CHEMPI_PATTERN_COUNT_MAX)
        return bad(p, "at most 1048576 names");
    g->count = (uint32_t)count;
    p->name_len += most;
    return 0;
}

/* Text up to the next bracket or the end, copied. */
static const char *take_text(struct parser *p)
{
    size_t len = strcspn(p->text + p->at, "[]");
    char *copy = chempi_arena_get(p->arena, len + 1, 1);

    memcpy(copy, p->text + p->at, len);
    p->at += len;
    p->name_len += len;
    return copy;
}

static size_t count_groups(const char *text)
{
    size_t n = 0;

    for (; *text; text++)
        n += *text == '[';
    return n;
}

static int parse_groups(struct parser *p, struct chempi_pattern *out)
{
    uint64_t count = 1;
    int rc;

    out->groups = chempi_arena_get(p->arena, count_groups(p->text) + 1,
                                   sizeof(*out->groups));
    for (;;) {
        const char *text = take_text(p);

        if (p->text[p->at] == '\0') {
            out->suffix = text;
            break;
        }
        if (p->text[p->at] == ']')
            return bad(p, "'[' before ']'");
        p->at++;
        out->groups[out->group_count].prefix = text;
        rc = parse_runs(p, &out->groups[out->group_count]);
        if (rc)
            return rc;
        count *= out->groups[out->group_count++].count;
        if (count > CHEMPI_PATTERN_COUNT_MAX)
            return bad(p, "at most 1048576 names");
    }
    out->count = (uint32_t)count;
    return 0;
}

int chempi_pattern_parse(const char *text, struct chempi_arena *arena,
                         struct chempi_pattern *out, const char **why,
                         size_t *at)
{
    struct parser p = {.text = text, .arena = arena};
    struct chempi_pattern pattern = {.count = 0};
    int rc;

    if (strlen(text) > 4096)
        rc = bad(&p, "a shorter name");
    else if (!*text)
        rc = bad(&p, "a name");
    else
        rc = parse_groups(&p, &pattern);
    if (!rc && p.name_len >= CHEMPI_PATTERN_NAME_MAX)
        rc = bad(&p, "names of at most 255 characters");
    if (rc) {
        *why = p.why;
        *at = p.at;
        return rc;
    }
    *out = pattern;
    return 0;
}

static size_t put_member(const struct chempi_pattern_group *g, uint32_t i,
                         char *buf, size_t room)
{
    size_t run = 0;
    int n;

    while (i >= g->runs[run].count)
        i -= g->runs[run++].count;
    n = snprintf(buf, room, "%s%0*" PRIu32, g->prefix, g->runs[run].width,
                 g->runs[run].first + i);
    return n < 0 ? 0 : (size_t)n;
}

void chempi_pattern_name(const struct chempi_pattern *pattern, uint32_t i,
                         char buf[CHEMPI_PATTERN_NAME_MAX])
{
    uint32_t rest = pattern->count;
    size_t at = 0;

    for (size_t g = 0; g < pattern->group_count; g++) {
        rest /= pattern->groups[g].count;
        at += put_member(&pattern->groups[g], i / rest, buf + at,
                         CHEMPI_PATTERN_NAME_MAX - at);
        i %= rest;
    }
    (void)snprintf(buf + at, CHEMPI_PATTERN_NAME_MAX - at, "%s",
                   pattern->suffix);
}
