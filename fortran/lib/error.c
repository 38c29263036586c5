/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Errors of the Fortran library, raised by what the ABI offers: a code with a
 * string of its own, handed to the error handler of the object.
 *
 *   E1  a sentence has one code; codes are never removed, so the table of
 *       them is bounded, and beyond it the class itself is raised
 */
#include "fortran/lib/error.h"

#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "fortran/lib/binding.h"

#define MAX_CODES 64

static struct {
    pthread_mutex_t lock;
    int used;
    struct {
        int code;
        char text[MPI_MAX_ERROR_STRING];
    } row[MAX_CODES];
} known = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local bool hushed;

static int find_code_locked(int errclass, const char *text)
{
    int code = errclass;

    for (int i = 0; i < known.used; i++)
        if (strcmp(known.row[i].text, text) == 0)
            return known.row[i].code;
    if (known.used == MAX_CODES ||
        PMPI_Add_error_code(errclass, &code) != MPI_SUCCESS ||
        PMPI_Add_error_string(code, text) != MPI_SUCCESS)
        return errclass;
    (void)snprintf(known.row[known.used].text, MPI_MAX_ERROR_STRING, "%s",
                   text);
    known.row[known.used++].code = code;
    return code;
}

/* Who hears of it: MPI_COMM_SELF, when the handle names nothing. */
static enum chempi_blame blamed(const struct chempi_caller *caller, int handle)
{
    bool is_there = true;

    if (caller->blame == CHEMPI_BLAME_COMM)
        is_there = chempi_is_object(chempi_in_comm(handle)) &&
                   chempi_in_comm(handle) != MPI_COMM_NULL;
    if (caller->blame == CHEMPI_BLAME_WIN)
        is_there = chempi_is_object(chempi_in_win(handle)) &&
                   chempi_in_win(handle) != MPI_WIN_NULL;
    if (caller->blame == CHEMPI_BLAME_FILE && caller->handle)
        is_there = chempi_is_object(chempi_in_file(handle));
    if (caller->blame == CHEMPI_BLAME_SESSION)
        is_there = chempi_is_object(chempi_in_session(handle)) &&
                   chempi_in_session(handle) != MPI_SESSION_NULL;
    return is_there ? caller->blame : CHEMPI_BLAME_NOBODY;
}

static void call_handler(const struct chempi_caller *caller, int code)
{
    int handle = caller->handle ? *caller->handle : 0;

    switch (blamed(caller, handle)) {
    case CHEMPI_BLAME_COMM:
        (void)PMPI_Comm_call_errhandler(chempi_in_comm(handle), code);
        break;
    case CHEMPI_BLAME_WIN:
        (void)PMPI_Win_call_errhandler(chempi_in_win(handle), code);
        break;
    case CHEMPI_BLAME_FILE:
        (void)PMPI_File_call_errhandler(
            caller->handle ? chempi_in_file(handle) : MPI_FILE_NULL, code);
        break;
    case CHEMPI_BLAME_SESSION:
        (void)PMPI_Session_call_errhandler(chempi_in_session(handle), code);
        break;
    case CHEMPI_BLAME_NOBODY:
    default:
        (void)PMPI_Comm_call_errhandler(MPI_COMM_SELF, code);
        break;
    }
}

int chempi_error_raise(const struct chempi_caller *caller, int errclass,
                       const char *sentence)
{
    char text[MPI_MAX_ERROR_STRING];
    int code;

    (void)snprintf(text, sizeof(text), "%s: %s", caller->name, sentence);
    (void)pthread_mutex_lock(&known.lock);
    code = find_code_locked(errclass, text);
    (void)pthread_mutex_unlock(&known.lock);
    call_handler(caller, code);
    return code;
}

void chempi_error_hush(bool is_hushed)
{
    hushed = is_hushed;
}

bool chempi_error_is_hushed(void)
{
    return hushed;
}
