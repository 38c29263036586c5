/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What others may have of a daemon: numbers, bytes and seconds. Kernel buffers
 * are apart. What a peer may say in one message is in common/control/msg.h,
 * which these limits are below. chempid(8) tells them, too.
 */
#ifndef CHEMPI_CHEMPID_LIMITS_H
#define CHEMPI_CHEMPID_LIMITS_H

/* ---- strangers: connections from other nodes before the proof (conn.h) --- */

#define CHEMPI_CONN_UNPROVEN_MAX                                               \
    64u                             /* at a time; a newcomer takes the place   \
                                     */
#define CHEMPI_CONN_ADDRESS_MAX 16u /* of one, first within its own address */
#define CHEMPI_CONN_UNPROVEN_BYTES 1024u /* of memory, each */
#define CHEMPI_CONN_PROOF_S 3.0          /* to prove the key, when called */
#define CHEMPI_CONN_CALL_S                                                     \
    10.0 /* the same with the way, and to find                                 \
            the name, when calling */
#define CHEMPI_CONN_KNOWN_MAX                                                  \
    256u                     /* addresses that have proven it, and             \
                                keep their places */
#define CHEMPI_CONN_BATCH 16 /* taken before others have a turn */

/* ---- what other daemons tell (news.h) ------------------------------------ */

#define CHEMPI_NEWS_MAX 65536u /* nodes in one message */
#define CHEMPI_NEWS_TOLD_MAX                                                   \
    8192u /* nodes known from one node; cluster files may have more */

/* ---- names of hosts (resolve.h) ------------------------------------------ */

#define CHEMPI_RESOLVE_MAX 32u  /* at a time */
#define CHEMPI_RESOLVE_TEXT 512 /* bytes of words for why not */

/* ---- users of the Unix socket (user_shares.h, conn.h)
 * -------------------------- */

#define CHEMPI_CONN_GREET_MAX                                                  \
    256u /* bytes that a peer may say before it has                            \
            greeted, of any kind */
#define CHEMPI_CONN_GREET_S 5.0
#define CHEMPI_CONN_IDLE_S 60.0      /* without a job, and saying nothing */
#define CHEMPI_CONN_LOCAL_MAX 256u   /* of a user at a time, or its share */
#define CHEMPI_CONN_LAUNCH_SPARE 16u /* with so few left, they only ask */
#define CHEMPI_CONN_LOCAL_ALL 8192u  /* of all users */
#define CHEMPI_FDS_RESERVED 64u      /* descriptors for all else, at least */
#define CHEMPI_FDS_MAX 65536u        /* that a daemon takes for itself */
#define CHEMPI_USER_POOL_MIN 16u     /* for all, without descriptors */
#define CHEMPI_DAEMON_JOBS_MAX 4096u /* at a time, of all users */
#define CHEMPI_DAEMON_QUERIES_MAX 4096u
#define CHEMPI_ORDERS_MAX 4096u
#define CHEMPI_USER_MEMORY_MAX (96u << 20) /* bytes: messages and jobs */
#define CHEMPI_USER_JOBS_MAX 512u          /* on one node, or its share */
#define CHEMPI_USER_QUESTIONS_MAX 64u
#define CHEMPI_USER_ORDERS_MAX 64u
#define CHEMPI_LINK_QUESTIONS_MAX 1024u /* from one daemon, of all users */
#define CHEMPI_LINK_ORDERS_MAX 1024u
#define CHEMPI_NODE_RANKS_MAX 16384u /* of one job */

/* ---- links that a daemon shares (room.h) --------------------------------- */

#define CHEMPI_ROOM_BYTES (1u << 20) /* of a user, in the last quarter */
#define CHEMPI_ROOM_USERS 56u        /* some is left for what is nobody's */

/* ---- supervisors (supervisors.h)
 * ----------------------------------------------- */

#define CHEMPI_SUPERVISOR_CHILD_QUEUE_MAX                                      \
    (32u << 20) /* bytes that one has not read: half a KiB for each            \
                   question that is open at a node */

/* ---- the log ------------------------------------------------------------- */

#define CHEMPI_LOG_BURST 100         /* lines of one kind at a time */
#define CHEMPI_LOG_PER_S 2           /* and afterwards */
#define CHEMPI_CONN_COMPLAINT_S 60.0 /* of users' crowds: not again before */

#define CHEMPI_HELPER_S 2.0 /* for the helper to open a file (helper.h) */

/* ---- ends of processes (supervisors.h)
 * ----------------------------------------- */

#define CHEMPI_END_S 2.0  /* for a supervisor whose socket is closed */
#define CHEMPI_REAP_S 2.0 /* for what has been killed */
#define CHEMPI_DROP_S 5.0 /* for a supervisor whose job is not wanted */

#endif
