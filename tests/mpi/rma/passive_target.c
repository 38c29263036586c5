/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Passive targets that call nothing of MPI: rank 0 locks, puts, accumulates,
 * gets and unlocks at a rank that returns to MPI only when rank 0 has told it
 * by a file that all is done. Nothing but that rank's library can serve, so
 * that one without progress of its own never ends.
 *
 *   passive FOLDER [rounds]
 */
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include "check.h"

enum {
    WORDS = 64,
    LARGE = 1 << 17, /* words: a rendezvous on every device */
    LINES = 40       /* of a strided type */
};

enum flavor { CREATED, ALLOCATED, DYNAMIC, FLAVORS };

static const char *const flavor_names[] = {"MPI_Win_create", "MPI_Win_allocate",
                                           "MPI_Win_create_dynamic"};

static struct {
    const char *folder;
    int rounds;
    int turn;
    enum flavor flavor;
    MPI_Win win;
    int64_t *memory;
    MPI_Aint base; /* of the target's memory, for displacements */
} my;

/* ---- outside of MPI ---- */

static void name_of(char *name, size_t size)
{
    (void)snprintf(name, size, "%s/passive-%d", my.folder, my.turn);
}

static void tell_outside(void)
{
    char name[512];
    int fd;

    name_of(name, sizeof(name));
    fd = open(name, O_CREAT | O_WRONLY, 0600);
    CHECK_OR_DIE(fd >= 0, "cannot create %s", name);
    close(fd);
}

static void await_outside(void)
{
    char name[512];

    name_of(name, sizeof(name));
    while (access(name, F_OK) != 0)
        sched_yield();
}

/* ---- windows ---- */

static MPI_Aint disp(int word)
{
    const MPI_Aint at = (MPI_Aint)word * (MPI_Aint)sizeof(int64_t);

    return my.flavor == DYNAMIC ? MPI_Aint_add(my.base, at) : at;
}

static void make(int target)
{
    const MPI_Aint bytes =
        check_rank() == target ? LARGE * (MPI_Aint)sizeof(int64_t) : 0;

    my.memory = NULL;
    my.base = 0;
    if (my.flavor == ALLOCATED) {
        MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &my.memory,
                         &my.win);
    } else {
        if (bytes)
            my.memory = check_alloc((size_t)bytes);
        if (my.flavor == CREATED) {
            MPI_Win_create(my.memory, bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD,
                           &my.win);
        } else {
            MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &my.win);
            if (bytes)
                MPI_Win_attach(my.win, my.memory, bytes);
            if (bytes)
                MPI_Get_address(my.memory, &my.base);
        }
    }
    MPI_Bcast(&my.base, 1, MPI_AINT, target, MPI_COMM_WORLD);
}

static void unmake(void)
{
    if (my.flavor == DYNAMIC && my.memory)
        MPI_Win_detach(my.win, my.memory);
    MPI_Win_free(&my.win);
    if (my.flavor != ALLOCATED)
        free(my.memory);
}

/* ---- rank 0 ---- */

static void one_round(int target, int round)
{
    const int64_t one = 1;
    int64_t puts[WORDS];
    int64_t gets[WORDS];
    int64_t sum = -1;
    int64_t old = -1;

    for (int i = 0; i < WORDS; i++)
        puts[i] = 1000 * round + i;
    MPI_Win_lock(round % 2 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, target, 0,
                 my.win);
    MPI_Put(puts, WORDS, MPI_INT64_T, target, disp(WORDS), WORDS, MPI_INT64_T,
            my.win);
    MPI_Accumulate(&one, 1, MPI_INT64_T, target, disp(0), 1, MPI_INT64_T,
                   MPI_SUM, my.win);
    MPI_Fetch_and_op(&one, &old, MPI_INT64_T, target, disp(1), MPI_SUM, my.win);
    MPI_Win_flush(target, my.win);
    MPI_Get(gets, WORDS, MPI_INT64_T, target, disp(WORDS), WORDS, MPI_INT64_T,
            my.win);
    MPI_Get(&sum, 1, MPI_INT64_T, target, disp(0), 1, MPI_INT64_T, my.win);
    MPI_Win_unlock(target, my.win);
    CHECK(memcmp(puts, gets, sizeof(puts)) == 0, "%s: round %d got other data",
          flavor_names[my.flavor], round);
    CHECK(sum == round + 1 && old == round,
          "%s: round %d: the sum is %lld, the count was %lld",
          flavor_names[my.flavor], round, (long long)sum, (long long)old);
}

/* A message of its own each way, and a layout that must travel. */
static void large_round(int target)
{
    const MPI_Count words = LARGE - 2 * WORDS;
    int64_t *data = check_alloc(2 * (size_t)words * sizeof(*data));
    int64_t *back = data + words;
    int64_t line[LINES];
    MPI_Datatype strided;

    MPI_Type_vector(LINES, 1, 3, MPI_INT64_T, &strided);
    MPI_Type_commit(&strided);
    for (MPI_Count i = 0; i < words; i++)
        data[i] = 3 * i + 1;
    MPI_Win_lock_all(0, my.win);
    MPI_Put(data, (int)words, MPI_INT64_T, target, disp(2 * WORDS), (int)words,
            MPI_INT64_T, my.win);
    MPI_Win_flush(target, my.win);
    MPI_Accumulate(data, (int)words, MPI_INT64_T, target, disp(2 * WORDS),
                   (int)words, MPI_INT64_T, MPI_SUM, my.win);
    MPI_Win_flush(target, my.win);
    MPI_Get(back, (int)words, MPI_INT64_T, target, disp(2 * WORDS), (int)words,
            MPI_INT64_T, my.win);
    MPI_Get(line, LINES, MPI_INT64_T, target, disp(2 * WORDS), 1, strided,
            my.win);
    MPI_Win_unlock_all(my.win);
    for (MPI_Count i = 0; i < words; i++)
        CHECK_OR_DIE(back[i] == 2 * data[i], "%s: word %lld is %lld",
                     flavor_names[my.flavor], (long long)i, (long long)back[i]);
    for (int i = 0; i < LINES; i++)
        CHECK(line[i] == 2 * data[3 * i], "%s: line %d is %lld",
              flavor_names[my.flavor], i, (long long)line[i]);
    MPI_Type_free(&strided);
    free(data);
}

static void run(enum flavor flavor)
{
    const int target = check_size() - 1;

    my.flavor = flavor;
    make(target);
    if (check_rank() == target) {
        memset(my.memory, 0, WORDS * sizeof(int64_t));
        MPI_Win_sync(my.win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank() == 0) {
        for (int round = 0; round < my.rounds; round++)
            one_round(target, round);
        large_round(target);
        tell_outside();
    } else {
        await_outside();
    }
    MPI_Barrier(MPI_COMM_WORLD);
    unmake();
    my.turn++;
}

/* Of another run. */
static void forget_files(void)
{
    for (my.turn = 0; my.turn < FLAVORS; my.turn++) {
        char name[512];

        name_of(name, sizeof(name));
        (void)unlink(name);
    }
    my.turn = 0;
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    check_need(2);
    CHECK_OR_DIE(argc > 1, "name a folder");
    my.folder = argv[1];
    my.rounds = argc > 2 ? atoi(argv[2]) : 100;
    if (check_rank() == 0)
        forget_files();
    MPI_Barrier(MPI_COMM_WORLD);
    for (int flavor = 0; flavor < FLAVORS; flavor++)
        run((enum flavor)flavor);
    return check_finish();
}
