/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who counts as missing: processes of the own job only where the job survives
 * their loss. Elsewhere a loss of a process of another world, which makes each
 * operation ask who is missing, concerns no communicator of the own job, and
 * nobody walks through its members.
 *
 * inside-own_losses [survives]
 */
#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/comm/comm.h"
#include "libchempi/didl/transport/conn.h"
#include "libchempi/didl/transport/lane.h"
#include "libchempi/didl/transport/loss.h"
#include "tests/mpi/check.h"

enum { TAG = 1 };

/* As if another process were lost, which the library takes back later. */
static void set_lost(struct chempi_peer *peer, bool is_lost)
{
    atomic_store(&peer->is_lost, is_lost);
    chempi_ctx.missing = is_lost;
}

int main(int argc, char **argv)
{
    struct chempi_lane *lane = &chempi_lane_main;
    const struct chempi_comm *world = &chempi_comm_world;
    const uint32_t context = world->recv_context + CHEMPI_CONTEXT_COLL;
    struct chempi_peer *peer;
    bool survives;
    bool is_vain;
    int32_t lost;
    int other;

    check_start(&argc, &argv);
    check_need(2);
    survives = argc > 1 && strcmp(argv[1], "survives") == 0;
    other = (check_rank() + 1) % check_size();
    MPI_Barrier(MPI_COMM_WORLD);
    chempi_lane_lock(lane);
    peer = chempi_conn_peer(lane, (uint32_t)other);
    set_lost(peer, true);
    lost = chempi_loss_rank(world);
    is_vain = chempi_loss_is_vain(world, context, other, TAG);
    set_lost(peer, false);
    chempi_lane_unlock(lane);
    CHECK(lost == (survives ? other : -1), "rank %d counts as missing",
          (int)lost);
    CHECK(is_vain == survives, "a receive from it is %sin vain",
          is_vain ? "" : "not ");
    MPI_Barrier(MPI_COMM_WORLD);
    return check_finish();
}
