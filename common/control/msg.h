/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control messages: who sends which to whom, with which fields, and the
 * limits that every receiver enforces. A message is one frame (channel.h).
 * "node" and "rank" are indices in the job; str and blob as in wire.h.
 */
#ifndef CHEMPI_COMMON_CONTROL_MSG_H
#define CHEMPI_COMMON_CONTROL_MSG_H

#include <stdint.h>

#include "common/control/wait_depth.h"

#define CHEMPI_CONTROL_VERSION 19u
#define CHEMPI_NODE_ANY UINT32_MAX /* "all nodes", "no rank" */

/* Limits on what a peer can make us hold. */
#define CHEMPI_JOB_RANKS_MAX (1u << 20)
#define CHEMPI_JOB_NODES_MAX (1u << 16)
#define CHEMPI_TEXT_MAX 1024u              /* bytes of a sentence, with zero */
#define CHEMPI_REPORT_MAX (1u << 20)       /* bytes of a piece of a report */
#define CHEMPI_WAIT_SUMMARY_MAX (4u << 20) /* bytes of a node's PLACES */
#define CHEMPI_RANK_KEYS_MAX 1024u         /* keys one rank may publish */
#define CHEMPI_RANK_GETS_MAX (1u << 16)    /* questions open at one node */
#define CHEMPI_OUTPUT_CHUNK (64u << 10)    /* bytes of one output message */
#define CHEMPI_OUTPUT_WINDOW (256u << 10)  /* unacknowledged bytes per node */
#define CHEMPI_STDIN_WINDOW (64u << 10)    /* the same, standard input */
#define CHEMPI_RANK_IN_MAX (2u << 20)      /* payload: rank to supervisor */
#define CHEMPI_RANK_OUT_MAX (32u << 20)    /* payload: supervisor to rank */
#define CHEMPI_TREE_MAX (64u << 20)        /* payload: on the job's tree */
#define CHEMPI_MEMORY_BYTES 44u            /* payload of MEMORY */
#define CHEMPI_SHARE_BYTES 16u             /* payload of BUDGET */
#define CHEMPI_QUEUE_MAX (256u << 20)      /* queued towards one peer */
#define CHEMPI_QUEUE_JOB_MAX (128u << 20)  /* of one job, between daemons */

/* A key that a rank's supervisor publishes, without a value: the rank's process
 * has ended after FINAL, or become another program. */
#define CHEMPI_KEY_LEFT "left"

enum chempi_msg {
    /* rank -> supervisor */
    CHEMPI_MSG_HELLO = 1,   /* u32 version, u32 pid */
    CHEMPI_MSG_PUT = 2,     /* str key, blob value */
    CHEMPI_MSG_GET = 3,     /* u32 rank, str key */
    CHEMPI_MSG_FENCE = 4,   /* u64 number, from 1 */
    CHEMPI_MSG_INIT = 5,    /* - */
    CHEMPI_MSG_FINAL = 6,   /* - */
    CHEMPI_MSG_ABORT = 7,   /* u32 exit code, str text */
    CHEMPI_MSG_REPORT = 8,  /* u8 1: more follows, or 0; blob of whole lines */
    CHEMPI_MSG_WORLD = 13,  /* - ; it needs all ranks: MPI_Init */
    CHEMPI_MSG_UNWORLD = 9, /* - ; MPI_Finalize is done, sessions are open */
    CHEMPI_MSG_HERE = 10,   /* u8 enum chempi_here, str text of at most
                               CHEMPI_HERE_MAX bytes, str calls of the program
                               (CHEMPI_HERE_SITE_MAX) or "", u64 moves
                               (chempi_client_wait), count n up to
                               CHEMPI_HERE_FOR_MAX, n x u32 rank that it waits
                               for, each of them, u8 1: the same follows, with
                               the calls, or 0: answers WHERE */
    CHEMPI_MSG_CARE = 12,   /* u8 1: tell it of a lost process and give it time
                               to act before the job ends; 0: no more */
    CHEMPI_MSG_CUT = 15,    /* u32 gateway, str text: it is lost to this rank,
                               and with it the only way; ABORT follows */
    CHEMPI_MSG_MEMORY = 14, /* u32 serial of the last BUDGET, u64 held, u64
                               used, u64 wanted, u64 needed, u64 degraded:
                               registered memory in bytes, and transfers
                               (chempid/tree/nodes/budget.h) */

    /* supervisor -> rank */
    CHEMPI_MSG_WELCOME = 16, /* see chempi_client_open() */
    CHEMPI_MSG_GOT = 17,     /* u32 rank, str key, blob value */
    CHEMPI_MSG_FENCED = 18,  /* u64 number */
    CHEMPI_MSG_LOST = 19,    /* u32 rank or gateway, str text */
    CHEMPI_MSG_BUDGET = 20,  /* u64 bytes, u32 deadline_ms, u32 serial */
    CHEMPI_MSG_DRAINED = 21, /* u32 gateway: not to be used any more; u8 1, or 0
                                for: as before */
    CHEMPI_MSG_TELL = 22,    /* - ; REPORT at once: the job ends */
    CHEMPI_MSG_WHERE = 23,   /* u8 enum chempi_wait_depth: HERE, of who
                                is in an MPI call */
    CHEMPI_MSG_HOLD = 24,    /* - ; WELCOME comes when a debugger lets it */

    /* on the job's tree, towards the root (the launcher) */
    CHEMPI_MSG_STARTED = 32,   /* u32 nodes: their ranks run */
    CHEMPI_MSG_OUTPUT = 33,    /* u32 node, u32 rank, u8 1|2, blob */
    CHEMPI_MSG_EATEN = 34,     /* u32 node, u32 bytes of input used */
    CHEMPI_MSG_ENDED = 35,     /* a rank ended badly: u32 node, u32 rank,
                                  u32 pid, u8 how, u32 code, str program,
                                  str text */
    CHEMPI_MSG_NODE_LOST = 36, /* u32 node, str text */
    CHEMPI_MSG_ENTERED = 37,   /* u64 fence: entered by all below */
    CHEMPI_MSG_STATS = 38,     /* u32 node, blob text */
    CHEMPI_MSG_DONE = 39,      /* u32 nodes: all ranks there have ended */
    CHEMPI_MSG_GONE = 40,      /* u32 nodes: nothing is left there */
    CHEMPI_MSG_ORDERED = 41,   /* u32 node, str text: the job shall end */
    CHEMPI_MSG_ABSENT = 42,    /* u32 node, u32 rank: it has ended well, and
                                  without initializing; also away from the
                                  root: all shall know */
    CHEMPI_MSG_GATEWAY = 43,   /* u32 node, u32 process, u8 enum
                                  chempi_fall, u32 rank (the one that is cut
                                  off, else CHEMPI_NODE_ANY), str text */
    CHEMPI_MSG_PLACES = 44,    /* u32 node, n x (u32 rank, as HERE but for its
                                  last field): answers LOCATE */
    CHEMPI_MSG_SOUGHT = 45,    /* u32 node: the launcher shall say where the
                                  ranks wait */

    CHEMPI_MSG_PIDS = 46,  /* u32 node, count n, n x (u32 rank, u32 process
                              id): before STARTED */
    CHEMPI_MSG_TAKEN = 47, /* u32 node: other jobs hold more of its slots than
                              LAUNCH allows; NODE_LOST follows */

    /* on the tree, away from the root */
    CHEMPI_MSG_LAUNCH = 48,  /* see chempid/job/spec.h */
    CHEMPI_MSG_INPUT = 49,   /* u32 node or ANY, blob; empty: end of file */
    CHEMPI_MSG_CREDIT = 50,  /* u32 node, u32 bytes of output shown */
    CHEMPI_MSG_SIGNAL = 51,  /* u32 signal number */
    CHEMPI_MSG_KILL = 52,    /* u32 rank or ANY, str text */
    CHEMPI_MSG_RELEASE = 53, /* u64 fence: entered by all */
    CHEMPI_MSG_END = 54,     /* leave */
    CHEMPI_MSG_FALLEN = 55,  /* u32 process, u8 enum chempi_fall, str text */
    CHEMPI_MSG_LOCATE = 56,  /* u32 ms, u8 enum chempi_wait_depth: PLACES,
                                after so long at most */
    CHEMPI_MSG_BEGIN = 57,   /* - ; ranks that are held may begin */

    /* without daemons, before LAUNCH (chempid/remote/remote_tree.h) */
    CHEMPI_MSG_CALL = 58,   /* u32 ms for each host to answer, str launcher,
                               count n, n x (u32 node, str host): call them */
    CHEMPI_MSG_CALLED = 59, /* count n, n x (u32 node, str why): not reached */

    /* between a daemon and its node's supervisor of a job */
    CHEMPI_MSG_SHARE = 70, /* daemon: u32 local rank, then as BUDGET */
    CHEMPI_MSG_HOLDS = 71, /* supervisor: u32 local rank, then as MEMORY */
    CHEMPI_MSG_RUNS = 72,  /* supervisor: u32 process id of the gateway, 0 when
                              it has ended */
    CHEMPI_MSG_PART = 73,  /* daemon, first of all, where the supervisor is not
                              its child: u32 node, u64 memory of each rank,
                              u32 slots, then as LAUNCH from the shell on */

    /* on the tree, from node to node */
    CHEMPI_MSG_ASK = 60,    /* u32 to node, u32 from node, u32 rank, str key */
    CHEMPI_MSG_ANSWER = 61, /* u32 to node, u32 rank, str key, blob value */

    /* between a rank and the root (dynamic.h) */
    CHEMPI_MSG_ROOT_REQUEST = 62, /* rank: u32 serial, u8 enum
                                     chempi_root_request, blob; on the tree u32
                                     node, u32 rank before these */
    CHEMPI_MSG_ROOT_REPLY = 63,   /* on the tree: u32 node, u32 rank, then as to
                                     the rank: u32 serial, u8 enum
                                     chempi_reply_state, u32 enum
                                     chempi_reply_error, u32 count, u32 app, str
                                     text */

    /* between daemons and their clients */
    CHEMPI_MSG_GREET = 80,   /* u32 version, str node or "" */
    CHEMPI_MSG_QUERY = 81,   /* frame.job: the question's number; u32 uid, whose
                                it is (of a client: the kernel knows); count n,
                                n x str node; none: all that are known;
                                u32 1: with shares of memory, or 0; u32 ms
                                until an answer is due; 0: not said */
    CHEMPI_MSG_STATUS = 82,  /* frame.job: the question's number; records, see
                                chempid/tree/nodes/status.h */
    CHEMPI_MSG_DROP = 83,    /* frame.job: whoever ordered it is gone */
    CHEMPI_MSG_REQUEST = 84, /* frame.job: the order's number; u32 enum
                                chempi_request, str node, str job, u32 uid */
    CHEMPI_MSG_REPLY = 85,   /* frame.job: as in REQUEST; u32 errno or 0, str
                                text */
    CHEMPI_MSG_NEWS = 86,    /* count n, n x (str node, str address,
                                u32 slots) */
    CHEMPI_MSG_BEAT = 88,    /* u32 ms: the sender is there, and gives up who
                                is silent for so long (chempid/peers/beat.h) */
    CHEMPI_MSG_REFUSED = 87  /* frame.job: the job or question; u32 the type of
                                what cannot be done, str text: why. The job has
                                no part there any more */
};

/* What a client asks of a daemon in REQUEST. */
enum chempi_request {
    CHEMPI_REQUEST_KILL = 1,  /* end a job, which has part at the node */
    CHEMPI_REQUEST_STOP = 2,  /* end the daemon of the node */
    CHEMPI_REQUEST_DRAIN = 3, /* spare the node's gateway: of this job, or
                                 ("") of all, and of those to come */
    CHEMPI_REQUEST_UNDRAIN = 4,
    CHEMPI_REQUEST_WHERE = 5, /* say, at the launcher, where its ranks wait */
    CHEMPI_REQUEST_REREAD = 6 /* the daemon's keys, from their files */
};

/* What has become of a gateway, in GATEWAY and FALLEN. */
enum chempi_fall {
    CHEMPI_FALL_LOST = 0,  /* it has ended */
    CHEMPI_FALL_FATAL = 1, /* the job cannot go on; never in FALLEN */
    CHEMPI_FALL_DRAINED = 2,
    CHEMPI_FALL_CUT = 3, /* in GATEWAY: a rank has lost it, and with it the
                            only way; ENDED follows */
    CHEMPI_FALL_UNDRAINED = 4,
    CHEMPI_FALL_DIED = 5 /* in FALLEN: a rank, of a job that survives */
};

/* Where a rank is, in HERE and PLACES; the text is for the first two only. */
enum chempi_here {
    CHEMPI_HERE_WAITS = 1, /* in "MPI_Recv of MPI_COMM_WORLD ..." */
    CHEMPI_HERE_TESTS = 2, /* it calls "MPI_Test", which does not wait */
    /* What supervisors say of those that do not answer: */
    CHEMPI_HERE_SILENT = 3,
    CHEMPI_HERE_FRESH = 4,     /* nor has it initialized MPI */
    CHEMPI_HERE_FINALIZED = 5, /* it was not asked: it has finalized MPI */
    CHEMPI_HERE_ENDED = 6
};

/* How a rank ended, in ENDED. */
enum chempi_end {
    CHEMPI_END_EXIT = 1,     /* non-zero exit code */
    CHEMPI_END_EARLY = 2,    /* exit between initialize and finalize */
    CHEMPI_END_SIGNAL = 3,   /* killed by signal `code` */
    CHEMPI_END_ABORT = 4,    /* asked for the end of the job */
    CHEMPI_END_START = 5,    /* could not be started; code is the errno */
    CHEMPI_END_PROTOCOL = 6, /* sent a malformed message */
    CHEMPI_END_LATE = 7,     /* non-zero exit code after finalize */
    CHEMPI_END_MISSED = 8,   /* has not ended: needs rank `code`, which
                                is ABSENT */
    CHEMPI_END_SESSION = 9   /* as EARLY, but for open sessions only */
};

#endif
