/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared file pointers: records that all ranks write at once are there once
 * each; ordered calls follow the ranks; seeking; views; two files at a time;
 * a member 0 that does nothing else serves the others.
 */
#include "check.h"

#define RECORDS 20
#define RECORD 5     /* ints */
#define STARVED_S 60 /* far longer than anybody waits for a turn */

static MPI_File file;

static void open_file(const char *path)
{
    int rc = MPI_File_open(MPI_COMM_WORLD, path,
                           MPI_MODE_CREATE | MPI_MODE_RDWR |
                               MPI_MODE_DELETE_ON_CLOSE,
                           MPI_INFO_NULL, &file);

    CHECK_OR_DIE(rc == MPI_SUCCESS, "open: class %d", check_class(rc));
    MPI_File_set_size(file, 0);
    MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
}

static void fill(int *record, int rank, int i)
{
    for (int k = 0; k < RECORD; k++)
        record[k] = rank * 10000 + i * 10 + k;
}

/* Every record once, in whatever order. */
static void check_records(void)
{
    int total = RECORDS * check_size();
    int *seen = check_alloc((size_t)total * sizeof(*seen));
    int *all = check_alloc((size_t)total * RECORD * sizeof(*all));

    MPI_File_read_at(file, 0, all, total * RECORD, MPI_INT, MPI_STATUS_IGNORE);
    for (int i = 0; i < total; i++) {
        int rank = all[i * RECORD] / 10000;
        int number = all[i * RECORD] % 10000 / 10;
        int want[RECORD];

        fill(want, rank, number);
        CHECK(memcmp(want, all + i * RECORD, sizeof(want)) == 0,
              "record %d is torn: %d", i, all[i * RECORD]);
        if (rank >= 0 && rank < check_size() && number < RECORDS)
            seen[rank * RECORDS + number]++;
    }
    for (int i = 0; i < total; i++)
        CHECK(seen[i] == 1, "record %d is there %d times", i, seen[i]);
    free(seen);
    free(all);
}

static void write_all_at_once(void)
{
    MPI_Offset at = -1;
    int records[RECORDS][RECORD];
    MPI_Request requests[RECORDS];

    for (int i = 0; i < RECORDS; i++) {
        fill(records[i], check_rank(), i);
        requests[i] = MPI_REQUEST_NULL;
        if (i % 2)
            MPI_File_write_shared(file, records[i], RECORD, MPI_INT,
                                  MPI_STATUS_IGNORE);
        else
            MPI_File_iwrite_shared(file, records[i], RECORD, MPI_INT,
                                   &requests[i]);
    }
    MPI_Waitall(RECORDS, requests, MPI_STATUSES_IGNORE);
    MPI_File_sync(file);
    MPI_File_get_position_shared(file, &at);
    CHECK(at == RECORDS * RECORD * check_size(), "pointer at %lld",
          (long long)at);
    MPI_Barrier(MPI_COMM_WORLD);
    check_records();
}

/* Each rank reads records nobody else gets. */
static void read_all_at_once(void)
{
    int total = RECORDS * check_size();
    int *count = check_alloc((size_t)total * sizeof(*count));
    int *sum = check_alloc((size_t)total * sizeof(*sum));

    MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
    for (int i = 0; i < RECORDS; i++) {
        int record[RECORD] = {0};
        MPI_Request request;

        if (i % 2) {
            MPI_File_read_shared(file, record, RECORD, MPI_INT,
                                 MPI_STATUS_IGNORE);
        } else {
            MPI_File_iread_shared(file, record, RECORD, MPI_INT, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        count[record[0] / 10000 * RECORDS + record[0] % 10000 / 10]++;
    }
    MPI_Allreduce(count, sum, total, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < total; i++)
        CHECK(sum[i] == 1, "record %d was read %d times", i, sum[i]);
    free(count);
    free(sum);
}

/* Rank r brings r + 1 ints, the blocks in the order of the ranks. */
static void ordered(bool is_split, int start)
{
    int n = check_rank() + 1;
    int before = check_rank() * (check_rank() + 1) / 2;
    int mine[64];
    int back[64];
    int wrong = 0;
    MPI_Status status;
    MPI_Offset at;

    MPI_File_seek_shared(file, start, MPI_SEEK_SET);
    for (int i = 0; i < n; i++)
        mine[i] = start * 100 + before + i;
    if (is_split) {
        MPI_File_write_ordered_begin(file, mine, n, MPI_INT);
        MPI_File_write_ordered_end(file, mine, &status);
    } else {
        MPI_File_write_ordered(file, mine, n, MPI_INT, &status);
    }
    MPI_File_sync(file);
    MPI_File_get_position_shared(file, &at);
    CHECK(at == start + check_size() * (check_size() + 1) / 2,
          "pointer at %lld", (long long)at);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_seek_shared(file, -(check_size() * (check_size() + 1) / 2),
                         MPI_SEEK_CUR);
    if (is_split) {
        MPI_File_read_ordered_begin(file, back, n, MPI_INT);
        MPI_File_read_ordered_end(file, back, &status);
    } else {
        MPI_File_read_ordered(file, back, n, MPI_INT, &status);
    }
    MPI_Get_count(&status, MPI_INT, &wrong);
    CHECK(wrong == n, "%d ints of %d", wrong, n);
    CHECK(memcmp(mine, back, (size_t)n * sizeof(int)) == 0, "ordered differs");
    MPI_File_read_at(file, start + before, back, n, MPI_INT, &status);
    CHECK(memcmp(mine, back, (size_t)n * sizeof(int)) == 0, "out of order");
}

/* Every member hears that nobody has a place, and nothing is written. */
static void too_far(void)
{
    MPI_Offset before = -1;
    MPI_Offset after = -1;
    int value = 1;
    int rc;

    MPI_File_get_size(file, &before);
    MPI_File_seek_shared(file, (MPI_Offset)1 << 60, MPI_SEEK_SET);
    rc = MPI_File_write_ordered(file, &value, 1, MPI_INT, MPI_STATUS_IGNORE);
    CHECK(check_class(rc) == MPI_ERR_ARG, "beyond 2^61 bytes: class %d",
          check_class(rc));
    MPI_File_get_size(file, &after);
    CHECK(after == before, "%lld bytes, %lld before", (long long)after,
          (long long)before);
}

/* Rank 0 only writes, by the shared pointer, until the others have done so,
 * too: it must not starve them. */
static void busy_first(void)
{
    double start = MPI_Wtime();
    MPI_Offset own = 0;
    MPI_Offset len = 0;
    int value = 1;

    MPI_File_set_size(file, 0);
    MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
    do {
        MPI_File_write_shared(file, &value, 1, MPI_INT, MPI_STATUS_IGNORE);
        own++;
        MPI_File_get_size(file, &len);
        len /= (MPI_Offset)sizeof(value);
    } while (check_rank() == 0 && len < own + check_size() - 1 &&
             MPI_Wtime() - start < STARVED_S);
    CHECK(check_rank() != 0 || len >= own + check_size() - 1,
          "rank 0 has written %lld of %lld", (long long)own, (long long)len);
    MPI_File_sync(file);
}

/* The view of a sequential file begins behind what any rank has written before
 * it was set, also for a rank that was there first. */
static void sequential(void)
{
    const int last = check_size() - 1;
    char path[64];
    char name[MPI_MAX_DATAREP_STRING];
    MPI_File tape;
    MPI_Datatype etype;
    MPI_Datatype filetype;
    MPI_Offset disp = -1;
    int value = check_rank();

    snprintf(path, sizeof(path), "shared-%d-c.tmp", check_size());
    CHECK_OR_DIE(MPI_File_open(MPI_COMM_WORLD, path,
                               MPI_MODE_CREATE | MPI_MODE_WRONLY |
                                   MPI_MODE_SEQUENTIAL |
                                   MPI_MODE_DELETE_ON_CLOSE,
                               MPI_INFO_NULL, &tape) == MPI_SUCCESS,
                 "open");
    if (check_rank() == 0 && last > 0)
        MPI_Send(&value, 1, MPI_INT, last, 0, MPI_COMM_WORLD);
    if (check_rank() == last) {
        if (last > 0)
            MPI_Recv(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        MPI_File_write_shared(tape, &value, 1, MPI_INT, MPI_STATUS_IGNORE);
    }
    CHECK(MPI_File_set_view(tape, MPI_DISPLACEMENT_CURRENT, MPI_INT, MPI_INT,
                            "native", MPI_INFO_NULL) == MPI_SUCCESS,
          "set_view");
    MPI_File_get_view(tape, &disp, &etype, &filetype, name);
    CHECK(disp == (MPI_Offset)sizeof(value), "the view begins at %lld",
          (long long)disp);
    MPI_File_close(&tape);
}

int main(int argc, char **argv)
{
    char path[64];
    MPI_File first;
    MPI_Offset at = -1;
    int value = check_rank();

    check_start(&argc, &argv);
    snprintf(path, sizeof(path), "shared-%d-a.tmp", check_size());
    open_file(path);
    first = file;
    MPI_File_write_ordered(first, &value, 1, MPI_INT, MPI_STATUS_IGNORE);
    snprintf(path, sizeof(path), "shared-%d-b.tmp", check_size());
    open_file(path);
    write_all_at_once();
    read_all_at_once();
    ordered(false, 7);
    ordered(true, 1000);
    too_far();
    MPI_File_seek_shared(file, 0, MPI_SEEK_END);
    MPI_File_get_position_shared(file, &at);
    CHECK(at == 1000 + check_size() * (check_size() + 1) / 2, "end at %lld",
          (long long)at);
    MPI_File_get_position_shared(first, &at);
    CHECK(at == check_size(), "the other file's pointer at %lld",
          (long long)at);
    busy_first();
    sequential();
    CHECK(MPI_File_close(&file) == MPI_SUCCESS, "close");
    CHECK(MPI_File_close(&first) == MPI_SUCCESS, "close");
    return check_finish();
}
