/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is said in a circle; see comm_circle.h. When a member is lost, the
 * others leave the agreement one after the other. Who has left may be in the
 * next one under the same tag while another one is still in the old one. So
 *
 *   V1  a vote says for which circle it is. One for another circle than that
 *       of its receiver is kept until the receiver is in it
 *   V2  what is for a member that may have left is taken back, unless it has
 *       been received
 *   V3  data comes behind an agreement to which its receiver has come. What is
 *       for another circle than that of its receiver is for one that this has
 *       left, and is dropped
 */
#include "libchempi/didl/comm/make/comm_circle.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/sys.h"
#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/base/status.h"
#include "libchempi/didl/comm/message_request.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/transport/worlds/foreign.h"

enum { VOTE_MAX = CHEMPI_COMM_VALS_MAX + 1 }; /* words */

/* The last one of this context and tag, from this rank: V1. */
struct early {
    struct chempi_list link;
    uint32_t context;
    int32_t tag;
    int from;
    int n;
    int64_t words[VOTE_MAX];
};

static struct {
    pthread_mutex_t lock;
    struct chempi_list votes; /* struct early */
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER,
          .votes = {&kept.votes, &kept.votes}};

/* Of a member, the same at all of the group. */
static uint32_t digest_of_member(const struct chempi_group *group, uint32_t i)
{
    struct chempi_name name;

    if (!group->has_foreign)
        return chempi_group_proc(group, i);
    name = chempi_foreign_name(chempi_group_proc(group, i));
    return chempi_foreign_hash(&name);
}

/* Of whom there are, in this order: in 31 bits, never 0. */
static uint32_t digest_of(const struct chempi_group *group)
{
    uint32_t hash = UINT32_C(2166136261);

    for (uint32_t i = 0; i < group->size; i++)
        hash = (hash ^ digest_of_member(group, i)) * UINT32_C(16777619);
    return ((hash ^ hash >> 31) & INT32_MAX) | 1u;
}

void chempi_comm_circle_open(struct chempi_comm_circle *circle,
                             struct chempi_comm *comm, const int *ranks,
                             const struct chempi_group *group, int tag,
                             enum chempi_context_kind kind)
{
    circle->channel =
        (struct chempi_comm_channel){.comm = comm,
                                     .ranks = ranks,
                                     .group = ranks ? NULL : group,
                                     .size = (int)group->size,
                                     .me = group->rank,
                                     .tag = tag,
                                     .circle = digest_of(group),
                                     .kind = kind};
    circle->loss = (struct chempi_loss_circle){
        .group = group, .context = comm->recv_context + kind, .tag = tag};
    chempi_lane_lock(&chempi_lane_main);
    chempi_loss_watch(&circle->loss);
    chempi_lane_unlock(&chempi_lane_main);
}

void chempi_comm_circle_close(struct chempi_comm_circle *circle)
{
    chempi_lane_lock(&chempi_lane_main);
    chempi_list_remove(&circle->loss.link);
    chempi_lane_unlock(&chempi_lane_main);
}

/* ---- early votes ---- */

/* What has come: the message is longer than the words if `got` is 0. */
struct input {
    int64_t *words;
    int room;
    int got;
    bool has_come;
};

/* What is longer than any vote is none, whatever its mark says. */
static bool is_data_in(const struct input *in)
{
    return !in->got || in->got > VOTE_MAX ||
           (in->words[in->got - 1] & CHEMPI_COMM_MARK_DATA);
}

/* Is it what a step of n words waits for? */
static bool is_awaited(const struct chempi_comm_channel *ch, bool is_data,
                       const struct input *in, int n)
{
    const int64_t mark = in->got ? in->words[in->got - 1] : 0;

    if (chempi_comm_marked_circle(mark) != ch->circle ||
        is_data_in(in) != is_data)
        return false;
    return in->got == n ||
           (is_data && in->got == 1 && chempi_comm_marked_error(mark));
}

/* The communicator goes, and with it what has come for circles in it to which
 * this process has not come. */
static void forget(struct chempi_comm *comm)
{
    (void)pthread_mutex_lock(&kept.lock);
    CHEMPI_LIST_FOR_SAFE (link, &kept.votes) {
        struct early *e = CHEMPI_CONTAINER_OF(link, struct early, link);

        if (e->context - e->context % CHEMPI_CONTEXT_STEP != comm->recv_context)
            continue;
        chempi_list_remove(&e->link);
        free(e);
    }
    (void)pthread_mutex_unlock(&kept.lock);
}

/* Under the lock of those kept: that of this rank and tag, or NULL. */
static struct early *find_kept(const struct chempi_comm_channel *ch, int from)
{
    CHEMPI_LIST_FOR (link, &kept.votes) {
        struct early *e = CHEMPI_CONTAINER_OF(link, struct early, link);

        if (e->context == ch->comm->recv_context + ch->kind &&
            e->tag == ch->tag && e->from == from)
            return e;
    }
    return NULL;
}

/* In the place of an older one: its sender has left that circle, too, since a
 * member of it is lost, which ends it here. Else in *room, which is NULL then.
 */
static void keep(const struct chempi_comm_channel *ch, int from,
                 const struct input *in, struct early **room)
{
    struct early *e;

    (void)pthread_mutex_lock(&kept.lock);
    e = find_kept(ch, from);
    if (!e) {
        e = *room;
        *room = NULL;
        e->context = ch->comm->recv_context + ch->kind;
        e->tag = ch->tag;
        e->from = from;
        chempi_list_append(&kept.votes, &e->link);
    }
    e->n = in->got;
    memcpy(e->words, in->words, (size_t)in->got * sizeof(*in->words));
    ch->comm->fini_votes = forget;
    (void)pthread_mutex_unlock(&kept.lock);
}

/* A vote of n words for the circle, to `words`. */
static bool take_kept(const struct chempi_comm_channel *ch, int from,
                      int64_t *words, int n)
{
    struct early *e;

    (void)pthread_mutex_lock(&kept.lock);
    e = find_kept(ch, from);
    if (e && !is_awaited(ch, false,
                         &(struct input){.words = e->words, .got = e->n}, n))
        e = NULL;
    if (e) {
        chempi_list_remove(&e->link);
        memcpy(words, e->words, (size_t)n * sizeof(*words));
        free(e);
    }
    (void)pthread_mutex_unlock(&kept.lock);
    return e != NULL;
}

/* ---- one step ---- */

/* At most one message out and one in. */
struct messages {
    const struct chempi_comm_channel *ch;
    struct chempi_request out;
    struct chempi_request in;
    bool is_out; /* begun */
    bool is_in;
};

static bool is_vain(const struct messages *v)
{
    return chempi_loss_is_vain(v->ch->comm, v->out.context, v->out.peer_rank,
                               v->out.peer_tag);
}

static bool is_sent(const struct messages *v)
{
    return !v->is_out || chempi_request_is_complete(&v->out);
}

static bool is_received(const struct messages *v)
{
    return !v->is_in || chempi_request_is_complete(&v->in);
}

static bool are_over(void *arg)
{
    const struct messages *v = arg;

    return is_received(v) && (is_sent(v) || is_vain(v));
}

static void put_messages(struct chempi_wait_report *w, const void *object)
{
    const struct messages *v = object;

    chempi_wait_report_put_request(w, is_received(v) ? &v->out : &v->in);
}

/* What is begun is completed, or taken back: V2. */
static int complete_locked(struct messages *v)
{
    int rc = chempi_progress_wait_locked(are_over, v, put_messages, v);

    if (rc == MPI_SUCCESS && !is_sent(v)) {
        chempi_message_cancel_send(&v->out);
        chempi_progress_nudge();
        rc = chempi_request_await_locked(&v->out);
    }
    if (rc == MPI_SUCCESS && v->is_out)
        rc = v->out.is_cancelled ? MPI_ERR_PROC_ABORTED : v->out.error;
    return rc;
}

static int finish_in_locked(struct messages *v, struct input *in)
{
    MPI_Status status;
    const int rc = chempi_request_finish_locked(&v->in, &status);

    in->has_come = rc == MPI_SUCCESS || rc == MPI_ERR_TRUNCATE;
    if (rc == MPI_SUCCESS)
        in->got =
            (int)((size_t)chempi_status_bytes(&status) / sizeof(*in->words));
    return in->has_come ? MPI_SUCCESS : rc;
}

/* Either part may be missing; `in` says what has come, whatever became of the
 * other one. */
static int exchange_locked(const struct chempi_comm_channel *ch, int to,
                           const int64_t *out, int n, int from,
                           struct input *in)
{
    struct chempi_datatype *type = chempi_datatype_lookup(MPI_INT64_T);
    struct messages v = {.ch = ch};
    int in_rc = MPI_SUCCESS;
    int rc = MPI_SUCCESS;
    int code;

    in->got = 0;
    in->has_come = false;
    chempi_message_init_recv(&v.in, in->words, in->room, type, from, ch->tag,
                             ch->comm, ch->kind);
    chempi_message_init_send(&v.out, out, n, type, to, ch->tag, ch->comm,
                             ch->kind, CHEMPI_SEND_STANDARD);
    if (from != MPI_PROC_NULL)
        in_rc = chempi_message_start(&v.in);
    v.is_in = from != MPI_PROC_NULL && in_rc == MPI_SUCCESS;
    if (to != MPI_PROC_NULL)
        rc = chempi_message_start(&v.out);
    v.is_out = to != MPI_PROC_NULL && rc == MPI_SUCCESS;
    chempi_progress_nudge();
    code = complete_locked(&v);
    if (v.is_in)
        in_rc = finish_in_locked(&v, in);
    chempi_message_fini(&v.out);
    chempi_message_fini(&v.in);
    return rc ? rc : in_rc ? in_rc : code;
}

/* Without losses, the members mean different groups. */
static int note_other_group(const struct chempi_comm_channel *ch, int from)
{
    return chempi_error_set(MPI_ERR_GROUP,
                            "rank %d and this rank, %d, make a "
                            "communicator of different groups under the "
                            "same tag",
                            from, ch->comm->rank);
}

/* May members go on when one is lost? */
static bool survives(const struct chempi_comm_channel *ch)
{
    return chempi_ctx.job->survives || ch->comm->has_foreign;
}

/* Before a vote is received there is room to keep it: it does not come again.
 */
static bool has_room(const struct chempi_comm_channel *ch, struct early **room)
{
    if (!*room && survives(ch))
        *room = chempi_sys->malloc(sizeof(**room));
    return *room || !survives(ch);
}

/* It is not what the step waits for: V1, V3. */
static int set_aside(const struct chempi_comm_channel *ch, int from,
                     const struct input *in, struct early **room)
{
    if (!survives(ch))
        return note_other_group(ch, from);
    if (!is_data_in(in))
        keep(ch, from, in, room);
    return has_room(ch, room) ? MPI_SUCCESS : chempi_message_no_memory();
}

static int step_locked(const struct chempi_comm_channel *ch, bool is_data,
                       int to, const int64_t *out, int from, struct input *in,
                       int n, struct early **room)
{
    const bool is_here =
        !is_data && from != MPI_PROC_NULL && take_kept(ch, from, in->words, n);
    const bool is_starved =
        !is_here && from != MPI_PROC_NULL && !has_room(ch, room);
    int rc = exchange_locked(ch, to, out, n,
                             is_here || is_starved ? MPI_PROC_NULL : from, in);

    if (is_here)
        in->got = n;
    while (in->has_come && !is_awaited(ch, is_data, in, n)) {
        const int code = set_aside(ch, from, in, room);

        in->has_come = false;
        rc = rc ? rc : code;
        if (rc == MPI_SUCCESS)
            rc = exchange_locked(ch, MPI_PROC_NULL, NULL, 0, from, in);
    }
    return rc || !is_starved ? rc : chempi_message_no_memory();
}

int chempi_comm_circle_step(const struct chempi_comm_channel *ch, bool is_data,
                            int to, const int64_t *out, int from, int64_t *in,
                            int n)
{
    int64_t words[VOTE_MAX]; /* room for any vote */
    struct input input = {.words = n < VOTE_MAX ? words : in,
                          .room = n < VOTE_MAX ? VOTE_MAX : n};
    struct early *room = NULL;
    int rc;

    chempi_lane_lock(&chempi_lane_main);
    rc = step_locked(ch, is_data, to, out, from, &input, n, &room);
    chempi_lane_unlock(&chempi_lane_main);
    free(room);
    if (rc || from == MPI_PROC_NULL)
        return rc;
    if (input.got == n && input.words != in)
        memcpy(in, words, (size_t)n * sizeof(*in));
    in[n - 1] = input.words[input.got - 1];
    return MPI_SUCCESS;
}
