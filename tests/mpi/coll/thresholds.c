/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives around the sizes at which the way through a node's memory
 * changes: lines, slots, copies from memory to memory, chunks. With types
 * that have gaps on either side, in place, and operations that do not
 * commute.
 *
 * usage: cells [forbid RANK | rings] [threads]
 *
 * forbid: everything is done a second time after that rank was forbidden to
 * copy from and to other processes. threads: all of it in two threads at a
 * time, each with a communicator of its own. rings: some must go through these.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "check.h"

static const int lengths[] = {1,    2,    4,    10,   11,   12,   13,    255,
                              256,  257,  511,  1023, 1024, 1025, 1500,  2049,
                              4096, 4097, 8191, 8192, 8194, 9000, 16384, 40001};
#define LENGTHS ((int)(sizeof(lengths) / sizeof(lengths[0])))

/* One run through all collectives. */
struct on {
    MPI_Comm comm;
    int rank;
    int size;
    MPI_Datatype gaps; /* an int and a hole */
    MPI_Datatype pair;
    MPI_Op compose;
    bool is_later; /* the forms with a root are those that do not block */
};

/* Ints, one next to the other or with gaps. */
struct data {
    int *p;
    int stride;
    int count;
    MPI_Datatype type;
};

enum { HOLE = -77 };

static struct data make(const struct on *on, bool has_gaps, int count)
{
    struct data d = {.stride = has_gaps ? 2 : 1,
                     .count = count,
                     .type = has_gaps ? on->gaps : MPI_INT};

    d.p = check_alloc(sizeof(int) * (size_t)(count * d.stride + 1));
    for (int i = 0; i < count * d.stride; i++)
        d.p[i] = HOLE;
    return d;
}

static int value(int from, int to, int i)
{
    return (int)(check_mix((uint64_t)(from * 64 + to), (uint64_t)i) &
                 0x7fffffff);
}

static void fill(const struct data *d, int at, int from, int to, int count)
{
    for (int i = 0; i < count; i++)
        d->p[(at + i) * d->stride] = value(from, to, i);
}

static void expect(const struct data *d, int at, int from, int to, int count,
                   const char *what)
{
    for (int i = 0; i < count; i++) {
        int found = d->p[(at + i) * d->stride];

        if (found != value(from, to, i)) {
            CHECK(false, "%s: %d from %d to %d: wrong at %d (%x)", what, count,
                  from, to, i, (unsigned)found);
            return;
        }
    }
}

static void expect_holes(const struct data *d, const char *what)
{
    for (int i = 1; d->stride == 2 && i < d->count * 2; i += 2)
        if (d->p[i] != HOLE) {
            CHECK(false, "%s wrote into a gap at %d", what, i);
            return;
        }
}

/* How many ints rank i has for j in the v-forms: some small, some large. */
static int part(int n, int i, int j)
{
    return (i + j) % 3 == 0 ? n : (i + 2 * j) % 3 == 0 ? 0 : n % 7;
}

/* ---- with a root ---- */

static void bcast(const struct on *on, int n, int root, bool gaps)
{
    struct data d = make(on, gaps && on->rank % 2 == 0, n);

    if (on->rank == root)
        fill(&d, 0, root, 0, n);
    MPI_Bcast(d.p, n, d.type, root, on->comm);
    expect(&d, 0, root, 0, n, "bcast");
    expect_holes(&d, "bcast");
    free(d.p);
}

static void gather(const struct on *on, int n, int root, bool gaps_in,
                   bool gaps_out)
{
    MPI_Request request = MPI_REQUEST_NULL;
    struct data in = make(on, gaps_in, n);
    struct data out = make(on, gaps_out, n * on->size);
    bool is_in_place = on->rank == root && n % 2 == 0;

    fill(&in, 0, on->rank, root, n);
    fill(&out, on->rank * n, on->rank, root, is_in_place ? n : 0);
    if (on->is_later)
        MPI_Igather(is_in_place ? MPI_IN_PLACE : in.p, n, in.type, out.p, n,
                    out.type, root, on->comm, &request);
    else
        MPI_Gather(is_in_place ? MPI_IN_PLACE : in.p, n, in.type, out.p, n,
                   out.type, root, on->comm);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; on->rank == root && i < on->size; i++)
        expect(&out, i * n, i, root, n, "gather");
    expect_holes(&out, "gather");
    free(in.p);
    free(out.p);
}

static void gatherv(const struct on *on, int n, int root, bool gaps_in,
                    bool gaps_out)
{
    MPI_Request request = MPI_REQUEST_NULL;
    int mine = part(n, on->rank, 0);
    struct data in = make(on, gaps_in, mine);
    struct data out = make(on, gaps_out, (n + 1) * on->size);
    int counts[64];
    int displs[64];

    for (int i = 0; i < on->size; i++) {
        counts[i] = part(n, i, 0);
        displs[i] = (n + 1) * i;
    }
    fill(&in, 0, on->rank, root, mine);
    if (on->is_later)
        MPI_Igatherv(in.p, mine, in.type, out.p, counts, displs, out.type, root,
                     on->comm, &request);
    else
        MPI_Gatherv(in.p, mine, in.type, out.p, counts, displs, out.type, root,
                    on->comm);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; on->rank == root && i < on->size; i++) {
        expect(&out, displs[i], i, root, counts[i], "gatherv");
        CHECK(out.p[(displs[i] + counts[i]) * out.stride] == HOLE,
              "gatherv of %d wrote behind block %d", n, i);
    }
    expect_holes(&out, "gatherv");
    free(in.p);
    free(out.p);
}

static void scatter(const struct on *on, int n, int root, bool gaps_in,
                    bool gaps_out)
{
    MPI_Request request = MPI_REQUEST_NULL;
    struct data in = make(on, gaps_in, n * on->size);
    struct data out = make(on, gaps_out, n);
    bool is_in_place = on->rank == root && n % 2 == 0;

    for (int i = 0; i < on->size; i++)
        fill(&in, i * n, root, i, n);
    if (on->is_later)
        MPI_Iscatter(in.p, n, in.type, is_in_place ? MPI_IN_PLACE : out.p, n,
                     out.type, root, on->comm, &request);
    else
        MPI_Scatter(in.p, n, in.type, is_in_place ? MPI_IN_PLACE : out.p, n,
                    out.type, root, on->comm);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (!is_in_place)
        expect(&out, 0, root, on->rank, n, "scatter");
    expect_holes(&out, "scatter");
    free(in.p);
    free(out.p);
}

static void scatterv(const struct on *on, int n, int root, bool gaps_in,
                     bool gaps_out)
{
    MPI_Request request = MPI_REQUEST_NULL;
    int mine = part(n, on->rank, 1);
    struct data in = make(on, gaps_in, (n + 1) * on->size);
    struct data out = make(on, gaps_out, mine);
    int counts[64];
    int displs[64];

    for (int i = 0; i < on->size; i++) {
        counts[i] = part(n, i, 1);
        displs[i] = (n + 1) * (on->size - 1 - i);
        fill(&in, displs[i], root, i, counts[i]);
    }
    if (on->is_later)
        MPI_Iscatterv(in.p, counts, displs, in.type, out.p, mine, out.type,
                      root, on->comm, &request);
    else
        MPI_Scatterv(in.p, counts, displs, in.type, out.p, mine, out.type, root,
                     on->comm);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect(&out, 0, root, on->rank, mine, "scatterv");
    expect_holes(&out, "scatterv");
    free(in.p);
    free(out.p);
}

/* ---- all to all ---- */

static void allgather(const struct on *on, int n, bool gaps_in, bool gaps_out)
{
    struct data in = make(on, gaps_in && on->rank != 0, n);
    struct data out = make(on, gaps_out, n * on->size);
    bool is_in_place = n % 2 == 0;

    fill(&in, 0, on->rank, 0, n);
    fill(&out, on->rank * n, on->rank, 0, is_in_place ? n : 0);
    MPI_Allgather(is_in_place ? MPI_IN_PLACE : in.p, n, in.type, out.p, n,
                  out.type, on->comm);
    for (int i = 0; i < on->size; i++)
        expect(&out, i * n, i, 0, n, "allgather");
    expect_holes(&out, "allgather");
    free(in.p);
    free(out.p);
}

static void allgatherv(const struct on *on, int n, bool gaps_in, bool gaps_out)
{
    int mine = part(n, on->rank, 2);
    struct data in = make(on, gaps_in, mine);
    struct data out = make(on, gaps_out, (n + 1) * on->size);
    int counts[64];
    int displs[64];

    for (int i = 0; i < on->size; i++) {
        counts[i] = part(n, i, 2);
        displs[i] = (n + 1) * i;
    }
    fill(&in, 0, on->rank, 0, mine);
    MPI_Allgatherv(in.p, mine, in.type, out.p, counts, displs, out.type,
                   on->comm);
    for (int i = 0; i < on->size; i++)
        expect(&out, displs[i], i, 0, counts[i], "allgatherv");
    expect_holes(&out, "allgatherv");
    free(in.p);
    free(out.p);
}

static void alltoall(const struct on *on, int n, bool gaps_in, bool gaps_out)
{
    struct data in = make(on, gaps_in, n * on->size);
    struct data out = make(on, gaps_out, n * on->size);
    bool is_in_place = n % 3 == 0;

    for (int i = 0; i < on->size; i++)
        fill(is_in_place ? &out : &in, i * n, on->rank, i, n);
    MPI_Alltoall(is_in_place ? MPI_IN_PLACE : in.p, n, in.type, out.p, n,
                 out.type, on->comm);
    for (int i = 0; i < on->size; i++)
        expect(&out, i * n, i, on->rank, n, "alltoall");
    expect_holes(&out, "alltoall");
    free(in.p);
    free(out.p);
}

/* Both v-forms; in the w-form every other type has gaps. */
static void alltoallv(const struct on *on, int n, bool gaps_in, bool gaps_out,
                      bool is_w)
{
    struct data in = make(on, gaps_in, (n + 1) * on->size);
    struct data out = make(on, gaps_out, (n + 1) * on->size);
    int scounts[64], sdispls[64], rcounts[64], rdispls[64];
    MPI_Datatype stypes[64], rtypes[64];

    for (int i = 0; i < on->size; i++) {
        scounts[i] = part(n, on->rank, i);
        rcounts[i] = part(n, i, on->rank);
        sdispls[i] = (n + 1) * i;
        rdispls[i] = (n + 1) * (on->size - 1 - i);
        fill(&in, sdispls[i], on->rank, i, scounts[i]);
        sdispls[i] *= is_w ? in.stride * (int)sizeof(int) : 1;
        stypes[i] = scounts[i] || !is_w ? in.type : MPI_DATATYPE_NULL;
        rtypes[i] = rcounts[i] || !is_w ? out.type : MPI_DATATYPE_NULL;
    }
    if (is_w) {
        int displs[64];

        for (int i = 0; i < on->size; i++)
            displs[i] = rdispls[i] * out.stride * (int)sizeof(int);
        MPI_Alltoallw(in.p, scounts, sdispls, stypes, out.p, rcounts, displs,
                      rtypes, on->comm);
    } else {
        MPI_Alltoallv(in.p, scounts, sdispls, in.type, out.p, rcounts, rdispls,
                      out.type, on->comm);
    }
    for (int i = 0; i < on->size; i++) {
        expect(&out, rdispls[i], i, on->rank, rcounts[i], "alltoallv");
        CHECK(out.p[(rdispls[i] + rcounts[i]) * out.stride] == HOLE,
              "alltoallv of %d wrote behind block %d", n, i);
    }
    expect_holes(&out, "alltoallv");
    free(in.p);
    free(out.p);
}

/* Where the data is only the types know; the buffers are MPI_BOTTOM. */
static void alltoallw_absolute(const struct on *on, int n)
{
    struct data in = make(on, false, n * on->size);
    struct data out = make(on, false, n * on->size);
    MPI_Datatype stypes[64], rtypes[64];
    int counts[64], displs[64];

    for (int i = 0; i < on->size; i++) {
        MPI_Aint from, to;

        fill(&in, i * n, on->rank, i, n);
        counts[i] = 1;
        displs[i] = 0;
        MPI_Get_address(in.p + (size_t)i * (size_t)n, &from);
        MPI_Get_address(out.p + (size_t)i * (size_t)n, &to);
        MPI_Type_create_hindexed(1, &n, &from, MPI_INT, &stypes[i]);
        MPI_Type_create_hindexed(1, &n, &to, MPI_INT, &rtypes[i]);
        MPI_Type_commit(&stypes[i]);
        MPI_Type_commit(&rtypes[i]);
    }
    MPI_Alltoallw(MPI_BOTTOM, counts, displs, stypes, MPI_BOTTOM, counts,
                  displs, rtypes, on->comm);
    for (int i = 0; i < on->size; i++) {
        expect(&out, i * n, i, on->rank, n, "alltoallw at MPI_BOTTOM");
        MPI_Type_free(&stypes[i]);
        MPI_Type_free(&rtypes[i]);
    }
    free(in.p);
    free(out.p);
}

/* ---- reductions ---- */

static struct check_affine element(int rank, int i)
{
    return (struct check_affine){(unsigned)value(rank, 3, i) | 1,
                                 (unsigned)value(rank, 4, i)};
}

/* Ranks [0, end) composed. */
static struct check_affine composed(int end, int i)
{
    struct check_affine sum = element(0, i);

    for (int r = 1; r < end; r++) {
        struct check_affine next = element(r, i);
        int one = 1;

        check_compose(&sum, &next, &one, NULL);
        sum = next;
    }
    return sum;
}

static void expect_affine(const struct check_affine *found, int first, int n,
                          int end, const char *what)
{
    for (int i = 0; i < n; i++) {
        struct check_affine right = composed(end, first + i);

        if (found[i].a != right.a || found[i].b != right.b) {
            CHECK(false, "%s of %d: wrong at %d", what, n, i);
            return;
        }
    }
}

enum reduction {
    REDUCE,
    ALLREDUCE,
    SCAN,
    EXSCAN,
    SCATTER,
    SCATTER_BLOCK,
    LAST
};

static void reduce_with(const struct on *on, enum reduction kind, int n,
                        int root, bool is_in_place)
{
    static const char *const names[] = {
        "reduce", "allreduce",      "scan",
        "exscan", "reduce_scatter", "reduce_scatter_block"};
    int total = kind == SCATTER_BLOCK ? n / on->size * on->size : n;
    struct check_affine *in = check_alloc(sizeof(*in) * (size_t)(n + 1));
    struct check_affine *out = check_alloc(sizeof(*out) * (size_t)(n + 1));
    int counts[64];
    int first = 0;
    const void *from;

    is_in_place = is_in_place && (kind != REDUCE || on->rank == root);
    from = is_in_place ? MPI_IN_PLACE : in;
    for (int i = 0; i < total; i++)
        (is_in_place ? out : in)[i] = element(on->rank, i);
    for (int i = 0; i < on->size; i++) {
        counts[i] = kind == SCATTER_BLOCK ? n / on->size
                    : i == on->size - 1   ? n - n / 3 - n / 4
                    : i == 0              ? n / 3
                    : i == 1              ? n / 4
                                          : 0;
        if (on->size == 2 && i == 0 && kind == SCATTER)
            counts[i] = n / 3 + n / 4;
        first += i < on->rank ? counts[i] : 0;
    }
    switch (kind) {
    case REDUCE:
        MPI_Reduce(from, out, n, on->pair, on->compose, root, on->comm);
        if (on->rank == root)
            expect_affine(out, 0, n, on->size, names[kind]);
        break;
    case ALLREDUCE:
        MPI_Allreduce(from, out, n, on->pair, on->compose, on->comm);
        expect_affine(out, 0, n, on->size, names[kind]);
        break;
    case SCAN:
        MPI_Scan(from, out, n, on->pair, on->compose, on->comm);
        expect_affine(out, 0, n, on->rank + 1, names[kind]);
        break;
    case EXSCAN:
        MPI_Exscan(from, out, n, on->pair, on->compose, on->comm);
        if (on->rank > 0)
            expect_affine(out, 0, n, on->rank, names[kind]);
        break;
    case SCATTER:
        MPI_Reduce_scatter(from, out, counts, on->pair, on->compose, on->comm);
        expect_affine(out, first, counts[on->rank], on->size, names[kind]);
        break;
    default:
        MPI_Reduce_scatter_block(from, out, counts[0], on->pair, on->compose,
                                 on->comm);
        expect_affine(out, first, counts[0], on->size, names[kind]);
        break;
    }
    free(in);
    free(out);
}

/* Short scans, one after the other, so that the first ranks run ahead of the
 * last; now and then something else. */
static void many_scans(const struct on *on, MPI_Comm comm, int rounds, int seed)
{
    int wrong = 0;

    for (int i = 0; i < rounds; i++) {
        struct check_affine mine = element(on->rank, seed + i);
        struct check_affine found = mine;
        int end = i % 3 == 0 ? on->rank : on->rank + 1;
        struct check_affine right = composed(end, seed + i);

        if (i % 3 == 0)
            MPI_Exscan(&mine, &found, 1, on->pair, on->compose, comm);
        else
            MPI_Scan(i % 3 == 1 ? MPI_IN_PLACE : &mine, &found, 1, on->pair,
                     on->compose, comm);
        wrong += end > 0 && (found.a != right.a || found.b != right.b);
        if (i % 97 == 0)
            MPI_Bcast(&mine, 1, on->pair, 0, comm);
        if (i == 1300)
            MPI_Barrier(comm);
    }
    CHECK(wrong == 0, "%d of %d short scans are wrong", wrong, rounds);
}

/* The memory of one communicator is that of the next. */
static void scans_in_turn(const struct on *on)
{
    for (int i = 0; i < 3; i++) {
        MPI_Comm comm;

        MPI_Comm_dup(on->comm, &comm);
        many_scans(on, comm, i == 1 ? 1700 : 100, 1000 * i);
        MPI_Comm_free(&comm);
    }
}

/* A predefined operation that commutes takes another order. */
static void sums(const struct on *on, int n, bool is_in_place)
{
    int *in = check_alloc(sizeof(int) * (size_t)n);
    int *out = check_alloc(sizeof(int) * (size_t)n);
    bool is_right = true;

    for (int i = 0; i < n; i++)
        (is_in_place ? out : in)[i] = value(on->rank, 5, i) & 0xffffff;
    MPI_Allreduce(is_in_place ? MPI_IN_PLACE : in, out, n, MPI_INT, MPI_SUM,
                  on->comm);
    for (int i = 0; i < n; i++) {
        int right = 0;

        for (int r = 0; r < on->size; r++)
            right += value(r, 5, i) & 0xffffff;
        is_right = is_right && out[i] == right;
    }
    CHECK(is_right, "allreduce of %d ints is wrong", n);
    free(in);
    free(out);
}

/* ---- all ---- */

static void run_all(struct on *on)
{
    for (int k = 0; k < LENGTHS; k++) {
        int n = lengths[k];
        int root = k % on->size;

        for (int gaps = 0; gaps < 4; gaps++) {
            bool in = gaps & 1;
            bool out = gaps & 2;

            if (gaps < 2)
                bcast(on, n, root, in);
            for (int later = 0; later < 2; later++) {
                on->is_later = later;
                gather(on, n, root, in, out);
                gatherv(on, n, root, in, out);
                scatter(on, n, root, in, out);
                scatterv(on, n, root, in, out);
            }
            allgather(on, n, in, out);
            allgatherv(on, n, in, out);
            alltoall(on, n, in, out);
            alltoallv(on, n, in, out, false);
            alltoallv(on, n, in, out, true);
        }
        alltoallw_absolute(on, n);
        for (int kind = 0; kind < LAST; kind++) {
            reduce_with(on, (enum reduction)kind, n, root, false);
            reduce_with(on, (enum reduction)kind, n, root, true);
        }
        sums(on, n, false);
        sums(on, n, true);
    }
    scans_in_turn(on);
}

static void *run_on(void *arg)
{
    struct on on = {.comm = *(MPI_Comm *)arg};

    MPI_Comm_rank(on.comm, &on.rank);
    MPI_Comm_size(on.comm, &on.size);
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &on.gaps);
    MPI_Type_commit(&on.gaps);
    MPI_Type_contiguous(2, MPI_UNSIGNED, &on.pair);
    MPI_Type_commit(&on.pair);
    MPI_Op_create(check_compose, 0, &on.compose);
    run_all(&on);
    MPI_Type_free(&on.gaps);
    MPI_Type_free(&on.pair);
    MPI_Op_free(&on.compose);
    return NULL;
}

/* From now on the kernel refuses this process to copy. False: it does not let
 * itself be asked. */
static bool forbid_copies(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {
        .len = sizeof(code) / sizeof(code[0]),
        .filter = code,
    };

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static void run_threads(void)
{
    MPI_Comm comms[2];
    pthread_t threads[2];

    for (int i = 0; i < 2; i++)
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    for (int i = 0; i < 2; i++)
        CHECK_OR_DIE(pthread_create(&threads[i], NULL, run_on, &comms[i]) == 0,
                     "no thread");
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 2; i++)
        MPI_Comm_free(&comms[i]);
}

int main(int argc, char **argv)
{
    bool is_threaded = argc > 1 && strcmp(argv[argc - 1], "threads") == 0;
    bool is_forbidding = argc > 2 && strcmp(argv[1], "forbid") == 0;
    bool wants_rings = argc > 1 && strcmp(argv[1], "rings") == 0;
    MPI_Comm comm = MPI_COMM_WORLD;

    if (is_threaded)
        check_start_thread(&argc, &argv, MPI_THREAD_MULTIPLE);
    else
        check_start(&argc, &argv);
    if (wants_rings)
        check_watch("chempi_coll_exchanges_by_rings");
    if (is_threaded)
        run_threads();
    else
        run_on(&comm);
    if (wants_rings)
        check_was_used();
    if (is_forbidding && check_rank() == check_arg(argc, argv, 2, 0) &&
        !forbid_copies())
        printf("the kernel takes no filter\n");
    if (is_forbidding) {
        /* What is known of the world's members, and what of a new one's. */
        run_on(&comm);
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        run_on(&comm);
        MPI_Comm_free(&comm);
    }
    return check_finish();
}
