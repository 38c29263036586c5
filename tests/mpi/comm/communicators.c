/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups and communicators: making, comparing, keeping apart, freeing. */
#include "check.h"

static int rank_after(void)
{
    return (check_rank() + 1) % check_size();
}

static int rank_before(void)
{
    return (check_rank() + check_size() - 1) % check_size();
}

static void groups(void)
{
    MPI_Group world;
    MPI_Group evens;
    MPI_Group odds;
    MPI_Group both;
    MPI_Group none;
    int size = check_size();
    int *even_ranks = check_alloc(sizeof(int) * (size_t)size);
    int result = -1;
    int count = 0;

    MPI_Comm_group(MPI_COMM_WORLD, &world);
    for (int r = 0; r < size; r += 2)
        even_ranks[count++] = r;
    MPI_Group_incl(world, count, even_ranks, &evens);
    MPI_Group_excl(world, count, even_ranks, &odds);
    MPI_Group_union(odds, evens, &both);
    MPI_Group_intersection(odds, evens, &none);
    MPI_Group_compare(both, world, &result);
    CHECK(result == (size > 1 ? MPI_SIMILAR : MPI_IDENT), "union: %d", result);
    CHECK(none == MPI_GROUP_EMPTY || (MPI_Group_size(none, &result), !result),
          "the intersection is not empty");
    MPI_Group_rank(evens, &result);
    CHECK(result == (check_rank() % 2 ? MPI_UNDEFINED : check_rank() / 2),
          "rank among the even ones: %d", result);
    int asked[2] = {0, count - 1};
    int told[2];
    MPI_Group_translate_ranks(evens, 2, asked, world, told);
    CHECK(told[0] == 0 && told[1] == 2 * (count - 1), "translate: %d %d",
          told[0], told[1]);
    MPI_Group_translate_ranks(world, 1, asked, odds, told);
    CHECK(told[0] == MPI_UNDEFINED, "rank 0 is among the odd ones: %d",
          told[0]);
    MPI_Group_free(&world);
    MPI_Group_free(&evens);
    MPI_Group_free(&odds);
    MPI_Group_free(&both);
    if (none != MPI_GROUP_EMPTY)
        MPI_Group_free(&none);
    CHECK(world == MPI_GROUP_NULL, "freed group is not null");
    free(even_ranks);
}

static void compare(void)
{
    MPI_Comm copy;
    MPI_Comm reversed;
    MPI_Comm self_copy;
    int result = -1;

    MPI_Comm_compare(MPI_COMM_WORLD, MPI_COMM_WORLD, &result);
    CHECK(result == MPI_IDENT, "world and itself: %d", result);
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Comm_compare(MPI_COMM_WORLD, copy, &result);
    CHECK(result == MPI_CONGRUENT, "world and its copy: %d", result);
    MPI_Comm_split(MPI_COMM_WORLD, 3, -check_rank(), &reversed);
    MPI_Comm_compare(MPI_COMM_WORLD, reversed, &result);
    CHECK(result == (check_size() > 1 ? MPI_SIMILAR : MPI_CONGRUENT),
          "world and reversed: %d", result);
    MPI_Comm_dup(MPI_COMM_SELF, &self_copy);
    MPI_Comm_compare(self_copy, copy, &result);
    CHECK(result == (check_size() > 1 ? MPI_UNEQUAL : MPI_CONGRUENT),
          "self and world: %d", result);
    MPI_Comm_free(&self_copy);
    MPI_Comm_free(&reversed);
    MPI_Comm_free(&copy);
    CHECK(copy == MPI_COMM_NULL, "freed communicator is not null");
}

/* The same source and tag on two communicators never mix. */
static void kept_apart(void)
{
    MPI_Comm copy;
    MPI_Request requests[2];
    int first = -1;
    int second = -1;
    int one = 1;
    int two = 2;
    int to = rank_after();

    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Irecv(&second, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, copy,
              &requests[0]);
    MPI_Irecv(&first, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
              &requests[1]);
    MPI_Send(&one, 1, MPI_INT, to, 5, MPI_COMM_WORLD);
    MPI_Send(&two, 1, MPI_INT, to, 5, copy);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    CHECK(first == 1 && second == 2, "got %d on world, %d on the copy", first,
          second);
    MPI_Comm_free(&copy);
}

static void split(void)
{
    int color = check_rank() % 3 == 2 ? MPI_UNDEFINED : check_rank() % 3;
    MPI_Comm part = MPI_COMM_WORLD;
    int rank = -1;
    int sum = 0;
    int want = 0;

    /* Equal keys: the order of the old ranks decides. */
    MPI_Comm_split(MPI_COMM_WORLD, color, 7, &part);
    CHECK((color == MPI_UNDEFINED) == (part == MPI_COMM_NULL),
          "split gave a null communicator to the wrong ranks");
    if (part == MPI_COMM_NULL)
        return;
    MPI_Comm_rank(part, &rank);
    CHECK(rank == check_rank() / 3, "rank %d in its part", rank);
    MPI_Allreduce(&(int){check_rank()}, &sum, 1, MPI_INT, MPI_SUM, part);
    for (int r = color; r < check_size(); r += 3)
        want += r;
    CHECK(sum == want, "sum over the part: %d, not %d", sum, want);
    MPI_Comm_free(&part);
}

static void create(void)
{
    MPI_Group world;
    MPI_Group pair;
    MPI_Comm comm = MPI_COMM_NULL;
    int last = check_size() - 1;
    int ranks[2] = {last, 0};

    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 2, ranks, &pair);
    MPI_Comm_create(MPI_COMM_WORLD, pair, &comm);
    bool in = check_rank() == 0 || check_rank() == last;
    CHECK(in == (comm != MPI_COMM_NULL), "wrong members");
    if (in) {
        int value = check_rank();
        int got = -1;
        MPI_Sendrecv(&value, 1, MPI_INT, check_rank() == 0 ? 0 : 1, 0, &got, 1,
                     MPI_INT, check_rank() == 0 ? 0 : 1, 0, comm,
                     MPI_STATUS_IGNORE);
        CHECK(got == last - check_rank(), "message inside the pair: %d", got);
        MPI_Comm_free(&comm);
        MPI_Comm_create_group(MPI_COMM_WORLD, pair, 3, &comm);
        MPI_Barrier(comm);
        MPI_Comm_free(&comm);
    }
    MPI_Group_free(&pair);
    MPI_Group_free(&world);
}

/* A message from each rank to the next, with its rank. */
struct turn {
    int value;
    int got;
    MPI_Request requests[2];
};

static void begin_turn(struct turn *t, MPI_Comm comm)
{
    t->value = check_rank();
    t->got = -1;
    MPI_Irecv(&t->got, 1, MPI_INT, rank_before(), 1, comm, &t->requests[0]);
    MPI_Isend(&t->value, 1, MPI_INT, rank_after(), 1, comm, &t->requests[1]);
}

/* Freed with messages pending: they still arrive. */
static void free_early(void)
{
    struct turn turn;
    MPI_Comm copy;

    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    begin_turn(&turn, copy);
    MPI_Comm_free(&copy);
    MPI_Waitall(2, turn.requests, MPI_STATUSES_IGNORE);
    CHECK(turn.got == rank_before(),
          "pending message on a freed communicator: %d", turn.got);
}

/* Waits for what is under way, but not for the program to ask how it went, nor
 * for requests that may be started again. */
static void disconnect(void)
{
    struct turn turn;
    MPI_Comm copy;
    MPI_Request barrier;

    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    begin_turn(&turn, copy);
    MPI_Ibarrier(copy, &barrier);
    MPI_Comm_disconnect(&copy);
    CHECK(copy == MPI_COMM_NULL, "disconnected, and not null");
    CHECK(turn.got == rank_before(), "disconnected before the message came: %d",
          turn.got);
    MPI_Waitall(2, turn.requests, MPI_STATUSES_IGNORE);
    MPI_Wait(&barrier, MPI_STATUS_IGNORE);

    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Recv_init(&turn.got, 1, MPI_INT, rank_before(), 2, copy,
                  &turn.requests[0]);
    MPI_Send_init(&turn.value, 1, MPI_INT, rank_after(), 2, copy,
                  &turn.requests[1]);
    MPI_Startall(2, turn.requests);
    MPI_Waitall(2, turn.requests, MPI_STATUSES_IGNORE);
    MPI_Comm_disconnect(&copy);
    MPI_Request_free(&turn.requests[0]);
    MPI_Request_free(&turn.requests[1]);
}

/* Requests of every kind that are inactive, or over and not waited for, keep
 * nobody from leaving. */
static void disconnect_idle(void)
{
    int to = rank_after();
    int from = rank_before();
    MPI_Request requests[8];
    MPI_Comm child = MPI_COMM_NULL;
    MPI_Comm copy;
    int one = 1;
    int sum = 0;
    int got = -1;
    int n = 0;

    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Precv_init(&got, 1, 1, MPI_INT, from, 3, copy, MPI_INFO_NULL,
                   &requests[n++]);
    MPI_Psend_init(&one, 1, 1, MPI_INT, to, 3, copy, MPI_INFO_NULL,
                   &requests[n++]);
    MPI_Allreduce_init(&one, &sum, 1, MPI_INT, MPI_SUM, copy, MPI_INFO_NULL,
                       &requests[n++]);
    MPI_Bsend_init(&one, 1, MPI_INT, to, 3, copy, &requests[n++]);
    MPI_Comm_disconnect(&copy);
    while (n > 0)
        MPI_Request_free(&requests[--n]);

    MPI_Comm_dup(MPI_COMM_WORLD, &copy); /* and nobody ever sends */
    MPI_Precv_init(&got, 1, 1, MPI_INT, from, 3, copy, MPI_INFO_NULL,
                   &requests[0]);
    MPI_Precv_init(&got, 1, 1, MPI_INT, from, 4, copy, MPI_INFO_NULL,
                   &requests[1]);
    MPI_Request_free(&requests[1]);
    MPI_Comm_disconnect(&copy);
    MPI_Request_free(&requests[0]);

    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Precv_init(&got, 1, 1, MPI_INT, from, 3, copy, MPI_INFO_NULL,
                   &requests[n++]);
    MPI_Psend_init(&one, 1, 1, MPI_INT, to, 3, copy, MPI_INFO_NULL,
                   &requests[n++]);
    MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, copy, &requests[n++]);
    MPI_Comm_idup(copy, &child, &requests[n++]);
    MPI_Startall(2, requests);
    MPI_Pready(0, requests[1]);
    MPI_Comm_disconnect(&copy);
    CHECK(got == 1, "disconnected before the partition came: %d", got);
    CHECK(sum == check_size(), "disconnected before the sum: %d", sum);
    MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
    MPI_Comm_free(&child);
}

/* Many requests under way, that end in another order than they began, some of
 * them let go of, and others that are none of the communicator's. */
static void disconnect_many(void)
{
    enum { MANY = 64, OTHERS = 1000 };
    int to = rank_after();
    int from = rank_before();
    MPI_Request received[MANY];
    MPI_Request sent[MANY];
    MPI_Request others[OTHERS];
    MPI_Comm copy;
    int values[MANY];
    int got[MANY];
    int dummy;

    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    for (int i = 0; i < OTHERS; i++)
        MPI_Irecv(&dummy, 1, MPI_INT, from, 7000 + i, MPI_COMM_WORLD,
                  &others[i]);
    for (int i = 0; i < MANY; i++)
        MPI_Irecv(&got[i], 1, MPI_INT, from, i, copy, &received[i]);
    for (int i = MANY - 1; i >= 0; i--) {
        values[i] = i;
        MPI_Issend(&values[i], 1, MPI_INT, to, i, copy, &sent[i]);
        if (i % 3 == 0)
            MPI_Request_free(&sent[i]);
    }
    MPI_Comm_disconnect(&copy);
    for (int i = 0; i < MANY; i++)
        CHECK(got[i] == i, "disconnected before message %d", i);
    MPI_Waitall(MANY, received, MPI_STATUSES_IGNORE);
    MPI_Waitall(MANY, sent, MPI_STATUSES_IGNORE);
    for (int i = 0; i < OTHERS; i++)
        MPI_Cancel(&others[i]);
    MPI_Waitall(OTHERS, others, MPI_STATUSES_IGNORE);
}

/* More communicators than there are context numbers, a few alive at once. */
static void many(int rounds)
{
    MPI_Comm alive[8];

    for (int i = 0; i < rounds; i++) {
        int slot = i % 8;
        int sum = 0;
        if (i >= 8)
            MPI_Comm_free(&alive[slot]);
        MPI_Comm_dup(i % 5 == 4 ? alive[(slot + 7) % 8] : MPI_COMM_WORLD,
                     &alive[slot]);
        if (i % 50 == 0) {
            MPI_Allreduce(&(int){1}, &sum, 1, MPI_INT, MPI_SUM, alive[slot]);
            CHECK(sum == check_size(), "communicator %d has %d ranks", i, sum);
        }
    }
    for (int slot = 0; slot < 8; slot++)
        MPI_Comm_free(&alive[slot]);
}

static void names(void)
{
    char name[MPI_MAX_OBJECT_NAME];
    int len = 0;

    MPI_Comm_get_name(MPI_COMM_WORLD, name, &len);
    CHECK(strcmp(name, "MPI_COMM_WORLD") == 0, "world is called %s", name);
    MPI_Comm_set_name(MPI_COMM_WORLD, "everyone");
    MPI_Comm_get_name(MPI_COMM_WORLD, name, &len);
    CHECK(strcmp(name, "everyone") == 0 && len == 8, "name: %s", name);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    check_need(2);
    groups();
    compare();
    kept_apart();
    split();
    create();
    free_early();
    disconnect();
    disconnect_idle();
    disconnect_many();
    many((int)check_arg(argc, argv, 1, 3000));
    names();
    return check_finish();
}
