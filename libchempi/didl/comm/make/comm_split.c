/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Comm_split_type (MPI 5.0, section 7.4.2) and what there is to split by
 * (MPI_Get_hw_resource_info, section 9.1): nodes, hardware, process sets and
 * networks. Every kind comes down to a colour that processes compute alone;
 * only the unguided split must hear the others first. Its members part from
 * those who passed MPI_UNDEFINED before that: these know nothing of the kind
 * of split, and take part in one plain split.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/base/sys.h"
#include "libchempi/api/api_impl.h"
#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/comm/make/comm_make.h"
#include "libchempi/didl/comm/session/session.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/info/info.h"
#include "libchempi/didl/locality/locality.h"
#include "libchempi/didl/transport/worlds/foreign.h"

#define RESOURCE_KEY "mpi_hw_resource_type"
#define PSET_KEY "mpi_pset_name"
#define NETWORK_KEY "chempi_network"
#define NETWORK_FASTEST "fastest"

#define SHARED_MEMORY "mpi_shared_memory"
#define HWLOC_PREFIX "hwloc://"
#define NETWORK_PREFIX "chempi://network/"

/* Colours of hardware: node and instance. There are at most 2^16 nodes. */
#define INSTANCES_MAX 0x7fff

static int color_of_instance(int32_t instance)
{
    if (instance < 0 || instance >= INSTANCES_MAX)
        return MPI_UNDEFINED;
    return (int)(chempi_ctx.services.node * INSTANCES_MAX) + instance;
}

/* ---- guided ---- */

static int color_of_network(const char *name)
{
    uint32_t network = chempi_locality_find_network(name);

    if (network == CHEMPI_LOCALITY_NONE ||
        !chempi_locality_is_attached(chempi_ctx.services.node, network))
        return MPI_UNDEFINED;
    return (int)network;
}

static int color_of_fastest(void)
{
    uint32_t network = chempi_locality_fastest_network();

    return network == CHEMPI_LOCALITY_NONE ? MPI_UNDEFINED : (int)network;
}

/* The resource of a kind that holds this process. */
static int color_of_resource(const char *type)
{
    struct chempi_locality_level levels[CHEMPI_LOCALITY_LEVELS];
    size_t prefix = strlen(HWLOC_PREFIX);

    if (strcasecmp(type, SHARED_MEMORY) == 0)
        return (int)chempi_ctx.services.node;
    if (strncasecmp(type, NETWORK_PREFIX, strlen(NETWORK_PREFIX)) == 0)
        return color_of_network(type + strlen(NETWORK_PREFIX));
    if (strncasecmp(type, HWLOC_PREFIX, prefix) == 0)
        type += prefix;
    chempi_locality_hardware(levels);
    for (int i = 0; i < CHEMPI_LOCALITY_LEVELS; i++)
        if (strcasecmp(type, levels[i].name) == 0)
            return color_of_instance(levels[i].instance);
    return MPI_UNDEFINED;
}

static int color_of_pset(const char *name)
{
    bool has_self = false;

    if (strcasecmp(name, "mpi://SELF") == 0)
        return (int)chempi_ctx.services.proc;
    if (chempi_session_pset_has_self(name, &has_self) != MPI_SUCCESS)
        return MPI_UNDEFINED; /* a name that nobody knows */
    return has_self ? 0 : MPI_UNDEFINED;
}

/* One of the keys must say by what; several would say different things. */
static int color_of_guide(const struct chempi_info *info, int *color)
{
    const char *resource = chempi_info_find(info, RESOURCE_KEY);
    const char *pset = chempi_info_find(info, PSET_KEY);
    const char *network = chempi_info_find(info, NETWORK_KEY);

    if ((resource != NULL) + (pset != NULL) + (network != NULL) > 1)
        return chempi_error_set(
            MPI_ERR_INFO, "only one of the keys " RESOURCE_KEY ", " PSET_KEY
                          " and " NETWORK_KEY " may be set");
    if (resource)
        *color = color_of_resource(resource);
    else if (pset)
        *color = color_of_pset(pset);
    else if (network && strcmp(network, NETWORK_FASTEST) == 0)
        *color = color_of_fastest();
    else if (network)
        *color = color_of_network(network);
    return MPI_SUCCESS;
}

/* ---- unguided ---- */

/* The colours of a process at all levels: its node, then the hardware. */
enum { UNGUIDED_LEVELS = 1 + CHEMPI_LOCALITY_LEVELS };

struct colors {
    int32_t at[UNGUIDED_LEVELS];
};

/* The first level at which the members differ; UNGUIDED_LEVELS if none. */
static int find_level(const struct colors *all, uint32_t count)
{
    for (int level = 0; level < UNGUIDED_LEVELS; level++)
        for (uint32_t i = 1; i < count; i++)
            if (all[i].at[level] != all[0].at[level])
                return level;
    return UNGUIDED_LEVELS;
}

/* Tell the caller what it was split by. */
static int tell_level(struct chempi_info *info, const char *name)
{
    char text[64];

    (void)snprintf(text, sizeof(text), "%s%s",
                   strcmp(name, SHARED_MEMORY) == 0 ? "" : HWLOC_PREFIX, name);
    return info ? chempi_info_set(info, RESOURCE_KEY, text) : MPI_SUCCESS;
}

static int color_unguided(struct chempi_comm *comm, struct chempi_info *info,
                          int *color)
{
    struct chempi_locality_level levels[CHEMPI_LOCALITY_LEVELS];
    struct chempi_comm_channel channel;
    struct colors mine;
    struct colors *all;
    int level;
    int rc = MPI_SUCCESS;

    all = chempi_sys->malloc(comm->size * sizeof(*all));
    if (!all)
        rc = chempi_error_set(MPI_ERR_NO_MEM, "no room for the colours of "
                                              "all processes");
    chempi_locality_hardware(levels);
    mine.at[0] = (int32_t)chempi_ctx.services.node;
    for (int i = 0; i < CHEMPI_LOCALITY_LEVELS; i++)
        mine.at[1 + i] = color_of_instance(levels[i].instance);
    channel = chempi_comm_channel(comm);
    rc = chempi_comm_allgather(&channel, rc, &mine, sizeof(mine), all);
    level = rc ? UNGUIDED_LEVELS : find_level(all, comm->size);
    free(all);
    if (level == UNGUIDED_LEVELS)
        return rc; /* cannot be divided any further */
    *color = mine.at[level];
    if (*color == MPI_UNDEFINED)
        return MPI_SUCCESS;
    return tell_level(info,
                      level == 0 ? SHARED_MEMORY : levels[level - 1].name);
}

static int split_unguided(struct chempi_comm *comm, int key,
                          struct chempi_info *info, MPI_Comm *newcomm)
{
    MPI_Comm members;
    int color = MPI_UNDEFINED;
    int rc;

    if (comm->is_inter)
        return chempi_error_set(MPI_ERR_COMM, "an intercommunicator cannot be "
                                              "split by hardware unguided");
    rc = chempi_comm_split(comm, 0, 0, &members);
    if (rc)
        return rc;
    rc = color_unguided(chempi_comm_lookup(members), info, &color);
    if (!rc)
        rc =
            chempi_comm_split(chempi_comm_lookup(members), color, key, newcomm);
    chempi_comm_discard(chempi_comm_lookup(members));
    return rc;
}

/* ---- among several worlds ---- */

/* Where the first member of this process's world stands: both sides of an
 * intercommunicator count alike. */
static int color_of_world(const struct chempi_comm *comm)
{
    const bool is_first = !comm->is_inter || chempi_comm_is_first_side(comm);
    const struct chempi_group *sides[] = {
        is_first ? comm->local : comm->remote,
        is_first ? comm->remote : comm->local,
    };
    uint32_t before = 0;

    for (int side = 0; side < 2; side++) {
        for (uint32_t i = 0; i < sides[side]->size; i++)
            if (!chempi_foreign_is(chempi_group_proc(sides[side], i)))
                return (int)(before + i);
        before += sides[side]->size;
    }
    return MPI_UNDEFINED; /* this process is a member */
}

/* Worlds number their nodes, resources and networks differently, and share
 * nothing that there is to split by: each goes on alone. */
static int split_worlds(struct chempi_comm *comm, int split_type, int key,
                        struct chempi_info *info, MPI_Comm *newcomm)
{
    MPI_Comm world;
    int rc = chempi_comm_split(comm, color_of_world(comm), 0, &world);

    if (rc || world == MPI_COMM_NULL)
        return rc;
    rc = chempi_comm_split_type(chempi_comm_lookup(world), split_type, key,
                                info, newcomm);
    chempi_comm_discard(chempi_comm_lookup(world));
    return rc;
}

/* ---- the call ---- */

static int find_color(int split_type, const struct chempi_info *info,
                      int *color)
{
    const char *type;

    switch (split_type) {
    case MPI_UNDEFINED:
        return MPI_SUCCESS;
    case MPI_COMM_TYPE_SHARED:
        *color = (int)chempi_ctx.services.node;
        return MPI_SUCCESS;
    case MPI_COMM_TYPE_HW_GUIDED:
        type = chempi_info_find(info, RESOURCE_KEY);
        if (type)
            *color = color_of_resource(type);
        return MPI_SUCCESS;
    case MPI_COMM_TYPE_RESOURCE_GUIDED:
        return color_of_guide(info, color);
    default:
        return chempi_error_set(MPI_ERR_ARG, "unknown kind of split %d",
                                split_type);
    }
}

int chempi_comm_split_type(struct chempi_comm *comm, int split_type, int key,
                           struct chempi_info *info, MPI_Comm *newcomm)
{
    int color = MPI_UNDEFINED;
    int rc;

    *newcomm = MPI_COMM_NULL;
    if (comm->has_foreign)
        return split_worlds(comm, split_type, key, info, newcomm);
    if (split_type == MPI_COMM_TYPE_HW_UNGUIDED) {
        rc = split_unguided(comm, key, info, newcomm);
    } else {
        rc = find_color(split_type, info, &color);
        if (!rc)
            rc = chempi_comm_split(comm, color, key, newcomm);
    }
    if (rc || *newcomm == MPI_COMM_NULL || !info)
        return rc;
    rc = chempi_comm_take_hints(chempi_comm_lookup(*newcomm), info);
    if (rc) {
        chempi_comm_lookup(*newcomm)->is_partial = true;
        chempi_comm_discard(chempi_comm_lookup(*newcomm));
        *newcomm = MPI_COMM_NULL;
    }
    return rc;
}

/* ---- what there is to split by ---- */

static int put_resource(struct chempi_info *info, const char *prefix,
                        const char *name, bool is_bound)
{
    char key[MPI_MAX_INFO_KEY];

    (void)snprintf(key, sizeof(key), "%s%s", prefix, name);
    return chempi_info_set(info, key, is_bound ? "true" : "false");
}

static int put_resources(struct chempi_info *info)
{
    struct chempi_locality_level levels[CHEMPI_LOCALITY_LEVELS];
    int rc = put_resource(info, "", SHARED_MEMORY, true);

    chempi_locality_hardware(levels);
    for (int i = 0; i < CHEMPI_LOCALITY_LEVELS && !rc; i++)
        if (levels[i].count > 0)
            rc = put_resource(info, HWLOC_PREFIX, levels[i].name,
                              levels[i].instance != CHEMPI_LOCALITY_ALL);
    for (uint32_t i = 0; i < chempi_locality_network_count() && !rc; i++)
        rc = put_resource(
            info, NETWORK_PREFIX,
            chempi_locality_network_name(chempi_locality_network_at(i)), true);
    return rc;
}

int chempi_env_get_hw_resource_info(MPI_Info *hw_info)
{
    struct chempi_info *made = chempi_info_copy(NULL);
    int rc;

    if (!made)
        return chempi_error_set(MPI_ERR_NO_MEM, "no room for an info object");
    rc = put_resources(made);
    if (rc)
        chempi_info_release(made);
    else
        *hw_info = (MPI_Info)(void *)made;
    return rc;
}
