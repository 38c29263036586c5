/* SPDX-License-Identifier: BSD-3-Clause */
/* What the ranks of a node share; see share.h. */
#define _GNU_SOURCE /* memfd seals */
#include "common/control/share.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/base/sys.h"
#include "common/fd/file.h"
#include "common/table/build.h"
#include "common/table/load.h"
#include "common/table/table.h"

static const char *descriptor_hint(int code)
{
    if (code == -EMFILE)
        return "; raise the limit of open files ('ulimit -n', "
               "/etc/security/limits.conf) or use fewer ranks per node";
    if (code == -ENFILE)
        return "; raise fs.file-max or use fewer ranks on this host";
    return "";
}

static int make_region(struct chempi_share *s, struct chempi_err *err)
{
    const off_t len = (off_t)chempi_region_reserved(s->local_size);
    struct chempi_region_header *header;
    int rc;

    s->region_fd = chempi_sys->memfd_create("chempi-region", MFD_ALLOW_SEALING);
    if (s->region_fd < 0)
        return chempi_err_set(err, -errno,
                              "cannot create the shared region: %s%s",
                              chempi_err_name(errno), descriptor_hint(-errno));
    rc = chempi_sys->ftruncate(s->region_fd, len) < 0
             ? -errno
             : chempi_file_reserve(s->region_fd, 0, (uint64_t)len); /* S1 */
    if (!rc && fcntl(s->region_fd, F_ADD_SEALS, F_SEAL_SHRINK) < 0) /* S2 */
        rc = -errno;
    if (rc)
        return chempi_err_set(err, rc,
                              "cannot reserve %lld bytes of shared memory: "
                              "%s; free memory on this node or raise the "
                              "memory limit of the job's control group",
                              (long long)len, chempi_err_name(rc));
    s->map = chempi_sys->mmap(NULL, (size_t)len, PROT_READ | PROT_WRITE,
                              MAP_SHARED, s->region_fd, 0);
    if (s->map == MAP_FAILED) {
        s->map = NULL;
        return chempi_err_set(err, -errno, "cannot map the shared region: %s",
                              chempi_err_name(errno));
    }
    s->map_len = (uint64_t)len;
    header = s->map;
    header->version = CHEMPI_REGION_VERSION;
    header->local_size = s->local_size;
    header->magic = CHEMPI_REGION_MAGIC;
    return 0;
}

static int make_events(struct chempi_share *s, bool has_events,
                       struct chempi_err *err)
{
    s->wake_fds = chempi_sys->malloc(s->local_size * sizeof(int));
    if (!s->wake_fds)
        return chempi_err_set(err, -ENOMEM, "out of memory");
    for (uint32_t i = 0; i < s->local_size; i++)
        s->wake_fds[i] = -1;
    for (uint32_t i = 0; has_events && i < s->local_size; i++) {
        s->wake_fds[i] = chempi_sys->eventfd(0, EFD_NONBLOCK);
        if (s->wake_fds[i] < 0)
            return chempi_err_set(
                err, -errno, "cannot create a wake event: %s%s",
                chempi_err_name(errno), descriptor_hint(-errno));
    }
    return 0;
}

/* From the compiled tables; a whole job without any has tcp and shm. */
static int find_table(const struct chempi_share_nodes *nodes, void **data,
                      size_t *len, struct chempi_err *err)
{
    char path[4096];
    int n;

    if (!nodes->tables)
        return chempi_table_build_default(nodes->names, nodes->count,
                                          nodes->self, data, len, err);
    n = snprintf(path, sizeof(path), "%s/%s" CHEMPI_TABLE_SUFFIX, nodes->tables,
                 nodes->names[nodes->self]);
    if (n < 0 || (size_t)n >= sizeof(path))
        return chempi_err_set(err, -ENAMETOOLONG,
                              "the path of the tables is too long");
    n = chempi_table_load(path, data, len, err);
    if (n == -ENOENT || n == -ENOTDIR)
        return chempi_err_set(err, -EINVAL,
                              "%s is missing; compile a description that has "
                              "node %s: mdconfig compile -o DIR FILE.yaml",
                              path, nodes->names[nodes->self]);
    return n;
}

/* It must be this node's, and know every node of the job (S3). */
static int check_table(const struct chempi_share_nodes *nodes, const void *data,
                       size_t len, struct chempi_err *err)
{
    const char *name = nodes->names[nodes->self];
    struct chempi_table *table;
    const char *owner;
    int rc = chempi_table_open(data, len, &table, err);

    if (rc && nodes->tables)
        (void)chempi_err_prefix(err, "%.400s/%s" CHEMPI_TABLE_SUFFIX,
                                nodes->tables, name);
    if (rc)
        return rc;
    owner = chempi_table_node_name(table, chempi_table_self(table));
    if (nodes->tables && strcmp(owner, name) != 0)
        rc = chempi_err_set(err, -EINVAL,
                            "%.400s/%s" CHEMPI_TABLE_SUFFIX " is the table of "
                            "node %s; copy the one that mdconfig compile "
                            "wrote for node %s",
                            nodes->tables, name, owner, name);
    for (uint32_t i = 0; !rc && i < nodes->count; i++)
        if (chempi_table_find_node(table, nodes->names[i]) == CHEMPI_TABLE_NONE)
            rc = chempi_err_set(err, -ENOENT,
                                "the network description does not know node "
                                "%s; add it and run mdconfig compile",
                                nodes->names[i]);
    chempi_table_close(table);
    return rc;
}

static int seal_file(const char *name, const char *what, int *fd,
                     const void *data, size_t len, struct chempi_err *err)
{
    int rc;

    *fd = chempi_sys->memfd_create(name, MFD_ALLOW_SEALING);
    if (*fd < 0)
        return chempi_err_set(err, -errno, "cannot create a file for %s: %s%s",
                              what, chempi_err_name(errno),
                              descriptor_hint(-errno));
    rc = chempi_file_write_all(*fd, data, len);
    if (!rc &&
        fcntl(*fd, F_ADD_SEALS,
              F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
        rc = -errno;
    if (rc)
        return chempi_err_set(err, rc, "cannot store %s: %s", what,
                              chempi_err_name(rc));
    return 0;
}

static size_t names_len(const struct chempi_share_nodes *nodes)
{
    size_t len = 0;

    for (uint32_t i = 0; i < nodes->count; i++)
        len += strlen(nodes->names[i]) + 1;
    return len;
}

/* used has a place for each node. */
static void write_places(void *file, uint32_t *used,
                         const uint32_t *node_of_proc, uint32_t procs,
                         const struct chempi_share_nodes *nodes)
{
    uint32_t *places = file;
    char *name = (char *)file + chempi_share_places_len(procs);

    for (uint32_t i = 0; i < procs; i++) {
        places[i] = node_of_proc[i];
        places[procs + i] = used[places[i]]++;
    }
    for (uint32_t i = 0; i < nodes->count; i++)
        name = stpcpy(name, nodes->names[i]) + 1;
}

int chempi_share_set_places(struct chempi_share *s,
                            const uint32_t *node_of_proc, uint32_t procs,
                            const struct chempi_share_nodes *nodes,
                            struct chempi_err *err)
{
    const size_t len =
        (size_t)chempi_share_places_len(procs) + names_len(nodes);
    uint32_t *used = chempi_sys->calloc(nodes->count, sizeof(*used));
    void *file = chempi_sys->malloc(len);
    int rc = used && file ? 0 : chempi_err_set(err, -ENOMEM, "out of memory");

    if (!rc) {
        write_places(file, used, node_of_proc, procs, nodes);
        rc = seal_file("chempi-places", "the places of ranks", &s->places_fd,
                       file, len, err);
    }
    free(file);
    free(used);
    return rc;
}

int chempi_share_set_table(struct chempi_share *s,
                           const struct chempi_share_nodes *nodes,
                           struct chempi_err *err)
{
    void *data = NULL;
    size_t len = 0;
    int rc;

    if (nodes->count == 1 && !nodes->tables)
        return 0;
    rc = find_table(nodes, &data, &len, err);
    if (!rc)
        rc = check_table(nodes, data, len, err);
    if (!rc)
        rc = seal_file("chempi-table", "the connection table", &s->table_fd,
                       data, len, err);
    free(data);
    return rc;
}

int chempi_share_init(struct chempi_share *s, uint32_t local_size,
                      bool has_events, struct chempi_err *err)
{
    int rc;

    *s = (struct chempi_share){
        .local_size = local_size,
        .region_fd = -1,
        .table_fd = -1,
        .places_fd = -1,
    };
    rc = make_region(s, err);
    if (!rc)
        rc = make_events(s, has_events, err);
    if (rc)
        chempi_share_fini(s);
    return rc;
}

void chempi_share_fini(struct chempi_share *s)
{
    if (s->map)
        (void)chempi_sys->munmap(s->map, (size_t)s->map_len);
    chempi_file_close(s->region_fd);
    chempi_file_close(s->table_fd);
    chempi_file_close(s->places_fd);
    for (uint32_t i = 0; s->wake_fds && i < s->local_size; i++)
        chempi_file_close(s->wake_fds[i]);
    free(s->wake_fds);
    *s =
        (struct chempi_share){.region_fd = -1, .table_fd = -1, .places_fd = -1};
}

void chempi_share_wake(const struct chempi_share *s, uint32_t local)
{
    struct chempi_wake *lines =
        (void *)((char *)s->map + CHEMPI_REGION_WAKE_OFFSET);

    (void)atomic_fetch_add_explicit(&lines[local].notices, 1,
                                    memory_order_release); /* W8 */
    /* This process does not rely on membarrier (W3): one fence per control
     * message costs nothing that matters. */
    chempi_wake_peer(&lines[local], s->wake_fds[local], false);
}
