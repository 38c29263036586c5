/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of a cluster that nobody described; see build.h. */
#include <errno.h>
#include <stdlib.h>

#include "common/base/sys.h"
#include "common/table/build.h"
#include "common/table/network_types.h"

enum { NETWORK_SMP = 0, NETWORK_DEFAULT = 1 };
#define OPEN_COST_LEN 1048576u /* where an open range states its cost */

static int build_directory(const char *const *names, uint32_t count,
                           struct chempi_blob *out, struct chempi_err *err)
{
    struct chempi_dir_builder *b = chempi_dir_builder_create();
    int rc;

    if (!b)
        return chempi_err_set(err, -ENOMEM, "no memory for a table");
    chempi_dir_builder_add_network(b, "smp", "smp", "shm");
    chempi_dir_builder_add_network(b, "default", "ethernet", "tcp");
    for (uint32_t i = 0; i < count; i++) {
        chempi_dir_builder_add_node(b, names[i], 0, 0, false);
        chempi_dir_builder_attach(b, NETWORK_SMP, NULL, NULL);
        chempi_dir_builder_attach(b, NETWORK_DEFAULT, NULL, NULL);
    }
    rc = chempi_dir_builder_finish(b, out, err);
    chempi_dir_builder_destroy(b);
    return rc;
}

/* The ranges of one device by its default figures. */
static int add_device(struct chempi_routes_builder *b, uint32_t network,
                      const char *name)
{
    const struct chempi_network_types_device *device =
        chempi_network_types_device_find(name);
    struct chempi_line lines[8];
    struct chempi_piece *pieces;
    size_t count;
    size_t n = device->protocol_count;
    int rc;

    if (n > CHEMPI_ARRAY_LEN(lines))
        return -E2BIG;
    for (size_t i = 0; i < n; i++)
        lines[i] =
            chempi_network_types_line(&device->protocols[i], (uint32_t)i);
    rc = chempi_lower_envelope(lines, n, &pieces, &count);
    if (rc)
        return rc;
    for (size_t i = 0; i < count; i++) {
        uint64_t at = i == count - 1 ? OPEN_COST_LEN : pieces[i].max_len;
        size_t best = pieces[i].line;

        chempi_routes_builder_add_range(b, pieces[i].max_len,
                                        chempi_line_at(&lines[best], at), 0, 1);
        chempi_routes_builder_add_stage(b, network, device->name,
                                        device->protocols[best].name, NULL, 0);
    }
    free(pieces);
    return 0;
}

static int build_routes(struct chempi_blob *out, struct chempi_err *err)
{
    struct chempi_routes_builder *b = chempi_routes_builder_create(0, 1);
    int rc;

    if (!b)
        return chempi_err_set(err, -ENOMEM, "no memory for a table");
    chempi_routes_builder_begin(b, 0);
    rc = add_device(b, NETWORK_DEFAULT, "tcp");
    chempi_routes_builder_begin(b, 1);
    if (!rc)
        rc = add_device(b, NETWORK_SMP, "shm");
    if (!rc)
        rc = chempi_routes_builder_finish(b, out, err);
    else
        (void)chempi_err_set(err, rc, "no memory for a table");
    chempi_routes_builder_destroy(b);
    return rc;
}

int chempi_table_build_default(const char *const *names, uint32_t count,
                               uint32_t self, void **data, size_t *len,
                               struct chempi_err *err)
{
    struct chempi_blob dir = {.data = NULL};
    struct chempi_blob routes = {.data = NULL};
    struct chempi_blob image;
    int rc;

    if (self >= count)
        return chempi_err_set(err, -EINVAL,
                              "a table needs its own node among the nodes");
    rc = build_directory(names, count, &dir, err);
    if (!rc)
        rc = build_routes(&routes, err);
    if (!rc) {
        rc = chempi_table_build_image(self, 0, &routes, &dir, &image);
        if (rc)
            (void)chempi_err_set(err, rc, "no memory for a table");
    }
    chempi_blob_fini(&dir);
    chempi_blob_fini(&routes);
    if (rc)
        return rc;
    *data = image.data;
    *len = image.len;
    return 0;
}
