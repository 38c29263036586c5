/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tables into files. A directory is written by one mdconfig at a time (a lock
 * on it), so temporary names can be fixed, and what a killed one left behind
 * is overwritten. Shared parts are named by their contents: new ones are in
 * place before any node's file that names them, old ones go last.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/sys.h"
#include "common/fd/file.h"
#include "common/table/crc32c.h"
#include "common/table/load.h"
#include "mdconfig/routes/compile.h"

#define ALONE_BYTES_MAX (16u << 20) /* of all tables together */
#define PART_NAME_MAX 32            /* bytes with the zero */
#define PART_SUFFIX ".part"

struct part {
    struct chempi_blob blob;
    char file[PART_NAME_MAX];
};

struct writing {
    const struct chempi_graph *graph;
    const char *dir;
    bool shared;
    struct part directory;
    struct part *routes;      /* [class] */
    struct chempi_names kept; /* names of the shared parts in use */
    struct chempi_compile_result *result;
    struct chempi_err *err;
};

static int fail(struct chempi_err *err, int rc, const char *path)
{
    return chempi_err_set(err, rc, "%s: %s", path, chempi_err_name(rc));
}

/* ---- one file ----------------------------------------------------------- */

/* Write parts one after the other to a new file. */
static int write_new(const char *path, const struct chempi_blob *const *parts,
                     size_t count)
{
    int fd =
        chempi_sys->open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    int rc = 0;

    if (fd < 0)
        return -errno;
    for (size_t i = 0; i < count && !rc; i++)
        rc = chempi_file_write_all(fd, parts[i]->data, parts[i]->len);
    if (close(fd) != 0 && !rc)
        rc = -errno;
    return rc;
}

/* dir/name, by way of dir/.name.new */
static int write_file(struct writing *w, const char *dir, const char *name,
                      const struct chempi_blob *const *parts, size_t count)
{
    char path[PATH_MAX];
    char fresh[PATH_MAX];
    int n = snprintf(path, sizeof(path), "%s/%s", dir, name);
    int m = snprintf(fresh, sizeof(fresh), "%s/.%s.new", dir, name);
    int rc;

    if (n < 0 || m < 0 || (size_t)n >= sizeof(path) ||
        (size_t)m >= sizeof(fresh))
        return fail(w->err, -ENAMETOOLONG, dir);
    rc = write_new(fresh, parts, count);
    if (!rc && rename(fresh, path) != 0)
        rc = -errno;
    if (!rc)
        return 0;
    (void)unlink(fresh); /* the first error is the one to tell */
    return fail(w->err, rc, path);
}

/* ---- parts -------------------------------------------------------------- */

static int make_parts(struct writing *w)
{
    const struct chempi_graph *g = w->graph;
    uint64_t total = 0;
    int rc = chempi_compile_directory(g->desc, &w->directory.blob, w->err);

    for (uint32_t c = 0; c < g->class_count && !rc; c++) {
        struct chempi_routes routes;
        size_t len;

        chempi_route_source(g, c, &routes);
        rc = chempi_compile_routes(g, &routes, &w->routes[c].blob, w->err);
        chempi_routes_fini(&routes);
        len = w->routes[c].blob.len + w->directory.blob.len + 128;
        total += (uint64_t)len * chempi_graph_size(g, c);
        if (len > w->result->table_len_max)
            w->result->table_len_max = len;
    }
    if (total > ALONE_BYTES_MAX)
        w->shared = true;
    return rc;
}

static void name_part(struct part *part, const char *kind, uint32_t number)
{
    (void)snprintf(part->file, sizeof(part->file), "%s-%u-%08x" PART_SUFFIX,
                   kind, number,
                   chempi_crc32c(part->blob.data, part->blob.len));
}

static int write_part(struct writing *w, const struct part *part)
{
    const struct chempi_blob *blob = &part->blob;
    char dir[PATH_MAX];
    int n = snprintf(dir, sizeof(dir), "%s/" CHEMPI_TABLE_SHARED_DIR, w->dir);

    if (n < 0 || (size_t)n >= sizeof(dir))
        return fail(w->err, -ENAMETOOLONG, w->dir);
    chempi_names_add(&w->kept, part->file, 1);
    return write_file(w, dir, part->file, &blob, 1);
}

static int write_parts(struct writing *w)
{
    const struct chempi_graph *g = w->graph;
    char dir[PATH_MAX];
    int n = snprintf(dir, sizeof(dir), "%s/" CHEMPI_TABLE_SHARED_DIR, w->dir);
    int rc;

    if (n < 0 || (size_t)n >= sizeof(dir))
        return fail(w->err, -ENAMETOOLONG, w->dir);
    if (mkdir(dir, 0755) != 0 && errno != EEXIST)
        return fail(w->err, -errno, dir);
    name_part(&w->directory, "nodes", g->desc->node_count);
    rc = write_part(w, &w->directory);
    for (uint32_t c = 0; c < g->class_count && !rc; c++) {
        name_part(&w->routes[c], "routes", c);
        rc = write_part(w, &w->routes[c]);
    }
    return rc;
}

/* Remove shared parts that no table names any more; best effort: what stays
 * behind is only unused. */
static void remove_old_parts(const struct writing *w)
{
    char path[PATH_MAX];
    DIR *stream;
    struct dirent *entry;

    (void)snprintf(path, sizeof(path), "%s/" CHEMPI_TABLE_SHARED_DIR, w->dir);
    stream = opendir(path);
    if (!stream)
        return;
    while ((entry = readdir(stream))) {
        const char *suffix = strrchr(entry->d_name, '.');

        if (suffix && strcmp(suffix, PART_SUFFIX) == 0 &&
            chempi_names_find(&w->kept, entry->d_name) == CHEMPI_NAMES_NONE)
            (void)unlinkat(dirfd(stream), entry->d_name, 0);
    }
    (void)closedir(stream);
    (void)rmdir(path); /* succeeds only when it is empty */
}

/* ---- nodes -------------------------------------------------------------- */

static int write_node(struct writing *w, uint32_t node)
{
    const struct chempi_desc_node *n = &w->graph->desc->nodes[node];
    const struct part *routes = &w->routes[n->node_class];
    struct chempi_blob head;
    const struct chempi_blob *const all[] = {&head, &routes->blob,
                                             &w->directory.blob};
    char name[PART_NAME_MAX + 64];
    int rc;

    rc = chempi_table_build_node(node, n->node_class, &routes->blob,
                                 &w->directory.blob,
                                 w->shared ? routes->file : NULL,
                                 w->shared ? w->directory.file : NULL, &head);
    if (rc)
        return fail(w->err, rc, n->name);
    (void)snprintf(name, sizeof(name), "%s" CHEMPI_TABLE_SUFFIX, n->name);
    rc = write_file(w, w->dir, name, all, w->shared ? 1 : 3);
    chempi_blob_fini(&head);
    return rc;
}

static int write_all_nodes(struct writing *w)
{
    int rc = w->shared ? write_parts(w) : 0;

    for (uint32_t i = 0; i < w->graph->desc->node_count && !rc; i++)
        rc = write_node(w, i);
    if (!rc)
        remove_old_parts(w);
    return rc;
}

/* Open and lock the directory; a descriptor or -errno. */
static int lock_dir(struct writing *w)
{
    int fd;
    int rc;

    if (mkdir(w->dir, 0755) != 0 && errno != EEXIST)
        return fail(w->err, -errno, w->dir);
    fd = chempi_sys->open(w->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (fd < 0)
        return fail(w->err, -errno, w->dir);
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        return fd;
    rc = -errno;
    (void)close(fd); /* nothing was written */
    if (rc == -EWOULDBLOCK)
        return chempi_err_set(w->err, -EBUSY,
                              "%s: another mdconfig writes there now", w->dir);
    return fail(w->err, rc, w->dir);
}

int chempi_compile_write(const struct chempi_graph *graph, const char *dir,
                         enum chempi_compile_layout layout,
                         struct chempi_compile_result *result,
                         struct chempi_err *err)
{
    struct chempi_compile_result made = {.table_count =
                                             graph->desc->node_count};
    struct writing w = {
        .graph = graph, .dir = dir, .result = &made, .err = err};
    int lock;
    int rc;

    w.routes = chempi_mem_get(graph->class_count, sizeof(*w.routes));
    rc = make_parts(&w);
    if (layout != CHEMPI_COMPILE_AUTO)
        w.shared = layout == CHEMPI_COMPILE_SHARED;
    made.shared = w.shared;
    if (!rc) {
        lock = lock_dir(&w);
        rc = lock < 0 ? lock : write_all_nodes(&w);
        if (lock >= 0)
            (void)close(lock); /* gives the lock back */
    }
    for (uint32_t c = 0; c < graph->class_count; c++)
        chempi_blob_fini(&w.routes[c].blob);
    free(w.routes);
    chempi_blob_fini(&w.directory.blob);
    chempi_names_fini(&w.kept);
    if (!rc)
        *result = made;
    return rc;
}
