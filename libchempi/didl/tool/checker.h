/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The door for libchempi-check (doc/checking.md): what a checker of programs
 * needs of the library and MPI does not say. The library shows no name but
 * MPI's, so it looks for the checker and hands the table over.
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_CHECKER_H
#define CHEMPI_LIBCHEMPI_DIDL_CHECKER_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHEMPI_CHECKER_VERSION 6

#define CHEMPI_CHECKER_TEXT 256 /* bytes of a place */

/* A type signature; two of the same length match when the hashes are equal or
 * one is open. */
struct chempi_checker_signature {
    uint64_t hash;
    uint64_t bytes;
    uint64_t kind; /* 0: basic types of several kinds */
    uint64_t is_open;
};

struct chempi_checker_door {
    uint32_t version; /* CHEMPI_CHECKER_VERSION */
    /* That of count elements; false: the handle is none. */
    bool (*signature)(MPI_Datatype type, MPI_Count count,
                      struct chempi_checker_signature *out);
    /* Where count elements begin and how many bytes they are; false: they are
     * not in one piece, or nothing. */
    bool (*piece)(MPI_Datatype type, MPI_Count count, MPI_Count *start,
                  MPI_Count *bytes);
    /* "MPI_INT" for a kind. */
    const char *(*kind_name)(uint64_t kind);
    /* From now on sends tell of their types, and receives compare. */
    void (*watch_signatures)(void);
    /* Who knows where in the source this thread's call is, and whether the
     * program goes on (call_site.h). */
    void (*set_place)(bool (*find)(const char **call, char *place, size_t len),
                      uint64_t (*moves)(void), uint16_t (*site)(void),
                      void (*words)(uint16_t site, char *text, size_t len));
    /* "it was sent by MPI_Send at ring.c:12", as its sender says, or why it
     * does not say so; false: it does not know (send_site.h). */
    bool (*origin)(MPI_Message message, char text[CHEMPI_CHECKER_TEXT]);
    /* Take the supervisor's notices, such as the question where this process
     * waits: of whoever tests now and then, and sleeps in between. */
    void (*listen)(void);
    /* Operations on this communicator are the checker's, and not named to
     * whoever asks where this process waits. */
    void (*hide)(MPI_Comm comm);
    /* MPI_Finalize's first step: delete the attributes of MPI_COMM_SELF, whose
     * functions may free what the program still has. */
    void (*end_self)(void);
};

/* The checker's function of this name is called once, at the library's start.
 */
#define CHEMPI_CHECKER_SYMBOL "chempi_checker_attach"
typedef void chempi_checker_attach_fn(const struct chempi_checker_door *door);

/* For the library's start: hand the table to a checker that is loaded. */
void chempi_tool_attach_checker(void);

#endif
