/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Intercommunicators out of intracommunicators and back (MPI 5.0, section
 * 7.6).
 */
#include <stdlib.h>
#include <string.h>

#include "common/base/sys.h"
#include "libchempi/api/api_impl.h"
#include "libchempi/didl/comm_make.h"
#include "libchempi/didl/error.h"

/* What leaders tell each other: a context id, then the group's processes. */
static uint32_t *describe(const struct chempi_comm *comm, uint32_t context)
{
    uint32_t *words = chempi_sys->malloc(((size_t)comm->size + 1) *
                                         sizeof(*words));

    if (!words)
        return NULL;
    words[0] = context;
    for (uint32_t i = 0; i < comm->size; i++)
        words[1 + i] = chempi_group_proc(comm->local, i);
    return words;
}

/* The other side's group out of its description. */
static struct chempi_group *group_of(const uint32_t *words, size_t len)
{
    size_t count = len / sizeof(*words) - 1;
    uint32_t *procs = chempi_sys->malloc((count + 1) * sizeof(*procs));

    if (!procs)
        return NULL;
    memcpy(procs, words + 1, count * sizeof(*procs));
    return chempi_group_make((uint32_t)count, procs);
}

static bool have_common(struct chempi_group *a, struct chempi_group *b)
{
    MPI_Group both = MPI_GROUP_EMPTY;
    bool is_disjoint =
        chempi_group_intersection(a, b, &both) == MPI_SUCCESS &&
        both == MPI_GROUP_EMPTY;

    if (both != MPI_GROUP_EMPTY)
        chempi_group_release(chempi_group_lookup(both));
    return !is_disjoint;
}

/* Both ids of this side are reserved; the groups get to know each other. */
static int meet(const struct chempi_comm_channel *local,
                struct chempi_comm *peer_comm, int local_leader,
                int remote_leader, int tag, uint32_t recv_context,
                uint32_t local_context, struct chempi_comm **out)
{
    uint32_t *mine = describe(local->comm, recv_context);
    struct chempi_group *remote = NULL;
    void *theirs = NULL;
    size_t len = 0;
    int rc = MPI_ERR_NO_MEM;

    if (mine) {
        struct chempi_comm_channel rotated = *local;
        int *ranks = chempi_sys->malloc((size_t)local->size * sizeof(*ranks));

        /* The leader is member 0 of the channel that hands down. */
        for (int i = 0; ranks && i < local->size; i++)
            ranks[i] = (i + local_leader) % local->size;
        rotated.ranks = ranks;
        rotated.me = (local->me - local_leader + local->size) % local->size;
        if (ranks)
            rc = chempi_comm_swap(&rotated, peer_comm, remote_leader, tag,
                                  rotated.me == 0, mine,
                                  (local->comm->size + 1) * sizeof(*mine),
                                  &theirs, &len);
        free(ranks);
    }
    free(mine);
    if (rc == MPI_SUCCESS)
        remote = group_of(theirs, len);
    if (remote && have_common(local->comm->local, remote))
        rc = chempi_error_set(MPI_ERR_COMM, "the two groups have processes in "
                              "common");
    else if (remote)
        *out = chempi_comm_make_inter(local->comm->local, remote,
                                      *(uint32_t *)theirs, recv_context,
                                      local_context);
    chempi_group_release(remote);
    free(theirs);
    return rc == MPI_SUCCESS && !remote
               ? chempi_error_set(MPI_ERR_NO_MEM, "no room for a group")
               : rc;
}

static int check_inter(struct chempi_comm *local_comm, int local_leader,
                       struct chempi_comm *peer_comm, int remote_leader)
{
    if (local_comm->is_inter)
        return chempi_error_set(MPI_ERR_COMM, "the local communicator is an "
                                "intercommunicator");
    if (local_leader < 0 || (uint32_t)local_leader >= local_comm->size)
        return chempi_error_set(MPI_ERR_RANK, "local leader %d is not in "
                                "0..%ld of the local communicator",
                                local_leader, (long)local_comm->size - 1);
    if (local_comm->rank != local_leader)
        return MPI_SUCCESS;
    if (!peer_comm)
        return chempi_error_set(MPI_ERR_COMM, "the peer communicator is not "
                                "valid at the leader");
    if (remote_leader < 0 || (uint32_t)remote_leader >= peer_comm->remote_size)
        return chempi_error_set(MPI_ERR_RANK, "remote leader %d is not in "
                                "0..%ld of the peer communicator",
                                remote_leader,
                                (long)peer_comm->remote_size - 1);
    return MPI_SUCCESS;
}

int chempi_comm_create_inter(struct chempi_comm *local_comm, int local_leader,
                             struct chempi_comm *peer_comm, int remote_leader,
                             int tag, MPI_Comm *newintercomm)
{
    struct chempi_comm_channel local;
    struct chempi_comm *made = NULL;
    uint32_t recv_context;
    uint32_t local_context;
    int rc = check_inter(local_comm, local_leader, peer_comm, remote_leader);

    *newintercomm = MPI_COMM_NULL;
    if (rc != MPI_SUCCESS)
        return rc;
    local = chempi_comm_channel(local_comm);
    rc = chempi_comm_agree_context(&local, &recv_context);
    if (rc != MPI_SUCCESS)
        return rc;
    rc = chempi_comm_agree_context(&local, &local_context);
    if (rc != MPI_SUCCESS) {
        chempi_comm_give_context(recv_context);
        return rc;
    }
    rc = meet(&local, peer_comm, local_leader, remote_leader,
              CHEMPI_COMM_TAG_INTER | (tag & CHEMPI_COMM_TAG_MASK),
              recv_context, local_context, &made);
    if (rc != MPI_SUCCESS) {
        chempi_comm_give_context(recv_context);
        chempi_comm_give_context(local_context);
        return rc;
    }
    if (!made)
        return MPI_ERR_NO_MEM;
    chempi_comm_inherit(made, local_comm);
    *newintercomm = made->handle;
    return MPI_SUCCESS;
}

/* Which side comes first: the low one; among equals, the one whose first
 * process has the smaller index. */
static bool is_local_first(const struct chempi_comm *comm, int high,
                           int remote_high)
{
    if (!high != !remote_high)
        return !high;
    return chempi_group_proc(comm->local, 0) <
           chempi_group_proc(comm->remote, 0);
}

static struct chempi_group *concatenate(const struct chempi_group *a,
                                        const struct chempi_group *b)
{
    size_t size = (size_t)a->size + b->size;
    uint32_t *procs = chempi_sys->malloc(size * sizeof(*procs));

    if (!procs)
        return NULL;
    for (uint32_t i = 0; i < a->size; i++)
        procs[i] = chempi_group_proc(a, i);
    for (uint32_t i = 0; i < b->size; i++)
        procs[a->size + i] = chempi_group_proc(b, i);
    return chempi_group_make((uint32_t)size, procs);
}

int chempi_comm_merge_inter(struct chempi_comm *intercomm, int high,
                            MPI_Comm *newintracomm)
{
    struct chempi_comm_channel both;
    struct chempi_comm_channel local;
    struct chempi_group *group = NULL;
    struct chempi_comm *made = NULL;
    void *remote_high = NULL;
    size_t len = 0;
    uint32_t context;
    int rc;

    *newintracomm = MPI_COMM_NULL;
    if (!intercomm->is_inter)
        return chempi_error_set(MPI_ERR_COMM, "the communicator is not an "
                                "intercommunicator");
    both = chempi_comm_channel(intercomm);
    local = both;
    local.inter = NULL;
    rc = chempi_comm_agree_context(&both, &context);
    if (rc != MPI_SUCCESS)
        return rc;
    rc = chempi_comm_swap(&local, intercomm, 0, local.tag, local.me == 0,
                          &high, sizeof(high), &remote_high, &len);
    if (rc == MPI_SUCCESS) {
        bool is_first = is_local_first(intercomm, high, *(int *)remote_high);

        group = is_first ? concatenate(intercomm->local, intercomm->remote)
                         : concatenate(intercomm->remote, intercomm->local);
        made = group ? chempi_comm_make(group, NULL, context, context) : NULL;
        if (!made)
            rc = chempi_error_set(MPI_ERR_NO_MEM, "no room for a "
                                  "communicator");
    }
    free(remote_high);
    chempi_group_release(group);
    if (rc != MPI_SUCCESS) {
        chempi_comm_give_context(context);
        return rc;
    }
    chempi_comm_inherit(made, intercomm);
    *newintracomm = made->handle;
    return MPI_SUCCESS;
}
