/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Intercomm_create (MPI 5.0, section 7.6.2) of groups whose members have
 * not all met: their leaders, who reach each other through the peer
 * communicator, meet by a port that one of them opens for this only, and
 * introduce their groups as in MPI_Comm_accept and MPI_Comm_connect.
 */
#include <stddef.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/compiler.h"
#include "common/control/dynamic.h"
#include "libchempi/api/api_impl.h"
#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/base/setting.h"
#include "libchempi/didl/base/status.h"
#include "libchempi/didl/comm/make/comm_make.h"
#include "libchempi/didl/comm/message.h"
#include "libchempi/didl/datatype/datatype.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/proc/meet.h"
#include "libchempi/didl/transport/conn.h"
#include "libchempi/didl/transport/worlds/foreign.h"

struct bridge {
    struct chempi_meet meet;
    uint32_t far; /* the other leader */
    char port[CHEMPI_PORT_NAME_MAX];
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
static bool is_owner(uint32_t far)
{
    const struct chempi_name mine =
        chempi_foreign_name(chempi_ctx.services.proc);
    const struct chempi_name other = chempi_foreign_name(far);

    return chempi_foreign_compare(&mine, &other) < 0;
}

/* Nothing in place of a name: it could not be opened. */
static int tell_port(const struct bridge *b, int remote_leader, int tag,
                     struct chempi_comm *peer_comm)
{
    struct chempi_datatype *chars = chempi_datatype_lookup(MPI_CHAR);
    const int rc = chempi_message_send_on(
        b->port, b->meet.error ? 0 : (MPI_Count)sizeof(b->port), chars,
        remote_leader, tag, peer_comm, CHEMPI_CONTEXT_INTER);

    return b->meet.error ? b->meet.error : rc;
}

static int hear_port(struct bridge *b, int remote_leader, int tag,
                     struct chempi_comm *peer_comm)
{
    struct chempi_datatype *chars = chempi_datatype_lookup(MPI_CHAR);
    MPI_Status status;
    const int rc = chempi_message_recv_on(b->port, (MPI_Count)sizeof(b->port),
                                          chars, remote_leader, tag, peer_comm,
                                          CHEMPI_CONTEXT_INTER, &status);

    if (rc != MPI_SUCCESS)
        return rc;
    if (chempi_status_bytes(&status) != sizeof(b->port) ||
        !memchr(b->port, '\0', sizeof(b->port)))
        return chempi_error_set(MPI_ERR_OTHER, "the other group's leader has "
                                               "not opened a port");
    return MPI_SUCCESS;
}

/* Who fails hears in the meeting that its group does, and leaves it; then the
 * other leader waits for nobody, or no longer than its patience. */
static int bridge(struct chempi_comm *local_comm, int local_leader,
                  struct chempi_comm *peer_comm, int remote_leader, int tag,
                  MPI_Comm *newintercomm)
{
    struct bridge b = {
        .meet = {.comm = local_comm,
                 .root = local_leader,
                 .begin = chempi_meet_connect,
                 .port = b.port,
                 .way = "the leader of the other group",
                 .error_class = MPI_ERR_OTHER,
                 .limit_ns = chempi_setting(CHEMPI_SET_MEET_PATIENCE) *
                             CHEMPI_NS_PER_MS,
                 .most = CHEMPI_FOREIGN_MAX,
                 .is_hopeless = is_far_lost}};
    bool is_open = false;
    int rc;

    if (local_comm->rank == local_leader) {
        b.far = chempi_comm_proc(peer_comm, (uint32_t)remote_leader);
        if (is_owner(b.far)) {
            b.meet.begin = chempi_meet_accept;
            b.meet.error = chempi_proc_open_port(NULL, b.port);
            is_open = b.meet.error == MPI_SUCCESS;
            b.meet.error = tell_port(&b, remote_leader, tag, peer_comm);
        } else {
            b.meet.error = hear_port(&b, remote_leader, tag, peer_comm);
        }
    }
    rc = chempi_meet(&b.meet, newintercomm);
    if (is_open)
        (void)chempi_proc_close_port(b.port);
    return rc;
}

int chempi_proc_create_inter(struct chempi_comm *local_comm, int local_leader,
                             struct chempi_comm *peer_comm, int remote_leader,
                             int tag, MPI_Comm *newintercomm)
{
    bool has_strangers = false;
    const int rc = chempi_comm_create_inter(local_comm, local_leader, peer_comm,
                                            remote_leader, tag, newintercomm,
                                            &has_strangers);

    return has_strangers ? bridge(local_comm, local_leader, peer_comm,
                                  remote_leader, tag, newintercomm)
                         : rc;
}
