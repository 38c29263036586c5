/* SPDX-License-Identifier: BSD-3-Clause */
/* Control variables and categories from the tables; see registry.h. */
#include "libchempi/didl/tool/registry.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "libchempi/devices/registry.h"
#include "libchempi/didl/base/setting.h"
#include "libchempi/didl/transport/routed/routed.h"

enum { DEVICES_MAX = 16 };

/* Values of the devices' settings, in the registry's order; set once under
 * load.lock, then by tools. */
static struct {
    pthread_mutex_t lock;
    bool is_done;
    struct chempi_err err; /* of the first variable that was wrong */
    _Atomic uint64_t values[DEVICES_MAX][CHEMPI_DEV_SETTINGS_MAX];
} load = {.lock = PTHREAD_MUTEX_INITIALIZER};

size_t chempi_tool_device_count(void)
{
    size_t count;

    (void)chempi_registry_all(&count);
    return count < DEVICES_MAX ? count + 1 : DEVICES_MAX;
}

const struct chempi_dev_ops *chempi_tool_device_at(size_t i)
{
    size_t count;
    const struct chempi_dev_ops *const *all = chempi_registry_all(&count);

    return i < count ? all[i] : &chempi_routed_ops;
}

static struct chempi_settings device_table(size_t i)
{
    const struct chempi_dev_panel *panel = chempi_tool_device_at(i)->panel;

    return (struct chempi_settings){
        .table = panel->settings,
        .values = load.values[i],
        .count = panel->setting_count,
    };
}

/* ---- the environment ---- */

static int load_table(const struct chempi_settings *table, int first)
{
    int rc = chempi_setting_load(table, first ? NULL : &load.err);

    return first ? first : rc;
}

static int load_all(void)
{
    struct chempi_settings own = chempi_setting_table();
    int rc = load_table(&own, 0);

    for (size_t i = 0; i < chempi_tool_device_count(); i++) {
        struct chempi_settings table = device_table(i);

        for (uint32_t k = 0; k < table.count; k++)
            atomic_store_explicit(&table.values[k], table.table[k].initial,
                                  memory_order_relaxed);
        rc = load_table(&table, rc);
    }
    return rc;
}

int chempi_tool_load(struct chempi_err *err)
{
    int rc;

    (void)pthread_mutex_lock(&load.lock);
    if (!load.is_done)
        (void)load_all(); /* its result is in load.err */
    load.is_done = true;
    rc = load.err.code;
    if (rc && err)
        *err = load.err;
    (void)pthread_mutex_unlock(&load.lock);
    return rc;
}

const _Atomic uint64_t *
chempi_tool_device_settings(const struct chempi_dev_ops *ops)
{
    for (size_t i = 0; i < chempi_tool_device_count(); i++)
        if (chempi_tool_device_at(i) == ops)
            return load.values[i];
    return NULL;
}

/* ---- control variables ---- */

uint32_t chempi_tool_cvar_count(void)
{
    uint32_t count = CHEMPI_SET_COUNT;

    for (size_t i = 0; i < chempi_tool_device_count(); i++)
        count += chempi_tool_device_at(i)->panel->setting_count;
    return count;
}

struct chempi_tool_cvar chempi_tool_cvar_at(uint32_t i)
{
    struct chempi_settings table = chempi_setting_table();

    for (size_t d = 0; i >= table.count; d++) {
        i -= table.count;
        table = device_table(d);
    }
    return (struct chempi_tool_cvar){
        .setting = &table.table[i],
        .value = &table.values[i],
    };
}

/* ---- categories ---- */

static const struct chempi_tool_category categories[] = {
    {NULL, "Everything that CHEMPI lets tools see and set."},
    {"", "The library as a whole."},
    {"agent", "Progress while the program computes."},
    {"buffer", "Buffered sends."},
    {"coll", "Collective operations: which algorithm when."},
    {"io", "Files: what was asked for, and what was done for it."},
    {"conn", "Connections: ways to other processes, order, quotas."},
    {"daemon", "The connection to the daemon."},
    {"match", "Matching of messages and receives."},
    {"meet", "Meetings with processes of other jobs."},
    {"progress", "Progress and waiting."},
    {"request", "Requests."},
    {"rma", "One-sided operations, over all windows."},
    {"sysmsg", "Messages of the library to itself in other processes."},
};

uint32_t chempi_tool_category_count(void)
{
    return (uint32_t)(CHEMPI_ARRAY_LEN(categories) +
                      chempi_tool_device_count());
}

struct chempi_tool_category chempi_tool_category_at(uint32_t i)
{
    const struct chempi_dev_ops *ops;

    if (i < CHEMPI_ARRAY_LEN(categories))
        return categories[i];
    ops = chempi_tool_device_at(i - CHEMPI_ARRAY_LEN(categories));
    return (struct chempi_tool_category){ops->name, ops->panel->text};
}
