/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Supervisors on other hosts without daemons there. The launcher runs, per
 * host, a command (ssh, srun) that starts `chempirun --supervise` there (a
 * *remote*), and speaks with it over that command's standard input and output:
 * the command proves who is at the other end. Commands encrypt or not, so all
 * frames are sealed (common/auth/seal.h), with a fresh key for each host, which
 * is the first that is said, and fresh pairs of both sides. The job's secret
 * travels in the first frame, never on a command line.
 *
 * Many hosts are called as a tree: a remote is told of others (CALL), calls
 * them by the same words, and tells whom it has not reached (CALLED); those
 * the launcher calls itself. All of that comes before the launch, which then
 * goes the ways that have been found. remote_tree.c has what launcher and
 * remotes do alike, remote_inner.c a remote that has others below it.
 *
 *   -   at the other end no byte is written before the mark; what a shell
 *       there prints before it is shown to the user; after the mark there is
 *       nothing but the handshake and records
 *   E2  at most CHEMPI_REMOTE_CALLS commands of one caller have not got an
 *       answer yet
 *   E3  a remote that loses its standard input ends all that it has started
 *   -   whoever is below a host that is lost before the launch is called anew
 */
#ifndef CHEMPI_CHEMPID_REMOTE_H
#define CHEMPI_CHEMPID_REMOTE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/base/err.h"
#include "common/control/channel.h"

#define CHEMPI_REMOTE_OPTION "--supervise"
#define CHEMPI_REMOTE_CALLS                                                    \
    10u /* servers refuse more (MaxStartups of sshd)                           \
         */
#define CHEMPI_REMOTE_LIMIT_MS 60000u
#define CHEMPI_REMOTE_WHY_MAX 256u
#define CHEMPI_REMOTE_NONE UINT32_MAX

struct chempi_remote {
    const char *host; /* the caller's */
    uint32_t node;    /* its number in the job */
    uint32_t via;     /* the remote, by its place in the array, that we speak
                         with to reach it: itself, or the one that has called
                         it; _NONE: it has not been reached */
    pid_t pid;        /* of the command; 0: not started, or reaped */
    int err_fd;       /* reads the command's standard error; -1: it has ours */
    struct chempi_channel ch; /* its standard input and output; fd -1: none */
    char why[CHEMPI_REMOTE_WHY_MAX]; /* it has not been reached */
};

/* How hosts are called. */
struct chempi_remote_way {
    const char *launcher; /* words, separated by blanks */
    uint32_t limit_ms;    /* for each host to answer */
    uint32_t group_ms;    /* the same for those that it shall call */
    bool is_trial; /* others call whom we do not reach: no failure ends it, and
                      what commands complain of goes into `why` */
};

/* So many, for chempi_remote_call(); NULL: no memory. Node and place are the
 * same at first. */
struct chempi_remote *chempi_remote_create(uint32_t count);
void chempi_remote_destroy(struct chempi_remote *remotes, uint32_t count);

/*
 * Call the hosts at these places: the words of the launcher, the host, and
 * what shall be run there. Returns when all have answered and shaken hands.
 * Blocks, each for the way's limit at most. 0, or -errno with words that name
 * the host; then none of all is left. In a trial only -ENOMEM and the like.
 */
int chempi_remote_call(struct chempi_remote *remotes, uint32_t count,
                       const uint32_t *places, uint32_t place_count,
                       const struct chempi_remote_way *way,
                       struct chempi_err *err);

/* Close what is open and wait for the commands' ends, which are near; those
 * that do not end are ended. */
void chempi_remote_leave(struct chempi_remote *remotes, uint32_t count);

/* How the command ended, if it has: ": the command ended with ..." or "".
 * Returns its exit code; -1: it has none. */
int chempi_remote_fate(struct chempi_remote *remote, char *text, size_t size);

/* At the other end: serve one launch. Returns the exit status. */
int chempi_remote_serve(void);

#endif
