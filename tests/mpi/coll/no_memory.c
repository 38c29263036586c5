/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Long reductions of pairs with padding while one rank gets no memory for its
 * part. Where the result does not lie over the input they need none but what
 * is there; where they cannot go on all ranks get the same error, and the
 * communicator is as good as before. Non-blocking and persistent calls that
 * find no memory for anything: the others end, and the next one is right. On
 * several nodes, the beginning of a communicator: it fails for all of
 * its members, or for none.
 */
#include "check.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

enum {
    COUNT = 30000, /* pairs of a rank's part */
    PARTS_MAX = 8,
    AREAS = 64,      /* more communicators than have one at a time */
    LARGE = 64 << 10 /* bytes; less is there always */
};

struct pair {
    double value;
    int index;
};

enum call { REDUCE, ALLREDUCE, SCATTER, BLOCK, CALLS };

static bool is_poor;
static bool is_out; /* nothing is left */

static int zeroed_left = -1; /* allocations of zeroed memory until one fails;
                                -1: none does */

/* Not by malloc(): a compiler makes calloc() of that and memset(). */
static void *take(size_t size)
{
    enum { ALIGN = 16 };

    if (size <= SIZE_MAX - ALIGN)
        return aligned_alloc(ALIGN, (size + ALIGN - 1) / ALIGN * ALIGN);
    errno = ENOMEM;
    return NULL;
}

/* In place of libc's, for the library, too. */
void *malloc(size_t size)
{
    if ((is_poor && size >= LARGE) || is_out) {
        errno = ENOMEM;
        return NULL;
    }
    return take(size);
}

void *calloc(size_t count, size_t size)
{
    void *start = NULL;

    if (zeroed_left >= 0 && zeroed_left-- == 0)
        errno = ENOMEM;
    else if (size == 0 || count <= SIZE_MAX / size)
        start = take(count * size);
    return start ? memset(start, 0, count * size) : NULL;
}

/* Of COUNT pairs for every rank, with rank 0 as the root. */
static int reduce(MPI_Comm comm, enum call call, const void *in, void *out)
{
    const MPI_Datatype type = MPI_DOUBLE_INT;
    int all = COUNT * check_size();
    int counts[PARTS_MAX];

    for (int i = 0; i < check_size(); i++)
        counts[i] = COUNT;
    switch (call) {
    case REDUCE:
        if (in == MPI_IN_PLACE && check_rank() != 0)
            return MPI_Reduce(out, NULL, all, type, MPI_MAXLOC, 0, comm);
        return MPI_Reduce(in, out, all, type, MPI_MAXLOC, 0, comm);
    case ALLREDUCE:
        return MPI_Allreduce(in, out, all, type, MPI_MAXLOC, comm);
    case SCATTER:
        return MPI_Reduce_scatter(in, out, counts, type, MPI_MAXLOC, comm);
    default:
        return MPI_Reduce_scatter_block(in, out, COUNT, type, MPI_MAXLOC, comm);
    }
}

/* Pair i's largest value is that of rank i % size. */
static void fill(struct pair *pairs)
{
    for (int i = 0; i < COUNT * check_size(); i++)
        pairs[i] = (struct pair){
            check_rank() == i % check_size() ? i + 1 : -1 - i, check_rank()};
}

static int count_wrong(enum call call, const struct pair *out)
{
    int first = call >= SCATTER ? COUNT * check_rank() : 0;
    int count = call >= SCATTER ? COUNT : COUNT * check_size();
    int wrong = 0;

    if (call == REDUCE && check_rank() != 0)
        return 0;
    for (int i = first; i < first + count; i++)
        wrong += out[i - first].value != i + 1 ||
                 out[i - first].index != i % check_size();
    return wrong;
}

/* poor: a rank, or -1; class: the expected one, of all ranks. */
static void try_call(MPI_Comm comm, enum call call, bool is_in_place, int poor,
                     int class)
{
    size_t room = sizeof(struct pair) * COUNT * (size_t)check_size();
    struct pair *in = check_alloc(room);
    struct pair *out = check_alloc(room);
    int rc;

    fill(in);
    fill(out);
    is_poor = check_rank() == poor;
    rc = reduce(comm, call, is_in_place ? MPI_IN_PLACE : in, out);
    is_poor = false;
    CHECK(check_class(rc) == class,
          "call %d%s while rank %d is poor: error class %d", call,
          is_in_place ? ", in place," : "", poor, check_class(rc));
    CHECK(rc || count_wrong(call, out) == 0,
          "call %d%s while rank %d is poor: %d pairs are wrong", call,
          is_in_place ? ", in place," : "", poor, count_wrong(call, out));
    free(in);
    free(out);
}

/* A communicator that has no scratch memory yet: an error, at whichever rank it
 * is. Then as much as one out of place needs is there, and more is never. */
static void try_calls(enum call call, int poor)
{
    MPI_Comm comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    try_call(comm, call, false, poor, MPI_ERR_NO_MEM);
    try_call(comm, call, false, -1, MPI_SUCCESS);
    try_call(comm, call, false, poor, MPI_SUCCESS);
    if (poor == 0) { /* which has a part in all */
        try_call(comm, call, true, poor, MPI_ERR_NO_MEM);
        try_call(comm, call, true, poor, MPI_ERR_NO_MEM);
    }
    try_call(comm, call, true, -1, MPI_SUCCESS);
    MPI_Comm_free(&comm);
}

static int begin_sum(MPI_Comm comm, bool is_persistent, const int *in, int *out,
                     MPI_Request *request)
{
    return is_persistent
               ? MPI_Allreduce_init(in, out, 1, MPI_INT, MPI_SUM, comm,
                                    MPI_INFO_NULL, request)
               : MPI_Iallreduce(in, out, 1, MPI_INT, MPI_SUM, comm, request);
}

/* The error at a rank: of a call that made nothing, or of its completion. */
static int end_sum(bool is_persistent, int rc, MPI_Request *request)
{
    if (is_persistent && rc == MPI_SUCCESS)
        MPI_Start(request);
    return rc ? rc : MPI_Wait(request, MPI_STATUS_IGNORE);
}

/* A poor rank gets no memory for what the call wants: a started operation ends
 * all the same, rightly if it needs none since it is over at once, and a
 * persistent one is not started. */
static void starve(MPI_Comm comm, bool is_persistent, int poor)
{
    MPI_Request request = MPI_REQUEST_NULL;
    bool is_mine = check_rank() == poor;
    int one = 1;
    int sum = 0;
    int rc;

    is_out = is_mine;
    rc = begin_sum(comm, is_persistent, &one, &sum, &request);
    is_out = false;
    if (!is_persistent)
        rc = end_sum(false, rc, &request);
    else if (rc == MPI_SUCCESS)
        MPI_Request_free(&request);
    CHECK_OR_DIE(check_class(rc) == (is_mine ? MPI_ERR_NO_MEM : MPI_SUCCESS) ||
                     (!is_mine && check_class(rc) == MPI_ERR_COUNT) ||
                     (is_mine && !is_persistent && rc == MPI_SUCCESS &&
                      sum == check_size()),
                 "without memory: error class %d, %d ranks", check_class(rc),
                 sum);
}

/* Once without memory, then with it. */
static void insist(MPI_Comm comm, bool is_persistent, int poor)
{
    MPI_Request request = MPI_REQUEST_NULL;
    int one = 1;
    int sum = 0;
    int rc;

    starve(comm, is_persistent, poor);
    rc = begin_sum(comm, is_persistent, &one, &sum, &request);
    rc = end_sum(is_persistent, rc, &request);
    CHECK(rc == MPI_SUCCESS, "the next one: error class %d", check_class(rc));
    if (is_persistent)
        MPI_Request_free(&request);
    CHECK(sum == check_size(), "%d ranks", sum);
}

/* A communicator that has begun: all have had memory for that. */
static MPI_Comm make_begun(void)
{
    MPI_Comm comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Barrier(comm);
    return comm;
}

/* In a communicator that has its shared memory, and in one that goes by
 * messages: others have taken all that there is. */
static void begin_again(void)
{
    MPI_Comm others[AREAS];
    MPI_Comm comm = make_begun();

    for (int i = 0; i < 4; i++)
        insist(comm, i % 2, 1);
    for (int i = 0; i < AREAS; i++)
        others[i] = make_begun();
    MPI_Comm_free(&comm); /* its area is others[AREAS - 1]'s no more */
    comm = others[AREAS - 1];
    for (int i = 0; i < 4; i++)
        insist(comm, i % 2, 1);
    for (int i = 0; i < AREAS; i++)
        MPI_Comm_free(&others[i]);
}

/* The first operation, in which a rank's nth allocation fails. Not the very
 * first one: then it has not taken part yet. */
static void begin_on_nodes(int poor, int nth)
{
    int classes[2]; /* the largest, and less the least */
    int ranks = 0;
    int one = 1;
    MPI_Comm comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    zeroed_left = check_rank() == poor ? nth : -1;
    classes[0] = check_class(MPI_Barrier(comm));
    zeroed_left = -1;
    classes[1] = -classes[0];
    MPI_Allreduce(MPI_IN_PLACE, classes, 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    CHECK(classes[0] == -classes[1],
          "rank %d without its %d. allocation: "
          "errors from %d to %d",
          poor, nth, -classes[1], classes[0]);
    CHECK(MPI_Allreduce(&one, &ranks, 1, MPI_INT, MPI_SUM, comm) ==
                  MPI_SUCCESS &&
              ranks == check_size(),
          "%d ranks later", ranks);
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    CHECK_OR_DIE(check_size() <= PARTS_MAX, "at most %d ranks", PARTS_MAX);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (argc > 1) {
        MPI_Barrier(MPI_COMM_WORLD);
        for (int nth = 1; nth < 24; nth++)
            begin_on_nodes(nth % check_size(), nth);
        for (int nth = 1; nth < 24; nth++)
            begin_on_nodes(0, nth);
        return check_finish();
    }
    for (int call = 0; call < CALLS; call++)
        for (int poor = 0; poor < check_size(); poor++)
            try_calls((enum call)call, poor);
    begin_again();
    return check_finish();
}
