/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Agreements by which communicators are made, for this room and for whoever
 * makes communicators of a new kind (topologies, sessions, dynamic processes).
 * Functions return an MPI error class unless they say otherwise.
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_COMM_MAKE_H
#define CHEMPI_LIBCHEMPI_DIDL_COMM_MAKE_H

#include <mpi.h>

#include "common/containers/list.h"
#include "common/control/dynamic.h"
#include "libchempi/didl/comm/comm.h"
#include "libchempi/didl/comm/comm_life.h"
#include "libchempi/didl/comm/context_id.h"
#include "libchempi/didl/transport/worlds/foreign.h"

/* An intercommunicator and its local group's own communicator. NULL when out
 * of memory; the ids are not used again then. */
struct chempi_comm *chempi_comm_make_inter(struct chempi_group *local,
                                           struct chempi_group *remote,
                                           uint32_t send_context,
                                           uint32_t recv_context,
                                           uint32_t local_context);

/* Groups of which not all members know each other: those of one that does not
 * know the other one can be met at a port of its leader. */
struct chempi_comm_strangers {
    /* An MPI error class, or MPI_SUCCESS with a name. */
    int (*open_port)(char name[CHEMPI_PORT_NAME_MAX]);
    bool are_there;                    /* the same at all members of both */
    char mine[CHEMPI_PORT_NAME_MAX];   /* at the leader; "": none */
    char theirs[CHEMPI_PORT_NAME_MAX]; /* .. the other leader's */
};

/* MPI_Intercomm_create, where all members of both groups know each other. If
 * some do not, nothing is made, and *s says so; peer_comm then is a
 * communicator at the leader, and one of the two ports is there. `mine` may be
 * open after an error, too. */
int chempi_comm_create_inter(struct chempi_comm *local_comm, int local_leader,
                             struct chempi_comm *peer_comm, int remote_leader,
                             int tag, MPI_Comm *newintercomm,
                             struct chempi_comm_strangers *s);

/* Whether this side of an intercommunicator is the one whose first process has
 * the smaller name; both sides say the same. */
bool chempi_comm_is_first_side(const struct chempi_comm *comm);

/* ---- messages among the members of a communicator being made ---- */

/*
 * Who takes part: member i is rank ranks[i] (NULL: i) of comm, an
 * intracommunicator. All members use the same tag, in the same order.
 */
struct chempi_comm_channel {
    struct chempi_comm *comm;
    const int *ranks;
    const struct chempi_group *group; /* not NULL: of its processes instead,
                                         which are looked for in comm */
    int size;
    int me;
    int first; /* index in ranks of member 0, who is followed in a circle */
    int tag;
    uint32_t circle; /* tells apart whom the tag is for; 0: all of comm */
    enum chempi_context_kind kind;
    struct chempi_comm *inter; /* not NULL: comm is the local side of inter,
                                  and agreements span both sides */
    bool is_open; /* processes of other worlds may be members of what is made,
                     though they are none of comm's */
};

/* All members of a communicator, both sides of an intercommunicator; takes
 * the next internal tag. */
struct chempi_comm_channel chempi_comm_channel(struct chempi_comm *comm);
/* The same members and tag, with another one for member 0. */
struct chempi_comm_channel
chempi_comm_channel_from(const struct chempi_comm_channel *ch, int first);

/*
 * The messages of one member in a small collective, in order. A step sends to
 * member `to` and receives from member `from` (-1: not), at once; what comes
 * in replaces the values, or raises them (is_max).
 */
struct chempi_comm_step {
    int to;
    int from;
    bool is_inter; /* to rank 0 of the other side instead, both ways */
    bool is_max;
};

#define CHEMPI_COMM_STEPS_MAX 80 /* of CHEMPI_JOB_RANKS_MAX members */

/* The plan of one member (comm_plan.c); returns the number of steps. */
int chempi_comm_plan_max(const struct chempi_comm_channel *ch,
                         struct chempi_comm_step *steps);
int chempi_comm_plan_bcast(const struct chempi_comm_channel *ch,
                           struct chempi_comm_step *steps);
/* Of the local side, where what comes in is added (is_max). 0: no node has
 * several members, or one has all; who speaks for others gains nothing. */
int chempi_comm_plan_gather(const struct chempi_comm_channel *ch,
                            struct chempi_comm_step *steps);
int chempi_comm_step_rank(const struct chempi_comm_channel *ch, int member);
/* What came in, by the rule of the step. */
void chempi_comm_step_take(const struct chempi_comm_step *step, int64_t *vals,
                           const int64_t *other, int n);

/* An error class that has come with values, and its words. */
int chempi_comm_step_error(int64_t error);

/* In all of these rc is how it went so far at this member: whoever has failed
 * takes part without data, and returns that error; so do all others in a
 * maximum, and elsewhere those who miss its data. */

/* vals[0..n) become the maxima over all members, n <= CHEMPI_COMM_VALS_MAX. */
#define CHEMPI_COMM_VALS_MAX 8
int chempi_comm_max(const struct chempi_comm_channel *ch, int rc, int64_t *vals,
                    int n);
/* The same of nothing but rc, among all members of comm. */
int chempi_comm_vote(struct chempi_comm *comm, int rc);
/* Member 0's bytes to all (local side only). */
int chempi_comm_bcast(const struct chempi_comm_channel *ch, int rc, void *buf,
                      size_t len);
/* all[i * len] becomes member i's `len` bytes (local side only). */
int chempi_comm_allgather(const struct chempi_comm_channel *ch, int rc,
                          const void *mine, size_t len, void *all);

/* Where two leaders meet; significant at them only. */
struct chempi_comm_far {
    struct chempi_comm *comm; /* an intercommunicator, or any that has both */
    int rank;                 /* of the other leader in it */
    int tag;
    enum chempi_context_kind kind;
    int error;      /* the leader's, known beforehand: nobody is met, and its
                       group learns of it */
    bool is_nobody; /* the other side is empty: nobody is met */
    /* Not NULL: they meet by other means than messages. Swap bytes with the
     * other leader, which hears of rc in their place; *out is malloc'ed. MPI
     * error class: this leader's, or the other one's. */
    int (*exchange)(void *arg, int rc, const void *mine, size_t len, void **out,
                    uint64_t *out_len);
    void *arg;
};

/*
 * Both sides of an intercommunicator learn the other side's bytes: leaders
 * (member 0) swap, then hand down. *out is malloc'ed, *out_len its length;
 * lengths may differ. Of nobody there are 0 bytes. An error of a leader is one
 * of both sides, if it can tell the other.
 */
int chempi_comm_swap(const struct chempi_comm_channel *local,
                     const struct chempi_comm_far *far, int rc,
                     const void *mine, size_t len, void **out, size_t *out_len);
/* The leaders' part of it, which their groups do not hear of. */
int chempi_comm_swap_leaders(const struct chempi_comm_far *far, int rc,
                             const void *mine, size_t len, void **out,
                             uint64_t *out_len);
/* Of a member whose leader has told it of an error: the class. A loss has words
 * that each member knows. */
int chempi_comm_hear_leader(int64_t value);
/* The same within an intercommunicator, under the tag of local. */
int chempi_comm_swap_inter(const struct chempi_comm_channel *local,
                           struct chempi_comm *inter, int rc, const void *mine,
                           size_t len, void **out, size_t *out_len);

/* ---- context ids ---- */

/* Agree on a context that is free at all members; *out is reserved here. */
int chempi_comm_agree_context(const struct chempi_comm_channel *ch, int rc,
                              uint32_t *out);

/*
 * The same in pieces, for an agreement that goes on in the background: open,
 * then rounds of cast, a maximum over all members, and settle, until settle
 * says that it is over; then close. With an error class the values fill the
 * first line of a message in shared memory.
 */
#define CHEMPI_COMM_VOTE_VALS 3
struct chempi_comm_agreement {
    struct chempi_list link; /* waiting, from the second round on */
    /* The same at all members, on both sides: */
    uint32_t context;
    struct chempi_name first; /* of the side that has this context */
    uint32_t tag;
    uint32_t first_id; /* of the range */
    uint32_t from;     /* the next proposal is at least this */
    uint32_t id;       /* proposed in this round; 0: none */
    uint32_t agreed;   /* context, 0: not yet */
    bool is_first_round;
    bool is_in_gaps;
    bool is_owner; /* of the turn */
};

void chempi_comm_agreement_open(struct chempi_comm_agreement *ag,
                                const struct chempi_comm_channel *ch);
/* rc: what has failed here before, or MPI_SUCCESS; the caller's vote says so,
 * too. */
void chempi_comm_agreement_cast(struct chempi_comm_agreement *ag, int rc,
                                int64_t *vals);
/* MPI_SUCCESS with *is_over, or an error class, after which it is over. rc:
 * how the maximum went. */
int chempi_comm_agreement_settle(struct chempi_comm_agreement *ag,
                                 const int64_t *vals, int rc, bool *is_over);
void chempi_comm_agreement_close(struct chempi_comm_agreement *ag);

/* Give a reserved context back that no communicator gets here. After an error
 * another member may have one, and send messages: it is not used again. */
void chempi_comm_return_context(uint32_t context, int rc);
/* ---- finishing touches ---- */

/* Turn `made`, over the groups of comm, into a duplicate: attributes, error
 * handler, topology, hints (may be NULL). On failure `made` is gone. */
int chempi_comm_dress(struct chempi_comm *made, struct chempi_comm *comm,
                      const struct chempi_info *hints, MPI_Comm *newcomm);

#endif
