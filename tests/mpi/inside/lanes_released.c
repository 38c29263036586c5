/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Communicators in lanes of their own, freed with an operation of each kind
 * under way: each is gone when its operation is over, so that the next ones get
 * its context again.
 */
#include "libchempi/didl/comm/comm.h"
#include "libchempi/didl/transport/lane.h"
#include "tests/mpi/check.h"

enum { LARGE = 2 << 20, ROUNDS = 8, SLACK = 4, TAG = 5 };

static struct {
    int up;
    int down;
    char *out;
    char *in;
    uint32_t first; /* context */
    unsigned lanes; /* seen, a bit each */
} my;

/* A kind starts what will be over when finish() was called: requests[0] and
 * [1], what is null there is no matter; or `message`. */
struct work {
    MPI_Request requests[2];
    MPI_Message message;
};

static void receive(MPI_Comm comm, int len, struct work *w)
{
    MPI_Irecv(my.in, len, MPI_BYTE, my.down, TAG, comm, &w->requests[0]);
}

static void small(MPI_Comm comm, struct work *w)
{
    receive(comm, 1, w);
    MPI_Isend(my.out, 1, MPI_BYTE, my.up, TAG, comm, &w->requests[1]);
}

static void large(MPI_Comm comm, struct work *w)
{
    receive(comm, LARGE, w);
    MPI_Isend(my.out, LARGE, MPI_BYTE, my.up, TAG, comm, &w->requests[1]);
}

static void synchronous(MPI_Comm comm, struct work *w)
{
    MPI_Issend(my.out, 1, MPI_BYTE, my.up, TAG, comm, &w->requests[1]);
    receive(comm, 1, w);
}

static void buffered(MPI_Comm comm, struct work *w)
{
    MPI_Bsend(my.out, 1000, MPI_BYTE, my.up, TAG, comm);
    receive(comm, 1000, w);
}

/* Nobody waits for the send. */
static void let_go(MPI_Comm comm, struct work *w)
{
    MPI_Isend(my.out, LARGE, MPI_BYTE, my.up, TAG, comm, &w->requests[1]);
    MPI_Request_free(&w->requests[1]);
    receive(comm, LARGE, w);
}

static void persistent(MPI_Comm comm, struct work *w)
{
    MPI_Send_init(my.out, LARGE, MPI_BYTE, my.up, TAG, comm, &w->requests[1]);
    MPI_Recv_init(my.in, LARGE, MPI_BYTE, my.down, TAG, comm, &w->requests[0]);
    MPI_Startall(2, w->requests);
}

static void partitioned(MPI_Comm comm, struct work *w)
{
    MPI_Psend_init(my.out, 2, LARGE / 2, MPI_BYTE, my.up, TAG, comm,
                   MPI_INFO_NULL, &w->requests[1]);
    MPI_Precv_init(my.in, 2, LARGE / 2, MPI_BYTE, my.down, TAG, comm,
                   MPI_INFO_NULL, &w->requests[0]);
    MPI_Startall(2, w->requests);
    MPI_Pready_range(0, 1, w->requests[1]);
}

static void matched(MPI_Comm comm, struct work *w)
{
    MPI_Isend(my.out, LARGE, MPI_BYTE, my.up, TAG, comm, &w->requests[1]);
    MPI_Mprobe(my.down, TAG, comm, &w->message, MPI_STATUS_IGNORE);
}

static void cancelled(MPI_Comm comm, struct work *w)
{
    receive(comm, 1, w);
    MPI_Cancel(&w->requests[0]);
}

static void exchange(MPI_Comm comm, struct work *w)
{
    MPI_Isendrecv(my.out, LARGE, MPI_BYTE, my.up, TAG, my.in, LARGE, MPI_BYTE,
                  my.down, TAG, comm, &w->requests[0]);
}

static void finish(struct work *w)
{
    if (w->message != MPI_MESSAGE_NULL)
        MPI_Mrecv(my.in, LARGE, MPI_BYTE, &w->message, MPI_STATUS_IGNORE);
    MPI_Waitall(2, w->requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 2; i++)
        if (w->requests[i] != MPI_REQUEST_NULL)
            MPI_Request_free(&w->requests[i]);
}

static const struct kind {
    const char *name;
    void (*start)(MPI_Comm comm, struct work *w);
} kinds[] = {
    {"small", small},
    {"large", large},
    {"synchronous", synchronous},
    {"buffered", buffered},
    {"let go", let_go},
    {"persistent", persistent},
    {"partitioned", partitioned},
    {"matched", matched},
    {"cancelled", cancelled},
    {"exchange", exchange},
};

enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

/* Threads have nothing to do with it. */
static void work(const struct kind *kind)
{
    struct work w = {{MPI_REQUEST_NULL, MPI_REQUEST_NULL}, MPI_MESSAGE_NULL};
    const struct chempi_comm *made;
    uint32_t place;
    MPI_Comm comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    made = chempi_comm_lookup(comm);
    place = (made->recv_context - my.first) / CHEMPI_CONTEXT_STEP;
    my.lanes |= 1u << made->lane->number;
    CHECK(place <= SLACK, "%s: context %u after the first", kind->name, place);
    kind->start(comm, &w);
    MPI_Comm_free(&comm);
    finish(&w);
}

int main(int argc, char **argv)
{
    static char buffer[1 << 20];
    void *detached;
    MPI_Comm comm;
    int size;

    check_start_thread(&argc, &argv, MPI_THREAD_MULTIPLE);
    my.up = (check_rank() + 1) % check_size();
    my.down = (check_rank() + check_size() - 1) % check_size();
    my.out = check_alloc(LARGE);
    my.in = check_alloc(LARGE);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    my.first = chempi_comm_lookup(comm)->recv_context;
    MPI_Comm_free(&comm);
    MPI_Buffer_attach(buffer, (int)sizeof(buffer));
    for (int i = 0; i < KINDS; i++)
        for (int round = 0; round < ROUNDS; round++)
            work(&kinds[i]);
    MPI_Buffer_detach(&detached, &size);
    CHECK(my.lanes != 1 || chempi_lane_count == 1,
          "only the first lane is used");
    free(my.in);
    free(my.out);
    return check_finish();
}
