/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two jobs meet by a port, and do with each other what ranks of one job do:
 * messages of all sizes in both directions, collectives, communicators made of
 * both, windows. Then they part, and meet again by the same port.
 *
 * meet accept|connect FIFO [MEETINGS]: the name of the port goes through FIFO.
 */
#include <errno.h>
#include <sys/stat.h>

#include "check.h"

enum { TAG = 7, LARGE = 3 << 20, BLOCK = 1000 };

static const size_t lengths[] = {0, 1, 64, 4000, 70000, LARGE};

static uint64_t seed(int from_side, int from, int to, size_t len)
{
    return check_mix(
        (uint64_t)from_side << 40 | (uint64_t)from << 20 | (uint64_t)to, len);
}

/* Everybody sends to everybody of the other side at once, so that processes
 * call each other from both sides. */
static void exchange(MPI_Comm inter, int side)
{
    int remote, rank;

    MPI_Comm_remote_size(inter, &remote);
    MPI_Comm_rank(inter, &rank);
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        const size_t len = lengths[i];
        MPI_Request *reqs = check_alloc(2 * (size_t)remote * sizeof(*reqs));
        char *out = check_alloc((size_t)remote * (len + 1));
        char *in = check_alloc((size_t)remote * (len + 1));

        for (int r = 0; r < remote; r++) {
            check_fill(out + (size_t)r * len, len, seed(side, rank, r, len));
            MPI_Irecv(in + (size_t)r * len, (int)len, MPI_BYTE, r, TAG, inter,
                      &reqs[r]);
            MPI_Isend(out + (size_t)r * len, (int)len, MPI_BYTE, r, TAG, inter,
                      &reqs[remote + r]);
        }
        MPI_Waitall(2 * remote, reqs, MPI_STATUSES_IGNORE);
        for (int r = 0; r < remote; r++)
            CHECK(check_differs(in + (size_t)r * len, len,
                                seed(!side, r, rank, len)) == SIZE_MAX,
                  "%zu bytes from rank %d of the other side", len, r);
        free(reqs);
        free(out);
        free(in);
    }
}

/* Messages that nobody has asked for yet, more than the quota of eager payload
 * has room for; the last one is wanted first. */
static void flood(MPI_Comm inter, int side)
{
    enum { COUNT = 3000, LEN = 4000 };
    char *data = check_alloc((size_t)COUNT * LEN);
    MPI_Request *reqs = check_alloc(COUNT * sizeof(*reqs));
    MPI_Status status;
    int rank, got;

    MPI_Comm_rank(inter, &rank);
    if (rank == 0 && side == 1) {
        for (int i = 0; i < COUNT; i++) {
            check_fill(data + i * LEN, LEN, (uint64_t)i);
            MPI_Isend(data + i * LEN, LEN, MPI_BYTE, 0, i, inter, &reqs[i]);
        }
        MPI_Waitall(COUNT, reqs, MPI_STATUSES_IGNORE);
    } else if (rank == 0) {
        MPI_Recv(data, LEN, MPI_BYTE, MPI_ANY_SOURCE, COUNT - 1, inter,
                 MPI_STATUS_IGNORE);
        for (int i = 0; i < COUNT - 1; i++) {
            MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, inter, &status);
            MPI_Get_count(&status, MPI_BYTE, &got);
            CHECK(status.MPI_TAG == i && got == LEN, "message %d", i);
            MPI_Recv(data, LEN, MPI_BYTE, 0, i, inter, MPI_STATUS_IGNORE);
            CHECK(check_differs(data, LEN, (uint64_t)i) == SIZE_MAX,
                  "message %d", i);
        }
    }
    free(reqs);
    free(data);
}

/* A large message comes while its receiver is out of MPI until its sender says
 * by a fifo that it has gone. */
static void while_away(MPI_Comm inter, int side, const char *fifo)
{
    char path[FILENAME_MAX];
    char *data = check_alloc(LARGE);
    MPI_Request req;
    FILE *file;
    int rank;

    MPI_Comm_rank(inter, &rank);
    (void)snprintf(path, sizeof(path), "%s.away", fifo);
    if (rank == 0) {
        CHECK_OR_DIE(mkfifo(path, 0600) == 0 || errno == EEXIST, "mkfifo");
        check_fill(data, LARGE, (uint64_t)side);
        if (side == 0)
            MPI_Irecv(data, LARGE, MPI_BYTE, 0, TAG, inter, &req);
        else
            MPI_Ssend(data, LARGE, MPI_BYTE, 0, TAG, inter);
        file = fopen(path, side == 0 ? "r" : "w");
        CHECK_OR_DIE(file && fclose(file) == 0, "open %s", path);
        if (side == 0)
            MPI_Wait(&req, MPI_STATUS_IGNORE);
        CHECK(check_differs(data, LARGE, 1) == SIZE_MAX, "other bytes");
    }
    free(data);
}

static void collectives(MPI_Comm both)
{
    int size, rank, sum = 0;
    int *all;

    MPI_Comm_size(both, &size);
    MPI_Comm_rank(both, &rank);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, both);
    CHECK(sum == size * (size - 1) / 2, "a sum is %d", sum);
    all = check_alloc((size_t)size * BLOCK * sizeof(*all));
    for (int root = 0; root < size; root++) {
        for (int i = 0; i < BLOCK; i++)
            all[i] = rank == root ? root * BLOCK + i : -1;
        MPI_Bcast(all, BLOCK, MPI_INT, root, both);
        CHECK(all[BLOCK - 1] == root * BLOCK + BLOCK - 1, "bcast from %d",
              root);
    }
    for (int i = 0; i < BLOCK; i++)
        all[rank * BLOCK + i] = rank + i;
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, BLOCK, MPI_INT,
                  both);
    for (int r = 0; r < size; r++)
        CHECK(all[r * BLOCK + 1] == r + 1, "allgather: block %d", r);
    for (int r = 0; r < size; r++)
        all[r] = rank * size + r;
    MPI_Alltoall(MPI_IN_PLACE, 1, MPI_INT, all, 1, MPI_INT, both);
    for (int r = 0; r < size; r++)
        CHECK(all[r] == r * size + rank, "alltoall: block %d", r);
    MPI_Barrier(both);
    free(all);
}

/* What is made of a communicator that spans both jobs. */
static void derive(MPI_Comm both)
{
    MPI_Comm made;
    MPI_Request req;
    MPI_Group group;
    int rank, own, result;

    MPI_Comm_rank(both, &rank);
    MPI_Comm_dup(both, &made);
    collectives(made);
    MPI_Comm_free(&made);
    MPI_Comm_idup(both, &made, &req);
    MPI_Wait(&req, MPI_STATUS_IGNORE);
    collectives(made);
    MPI_Comm_free(&made);
    MPI_Comm_split(both, rank % 2, -rank, &made);
    collectives(made);
    MPI_Comm_free(&made);
    MPI_Comm_split_type(both, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &made);
    MPI_Comm_size(made, &own);
    CHECK(own <= check_size(), "%d processes of two jobs share memory", own);
    MPI_Comm_free(&made);
    MPI_Comm_group(both, &group);
    MPI_Comm_create_group(both, group, 3, &made);
    collectives(made);
    MPI_Comm_compare(made, both, &result);
    CHECK(result == MPI_CONGRUENT, "the same group is another one");
    MPI_Comm_free(&made);
    result = MPI_Comm_create_from_group(group, "several worlds", MPI_INFO_NULL,
                                        MPI_ERRORS_RETURN, &made);
    CHECK(check_class(result) == MPI_ERR_GROUP, "class %d of several worlds",
          check_class(result));
    MPI_Group_free(&group);
}

/* The halves of what spans both jobs, in another order than their worlds, meet
 * again through one of its communicators. */
static void bridge(MPI_Comm both)
{
    MPI_Comm half, inter, merged;
    int size, rank, remote;

    MPI_Comm_size(both, &size);
    MPI_Comm_rank(both, &rank);
    MPI_Comm_split(both, rank % 2, rank, &half);
    MPI_Intercomm_create(half, 0, both, 1 - rank % 2, 5, &inter);
    MPI_Comm_remote_size(inter, &remote);
    CHECK(remote == (rank % 2 ? (size + 1) / 2 : size / 2),
          "the other half has %d", remote);
    MPI_Intercomm_merge(inter, rank % 2, &merged);
    collectives(merged);
    MPI_Comm_free(&merged);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
}

/* Rank 0 of both worlds and rank 1 of the first one meet through the first
 * world's communicator, whose ranks mean nothing at the second one. */
static void bridge_within(MPI_Comm pair, int side)
{
    const bool is_alone = side == 0 && check_rank() == 1;
    const MPI_Comm local = is_alone ? MPI_COMM_SELF : pair;
    MPI_Comm inter;
    MPI_Comm merged;

    if (local == MPI_COMM_NULL)
        return;
    MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, is_alone ? 0 : 1, 5, &inter);
    MPI_Intercomm_merge(inter, is_alone, &merged);
    collectives(merged);
    MPI_Comm_free(&merged);
    MPI_Comm_free(&inter);
}

/* A file that both worlds write, and its shared pointer. */
static void files(MPI_Comm both, const char *fifo)
{
    char path[FILENAME_MAX];
    int *data = check_alloc(BLOCK * sizeof(*data));
    const MPI_Offset block_len = BLOCK * sizeof(*data);
    MPI_File file;
    MPI_Offset where;
    int size, rank;

    MPI_Comm_size(both, &size);
    MPI_Comm_rank(both, &rank);
    (void)snprintf(path, sizeof(path), "%s.file", fifo);
    MPI_File_open(both, path,
                  MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
                  MPI_INFO_NULL, &file);
    MPI_File_set_errhandler(file, MPI_ERRORS_ARE_FATAL);
    for (int i = 0; i < BLOCK; i++)
        data[i] = rank * BLOCK + i;
    MPI_File_write_at_all(file, rank * block_len, data, BLOCK, MPI_INT,
                          MPI_STATUS_IGNORE);
    MPI_File_sync(file);
    MPI_Barrier(both);
    MPI_File_sync(file);
    MPI_File_read_at_all(file, (size - 1 - rank) * block_len, data, BLOCK,
                         MPI_INT, MPI_STATUS_IGNORE);
    for (int i = 0; i < BLOCK; i++)
        CHECK(data[i] == (size - 1 - rank) * BLOCK + i, "element %d is %d", i,
              data[i]);
    MPI_File_read_shared(file, data, BLOCK, MPI_INT, MPI_STATUS_IGNORE);
    CHECK(data[0] % BLOCK == 0 && data[BLOCK - 1] == data[0] + BLOCK - 1,
          "a shared block begins with %d", data[0]);
    MPI_Barrier(both);
    MPI_File_get_position_shared(file, &where);
    CHECK(where == size * block_len, "the shared pointer is at %lld",
          (long long)where);
    MPI_Barrier(both);
    MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
    MPI_File_read_ordered(file, data, BLOCK, MPI_INT, MPI_STATUS_IGNORE);
    CHECK(data[0] == rank * BLOCK, "an ordered block begins with %d", data[0]);
    MPI_File_close(&file);
    free(data);
}

static void windows(MPI_Comm both)
{
    MPI_Win win;
    int *memory;
    int size, rank, sum;

    MPI_Comm_size(both, &size);
    MPI_Comm_rank(both, &rank);
    MPI_Win_allocate((MPI_Aint)(((size_t)size + 1) * sizeof(int)), sizeof(int),
                     MPI_INFO_NULL, both, &memory, &win);
    for (int r = 0; r <= size; r++)
        memory[r] = 0;
    MPI_Win_fence(0, win);
    for (int r = 0; r < size; r++) {
        MPI_Put(&rank, 1, MPI_INT, r, rank, 1, MPI_INT, win);
        MPI_Accumulate(&rank, 1, MPI_INT, r, size, 1, MPI_INT, MPI_SUM, win);
    }
    MPI_Win_fence(0, win);
    for (int r = 0; r < size; r++)
        CHECK(memory[r] == r, "put of rank %d: %d", r, memory[r]);
    CHECK(memory[size] == size * (size - 1) / 2, "sum %d", memory[size]);
    MPI_Win_fence(0, win);
    for (int r = 0; r < size; r++) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, r, 0, win);
        MPI_Fetch_and_op(&size, &sum, MPI_INT, r, size, MPI_SUM, win);
        MPI_Win_unlock(r, win);
    }
    MPI_Barrier(both);
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
    CHECK(memory[size] == size * (size - 1) / 2 + size * size, "sum %d",
          memory[size]);
    MPI_Win_unlock(rank, win);
    MPI_Win_free(&win);
}

/* Parts of both sides, in another order: all but rank 0, backwards, of more
 * than one. */
static void create(MPI_Comm inter, int side)
{
    int ranges[1][3] = {{0, 0, 1}};
    MPI_Comm made, merged;
    MPI_Group own, part;
    int size, there, rank, remote;

    MPI_Comm_size(inter, &size);
    MPI_Comm_remote_size(inter, &there);
    MPI_Comm_rank(inter, &rank);
    if (size > 1) {
        ranges[0][0] = size - 1;
        ranges[0][1] = 1;
        ranges[0][2] = -1;
    }
    MPI_Comm_group(inter, &own);
    MPI_Group_range_incl(own, 1, ranges, &part);
    MPI_Comm_create(inter, part, &made);
    CHECK((made == MPI_COMM_NULL) == (rank == 0 && size > 1),
          "a communicator, or none");
    if (made != MPI_COMM_NULL) {
        MPI_Comm_remote_size(made, &remote);
        CHECK(remote == (there > 1 ? there - 1 : 1), "%d of %d", remote, there);
        for (int i = 0; i < remote; i++) {
            int got = -1;

            MPI_Sendrecv(&rank, 1, MPI_INT, i, TAG, &got, 1, MPI_INT, i, TAG,
                         made, MPI_STATUS_IGNORE);
            CHECK(got == there - 1 - i, "rank %d is now %d", got, i);
        }
        MPI_Intercomm_merge(made, side, &merged);
        collectives(merged);
        MPI_Comm_free(&merged);
        MPI_Comm_free(&made);
    }
    MPI_Comm_split(inter, rank % 2, -rank, &made);
    if (made != MPI_COMM_NULL) {
        MPI_Intercomm_merge(made, side, &merged);
        collectives(merged);
        MPI_Comm_free(&merged);
        MPI_Comm_free(&made);
    }
    MPI_Group_free(&part);
    MPI_Group_free(&own);
}

/* From rank 0 of one side to that of the other one. */
static void send_parts(MPI_Comm inter, bool sends)
{
    enum { PARTS = 4, PART = 3000 };
    static unsigned char parts[PARTS * PART];
    MPI_Request request;

    if (check_rank() != 0)
        return;
    memset(parts, sends ? 5 : 0, sizeof(parts));
    if (sends)
        MPI_Psend_init(parts, PARTS, PART, MPI_BYTE, 0, TAG, inter,
                       MPI_INFO_NULL, &request);
    else
        MPI_Precv_init(parts, PARTS, PART, MPI_BYTE, 0, TAG, inter,
                       MPI_INFO_NULL, &request);
    MPI_Start(&request);
    for (int i = PARTS; i > 0 && sends; i--)
        MPI_Pready(i - 1, request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
    for (size_t i = 0; i < sizeof(parts); i++)
        CHECK(parts[i] == 5, "byte %zu of the parts is %d", i, parts[i]);
}

static void be_together(MPI_Comm inter, int side, const char *fifo)
{
    MPI_Comm both, pair;
    MPI_Group own, other;
    int size, rank, remote, result;

    MPI_Comm_remote_size(inter, &remote);
    MPI_Comm_remote_group(inter, &other);
    MPI_Comm_group(inter, &own);
    MPI_Group_compare(own, other, &result);
    CHECK(result == MPI_UNEQUAL, "the other side is this one");
    MPI_Group_free(&own);
    MPI_Group_free(&other);
    exchange(inter, side);
    send_parts(inter, side == 0);
    flood(inter, side);
    while_away(inter, side, fifo);
    create(inter, side);
    MPI_Intercomm_merge(inter, side == 0, &both);
    MPI_Comm_size(both, &size);
    MPI_Comm_rank(both, &rank);
    CHECK(size == check_size() + remote, "both sides have %d", size);
    CHECK(side == 0 ? rank >= remote : rank < check_size(),
          "the high side is not behind");
    collectives(both);
    derive(both);
    bridge(both);
    if (side == 0 ? check_size() > 1 : remote > 1) {
        MPI_Comm_split(both, check_rank() == 0 ? 0 : MPI_UNDEFINED, side,
                       &pair);
        bridge_within(pair, side);
        if (pair != MPI_COMM_NULL)
            MPI_Comm_free(&pair);
    }
    files(both, fifo);
    windows(both);
    MPI_Comm_free(&both);
}

/* What another thread of each rank does meanwhile, until all are told. */
static _Atomic bool is_over;

static void *chat(void *arg)
{
    const MPI_Comm *comm = arg;
    int size, rank, over = 0;

    MPI_Comm_size(*comm, &size);
    MPI_Comm_rank(*comm, &rank);
    while (!over) {
        int got = -1;
        int mine = is_over;

        MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, TAG, &got, 1,
                     MPI_INT, (rank + size - 1) % size, TAG, *comm,
                     MPI_STATUS_IGNORE);
        CHECK(got == (rank + size - 1) % size, "rank %d hears of %d", rank,
              got);
        MPI_Allreduce(&mine, &over, 1, MPI_INT, MPI_MIN, *comm);
    }
    return NULL;
}

struct way {
    bool accepts;
    const char *fifo;
    long meetings;
    char name[MPI_MAX_PORT_NAME];
};

/* Rank 0 of both sides alone: rank 1 of the first side knows nobody of the
 * other one, which does not know rank 1. */
static void meet_in_part(const struct way *way)
{
    MPI_Comm inter, pair = MPI_COMM_NULL;
    int size = check_size(); /* of the first side */

    if (check_rank() == 0) {
        if (way->accepts)
            MPI_Comm_accept(way->name, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter);
        else
            MPI_Comm_connect(way->name, MPI_INFO_NULL, 0, MPI_COMM_SELF,
                             &inter);
        MPI_Intercomm_merge(inter, !way->accepts, &pair);
        MPI_Comm_disconnect(&inter);
        MPI_Bcast(&size, 1, MPI_INT, 0, pair);
    }
    if (size > 1)
        bridge_within(pair, way->accepts ? 0 : 1);
    if (pair != MPI_COMM_NULL)
        MPI_Comm_disconnect(&pair);
}

static void meet(struct way *way)
{
    meet_in_part(way);
    for (long i = 0; i < way->meetings; i++) {
        const int root = (int)(i % check_size());
        const char *port = check_rank() == 0 ? way->name : NULL;
        MPI_Comm inter;

        if (way->accepts) {
            MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter);
        } else { /* any member may be the root */
            MPI_Bcast(way->name, sizeof(way->name), MPI_CHAR, 0,
                      MPI_COMM_WORLD);
            MPI_Comm_connect(way->name, MPI_INFO_NULL, root, MPI_COMM_WORLD,
                             &inter);
        }
        be_together(inter, way->accepts ? 0 : 1, way->fifo);
        MPI_Comm_disconnect(&inter);
        CHECK(inter == MPI_COMM_NULL, "it is still there");
    }
}

static void *meet_in_thread(void *arg)
{
    meet(arg);
    is_over = true;
    return NULL;
}

static MPI_Comm beside; /* of the other threads */

/* One of two threads meets the others. */
static void *be_busy(void *arg)
{
    static _Atomic int turn;

    return turn++ == 0 ? meet_in_thread(arg) : chat(&beside);
}

/* meet accept|connect FIFO [MEETINGS [threads]] */
int main(int argc, char **argv)
{
    struct way way = {.meetings = 1};
    const bool has_threads = argc > 4;

    if (has_threads)
        check_start_thread(&argc, &argv, MPI_THREAD_MULTIPLE);
    else
        check_start(&argc, &argv);
    CHECK_OR_DIE(argc > 2, "usage: meet accept|connect FIFO [MEETINGS]");
    way.accepts = strcmp(argv[1], "accept") == 0;
    way.fifo = argv[2];
    way.meetings = check_arg(argc, argv, 3, 1);
    if (way.accepts && check_rank() == 0)
        MPI_Open_port(MPI_INFO_NULL, way.name);
    check_pass_port(way.accepts, way.fifo, way.name);
    MPI_Comm_dup(MPI_COMM_WORLD, &beside);
    if (has_threads)
        check_run_threads(2, be_busy, &way, 0);
    else
        meet(&way);
    MPI_Comm_free(&beside);
    if (way.accepts && check_rank() == 0)
        MPI_Close_port(way.name);
    return check_finish();
}
