/* SPDX-License-Identifier: BSD-3-Clause */
/* From the command line to the job's description; see plan.h. */
#define _GNU_SOURCE /* environ, get_current_dir_name */
#include "chempid/plan/plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chempid/hosts/gateways.h"
#include "chempid/hosts/process_count_range.h"
#include "chempid/job/namelist.h"
#include "chempid/job/strings.h"
#include "common/base/sys.h"
#include "common/containers/index.h"
#include "common/control/msg.h"
#include "common/host/cpus.h"

static int out_of_memory(struct chempi_err *err)
{
    return chempi_err_set(err, -ENOMEM, "out of memory");
}

/* ---- programs ------------------------------------------------------------ */

static char **copy_strings(struct chempi_spec *spec, char *const *list)
{
    size_t n = 0;
    char **copy;

    while (list[n])
        n++;
    copy = chempi_pool_array(&spec->pool, n + 1, sizeof(*copy));
    for (size_t i = 0; copy && i < n; i++) {
        copy[i] = chempi_pool_str(&spec->pool, list[i]);
        if (!copy[i])
            return NULL;
    }
    return copy;
}

/* Fewer ranks of a program than so many, down to the fewest it permits. */
static uint32_t reduce(const struct chempi_program *prog, uint32_t count,
                       uint32_t surplus)
{
    const uint32_t fit =
        surplus < count
            ? chempi_count_range_largest(prog->soft, count - surplus)
            : 0;

    return fit ? fit : chempi_count_range_smallest(prog->soft);
}

uint32_t chempi_plan_named_slots(const struct chempi_options *opt)
{
    uint64_t slots = 0;
    uint64_t silent = 0;

    for (size_t i = 0; opt->names && opt->slots && opt->names[i]; i++) {
        slots += opt->slots[i];
        silent += opt->slots[i] == 0;
    }
    slots += slots ? silent : 0;
    return slots < UINT32_MAX ? (uint32_t)slots : UINT32_MAX;
}

/* Ranks of a program that does not say: one; or, if it is the only one, as many
 * as the rankfile, --ppn on all nodes, or the slots that are named. */
static uint32_t default_count(const struct chempi_options *opt, uint64_t room)
{
    uint64_t count = opt->ppn ? room : chempi_plan_named_slots(opt);

    if (opt->program_count != 1)
        return 1;
    if (opt->rankfile)
        return opt->rankfile->count;
    if (count > CHEMPI_JOB_RANKS_MAX)
        return CHEMPI_JOB_RANKS_MAX + 1;
    return count ? (uint32_t)count : 1;
}

/*
 * How many ranks each program gets: what is asked for, or the largest number
 * below it that it permits (--soft). Where they have no room together, the last
 * programs that permit fewer ranks get fewer first.
 */
static int plan_counts(const struct chempi_options *opt, uint64_t room,
                       struct chempi_spec *spec, struct chempi_err *err)
{
    uint64_t total = 0;

    for (uint32_t i = 0; i < opt->program_count; i++) {
        const struct chempi_program *prog = &opt->programs[i];
        const uint32_t count =
            prog->count ? prog->count : default_count(opt, room);

        spec->apps[i].count =
            prog->soft ? chempi_count_range_largest(prog->soft, count) : count;
        total += spec->apps[i].count;
    }
    for (uint32_t i = opt->program_count; i-- > 0 && total > room;) {
        struct chempi_app *app = &spec->apps[i];
        const uint64_t surplus = total - room;

        if (!opt->programs[i].soft)
            continue;
        total -= app->count;
        app->count =
            reduce(&opt->programs[i], app->count,
                   surplus < UINT32_MAX ? (uint32_t)surplus : UINT32_MAX);
        total += app->count;
    }
    if (total > CHEMPI_JOB_RANKS_MAX)
        return chempi_err_set(err, -EINVAL, "a job has at most %u ranks",
                              CHEMPI_JOB_RANKS_MAX);
    return 0;
}

static int copy_program(struct chempi_spec *spec,
                        const struct chempi_program *from,
                        struct chempi_app *to)
{
    to->argv = copy_strings(spec, from->argv);
    to->env = copy_strings(spec, from->env);
    to->wdir = from->wdir ? chempi_pool_str(&spec->pool, from->wdir) : NULL;
    if (!to->argv || !to->env || (from->wdir && !to->wdir))
        return -ENOMEM;
    to->first_rank = spec->size;
    spec->size += to->count;
    return 0;
}

static int plan_programs(const struct chempi_options *opt, uint64_t room,
                         struct chempi_spec *spec, struct chempi_err *err)
{
    int rc;

    spec->apps =
        chempi_pool_array(&spec->pool, opt->program_count, sizeof(*spec->apps));
    if (!spec->apps)
        return out_of_memory(err);
    spec->app_count = opt->program_count;
    rc = plan_counts(opt, room, spec, err);
    if (rc)
        return rc;
    for (uint32_t i = 0; i < opt->program_count; i++)
        if (copy_program(spec, &opt->programs[i], &spec->apps[i]))
            return out_of_memory(err);
    if (opt->stdin_rank < CHEMPI_STDIN_NONE && opt->stdin_rank >= spec->size)
        return chempi_err_set(err, -EINVAL,
                              "--stdin %u: the job has ranks 0 to %u only",
                              opt->stdin_rank, spec->size - 1);
    spec->stdin_rank = opt->stdin_rank;
    return 0;
}

/* Files for output, and words before programs. */
static int plan_extras(const struct chempi_options *opt,
                       struct chempi_spec *spec, struct chempi_err *err)
{
    for (int i = 0; i < 2; i++) {
        if (!opt->files[i])
            continue;
        spec->files[i] = chempi_pool_str(&spec->pool, opt->files[i]);
        if (!spec->files[i])
            return out_of_memory(err);
    }
    if (opt->parent) {
        spec->parent = chempi_pool_str(&spec->pool, opt->parent);
        if (!spec->parent)
            return out_of_memory(err);
    }
    spec->wraps = chempi_pool_array(&spec->pool, (size_t)opt->wrap_count + 1,
                                    sizeof(*spec->wraps));
    if (!spec->wraps)
        return out_of_memory(err);
    for (uint32_t i = 0; i < opt->wrap_count; i++) {
        spec->wraps[i].ranks =
            chempi_pool_str(&spec->pool, opt->wraps[i].ranks);
        spec->wraps[i].argv = copy_strings(spec, opt->wraps[i].argv);
        if (!spec->wraps[i].ranks || !spec->wraps[i].argv)
            return out_of_memory(err);
        spec->wrap_count++;
    }
    return 0;
}

/* ---- environment --------------------------------------------------------- */

/* Ours to set, and never to be inherited from a job around this one. */
static bool is_ours(const char *assignment)
{
    static const char *const names[] = {CHEMPI_CONTROL_ENV "=",
                                        CHEMPI_CPUS_ENV "=",
                                        CHEMPI_HOST_CPUS_ENV "=",
                                        CHEMPI_HOST_SIZE_ENV "=",
                                        CHEMPI_COUNT_RANGE_ENV "=",
                                        CHEMPI_ERRHANDLER_ENV "=",
                                        CHEMPI_KINDS_ENV "=",
                                        "CHEMPI_RANK=",
                                        "CHEMPI_SIZE=",
                                        "CHEMPI_LOCAL_RANK=",
                                        "CHEMPI_LOCAL_SIZE=",
                                        "CHEMPI_NODE=",
                                        "CHEMPI_JOB="};

    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(names); i++)
        if (strncmp(assignment, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

/* Length of the name with "=". */
static size_t name_len(const char *assignment)
{
    const char *eq = strchr(assignment, '=');

    return eq ? (size_t)(eq - assignment) + 1 : strlen(assignment);
}

/* A list without duplicates: the last assignment of a name counts. */
static int set_variable(struct chempi_spec *spec, size_t *count,
                        const char *assignment)
{
    const size_t len = name_len(assignment);
    char *copy = chempi_pool_str(&spec->pool, assignment);
    size_t i = 0;

    if (!copy)
        return -ENOMEM;
    while (i < *count && strncmp(spec->env[i], assignment, len) != 0)
        i++;
    spec->env[i] = copy;
    *count += i == *count;
    return 0;
}

static int pass_variable(struct chempi_spec *spec, size_t *count,
                         const char *name)
{
    char *const *e;

    if (strchr(name, '='))
        return set_variable(spec, count, name);
    for (e = environ; *e; e++)
        if (strncmp(*e, name, strlen(name)) == 0 && (*e)[strlen(name)] == '=')
            return set_variable(spec, count, *e);
    return 0; /* not set here, so not set there */
}

static int plan_environment(const struct chempi_options *opt,
                            struct chempi_spec *spec, struct chempi_err *err)
{
    const size_t max = chempi_strings_count(environ) +
                       chempi_strings_count(opt->pass) +
                       chempi_strings_count(opt->env) + 1;
    size_t count = 0;
    int rc = 0;

    spec->env = chempi_pool_array(&spec->pool, max + 1, sizeof(char *));
    if (!spec->env)
        return out_of_memory(err);
    for (char *const *e = environ; *e && !opt->has_clean_env; e++) {
        if (is_ours(*e) || !strchr(*e, '='))
            continue;
        spec->env[count] = chempi_pool_str(&spec->pool, *e);
        rc = rc ? rc : spec->env[count++] ? 0 : -ENOMEM;
    }
    if (opt->has_clean_env) /* programs are found through it */
        rc = pass_variable(spec, &count, "PATH");
    for (char *const *e = opt->pass; !rc && *e; e++)
        rc = pass_variable(spec, &count, *e);
    for (char *const *e = opt->env; !rc && *e; e++)
        rc = set_variable(spec, &count, *e);
    if (!rc && opt->is_secure)
        rc = set_variable(spec, &count, "CHEMPI_TCP_SECURE=on");
    return rc ? out_of_memory(err) : 0;
}

static int plan_directories(const struct chempi_options *opt,
                            struct chempi_spec *spec, struct chempi_err *err)
{
    char *cwd = get_current_dir_name();
    char *tables = NULL;
    struct stat about;

    if (!cwd)
        return chempi_err_set(err, -errno,
                              "the working directory is not to be found: %s",
                              chempi_err_name(errno));
    spec->cwd = chempi_pool_str(&spec->pool, cwd);
    free(cwd);
    if (!spec->cwd)
        return out_of_memory(err);
    if (!opt->tables)
        return 0;
    tables = realpath(opt->tables, NULL); /* nodes work elsewhere */
    if (!tables)
        return chempi_err_set(err, -errno, "--network %s: %s", opt->tables,
                              chempi_err_name(errno));
    if (stat(tables, &about) == 0 && !S_ISDIR(about.st_mode)) {
        free(tables);
        return chempi_err_set(err, -ENOTDIR,
                              "--network %s: not a directory of tables; "
                              "compile the description: mdconfig compile -o "
                              "DIR %s, and name DIR",
                              opt->tables, opt->tables);
    }
    spec->tables = chempi_pool_str(&spec->pool, tables);
    free(tables);
    return spec->tables ? 0 : out_of_memory(err);
}

/* ---- places -------------------------------------------------------------- */

/* The first of several nodes on a host, by a table that is filled on the way.
 */
struct hosts {
    struct chempi_index index;
    const uint64_t *of; /* [node] */
};

static bool has_host(const void *elements, uint32_t number, const void *key)
{
    const struct hosts *h = elements;

    return h->of[number] == *(const uint64_t *)key;
}

/* Nodes must come in order. -ENOMEM. */
static int first_of_host(struct hosts *h, uint32_t node, uint32_t *first)
{
    const uint32_t hash = chempi_index_hash_number(h->of[node]);

    *first = chempi_index_find(&h->index, hash, has_host, h, &h->of[node]);
    if (*first != CHEMPI_INDEX_NONE)
        return 0;
    *first = node;
    return chempi_index_add(&h->index, hash, node) ? 0 : -ENOMEM;
}

/* Ranks of this job and others that stand before a node's on its host. */
static int plan_binding(const struct chempi_plan_node *nodes, uint32_t count,
                        const uint32_t *used, const uint32_t *number,
                        struct chempi_spec *spec)
{
    uint64_t *of = chempi_pool_array(&spec->pool, count, sizeof(*of));
    uint32_t *before = chempi_pool_array(&spec->pool, count, sizeof(*before));
    struct hosts h = {.of = of};
    int rc = of && before ? 0 : -ENOMEM;

    for (uint32_t i = 0; !rc && i < count; i++)
        of[i] = nodes[i].host;
    for (uint32_t i = 0; !rc && i < count; i++) {
        uint32_t first;

        rc = first_of_host(&h, i, &first);
        if (rc)
            break;
        if (used[i])
            spec->bind_offset[number[i]] = before[first] + nodes[i].busy;
        before[first] += nodes[i].busy + used[i];
    }
    chempi_index_fini(&h.index);
    return rc;
}

/* Ranks that are mapped to free slots start there only if they still are. */
static void plan_claims(const struct chempi_plan_node *nodes, uint32_t count,
                        const uint32_t *used, const uint32_t *number,
                        struct chempi_spec *spec)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct chempi_place_node *p = &nodes[i].place;

        if (used[i])
            spec->busy_max[number[i]] =
                p->is_shared && (uint64_t)used[i] + p->busy <= p->slots
                    ? p->slots - used[i]
                    : CHEMPI_BUSY_ANY;
    }
}

/* The hosts of the job's nodes. A gateway's that is not among `nodes` is taken
 * for the first one's: better too few cores than too many. */
static int find_hosts(const struct chempi_plan_node *nodes, uint32_t count,
                      struct chempi_spec *spec, uint64_t *hosts)
{
    const char **names = chempi_pool_array(&spec->pool, count, sizeof(*names));
    struct chempi_namelist list;

    for (uint32_t i = 0; names && i < count; i++)
        names[i] = nodes[i].name;
    if (!names || chempi_namelist_init(&list, names, count))
        return -ENOMEM;
    for (uint32_t n = 0; n < spec->node_count; n++) {
        const uint32_t at = chempi_namelist_find(&list, spec->node_names[n]);

        hosts[n] = nodes[at == CHEMPI_NAMELIST_NONE ? 0 : at].host;
    }
    chempi_namelist_fini(&list);
    return 0;
}

/* Which nodes of the job share a host. */
static int plan_hosts(const struct chempi_plan_node *nodes, uint32_t count,
                      struct chempi_spec *spec)
{
    uint64_t *of =
        chempi_pool_array(&spec->pool, spec->node_count, sizeof(*of));
    struct hosts h = {.of = of};
    int rc;

    spec->host_of_node =
        chempi_pool_array(&spec->pool, spec->node_count, sizeof(uint32_t));
    if (!of || !spec->host_of_node)
        return -ENOMEM;
    rc = find_hosts(nodes, count, spec, of);
    for (uint32_t n = 0; !rc && n < spec->node_count; n++)
        rc = first_of_host(&h, n, &spec->host_of_node[n]);
    chempi_index_fini(&h.index);
    return rc;
}

/* Leave out the nodes that got no rank. */
static int number_nodes(const struct chempi_plan_node *nodes, uint32_t count,
                        uint32_t *used, uint32_t *number,
                        struct chempi_spec *spec)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < spec->size; i++)
        used[spec->node_of_rank[i]]++;
    for (uint32_t i = 0; i < count; i++)
        if (used[i])
            number[i] = n++;
    spec->node_count = n;
    spec->node_names = chempi_pool_array(&spec->pool, n, sizeof(char *));
    spec->bind_offset = chempi_pool_array(&spec->pool, n, sizeof(uint32_t));
    spec->busy_max = chempi_pool_array(&spec->pool, n, sizeof(uint32_t));
    if (!spec->node_names || !spec->bind_offset || !spec->busy_max)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++) {
        if (!used[i])
            continue;
        spec->node_names[number[i]] =
            chempi_pool_str(&spec->pool, nodes[i].name);
        if (!spec->node_names[number[i]])
            return -ENOMEM;
    }
    for (uint32_t i = 0; i < spec->size; i++)
        spec->node_of_rank[i] = number[spec->node_of_rank[i]];
    plan_claims(nodes, count, used, number, spec);
    return plan_binding(nodes, count, used, number, spec);
}

static int plan_processors(const struct chempi_options *opt,
                           struct chempi_spec *spec)
{
    spec->bind = opt->rankfile ? CHEMPI_BIND_LIST : opt->bind;
    if (opt->cpu_set) {
        spec->cpu_set = chempi_pool_str(&spec->pool, opt->cpu_set);
        if (!spec->cpu_set)
            return -ENOMEM;
    }
    return opt->rankfile ? chempi_rankfile_copy(opt->rankfile, spec) : 0;
}

/* Where all nodes are this host: its own; 0: nobody knows. */
static uint32_t count_processors(const struct chempi_plan_node *nodes,
                                 uint32_t count)
{
    struct chempi_cpus cpus;

    for (uint32_t i = 0; i < count; i++)
        if (nodes[i].host != 0)
            return 0;
    return chempi_cpus_get(&cpus) ? 0 : chempi_cpus_count(&cpus);
}

static int plan_places(const struct chempi_options *opt,
                       const struct chempi_plan_node *nodes, uint32_t count,
                       struct chempi_spec *spec, struct chempi_err *err)
{
    struct chempi_place_node *places =
        chempi_pool_array(&spec->pool, count, sizeof(*places));
    const char **names = chempi_pool_array(&spec->pool, count, sizeof(*names));
    uint32_t *numbers =
        chempi_pool_array(&spec->pool, 2 * (size_t)count, sizeof(*numbers));
    uint64_t slots = 0;
    int rc;

    spec->node_of_rank =
        chempi_pool_array(&spec->pool, spec->size, sizeof(uint32_t));
    if (!places || !names || !numbers || !spec->node_of_rank)
        return out_of_memory(err);
    for (uint32_t i = 0; i < count; i++) {
        places[i] = nodes[i].place;
        names[i] = nodes[i].name;
        slots += places[i].slots;
    }
    rc = opt->fits_only ? chempi_place_check(places, names, count, spec->size,
                                             opt->ppn, err)
                        : 0;
    if (rc)
        return rc;
    rc = opt->rankfile
             ? chempi_rankfile_place(opt->rankfile, names, count, spec->size,
                                     spec->node_of_rank, err)
             : chempi_place_ranks(places, count, spec->size, opt->ppn, opt->map,
                                  spec->node_of_rank, err);
    if (rc)
        return rc;
    if (slots == 0)
        slots = count_processors(nodes, count);
    spec->universe_size = slots > spec->size ? (uint32_t)slots : spec->size;
    if (plan_processors(opt, spec))
        return out_of_memory(err);
    spec->want_stats = (opt->has_stats ? CHEMPI_STATS_TRAFFIC : 0) |
                       (opt->has_routes ? CHEMPI_STATS_ROUTES : 0);
    spec->shows_binding = opt->shows_binding;
    if (number_nodes(nodes, count, numbers, numbers + count, spec))
        return out_of_memory(err);
    return 0;
}

int chempi_plan_make(const struct chempi_options *opt,
                     const struct chempi_plan_node *nodes, uint32_t count,
                     const char *daemon_tables, struct chempi_spec *spec,
                     struct chempi_err *err)
{
    const uint64_t room =
        opt->ppn ? (uint64_t)opt->ppn * count : CHEMPI_JOB_RANKS_MAX;
    const char *tables;
    int rc = chempi_spec_init(spec, err);

    if (rc)
        return rc;
    spec->is_secure = opt->is_secure;
    spec->survives = opt->survives;
    spec->world = opt->world;
    rc = plan_programs(opt, room, spec, err);
    rc = rc ? rc : plan_extras(opt, spec, err);
    rc = rc ? rc : plan_environment(opt, spec, err);
    rc = rc ? rc : plan_directories(opt, spec, err);
    tables = spec->tables ? spec->tables : daemon_tables;
    rc = rc ? rc : plan_places(opt, nodes, count, spec, err);
    if (!rc && tables) {
        spec->own_tables = chempi_pool_str(&spec->pool, tables);
        rc = spec->own_tables ? chempi_gateways_plan(spec, tables, err)
                              : out_of_memory(err);
    }
    if (!rc && plan_hosts(nodes, count, spec))
        rc = out_of_memory(err);
    if (rc)
        chempi_spec_fini(spec);
    return rc;
}
