/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The meeting of two groups; see meet.h.
 *
 *   M1  all members of a side introduce themselves to each other, before its
 *       root looks for the other side
 *   M2  the roots swap what they know, and hand it down: each member then knows
 *       all of both sides, in the same order, and the secret
 *   M3  all members of a side have taken the bond in before its root tells the
 *       other one that they have; nobody calls anybody before both have
 *   M4  who fails takes part in all that follows, without data: so each side
 *       hears of it, and both return an error. Contexts are then used by nobody
 */
#include "libchempi/didl/proc/meet.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "common/base/clock.h"
#include "common/base/sys.h"
#include "libchempi/api/api_impl.h"
#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/base/error.h"
#include "libchempi/didl/base/info.h"
#include "libchempi/didl/comm/comm_make.h"
#include "libchempi/didl/proc/port.h"
#include "libchempi/didl/transport/conn.h"
#include "libchempi/didl/transport/engine.h"
#include "libchempi/didl/transport/foreign.h"
#include "libchempi/didl/transport/progress.h"
#include "libchempi/didl/transport/sysmsg.h"

#define MEETING_MAGIC UINT32_C(0x4d454554) /* "MEET"; version 1 */
#define TICK_NS 50000000L                  /* between looks at the limit */

/* A secret on its way from a root to its side. */
struct envelope {
    uint8_t nonce[crypto_secretbox_NONCEBYTES];
    uint8_t sealed[CHEMPI_BOND_SECRET_BYTES + crypto_secretbox_MACBYTES];
};

/* What a root tells the other one, and then its side: before the introductions
 * of its own side, or of the other one. */
struct head {
    uint32_t magic;
    uint32_t context;                         /* in which that side receives */
    uint32_t count;                           /* introductions that follow */
    uint32_t is_first;                        /* this side is; to its members */
    uint32_t root;                            /* its rank in its side */
    uint32_t zero;                            /* introductions are aligned */
    uint8_t secret[CHEMPI_BOND_SECRET_BYTES]; /* to the other root */
    struct envelope envelope;                 /* to its members */
};

_Static_assert(sizeof(struct head) % _Alignof(struct chempi_introduction) == 0,
               "introductions follow it");

#define VERDICT_MAX 64u /* bytes of what a root says after its list */

/* One meeting, at one member. */
struct meeting {
    const struct chempi_meet *meet;
    struct chempi_comm_channel local;
    struct chempi_comm_channel down; /* the same, whose member 0 is the root */
    bool is_root;
    struct chempi_exchange *exchange; /* the root's */
    uint64_t deadline_ns;             /* until it has heard of the other one;
                                         0: none */
    bool has_heard;
    uint32_t ids[2]; /* contexts: to receive, and local */
    int id_count;
    struct chempi_introduction *own; /* [comm->size] */
};

static int no_memory(void)
{
    return chempi_error_set(MPI_ERR_NO_MEM, "no memory for a meeting of "
                                            "processes");
}

/* ---- waiting for the other root ---- */

struct wait {
    const struct meeting *m;
    void **data; /* NULL: wait until it is there, or has left */
    size_t *len;
    bool drains;
    bool ticks; /* there is a deadline */
    bool is_over;
    int error; /* MPI class; its words are noted */
};

static int class_of(const struct wait *w, int rc)
{
    if (rc == -ENOMEM)
        return MPI_ERR_NO_MEM;
    return w->m->has_heard ? MPI_ERR_OTHER : w->m->meet->error_class;
}

/* 1: over; 0: not yet; -errno. */
static int look(const struct wait *w, struct chempi_err *err)
{
    int rc;

    if (w->drains && chempi_exchange_is_drained(w->m->exchange))
        return 1;
    if (!w->data)
        rc = chempi_exchange_state(w->m->exchange, err);
    else
        rc = chempi_exchange_take(w->m->exchange, w->data, w->len, err);
    if (rc == -EAGAIN || (w->drains && rc == 1))
        return 0;
    return w->data && rc == 0 ? 1 : rc;
}

static bool is_over(void *arg)
{
    struct wait *w = arg;
    const struct chempi_meet *meet = w->m->meet;
    struct chempi_err err = {0};
    int rc = w->is_over ? 1 : look(w, &err);

    if (rc == 0 && !w->m->has_heard && meet->is_hopeless)
        w->error = meet->is_hopeless(meet);
    else if (rc < 0)
        w->error = chempi_error_set(class_of(w, rc), "%s",
                                    err.text[0] ? err.text : "lost");
    if (rc == 0 && w->error == MPI_SUCCESS && w->ticks &&
        chempi_clock_ns() >= w->m->deadline_ns)
        w->error = chempi_error_set(meet->error_class,
                                    "%s has not come within the time limit",
                                    meet->way);
    w->is_over = rc != 0 || w->error != MPI_SUCCESS;
    return w->is_over;
}

/* Nobody of this job can do anything about it. */
static void put_wait(struct chempi_wait_report *report, const void *object)
{
    const struct wait *w = object;

    chempi_wait_report_put(report, " for %s", w->m->meet->way);
    report->is_moving = true;
}

/* Sleeps have no end of their own: with a limit, something wakes them. */
static int wait_for(struct wait *w)
{
    struct chempi_pollset *set = chempi_ctx.services.pollset;
    struct chempi_poll_item tick = {.fd = -1};
    int rc = 0;

    w->ticks = w->m->deadline_ns && !w->m->has_heard;
    chempi_lane_lock(&chempi_lane_main);
    if (w->ticks)
        rc = chempi_pollset_tick(set, &tick, chempi_pollset_ticked, TICK_NS);
    rc = rc ? chempi_error_from(rc, NULL)
            : chempi_progress_wait_locked(is_over, w, put_wait, w);
    if (w->ticks)
        chempi_pollset_untick(set, &tick);
    chempi_lane_unlock(&chempi_lane_main);
    return rc ? rc : w->error;
}

/* ---- what the roots tell each other ---- */

/* M4: an error class, and the data if it is MPI_SUCCESS. */
static int tell(const struct meeting *m, int error, const void *data,
                size_t len)
{
    const int32_t class = error;
    const size_t total = sizeof(class) + (error ? 0 : len);
    char *message = chempi_sys->malloc(total);
    struct chempi_err err = {0};
    int rc;

    if (!message)
        return no_memory();
    memcpy(message, &class, sizeof(class));
    if (!error && len)
        memcpy(message + sizeof(class), data, len);
    chempi_lane_lock(&chempi_lane_main);
    rc = chempi_exchange_send(m->exchange, message, total, &err);
    chempi_lane_unlock(&chempi_lane_main);
    sodium_memzero(message, total);
    free(message);
    return rc ? chempi_error_set(MPI_ERR_OTHER, "%s", err.text) : MPI_SUCCESS;
}

/* *out is set only if the other root's side is well. */
static int hear(struct meeting *m, void **out, size_t *out_len)
{
    void *message = NULL;
    size_t len = 0;
    struct wait w = {.m = m, .data = &message, .len = &len};
    int32_t class = MPI_SUCCESS;
    int rc = wait_for(&w);

    if (rc)
        return rc;
    m->has_heard = true;
    chempi_lane_lock(&chempi_lane_main);
    chempi_exchange_limit(m->exchange, VERDICT_MAX);
    chempi_lane_unlock(&chempi_lane_main);
    if (len < sizeof(class)) {
        rc = chempi_error_set(MPI_ERR_OTHER,
                              "the other side's root says nothing");
    } else {
        memcpy(&class, message, sizeof(class));
        if (class != MPI_SUCCESS)
            rc = chempi_error_set(
                class > 0 && class <= MPI_ERR_LASTCODE ? class : MPI_ERR_OTHER,
                "the other side has failed");
    }
    if (rc) {
        free(message);
        return rc;
    }
    *out_len = len - sizeof(class);
    memmove(message, (char *)message + sizeof(class), *out_len);
    *out = message;
    return MPI_SUCCESS;
}

/* What a swap does instead of messages: the other root hears of an error, too.
 */
static int swap_roots(void *arg, int rc, const void *mine, size_t len,
                      void **out, size_t *out_len)
{
    struct meeting *m = arg;
    void *theirs = NULL;
    size_t their_len = 0;
    int code = tell(m, rc, mine, len);

    if (code == MPI_SUCCESS)
        code = hear(m, &theirs, &their_len);
    if (rc || code) {
        free(theirs);
        return rc ? rc : code;
    }
    *out = theirs;
    *out_len = their_len;
    return MPI_SUCCESS;
}

/* ---- the secret ---- */

/* Under which a root hands it down. */
static void make_key(uint8_t key[crypto_secretbox_KEYBYTES])
{
    static const char purpose[] = "chempi: secrets of bonds";

    (void)crypto_generichash(
        key, crypto_secretbox_KEYBYTES, (const uint8_t *)purpose,
        sizeof(purpose), chempi_ctx.services.secret, CHEMPI_JOB_SECRET_BYTES);
}

/* Members of other worlds do not know the job's secret: among them it is a
 * message as any other. */
static void seal_secret(const struct meeting *m, struct head *head)
{
    uint8_t key[crypto_secretbox_KEYBYTES];

    if (m->meet->comm->has_foreign)
        return;
    make_key(key);
    randombytes_buf(head->envelope.nonce, sizeof(head->envelope.nonce));
    (void)crypto_secretbox_easy(head->envelope.sealed, head->secret,
                                sizeof(head->secret), head->envelope.nonce,
                                key);
    sodium_memzero(head->secret, sizeof(head->secret));
    sodium_memzero(key, sizeof(key));
}

static int open_secret(const struct meeting *m, struct head *head)
{
    uint8_t key[crypto_secretbox_KEYBYTES];
    int rc;

    if (m->meet->comm->has_foreign)
        return MPI_SUCCESS;
    make_key(key);
    rc = crypto_secretbox_open_easy(head->secret, head->envelope.sealed,
                                    sizeof(head->envelope.sealed),
                                    head->envelope.nonce, key);
    sodium_memzero(key, sizeof(key));
    return rc ? chempi_error_set(MPI_ERR_INTERN,
                                 "the secret of a meeting is damaged")
              : MPI_SUCCESS;
}

/* ---- who is who ---- */

/* More members of the other side cannot be known. */
static uint32_t most_members(void)
{
    return CHEMPI_FOREIGN_MAX + chempi_ctx.services.rank_count;
}

static int check_theirs(const struct head *theirs, size_t len)
{
    if (len < sizeof(*theirs) || theirs->magic != MEETING_MAGIC ||
        theirs->root >= theirs->count || theirs->context == 0 ||
        theirs->context % CHEMPI_CONTEXT_STEP != 0 ||
        (len - sizeof(*theirs)) / sizeof(struct chempi_introduction) !=
            theirs->count ||
        (len - sizeof(*theirs)) % sizeof(struct chempi_introduction) != 0)
        return chempi_error_set(MPI_ERR_OTHER,
                                "what the other side tells of itself is "
                                "malformed (%zu bytes)",
                                len);
    return MPI_SUCCESS;
}

/* The root's: the first side's secret counts, and its side gets that. */
static int swap_lists(void *arg, int rc, const void *mine, size_t len,
                      void **out, uint64_t *out_len)
{
    const struct meeting *m = arg;
    struct head *theirs = NULL;
    size_t their_len = 0;
    int code = swap_roots(arg, rc, mine, len, (void **)&theirs, &their_len);

    if (code != MPI_SUCCESS)
        return code;
    code = check_theirs(theirs, their_len);
    if (code != MPI_SUCCESS) {
        free(theirs);
        return code;
    }
    theirs->is_first = chempi_exchange_is_first(m->exchange);
    if (theirs->is_first)
        memcpy(theirs->secret, ((const struct head *)mine)->secret,
               sizeof(theirs->secret));
    seal_secret(m, theirs);
    *out = theirs;
    *out_len = their_len;
    return MPI_SUCCESS;
}

/* The same error, or none, at all of this side. */
static int agree_here(const struct meeting *m, int rc)
{
    int64_t nothing = 0;

    return chempi_comm_max(&m->local, rc, &nothing, 1);
}

/* M1 */
static int introduce(struct meeting *m)
{
    const uint32_t size = m->meet->comm->size;
    struct chempi_introduction mine;
    struct chempi_err err = {0};
    int rc;

    chempi_lane_lock(&chempi_lane_main);
    rc = chempi_foreign_introduce(&mine, &err);
    chempi_lane_unlock(&chempi_lane_main);
    rc = rc ? chempi_error_from(rc, &err) : MPI_SUCCESS;
    m->own = chempi_sys->malloc(size * sizeof(*m->own));
    if (rc == MPI_SUCCESS && !m->own)
        rc = no_memory();
    rc = chempi_comm_allgather(&m->local, rc, &mine, sizeof(mine), m->own);
    return agree_here(m, rc);
}

/* ---- the root finds the other side ---- */

static int find_other(struct meeting *m)
{
    const struct chempi_meet *meet = m->meet;
    struct wait w = {.m = m};
    struct chempi_err err = {0};
    int rc;

    if (meet->limit_ns)
        m->deadline_ns = chempi_clock_ns() + meet->limit_ns;
    chempi_lane_lock(&chempi_lane_main);
    rc = meet->begin(meet, &m->exchange, &err);
    if (rc == 0)
        chempi_exchange_limit(m->exchange,
                              sizeof(int32_t) + sizeof(struct head) +
                                  most_members() *
                                      sizeof(struct chempi_introduction));
    chempi_lane_unlock(&chempi_lane_main);
    if (rc)
        return chempi_error_set(
            rc == -ENOMEM ? MPI_ERR_NO_MEM : meet->error_class, "%s", err.text);
    return wait_for(&w);
}

/* What this side tells the other one; NULL: no memory. */
static struct head *describe(const struct meeting *m, size_t *len)
{
    const uint32_t count = m->meet->comm->size;
    struct head *head;

    *len = sizeof(*head) + count * sizeof(*m->own);
    head = chempi_sys->calloc(1, *len);
    if (!head)
        return NULL;
    head->magic = MEETING_MAGIC;
    head->context = m->ids[0];
    head->count = count;
    head->root = (uint32_t)m->meet->root;
    randombytes_buf(head->secret, sizeof(head->secret));
    for (uint32_t i = 0; i < count; i++)
        ((struct chempi_introduction *)(void *)(head + 1))[i] = m->own[i];
    return head;
}

/* M2. *theirs is malloc'ed, at all members. */
static int swap(struct meeting *m, int rc, struct head **theirs)
{
    struct chempi_comm_far far = {.exchange = swap_lists, .arg = m};
    struct head *mine = NULL;
    void *out = NULL;
    size_t len = 0;
    size_t out_len;

    if (m->is_root) {
        if (rc == MPI_SUCCESS)
            rc = find_other(m);
        if (rc != MPI_SUCCESS)
            far.error = rc; /* nobody is there to hear of it */
        mine = describe(m, &len);
        if (!mine && rc == MPI_SUCCESS)
            rc = no_memory();
    }
    rc = chempi_comm_swap(&m->down, &far, rc, mine, len, &out, &out_len);
    if (mine)
        sodium_memzero(mine, len);
    free(mine);
    *theirs = out;
    return rc;
}

/* ---- the bond, and the communicator ---- */

/* The own side, and the other one, in the order of the bond. */
static int take_in(const struct meeting *m, struct head *theirs,
                   uint32_t *indexes)
{
    const uint32_t size = m->meet->comm->size;
    const uint32_t count = size + theirs->count;
    const struct chempi_introduction *others =
        (const struct chempi_introduction *)(const void *)(theirs + 1);
    struct chempi_introduction *members =
        chempi_sys->malloc((size_t)count * sizeof(*members));
    struct chempi_err err = {0};
    int rc = open_secret(m, theirs);

    if (rc == MPI_SUCCESS && !members)
        rc = no_memory();
    if (rc == MPI_SUCCESS) {
        const bool is_first = theirs->is_first;

        memcpy(members + (is_first ? 0 : theirs->count), m->own,
               size * sizeof(*members));
        memcpy(members + (is_first ? size : 0), others,
               theirs->count * sizeof(*members));
        chempi_lane_lock(&chempi_lane_main);
        rc = chempi_foreign_bind(theirs->secret, members, count, indexes, &err);
        chempi_lane_unlock(&chempi_lane_main);
        if (rc == -EPROTO)
            rc = chempi_error_set(MPI_ERR_COMM, "%s", err.text);
        else if (rc)
            rc = chempi_error_from(rc, &err);
        if (is_first) /* the other side is the second one */
            memmove(indexes, indexes + size, theirs->count * sizeof(*indexes));
    }
    sodium_memzero(theirs->secret, sizeof(theirs->secret));
    free(members);
    return rc;
}

/* M3. *remote: the other side's group. */
static int get_to_know(struct meeting *m, struct head *theirs,
                       struct chempi_group **remote)
{
    const size_t count = (size_t)m->meet->comm->size + theirs->count;
    uint32_t *indexes = chempi_sys->malloc(count * sizeof(*indexes));
    int rc = indexes ? take_in(m, theirs, indexes) : no_memory();

    if (rc != MPI_SUCCESS) {
        free(indexes);
        return rc;
    }
    *remote = chempi_group_make(theirs->count, indexes); /* it takes them */
    return *remote ? MPI_SUCCESS : no_memory();
}

/* M3: all members of both sides say how it went. */
static int agree(struct meeting *m, int rc)
{
    const struct chempi_comm_far far = {.exchange = swap_roots, .arg = m};
    void *nothing = NULL;
    size_t len;

    rc = agree_here(m, rc);
    rc = chempi_comm_swap(&m->down, &far, rc, "", 0, &nothing, &len);
    free(nothing);
    return rc;
}

/* From now on there is a connection between the sides, whose end tells that a
 * world is lost of which nobody has called anybody yet. */
static void call_other(const struct chempi_group *remote, uint32_t root)
{
    struct chempi_lane *lane = &chempi_lane_main;

    chempi_lane_lock(lane);
    chempi_sysmsg_answer(
        chempi_conn_peer(lane, chempi_group_proc(remote, root)),
        CHEMPI_SYSMSG_CREDIT, NULL, 0);
    chempi_engine_settle(lane);
    chempi_lane_unlock(lane);
}

/* What this root has said last shall come to the other one. */
static void leave_other(const struct meeting *m)
{
    struct wait w = {.m = m, .drains = true};

    if (m->exchange)
        (void)wait_for(&w); /* an error is the other one's, who hears it */
    chempi_lane_lock(&chempi_lane_main);
    chempi_exchange_close(m->exchange);
    chempi_lane_unlock(&chempi_lane_main);
}

static int agree_contexts(struct meeting *m)
{
    int rc = MPI_SUCCESS;

    while (m->id_count < 2 && rc == MPI_SUCCESS) {
        rc = chempi_comm_agree_context(&m->local, rc, &m->ids[m->id_count]);
        m->id_count += rc == MPI_SUCCESS;
    }
    return rc;
}

static int make(struct meeting *m, int rc, struct chempi_group *remote,
                uint32_t send_context, struct chempi_comm **out)
{
    if (rc == MPI_SUCCESS) {
        *out = chempi_comm_make_inter(m->meet->comm->local, remote,
                                      send_context, m->ids[0], m->ids[1]);
        return *out ? rc : no_memory(); /* the ids have gone with it */
    }
    while (m->id_count > 0)
        chempi_comm_return_context(m->ids[--m->id_count], rc);
    return rc;
}

int chempi_meet(const struct chempi_meet *meet, MPI_Comm *out)
{
    struct meeting m = {.meet = meet,
                        .local = chempi_comm_channel(meet->comm),
                        .is_root = meet->comm->rank == meet->root};
    struct chempi_group *remote = NULL;
    struct chempi_comm *made = NULL;
    struct head *theirs = NULL;
    uint32_t context = 0;
    int rc;

    m.down = m.local;
    m.down.first = meet->root;
    m.down.me = (m.local.me - meet->root + m.local.size) % m.local.size;
    rc = agree_contexts(&m);
    if (rc == MPI_SUCCESS)
        rc = introduce(&m);
    if (rc == MPI_SUCCESS) {
        rc = swap(&m, m.is_root ? meet->error : rc, &theirs);
        if (theirs)
            context = theirs->context;
        if (rc == MPI_SUCCESS)
            rc = agree(&m, get_to_know(&m, theirs, &remote));
    }
    if (m.is_root && rc == MPI_SUCCESS)
        call_other(remote, theirs->root);
    if (m.is_root)
        leave_other(&m);
    rc = make(&m, rc, remote, context, &made);
    chempi_group_release(remote);
    free(theirs);
    free(m.own);
    if (rc != MPI_SUCCESS)
        return rc;
    chempi_comm_inherit(made, meet->comm);
    *out = made->handle;
    return MPI_SUCCESS;
}

/* ---- MPI's functions ---- */

int chempi_meet_accept(const struct chempi_meet *meet,
                       struct chempi_exchange **out, struct chempi_err *err)
{
    return chempi_port_accept(meet->port, out, err);
}

int chempi_meet_connect(const struct chempi_meet *meet,
                        struct chempi_exchange **out, struct chempi_err *err)
{
    return chempi_port_connect(meet->port, out, err);
}

static int begin_join(const struct chempi_meet *meet,
                      struct chempi_exchange **out, struct chempi_err *err)
{
    return chempi_exchange_join(meet->fd, out, err);
}

static int check_comm(const struct chempi_comm *comm, int root)
{
    if (comm->is_inter)
        return chempi_error_set(MPI_ERR_COMM, "the communicator is an "
                                              "intercommunicator");
    if (root < 0 || (uint32_t)root >= comm->size)
        return chempi_error_set(MPI_ERR_ROOT,
                                "root %d is not in 0..%ld of the communicator",
                                root, (long)comm->size - 1);
    return MPI_SUCCESS;
}

/* Of the key "timeout", in seconds; what is none does not count. */
static uint64_t limit_of(const struct chempi_info *info)
{
    const char *value = info ? chempi_info_find(info, "timeout") : NULL;
    char *end;
    double seconds;

    if (!value)
        return 0;
    seconds = strtod(value, &end);
    if (end == value || *end != '\0' || !(seconds > 0) || seconds > 1e9)
        return 0;
    return (uint64_t)(seconds * 1e9) + 1;
}

/* Port name and info count at the root. */
static int meet_by_port(struct chempi_meet *meet, const char *port_name,
                        const struct chempi_info *info, MPI_Comm *newcomm)
{
    int rc = check_comm(meet->comm, meet->root);

    *newcomm = MPI_COMM_NULL;
    if (rc != MPI_SUCCESS)
        return rc;
    if (meet->comm->rank == meet->root) {
        meet->port = port_name;
        meet->limit_ns = limit_of(info);
        if (!port_name)
            meet->error = chempi_error_set(MPI_ERR_ARG, "argument port_name "
                                                        "must not be NULL");
    }
    return chempi_meet(meet, newcomm);
}

int chempi_proc_accept(const char *port_name, struct chempi_info *info,
                       int root, struct chempi_comm *comm, MPI_Comm *newcomm)
{
    struct chempi_meet meet = {.comm = comm,
                               .root = root,
                               .begin = chempi_meet_accept,
                               .way = "a caller of the port",
                               .error_class = MPI_ERR_PORT};

    return meet_by_port(&meet, port_name, info, newcomm);
}

int chempi_proc_connect(const char *port_name, struct chempi_info *info,
                        int root, struct chempi_comm *comm, MPI_Comm *newcomm)
{
    struct chempi_meet meet = {.comm = comm,
                               .root = root,
                               .begin = chempi_meet_connect,
                               .way = "the owner of the port",
                               .error_class = MPI_ERR_PORT};

    return meet_by_port(&meet, port_name, info, newcomm);
}

int chempi_proc_join(int fd, MPI_Comm *intercomm)
{
    const struct chempi_meet meet = {.comm = &chempi_comm_self,
                                     .begin = begin_join,
                                     .fd = fd,
                                     .way = "the other end of the socket",
                                     .error_class = MPI_ERR_OTHER};

    *intercomm = MPI_COMM_NULL;
    return chempi_meet(&meet, intercomm);
}

int chempi_proc_open_port(struct chempi_info *info, char *port_name)
{
    char name[CHEMPI_PORT_NAME_MAX];
    struct chempi_err err = {0};
    int rc;

    chempi_lane_lock(&chempi_lane_main);
    rc = chempi_port_open(info ? chempi_info_find(info, "ip_port") : NULL,
                          info ? chempi_info_find(info, "ip_address") : NULL,
                          name, &err);
    chempi_lane_unlock(&chempi_lane_main);
    if (rc)
        return chempi_error_set(rc == -ENOMEM ? MPI_ERR_NO_MEM : MPI_ERR_PORT,
                                "%s", err.text);
    memcpy(port_name, name, strlen(name) + 1);
    return MPI_SUCCESS;
}

int chempi_proc_close_port(const char *port_name)
{
    struct chempi_err err = {0};
    int rc;

    chempi_lane_lock(&chempi_lane_main);
    rc = chempi_port_close(port_name, &err);
    chempi_lane_unlock(&chempi_lane_main);
    return rc ? chempi_error_set(MPI_ERR_PORT, "%s", err.text) : MPI_SUCCESS;
}
