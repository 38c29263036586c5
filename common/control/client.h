/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank's side of the permanent connection to its node's supervisor: what
 * the job looks like, the key-value store, fences, notices. Used by the
 * library's didl/daemon and by chempi-gateway; no MPI here.
 *
 * The rank finds the connection as an inherited stream socket whose number
 * stands in the environment variable CHEMPI_CONTROL_FD, so no stranger can
 * pose as a rank. The supervisor's messages are parsed with bounds; a
 * malformed one is a lost supervisor.
 *
 * Threads: a client is used by one thread at a time (the caller locks).
 * Blocking: only open() and flush() may block, with the stated limit.
 */
#ifndef CHEMPI_COMMON_CONTROL_CLIENT_H
#define CHEMPI_COMMON_CONTROL_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/control/wait_depth.h"

#define CHEMPI_CONTROL_ENV "CHEMPI_CONTROL_FD"
/* Processes of the job on this host, on all of its nodes; and, where the
 * launcher has bound the rank, the processors that the job may use here and,
 * if it has not been asked to, those of the rank (lists as of
 * common/host/cpus.h). */
#define CHEMPI_HOST_SIZE_ENV "CHEMPI_HOST_SIZE"
#define CHEMPI_CPUS_ENV "CHEMPI_CPUS"
#define CHEMPI_HOST_CPUS_ENV "CHEMPI_HOST_CPUS"
/* What the launcher was asked for on behalf of the rank's program: number of
 * ranks, which smaller ones would do, error handler (in small letters), kinds
 * of memory. All but the first are set only if they were. */
#define CHEMPI_MAXPROCS_ENV "CHEMPI_MAXPROCS"
#define CHEMPI_COUNT_RANGE_ENV "CHEMPI_SOFT"
#define CHEMPI_ERRHANDLER_ENV "CHEMPI_INITIAL_ERRHANDLER"
#define CHEMPI_KINDS_ENV "CHEMPI_MEMORY_ALLOC_KINDS"
#define CHEMPI_JOB_ID_MAX 64    /* bytes with the terminating zero */
#define CHEMPI_NODE_NAME_MAX 64 /* bytes with the terminating zero */
#define CHEMPI_JOB_SECRET_BYTES 32
#define CHEMPI_KVS_KEY_MAX 64     /* bytes with the terminating zero */
#define CHEMPI_KVS_VALUE_MAX 4096 /* bytes */
#define CHEMPI_HERE_MAX 480       /* bytes with the terminating zero */
#define CHEMPI_HERE_SITE_MAX 800  /* the same */
#define CHEMPI_HERE_CALLS_MAX 8u  /* lines of it */
#define CHEMPI_HERE_FOR_MAX 4u    /* ranks that one waits for */

/* What a rank shall report. */
#define CHEMPI_STATS_TRAFFIC 1u
#define CHEMPI_STATS_ROUTES 2u
/* The class of a route whose only hop is itself (chempid/stats/trace.h); those
 * of messages through gateways are lower. */
#define CHEMPI_STATS_CLASS_DIRECT 256u

/* Flags of WELCOME. */
#define CHEMPI_JOB_SECURE 1u
#define CHEMPI_JOB_SURVIVES 2u

/* What a rank knows of its job; owned by the client, constant while open. */
struct chempi_job {
    char id[CHEMPI_JOB_ID_MAX];
    uint32_t rank; /* in MPI_COMM_WORLD; a gateway's: size and up */
    uint32_t size;
    uint32_t gateways;   /* processes that forward, numbered behind the ranks */
    uint32_t node;       /* index of this rank's node in node_names */
    uint32_t node_count; /* nodes that have ranks or gateways of the job */
    uint32_t local_rank; /* among the processes of this node, by rank */
    uint32_t local_size;
    const uint32_t *node_of_rank;       /* [size + gateways] */
    const uint32_t *local_rank_of_rank; /* [size + gateways] */
    const char *const *node_names;      /* [node_count]; names in the table */
    uint8_t secret[CHEMPI_JOB_SECRET_BYTES];
    bool survives;  /* ranks that die do not end it */
    bool is_secure; /* ranks seal what they send through gateways with */
    uint8_t rank_key[CHEMPI_JOB_SECRET_BYTES]; /* this; a gateway's: zeros */
    uint32_t app_num;                          /* MPI_APPNUM */
    uint32_t universe_size;                    /* MPI_UNIVERSE_SIZE */
    uint32_t want_stats;   /* CHEMPI_STATS_*: what to report at the end */
    int region_fd;         /* memory file shared by this node's ranks; the
                              header and wake lines are set up and reserved */
    int table_fd;          /* sealed connection table; -1: none */
    const int *wake_fds;   /* [local_size] eventfds, inherited, nonblocking;
                              -1: none, where no device sleeps on them */
    uint64_t memory_share; /* bytes that this rank may register before it has
                              asked; UINT64_MAX: nobody divides them */
    const char *parent; /* the port that this world connects to in MPI_Init; "":
                           nobody has spawned it */
    uint32_t world;     /* its number under the first root, from 0, for words */
    bool has_root;      /* there is one that answers (dynamic.h) */
};

struct chempi_client;
struct chempi_reply;

/* Notices, delivered only from chempi_client_progress(). All mandatory. */
struct chempi_client_events {
    /* Answer to chempi_client_get(); value is valid during the call. */
    void (*got)(void *arg, uint32_t rank, const char *key, const void *value,
                size_t len);
    /* All ranks have entered fence number `fence`. */
    void (*fenced)(void *arg, uint64_t fence);
    /* A rank is gone (died or its node was lost). The job is about to be
     * ended by the supervisor; text is the sentence for the user. Or a gateway
     * is (rank >= size): the job goes on if it can. */
    void (*rank_lost)(void *arg, uint32_t rank, const char *text);
    /* This rank's share of registrable memory is now so many bytes. What
     * is held beyond should be given back in deadline_ms (0: nothing is due);
     * answered by chempi_client_memory(). */
    void (*budget)(void *arg, uint64_t bytes, uint32_t deadline_ms);
    /* A gateway shall be used no more where there is another way, or
     * (is_drained false) as before. */
    void (*drained)(void *arg, uint32_t gateway, bool is_drained);
    /* The job ends: chempi_client_report() is wanted now. */
    void (*tell)(void *arg);
    /* chempi_client_here() is wanted, if this process is in an MPI call;
     * with no more than what depth says, for that may be dear to find. */
    void (*where)(void *arg, enum chempi_wait_depth depth);
    /* Answer to chempi_client_ask_root() (dynamic.h). */
    void (*root_replied)(void *arg, const struct chempi_reply *reply);
};

/*
 * Take over the inherited connection, say hello and wait (at most 60 s) for
 * the description of the job. Marks all descriptors close-on-exec and removes
 * CHEMPI_CONTROL_FD from the environment. Returns 0; -ENOENT when there is no
 * launcher (a world of one); another -errno with words in *err.
 */
int chempi_client_open(struct chempi_client **out, struct chempi_err *err);

const struct chempi_job *chempi_client_job(const struct chempi_client *client);

/* Descriptor to wait on for reading (for the caller's epoll set). The
 * supervisor also rouses the rank's wake word after each message it sends. */
int chempi_client_fd(const struct chempi_client *client);

/* Publish key = value of this rank; visible to all after the next fence, and
 * to chempi_client_get() as soon as it arrives. Queues; never blocks. */
int chempi_client_put(struct chempi_client *client, const char *key,
                      const void *value, size_t len);

/* Ask for another rank's (or gateway's) value; events->got follows once it is
 * published (the question waits for a put). Never blocks. */
int chempi_client_get(struct chempi_client *client, uint32_t rank,
                      const char *key);

/* Enter the next fence; *fence is its number. events->fenced follows when
 * all ranks of the job have entered it. Never blocks. */
int chempi_client_fence(struct chempi_client *client, uint64_t *fence);

/* Read and dispatch what has arrived, write what is queued. Never blocks.
 * Returns the number of notices delivered, or -EPIPE when the supervisor is
 * lost. */
int chempi_client_progress(struct chempi_client *client,
                           const struct chempi_client_events *events, void *arg,
                           struct chempi_err *err);

/* Is there something left that the supervisor's socket has not taken yet? */
bool chempi_client_has_output(const struct chempi_client *client);

/* Had nothing arrived when progress() was called last, and is all written?
 * Then it may be left out until the supervisor has said something more, which
 * it counts (wake.h, W8). */
bool chempi_client_is_quiet(const struct chempi_client *client);

/* Where a process waits (CHEMPI_HERE_WAITS: is_waiting) or which call it was
 * in. */
struct chempi_client_wait {
    bool is_waiting;
    const char *text; /* cut at CHEMPI_HERE_MAX */
    const char *site; /* the program's calls that have led there, a line each,
                         the innermost first; "": not known */
    uint64_t moves;   /* 0: it may go on by itself; else a number that changes
                         when it has gone on (doc/checking.md) */
    uint32_t count;   /* at most CHEMPI_HERE_FOR_MAX */
    uint32_t ranks[CHEMPI_HERE_FOR_MAX]; /* in the world, all waited for */
    bool has_more; /* it is said again, with the site, which takes time */
};

/* Say so. Never blocks. 0 or -errno. */
int chempi_client_here(struct chempi_client *client,
                       const struct chempi_client_wait *wait);

/* Ask for the end of the whole job with this exit code; text says why. The
 * supervisor then kills the ranks. Blocks at most 5 s to get it written. */
int chempi_client_abort(struct chempi_client *client, int exit_code,
                        const char *text);

/* Say that MPI is initialized / properly finalized here: a rank that ends
 * between the two, even with exit code 0, ends the job. In turns, as often
 * as needed: when the first one returns -errno, nothing has been said. */
int chempi_client_set_initialized(struct chempi_client *client);
int chempi_client_set_finalized(struct chempi_client *client);

/* This process needs all ranks of the job: one that ends without initializing
 * shall end the job. 0 or -errno. */
int chempi_client_need_world(struct chempi_client *client);

/* This process has finalized what needed all ranks, and goes on with sessions:
 * those are what is missing if it ends now. 0 or -errno. */
int chempi_client_leave_world(struct chempi_client *client);

/* This process has lost a gateway, and with it the only way to others: the
 * launcher finds out all that is cut off. chempi_client_abort() follows. 0 or
 * -errno. */
int chempi_client_cut(struct chempi_client *client, uint32_t gateway,
                      const char *why);

/* Does this process want to act on the loss of another one before the job
 * ends? At first not. 0 or -errno. */
int chempi_client_care(struct chempi_client *client, bool cares);

struct chempi_client_memory {
    uint64_t held;     /* bytes that still count as this rank's; >= used */
    uint64_t used;     /* bytes that are registered */
    uint64_t wanted;   /* bytes it would use at most */
    uint64_t needed;   /* of these, bytes without which it cannot go on */
    uint64_t degraded; /* transfers that took a slower way for lack of them */
};

/* Say how much memory is registered here. Refers to the last share that was
 * delivered. Nothing is sent when nobody divides. */
int chempi_client_memory(struct chempi_client *client,
                         const struct chempi_client_memory *memory);

/* Hand in lines for chempirun --stats and --trace-routes (one record a line,
 * see chempid/stats/traffic.h and trace.h) on what was since the last report. A
 * process of which this is wanted (want_stats) calls it before it finalizes or
 * aborts, and when it is asked to tell, also with nothing to say: else its
 * figures are said to be missing. -EMSGSIZE: a line is too long. */
int chempi_client_report(struct chempi_client *client, const void *text,
                         size_t len);

/* Write all that is queued; blocks at most timeout_ms. */
int chempi_client_flush(struct chempi_client *client, int timeout_ms);

/* Accepts NULL. */
void chempi_client_close(struct chempi_client *client);

#endif
