/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Communicators out of one communicator (MPI 5.0, section 7.4.2): duplicates,
 * subsets by group, subsets by colour. Each call is one agreement on a context
 * id and whatever exchange tells who belongs where.
 *
 * The pieces of one split have no process in common, so they share an id.
 */
#include <stdlib.h>
#include <string.h>

#include "common/base/sys.h"
#include "libchempi/api/api_impl.h"
#include "libchempi/didl/comm/make/comm_circle.h"
#include "libchempi/didl/comm/make/comm_make.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/info/attr.h"
#include "libchempi/didl/info/info.h"

/* ---- intercommunicators: both sides' context ids ---- */

/*
 * The ids of a new intercommunicator on this side: one to receive on, agreed
 * here and told to the other side; one for the local group's own
 * communicator.
 */
struct inter_ids {
    uint32_t recv;
    uint32_t send;
    uint32_t local;
};

static int agree_inter(struct chempi_comm *comm, int rc, struct inter_ids *ids)
{
    struct chempi_comm_channel local = chempi_comm_channel(comm);
    bool has_recv;
    bool has_local;
    void *other = NULL;
    size_t len = 0;

    local.inter = NULL; /* each side by itself */
    rc = chempi_comm_agree_context(&local, rc, &ids->recv);
    has_recv = rc == MPI_SUCCESS;
    if (has_recv)
        rc = chempi_comm_agree_context(&local, rc, &ids->local);
    has_local = rc == MPI_SUCCESS;
    rc = chempi_comm_swap_inter(&local, comm, rc, &ids->recv, sizeof(ids->recv),
                                &other, &len);
    if (rc == MPI_SUCCESS && len == sizeof(ids->send))
        memcpy(&ids->send, other, sizeof(ids->send));
    if (rc == MPI_SUCCESS &&
        (len != sizeof(ids->send) || !chempi_context_is_others(ids->send)))
        rc = chempi_error_set(MPI_ERR_INTERN, "the other side receives in a "
                                              "context that cannot be");
    if (rc != MPI_SUCCESS && has_local)
        chempi_comm_return_context(ids->local, rc);
    if (rc != MPI_SUCCESS && has_recv)
        chempi_comm_return_context(ids->recv, rc);
    free(other);
    return rc;
}

struct chempi_comm *chempi_comm_make_inter(struct chempi_group *local,
                                           struct chempi_group *remote,
                                           uint32_t send_context,
                                           uint32_t recv_context,
                                           uint32_t local_context)
{
    struct chempi_comm *side =
        chempi_comm_make(local, NULL, local_context, local_context);
    struct chempi_comm *comm =
        side ? chempi_comm_make(local, remote, send_context, recv_context)
             : NULL;

    if (comm) {
        comm->local_comm = side;
        side->serves = comm;
        return comm;
    }
    if (side) {
        side->is_partial = true;
        chempi_comm_release(side);
    } else {
        chempi_comm_return_context(local_context, MPI_ERR_NO_MEM);
    }
    chempi_comm_return_context(recv_context, MPI_ERR_NO_MEM);
    return NULL;
}

/* ---- duplicates ---- */

/* A communicator over the same groups as comm, with ids of its own. */
static int make_like(struct chempi_comm *comm, struct chempi_comm **out)
{
    struct chempi_comm_channel channel;
    struct inter_ids ids;
    int rc;

    if (comm->is_inter) {
        rc = agree_inter(comm, MPI_SUCCESS, &ids);
        if (rc == MPI_SUCCESS)
            *out = chempi_comm_make_inter(comm->local, comm->remote, ids.send,
                                          ids.recv, ids.local);
    } else {
        channel = chempi_comm_channel(comm);
        rc = chempi_comm_agree_context(&channel, MPI_SUCCESS, &ids.recv);
        if (rc == MPI_SUCCESS) {
            *out = chempi_comm_make(comm->local, NULL, ids.recv, ids.recv);
            if (!*out)
                chempi_comm_return_context(ids.recv, MPI_ERR_NO_MEM);
        }
    }
    return rc == MPI_SUCCESS && !*out ? MPI_ERR_NO_MEM : rc;
}

int chempi_comm_dress(struct chempi_comm *made, struct chempi_comm *comm,
                      const struct chempi_info *hints, MPI_Comm *newcomm)
{
    int rc = chempi_attr_copy_all(&comm->obj, &made->obj);

    chempi_comm_inherit(made, comm);
    if (rc == MPI_SUCCESS && comm->topology && comm->copy_topology)
        rc = comm->copy_topology(comm, made);
    if (rc == MPI_SUCCESS && hints)
        rc = chempi_comm_take_hints(made, hints);
    if (rc != MPI_SUCCESS) {
        made->is_partial = true;
        chempi_comm_discard(made);
        return rc;
    }
    *newcomm = made->handle;
    return MPI_SUCCESS;
}

static int dup(struct chempi_comm *comm, const struct chempi_info *hints,
               MPI_Comm *newcomm)
{
    struct chempi_comm *made = NULL;
    int rc = make_like(comm, &made);

    *newcomm = MPI_COMM_NULL;
    return rc ? rc : chempi_comm_dress(made, comm, hints, newcomm);
}

int chempi_comm_dup(struct chempi_comm *comm, MPI_Comm *newcomm)
{
    return dup(comm, NULL, newcomm);
}

int chempi_comm_dup_with_info(struct chempi_comm *comm,
                              struct chempi_info *info, MPI_Comm *newcomm)
{
    return dup(comm, info, newcomm);
}

/* ---- subsets by group ---- */

/* The new intracommunicator over group, with an id that was agreed on. */
static int give(struct chempi_comm *parent, struct chempi_group *group,
                uint32_t context, MPI_Comm *newcomm)
{
    struct chempi_comm *made = chempi_comm_make(group, NULL, context, context);

    if (!made) {
        chempi_comm_return_context(context, MPI_ERR_NO_MEM);
        return MPI_ERR_NO_MEM;
    }
    chempi_comm_inherit(made, parent);
    *newcomm = made->handle;
    return MPI_SUCCESS;
}

static const char *name_of(const struct chempi_comm *comm)
{
    return comm->name[0] ? comm->name : "the communicator";
}

static int create_intra(struct chempi_comm *comm, int rc,
                        struct chempi_group *group, MPI_Comm *newcomm)
{
    struct chempi_comm_channel channel = chempi_comm_channel(comm);
    uint32_t context;

    rc = chempi_comm_agree_context(&channel, rc, &context);
    if (rc != MPI_SUCCESS)
        return rc;
    if (group->rank == MPI_UNDEFINED) {
        chempi_comm_give_context(context);
        return MPI_SUCCESS;
    }
    return give(comm, group, context, newcomm);
}

/*
 * The processes of ranks that the other side has said, in their place. Both
 * sides know ranks: a process has another index in each world.
 */
static int find_theirs(const struct chempi_comm *comm, uint32_t *ranks,
                       size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (ranks[i] >= comm->remote->size)
            return chempi_error_set(MPI_ERR_INTERN,
                                    "the other side of %s has no rank %u",
                                    name_of(comm), ranks[i]);
        ranks[i] = chempi_group_proc(comm->remote, ranks[i]);
    }
    return MPI_SUCCESS;
}

/* Members of an intercommunicator over given groups; procs is taken over. */
static int give_inter(struct chempi_comm *parent, struct chempi_group *local,
                      uint32_t *procs, uint32_t count,
                      const struct inter_ids *ids, MPI_Comm *newcomm)
{
    struct chempi_group *remote = chempi_group_make(count, procs);
    struct chempi_comm *made =
        remote ? chempi_comm_make_inter(local, remote, ids->send, ids->recv,
                                        ids->local)
               : NULL;

    if (!remote) {
        chempi_comm_return_context(ids->recv, MPI_ERR_NO_MEM);
        chempi_comm_return_context(ids->local, MPI_ERR_NO_MEM);
    }
    chempi_group_release(remote);
    if (!made)
        return chempi_error_set(MPI_ERR_NO_MEM, "no room for a communicator");
    chempi_comm_inherit(made, parent);
    *newcomm = made->handle;
    return MPI_SUCCESS;
}

/* Each side picks members of its own, which have these ranks in it; no
 * communicator unless both do. */
static int create_inter(struct chempi_comm *comm, int rc,
                        struct chempi_group *group, const int *ranks,
                        MPI_Comm *newcomm)
{
    struct chempi_comm_channel local = chempi_comm_channel(comm);
    struct inter_ids ids;
    void *theirs = NULL;
    size_t len = 0;
    size_t count;

    local.inter = NULL;
    rc = chempi_comm_swap_inter(&local, comm, rc, ranks,
                                group->size * sizeof(*ranks), &theirs, &len);
    count = len / sizeof(uint32_t);
    if (rc == MPI_SUCCESS)
        rc = find_theirs(comm, theirs, count);
    rc = agree_inter(comm, rc, &ids);
    if (rc != MPI_SUCCESS) {
        free(theirs);
        return rc;
    }
    if (group->rank == MPI_UNDEFINED || count == 0) {
        chempi_comm_give_context(ids.recv);
        chempi_comm_give_context(ids.local);
        free(theirs);
        return MPI_SUCCESS;
    }
    return give_inter(comm, group, theirs, (uint32_t)count, &ids, newcomm);
}

int chempi_comm_create(struct chempi_comm *comm, struct chempi_group *group,
                       MPI_Comm *newcomm)
{
    int *ranks = NULL;
    int rc = chempi_group_ranks_in(group, comm->local, name_of(comm), &ranks);

    *newcomm = MPI_COMM_NULL;
    if (rc != MPI_SUCCESS && rc != MPI_ERR_NO_MEM)
        return rc;
    rc = comm->is_inter ? create_inter(comm, rc, group, ranks, newcomm)
                        : create_intra(comm, rc, group, newcomm);
    free(ranks);
    return rc;
}

int chempi_comm_create_group(struct chempi_comm *comm,
                             struct chempi_group *group, int tag,
                             MPI_Comm *newcomm)
{
    struct chempi_comm_circle circle;
    uint32_t context;
    int *ranks;
    int rc;

    *newcomm = MPI_COMM_NULL;
    if (comm->is_inter)
        return chempi_error_set(MPI_ERR_COMM, "%s is an intercommunicator",
                                name_of(comm));
    if (tag < 0)
        return chempi_error_set(MPI_ERR_TAG, "tag %d is negative", tag);
    if (group->rank == MPI_UNDEFINED)
        return MPI_SUCCESS; /* others may call; we take no part */
    rc = chempi_group_ranks_in(group, comm->local, name_of(comm), &ranks);
    if (rc == MPI_ERR_NO_MEM)
        ranks = NULL; /* the others have to learn it */
    else if (rc != MPI_SUCCESS)
        return rc;
    chempi_comm_circle_open(&circle, comm, ranks, group, tag,
                            CHEMPI_CONTEXT_GROUP);
    rc = chempi_comm_agree_context(&circle.channel, rc, &context);
    chempi_comm_circle_close(&circle);
    free(ranks);
    return rc ? rc : give(comm, group, context, newcomm);
}

/* ---- subsets by colour ---- */

struct member {
    int32_t color;
    int32_t key;
    uint32_t rank;
};

/* By key, then by old rank, as MPI_Comm_split orders ranks. */
static int by_key(const void *a, const void *b)
{
    const struct member *x = a;
    const struct member *y = b;

    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* The processes of one colour among members[0..n), sorted; members is
 * reordered. NULL when out of memory. */
static uint32_t *pick_color(struct member *members, size_t n, int color,
                            const struct chempi_group *group, uint32_t *count)
{
    uint32_t *procs;
    size_t kept = 0;

    for (size_t i = 0; i < n; i++)
        if (members[i].color == color) {
            struct member swap = members[kept];

            members[kept++] = members[i];
            members[i] = swap;
        }
    qsort(members, kept, sizeof(*members), by_key);
    procs = chempi_sys->malloc((kept + 1) * sizeof(*procs));
    for (size_t i = 0; procs && i < kept; i++)
        procs[i] = chempi_group_proc(group, members[i].rank);
    *count = (uint32_t)kept;
    return procs;
}

/* Members of other worlds say what they like. */
static int check_members(const struct member *all, size_t count, size_t size)
{
    size_t i = 0;

    while (i < count && i < size && all[i].rank == i)
        i++;
    if (count == size && i == size)
        return MPI_SUCCESS;
    return chempi_error_set(MPI_ERR_INTERN,
                            "member %zu says that it is another one", i);
}

/* Everybody's colour and key on this side. */
static int collect(const struct chempi_comm_channel *local, int color, int key,
                   struct member **out)
{
    struct member mine = {
        .color = color, .key = key, .rank = (uint32_t)local->me};
    struct member *all = chempi_sys->malloc((size_t)local->size * sizeof(*all));
    int rc = MPI_SUCCESS;

    if (!all)
        rc = chempi_error_set(MPI_ERR_NO_MEM,
                              "no room for the colours of "
                              "%d processes",
                              local->size);
    rc = chempi_comm_allgather(local, rc, &mine, sizeof(mine), all);
    if (rc == MPI_SUCCESS)
        rc = check_members(all, (size_t)local->size, (size_t)local->size);
    if (rc == MPI_SUCCESS)
        *out = all;
    else
        free(all);
    return rc;
}

/* All know the colours before they agree: one that does not says so then. */
static int split_intra(struct chempi_comm *comm, int color, int key,
                       MPI_Comm *newcomm)
{
    struct chempi_comm_channel channel = chempi_comm_channel(comm);
    struct chempi_group *group = NULL;
    struct member *all = NULL;
    uint32_t *procs = NULL;
    uint32_t context;
    uint32_t count;
    int rc = collect(&channel, color, key, &all);

    if (rc == MPI_SUCCESS && color != MPI_UNDEFINED) {
        procs = pick_color(all, comm->size, color, comm->local, &count);
        if (procs)
            group = chempi_group_make(count, procs);
        if (!group)
            rc = chempi_error_set(MPI_ERR_NO_MEM, "no room for a group");
    }
    free(all);
    rc = chempi_comm_agree_context(&channel, rc, &context);
    if (rc == MPI_SUCCESS && group)
        rc = give(comm, group, context, newcomm);
    else if (rc == MPI_SUCCESS)
        chempi_comm_give_context(context);
    chempi_group_release(group);
    return rc;
}

/* This process's new intercommunicator, when both sides have its colour. */
static int join_colors(struct chempi_comm *comm, struct member *mine,
                       struct member *theirs, size_t their_count, int color,
                       const struct inter_ids *ids, MPI_Comm *newcomm)
{
    uint32_t count = 0;
    uint32_t remote_count = 0;
    uint32_t *procs = pick_color(mine, comm->size, color, comm->local, &count);
    uint32_t *remote =
        pick_color(theirs, their_count, color, comm->remote, &remote_count);
    struct chempi_group *local = NULL;
    int rc = MPI_SUCCESS;

    if (procs && remote && color != MPI_UNDEFINED && remote_count > 0) {
        local = chempi_group_make(count, procs);
        procs = NULL;
        if (local) {
            rc = give_inter(comm, local, remote, remote_count, ids, newcomm);
            chempi_group_release(local);
            return rc;
        }
    }
    if (!procs || !remote)
        rc = chempi_error_set(MPI_ERR_NO_MEM, "no room for a group");
    free(procs);
    free(remote);
    chempi_comm_return_context(ids->recv, rc);
    chempi_comm_return_context(ids->local, rc);
    return rc;
}

static int split_inter(struct chempi_comm *comm, int color, int key,
                       MPI_Comm *newcomm)
{
    struct chempi_comm_channel local = chempi_comm_channel(comm);
    struct inter_ids ids;
    struct member *mine = NULL;
    void *theirs = NULL;
    size_t len = 0;
    size_t count;
    int rc;

    local.inter = NULL;
    rc = collect(&local, color, key, &mine);
    rc = chempi_comm_swap_inter(&local, comm, rc, mine,
                                comm->size * sizeof(*mine), &theirs, &len);
    count = len / sizeof(*mine);
    if (rc == MPI_SUCCESS)
        rc = check_members(theirs, count, comm->remote->size);
    rc = agree_inter(comm, rc, &ids);
    if (rc == MPI_SUCCESS)
        rc = join_colors(comm, mine, theirs, count, color, &ids, newcomm);
    free(mine);
    free(theirs);
    return rc;
}

int chempi_comm_split(struct chempi_comm *comm, int color, int key,
                      MPI_Comm *newcomm)
{
    *newcomm = MPI_COMM_NULL;
    if (color < 0 && color != MPI_UNDEFINED)
        return chempi_error_set(
            MPI_ERR_ARG,
            "colour %d is negative; a process that is to be in none of the "
            "parts gives MPI_UNDEFINED",
            color);
    return comm->is_inter ? split_inter(comm, color, key, newcomm)
                          : split_intra(comm, color, key, newcomm);
}
