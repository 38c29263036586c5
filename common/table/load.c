/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading a node's table; see load.h. */
#define _GNU_SOURCE
#include "common/table/load.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/sys.h"
#include "common/fd/file.h"
#include "common/table/build.h"
#include "common/table/format.h"
#include "common/table/verify.h"

static int fail(struct chempi_err *err, int rc, const char *path)
{
    return chempi_err_set(err, rc, "%s: %s", path, chempi_err_name(rc));
}

static int read_open_file(int fd, const char *path, struct chempi_blob *out,
                          struct chempi_err *err)
{
    struct chempi_blob blob;
    struct stat st;
    int rc;

    if (fstat(fd, &st) != 0)
        return fail(err, -errno, path);
    if (!S_ISREG(st.st_mode))
        return chempi_err_set(err, -EBADMSG, "%s: not a regular file", path);
    if (st.st_size > (off_t)CHEMPI_TABLE_FILE_MAX)
        return chempi_err_set(err, -EFBIG,
                              "%s: larger than any connection table (limit "
                              "%u bytes)",
                              path, CHEMPI_TABLE_FILE_MAX);
    blob.len = (size_t)st.st_size;
    blob.data = chempi_sys->malloc(blob.len + 1);
    if (!blob.data)
        return fail(err, -ENOMEM, path);
    rc = chempi_file_read_all(fd, blob.data, blob.len);
    if (rc) {
        free(blob.data);
        return fail(err, rc == -EPIPE ? -EBADMSG : rc, path);
    }
    *out = blob;
    return 0;
}

static int read_file(const char *path, struct chempi_blob *out,
                     struct chempi_err *err)
{
    int fd = chempi_sys->open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
    int rc;

    if (fd < 0)
        return fail(err, -errno, path);
    rc = read_open_file(fd, path, out, err);
    (void)close(fd); /* only read */
    return rc;
}

/* A file name of the NODE part: plain characters only, so that it cannot
 * lead out of the directory. */
static bool is_file_name(const unsigned char *name)
{
    size_t len = strnlen((const char *)name, CHEMPI_NODE_FILE_LEN);

    if (len == 0 || len == CHEMPI_NODE_FILE_LEN || name[0] == '.')
        return false;
    for (size_t i = 0; i < len; i++) {
        unsigned char c = name[i];

        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '.' ||
              c == '-'))
            return false;
    }
    return true;
}

static int read_shared(const char *table_path, const unsigned char *name,
                       uint32_t kind, struct chempi_blob *out,
                       struct chempi_err *err)
{
    const char *slash = strrchr(table_path, '/');
    int dir_len = slash ? (int)(slash - table_path) + 1 : 0;
    char path[PATH_MAX];
    size_t part_len;
    int n;
    int rc;

    if (!is_file_name(name))
        return chempi_err_set(err, -EBADMSG,
                              "%s: damaged: no valid name of a shared part",
                              table_path);
    n = snprintf(path, sizeof(path), "%.*s%s/%s", dir_len, table_path,
                 CHEMPI_TABLE_SHARED_DIR, (const char *)name);
    if (n < 0 || (size_t)n >= sizeof(path))
        return fail(err, -ENAMETOOLONG, table_path);
    rc = read_file(path, out, err);
    if (rc == -ENOENT || rc == -ENOTDIR)
        return chempi_err_set(err, -ESTALE,
                              "%s names %s, which is missing; copy the "
                              "directory '%s' along with the tables, or "
                              "compile them with --alone",
                              table_path, path, CHEMPI_TABLE_SHARED_DIR);
    if (rc)
        return rc;
    rc = chempi_table_verify_part(out->data, out->len, kind, &part_len, err);
    if (rc) {
        (void)chempi_err_prefix(err, "%s", path);
        chempi_blob_fini(out);
    }
    return rc;
}

/* Node part, routes and directory in one piece; takes over `node`. */
static int join(const char *path, struct chempi_blob *node,
                struct chempi_err *err)
{
    struct chempi_blob routes = {.data = NULL};
    struct chempi_blob dir = {.data = NULL};
    unsigned char *image;
    int rc;

    rc = read_shared(path, node->data + CHEMPI_NODE_ROUTES_FILE,
                     CHEMPI_TABLE_PART_ROUTES, &routes, err);
    if (!rc)
        rc = read_shared(path, node->data + CHEMPI_NODE_DIR_FILE,
                         CHEMPI_TABLE_PART_DIRECTORY, &dir, err);
    if (!rc) {
        image =
            chempi_sys->realloc(node->data, node->len + routes.len + dir.len);
        if (image) {
            memcpy(image + node->len, routes.data, routes.len);
            memcpy(image + node->len + routes.len, dir.data, dir.len);
            node->data = image;
            node->len += routes.len + dir.len;
        } else {
            rc = fail(err, -ENOMEM, path);
        }
    }
    chempi_blob_fini(&routes);
    chempi_blob_fini(&dir);
    return rc;
}

static int load_once(const char *path, struct chempi_blob *node,
                     struct chempi_err *err)
{
    size_t part_len;
    int rc;

    rc = read_file(path, node, err);
    if (rc)
        return rc;
    rc = chempi_table_verify_part(node->data, node->len, CHEMPI_TABLE_PART_NODE,
                                  &part_len, err);
    if (rc)
        (void)chempi_err_prefix(err, "%s", path);
    else if (node->len == CHEMPI_NODE_LEN && part_len == CHEMPI_NODE_LEN)
        rc = join(path, node, err);
    if (rc)
        chempi_blob_fini(node);
    return rc;
}

int chempi_table_load(const char *path, void **data, size_t *len,
                      struct chempi_err *err)
{
    struct chempi_blob node = {.data = NULL};
    int rc = load_once(path, &node, err);

    /* A compilation that ran meanwhile has renamed new files into place and
     * removed the old shared ones: the second reading sees the new ones. */
    if (rc == -ESTALE) {
        rc = load_once(path, &node, err);
        if (!rc && err) /* the first words are void */
            *err = (struct chempi_err){.code = 0};
    }
    if (rc)
        return rc;
    *data = node.data;
    *len = node.len;
    return 0;
}
