/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Exchanges of large blocks when a member takes other cores for far ones
 * (distance.h): it is enough that one does; what others can copy they copy;
 * where somebody sends or receives blocks with gaps, or short ones, all go
 * through rings. Each exchange, blocking, non-blocking or persistent, is right,
 * and in each of them members look how far cores are.
 */
#include "libchempi/api/api_impl.h"
#include "libchempi/didl/coll/coll.h"
#include "libchempi/didl/coll/node/cores/distance.h"
#include "libchempi/didl/coll/node/node.h"
#include "libchempi/didl/locality/affinity.h"
#include "tests/mpi/check.h"

enum {
    COUNT = 17000,     /* ints of a block */
    LEAST = 4096,      /* of one that is not short, among up to FEW ranks, */
    LEAST_MANY = 8192, /* and among more */
    FEW = 4,
    RANKS_MAX = 8,
    ROUNDS = 5,
    FAR_POINTS = 32,
    LOOK_POINTS = 20,  /* neither the least nor the most */
    LOOK_COUNT = 5000, /* so long that members spread over cores */
    LOOKS = 100,       /* exchanges after which members ask each other */
    LOOKS_MOST = 20000
};

enum form { BLOCKING, STARTED, PERSISTENT, FORMS };
static const char *const words[] = {"blocking", "non-blocking", "persistent"};

static int out[2 * COUNT * RANKS_MAX];
static int in[2 * COUNT * RANKS_MAX];
static MPI_Datatype gaps; /* an int and as much again */

static struct chempi_yield_policy *crowd(void)
{
    return &chempi_comm_lookup(MPI_COMM_WORLD)->coll->crowd;
}

/* Where the kernel copies nothing, rings are what there is. */
static bool is_refused(void)
{
    return chempi_comm_lookup(MPI_COMM_WORLD)->coll->is_refused;
}

static int value(int from, int to, int i)
{
    return from * 1000003 + to * 10007 + i;
}

/* Of members; -1: none. */
struct exchange {
    int far;           /* who has found that cores are far */
    int sends_gaps;    /* whose blocks have gaps, */
    int receives_gaps; /* as they are sent or received */
    int count;
};

static void fill(int count, int stride)
{
    for (int m = 0; m < check_size(); m++)
        for (int i = 0; i < count; i++)
            out[(m * count + i) * stride] = value(check_rank(), m, i);
    for (int i = 0; i < 2 * COUNT * check_size(); i++)
        in[i] = -1;
}

static void check_received(int count, int stride)
{
    for (int m = 0; m < check_size(); m++)
        for (int i = 0; i < count; i++) {
            const int *at = &in[(m * count + i) * stride];

            CHECK_OR_DIE(*at == value(m, check_rank(), i), "%d from %d is %d",
                         i, m, *at);
            CHECK_OR_DIE(stride == 1 || at[1] == -1, "gap %d from %d", i, m);
        }
}

static void exchange_once(const struct exchange *x, enum form form)
{
    const bool has_out_gaps = check_rank() == x->sends_gaps;
    const bool has_in_gaps = check_rank() == x->receives_gaps;
    const MPI_Datatype out_type = has_out_gaps ? gaps : MPI_INT;
    const MPI_Datatype in_type = has_in_gaps ? gaps : MPI_INT;
    MPI_Request request = MPI_REQUEST_NULL;

    fill(x->count, has_out_gaps ? 2 : 1);
    if (form == BLOCKING)
        MPI_Alltoall(out, x->count, out_type, in, x->count, in_type,
                     MPI_COMM_WORLD);
    else
        MPI_Ialltoall(out, x->count, out_type, in, x->count, in_type,
                      MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check_received(x->count, has_in_gaps ? 2 : 1);
}

/* Has the next exchange gone through rings? As if each member had an opinion of
 * its own: what one learns while an exchange begins others have not seen. */
static bool goes_by_rings(struct exchange x, enum form form)
{
    _Atomic uint32_t *shared = crowd()->distance;
    _Atomic uint32_t own = check_rank() == x.far ? FAR_POINTS : 0;
    const uint64_t before = chempi_coll_counted(CHEMPI_COLL_WAY_RINGS);

    crowd()->distance = &own;
    exchange_once(&x, form);
    crowd()->distance = shared;
    return chempi_coll_counted(CHEMPI_COLL_WAY_RINGS) > before;
}

static void check_exchanges(enum form form)
{
    const int last = check_size() - 1;
    const int least = check_size() > FEW ? LEAST_MANY : LEAST;
    const struct exchange near = {-1, -1, -1, COUNT};

    CHECK(goes_by_rings(near, form), "near cores");
    CHECK(!goes_by_rings((struct exchange){0, -1, -1, COUNT}, form) ||
              is_refused(),
          "far from member 0");
    CHECK(!goes_by_rings((struct exchange){last, -1, -1, least}, form) ||
              is_refused(),
          "far from the last one");
    CHECK(goes_by_rings((struct exchange){last, -1, -1, least - 1}, form),
          "short blocks");
    CHECK(goes_by_rings((struct exchange){last, 0, -1, COUNT}, form),
          "gaps that are sent");
    CHECK(goes_by_rings((struct exchange){last, -1, 0, COUNT}, form),
          "gaps that are received");
    CHECK(goes_by_rings(near, form), "near again");
}

/* ---- looks ---- */

static void start(enum form form, MPI_Request *request)
{
    if (form == BLOCKING)
        MPI_Alltoall(out, LOOK_COUNT, MPI_INT, in, LOOK_COUNT, MPI_INT,
                     MPI_COMM_WORLD);
    else if (form == STARTED)
        MPI_Ialltoall(out, LOOK_COUNT, MPI_INT, in, LOOK_COUNT, MPI_INT,
                      MPI_COMM_WORLD, request);
    else
        MPI_Start(request);
}

/* Do members learn anything? Who comes last is not always on another core. */
static bool is_learned_in(enum form form)
{
    _Atomic uint32_t *distance = crowd()->distance;
    MPI_Request request = MPI_REQUEST_NULL;
    int has_changed = 0;

    atomic_store(distance, LOOK_POINTS);
    MPI_Barrier(MPI_COMM_WORLD);
    if (form == PERSISTENT)
        MPI_Alltoall_init(out, LOOK_COUNT, MPI_INT, in, LOOK_COUNT, MPI_INT,
                          MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    for (int i = 0; i < LOOKS_MOST && !has_changed; i++) {
        start(form, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (i % LOOKS == 0) {
            has_changed = atomic_load(distance) != LOOK_POINTS;
            MPI_Allreduce(MPI_IN_PLACE, &has_changed, 1, MPI_INT, MPI_MAX,
                          MPI_COMM_WORLD);
        }
    }
    if (form == PERSISTENT)
        MPI_Request_free(&request);
    return has_changed;
}

/* Where each rank has a core, or all have one, there is nothing to learn. */
static void check_looks(void)
{
    const bool is_crowd =
        !chempi_affinity_is_roomy() && chempi_affinity_cores() > 1;

    for (enum form form = 0; form < FORMS; form++)
        CHECK(is_learned_in(form) || !is_crowd, "no looks in %s exchanges",
              words[form]);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &gaps);
    MPI_Type_commit(&gaps);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < ROUNDS; i++) {
        check_exchanges(BLOCKING);
        check_exchanges(STARTED);
    }
    check_looks();
    MPI_Type_free(&gaps);
    return check_finish();
}
