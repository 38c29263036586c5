/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Intercomm_create (MPI 5.0, section 7.6.2) of groups whose members have
 * not all met: their leaders, who reach each other through the peer
 * communicator, meet by a port that one of them opens for this only, and tells
 * the other one of together with what its group says of that one's; then they
 * introduce their groups as in MPI_Comm_accept and MPI_Comm_connect.
 */
#include <stddef.h>

#include "common/base/clock.h"
#include "common/control/dynamic.h"
#include "libchempi/api/api_impl.h"
#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/base/setting.h"
#include "libchempi/didl/comm/make/comm_make.h"
#include "libchempi/didl/proc/meet.h"
#include "libchempi/didl/transport/conn.h"
#include "libchempi/didl/transport/worlds/foreign.h"

struct bridge {
    struct chempi_meet meet;
    uint32_t far; /* the other leader */
};

/* A leader that is gone neither calls nor is called. */
static int is_far_lost(const struct chempi_meet *meet, struct chempi_err *err)
{
    const struct bridge *b =
        (const struct bridge *)(const void *)((const char *)meet -
                                              offsetof(struct bridge, meet));

    if (!chempi_conn_is_missing(b->far))
        return MPI_SUCCESS;
    (void)chempi_err_set(err, 0, "the other group's leader was lost");
    return MPI_ERR_PROC_ABORTED;
}

/* One of the two leaders, the same at both. */
static bool is_first(uint32_t far)
{
    const struct chempi_name mine =
        chempi_foreign_name(chempi_ctx.services.proc);
    const struct chempi_name other = chempi_foreign_name(far);

    return chempi_foreign_compare(&mine, &other) < 0;
}

/* A leader whose group fails first closes its port, or does not call; then the
 * other one waits for nobody, or no longer than its patience. */
static int bridge(struct chempi_comm *local_comm, int local_leader,
                  struct chempi_comm *peer_comm, int remote_leader,
                  const struct chempi_comm_strangers *s, MPI_Comm *newintercomm)
{
    struct bridge b = {
        .meet = {.comm = local_comm,
                 .root = local_leader,
                 .way = "the leader of the other group",
                 .error_class = MPI_ERR_OTHER,
                 .limit_ns = chempi_setting(CHEMPI_SET_MEET_PATIENCE) *
                             CHEMPI_NS_PER_MS,
                 .most = CHEMPI_FOREIGN_MAX,
                 .is_hopeless = is_far_lost}};
    bool accepts;

    if (local_comm->rank == local_leader) {
        b.far = chempi_comm_proc(peer_comm, (uint32_t)remote_leader);
        accepts = s->mine[0] && (!s->theirs[0] || is_first(b.far));
        b.meet.begin = accepts ? chempi_meet_accept : chempi_meet_connect;
        b.meet.port = accepts ? s->mine : s->theirs;
    }
    return chempi_meet(&b.meet, newintercomm);
}

static int open_port(char name[CHEMPI_PORT_NAME_MAX])
{
    return chempi_proc_open_port(NULL, name);
}

int chempi_proc_create_inter(struct chempi_comm *local_comm, int local_leader,
                             struct chempi_comm *peer_comm, int remote_leader,
                             int tag, MPI_Comm *newintercomm)
{
    struct chempi_comm_strangers s = {.open_port = open_port};
    int rc = chempi_comm_create_inter(local_comm, local_leader, peer_comm,
                                      remote_leader, tag, newintercomm, &s);

    if (rc == MPI_SUCCESS && s.are_there)
        rc = bridge(local_comm, local_leader, peer_comm, remote_leader, &s,
                    newintercomm);
    if (s.mine[0])
        (void)chempi_proc_close_port(s.mine);
    return rc;
}
