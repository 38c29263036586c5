/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every function that takes a handle is given, in each place of one, all
 * predefined handles of other kinds and numbers that are no handles. It must
 * return the error class of the kind. Runs as a world of one.
 */
#define _GNU_SOURCE /* mkstemp */
#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "expect.h"

enum { HANDLES_MAX = 5, SCRATCH_BYTES = 65536, FAILURES_MAX = 20 };

enum kind {
    KIND_COMM,
    KIND_DATATYPE,
    KIND_OP,
    KIND_GROUP,
    KIND_ERRHANDLER,
    KIND_INFO,
    KIND_SESSION,
    KIND_MESSAGE,
    KIND_REQUEST,
    KIND_FILE,
    KIND_WIN,
    KINDS,
    KIND_NONE
};

struct function {
    const char *name;
    int (*call)(void *const *handles);
    bool takes_null;
    int count;
    enum kind kinds[HANDLES_MAX];
};

struct stranger {
    const char *name;
    enum kind kind;
    void *value;
};

/* What calls get for anything but handles. */
static _Alignas(16) unsigned char scratch_bytes[SCRATCH_BYTES];
static void *const scratch = scratch_bytes;
static const int int_ones[] = {1, 1};
static const MPI_Count count_ones[] = {1, 1};

#include "strangers_calls.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Numbers that never were handles. */
static const struct stranger numbers[] = {
    {"0", KIND_NONE, NULL},
    {"1", KIND_NONE, (void *)(intptr_t)1},
    {"0xfff", KIND_NONE, (void *)(intptr_t)0xfff},
    {"-1", KIND_NONE, (void *)(intptr_t)-1},
    {"INT_MIN", KIND_NONE, (void *)(intptr_t)INT32_MIN},
};

static const int classes[KINDS] = {
    [KIND_COMM] = MPI_ERR_COMM,
    [KIND_DATATYPE] = MPI_ERR_TYPE,
    [KIND_OP] = MPI_ERR_OP,
    [KIND_GROUP] = MPI_ERR_GROUP,
    [KIND_ERRHANDLER] = MPI_ERR_ERRHANDLER,
    [KIND_INFO] = MPI_ERR_INFO,
    [KIND_SESSION] = MPI_ERR_SESSION,
    [KIND_MESSAGE] = MPI_ERR_REQUEST,
    [KIND_REQUEST] = MPI_ERR_REQUEST,
    [KIND_FILE] = MPI_ERR_FILE,
    [KIND_WIN] = MPI_ERR_WIN,
};

/* Right handles, for the places that are not tried. */
static void *right[KINDS] = {
    [KIND_DATATYPE] = (void *)MPI_INT,
    [KIND_OP] = (void *)MPI_SUM,
    [KIND_ERRHANDLER] = (void *)MPI_ERRORS_RETURN,
    [KIND_INFO] = (void *)MPI_INFO_NULL,
    [KIND_MESSAGE] = (void *)MPI_MESSAGE_NO_PROC,
    [KIND_REQUEST] = (void *)MPI_REQUEST_NULL,
};

/* Is this the null handle of a kind that has to be a real one? */
static bool is_refused_null(const struct function *f, enum kind kind,
                            const struct stranger *s)
{
    const struct stranger nulls[] = {
        {"", KIND_COMM, (void *)MPI_COMM_NULL},
        {"", KIND_DATATYPE, (void *)MPI_DATATYPE_NULL},
        {"", KIND_OP, (void *)MPI_OP_NULL},
        {"", KIND_GROUP, (void *)MPI_GROUP_NULL},
        {"", KIND_ERRHANDLER, (void *)MPI_ERRHANDLER_NULL},
        {"", KIND_SESSION, (void *)MPI_SESSION_NULL},
        {"", KIND_FILE, (void *)MPI_FILE_NULL},
        {"", KIND_WIN, (void *)MPI_WIN_NULL},
    };

    for (size_t i = 0; i < COUNT(nulls); i++)
        if (nulls[i].kind == kind && nulls[i].value == s->value)
            return !f->takes_null;
    return false;
}

static void try_one(const struct function *f, int place,
                    const struct stranger *s)
{
    enum kind kind = f->kinds[place];
    void *given[HANDLES_MAX];
    int class = -1;

    if (s->kind == kind && !is_refused_null(f, kind, s))
        return;
    for (int i = 0; i < f->count; i++)
        given[i] = right[f->kinds[i]];
    given[place] = s->value;
    MPI_Error_class(f->call(given), &class);
    if (class == classes[kind])
        return;
    if (expect_failures++ < FAILURES_MAX)
        fprintf(stderr, "%s: handle %d is %s: class %d, not %d\n", f->name,
                place + 1, s->name, class, classes[kind]);
}

static void try_function(const struct function *f)
{
    for (int place = 0; place < f->count; place++) {
        for (size_t i = 0; i < COUNT(handles); i++)
            try_one(f, place, &handles[i]);
        for (size_t i = 0; i < COUNT(numbers); i++)
            try_one(f, place, &numbers[i]);
    }
}

int main(int argc, char **argv)
{
    const int size = 1;
    const int is_periodic = 1;
    MPI_Session session;
    MPI_Group group;
    MPI_Comm ring; /* for the collectives of neighbours, too */
    MPI_File file;
    MPI_Win win;
    char path[] = "/tmp/chempi-strangers-XXXXXX";

    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
    MPI_Cart_create(MPI_COMM_SELF, 1, &size, &is_periodic, 0, &ring);
    MPI_Comm_set_errhandler(ring, MPI_ERRORS_RETURN);
    MPI_Comm_group(ring, &group);
    (void)close(mkstemp(path));
    EXPECT(MPI_File_open(MPI_COMM_SELF, path,
                         MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
                         MPI_INFO_NULL, &file) == MPI_SUCCESS);
    EXPECT(MPI_Win_create(scratch_bytes, SCRATCH_BYTES, 1, MPI_INFO_NULL, ring,
                          &win) == MPI_SUCCESS);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Win_lock_all(0, win);
    right[KIND_WIN] = (void *)win;
    right[KIND_FILE] = (void *)file;
    right[KIND_GROUP] = (void *)group;
    right[KIND_SESSION] = (void *)session;
    right[KIND_COMM] = (void *)ring;
    for (size_t i = 0; i < COUNT(functions); i++)
        try_function(&functions[i]);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    MPI_File_close(&file);
    MPI_Group_free(&group);
    MPI_Comm_free(&ring);
    MPI_Session_finalize(&session);
    MPI_Finalize();
    if (expect_failures)
        fprintf(stderr, "%d wrong answers\n", expect_failures);
    return expect_failures != 0;
}
