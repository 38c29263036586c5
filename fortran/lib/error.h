/* SPDX-License-Identifier: BSD-3-Clause */
/* Errors that the Fortran library itself finds. */
#ifndef CHEMPI_FORTRAN_ERROR_H
#define CHEMPI_FORTRAN_ERROR_H

#include <mpi.h>
#include <stdbool.h>

/* The call that finds an error, and whose error handler hears of it. */
struct chempi_caller {
    const char *name;
    enum chempi_blame {
        CHEMPI_BLAME_NOBODY, /* MPI_COMM_SELF's handler */
        CHEMPI_BLAME_COMM,
        CHEMPI_BLAME_WIN,
        CHEMPI_BLAME_FILE,
        CHEMPI_BLAME_SESSION
    } blame;
    const int *handle; /* its Fortran handle; unused for nobody, and NULL for
                          a file that is none: MPI_FILE_NULL's handler */
};

/*
 * Raise an error of a class with a sentence: "CALL: SENTENCE" becomes the
 * error string of a code made for it, and the handler of the blamed object
 * is called. Returns the code, or the class when no code could be made.
 * Thread-safe.
 */
int chempi_error_raise(const struct chempi_caller *caller, int errclass,
                       const char *sentence);

/*
 * For collective calls on files, whose errors C tells all members: after an
 * error was raised, C is called all the same, with an argument that it refuses,
 * so that nobody waits. Around that call the thread is hushed: procedures that
 * handle errors of files do not hear of it a second time. (Handlers made in C
 * do.) The file's handler stays, since other threads may need it meanwhile.
 */
void chempi_error_hush(bool is_hushed);
bool chempi_error_is_hushed(void);

#endif
