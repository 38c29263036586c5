/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of ranks; see rankfile.h. */
#define _GNU_SOURCE /* strtok_r */
#include "chempid/hosts/rankfile.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "chempid/job/corelist.h"
#include "chempid/job/namelist.h"
#include "chempid/tree/nodes/members.h"
#include "common/base/number.h"
#include "common/control/msg.h"
#include "common/words/fold.h"
#include "common/words/linefile.h"

#define NAMES_TEXT 200 /* bytes of a list of nodes */
#define LINE "'rank N=NODE slot=CORES'"

struct reading {
    struct chempi_rankfile *file;
    struct chempi_pool *pool;
};

static int out_of_memory(struct chempi_err *err)
{
    return chempi_err_set(err, -ENOMEM, "out of memory");
}

/* "+n1" */
static bool is_number(const char *host)
{
    return host[0] == '+' && host[1] == 'n';
}

/* ---- lines --------------------------------------------------------------- */

/* "0=a" and "slot=1:0-2" */
static int take_rank(struct reading *r, char *place, const char *slots,
                     unsigned number, struct chempi_err *err)
{
    struct chempi_rankfile *f = r->file;
    char *host = strchr(place, '=');
    struct chempi_rankfile_rank *to;
    uint32_t rank = 0;
    int rc;

    if (!host || !host[1] || strncmp(slots, "slot=", 5) != 0)
        return chempi_err_set(err, -EINVAL,
                              "expected " LINE ", found 'rank %.60s %.60s'",
                              place, slots);
    *host++ = '\0';
    if (!chempi_number_parse32(place, 0, CHEMPI_JOB_RANKS_MAX - 1, &rank))
        return chempi_err_set(err, -EINVAL,
                              "rank %.60s: expected a number from 0 to %u",
                              place, CHEMPI_JOB_RANKS_MAX - 1);
    if (rank < f->count && f->ranks[rank].host)
        return chempi_err_set(err, -EINVAL,
                              "rank %u is named twice, in line %u before", rank,
                              f->ranks[rank].line);
    if (!is_number(host) && !chempi_members_is_name(host))
        return chempi_err_set(err, -EINVAL,
                              "rank %u: '%.60s' is no node name; expected one, "
                              "or +nK for node number K of the job",
                              rank, host);
    rc = chempi_corelist_each(slots + 5, NULL, NULL, err);
    if (rc)
        return chempi_err_prefix(err, "rank %u", rank);
    if (!CHEMPI_POOL_FIT(r->pool, f->ranks, f->cap, rank + 1))
        return out_of_memory(err);
    to = &f->ranks[rank];
    to->host = chempi_pool_str(r->pool, host);
    to->slots = chempi_pool_str(r->pool, slots + 5);
    to->line = number;
    f->count = rank < f->count ? f->count : rank + 1;
    return to->host && to->slots ? 0 : out_of_memory(err);
}

static int take_line(void *arg, char *line, unsigned number,
                     struct chempi_err *err)
{
    static const char blank[] = " \t\r";
    char *rest = NULL;
    const char *head = strtok_r(line, blank, &rest);
    char *place = head ? strtok_r(NULL, blank, &rest) : NULL;
    const char *slots = place ? strtok_r(NULL, blank, &rest) : NULL;
    const char *more = slots ? strtok_r(NULL, blank, &rest) : NULL;

    if (!head)
        return 0;
    if (strcmp(head, "rank") != 0 || !slots || more)
        return chempi_err_set(
            err, -EINVAL, "expected " LINE ", found '%.40s%s%.40s%s%.40s'",
            more ? more : head, !more && place ? " " : "",
            !more && place ? place : "", !more && slots ? " " : "",
            !more && slots ? slots : "");
    return take_rank(arg, place, slots, number, err);
}

int chempi_rankfile_read(struct chempi_rankfile *f, struct chempi_pool *pool,
                         const char *path, struct chempi_err *err)
{
    struct reading r = {.file = f, .pool = pool};
    uint32_t rank = 0;
    int rc;

    *f = (struct chempi_rankfile){.path = path};
    rc = chempi_linefile_each(path, "ranks", take_line, &r, err);
    if (rc)
        return rc;
    while (rank < f->count && f->ranks[rank].host)
        rank++;
    if (f->count == 0)
        return chempi_err_set(
            err, -EINVAL, "%s names no rank; expected lines of " LINE, path);
    if (rank < f->count)
        return chempi_err_set(
            err, -EINVAL, "%s names rank %u (line %u) and not rank %u", path,
            f->count - 1, f->ranks[f->count - 1].line, rank);
    return 0;
}

/* ---- nodes --------------------------------------------------------------- */

int chempi_rankfile_hosts(const struct chempi_rankfile *f,
                          struct chempi_hosts *hosts, struct chempi_pool *pool,
                          struct chempi_err *err)
{
    int rc = 0;

    *hosts = (struct chempi_hosts){0};
    for (uint32_t i = 0; i < f->count; i++)
        if (is_number(f->ranks[i].host))
            return 0;
    for (uint32_t i = 0; !rc && i < f->count; i++) {
        const char *host = f->ranks[i].host;
        uint32_t k = chempi_hosts_find(hosts, host);

        if (k == CHEMPI_INDEX_NONE) {
            k = hosts->count;
            rc = chempi_hosts_add(hosts, pool, host, err);
        }
        if (rc)
            return chempi_err_prefix(err, "%s:%u", f->path, f->ranks[i].line);
        hosts->slots[k]++;
    }
    return 0;
}

/* count: there is no such one. */
static uint32_t find_node(const struct chempi_namelist *names, const char *host,
                          uint32_t count)
{
    uint32_t n = 0;

    if (is_number(host))
        return chempi_number_parse32(host + 2, 0, count - 1, &n) ? n : count;
    n = chempi_namelist_find(names, host);
    if (n != CHEMPI_NAMELIST_NONE)
        return n;
    return count == 1 && strcmp(host, "localhost") == 0 ? 0 : count;
}

int chempi_rankfile_place(const struct chempi_rankfile *f,
                          const char *const *names, uint32_t count,
                          uint32_t size, uint32_t *node_of_rank,
                          struct chempi_err *err)
{
    struct chempi_namelist list;
    char text[NAMES_TEXT];
    int rc;

    if (size != f->count)
        return chempi_err_set(err, -EINVAL,
                              "%s names ranks 0 to %u, and the job has %u "
                              "rank%s: expected a line for each",
                              f->path, f->count - 1, size, size > 1 ? "s" : "");
    rc = chempi_namelist_init(&list, names, count);
    if (rc)
        return out_of_memory(err);
    for (uint32_t i = 0; !rc && i < size; i++) {
        const struct chempi_rankfile_rank *r = &f->ranks[i];

        node_of_rank[i] = find_node(&list, r->host, count);
        if (node_of_rank[i] < count)
            continue;
        chempi_fold_sorted(names, count, text, sizeof(text));
        rc = chempi_err_set(err, -EINVAL,
                            "%s:%u: rank %u: the job has no node %.60s; "
                            "expected %s%s",
                            f->path, r->line, i, r->host,
                            count > 1 ? "one of " : "", text);
    }
    chempi_namelist_fini(&list);
    return rc;
}

int chempi_rankfile_copy(const struct chempi_rankfile *f,
                         struct chempi_spec *spec)
{
    spec->rankfile = chempi_pool_str(&spec->pool, f->path);
    spec->slots_of_rank =
        chempi_pool_array(&spec->pool, spec->size, sizeof(char *));
    spec->line_of_rank =
        chempi_pool_array(&spec->pool, spec->size, sizeof(uint32_t));
    if (!spec->rankfile || !spec->slots_of_rank || !spec->line_of_rank)
        return -ENOMEM;
    for (uint32_t i = 0; i < spec->size; i++) {
        spec->slots_of_rank[i] =
            chempi_pool_str(&spec->pool, f->ranks[i].slots);
        if (!spec->slots_of_rank[i])
            return -ENOMEM;
        spec->line_of_rank[i] = f->ranks[i].line;
    }
    return 0;
}
