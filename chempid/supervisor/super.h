/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The supervisor: one process per job and node, parent and subreaper of the
 * ranks there, owner of their control sockets and standard streams. Forked by
 * chempirun (private jobs) or chempid; its one link goes up to that parent.
 *
 *   P1  a rank is reported as badly ended at most once
 *   P2  what a rank has written (control messages, output) is taken in before
 *       its end is judged or passed on
 *   P3  DONE is sent once: all ranks ended, no descendant left, all output
 *       passed on
 *   P4  at most CHEMPI_OUTPUT_WINDOW bytes of output are on their way
 *   P5  when the link upwards is lost, every descendant is killed at once
 *   P6  when the job is killed because of a lost process, ranks that care get
 *       GRACE_S to act on it, or as long as any of them cares, if shorter; and
 *       where their figures are wanted, ranks get TELL_S to tell them, and
 *       HOLD_S before a signal that ends most programs is passed on
 *   P7  the gateway is no rank: it outlives the ranks here, since others may
 *       need it, and ends with the job, when it has told its figures or has
 *       had TELL_GATEWAY_S for it
 *   P8  of what has been killed, P3 waits CHEMPI_REAP_S for the last: a process
 *       that others trace, or that waits for a device, may not end
 *
 * No thread; no call into it but run(). super.c has the beginning and what the
 * root says, hear.c what ranks say, ending.c how the job ends here. gateway.c
 * starts and reaps the gateway, ranks.c the ranks. keys.c has keys and fences,
 * root.c what goes to the root and back, streams.c the standard streams,
 * wait_collect.c where ranks wait. tell.c
 * speaks to the root, stats_collect.c tells it what is counted, control.c
 * speaks to the ranks. No file calls one that stands before it here.
 */
#ifndef CHEMPI_CHEMPID_SUPER_H
#define CHEMPI_CHEMPID_SUPER_H

#include <ev.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "chempid/job/spec.h"
#include "chempid/supervisor/bind.h"
#include "chempid/supervisor/kvs.h"
#include "chempid/tree/link.h"
#include "common/control/client.h"
#include "common/control/msg.h"
#include "common/control/share.h"

struct chempi_super;

/* Standard output or error of a rank, cut into whole lines. */
struct chempi_stream {
    ev_io io;
    struct chempi_super *super;
    uint32_t rank;  /* in the world */
    uint8_t number; /* 1 or 2 */
    int fd;         /* -1: at its end */
    char *held;     /* the beginning of a line */
    size_t held_len;
    uint64_t held_ns; /* since when */
};

/* Standard input of a rank that gets some. */
struct chempi_feed {
    ev_io io;
    struct chempi_super *super;
    int fd;     /* -1: closed, or this rank gets none */
    char *data; /* what the pipe has not taken yet */
    size_t len;
    bool is_last; /* close when data is written */
};

enum chempi_phase {
    CHEMPI_PHASE_FRESH, /* has not initialized MPI */
    CHEMPI_PHASE_INITIALIZED,
    CHEMPI_PHASE_FINALIZED
};

struct chempi_rank {
    struct chempi_super *super;
    uint32_t world;
    uint32_t local;
    pid_t pid; /* 0: does not run */
    struct chempi_link link;
    enum chempi_phase phase;
    bool is_judged;       /* its bad end has been reported (P1) */
    int exec_errno;       /* why it could not be started, 0: it could */
    uint64_t fence;       /* last one entered */
    uint32_t keys;        /* published */
    uint32_t root_serial; /* of the last question to the root */
    uint32_t root_open;   /* of these, without an answer */
    bool needs_world;     /* as a whole: a rank must not be absent */
    bool has_world;       /* MPI_Init, but not MPI_Finalize */
    bool cares;           /* wants to act on a lost process (P6) */
    bool is_held;         /* it hears nothing before BEGIN */
    bool has_told;        /* its figures, since it has initialized */
    bool is_asked;        /* for them, and has not answered (yet) */
    struct chempi_stream streams[2];
    struct chempi_feed feed;
    bool is_sought;  /* asked where it waits, and has not said all (yet) */
    bool owes_share; /* that comes when it has read what is queued */
    uint8_t share_bytes[CHEMPI_SHARE_BYTES];
    uint8_t here_kind; /* its answer, an enum chempi_here; 0: none */
    char here[CHEMPI_HERE_MAX];
    char site[CHEMPI_HERE_SITE_MAX]; /* whence it calls, lines */
    uint64_t moves;                  /* as in HERE */
    uint32_t for_count;              /* ranks that it waits for */
    uint32_t for_ranks[CHEMPI_HERE_FOR_MAX];
};

struct chempi_super {
    struct ev_loop *loop;
    const struct chempi_spec *spec;
    uint32_t node;
    struct chempi_link up;
    chempi_link_frame_fn *on_rank_frame; /* of ranks' and gateway's links */
    chempi_link_lost_fn *on_rank_lost;
    bool has_become;                   /* its user, before it had spec */
    bool shares_session;               /* with the job's other nodes here */
    const struct chempi_cgroup *group; /* for spec, then */
    struct chempi_share share;
    struct chempi_bind_map bind;
    struct chempi_kvs kvs;
    struct chempi_rank *ranks;   /* [local_size] by world rank, gateway */
    struct chempi_rank *gateway; /* behind the ranks; NULL: none here */
    uint32_t local_size;
    uint32_t host_procs; /* of the job, on this host */
    uint32_t alive;
    ev_io child_signal;
    ev_io exec_report;
    ev_timer line_timer;
    ev_timer grace;     /* runs: the ranks that care still may act (P6) */
    ev_timer sweep;     /* runs: what was killed has not ended (P8) */
    ev_timer hold;      /* runs: ranks tell before they get `signal` */
    ev_timer seek;      /* runs: ranks are asked where they wait */
    int signal;         /* that is held back, 0: none */
    bool was_signalled; /* what ranks have told may not be all */
    int signal_fd;
    int exec_fds[2]; /* children say why exec failed */
    int gate_fds[2]; /* children wait for its end; -1: not, or not any more */
    bool awaits_programs; /* of a debugged job; STARTED is owed */
    int null_fd;
    int wires_from; /* our ends of the ranks' wires; 0: they lie anywhere */
    int parted_fd;  /* event: a child has a table of its own */
    struct rlimit files; /* the limit that ranks get */
    uint64_t fence;      /* last one entered by all local ranks */
    uint32_t late;       /* a local rank, not to be looked for among all */
    uint32_t reaped;     /* the local rank that ended last, likewise */
    uint64_t released;   /* last one entered by the whole job */
    uint32_t absent;     /* 1 + a rank that no fence can wait for, 0 */
    bool has_absent;     /* and this node has told the root of one */
    uint32_t unshown;    /* bytes of output on their way (P4) */
    bool is_paused;      /* no reading of output */
    bool is_sweeping;    /* whatever is left gets killed */
    bool is_ending;      /* the job was killed: ends are no news */
    bool has_children;
    bool has_given_up; /* children that do not end (P8) */
    bool is_done;      /* DONE is sent (P3) */
    bool
        is_leaving; /* END has come: the gateway shall tell, the rest is over */
    struct chempi_writer report; /* what has been told here */
    char *text;                  /* CHEMPI_OUTPUT_CHUNK bytes for reading */
};

/* Make s->ranks of what its description says of its node. -ENOMEM. */
int chempi_super_number_ranks(struct chempi_super *s, struct chempi_err *err);

/* Run node `node` of the job to its end. Call in a freshly forked child;
 * takes over up_fd and closes all other descriptors but the standard ones.
 * shares_session: the caller is nobody's but the job's, whose nodes on this
 * host may stay in its session. */
_Noreturn void chempi_super_run(const struct chempi_spec *spec, uint32_t node,
                                int up_fd, bool shares_session);

/* The same for a process that is root and has no description: it enters the
 * control group (NULL, or zeros: none) and becomes the user first, of a group
 * of theirs, and is told the job (PART) on its link, of which nothing is read
 * before. Where it cannot, it says REFUSED and ends. */
_Noreturn void chempi_super_run_as(uint32_t uid, uint32_t gid,
                                   const struct chempi_shell *shell,
                                   const struct chempi_cgroup *group,
                                   int up_fd);

/* ---- between the supervisor's files, from below -------------------------- */

/* control.c: send a frame to a rank and wake it. */
void chempi_control_send(struct chempi_rank *rank, uint16_t type,
                         const void *data, size_t len);
/* BUDGET, CHEMPI_SHARE_BYTES. To a rank that has not read what it was sent only
 * the last one goes: others' reports make shares, and nobody else's rank shall
 * have a queue for them. */
void chempi_control_share(struct chempi_rank *rank, const uint8_t *share);
/* Watch our end of its control socket, and welcome it, or hold it. */
void chempi_control_connect(struct chempi_rank *rank, int fd);
/* Welcome those that were held. */
void chempi_control_begin(struct chempi_super *s);
/* -EBADMSG: of what is malformed. */
int chempi_control_refuse(struct chempi_err *err, const char *what);

/* stats_collect.c: REPORT from a rank or the gateway; whoever waits for it is
 * to be asked again (chempi_ending_care()). */
int chempi_stats_collect_take(struct chempi_rank *rank, struct chempi_reader *r,
                              struct chempi_err *err);
/* Tell the root what is known, if it is wanted, and forget it. */
void chempi_stats_collect_send(struct chempi_super *s);
/* Ask ranks for what they have not told; is any answer due? */
void chempi_stats_collect_ask(struct chempi_super *s);
bool chempi_stats_collect_are_due(const struct chempi_super *s);
/* Ask the gateway. False: there is none, or nothing to ask. */
bool chempi_stats_collect_ask_gateway(struct chempi_super *s);

/* tell.c: that the processes run, and which they are. */
void chempi_tell_started(struct chempi_super *s);
/* The rank ended badly (P1). */
void chempi_tell_ended(struct chempi_rank *rank, enum chempi_end how,
                       uint32_t code, const char *text);
/* It ended well without initializing, so that no fence can pass any more. */
void chempi_tell_absent(const struct chempi_rank *rank);
/* The gateway has ended, or cannot go on; fatal: nor can the job. */
void chempi_tell_gateway(struct chempi_super *s, bool is_fatal,
                         const char *text);
/* Send DONE if it is time (P3). */
void chempi_tell_done(struct chempi_super *s);

/* streams.c */
void chempi_streams_init(struct chempi_super *s);
void chempi_streams_open(struct chempi_super *s, struct chempi_stream *st,
                         int fd, uint32_t rank, uint8_t number);
void chempi_streams_open_feed(struct chempi_super *s, struct chempi_feed *feed,
                              int fd);
/* Take what the pipes hold now and treat them as ended (P2). */
void chempi_streams_drain(struct chempi_super *s);
void chempi_streams_credit(struct chempi_super *s, uint32_t bytes);
/* Input for this node's targets; len 0: end of file. -EBADMSG: more than the
 * window. */
int chempi_streams_feed(struct chempi_super *s, const void *data, size_t len);
void chempi_streams_close(struct chempi_stream *st);
void chempi_streams_close_feed(struct chempi_feed *feed);

/* wait_collect.c: LOCATE from above, and HERE from a rank. */
void chempi_wait_collect_init(struct chempi_super *s);
int chempi_wait_collect_ask(struct chempi_super *s, struct chempi_reader *r,
                            struct chempi_err *err);
int chempi_wait_collect_take(struct chempi_rank *rank, struct chempi_reader *r,
                             struct chempi_err *err);
/* Of each rank what PLACES says; calls of the program only where there is room
 * for the words of all. */
void chempi_wait_collect_put(struct chempi_writer *w,
                             const struct chempi_rank *ranks, uint32_t count);
/* A rank has ended: perhaps all have answered that can. */
void chempi_wait_collect_settle(struct chempi_super *s);
/* The job ends: nobody wants to know any more. */
void chempi_wait_collect_drop(struct chempi_super *s);

/* keys.c: what a rank asks of the job. */
int chempi_keys_put(struct chempi_rank *rank, const char *key,
                    const void *value, size_t len, struct chempi_err *err);
/* It has left MPI, and will not come back: for who has lost a connection to it.
 */
void chempi_keys_leave(struct chempi_rank *rank);
int chempi_keys_get(struct chempi_rank *rank, uint32_t owner, const char *key,
                    struct chempi_err *err);
/* A rank has entered a fence, or will enter none any more. */
void chempi_keys_fence(struct chempi_super *s);
/* The node enters the next fence. */
void chempi_keys_enter(struct chempi_super *s);
/* Is a rank absent that others need? */
void chempi_keys_miss(struct chempi_super *s);
/* From above. */
int chempi_keys_take_ask(struct chempi_super *s, struct chempi_reader *r,
                         struct chempi_err *err);
int chempi_keys_take_answer(struct chempi_super *s, struct chempi_reader *r,
                            struct chempi_err *err);
int chempi_keys_take_absent(struct chempi_super *s, struct chempi_reader *r,
                            struct chempi_err *err);
int chempi_keys_take_release(struct chempi_super *s, struct chempi_reader *r,
                             struct chempi_err *err);

/* root.c: ROOT_REQUEST from a rank; its end, if it has ever asked; ROOT_REPLY
 * from above. */
int chempi_root_take_request(struct chempi_rank *rank, struct chempi_reader *r,
                             struct chempi_err *err);
void chempi_root_tell_ended(const struct chempi_rank *rank);
int chempi_root_take_reply(struct chempi_super *s, struct chempi_reader *r,
                           struct chempi_err *err);

/* ranks.c: before the first is started, and when all that they inherit is
 * there. */
void chempi_ranks_prepare(struct chempi_super *s);
/* Start one; on failure *err has the words, and nothing is left. */
int chempi_ranks_start(struct chempi_super *s, struct chempi_rank *rank,
                       struct chempi_err *err);
/* Its process has ended with this wait status. */
void chempi_ranks_reap(struct chempi_rank *rank, int status);
void chempi_ranks_close(struct chempi_rank *rank);
/* What the child of a fork does before it becomes a program. */
void chempi_ranks_reset_signals(void);

/* gateway.c: start this node's gateway, if it shall have one. */
int chempi_gateway_start(struct chempi_super *s, struct chempi_err *err);
void chempi_gateway_reap(struct chempi_super *s, int status);
/* For chempi_orphans_kill(): all but the gateway. */
bool chempi_gateway_is_spared(void *super, pid_t pid);
/* Is it the only child that is left? */
bool chempi_gateway_is_alone(struct chempi_super *s);

/* ending.c: look for ends, of processes and of the time for them. */
void chempi_ending_watch(struct chempi_super *s);
/* Take in the ends that there are. */
void chempi_ending_reap(struct chempi_super *s);
/* Who debugs wants programs, not what becomes them; a child that does not get
 * so far keeps nobody from ending the job. */
void chempi_ending_await_programs(struct chempi_super *s);
/* A rank cares, or not any more; or it, or the gateway, has told its figures,
 * or has ended. */
void chempi_ending_care(struct chempi_super *s);
/* From above. */
int chempi_ending_take_signal(struct chempi_super *s, struct chempi_reader *r,
                              struct chempi_err *err);
int chempi_ending_take_kill(struct chempi_super *s, struct chempi_reader *r,
                            const struct chempi_frame *frame,
                            struct chempi_err *err);
void chempi_ending_take_end(struct chempi_super *s);
/* status: 0, or an errno that says why it cannot go on. */
_Noreturn void chempi_ending_leave(struct chempi_super *s, int status);

/* hear.c: what a rank says; that its connection is lost. */
int chempi_hear_frame(struct chempi_link *link,
                      const struct chempi_frame *frame, struct chempi_err *err);
void chempi_hear_lost(struct chempi_link *link, int code,
                      const struct chempi_err *err);

/* super.c: a frame from above, of a job that has begun here (on_frame). */
int chempi_super_take(struct chempi_link *link,
                      const struct chempi_frame *frame, struct chempi_err *err);

#endif
