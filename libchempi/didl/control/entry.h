/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ways to be started, as one table: chempi's own supervisor, PMIx, PMI-2,
 * PMI-1, and alone. daemon.c takes the first whose marks stand in the
 * environment, and asks only it from then on.
 *
 *   -   a member's state is its own; there is one process, and one way
 *   -   nothing blocks but open(), begin(), end() and abort(), and get() of
 *       launchers whose answer lies at the same node; all of them have limits
 *   Y3  a process that finds marks of a launcher which it cannot speak with
 *       is refused: it never becomes one of many worlds of one
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_ENTRY_H
#define CHEMPI_LIBCHEMPI_DIDL_ENTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/control/client.h"
#include "common/control/dynamic.h"

struct chempi_entry;

/* All mandatory; a member that lacks something points at the stub of its
 * name, chempi_entry_no_*. Return 0 or -errno where nothing else is said. One
 * thread at a time, but for abort(). */
struct chempi_entry_ops {
    /* Connect, and learn who and where this process is; *job stays the
     * member's until close(). On failure nothing is left. */
    int (*open)(const struct chempi_entry *entry, const struct chempi_job **job,
                struct chempi_err *err);
    void (*close)(void);

    /* To be waited on for reading, -1: none. */
    int (*fd)(void);
    /* Will the next answer come on that descriptor only, so that a sleep on
     * the wake word would miss it? */
    bool (*needs_fd)(void);
    /* When is there something for progress() that nothing announces? In so
     * many ms, -1: never. */
    int (*due_ms)(void);

    /* Exchange of business cards; see chempi_client_put() and get(). */
    int (*put)(const char *key, const void *value, size_t len);
    int (*get)(uint32_t rank, const char *key);
    /* Enter fence number *fence; progress() tells when all have. */
    int (*fence)(uint64_t *fence);
    /* Deliver what has come: the number of notices or, with words, -EPIPE when
     * the launcher is lost. */
    int (*progress)(const struct chempi_client_events *events, void *arg,
                    struct chempi_err *err);
    /* Is it certain that progress() would find nothing to do? */
    bool (*is_quiet)(void);

    /* The library is in use from now on, with all cards put; and is not any
     * more, perhaps for good (MPI_Finalize). In turns. begin() has words, and
     * returns 1 if the launcher may not have heard it yet. */
    int (*begin)(struct chempi_err *err);
    int (*end)(bool is_for_good);
    /* End all processes of the job. 0: the launcher has heard, and tells the
     * user why. */
    int (*abort)(int exit_code, const char *text);

    /* Ask the root of the job; see chempi_client_ask_root(). progress() tells
     * the answer. */
    int (*ask_root)(enum chempi_root_request what, const void *blob, size_t len,
                    uint32_t *serial);

    /* For what only a supervisor of ours can use; NULL: there is none. */
    struct chempi_client *(*client)(void);
};

struct chempi_store_ops;

struct chempi_entry {
    const char *name; /* as in CHEMPI_ENTRY */
    const char *text; /* "PMI-1, as mpiexec.hydra speaks it" */
    /* Do its marks stand in the environment? */
    bool (*detects)(void);
    const struct chempi_entry_ops *ops;
    const struct chempi_store_ops *store; /* of a guest (guest.h) */
    /* begin() has handed out all cards, so that MPI_Init need not. */
    bool begins_fenced;
    /* Who ends badly after end() is taken for a good end. */
    bool is_free_after_end;
};

/* The way that CHEMPI_ENTRY names, or the first that is detected. NULL with
 * words: Y3, or CHEMPI_ENTRY names none. */
const struct chempi_entry *chempi_entry_find(struct chempi_err *err);

/* entry_stubs.c */
bool chempi_entry_no_question(void);
int chempi_entry_no_due(void);
struct chempi_client *chempi_entry_no_client(void);
/* -EOPNOTSUPP */
int chempi_entry_no_root(enum chempi_root_request what, const void *blob,
                         size_t len, uint32_t *serial);

/* entry_supervisor.c */
extern const struct chempi_entry_ops chempi_entry_supervisor;
/* entry_alone.c */
extern const struct chempi_entry_ops chempi_entry_alone;

#endif
