/* SPDX-License-Identifier: BSD-3-Clause */
/* What a gateway needs before it can forward; see gateway.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/sys.h"
#include "gateway/gateway.h"
#include "libchempi/devices/registry.h"

static int open_table(struct gateway *g, struct chempi_err *err)
{
    struct stat st;

    if (g->job->table_fd < 0)
        return chempi_err_set(err, -ENOENT,
                              "a gateway needs a connection table");
    if (fstat(g->job->table_fd, &st) != 0)
        return chempi_err_set(err, -errno, "connection table: %s",
                              chempi_err_name(errno));
    g->table_len = (size_t)st.st_size;
    g->table_data = chempi_sys->mmap(NULL, g->table_len, PROT_READ, MAP_SHARED,
                                     g->job->table_fd, 0);
    (void)close(g->job->table_fd);
    if (g->table_data == MAP_FAILED) {
        g->table_data = NULL;
        return chempi_err_set(err, -errno, "connection table: %s",
                              chempi_err_name(errno));
    }
    return chempi_table_open(g->table_data, g->table_len, &g->table, err);
}

/* A lost supervisor is noticed when its notices are read. */
static void tell_memory(void *arg)
{
    struct gateway *g = arg;
    struct chempi_memory_state state;

    chempi_memory_state(g->services.memory, &state);
    (void)chempi_client_memory(g->client, state.held, state.used, state.wanted,
                               state.degraded);
}

static int open_services(struct gateway *g, struct chempi_err *err)
{
    const struct chempi_job *job = g->job;
    struct chempi_services *s = &g->services;
    int rc;

    *s = (struct chempi_services){
        .job_id = job->id,
        .secret = job->secret,
        .proc = job->rank,
        .proc_count = job->size + job->gateways,
        .node = job->node,
        .node_count = job->node_count,
        .local_rank = job->local_rank,
        .local_size = job->local_size,
        .node_of_proc = job->node_of_rank,
        .local_rank_of_proc = job->local_rank_of_rank,
        .node_names = job->node_names,
        .wake_fds = job->wake_fds,
    };
    rc = open_table(g, err);
    if (rc)
        return rc;
    s->table = g->table;
    rc = chempi_region_open(job->region_fd, job->local_size, &s->region, err);
    if (rc)
        return rc;
    s->wakes = chempi_region_wakes(s->region);
    s->is_wake_registered =
        !chempi_region_is_fenced(s->region) && chempi_wake_register();
    rc = chempi_pollset_create(&s->pollset);
    if (rc)
        return chempi_err_set(err, rc, "epoll: %s", chempi_err_name(rc));
    rc = chempi_memory_create(job->memory_share, &s->memory);
    if (rc)
        return chempi_err_set(err, rc, "out of memory");
    chempi_memory_on_change(s->memory, tell_memory, g);
    return 0;
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
    (void)snprintf(key, sizeof(key), "card.%s", dev->ops->name);
    return chempi_client_put(g->client, key, card, len);
}

static int open_device(struct gateway *g, const char *name,
                       struct chempi_err *err)
{
    const struct chempi_dev_ops *ops = chempi_registry_find(name);
    const struct chempi_dev_params params = {
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
        return chempi_err_set(err, -ENOSPC, "more than %d devices",
                              GATEWAY_DEVICES_MAX);
    rc = ops->open(&params, &dev, err);
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
        uint32_t node = chempi_table_find_node(g->table, g->job->node_names[n]);
        uint32_t count = 0;

        if (n == g->job->node || node == CHEMPI_TABLE_NONE)
            continue;
        ranges = chempi_table_ranges(g->table, node, &count);
        for (uint32_t i = 0; i < count && !rc; i++)
            if (ranges[i].stage_count <= 1)
                rc = open_device(g, ranges[i].device, err);
    }
    return rc;
}

int gateway_start(struct gateway *g, struct chempi_err *err)
{
    int rc = open_services(g, err);

    if (!rc && chempi_hop_open(&g->hop, &g->services, g->devices,
                               &g->device_count, &gateway_hop_ops, g))
        rc = chempi_err_set(err, -ENOMEM, "out of memory");
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
    chempi_hop_close(&g->hop);
    gateway_flows_fini(&g->flows);
    chempi_memory_destroy(g->services.memory);
    chempi_pollset_destroy(g->services.pollset);
    chempi_region_close(g->services.region);
    chempi_table_close(g->table);
    if (g->table_data)
        (void)chempi_sys->munmap(g->table_data, g->table_len);
}
