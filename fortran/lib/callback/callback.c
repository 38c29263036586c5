/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fortran procedures that MPI calls.
 *
 *   P1  pool[kind].procedure[i] is set once, for i < used, before anybody can
 *       call trampoline i; so reading it needs no lock
 *   P2  `lock` guards the search and `used`
 */
#include "fortran/lib/callback/callback.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "fortran/lib/binding.h"

static struct {
    pthread_mutex_t lock;
    struct {
        int used;
        chempi_procedure *procedure[CHEMPI_CALLBACK_POOL];
    } pool[CHEMPI_CALLBACK_KINDS];
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int find_locked(enum chempi_callback_kind kind,
                       chempi_procedure *procedure)
{
    int used = all.pool[kind].used;

    for (int i = 0; i < used; i++)
        if (all.pool[kind].procedure[i] == procedure)
            return i;
    if (used == CHEMPI_CALLBACK_POOL)
        return -1;
    all.pool[kind].procedure[used] = procedure;
    all.pool[kind].used++;
    return used;
}

int chempi_callback_find(enum chempi_callback_kind kind,
                         chempi_procedure *procedure,
                         const struct chempi_caller *caller, int *rc)
{
    char text[160];
    int index;

    (void)pthread_mutex_lock(&all.lock);
    index = find_locked(kind, procedure);
    (void)pthread_mutex_unlock(&all.lock);
    if (index >= 0)
        return index;
    (void)snprintf(text, sizeof(text),
                   "%d different Fortran procedures have been used for this "
                   "already, and there is no room for more; internal "
                   "procedures count each time",
                   CHEMPI_CALLBACK_POOL);
    *rc = chempi_error_raise(caller, MPI_ERR_OTHER, text);
    return -1;
}

/* ---- operations and error handlers ---- */

#define CALL(type, procedure, ...) ((type *)(procedure))(__VA_ARGS__)
#define OF(kind, index) (all.pool[kind].procedure[index])

typedef void op_procedure(void *in, void *inout, int *len, int *type);
typedef void op_c_procedure(void *in, void *inout, MPI_Count *len, int *type);
typedef void error_procedure(int *handle, int *code);

void chempi_callback_run_op(int index, void *in, void *inout, int *len,
                            MPI_Datatype *type)
{
    int t = chempi_out_type(*type);

    CALL(op_procedure, OF(CHEMPI_CALLBACK_OP, index), in, inout, len, &t);
}

void chempi_callback_run_op_c(int index, void *in, void *inout, MPI_Count *len,
                              MPI_Datatype *type)
{
    int t = chempi_out_type(*type);

    CALL(op_c_procedure, OF(CHEMPI_CALLBACK_OP_C, index), in, inout, len, &t);
}

void chempi_callback_run_comm(int index, MPI_Comm *comm, int *code)
{
    int handle = chempi_out_comm(*comm);

    CALL(error_procedure, OF(CHEMPI_CALLBACK_COMM, index), &handle, code);
}

void chempi_callback_run_win(int index, MPI_Win *win, int *code)
{
    int handle = chempi_out_win(*win);

    CALL(error_procedure, OF(CHEMPI_CALLBACK_WIN, index), &handle, code);
}

void chempi_callback_run_file(int index, MPI_File *file, int *code)
{
    int handle = chempi_out_file(*file);

    if (chempi_error_is_hushed())
        return;
    CALL(error_procedure, OF(CHEMPI_CALLBACK_FILE, index), &handle, code);
}

void chempi_callback_run_session(int index, MPI_Session *session, int *code)
{
    int handle = chempi_out_session(*session);

    CALL(error_procedure, OF(CHEMPI_CALLBACK_SESSION, index), &handle, code);
}

/* ---- generalized requests ---- */

struct chempi_grequest {
    chempi_procedure *query;
    chempi_procedure *release;
    chempi_procedure *cancel;
    MPI_Aint *extra_state;
};

typedef void query_procedure(MPI_Aint *state, MPI_Status *status, int *ierror);
typedef void release_procedure(MPI_Aint *state, int *ierror);
typedef void cancel_procedure(MPI_Aint *state, int *complete, int *ierror);

struct chempi_grequest *chempi_callback_grequest(chempi_procedure *query,
                                                 chempi_procedure *release,
                                                 chempi_procedure *cancel,
                                                 MPI_Aint *extra_state)
{
    struct chempi_grequest *g = malloc(sizeof(*g));

    if (g)
        *g = (struct chempi_grequest){query, release, cancel, extra_state};
    return g;
}

int chempi_callback_query(void *state, MPI_Status *status)
{
    struct chempi_grequest *g = state;
    int ierror = MPI_SUCCESS;

    CALL(query_procedure, g->query, g->extra_state, status, &ierror);
    return ierror;
}

int chempi_callback_release(void *state)
{
    struct chempi_grequest *g = state;
    int ierror = MPI_SUCCESS;

    CALL(release_procedure, g->release, g->extra_state, &ierror);
    free(g);
    return ierror;
}

int chempi_callback_cancel(void *state, int complete)
{
    struct chempi_grequest *g = state;
    int flag = chempi_out_logical(complete);
    int ierror = MPI_SUCCESS;

    CALL(cancel_procedure, g->cancel, g->extra_state, &flag, &ierror);
    return ierror;
}

/* ---- data representations ---- */

struct chempi_datarep {
    struct chempi_datarep *next; /* all of them, so that none looks lost */
    chempi_procedure *reader;
    chempi_procedure *writer;
    chempi_procedure *extent;
    MPI_Aint extra_state;
};

static struct chempi_datarep *datareps; /* guarded by all.lock */

typedef void conversion_procedure(void *userbuf, int *type, int *count,
                                  void *filebuf, MPI_Offset *position,
                                  MPI_Aint *state, int *ierror);
typedef void conversion_c_procedure(void *userbuf, int *type, MPI_Count *count,
                                    void *filebuf, MPI_Offset *position,
                                    MPI_Aint *state, int *ierror);
typedef void extent_procedure(int *type, MPI_Aint *extent, MPI_Aint *state,
                              int *ierror);

struct chempi_datarep *chempi_callback_datarep(chempi_procedure *reader,
                                               chempi_procedure *writer,
                                               chempi_procedure *extent,
                                               MPI_Aint extra_state)
{
    struct chempi_datarep *d = malloc(sizeof(*d));

    if (!d)
        return NULL;
    *d = (struct chempi_datarep){NULL, reader, writer, extent, extra_state};
    (void)pthread_mutex_lock(&all.lock);
    d->next = datareps;
    datareps = d;
    (void)pthread_mutex_unlock(&all.lock);
    return d;
}

#define CONVERT(name, member, type_of_procedure, count_type)                   \
    int chempi_callback_##name(void *userbuf, MPI_Datatype type,               \
                               count_type count, void *filebuf,                \
                               MPI_Offset position, void *state)               \
    {                                                                          \
        struct chempi_datarep *d = state;                                      \
        int t = chempi_out_type(type);                                         \
        int ierror = MPI_SUCCESS;                                              \
                                                                               \
        CALL(type_of_procedure, d->member, userbuf, &t, &count, filebuf,       \
             &position, &d->extra_state, &ierror);                             \
        return ierror;                                                         \
    }

CONVERT(read, reader, conversion_procedure, int)
CONVERT(write, writer, conversion_procedure, int)
CONVERT(read_c, reader, conversion_c_procedure, MPI_Count)
CONVERT(write_c, writer, conversion_c_procedure, MPI_Count)

int chempi_callback_extent(MPI_Datatype type, MPI_Aint *extent, void *state)
{
    struct chempi_datarep *d = state;
    int t = chempi_out_type(type);
    int ierror = MPI_SUCCESS;

    CALL(extent_procedure, d->extent, &t, extent, &d->extra_state, &ierror);
    return ierror;
}
