/* SPDX-License-Identifier: BSD-3-Clause */
/* The description of a job; see spec.h. */
#define _GNU_SOURCE /* getrandom */
#include "chempid/job/spec.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "chempid/job/pattern.h"
#include "chempid/job/strings.h"
#include "chempid/tree/nodes/budget.h"
#include "chempid/tree/nodes/members.h"
#include "common/base/sys.h"
#include "common/control/dynamic.h"
#include "common/control/msg.h"

/* Whoever knows a job's number can take it before the job does, on a node that
 * has not heard of that yet; what all see is made of it and does not tell it.
 */
void chempi_spec_name(uint64_t job, char id[CHEMPI_JOB_ID_MAX])
{
    uint8_t number[sizeof(job)];
    uint8_t digest[crypto_generichash_BYTES_MIN];

    for (size_t i = 0; i < sizeof(number); i++)
        number[i] = (uint8_t)(job >> (8 * i));
    (void)crypto_generichash(digest, sizeof(digest), number, sizeof(number),
                             NULL, 0); /* fails for wrong lengths only */
    (void)sodium_bin2hex(id, CHEMPI_JOB_ID_MAX, digest, sizeof(job));
}

int chempi_spec_init(struct chempi_spec *spec, struct chempi_err *err)
{
    uint8_t bytes[sizeof(spec->job) + sizeof(spec->secret) +
                  sizeof(spec->rank_key)];

    memset(spec, 0, sizeof(*spec));
    spec->memory_share = CHEMPI_BUDGET_NONE;
    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
        return chempi_err_set(err, -EIO, "the kernel gives no random bytes");
    memcpy(&spec->job, bytes, sizeof(spec->job));
    spec->job |= 1; /* never 0 */
    memcpy(spec->secret, bytes + sizeof(spec->job), sizeof(spec->secret));
    memcpy(spec->rank_key, bytes + sizeof(spec->job) + sizeof(spec->secret),
           sizeof(spec->rank_key));
    sodium_memzero(bytes, sizeof(bytes));
    chempi_spec_name(spec->job, spec->id);
    spec->uid = (uint32_t)geteuid();
    spec->gid = (uint32_t)getegid();
    return 0;
}

void chempi_spec_fini(struct chempi_spec *spec)
{
    chempi_pool_fini(&spec->pool);
    sodium_memzero(spec, sizeof(*spec)); /* its secrets */
}

const struct chempi_app *chempi_spec_app(const struct chempi_spec *spec,
                                         uint32_t rank)
{
    uint32_t i = 0;

    while (i + 1 < spec->app_count &&
           rank >= spec->apps[i].first_rank + spec->apps[i].count)
        i++;
    return &spec->apps[i];
}

char **chempi_spec_wrap(const struct chempi_spec *spec, uint32_t rank)
{
    for (uint32_t i = 0; i < spec->wrap_count; i++)
        if (chempi_pattern_has(spec->wraps[i].ranks, rank))
            return spec->wraps[i].argv;
    return NULL;
}

uint32_t chempi_spec_local_size(const struct chempi_spec *spec, uint32_t node)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < spec->size; i++)
        n += spec->node_of_rank[i] == node;
    return n;
}

uint32_t chempi_spec_readers(const struct chempi_spec *spec)
{
    if (spec->stdin_rank == CHEMPI_STDIN_NONE)
        return 0;
    return spec->stdin_rank == CHEMPI_STDIN_ALL ? spec->node_count : 1;
}

uint32_t chempi_spec_host_procs(const struct chempi_spec *spec, uint32_t node)
{
    const uint32_t host = spec->host_of_node[node];
    uint32_t n = 0;

    for (uint32_t i = 0; i < chempi_spec_procs(spec); i++)
        n += spec->host_of_node[spec->node_of_rank[i]] == host;
    return n;
}

uint32_t chempi_spec_host_nodes(const struct chempi_spec *spec, uint32_t node)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < spec->node_count; i++)
        n += spec->host_of_node[i] == spec->host_of_node[node];
    return n;
}

uint32_t chempi_spec_procs(const struct chempi_spec *spec)
{
    return spec->size + spec->gateway_count;
}

uint32_t chempi_spec_gateway(const struct chempi_spec *spec, uint32_t node)
{
    for (uint32_t i = spec->size; i < chempi_spec_procs(spec); i++)
        if (spec->node_of_rank[i] == node)
            return i;
    return CHEMPI_NODE_ANY;
}

uint32_t chempi_spec_first_spare(const struct chempi_spec *spec)
{
    uint32_t first = spec->node_count;
    uint32_t with_ranks = 0;

    for (uint32_t i = 0; i < spec->size; i++)
        if (spec->node_of_rank[i] >= with_ranks)
            with_ranks = spec->node_of_rank[i] + 1;
    while (first > with_ranks &&
           chempi_spec_gateway(spec, first - 1) != CHEMPI_NODE_ANY)
        first--;
    return first;
}

/* Of one node either all of the job is refused or nothing. A debugger wants
 * programs, and nothing is started anew under it. */
bool chempi_spec_is_held(const struct chempi_spec *spec)
{
    uint32_t nodes = 0;
    bool has_claims = false;

    for (uint32_t i = 0; i < spec->node_count; i++)
        has_claims |= spec->busy_max && spec->busy_max[i] != CHEMPI_BUSY_ANY;
    for (uint32_t i = 1; i < spec->size && has_claims; i++)
        nodes += spec->node_of_rank[i] != spec->node_of_rank[0];
    return nodes > 0 && !spec->is_debugged;
}

/* ---- writing ------------------------------------------------------------ */

/* What ranks alone are told, at the end of LAUNCH: their key, and the port of
 * their parents. */
static void write_secrets(const struct chempi_spec *spec, bool has_ranks,
                          struct chempi_writer *w)
{
    static const uint8_t zeros[CHEMPI_JOB_SECRET_BYTES];

    chempi_wire_put_raw(w, has_ranks ? spec->rank_key : zeros, sizeof(zeros));
    chempi_strings_write_optional(has_ranks ? spec->parent : NULL, w);
}

/* Its secrets, as they stand there, are as long as these. */
void chempi_spec_copy(const struct chempi_spec *spec, const uint8_t *bytes,
                      size_t len, bool has_ranks, struct chempi_writer *w)
{
    const size_t secrets = sizeof(spec->rank_key) + sizeof(uint32_t) + 1 +
                           (spec->parent ? strlen(spec->parent) : 0);

    chempi_wire_put_raw(w, bytes, len - secrets);
    write_secrets(spec, has_ranks, w);
}

void chempi_spec_write(const struct chempi_spec *spec, uint32_t node,
                       struct chempi_writer *w)
{
    chempi_wire_put_u32(w, CHEMPI_CONTROL_VERSION);
    chempi_wire_put_u64(w, spec->job);
    chempi_wire_put_str(w, spec->id);
    chempi_wire_put_raw(w, spec->secret, sizeof(spec->secret));
    chempi_wire_put_u32(w, spec->uid);
    chempi_wire_put_u32(w, spec->gid);
    chempi_wire_put_u32(w, spec->node_count);
    for (uint32_t i = 0; i < spec->node_count; i++) {
        chempi_wire_put_str(w, spec->node_names[i]);
        chempi_wire_put_u32(w, spec->bind_offset[i]);
        chempi_wire_put_u32(w, spec->host_of_node[i]);
        chempi_wire_put_u32(w, spec->busy_max ? spec->busy_max[i]
                                              : CHEMPI_BUSY_ANY);
    }
    chempi_wire_put_u32(w, spec->size);
    for (uint32_t i = 0; i < spec->size; i++)
        chempi_wire_put_u32(w, spec->node_of_rank[i]);
    chempi_wire_put_u32(w, spec->gateway_count);
    for (uint32_t i = spec->size; i < chempi_spec_procs(spec); i++)
        chempi_wire_put_u32(w, spec->node_of_rank[i]);
    chempi_wire_put_u32(w, spec->app_count);
    for (uint32_t i = 0; i < spec->app_count; i++) {
        chempi_strings_write(spec->apps[i].argv, w);
        chempi_strings_write(spec->apps[i].env, w);
        chempi_strings_write_optional(spec->apps[i].wdir, w);
        chempi_wire_put_u32(w, spec->apps[i].count);
    }
    chempi_strings_write(spec->env, w);
    chempi_strings_write_optional(spec->cwd, w);
    chempi_strings_write_optional(spec->tables, w);
    chempi_wire_put_u32(w, spec->universe_size);
    chempi_wire_put_u32(w, spec->stdin_rank);
    chempi_wire_put_u32(w, spec->bind);
    chempi_wire_put_u8(w, spec->shows_binding);
    chempi_wire_put_u32(w, spec->want_stats);
    chempi_wire_put_u8(w, spec->is_debugged);
    chempi_wire_put_u8(w, spec->survives);
    chempi_strings_write_optional(spec->files[0], w);
    chempi_strings_write_optional(spec->files[1], w);
    chempi_wire_put_u32(w, spec->wrap_count);
    for (uint32_t i = 0; i < spec->wrap_count; i++) {
        chempi_wire_put_str(w, spec->wraps[i].ranks);
        chempi_strings_write(spec->wraps[i].argv, w);
    }
    chempi_strings_write_optional(spec->cpu_set, w);
    chempi_strings_write_optional(spec->rankfile, w);
    for (uint32_t i = 0; spec->rankfile && i < spec->size; i++) {
        chempi_wire_put_str(w, spec->slots_of_rank[i]);
        chempi_wire_put_u32(w, spec->line_of_rank[i]);
    }
    chempi_wire_put_u32(w, spec->world);
    chempi_wire_put_u8(w, spec->is_secure);
    write_secrets(
        spec, node == CHEMPI_NODE_ANY || chempi_spec_local_size(spec, node), w);
}

void chempi_spec_order(const struct chempi_spec *spec, struct chempi_writer *w)
{
    static const struct chempi_shell unknown;

    chempi_wire_put_u32(w, spec->node_count);
    for (uint32_t i = 0; i < spec->node_count; i++)
        chempi_wire_put_u32(w, i);
    chempi_shell_write(&unknown, w);
    chempi_spec_write(spec, CHEMPI_NODE_ANY, w);
}

/* ---- reading ------------------------------------------------------------ */

static char *read_parent(struct chempi_spec *spec, struct chempi_reader *r)
{
    char *s = chempi_strings_read_one(&spec->pool, r, CHEMPI_PORT_NAME_MAX);

    return s && *s ? s : NULL;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* A name is a file name, too, and a daemon is a child of a job's hub once. */
static void check_names(struct chempi_spec *spec, struct chempi_reader *r)
{
    const uint32_t n = spec->node_count;
    char **sorted;

    for (uint32_t i = 0; i < n && !r->is_bad; i++)
        r->is_bad = !chempi_members_is_name(spec->node_names[i]);
    if (r->is_bad)
        return;
    sorted = chempi_sys->calloc(n, sizeof(*sorted));
    if (!sorted) {
        r->is_bad = true;
        return;
    }
    memcpy(sorted, spec->node_names, n * sizeof(*sorted));
    qsort(sorted, n, sizeof(*sorted), compare_names);
    for (uint32_t i = 1; i < n; i++)
        r->is_bad |= strcmp(sorted[i - 1], sorted[i]) == 0;
    free(sorted);
}

static void read_nodes(struct chempi_spec *spec, struct chempi_reader *r)
{
    const uint32_t n = chempi_wire_get_count(r, CHEMPI_JOB_NODES_MAX, 17);

    spec->node_names = chempi_pool_array(&spec->pool, n, sizeof(char *));
    spec->bind_offset = chempi_pool_array(&spec->pool, n, sizeof(uint32_t));
    spec->host_of_node = chempi_pool_array(&spec->pool, n, sizeof(uint32_t));
    spec->busy_max = chempi_pool_array(&spec->pool, n, sizeof(uint32_t));
    if (!spec->node_names || !spec->bind_offset || !spec->host_of_node ||
        !spec->busy_max || n == 0) {
        r->is_bad = true;
        return;
    }
    spec->node_count = n;
    for (uint32_t i = 0; i < n; i++) {
        spec->node_names[i] =
            chempi_strings_read_one(&spec->pool, r, CHEMPI_NODE_NAME_MAX);
        spec->bind_offset[i] = chempi_wire_get_u32(r);
        spec->host_of_node[i] = chempi_wire_get_u32(r);
        spec->busy_max[i] = chempi_wire_get_u32(r);
        if (spec->host_of_node[i] > i)
            r->is_bad = true;
    }
    if (!r->is_bad)
        check_names(spec, r);
}

static bool read_places(struct chempi_spec *spec, const uint8_t *at,
                        uint32_t first, uint32_t count)
{
    struct chempi_reader r;

    chempi_wire_read(&r, at, (size_t)count * 4);
    for (uint32_t i = first; i < first + count; i++) {
        spec->node_of_rank[i] = chempi_wire_get_u32(&r);
        if (spec->node_of_rank[i] >= spec->node_count)
            return false;
    }
    return true;
}

static void read_ranks(struct chempi_spec *spec, struct chempi_reader *r)
{
    const uint32_t n = chempi_wire_get_count(r, CHEMPI_JOB_RANKS_MAX, 4);
    const uint8_t *ranks = chempi_wire_get_raw(r, (size_t)n * 4);
    const uint32_t more = chempi_wire_get_count(r, CHEMPI_JOB_NODES_MAX, 4);
    const uint8_t *gateways = chempi_wire_get_raw(r, (size_t)more * 4);

    if (r->is_bad || n == 0 || more > spec->node_count ||
        more > CHEMPI_SPEC_GATEWAYS_MAX) {
        r->is_bad = true;
        return;
    }
    spec->node_of_rank =
        chempi_pool_array(&spec->pool, (size_t)n + more, sizeof(uint32_t));
    spec->size = n;
    spec->gateway_count = more;
    if (!spec->node_of_rank || !read_places(spec, ranks, 0, n) ||
        !read_places(spec, gateways, n, more))
        r->is_bad = true;
}

static void read_apps(struct chempi_spec *spec, struct chempi_reader *r)
{
    const uint32_t n = chempi_wire_get_count(r, CHEMPI_SPEC_APPS_MAX, 17);
    uint32_t first = 0;

    spec->apps = chempi_pool_array(&spec->pool, n, sizeof(*spec->apps));
    if (!spec->apps) {
        r->is_bad = true;
        return;
    }
    spec->app_count = n;
    for (uint32_t i = 0; i < n && !r->is_bad; i++) {
        struct chempi_app *app = &spec->apps[i];

        app->argv = chempi_strings_read(&spec->pool, r);
        app->env = chempi_strings_read(&spec->pool, r);
        app->wdir = chempi_strings_read_optional(&spec->pool, r);
        app->first_rank = first;
        app->count = chempi_wire_get_u32(r);
        if (r->is_bad || !app->argv[0] || app->count == 0 ||
            app->count > spec->size - first)
            r->is_bad = true;
        first += app->count;
    }
    if (first != spec->size)
        r->is_bad = true;
}

static void read_wraps(struct chempi_spec *spec, struct chempi_reader *r)
{
    const uint32_t n = chempi_wire_get_count(r, CHEMPI_SPEC_WRAPS_MAX, 9);

    spec->wraps = chempi_pool_array(&spec->pool, n + 1, sizeof(*spec->wraps));
    if (!spec->wraps)
        r->is_bad = true;
    for (uint32_t i = 0; i < n && !r->is_bad; i++) {
        struct chempi_wrap *wrap = &spec->wraps[i];

        wrap->ranks =
            chempi_strings_read_one(&spec->pool, r, CHEMPI_SPEC_STRING_MAX);
        wrap->argv = chempi_strings_read(&spec->pool, r);
        if (r->is_bad || !wrap->argv[0] ||
            !chempi_pattern_is_ranks(wrap->ranks))
            r->is_bad = true;
        spec->wrap_count = i + 1;
    }
}

static void read_head(struct chempi_spec *spec, struct chempi_reader *r)
{
    const uint8_t *secret;
    const char *id;

    if (chempi_wire_get_u32(r) != CHEMPI_CONTROL_VERSION)
        r->is_bad = true;
    spec->job = chempi_wire_get_u64(r);
    id = chempi_wire_get_str(r, sizeof(spec->id));
    memcpy(spec->id, id, strlen(id) + 1);
    secret = chempi_wire_get_raw(r, sizeof(spec->secret));
    if (secret)
        memcpy(spec->secret, secret, sizeof(spec->secret));
    spec->uid = chempi_wire_get_u32(r);
    spec->gid = chempi_wire_get_u32(r);
}

/* Users know a job by its id, daemons by its number: they must be one. */
static bool has_own_id(const struct chempi_spec *spec)
{
    char id[CHEMPI_JOB_ID_MAX];

    chempi_spec_name(spec->job, id);
    return strcmp(id, spec->id) == 0;
}

uint32_t chempi_spec_user(const struct chempi_reader *r)
{
    struct chempi_spec spec;
    struct chempi_reader ahead = *r;

    memset(&spec, 0, sizeof(spec));
    read_head(&spec, &ahead);
    return spec.uid;
}

static void read_slots(struct chempi_spec *spec, struct chempi_reader *r)
{
    spec->slots_of_rank =
        chempi_pool_array(&spec->pool, spec->size, sizeof(char *));
    spec->line_of_rank =
        chempi_pool_array(&spec->pool, spec->size, sizeof(uint32_t));
    r->is_bad |= !spec->slots_of_rank || !spec->line_of_rank;
    for (uint32_t i = 0; i < spec->size && !r->is_bad; i++) {
        spec->slots_of_rank[i] =
            chempi_strings_read_one(&spec->pool, r, CHEMPI_SPEC_STRING_MAX);
        spec->line_of_rank[i] = chempi_wire_get_u32(r);
    }
}

int chempi_spec_read(struct chempi_spec *spec, struct chempi_reader *r)
{
    return chempi_spec_read_for(spec, r, NULL);
}

int chempi_spec_read_for(struct chempi_spec *spec, struct chempi_reader *r,
                         struct chempi_purse *purse)
{
    const uint8_t *key;
    int rc;

    memset(spec, 0, sizeof(*spec));
    spec->pool.purse = purse;
    spec->memory_share = CHEMPI_BUDGET_NONE;
    read_head(spec, r);
    if (!r->is_bad)
        read_nodes(spec, r);
    if (!r->is_bad)
        read_ranks(spec, r);
    if (!r->is_bad)
        read_apps(spec, r);
    if (!r->is_bad)
        spec->env = chempi_strings_read(&spec->pool, r);
    spec->cwd = chempi_strings_read_optional(&spec->pool, r);
    spec->tables = chempi_strings_read_optional(&spec->pool, r);
    spec->universe_size = chempi_wire_get_u32(r);
    spec->stdin_rank = chempi_wire_get_u32(r);
    spec->bind = chempi_wire_get_u32(r);
    spec->shows_binding = chempi_wire_get_u8(r) != 0;
    spec->want_stats = chempi_wire_get_u32(r);
    spec->is_debugged = chempi_wire_get_u8(r) != 0;
    spec->survives = chempi_wire_get_u8(r) != 0;
    spec->files[0] = chempi_strings_read_optional(&spec->pool, r);
    spec->files[1] = chempi_strings_read_optional(&spec->pool, r);
    read_wraps(spec, r);
    spec->cpu_set = chempi_strings_read_optional(&spec->pool, r);
    spec->rankfile = chempi_strings_read_optional(&spec->pool, r);
    if (spec->rankfile && !r->is_bad)
        read_slots(spec, r);
    spec->world = chempi_wire_get_u32(r);
    spec->is_secure = chempi_wire_get_u8(r) != 0;
    key = chempi_wire_get_raw(r, sizeof(spec->rank_key));
    if (key)
        memcpy(spec->rank_key, key, sizeof(spec->rank_key));
    spec->parent = read_parent(spec, r);
    if (!r->is_bad && spec->job && has_own_id(spec) &&
        spec->bind <= CHEMPI_BIND_LIST &&
        (spec->bind == CHEMPI_BIND_LIST) == (spec->rankfile != NULL) &&
        (spec->stdin_rank < spec->size ||
         spec->stdin_rank >= CHEMPI_STDIN_NONE))
        return 0;
    rc = spec->pool.error ? spec->pool.error : -EBADMSG;
    chempi_spec_fini(spec);
    return rc;
}
