/* SPDX-License-Identifier: BSD-3-Clause */
/* From the first world to further ones; see inherit.h. */
#define _GNU_SOURCE /* strsep */
#include "chempid/worlds/inherit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "chempid/hosts/hosts.h"
#include "chempid/hosts/process_count_range.h"
#include "chempid/job/program.h"
#include "chempid/job/strings.h"
#include "common/control/client.h"

/* ---- options ------------------------------------------------------------- */

void chempi_inherit_write(const struct chempi_options *opt,
                          struct chempi_writer *w)
{
    /* A batch system says it again. */
    char *const *names = opt->has_allocation ? NULL : opt->names;
    const uint32_t count = chempi_strings_count(names);

    chempi_strings_write(names, w);
    for (uint32_t i = 0; i < count; i++)
        chempi_wire_put_u32(w, opt->slots ? opt->slots[i] : 0);
    chempi_strings_write(opt->pass, w);
    chempi_strings_write(opt->env, w);
    chempi_strings_write_optional(opt->tables, w);
    chempi_strings_write_optional(opt->dir, w);
    chempi_strings_write_optional(opt->via, w);
    chempi_strings_write_optional(opt->launcher, w);
    chempi_strings_write_optional(opt->cpu_set, w);
    chempi_wire_put_u32(w, opt->ppn);
    chempi_wire_put_u32(w, opt->bind);
    chempi_wire_put_u32(w, (uint32_t)opt->map);
    chempi_wire_put_u32(w, chempi_options_inherited(opt));
}

static void read_names(struct chempi_options *opt, struct chempi_reader *r)
{
    uint32_t count;

    opt->names = chempi_strings_read(&opt->pool, r);
    if (r->is_bad)
        return;
    count = chempi_strings_count(opt->names);
    if (count == 0) {
        opt->names = NULL;
        return;
    }
    opt->slots = chempi_pool_array(&opt->pool, count, sizeof(*opt->slots));
    r->is_bad |= !opt->slots;
    for (uint32_t i = 0; i < count && !r->is_bad; i++)
        opt->slots[i] = chempi_wire_get_u32(r);
}

int chempi_inherit_read(struct chempi_options *opt, struct chempi_reader *r)
{
    uint32_t map;
    int rc;

    *opt = (struct chempi_options){.stdin_rank = CHEMPI_STDIN_NONE};
    read_names(opt, r);
    opt->pass = chempi_strings_read(&opt->pool, r);
    opt->env = chempi_strings_read(&opt->pool, r);
    opt->tables = chempi_strings_read_optional(&opt->pool, r);
    opt->dir = chempi_strings_read_optional(&opt->pool, r);
    opt->via = chempi_strings_read_optional(&opt->pool, r);
    opt->launcher = chempi_strings_read_optional(&opt->pool, r);
    opt->cpu_set = chempi_strings_read_optional(&opt->pool, r);
    opt->ppn = chempi_wire_get_u32(r);
    opt->bind = chempi_wire_get_u32(r);
    map = chempi_wire_get_u32(r);
    chempi_options_inherit(opt, chempi_wire_get_u32(r));
    opt->map = (enum chempi_map)map;
    if (!r->is_bad && opt->bind < CHEMPI_BIND_LIST && map <= CHEMPI_MAP_LOAD)
        return 0;
    rc = opt->pool.error ? opt->pool.error : -EBADMSG;
    chempi_pool_fini(&opt->pool);
    return rc;
}

/* ---- programs ------------------------------------------------------------ */

static int out_of_memory(struct chempi_err *err)
{
    return chempi_err_set(err, -ENOMEM, "out of memory");
}

static const char *find_key(const struct chempi_spawn_app *app, const char *key)
{
    for (uint32_t i = 0; i < app->key_count; i++)
        if (strcmp(app->keys[i].key, key) == 0)
            return app->keys[i].value;
    return NULL;
}

static int copy_words(struct chempi_pool *pool,
                      const struct chempi_spawn_app *app,
                      struct chempi_program *program)
{
    program->argv =
        chempi_pool_array(pool, (size_t)app->argc + 1, sizeof(char *));
    if (!program->argv)
        return -ENOMEM;
    for (uint32_t i = 0; i < app->argc; i++) {
        program->argv[i] = chempi_pool_str(pool, app->argv[i]);
        if (!program->argv[i])
            return -ENOMEM;
    }
    return 0;
}

/* A program that "path" finds on this host is started by its whole name; else
 * it is looked for as any other. */
static int find_program(struct chempi_pool *pool,
                        const struct chempi_spawn_app *app,
                        struct chempi_program *program)
{
    const char *path = find_key(app, "path");
    char file[4096];

    if (!path || strchr(program->argv[0], '/'))
        return 0;
    if (!chempi_program_find(program->argv[0], program->wdir, path, file,
                             sizeof(file))) {
        program->path = chempi_pool_str(pool, path);
        return program->path ? 0 : -ENOMEM;
    }
    program->argv[0] = chempi_pool_str(pool, file);
    return program->argv[0] ? 0 : -ENOMEM;
}

/* One more line of program->env, which has room; value NULL: none. */
static int add_line(struct chempi_pool *pool, struct chempi_program *program,
                    uint32_t *n, const char *name, const char *value)
{
    const size_t len = strlen(name) + 1 + (value ? strlen(value) : 0) + 1;
    char *line = value ? chempi_pool_alloc(pool, len) : NULL;

    if (!value)
        return 0;
    if (!line)
        return -ENOMEM;
    (void)snprintf(line, len, "%s=%s", name, value);
    program->env[(*n)++] = line;
    return 0;
}

/* Lines NAME=VALUE of the key "env", and what the library is to do and
 * MPI_INFO_ENV to say. */
static int make_environment(struct chempi_pool *pool, const char *lines,
                            const char *errhandler,
                            struct chempi_program *program)
{
    char *text = chempi_pool_str(pool, lines ? lines : "");
    uint32_t count = 3;
    uint32_t n = 0;

    for (const char *s = text; s && *s; s++)
        count += *s == '\n';
    program->env = chempi_pool_array(pool, (size_t)count + 1, sizeof(char *));
    if (!text || !program->env)
        return -ENOMEM;
    for (char *line; (line = strsep(&text, "\n"));)
        if (strchr(line, '=') && *line != '=')
            program->env[n++] = line;
    return add_line(pool, program, &n, CHEMPI_COUNT_RANGE_ENV, program->soft) ||
                   add_line(pool, program, &n, CHEMPI_ERRHANDLER_ENV,
                            errhandler)
               ? -ENOMEM
               : 0;
}

static int check_soft(const struct chempi_program *program,
                      struct chempi_err *err)
{
    const char *wrong =
        program->soft ? chempi_count_range_check(program->soft) : NULL;

    if (wrong)
        return chempi_err_set(err, -EINVAL, "soft=%.200s: %s", program->soft,
                              wrong);
    if (program->soft &&
        chempi_count_range_largest(program->soft, program->count) == 0)
        return chempi_err_set(err, -EINVAL,
                              "soft=%.200s permits no number from 1 to %u",
                              program->soft, program->count);
    return 0;
}

/* In any case of letters, as all values of that key. */
static int check_errhandler(const char *name, struct chempi_err *err)
{
    const char *const *known = chempi_options_errhandlers;

    while (name && *known && strcasecmp(name, *known) != 0)
        known++;
    return *known ? 0
                  : chempi_err_set(err, -EINVAL,
                                   "mpi_initial_errhandler=%.200s: expected "
                                   "%s, %s or %s",
                                   name, chempi_options_errhandlers[0],
                                   chempi_options_errhandlers[1],
                                   chempi_options_errhandlers[2]);
}

static int make_program(struct chempi_options *opt,
                        const struct chempi_spawn_app *app,
                        struct chempi_program *program, struct chempi_err *err)
{
    const char *wdir = find_key(app, "wdir");
    const char *soft = find_key(app, "soft");
    const char *errhandler = find_key(app, "mpi_initial_errhandler");

    program->count = app->maxprocs;
    program->wdir = wdir ? chempi_pool_str(&opt->pool, wdir) : NULL;
    program->soft = soft ? chempi_pool_str(&opt->pool, soft) : NULL;
    if ((wdir && !program->wdir) || (soft && !program->soft) ||
        copy_words(&opt->pool, app, program) ||
        find_program(&opt->pool, app, program) ||
        make_environment(&opt->pool, find_key(app, "env"), errhandler, program))
        return out_of_memory(err);
    return check_soft(program, err) || check_errhandler(errhandler, err)
               ? -EINVAL
               : 0;
}

/* Ranks of all programs are mapped together, so all must say the same. */
static int check_host(const struct chempi_spawn_app *app, const char *before,
                      struct chempi_err *err)
{
    const char *host = find_key(app, "host");

    if (strcmp(host ? host : "", before) != 0)
        return chempi_err_set(err, -EINVAL,
                              "host=%.200s: the other programs of the call say "
                              "something else, which is not supported",
                              host ? host : "");
    return 0;
}

int chempi_inherit_programs(struct chempi_options *opt,
                            const struct chempi_spawn *spawn, uint32_t *app,
                            struct chempi_err *err)
{
    const char *host = find_key(&spawn->apps[0], "host");
    int rc = 0;

    opt->programs =
        chempi_pool_array(&opt->pool, spawn->app_count, sizeof(*opt->programs));
    *app = 0;
    if (!opt->programs)
        return out_of_memory(err);
    for (uint32_t i = 0; !rc && i < spawn->app_count; i++) {
        *app = i;
        opt->program_count = i + 1;
        rc = make_program(opt, &spawn->apps[i], &opt->programs[i], err);
        rc = rc ? rc : check_host(&spawn->apps[i], host ? host : "", err);
    }
    if (!rc && host && *host) {
        opt->host = chempi_pool_str(&opt->pool, host);
        rc = opt->host ? 0 : out_of_memory(err);
    }
    return rc;
}

/* ---- where they run ------------------------------------------------------ */

/* A node that was named, with its slots where no others are said. */
static int find_host(const struct chempi_options *opt, const char *host,
                     uint32_t *slots, struct chempi_err *err)
{
    for (uint32_t i = 0; opt->names[i]; i++) {
        if (strcmp(opt->names[i], host) != 0)
            continue;
        if (*slots == 0 && opt->slots)
            *slots = opt->slots[i];
        return 0;
    }
    return chempi_inherit_refuse(host, err);
}

int chempi_inherit_choose(struct chempi_options *opt, struct chempi_err *err)
{
    struct chempi_hosts hosts = {0};
    int rc;

    if (!opt->host)
        return 0;
    rc = chempi_hosts_list(&hosts, &opt->pool, opt->host, err);
    for (uint32_t i = 0; !rc && opt->names && i < hosts.count; i++)
        rc = find_host(opt, hosts.names[i], &hosts.slots[i], err);
    if (!rc && hosts.count) {
        opt->is_loose = !opt->names;
        opt->names = hosts.names;
        opt->slots = hosts.slots;
    }
    chempi_hosts_fini(&hosts);
    return rc;
}

int chempi_inherit_refuse(const char *host, struct chempi_err *err)
{
    return chempi_err_set(err, -ENXIO,
                          "host=%.200s: that is no node of the job", host);
}
