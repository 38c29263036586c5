/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Contexts of communicators that are freed while light handles are out
 * (context_id.h): they rest until there is none, be it that its message was
 * cancelled and its answer comes to somebody who is not the application, or
 * that a session ends with it; and a program that has one at any time does not
 * use up all contexts.
 */
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libchempi/didl/comm/comm.h"
#include "libchempi/didl/comm/context_id.h"
#include "libchempi/didl/transport/light.h"
#include "tests/mpi/check.h"

enum {
    TAG = 1,
    OTHER_TAG = 2,
    LEFT_TAG = 3,
    ROUNDS = 3 * CHEMPI_CONTEXT_ID_RESTING_MAX
};

static int rank;
static char name[PATH_MAX];

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

/* Those that rest come free, and sends have light handles again. */
static void send_always(MPI_Comm comm)
{
    const uint32_t id = next_id(comm);
    MPI_Request request = MPI_REQUEST_NULL;
    int count = 0;

    for (int i = 0; i < ROUNDS; i++) {
        uint32_t now;

        if (rank == 0) {
            MPI_Request before = request;

            request = send_one(comm, TAG);
            count += chempi_light_is(request);
            MPI_Wait(&before, MPI_STATUS_IGNORE);
        } else {
            receive_one(comm, TAG);
        }
        now = next_id(comm);
        CHECK_OR_DIE(now < id + 2 * CHEMPI_CONTEXT_ID_RESTING_MAX,
                     "round %d: context %u", i, now);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(rank > 0 || count > 2 * (int)CHEMPI_CONTEXT_ID_RESTING_MAX,
          "%d of %d sends have light handles", count, (int)ROUNDS);
}

/* Many rest, none is left, and no communicator is made: the second send has
 * one again. */
static void rest_and_send(MPI_Comm comm)
{
    MPI_Request request = MPI_REQUEST_NULL;

    if (rank == 0)
        request = send_one(comm, TAG);
    else
        receive_one(comm, TAG);
    for (uint32_t i = 0; i < CHEMPI_CONTEXT_ID_RESTING_MAX; i++)
        (void)next_id(comm);
    if (rank > 0) {
        receive_one(comm, TAG);
        receive_one(comm, TAG);
        return;
    }
    CHECK(chempi_light_is(request), "the first send");
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    request = send_one(comm, TAG);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    request = send_one(comm, TAG);
    CHECK(chempi_light_is(request), "sends stay without");
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* Until the other side does the same. */
static void meet(int way)
{
    int fd = open(name, way);

    CHECK_OR_DIE(fd >= 0, "cannot open %s", name);
    (void)close(fd);
}

/* With a send, and one that was cancelled, of which nobody hears again; their
 * receiver is out of MPI until the sender is. */
static void leave_some(MPI_Comm comm)
{
    MPI_Request request;

    if (rank == 1)
        return;
    meet(O_RDONLY);
    (void)send_one(comm, LEFT_TAG);
    request = send_one(comm, LEFT_TAG);
    MPI_Cancel(&request);
    CHECK(!chempi_light_is_plain(), "none is recalled");
}

static void after_leaving(void)
{
    if (rank == 1) {
        meet(O_WRONLY);
        meet(O_RDONLY);
        return;
    }
    CHECK(chempi_light_is_none(), "%lld are left, %u recalled",
          (long long)lights(), atomic_load(&chempi_light.recalled));
    meet(O_WRONLY);
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
    CHECK_OR_DIE(argc > 1, "name a folder");
    (void)snprintf(name, sizeof(name), "%s/light", argv[1]);
    (void)mkfifo(name, 0600); /* one of the two does */
    in_session(leave_some);
    after_leaving();
    in_session(cancel_and_free);
    in_session(send_always);
    in_session(rest_and_send);
    (void)unlink(name);
    check_start(&argc, &argv);
    return check_finish();
}
