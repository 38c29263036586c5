/* SPDX-License-Identifier: BSD-3-Clause */
/* Nodes of a batch system; see allocation.h. */
#include "chempid/hosts/allocation.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/control/client.h"
#include "common/control/msg.h"
#include "common/words/unfold.h"

#define NODES "SLURM_JOB_NODELIST"

static int malformed(const char *list, struct chempi_err *err)
{
    return chempi_err_set(err, -EINVAL,
                          "'%.200s' is no list of nodes such as a[00-03,7],b",
                          list);
}

/* The names that a word of the list stands for. */
static int add_names(struct chempi_hosts *hosts, struct chempi_pool *pool,
                     const char *list, const char *word, size_t len,
                     struct chempi_err *err)
{
    char name[CHEMPI_UNFOLD_NAME_MAX];
    struct chempi_unfold names;
    const char *why;
    size_t at;
    int rc = chempi_unfold_parse(word, len, &names, &why, &at);

    if (rc || names.count > CHEMPI_JOB_NODES_MAX)
        return malformed(list, err);
    for (uint32_t i = 0; i < names.count && !rc; i++) {
        chempi_unfold_name(&names, i, name);
        rc = strlen(name) < CHEMPI_NODE_NAME_MAX
                 ? chempi_hosts_add(hosts, pool, name, err)
                 : malformed(list, err);
    }
    return rc;
}

int chempi_allocation_names(struct chempi_hosts *hosts,
                            struct chempi_pool *pool, const char *list,
                            struct chempi_err *err)
{
    const size_t len = strlen(list);
    int rc = 0;

    for (size_t from = 0; from <= len && !rc;) {
        const size_t word = chempi_unfold_word(list + from, len - from);

        rc = add_names(hosts, pool, list, list + from, word, err);
        from += word + 1;
    }
    return rc;
}

int chempi_allocation_slots(struct chempi_hosts *hosts, const char *list,
                            struct chempi_err *err)
{
    const char *at = list;
    uint32_t node = 0;

    while (*at) {
        char *stop;
        const unsigned long slots = strtoul(at, &stop, 10);
        unsigned long times = 1;

        if (stop != at && strncmp(stop, "(x", 2) == 0) {
            times = strtoul(stop + 2, &stop, 10);
            stop += *stop == ')';
        }
        if (stop == at || (*stop && *stop != ',') || slots == 0 ||
            slots > CHEMPI_JOB_RANKS_MAX)
            return chempi_err_set(err, -EINVAL,
                                  "'%.200s' are no numbers of slots such as "
                                  "4(x3),2",
                                  list);
        while (times-- > 0 && node < hosts->count)
            hosts->slots[node++] = (uint32_t)slots;
        at = stop + (*stop == ',');
    }
    return 0;
}

static const char *value_of(const char *name)
{
    const char *text = getenv(name);

    return text && *text ? text : NULL;
}

bool chempi_allocation_is_slurm(void)
{
    return value_of("SLURM_JOB_ID") && value_of(NODES);
}

/* Tasks are what the user has asked for; else all processors. */
static int read_slurm(struct chempi_hosts *hosts, struct chempi_pool *pool,
                      struct chempi_err *err)
{
    const char *slots = value_of("SLURM_TASKS_PER_NODE");
    int rc = chempi_allocation_names(hosts, pool, value_of(NODES), err);

    if (!slots)
        slots = value_of("SLURM_JOB_CPUS_PER_NODE");
    if (!rc && slots)
        rc = chempi_allocation_slots(hosts, slots, err);
    if (rc)
        (void)chempi_err_prefix(err, "the allocation of Slurm");
    return rc ? rc : 1;
}

int chempi_allocation_read(struct chempi_hosts *hosts, struct chempi_pool *pool,
                           struct chempi_err *err)
{
    const char *file = value_of("PBS_NODEFILE");
    int rc;

    if (chempi_allocation_is_slurm())
        return read_slurm(hosts, pool, err);
    if (!file)
        return 0;
    rc = chempi_hosts_read(hosts, pool, file, err);
    return rc ? rc : 1;
}
