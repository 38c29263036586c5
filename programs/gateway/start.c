/* SPDX-License-Identifier: BSD-3-Clause */
/* What a gateway needs before it can forward; see gateway.h. */
#include <errno.h>
#include <stdlib.h>

#include "common/base/sys.h"
#include "libchempi/devices/registry.h"
#include "programs/gateway/gateway.h"

/* A lost supervisor is noticed when its notices are read. */
static void tell_memory(void *arg)
{
    struct gateway *g = arg;
    struct chempi_memory_state state;

    chempi_memory_state(g->services.memory, &state);
    chempi_memory_told(g->services.memory, &state);
    (void)chempi_client_memory(
        g->client, &(struct chempi_client_memory){.held = state.held,
                                                  .used = state.used,
                                                  .wanted = state.wanted,
                                                  .needed = state.needed,
                                                  .degraded = state.degraded});
}

static int open_services(struct gateway *g, struct chempi_err *err)
{
    int rc;

    if (g->job->table_fd < 0)
        return chempi_err_set(err, -ENOENT,
                              "a gateway needs a connection table");
    rc = chempi_host_open(&g->host, g->job, &g->services, err);
    if (!rc)
        chempi_memory_on_change(g->services.memory, tell_memory, g);
    return rc;
}

/* ---- devices ------------------------------------------------------------ */

static bool is_open(const struct gateway *g, const struct chempi_dev_ops *ops)
{
    for (uint32_t i = 0; i < g->device_count; i++)
        if (g->devices[i]->ops == ops)
            return true;
    return false;
}

static int publish(const struct gateway *g, struct chempi_dev *dev)
{
    char key[CHEMPI_KVS_KEY_MAX];
    unsigned char card[CHEMPI_KVS_VALUE_MAX];
    size_t len = sizeof(card);
    int rc = dev->ops->card(dev, card, &len);

    if (rc || len == 0)
        return rc;
    rc = chempi_host_card_key(dev, key);
    return rc ? rc : chempi_client_put(g->client, key, card, len);
}

/* Those that are the same in all processes of a job, from the environment that
 * ranks have, too; the others are a rank's own. */
static int load_settings(const struct chempi_dev_panel *panel,
                         _Atomic uint64_t *values, struct chempi_err *err)
{
    for (uint32_t i = 0; i < panel->setting_count; i++) {
        const struct chempi_settings one = {&panel->settings[i], &values[i], 1};

        atomic_init(&values[i], panel->settings[i].initial);
        if (panel->settings[i].scope == CHEMPI_SETTING_ALL &&
            chempi_setting_load(&one, err))
            return -EINVAL;
    }
    return 0;
}

static int open_device(struct gateway *g, const char *name,
                       struct chempi_err *err)
{
    const struct chempi_dev_ops *ops = chempi_registry_find(name);
    struct chempi_dev_params params = {
        .services = &g->services,
        .sink = &gateway_sink,
        .sink_arg = g,
    };
    struct chempi_dev *dev = NULL;
    int rc;

    if (!ops)
        return chempi_err_set(err, -ENODEV,
                              "the connection table names device \"%s\", which "
                              "this build does not have",
                              name);
    if (is_open(g, ops))
        return 0;
    if (g->device_count == GATEWAY_DEVICES_MAX)
        return chempi_err_set(err, -ENOSPC,
                              "the connection table names more devices than "
                              "the %d that a gateway can open: \"%s\" is one "
                              "too many; let another node join its networks",
                              GATEWAY_DEVICES_MAX, name);
    params.settings = g->settings[g->device_count];
    rc = load_settings(ops->panel, g->settings[g->device_count], err);
    rc = rc ? rc : ops->open(&params, &dev, err);
    if (rc) {
        (void)chempi_err_prefix(err, "device %s", name);
        return rc;
    }
    g->devices[g->device_count++] = dev;
    rc = publish(g, dev);
    return rc ? chempi_err_set(err, rc, "device %s: cannot publish its card",
                               name)
              : 0;
}

/* Those of the direct ways to other nodes of the job. */
static int open_devices(struct gateway *g, struct chempi_err *err)
{
    int rc = 0;

    for (uint32_t n = 0; n < g->job->node_count && !rc; n++) {
        const struct chempi_table_range *ranges;
        uint32_t node =
            chempi_table_find_node(g->services.table, g->job->node_names[n]);
        uint32_t count = 0;

        if (n == g->job->node || node == CHEMPI_TABLE_NONE)
            continue;
        ranges = chempi_table_ranges(g->services.table, node, &count);
        for (uint32_t i = 0; i < count && !rc; i++)
            if (ranges[i].stage_count <= 1)
                rc = open_device(g, ranges[i].device, err);
    }
    return rc;
}

int gateway_start(struct gateway *g, struct chempi_err *err)
{
    int rc = open_services(g, err);

    if (!rc &&
        chempi_neighbors_open(&g->neighbors, &g->services, g->devices,
                              &g->device_count, &gateway_neighbors_ops, g))
        rc = chempi_err_set(err, -ENOMEM, "out of memory");
    if (!rc) {
        g->ends = chempi_sys->calloc(g->job->size, sizeof(*g->ends));
        if (!g->ends)
            rc = chempi_err_set(err, -ENOMEM, "out of memory");
    }
    rc = rc ? rc : open_devices(g, err);
    if (!rc)
        tell_memory(g);
    return rc;
}

void gateway_stop(struct gateway *g)
{
    for (uint32_t i = g->device_count; i-- > 0;)
        g->devices[i]->ops->close(g->devices[i]);
    g->device_count = 0;
    chempi_neighbors_close(&g->neighbors);
    gateway_flows_fini(&g->flows);
    free(g->ends);
    g->ends = NULL;
    chempi_route_stats_fini(&g->tally);
    chempi_host_close(&g->host, &g->services);
}
