/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Supervisors on other hosts without daemons there. The launcher runs, per
 * host, a command (ssh, srun) that starts `chempirun --supervise` there, and
 * speaks with it over that command's standard input and output: the command
 * proves who is at the other end. Commands encrypt or not, so all frames are
 * sealed (common/auth/seal.h), with a fresh key for each host, which is the
 * first that is said, and fresh pairs of both sides. The job's secret travels
 * in the first frame, never on a command line.
 *
 *   E1  at the other end no byte is written before the mark; what a shell
 *       there prints before it is shown to the user; after the mark there is
 *       nothing but the handshake and records
 *   E2  at most CHEMPI_OUTPOST_CALLS commands have not got an answer yet
 *   E3  an outpost that loses its standard input ends all that it has started
 */
#ifndef CHEMPI_CHEMPID_OUTPOST_H
#define CHEMPI_CHEMPID_OUTPOST_H

#include <stdint.h>
#include <sys/types.h>

#include "common/auth/noise.h"
#include "common/base/err.h"

#define CHEMPI_OUTPOST_OPTION "--supervise"
#define CHEMPI_OUTPOST_CALLS                                                   \
    10u /* servers refuse more (MaxStartups of sshd)                           \
         */
#define CHEMPI_OUTPOST_LIMIT_MS 60000u

struct chempi_outpost {
    const char *host; /* the caller's */
    pid_t pid;        /* of the command; 0: not started, or reaped */
    int fd;           /* its standard input and output; -1: none */
    struct chempi_noise_cipher tx; /* of what is said there */
    struct chempi_noise_cipher rx;
};

/* So many, for chempi_outpost_call(); NULL: no memory. They have keys. */
struct chempi_outpost *chempi_outpost_create(uint32_t count);
void chempi_outpost_destroy(struct chempi_outpost *posts, uint32_t count);

/*
 * Call all hosts: the words of `launcher` (separated by blanks), the host, and
 * what shall be run there. Returns when all have answered and shaken hands.
 * Blocks, each for CHEMPI_OUTPOST_LIMIT_MS at most. 0, or -errno with words
 * that name the host; then none is left.
 */
int chempi_outpost_call(struct chempi_outpost *posts, uint32_t count,
                        const char *launcher, struct chempi_err *err);

/* Close what is open and wait for the commands' ends, which are near; those
 * that do not end are ended. */
void chempi_outpost_leave(struct chempi_outpost *posts, uint32_t count);

/* How the command ended, if it has: ": the command ended with ..." or "". */
void chempi_outpost_fate(struct chempi_outpost *post, char *text, size_t size);

/* At the other end: serve one launch. Returns the exit status. */
int chempi_outpost_serve(void);

#endif
