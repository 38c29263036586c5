/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a program's file says of itself: which interpreter it wants, which MPI
 * library it was linked with. Files are the user's and may hold anything: all
 * that is read of them is bounded, and what cannot be understood is not told.
 */
#ifndef CHEMPI_CHEMPID_PROGRAM_H
#define CHEMPI_CHEMPID_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

/* The file that execvp() would take: `name` if it has a slash, seen from the
 * directory `dir` (NULL: the working directory); else the first that can be
 * executed in the directories of `path`. False: there is none. */
bool chempi_program_find(const char *name, const char *dir, const char *path,
                         char *file, size_t size);

/* The interpreter of a script, or the loader of an ELF program. False: it
 * names none, or cannot be read. */
bool chempi_program_interpreter(const char *file, char *name, size_t size);

/* The MPI library that an ELF program of this machine needs, if it is none of
 * the standard's binary interface, such as "libmpi.so.40". False: there is
 * none, or nobody can tell. */
bool chempi_program_other_mpi(const char *file, char *library, size_t size);

#endif
