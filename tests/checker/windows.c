/* SPDX-License-Identifier: BSD-3-Clause */
/* Promises on windows: programs as those in mistakes.c. */
#include "mistakes.h"

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

static int64_t *cells;

static MPI_Win make_window(const char *key, const char *value, MPI_Aint count)
{
    MPI_Info info;
    MPI_Win win;

    MPI_Info_create(&info);
    MPI_Info_set(info, key, value);
    /* @make */
    MPI_Win_allocate(count * (MPI_Aint)sizeof(*cells), sizeof(*cells), info,
                     world, &cells, &win);
    MPI_Info_free(&info);
    for (MPI_Aint i = 0; i < count; i++)
        cells[i] = 0;
    MPI_Win_set_name(win, "table");
    return win;
}

static MPI_Group group_of(int member)
{
    MPI_Group all;
    MPI_Group one;

    MPI_Comm_group(world, &all);
    MPI_Group_incl(all, 1, &member, &one);
    MPI_Group_free(&all);
    return one;
}

void put_against_fence(void)
{
    MPI_Win win = make_window("no_locks", "true", 4);
    const int64_t one = 1;

    /* @noput */
    MPI_Win_fence(rank == 1 ? MPI_MODE_NOPUT : 0, win);
    if (rank == 0) {
        MPI_Put(&one, 1, MPI_INT64_T, 2, 0, 1, MPI_INT64_T, win);
        /* @put */
        MPI_Put(&one, 1, MPI_INT64_T, 1, 0, 1, MPI_INT64_T, win);
    }
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    MPI_Win_free(&win);
}

void add_against_post(void)
{
    MPI_Win win = make_window("no_locks", "true", 4);
    MPI_Group other = group_of(!rank);
    const int64_t one = 1;

    if (rank == 0) {
        MPI_Win_start(other, 0, win);
        /* @add */
        MPI_Accumulate(&one, 1, MPI_INT64_T, 1, 0, 1, MPI_INT64_T, MPI_SUM,
                       win);
        MPI_Win_complete(win);
    } else {
        /* @post */
        MPI_Win_post(other, MPI_MODE_NOPUT, win);
        MPI_Win_wait(win);
    }
    MPI_Group_free(&other);
    MPI_Win_free(&win);
}

void unchecked_start(void)
{
    MPI_Win win = make_window("no_locks", "true", 4);
    MPI_Group other = group_of(!rank);

    if (rank == 1)
        /* @checked */
        MPI_Win_post(other, 0, win);
    MPI_Barrier(world);
    if (rank == 0) {
        /* @unchecked */
        MPI_Win_start(other, MPI_MODE_NOCHECK, win);
        MPI_Win_complete(win);
    } else {
        MPI_Win_wait(win);
    }
    MPI_Group_free(&other);
    MPI_Win_free(&win);
}

void store_before_fence(void)
{
    MPI_Win win = make_window("no_locks", "true", 4);

    MPI_Win_fence(0, win);
    if (rank == 1)
        cells[2] = 7;
    /* @nostore */
    MPI_Win_fence(MPI_MODE_NOSTORE, win);
    MPI_Win_free(&win);
}

static MPI_Win window_over(int64_t own[4], const char *key, const char *value,
                           MPI_Comm comm)
{
    MPI_Info info;
    MPI_Win win;

    MPI_Info_create(&info);
    MPI_Info_set(info, key, value);
    MPI_Win_create(own, 4 * (MPI_Aint)sizeof(*own), sizeof(*own), info, comm,
                   &win);
    MPI_Info_free(&info);
    MPI_Win_set_name(win, "table");
    return win;
}

void store_before_post(void)
{
    static int64_t own[4];
    MPI_Win win = window_over(own, "no_locks", "true", world);
    MPI_Group other = group_of(!rank);

    for (int i = 0; i < 2; i++)
        if (rank == 0) {
            MPI_Win_start(other, 0, win);
            MPI_Win_complete(win);
        } else {
            /* @stored */
            MPI_Win_post(other, i ? MPI_MODE_NOSTORE : 0, win);
            MPI_Win_wait(win);
            own[1] = 8;
        }
    MPI_Group_free(&other);
    MPI_Win_free(&win);
}

void differing_fences(void)
{
    MPI_Win win = make_window("no_locks", "true", 4);

    /* @fences */
    MPI_Win_fence(rank == 2 ? MPI_MODE_NOPRECEDE : 0, win);
    MPI_Win_free(&win);
}

void fence_and_free(void)
{
    MPI_Win win = make_window("no_locks", "true", 4);

    if (rank == 1)
        /* @fence */
        MPI_Win_fence(0, win);
    /* @free */
    MPI_Win_free(&win);
}

void differing_sizes(void)
{
    MPI_Win win = make_window("same_size", "true", 4 + rank);

    MPI_Win_free(&win);
}

void differing_accumulates(void)
{
    MPI_Win win = make_window("accumulate_ops", "same_op", 4);
    const int64_t one = 1;

    MPI_Win_lock_all(0, win);
    if (rank == 0)
        MPI_Accumulate(&one, 1, MPI_INT64_T, 1, 3, 1, MPI_INT64_T, MPI_SUM,
                       win);
    MPI_Barrier(world);
    if (rank == 1)
        /* @max */
        MPI_Accumulate(&one, 1, MPI_INT64_T, 1, 3, 1, MPI_INT64_T, MPI_MAX,
                       win);
    MPI_Barrier(world);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

static void add_there(MPI_Win win, MPI_Op op)
{
    const int64_t one = 1;

    /* @there */
    MPI_Accumulate(&one, 1, MPI_INT64_T, 0, 3, 1, MPI_INT64_T, op, win);
}

/* Two ranks add, and one of them completes that. */
static void add_of_three(int completer)
{
    MPI_Win win = make_window("accumulate_ops", "same_op", 4);

    MPI_Win_lock_all(0, win);
    for (int i = 0; i < 2; i++) {
        if (rank == i)
            add_there(win, MPI_SUM);
        MPI_Barrier(world);
    }
    if (rank == completer)
        MPI_Win_flush(0, win);
    MPI_Barrier(world);
    if (rank == 2)
        add_there(win, MPI_MAX);
    MPI_Barrier(world);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

void add_of_newest(void)
{
    add_of_three(0);
}

void add_of_another(void)
{
    add_of_three(1);
}

/* A promise of some members' window is not that of the next window. */
void forgotten_promise(void)
{
    static int64_t own[4];
    MPI_Comm part;
    MPI_Win win;

    MPI_Comm_split(world, rank < 2, 0, &part);
    if (rank < 2) {
        win = window_over(own, "accumulate_ops", "same_op", part);
        MPI_Win_free(&win);
    }
    MPI_Win_create_dynamic(MPI_INFO_NULL, world, &win);
    MPI_Win_free(&win);
    MPI_Comm_free(&part);
}

/* The second lock is granted when the first one is gone; the last rank is
 * their target. */
void exclusive_turns(void)
{
    MPI_Win win = make_window("accumulate_ops", "same_op", 4);
    const int64_t one = 1;

    if (rank == 1)
        MPI_Recv(NULL, 0, MPI_INT, 0, 0, world, MPI_STATUS_IGNORE);
    if (rank < 2) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, size - 1, 0, win);
        MPI_Accumulate(&one, 1, MPI_INT64_T, size - 1, 0, 1, MPI_INT64_T,
                       rank ? MPI_MAX : MPI_SUM, win);
    }
    if (rank == 0) {
        MPI_Send(NULL, 0, MPI_INT, 1, 0, world);
        compute();
    }
    if (rank < 2)
        MPI_Win_unlock(size - 1, win);
    MPI_Win_free(&win);
}

enum { ADDERS = 3 };

static void *add_often(void *arg)
{
    for (int i = 0; i < 200; i++) {
        add_there(*(MPI_Win *)arg, MPI_SUM);
        MPI_Win_flush(0, *(MPI_Win *)arg);
    }
    return NULL;
}

void adding_threads(void)
{
    MPI_Win win = make_window("accumulate_ops", "same_op", 4);
    pthread_t threads[ADDERS];

    MPI_Win_lock_all(0, win);
    for (int i = 0; i < ADDERS; i++)
        pthread_create(&threads[i], NULL, add_often, &win);
    for (int i = 0; i < ADDERS; i++)
        pthread_join(threads[i], NULL);
    MPI_Barrier(world);
    if (rank == 0)
        add_there(win, MPI_MAX);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

/* Another one stores into memory that it has asked for. */
void queried_memory(void)
{
    MPI_Win win = make_window("no_locks", "true", 4);
    int64_t *theirs = NULL;
    MPI_Aint len = 0;
    int unit;

    MPI_Win_fence(0, win);
    if (rank == 0)
        MPI_Win_shared_query(win, 1, &len, &unit, &theirs);
    if (len > 0)
        theirs[2] = 7;
    MPI_Barrier(world);
    MPI_Win_fence(rank == 1 ? MPI_MODE_NOSTORE : 0, win);
    MPI_Win_free(&win);
}

/* What comes by one window has not been stored in the other one. */
void two_windows(void)
{
    static int64_t own[4];
    const int64_t one = 1;
    MPI_Win wins[2];

    for (int i = 0; i < 2; i++) {
        wins[i] = window_over(own, "no_locks", "true", world);
        MPI_Win_fence(0, wins[i]);
    }
    MPI_Put(&one, 1, MPI_INT64_T, !rank, 0, 1, MPI_INT64_T, wins[1]);
    MPI_Win_fence(0, wins[1]);
    MPI_Win_free(&wins[1]);
    MPI_Win_fence(MPI_MODE_NOSTORE, wins[0]);
    MPI_Win_free(&wins[0]);
}

/* same_op becomes same_op_no_op. */
void changed_promise(void)
{
    MPI_Win win = make_window("accumulate_ops", "same_op", 4);
    int64_t before;
    MPI_Info info;

    MPI_Info_create(&info);
    MPI_Info_set(info, "accumulate_ops", "same_op_no_op");
    MPI_Win_set_info(win, info);
    MPI_Info_free(&info);
    MPI_Win_lock_all(0, win);
    if (rank == 0)
        add_there(win, MPI_SUM);
    MPI_Barrier(world);
    if (rank == 1)
        MPI_Fetch_and_op(NULL, &before, MPI_INT64_T, 0, 3, MPI_NO_OP, win);
    MPI_Barrier(world);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

/* One displacement, but other elements. */
void other_elements(void)
{
    MPI_Win win = make_window("accumulate_ops", "same_op", 4);
    const int64_t one = 1;
    const int second = 1;
    MPI_Datatype type;

    MPI_Type_create_indexed_block(1, 1, &second, MPI_INT64_T, &type);
    MPI_Type_commit(&type);
    MPI_Win_lock_all(0, win);
    if (rank == 0)
        MPI_Accumulate(&one, 1, MPI_INT64_T, 0, 0, 1, type, MPI_SUM, win);
    MPI_Barrier(world);
    if (rank == 1)
        MPI_Accumulate(&one, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, MPI_MAX,
                       win);
    MPI_Barrier(world);
    MPI_Win_unlock_all(win);
    MPI_Type_free(&type);
    MPI_Win_free(&win);
}

/* Nobody is to be told anything. */
void kept_promises(void)
{
    MPI_Win win = make_window("accumulate_ops", "same_op_no_op", 4);
    const int64_t one = rank;
    int64_t before;
    MPI_Group next;
    MPI_Group last;

    MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
    MPI_Put(&one, 1, MPI_INT64_T, rank ^ 1, 0, 1, MPI_INT64_T, win);
    MPI_Win_fence(MPI_MODE_NOPUT, win);
    MPI_Get(&before, 1, MPI_INT64_T, rank ^ 1, 0, 1, MPI_INT64_T, win);
    MPI_Win_fence(MPI_MODE_NOSTORE | MPI_MODE_NOSUCCEED, win);
    MPI_Win_fence(MPI_MODE_NOPRECEDE | MPI_MODE_NOSTORE, win);
    MPI_Accumulate(&one, 1, MPI_INT64_T, 0, 1, 1, MPI_INT64_T, MPI_SUM, win);
    MPI_Win_fence(MPI_MODE_NOSTORE, win);
    MPI_Accumulate(&one, 1, MPI_INT64_T, 0, 1, 1, MPI_INT64_T, MPI_MAX, win);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    next = group_of((rank + 1) % size);
    last = group_of((rank + size - 1) % size);
    MPI_Win_post(last, MPI_MODE_NOPUT, win);
    MPI_Win_start(next, 0, win);
    MPI_Get_accumulate(NULL, 0, MPI_INT64_T, &before, 1, MPI_INT64_T,
                       (rank + 1) % size, 0, 1, MPI_INT64_T, MPI_NO_OP, win);
    MPI_Win_complete(win);
    MPI_Win_wait(win);
    MPI_Group_free(&next);
    MPI_Group_free(&last);
    for (int i = 0; i < 4; i++) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
        MPI_Fetch_and_op(&one, &before, MPI_INT64_T, 0, 2,
                         rank % 2 ? MPI_SUM : MPI_REPLACE, win);
        MPI_Win_unlock(0, win);
    }
    MPI_Win_free(&win);
}
