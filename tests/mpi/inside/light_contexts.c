/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Contexts of communicators that are freed while light handles are out
 * (context_id.h): they rest until there is none, be it that its message was
 * cancelled and its answer comes to somebody who is not the application, or
 * that a session ends with it.
 */
#include "libchempi/didl/comm/comm.h"
#include "libchempi/didl/transport/light.h"
#include "tests/mpi/check.h"

enum { TAG = 1, OTHER_TAG = 2 };

static int rank;

static uint32_t id_of(MPI_Comm comm)
{
    return chempi_comm_lookup(comm)->recv_context / CHEMPI_CONTEXT_STEP;
}

/* The context that a duplicate gets. */
static uint32_t next_id(MPI_Comm comm)
{
    MPI_Comm made;
    uint32_t id;

    MPI_Comm_dup(comm, &made);
    id = id_of(made);
    MPI_Comm_free(&made);
    return id;
}

static int64_t lights(void)
{
    return atomic_load(&chempi_lane_main.lights);
}

static MPI_Request send_one(MPI_Comm comm, int tag)
{
    MPI_Request request;

    MPI_Isend(NULL, 0, MPI_INT, 1, tag, comm, &request);
    return request;
}

static void receive_one(MPI_Comm comm, int tag)
{
    MPI_Recv(NULL, 0, MPI_INT, 1 - rank, tag, comm, MPI_STATUS_IGNORE);
}

/* Who changes the count of those that are out is the application: MPI_Wait does
 * so without a lock, while an agent may hear of what was cancelled. */
static void cancel_and_free(MPI_Comm comm)
{
    const uint32_t id = next_id(comm);
    MPI_Request request;

    if (rank == 0) {
        request = send_one(comm, OTHER_TAG);
        CHECK(lights() == 1, "%lld are out", (long long)lights());
        MPI_Cancel(&request);
        CHECK(lights() == 0, "%lld are not cancelled", (long long)lights());
        CHECK(!chempi_light_is_none(), "none is recalled");
        MPI_Request_free(&request);
        request = send_one(comm, TAG);
        receive_one(comm, OTHER_TAG); /* behind the answer */
        CHECK(chempi_light_is_plain(), "it has not gone");
        CHECK(lights() == 1, "%lld are out beside", (long long)lights());
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK(chempi_light_is_none(), "%lld are left", (long long)lights());
    } else {
        receive_one(comm, TAG);
        MPI_Send(NULL, 0, MPI_INT, 0, OTHER_TAG, comm);
    }
    CHECK(next_id(comm) == id, "context %u is not free", id);
}

/* With a send, and one that was cancelled, of which nobody hears again. */
static void leave_some(MPI_Comm comm)
{
    MPI_Request request;

    if (rank == 0) {
        (void)send_one(comm, TAG);
        request = send_one(comm, OTHER_TAG);
        MPI_Cancel(&request);
    } else {
        receive_one(comm, TAG);
    }
}

static void in_session(void (*run)(MPI_Comm comm))
{
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm;

    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "light", MPI_INFO_NULL,
                               MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Comm_rank(comm, &rank);
    MPI_Sendrecv(NULL, 0, MPI_INT, 1 - rank, TAG, NULL, 0, MPI_INT, 1 - rank,
                 TAG, comm, MPI_STATUS_IGNORE); /* now they are connected */
    run(comm);
    MPI_Comm_free(&comm);
    MPI_Group_free(&group);
    MPI_Session_finalize(&session);
}

int main(int argc, char **argv)
{
    in_session(leave_some);
    CHECK(chempi_light_is_none(), "%lld are left, %u recalled",
          (long long)lights(), atomic_load(&chempi_light.recalled));
    in_session(cancel_and_free);
    check_start(&argc, &argv);
    return check_finish();
}
