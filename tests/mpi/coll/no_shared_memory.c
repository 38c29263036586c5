/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collective operations while one rank finds no more shared memory: whoever
 * needs its data gets an error, never a wrong result, and the communicator
 * goes on. A scan finds another way: by messages, if the memory is missing
 * from the beginning, or in the little that is there. And the rings of
 * communicators go back with them. Members of a node do without its memory
 * when one of them has no addresses for it.
 */
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    COUNT = 100,  /* doubles: more than a line holds */
    PAGES = 1000, /* one message of more than a page */
    LONG = 20000
};

static bool is_scarce;
static int shared_fd = -1;

/* In place of libc's, for the library, too. */
int fallocate(int fd, int mode, off_t offset, off_t len)
{
    if (is_scarce) {
        errno = ENOSPC;
        return -1;
    }
    shared_fd = fd;
    return (int)syscall(SYS_fallocate, fd, mode, offset, len);
}

static bool is_full; /* no addresses for shared memory */

void *mmap(void *at, size_t len, int protection, int flags, int fd,
           off_t offset)
{
    if (is_full && (flags & MAP_SHARED)) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return (void *)syscall(SYS_mmap, at, len, protection, flags, fd, offset);
}

void *mmap64(void *at, size_t len, int protection, int flags, int fd,
             off64_t offset)
{
    return mmap(at, len, protection, flags, fd, offset);
}

int fallocate64(int fd, int mode, off64_t offset, off64_t len)
{
    return fallocate(fd, mode, offset, len);
}

static int call(int which, const double *in, double *out)
{
    int counts[16];

    for (int i = 0; i < 16; i++)
        counts[i] = i == 0 ? COUNT : 0;
    switch (which) {
    case 0:
        return MPI_Allreduce(in, out, COUNT, MPI_DOUBLE, MPI_SUM,
                             MPI_COMM_WORLD);
    case 1:
        return MPI_Reduce(in, out, COUNT, MPI_DOUBLE, MPI_SUM, 0,
                          MPI_COMM_WORLD);
    default:
        return MPI_Reduce_scatter(in, out, counts, MPI_DOUBLE, MPI_SUM,
                                  MPI_COMM_WORLD);
    }
}

/* Slots that non-blocking operations have are no others'. */
static void reduce_scarcely(void)
{
    MPI_Request request;
    double in[COUNT] = {0};
    double out[COUNT];
    MPI_Comm comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Barrier(comm);
    for (int i = 0; i < 130; i++) {
        MPI_Iallreduce(in, out, COUNT, MPI_DOUBLE, MPI_SUM, comm, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    for (int k = 0; k < 2; k++) {
        int rc;

        is_scarce = check_rank() == 1;
        rc = MPI_Allreduce(in, out, COUNT, MPI_DOUBLE, MPI_SUM, comm);
        is_scarce = false;
        CHECK(check_class(rc) == MPI_ERR_NO_MEM,
              "behind non-blocking operations: error class %d",
              check_class(rc));
        MPI_Barrier(comm);
    }
    MPI_Comm_free(&comm);
}

/* Scans of many sizes: more than one SPSC ring's least memory holds at a time.
 */
static void scan(MPI_Comm comm, const char *what)
{
    static double in[LONG];
    static double out[LONG];
    int wrong = 0;

    for (int count = 1; count <= LONG; count = 3 * count / 2 + 1)
        for (int again = 0; again < 8; again++) {
            double right = 0;

            for (int i = 0; i < count; i++)
                in[i] = check_rank() + i + again;
            MPI_Scan(in, out, count, MPI_DOUBLE, MPI_SUM, comm);
            for (int i = 0; i < count; i++) {
                right = (check_rank() + 1) * (check_rank() / 2.0 + i + again);
                wrong += out[i] != right;
            }
        }
    CHECK(wrong == 0, "scans %s: %d numbers are wrong", what, wrong);
}

static void scan_one(MPI_Comm comm, bool is_blocking)
{
    MPI_Request request = MPI_REQUEST_NULL;
    double one = 1;
    double sum = 0;

    if (is_blocking)
        MPI_Scan(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, comm);
    else
        MPI_Iscan(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(sum == check_rank() + 1, "a scan of one number: %g", sum);
}

/* No memory for the beginning of SPSC rings; none for more of them. */
static void scan_scarcely(void)
{
    MPI_Comm comm;

    for (int k = 0; k < 2; k++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Barrier(comm);
        scan_one(comm, false); /* what messages need is there */
        if (k == 0)
            is_scarce = check_rank() < 2;
        scan_one(comm, true);
        is_scarce = k == 1 && check_rank() < 2;
        scan(comm, k == 0 ? "without SPSC rings" : "in short SPSC rings");
        is_scarce = false;
        MPI_Barrier(comm);
        scan(comm, "later");
        MPI_Comm_free(&comm);
    }
}

static void bcast(MPI_Comm comm, int root, double *data)
{
    int wrong = 0;

    for (int i = 0; i < LONG; i++)
        data[i] = check_rank() == root ? root + i : -1;
    CHECK(MPI_Bcast(data, LONG, MPI_DOUBLE, root, comm) == MPI_SUCCESS,
          "bcast from %d has failed", root);
    for (int i = 0; i < LONG; i++)
        wrong += data[i] != root + i;
    CHECK(wrong == 0, "bcast from %d: %d numbers are wrong", root, wrong);
}

/* Have what messages with payload need, to and from everybody. */
static void meet(MPI_Comm comm)
{
    static double in[PAGES];
    static double out[PAGES];
    int size = check_size();

    for (int r = 1; r < size; r++)
        MPI_Sendrecv(out, PAGES, MPI_DOUBLE, (check_rank() + r) % size, 0, in,
                     PAGES, MPI_DOUBLE, (check_rank() + size - r) % size, 0,
                     comm, MPI_STATUS_IGNORE);
}

/* What fits boards, if all have one. */
static void combine(MPI_Comm comm, double *in, double *out, const char *what)
{
    int size = check_size();
    int count = LONG / size;
    int wrong = 0;

    for (int i = 0; i < LONG; i++)
        in[i] = check_rank() + i;
    CHECK(MPI_Allreduce(in, out, LONG, MPI_DOUBLE, MPI_SUM, comm) ==
              MPI_SUCCESS,
          "allreduce %s has failed", what);
    for (int i = 0; i < LONG; i++)
        wrong += out[i] != size * (size - 1) / 2 + size * i;
    CHECK(MPI_Reduce_scatter_block(in, out, count, MPI_DOUBLE, MPI_SUM, comm) ==
              MPI_SUCCESS,
          "reduce_scatter %s has failed", what);
    for (int i = 0; i < count; i++)
        wrong +=
            out[i] != size * (size - 1) / 2 + size * (check_rank() * count + i);
    CHECK(wrong == 0, "reductions %s: %d numbers are wrong", what, wrong);
}

/* One rank gets no boards and no pipe; its data finds another way. */
static void move_scarcely(void)
{
    double *all = check_alloc(sizeof(*all) * LONG * (size_t)check_size());
    double *own = check_alloc(sizeof(*own) * LONG);
    int wrong = 0;
    MPI_Comm comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Barrier(comm);
    meet(MPI_COMM_WORLD); /* the lane of collective operations */
    is_scarce = check_rank() == 1;
    for (int i = 0; i < LONG; i++)
        own[i] = check_rank() + i;
    CHECK(MPI_Allgather(own, LONG, MPI_DOUBLE, all, LONG, MPI_DOUBLE, comm) ==
              MPI_SUCCESS,
          "allgather has failed");
    for (int i = 0; i < LONG * check_size(); i++)
        wrong += all[i] != i / LONG + i % LONG;
    CHECK(wrong == 0, "allgather: %d numbers are wrong", wrong);
    for (int k = 0; k < 4; k++)
        bcast(comm, 1 - k % 2, own);
    combine(comm, own, all, "without a board");
    is_scarce = false;
    if (check_size() > 2)
        check_watch("chempi_coll_reductions_by_boards");
    for (int k = 0; k < 3; k++)
        combine(comm, own, all, "later");
    if (check_size() > 2)
        check_was_used();
    MPI_Comm_free(&comm);
    free(own);
    free(all);
}

static void exchange(MPI_Comm comm, int count, const char *what)
{
    size_t all = (size_t)count * (size_t)check_size();
    double *from = check_alloc(sizeof(*from) * all);
    double *to = check_alloc(sizeof(*to) * all);
    int wrong = 0;

    for (size_t i = 0; i < all; i++)
        from[i] = 1e6 * check_rank() + (double)i;
    CHECK(MPI_Alltoall(from, count, MPI_DOUBLE, to, count, MPI_DOUBLE, comm) ==
              MPI_SUCCESS,
          "an exchange of %d %s has failed", count, what);
    for (int i = 0; i < check_size(); i++)
        for (int k = 0; k < count; k++)
            wrong += to[i * count + k] != 1e6 * i + check_rank() * count + k;
    CHECK(wrong == 0, "an exchange of %d %s: %d numbers are wrong", count, what,
          wrong);
    free(from);
    free(to);
}

/* One rank gets no board for the blocks that it has for others, only its slots,
 * which hold few: the rest goes from memory to memory. */
static void exchange_scarcely(void)
{
    MPI_Comm comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int i = 0; i < 4; i++)
        exchange(comm, 300, "in slots"); /* which are there then */
    for (int k = 0; k < 2; k++) {
        is_scarce = k == 0 && check_rank() == 1;
        for (int i = 0; i < 3; i++)
            exchange(comm, 500, k == 0 ? "without a board" : "later");
        exchange(comm, LONG, k == 0 ? "without a board" : "later");
        is_scarce = false;
        MPI_Barrier(comm);
    }
    MPI_Comm_free(&comm);
}

/* What the job's shared memory takes, bytes. */
static long long taken(void)
{
    struct stat st;

    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_OR_DIE(shared_fd >= 0 && fstat(shared_fd, &st) == 0, "no file");
    MPI_Barrier(MPI_COMM_WORLD);
    return (long long)st.st_blocks * 512;
}

/* Of many communicators that exchange large blocks the last ones get no rings,
 * which nobody needs; and the others' rings go back with them. */
static void give_back(void)
{
    MPI_Comm comms[8];
    long long least = taken();
    long long before = least;
    long long after = least;

    for (int i = 0; i < 8; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
        exchange(comms[i], LONG, "of many");
        before = after;
        after = taken();
    }
    CHECK(after - before < check_size() * 128 * 1024,
          "the last of many has taken %lld bytes", after - before);
    for (int i = 0; i < 8; i++)
        MPI_Comm_free(&comms[i]);
    after = taken();
    CHECK(after - least < 8 * check_size() * 96 * 1024,
          "%lld bytes have not come back", after - least);
}

/* Operations by messages: all members are as far in the communicator. */
static void later(MPI_Comm comm)
{
    MPI_Request request;
    int one = 1;
    int ranks = 0;

    MPI_Ibarrier(comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Iallreduce(&one, &ranks, 1, MPI_INT, MPI_SUM, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(ranks == check_size(), "%d ranks later", ranks);
}

/* A rank has no addresses left for the memory of a new communicator, whose
 * first operation is of this kind: nobody uses that memory then. */
static MPI_Comm map_scarcely(int kind)
{
    int numbers[2] = {check_rank(), check_rank() == 0};
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    int most = -1;
    int rc = MPI_SUCCESS;
    MPI_Comm comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    is_full = check_rank() == 1;
    if (kind == 0) {
        rc = MPI_Allreduce(&numbers[0], &most, 1, MPI_INT, MPI_MAX, comm);
    } else {
        rc = MPI_Iallreduce(&numbers[0], &most, 1, MPI_INT, MPI_MAX, comm,
                            &requests[0]);
        if (kind == 2 && !rc)
            rc = MPI_Ibcast(&numbers[1], 1, MPI_INT, 0, comm, &requests[1]);
        for (int i = 0; i < 2 && !rc; i++)
            rc = MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    }
    is_full = false;
    CHECK_OR_DIE(rc == MPI_SUCCESS, "kind %d without addresses: class %d", kind,
                 check_class(rc));
    CHECK(most == check_size() - 1 && (kind != 2 || numbers[1] == 1),
          "kind %d without addresses: %d, %d", kind, most, numbers[1]);
    later(comm);
    MPI_Barrier(comm);
    return comm;
}

/* All live until the end: each needs other addresses. */
static void go_without_addresses(void)
{
    MPI_Comm comms[6];

    meet(MPI_COMM_WORLD);
    for (int i = 0; i < 6; i++)
        comms[i] = map_scarcely(i % 3);
    for (int i = 0; i < 6; i++)
        MPI_Comm_free(&comms[i]);
}

/* The same on several nodes. */
static MPI_Comm map_scarcely_on_nodes(int victim, int victims)
{
    static double data[LONG];
    MPI_Comm comm;
    int ranks = 0;
    int one = 1;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    is_full = check_rank() >= victim && check_rank() < victim + victims;
    for (int k = 0; k < 3; k++) {
        CHECK(MPI_Barrier(comm) == MPI_SUCCESS, "rank %d: barrier %d", victim,
              k);
        CHECK(MPI_Allreduce(&one, &ranks, 1, MPI_INT, MPI_SUM, comm) ==
                      MPI_SUCCESS &&
                  ranks == check_size(),
              "rank %d: %d ranks", victim, ranks);
        bcast(comm, k, data);
        is_full = false;
    }
    later(comm);
    exchange(comm, LONG, "over nodes");
    return comm;
}

static void go_on_nodes(void)
{
    MPI_Comm comms[16];

    meet(MPI_COMM_WORLD);
    for (int i = 0; i < check_size(); i++)
        comms[i] = map_scarcely_on_nodes(i, 1 + i % 3);
    for (int i = 0; i < check_size(); i++)
        MPI_Comm_free(&comms[i]);
}

int main(int argc, char **argv)
{
    double in[COUNT];
    double out[COUNT];

    check_start(&argc, &argv);
    CHECK_OR_DIE(check_size() <= 16, "at most 16 ranks");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (!check_is_one_node()) {
        go_on_nodes();
        return check_finish();
    }
    for (int i = 0; i < COUNT; i++)
        in[i] = check_rank() + 1;
    MPI_Barrier(MPI_COMM_WORLD); /* what this communicator needs is there */
    for (int which = 0; which < 3; which++) {
        bool needs = which != 1 || check_rank() < 2;
        int rc;

        is_scarce = check_rank() == 1;
        rc = call(which, in, out);
        is_scarce = false;
        CHECK(!needs || check_class(rc) == MPI_ERR_NO_MEM,
              "operation %d: error class %d", which, check_class(rc));
        MPI_Barrier(MPI_COMM_WORLD);
    }
    CHECK(call(0, in, out) == MPI_SUCCESS &&
              out[0] == check_size() * (check_size() + 1) / 2,
          "the communicator is of no use any more: %g", out[0]);
    go_without_addresses();
    reduce_scarcely();
    scan_scarcely();
    move_scarcely();
    if (check_size() > 2) /* two use a slot per operation, all new */
        exchange_scarcely();
    give_back();
    return check_finish();
}
