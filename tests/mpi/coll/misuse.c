/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Wrong use of collectives and local calls: the error that one rank gets, and
 * that the ranks can go on together afterwards.
 */
#include "check.h"

enum { N = 5, LONG = 30000 };

static void expect(int error, int class, const char *what)
{
    int got = MPI_SUCCESS;

    if (error != MPI_SUCCESS)
        MPI_Error_class(error, &got);
    CHECK(got == class, "%s: error class %d, not %d", what, got, class);
}

/* The root's call fails its checks while the others are already inside; its
 * second call is the one that they meet. */
static void call_again(void)
{
    int *data = check_alloc(sizeof(int) * (size_t)check_size());
    int *all = check_alloc(sizeof(int) * (size_t)check_size());
    bool is_root = check_rank() == 0;
    int sum = -1;

    for (int i = 0; i < check_size(); i++)
        data[i] = 7;
    if (is_root) {
        expect(
            MPI_Gather(data, 1, MPI_INT, data, 1, MPI_INT, 0, MPI_COMM_WORLD),
            MPI_ERR_BUFFER, "gather into the data sent");
        expect(
            MPI_Scatter(data, 1, MPI_INT, data, 1, MPI_INT, 0, MPI_COMM_WORLD),
            MPI_ERR_BUFFER, "scatter into the data sent");
        expect(MPI_Reduce(data, data, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD),
               MPI_ERR_BUFFER, "reduce into the data sent");
    }
    expect(MPI_Gather(data, 1, MPI_INT, all, 1, MPI_INT, 0, MPI_COMM_WORLD),
           MPI_SUCCESS, "gather");
    expect(MPI_Reduce(data, &sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD),
           MPI_SUCCESS, "reduce");
    CHECK(!is_root || sum == 7 * check_size(), "the sum is %d", sum);
    for (int i = 0; is_root && i < check_size(); i++)
        CHECK(all[i] == 7, "block %d is %d", i, all[i]);
    free(data);
    free(all);
}

static void one_buffer_twice(void)
{
    int n = check_size();
    int me = check_rank();
    int *data = check_alloc(sizeof(int) * 2 * (size_t)n);
    int *ones = check_alloc(sizeof(int) * (size_t)n);
    int *at = check_alloc(sizeof(int) * (size_t)n);
    MPI_Comm comm = MPI_COMM_WORLD;

    for (int i = 0; i < n; i++) {
        ones[i] = 1;
        at[i] = i;
    }
    expect(MPI_Allgather(data + me, 1, MPI_INT, data, 1, MPI_INT, comm),
           MPI_ERR_BUFFER, "allgather of the own block");
    expect(MPI_Allgatherv(data + me, 1, MPI_INT, data, ones, at, MPI_INT, comm),
           MPI_ERR_BUFFER, "allgatherv of the own block");
    expect(MPI_Alltoall(data, 1, MPI_INT, data, 1, MPI_INT, comm),
           MPI_ERR_BUFFER, "alltoall");
    expect(
        MPI_Alltoallv(data, ones, at, MPI_INT, data, ones, at, MPI_INT, comm),
        MPI_ERR_BUFFER, "alltoallv");
    expect(MPI_Reduce_scatter(data, data, ones, MPI_INT, MPI_SUM, comm),
           MPI_ERR_BUFFER, "reduce_scatter");
    free(data);
    free(ones);
    free(at);
}

/* Interleaved columns of one array: the same address twice, yet no overlap. */
static void columns(void)
{
    int n = check_size();
    int *pairs = check_alloc(sizeof(int) * 2 * (size_t)n);
    MPI_Datatype left;
    MPI_Datatype second;
    MPI_Datatype right;
    int block = 1;
    int place = 1;

    MPI_Type_create_resized(MPI_INT, 0, 2 * (MPI_Aint)sizeof(int), &left);
    MPI_Type_indexed(1, &block, &place, MPI_INT, &second);
    MPI_Type_create_resized(second, 0, 2 * (MPI_Aint)sizeof(int), &right);
    MPI_Type_free(&second);
    MPI_Type_commit(&left);
    MPI_Type_commit(&right);
    for (int i = 0; i < n; i++) {
        pairs[2 * i] = 100 * check_rank() + i;
        pairs[2 * i + 1] = -1;
    }
    expect(MPI_Alltoall(pairs, 1, left, pairs, 1, right, MPI_COMM_WORLD),
           MPI_SUCCESS, "alltoall between columns");
    for (int i = 0; i < n; i++)
        CHECK(pairs[2 * i + 1] == 100 * i + check_rank(), "from %d: %d", i,
              pairs[2 * i + 1]);
    MPI_Type_free(&left);
    MPI_Type_free(&right);
    free(pairs);
}

static void different_amounts(void)
{
    int data[N] = {0};
    int count = check_rank() == 0 ? 1 : N;
    MPI_Request request;
    int error;

    error = MPI_Bcast(data, count, MPI_INT, 0, MPI_COMM_WORLD);
    if (check_rank() != 0)
        expect(error, MPI_ERR_COUNT, "bcast of less");
    MPI_Ibcast(data, count, MPI_INT, 0, MPI_COMM_WORLD, &request);
    error = MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (check_rank() != 0)
        expect(error, MPI_ERR_COUNT, "ibcast of less");
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Whoever has too little room is told by whom, and how to mend it. */
static void expect_words(int error, const char *call)
{
    char words[MPI_MAX_ERROR_STRING];
    int len;

    expect(error, MPI_ERR_TRUNCATE, call);
    if (error == MPI_SUCCESS)
        return;
    MPI_Error_string(error, words, &len);
    CHECK(strstr(words, "all members must give amounts that match") &&
              strstr(words, "rank 0 gives ") && !strstr(words, " tag "),
          "%s: \"%s\"", call, words);
}

static void too_much(int count)
{
    int *data = check_alloc(2 * sizeof(int) * (size_t)count);
    int give = check_rank() == 0 ? 2 * count : count;
    int error;

    error = MPI_Bcast(data, give, MPI_INT, 0, MPI_COMM_WORLD);
    if (check_rank() == 1) /* others may have it from one in between */
        expect_words(error, "bcast of more");
    MPI_Barrier(MPI_COMM_WORLD);
    free(data);
}

/* The same with an array of lengths, in which rank 1 alone is given less. */
static void less_by_counts(int *from, int *to, int n, int less)
{
    int *counts = check_alloc(2 * sizeof(int) * (size_t)check_size());
    int *displs = counts + check_size();
    int error;

    for (int i = 0; i < check_size(); i++) {
        counts[i] = i == 1 ? less : n;
        displs[i] = i * n;
    }
    error = MPI_Scatterv(from, counts, displs, MPI_INT, to, n, MPI_INT, 0,
                         MPI_COMM_WORLD);
    if (check_rank() != 0)
        expect(error, check_rank() == 1 ? MPI_ERR_COUNT : MPI_SUCCESS,
               "scatterv of less");
    error = MPI_Gatherv(from, n, MPI_INT, to, counts, displs, MPI_INT, 0,
                        MPI_COMM_WORLD);
    if (check_rank() == 0)
        expect(error, MPI_ERR_TRUNCATE, "gatherv of more");
    free(counts);
}

/* Rank 0 has `less` of a block of n; whoever waits for its data is told. */
static void less(int *from, int *to, int n, int less)
{
    bool is_zero = check_rank() == 0;
    int count = is_zero ? less : n;
    int error;

    error = MPI_Allgather(from, count, MPI_INT, to, n, MPI_INT, MPI_COMM_WORLD);
    if (!is_zero)
        expect(error, MPI_ERR_COUNT, "allgather of less");
    error =
        MPI_Allgather(from, count, MPI_INT, to, count, MPI_INT, MPI_COMM_WORLD);
    if (!is_zero)
        expect(error, MPI_ERR_COUNT, "allgather of less everywhere");
    error = MPI_Gather(from, count, MPI_INT, to, n, MPI_INT, 1, MPI_COMM_WORLD);
    if (check_rank() == 1)
        expect(error, MPI_ERR_COUNT, "gather of less");
    error =
        MPI_Scatter(from, less, MPI_INT, to, count, MPI_INT, 0, MPI_COMM_WORLD);
    if (!is_zero)
        expect(error, MPI_ERR_COUNT, "scatter of less");
    less_by_counts(from, to, n, less);
    error =
        MPI_Alltoall(from, count, MPI_INT, to, count, MPI_INT, MPI_COMM_WORLD);
    if (!is_zero)
        expect(error, MPI_ERR_COUNT, "alltoall of less");
}

/* All goes on as before. */
static void exchange(int *from, int *to, int n)
{
    int wrong = 0;

    for (int i = 0; i < n * check_size(); i++)
        from[i] = 1000 * check_rank() + i;
    for (int k = 0; k < 3; k++) {
        expect(MPI_Alltoall(from, n, MPI_INT, to, n, MPI_INT, MPI_COMM_WORLD),
               MPI_SUCCESS, "alltoall of the same");
        for (int i = 0; i < n * check_size(); i++)
            wrong += to[i] != 1000 * (i / n) + check_rank() * n + i % n;
    }
    expect(MPI_Allgather(from, n, MPI_INT, to, n, MPI_INT, MPI_COMM_WORLD),
           MPI_SUCCESS, "allgather of the same");
    for (int i = 0; i < n * check_size(); i++)
        wrong += to[i] != 1000 * (i / n) + i % n;
    CHECK(wrong == 0, "blocks of %d: %d are wrong", n, wrong);
}

/* All goes on as before. */
static void sum(const int *ones, int *to)
{
    static const int counts[] = {1, 900, 5000};

    for (size_t k = 0; k < sizeof(counts) / sizeof(counts[0]); k++) {
        int n = counts[k];
        expect(MPI_Allreduce(ones, to, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD),
               MPI_SUCCESS, "allreduce of the same");
        CHECK(to[0] == check_size() && to[n - 1] == check_size(),
              "%d sums are %d to %d", n, to[0], to[n - 1]);
    }
}

/* One rank has another amount than the others, on either side of what fits
 * a slot (4 KiB of all parts). */
static void reduce_other_amounts(void)
{
    static const int pairs[][2] = {{1100, 900}, {900, 1100}, {10, 9000},
                                   {9000, 10},  {0, 5000},   {7000, 8000}};
    int *ones = check_alloc(sizeof(int) * 9000 * (size_t)check_size());
    int *to = check_alloc(sizeof(int) * 9000);

    for (int i = 0; i < 9000 * check_size(); i++)
        ones[i] = 1;
    for (size_t k = 0; k < sizeof(pairs) / sizeof(pairs[0]); k++)
        for (int other = 0; other < check_size(); other++) {
            int n = pairs[k][check_rank() == other];
            expect(MPI_Allreduce(ones, to, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD),
                   MPI_ERR_COUNT, "allreduce of other amounts");
            sum(ones, to);
            expect(MPI_Reduce_scatter_block(ones, to, n, MPI_INT, MPI_SUM,
                                            MPI_COMM_WORLD),
                   MPI_ERR_COUNT, "reduce_scatter_block of other amounts");
            sum(ones, to);
        }
    free(ones);
    free(to);
}

/* Rank 0 means other parts of the same amount, which go in another number of
 * rounds. */
static void reduce_other_parts(void)
{
    const int part = 64 << 10;
    const int all = part * check_size();
    int *ones = check_alloc(sizeof(int) * (size_t)all);
    int *to = check_alloc(sizeof(int) * (size_t)all);
    int *counts = check_alloc(sizeof(int) * (size_t)check_size());

    for (int i = 0; i < all; i++)
        ones[i] = 1;
    for (int i = 0; i < check_size(); i++)
        counts[i] = check_rank() == 0 ? part : i == 0 ? all : 0;
    for (int k = 0; k < 2; k++) {
        expect(MPI_Reduce_scatter(ones, to, counts, MPI_INT, MPI_SUM,
                                  MPI_COMM_WORLD),
               MPI_ERR_COUNT, "reduce_scatter of other parts");
        sum(ones, to);
        expect(MPI_Allreduce(ones, to, all, MPI_INT, MPI_SUM, MPI_COMM_WORLD),
               MPI_SUCCESS, "allreduce around a ring");
        CHECK(to[0] == check_size() && to[all - 1] == check_size(),
              "%d sums are %d to %d", all, to[0], to[all - 1]);
    }
    free(ones);
    free(to);
    free(counts);
}

/* The first reduce of a communicator, above a slot; as much as three and more
 * members take along their SPSC rings (1 MiB of all, or more than a board), and
 * what is between. */
static void reduce_other_way(char *from, char *to, const size_t *lens,
                             int other, int root)
{
    MPI_Comm comm;
    int total = 0;
    int one = 1;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    expect(MPI_Reduce(from, to, (int)lens[check_rank() == other], MPI_CHAR,
                      MPI_SUM, root, comm),
           MPI_ERR_COUNT, "reduce of other amounts");
    expect(MPI_Allreduce(&one, &total, 1, MPI_INT, MPI_SUM, comm), MPI_SUCCESS,
           "allreduce afterwards");
    CHECK(total == check_size(), "%d ones are %d", check_size(), total);
    for (int i = 0; i < 2; i++) {
        expect(
            MPI_Reduce(from, to, (int)lens[i], MPI_CHAR, MPI_SUM, root, comm),
            MPI_SUCCESS, "reduce afterwards");
        CHECK(check_rank() != root || to[lens[i] - 1] == check_size(),
              "%zu sums end with %d", lens[i], to[lens[i] - 1]);
    }
    MPI_Comm_free(&comm);
}

/* Rows that fit boards, of which one after the other is used. */
static void exchange_rows(int *from, int *to)
{
    enum { BLOCK = 1024 };
    int n = check_size();
    int *counts = check_alloc(sizeof(int) * (size_t)n);
    int *displs = check_alloc(sizeof(int) * (size_t)n);
    int wrong = 0;

    for (int i = 0; i < n; i++) {
        counts[i] = BLOCK;
        displs[i] = i * BLOCK;
    }
    for (int k = 0; k < 3; k++) {
        for (int i = 0; i < n * BLOCK; i++)
            from[i] = 100 * check_rank() + k;
        expect(MPI_Alltoallv(from, counts, displs, MPI_INT, to, counts, displs,
                             MPI_INT, MPI_COMM_WORLD),
               MPI_SUCCESS, "alltoallv of the same");
        for (int i = 0; i < n * BLOCK; i++)
            wrong += to[i] != 100 * (i / BLOCK) + k;
    }
    CHECK(wrong == 0, "rows: %d are wrong", wrong);
    free(counts);
    free(displs);
}

/* Three and four members have no other way. */
static void reduce_other_ways(void)
{
    const size_t board = 256 << 10;
    size_t border = (1u << 20) / (size_t)check_size();
    size_t lens[][2] = {{border, border + 1},    {border + 1, border},
                        {board, border / 2 + 1}, {border / 2 + 1, board},
                        {board, board + 1},      {2 * board, board},
                        {board, 2 * board}};
    char *from;
    char *to;

    if (check_size() > 2 && border >= board)
        return;
    from = check_alloc(2 * board + 1);
    to = check_alloc(2 * board + 1);
    memset(from, 1, 2 * board + 1);
    for (size_t k = 0; k < sizeof(lens) / sizeof(lens[0]); k++)
        for (int other = 0; other < check_size(); other++)
            reduce_other_way(from, to, lens[k], other, (int)k % check_size());
    free(from);
    free(to);
}

/* Once only, so that a board too many is not made good by a second time: rank 0
 * takes the way of short blocks, the others that of boards. */
static void less_once(int *from, int *to, int n)
{
    const int count = check_rank() == 0 ? 1 : n;
    int error;

    error =
        MPI_Allgather(from, count, MPI_INT, to, count, MPI_INT, MPI_COMM_WORLD);
    if (check_rank() != 0)
        expect(error, MPI_ERR_COUNT, "allgather of less, once");
    exchange(from, to, n);
}

/* In the memory of a node. */
static void less_than_all_expect(void)
{
    static const int pairs[][2] = {
        {2, 1},    {2, 0},       {N, 1},    {N, 0},        {700, 1}, {700, 600},
        {3000, 1}, {3000, 2999}, {LONG, 2}, {LONG, 20000}, {LONG, 0}};
    size_t len = sizeof(int) * LONG * (size_t)check_size();
    int *from;
    int *to;

    if (!check_is_one_node())
        return;
    from = check_alloc(len);
    to = check_alloc(len);
    memset(from, 0, len);
    for (size_t k = 0; k < sizeof(pairs) / sizeof(pairs[0]); k++) {
        less(from, to, pairs[k][0], pairs[k][1]);
        exchange(from, to, 300);
        exchange(from, to, pairs[k][0]);
        exchange_rows(from, to);
    }
    less_once(from, to, 5000);
    free(from);
    free(to);
    reduce_other_amounts();
    reduce_other_ways();
    /* Two members, and workers, do not say what they take for parts. */
    if (check_size() > 2 && !getenv("CHEMPI_COLL_NODE_STREAM"))
        reduce_other_parts();
}

/* Three chars for whole ints. */
static void cut_element(void)
{
    int data[N] = {0};
    int peer = check_rank() ^ 1;

    if (peer >= check_size())
        return;
    if (check_rank() % 2 == 0) {
        MPI_Send(data, 3, MPI_CHAR, peer, 4, MPI_COMM_WORLD);
        MPI_Send(data, 2, MPI_INT, peer, 4, MPI_COMM_WORLD);
    } else {
        expect(MPI_Recv(data, N, MPI_INT, peer, 4, MPI_COMM_WORLD,
                        MPI_STATUS_IGNORE),
               MPI_ERR_TYPE, "three bytes for ints");
        expect(MPI_Recv(data, N, MPI_INT, peer, 4, MPI_COMM_WORLD,
                        MPI_STATUS_IGNORE),
               MPI_SUCCESS, "two ints of five");
    }
}

static int refuse(MPI_Datatype type, int key, void *extra, void *in, void *out,
                  int *flag)
{
    (void)type, (void)key, (void)extra, (void)in, (void)out;
    *flag = 1;
    return MPI_ERR_OTHER;
}

/* Numbers that do not lie as those of a predefined type do. */
static void number_elsewhere(void)
{
    const MPI_Aint at = sizeof(int);
    int data[N] = {0};
    int sum[N] = {0};
    MPI_Datatype types[3];
    MPI_Datatype two;

    MPI_Type_contiguous(2, MPI_INT, &two);
    MPI_Type_create_hindexed_block(1, 1, &at, MPI_INT, &types[0]);
    MPI_Type_create_resized(MPI_INT, 0, sizeof(int) + 2, &types[1]);
    MPI_Type_create_resized(two, 0, sizeof(int), &types[2]);
    MPI_Type_free(&two);
    for (int i = 0; i < 3; i++) {
        MPI_Type_commit(&types[i]);
        expect(MPI_Reduce_local(data, sum, 1, types[i], MPI_SUM), MPI_ERR_OP,
               "an operation on numbers somewhere else");
        MPI_Type_free(&types[i]);
    }
    MPI_Type_dup(MPI_INT, &two);
    expect(MPI_Reduce_local(data, sum, N, two, MPI_SUM), MPI_SUCCESS,
           "an operation on a copy of a predefined type");
    MPI_Type_free(&two);
}

static void local_calls(void)
{
    int data[N] = {1, 2, 3, 4, 5};
    int ranks[1] = {0};
    MPI_Group group;
    MPI_Datatype type;
    MPI_Datatype copy;
    int key;

    expect(MPI_Reduce_local(MPI_IN_PLACE, data, N, MPI_INT, MPI_SUM),
           MPI_ERR_BUFFER, "reduce_local in place");
    expect(MPI_Reduce_local(data, data, N, MPI_INT, MPI_SUM), MPI_ERR_BUFFER,
           "reduce_local of one buffer");
    MPI_Comm_group(MPI_COMM_WORLD, &group);
    expect(MPI_Group_translate_ranks(group, 1, ranks, group, NULL), MPI_ERR_ARG,
           "translate_ranks to nowhere");
    MPI_Group_free(&group);
    MPI_Type_create_keyval(refuse, MPI_TYPE_NULL_DELETE_FN, &key, NULL);
    MPI_Type_dup(MPI_INT, &type);
    MPI_Type_set_attr(type, key, data);
    copy = MPI_INT;
    expect(MPI_Type_dup(type, &copy), MPI_ERR_OTHER, "dup that is refused");
    CHECK(copy == MPI_DATATYPE_NULL, "a refused dup gives a datatype");
    MPI_Type_free(&type);
    MPI_Type_free_keyval(&key);
}

/* Rank 1 asks for less than the others: its wait names call and peer, whether
 * the request is persistent or not, and the amounts if messages carry them, as
 * in the first operation of a communicator, if that is not persistent. */
static void in_the_background(bool is_persistent)
{
    const char *call = is_persistent ? "MPI_Allreduce_init: rank "
                                     : "MPI_Iallreduce: rank 0 gives 32";
    int count = check_rank() == 1 ? 7 : 8;
    int data[8] = {0};
    int sums[8];
    int error;
    char words[MPI_MAX_ERROR_STRING] = "";
    int len;
    MPI_Comm comm;
    MPI_Request request;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    if (is_persistent) {
        MPI_Allreduce_init(data, sums, count, MPI_INT, MPI_SUM, comm,
                           MPI_INFO_NULL, &request);
        MPI_Start(&request);
    } else {
        MPI_Iallreduce(data, sums, count, MPI_INT, MPI_SUM, comm, &request);
    }
    error = MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (check_rank() == 1) {
        if (!is_persistent || check_class(error) != MPI_ERR_COUNT)
            expect(error, MPI_ERR_TRUNCATE, "sums of less");
        MPI_Error_string(error, words, &len);
        CHECK(strstr(words, call) && strstr(words, "amounts that match"),
              "words: %s", words);
    }
    if (is_persistent)
        MPI_Request_free(&request);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Comm_free(&comm);
}

/* Rank 1 takes the broadcasts of the others, of some pieces, for short ones;
 * what comes behind one is right. */
static void short_in_the_background(void)
{
    static int data[LONG];
    static int next[LONG];
    bool is_root = check_rank() == 0;
    MPI_Request request;
    int error;

    for (int k = 0; k < 2 * N; k++) {
        for (int i = 0; i < LONG; i++) {
            data[i] = is_root ? 1000 * k : -1;
            next[i] = is_root ? 1000 * k + i : -1;
        }
        MPI_Ibcast(data, check_rank() == 1 ? N : LONG, MPI_INT, 0,
                   MPI_COMM_WORLD, &request);
        MPI_Bcast(next, LONG, MPI_INT, 0, MPI_COMM_WORLD);
        error = MPI_Wait(&request, MPI_STATUS_IGNORE);
        expect(error, check_rank() == 1 ? MPI_ERR_TRUNCATE : MPI_SUCCESS,
               "a broadcast of more");
        for (int i = 0; i < LONG; i++)
            CHECK_OR_DIE(next[i] == 1000 * k + i, "%d of the next one: %d", i,
                         next[i]);
    }
}

/* Rank 1 takes the blocks of an exchange for small ones. What comes at once,
 * while it is still under way, is right. */
static void small_in_the_background(int *from, int *to, int n)
{
    const int count = check_rank() == 1 ? 1 : n;
    MPI_Request request;

    for (int k = 0; k < 3; k++) {
        MPI_Ialltoall(from, count, MPI_INT, from + n * check_size(), count,
                      MPI_INT, MPI_COMM_WORLD, &request);
        exchange_rows(to, to + n * check_size());
        expect(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_ERR_COUNT,
               "an exchange of other amounts");
        exchange_rows(to, to + n * check_size());
    }
}

static void uneven_in_the_background(void)
{
    enum { BLOCK = 6000 };
    const size_t len = 2 * sizeof(int) * BLOCK * (size_t)check_size();
    int *from = check_alloc(len);
    int *to = check_alloc(len);

    small_in_the_background(from, to, BLOCK);
    free(from);
    free(to);
}

/* Rank 1 takes itself for the root, the others rank 0. The words of a blocking
 * call name both. */
static void expect_roots(int error, bool is_blocking, int *wrong)
{
    char words[MPI_MAX_ERROR_STRING];
    int len;

    if (error == MPI_SUCCESS)
        return;
    (*wrong)++;
    expect(error, MPI_ERR_ROOT, "a broadcast with different roots");
    MPI_Error_string(error, words, &len);
    CHECK(!is_blocking || (strstr(words, "is the root for itself, rank ") &&
                           strstr(words, "for this rank, ")),
          "\"%s\"", words);
}

static void check_bcast(int *data, int n, MPI_Comm comm)
{
    for (int root = 0; root < check_size(); root++) {
        for (int i = 0; i < n; i++)
            data[i] = check_rank() == root ? 10 * root + i : -1;
        expect(MPI_Bcast(data, n, MPI_INT, root, comm), MPI_SUCCESS,
               "a broadcast afterwards");
        for (int i = 0; i < n; i++)
            CHECK_OR_DIE(data[i] == 10 * root + i, "%d of %d: %d", i, n,
                         data[i]);
    }
}

static void different_roots(int *data, int n, bool is_blocking)
{
    const int root = check_rank() == 1;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Comm comm;
    int wrong = 0;
    int error;

    if (is_blocking) {
        error = MPI_Bcast(data, n, MPI_INT, root, MPI_COMM_WORLD);
    } else {
        MPI_Ibcast(data, n, MPI_INT, root, MPI_COMM_WORLD, &request);
        error = MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    expect_roots(error, is_blocking, &wrong);
    check_bcast(data, n, MPI_COMM_WORLD);
    check_bcast(data, LONG, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(wrong > 0, "nobody was told of another root for %d", n);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    check_bcast(data, n, comm);
    MPI_Comm_free(&comm);
}

static void all_different_roots(void)
{
    static const int counts[] = {0, 1, N, 3000, LONG, 20 * LONG};
    int *data = check_alloc(sizeof(int) * 20 * LONG);

    for (size_t k = 0; k < sizeof(counts) / sizeof(counts[0]); k++)
        for (int i = 0; i < 6; i++)
            /* Of two members both would wait for a long message to be taken. */
            if (i % 2 || check_size() > 2 || counts[k] < LONG)
                different_roots(data, counts[k], i % 2);
    free(data);
}

/* Rank 1 sends less than it and the others expect. */
static void uneven_alltoall(void)
{
    int n = check_size();
    int *in = check_alloc(sizeof(int) * 2 * (size_t)n);
    int *out = check_alloc(sizeof(int) * 2 * (size_t)n);
    bool is_less = check_rank() == 1;

    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < 2 * n; i++) {
            in[i] = 10 * check_rank() + k;
            out[i] = -1;
        }
        expect(MPI_Alltoall(in, 1, MPI_INT, out, is_less ? 2 : 1, MPI_INT,
                            MPI_COMM_WORLD),
               is_less ? MPI_ERR_COUNT : MPI_SUCCESS, "an uneven alltoall");
        for (int i = 0; i < n && !is_less; i++)
            CHECK(out[i] == 10 * i + k, "from %d: %d", i, out[i]);
    }
    free(in);
    free(out);
}

/* All have handed in another amount when the root calls, so its operation is
 * over then: the words name the call all the same. */
static void over_at_once(void)
{
    int data[2] = {1, 2};
    int sum[2];
    char words[MPI_MAX_ERROR_STRING];
    MPI_Request request;
    int error;
    int len;

    for (int peer = 1; peer < check_size() && check_rank() == 0; peer++)
        MPI_Recv(NULL, 0, MPI_INT, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Ireduce(data, sum, check_rank() == 0 ? 2 : 1, MPI_INT, MPI_SUM, 0,
                MPI_COMM_WORLD, &request);
    error = MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (check_rank() != 0) {
        MPI_Send(NULL, 0, MPI_INT, 0, 0, MPI_COMM_WORLD);
        return;
    }
    expect(error, MPI_ERR_COUNT, "a reduction of other amounts");
    MPI_Error_string(error, words, &len);
    CHECK(strstr(words, "MPI_Ireduce: "), "\"%s\"", words);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    local_calls();
    number_elsewhere();
    call_again();
    one_buffer_twice();
    columns();
    different_amounts();
    less_than_all_expect();
    too_much(N);
    if (check_is_one_node())
        too_much(LONG);
    cut_element();
    if (check_is_one_node() && check_size() > 2)
        short_in_the_background();
    if (check_is_one_node()) {
        uneven_alltoall();
        all_different_roots();
        over_at_once();
    }
    if (check_is_one_node() && check_size() > 2)
        uneven_in_the_background();
    in_the_background(false);
    in_the_background(true);
    return check_finish();
}
