/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A member of a file dies (chempirun --survive): what the others hear from
 * collective calls names the file and the rank, blocking or not, and the file
 * that was to be deleted when it is closed is gone when they have closed it.
 *
 *   file_survivors FOLDER VICTIM
 */
#include "check.h"

#include <signal.h>
#include <unistd.h>

enum { ELEMENTS = 1000 };

static char path[4096];
static int victim;
static int data[ELEMENTS];

static void expect_lost(int rc, const char *call)
{
    char words[MPI_MAX_ERROR_STRING] = "";
    char whom[24];
    int len;

    MPI_Error_string(rc, words, &len);
    CHECK_OR_DIE(check_class(rc) == MPI_ERR_PROC_ABORTED, "%s: %s", call,
                 words);
    snprintf(whom, sizeof(whom), "rank %d", victim);
    CHECK_OR_DIE(strstr(words, path) != NULL, "%s names no file: %s", call,
                 words);
    CHECK_OR_DIE(strstr(words, whom) != NULL, "%s names no rank: %s", call,
                 words);
    CHECK_OR_DIE(strstr(words, "MPI_") != NULL && strstr(words, call) != NULL,
                 "%s is not named: %s", call, words);
}

static void open_file(MPI_File *file)
{
    MPI_Info info;
    MPI_Datatype piece;

    MPI_Info_create(&info);
    MPI_Info_set(info, "romio_cb_write", "enable");
    CHECK_OR_DIE(MPI_File_open(MPI_COMM_WORLD, path,
                               MPI_MODE_CREATE | MPI_MODE_RDWR |
                                   MPI_MODE_DELETE_ON_CLOSE,
                               info, file) == MPI_SUCCESS,
                 "open");
    MPI_Type_create_resized(MPI_INT, 0, check_size() * (MPI_Aint)sizeof(int),
                            &piece);
    MPI_Type_commit(&piece);
    CHECK_OR_DIE(MPI_File_set_view(
                     *file, check_rank() * (MPI_Offset)sizeof(int), MPI_INT,
                     piece, "native", MPI_INFO_NULL) == MPI_SUCCESS,
                 "set_view");
    MPI_Type_free(&piece);
    MPI_Info_free(&info);
}

static void try_calls(MPI_File *file)
{
    MPI_Request request;
    MPI_Status status;

    expect_lost(
        MPI_File_write_at_all(*file, 0, data, ELEMENTS, MPI_INT, &status),
        "MPI_File_write_at_all");
    CHECK_OR_DIE(MPI_File_iwrite_at_all(*file, 0, data, ELEMENTS, MPI_INT,
                                        &request) == MPI_SUCCESS,
                 "iwrite_at_all");
    expect_lost(MPI_Wait(&request, &status), "writing a file");
    expect_lost(MPI_File_set_size(*file, 1000), "MPI_File_set_size");
    expect_lost(MPI_File_sync(*file), "MPI_File_sync");
    expect_lost(MPI_File_close(file), "MPI_File_close");
}

int main(int argc, char **argv)
{
    MPI_File file;
    MPI_Group all, rest;
    MPI_Comm others;
    int one;

    check_start(&argc, &argv);
    check_need(3);
    CHECK_OR_DIE(argc > 2, "two arguments");
    snprintf(path, sizeof(path), "%s/gone", argv[1]);
    victim = atoi(argv[2]);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_excl(all, 1, &victim, &rest);
    MPI_Comm_create(MPI_COMM_WORLD, rest, &others);
    open_file(&file);
    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank() == victim)
        raise(SIGKILL);
    CHECK_OR_DIE(MPI_Recv(&one, 1, MPI_INT, victim, 0, MPI_COMM_WORLD,
                          MPI_STATUS_IGNORE) != MPI_SUCCESS,
                 "the victim lives");
    try_calls(&file);
    MPI_Barrier(others);
    CHECK_OR_DIE(access(path, F_OK) != 0, "%s is still there", path);
    MPI_Comm_free(&others);
    MPI_Group_free(&rest);
    MPI_Group_free(&all);
    printf("rank %d went on\n", check_rank());
    MPI_Finalize();
    return 0;
}
