/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * System messages; see sysmsg.h. On the wire a whole message is one of kind
 * SYSTEM with the head and the body behind it, and the length of the head in
 * place of a context. A split one is two of consecutive numbers: the head and
 * the body's length, then the body, which waits for consent.
 */
#include "libchempi/didl/transport/sysmsg.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
#include "common/base/sys.h"
#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/error/fatal.h"
#include "libchempi/didl/transport/worlds/foreign.h"

enum {
    HANDLERS_MAX = -CHEMPI_SYSMSG_LAST + 1,
    SCRATCH_BYTES = 16384 /* larger whole messages are packed on the heap */
};

/* The account of requests to and from a peer; peer->system. */
struct chempi_sysmsg_peer {
    struct chempi_list waiting; /* chempi_sysmsg.outgoing: for quota */
    uint32_t out;               /* cost of requests handed to `waiting` of the
                                   peer, wraps */
    uint32_t credit;            /* of these, given back, wraps */
    uint32_t repaid;            /* cost of the peer's requests given back */
    uint32_t told;              /* what the peer knows of repaid */
    uint32_t quota;             /* of requests, at either end */
    struct chempi_sysmsg_room *room; /* of the body that comes next */
};

/* What is kept for one lane. */
struct chempi_sysmsg_lane {
    uint64_t waiting; /* for quota, all peers */
    struct chempi_sysmsg *spare[16];
    uint32_t spare_count;
    unsigned char scratch[SCRATCH_BYTES];
};

static const struct chempi_sysmsg_handler *handlers[HANDLERS_MAX];

static inline struct chempi_sysmsg_lane *lane_of(const struct chempi_peer *peer)
{
    return peer->lane->system;
}

/* Both ends compute it. */
static uint32_t quota_of(uint32_t proc)
{
    const uint32_t own = (uint32_t)chempi_setting(CHEMPI_SET_SYSMSG_QUOTA);

    if (!chempi_foreign_is(proc))
        return own;
    return own < chempi_foreign_at(proc)->sysmsg_quota
               ? own
               : chempi_foreign_at(proc)->sysmsg_quota;
}

/* Both ends compute it. */
static uint32_t cost_of(uint32_t head_len, uint64_t body_len)
{
    return CHEMPI_SYSMSG_COST + head_len +
           (uint32_t)(body_len < CHEMPI_SYSMSG_BODY_COST_MAX
                          ? body_len
                          : CHEMPI_SYSMSG_BODY_COST_MAX);
}

/* The peer's account, which is opened at the first request; NULL: out of
 * memory. */
static struct chempi_sysmsg_peer *account_of(struct chempi_peer *peer)
{
    struct chempi_sysmsg_peer *account = peer->system;

    if (CHEMPI_LIKELY(account != NULL))
        return account;
    account = chempi_sys->calloc(1, sizeof(*account));
    if (!account)
        return NULL;
    chempi_list_init(&account->waiting);
    account->quota = quota_of(peer->proc);
    peer->system = account;
    return account;
}

/* ---- quota, and sending ---- */

/* Give quota back. The peer is told of a quarter at the latest: its largest
 * request fits beside what it has not been told of. */
static void repay(struct chempi_peer *peer, uint32_t cost)
{
    struct chempi_sysmsg_peer *account = peer->system;

    account->repaid += cost;
    if (account->repaid - account->told < account->quota / 4)
        return;
    account->told = account->repaid;
    chempi_sysmsg_answer(peer, CHEMPI_SYSMSG_REPAID, &account->repaid,
                         sizeof(account->repaid));
}

static void complete(struct chempi_sysmsg *msg, int status)
{
    free(msg->packed);
    msg->packed = NULL;
    if (msg->repay)
        repay(msg->peer, msg->repay);
    msg->done(msg, status);
}

static void admit(struct chempi_sysmsg *msg)
{
    if (!msg->is_answer)
        msg->peer->system->out += cost_of(msg->head_len, msg->body_len);
    chempi_engine_queue(msg->peer, &msg->outgoing);
}

static bool has_quota(const struct chempi_sysmsg *msg)
{
    const struct chempi_sysmsg_peer *peer = msg->peer->system;

    return peer->out - peer->credit + cost_of(msg->head_len, msg->body_len) <=
           peer->quota;
}

int chempi_sysmsg_send(struct chempi_sysmsg *msg)
{
    struct chempi_sysmsg_peer *peer;

    msg->outgoing.is_system = true;
    msg->packed = NULL;
    msg->is_split = false;
    msg->is_head_gone = false;
    if (!msg->is_answer) {
        peer = account_of(msg->peer);
        if (!peer)
            return -ENOMEM;
        if (!msg->peer->is_lost &&
            (!chempi_list_is_empty(&peer->waiting) || !has_quota(msg))) {
            chempi_list_append(&peer->waiting, &msg->outgoing.link);
            lane_of(msg->peer)->waiting++;
            return 0;
        }
    }
    admit(msg);
    return 0;
}

/* The peer has given quota back. */
static void admit_waiting(struct chempi_sysmsg_lane *lane,
                          struct chempi_sysmsg_peer *peer)
{
    while (!chempi_list_is_empty(&peer->waiting)) {
        struct chempi_sysmsg *msg =
            CHEMPI_CONTAINER_OF(chempi_list_first(&peer->waiting),
                                struct chempi_sysmsg, outgoing.link);

        if (!has_quota(msg))
            return;
        chempi_list_remove(&msg->outgoing.link);
        lane->waiting--;
        admit(msg);
    }
}

static struct chempi_envelope envelope_of(const struct chempi_sysmsg *msg)
{
    return (struct chempi_envelope){
        .context = msg->head_len,
        .source = (int32_t)chempi_ctx.services.proc,
        .tag = msg->tag,
        .kind = CHEMPI_KIND_SYSTEM,
        .flags = (uint16_t)((msg->is_answer ? 0 : CHEMPI_ENVELOPE_REQUEST) |
                            (msg->is_urgent ? CHEMPI_ENVELOPE_URGENT : 0)),
    };
}

static void pack(const struct chempi_sysmsg *msg, unsigned char *dst)
{
    memcpy(dst, msg->head, msg->head_len);
    dst += msg->head_len;
    if (msg->iter) {
        chempi_segment_seek(msg->iter, 0);
        (void)chempi_segment_pack(msg->iter, dst, (size_t)msg->body_len);
    } else if (msg->body_len) {
        memcpy(dst, msg->body, (size_t)msg->body_len);
    }
}

static int inject(struct chempi_sysmsg *msg, struct chempi_conn_route *route,
                  struct chempi_envelope *env)
{
    int rc;

    chempi_engine_stamp(msg->peer, env);
    rc = route->ops->inject(route->ep, env, lane_of(msg->peer)->scratch,
                            (size_t)env->len, false);
    if (rc == 0)
        chempi_engine_left(msg->peer, route, env);
    return rc;
}

static int send_tx(struct chempi_sysmsg *msg, struct chempi_conn_route *route)
{
    int rc;

    msg->tx.protocol = route->protocol;
    chempi_engine_stamp(msg->peer, &msg->tx.env);
    rc = route->ops->send(route->ep, &msg->tx);
    if (rc == CHEMPI_DONE || rc == CHEMPI_PENDING)
        chempi_engine_left(msg->peer, route, &msg->tx.env);
    return rc;
}

/* Head and body in one message; -EMSGSIZE: there is no memory to pack them. */
static int send_whole(struct chempi_sysmsg *msg,
                      struct chempi_conn_route *route)
{
    struct chempi_envelope env = envelope_of(msg);
    const struct chempi_dev_caps *caps = route->ep->dev->caps;

    env.len = msg->head_len + msg->body_len;
    if (env.len <= caps->inject_max && env.len <= SCRATCH_BYTES) {
        pack(msg, lane_of(msg->peer)->scratch);
        return inject(msg, route, &env);
    }
    if (!msg->packed) {
        msg->packed = chempi_sys->malloc((size_t)env.len);
        if (!msg->packed)
            return -EMSGSIZE;
        pack(msg, msg->packed);
    }
    msg->tx.env = env;
    msg->tx.buf = msg->packed;
    msg->tx.iter = NULL;
    msg->tx.needs_consent = false;
    msg->tx.may_keep = false;
    return send_tx(msg, route);
}

static int send_split_head(struct chempi_sysmsg *msg)
{
    struct chempi_envelope env = envelope_of(msg);
    unsigned char *scratch = lane_of(msg->peer)->scratch;

    env.len = msg->head_len + sizeof(msg->body_len);
    env.flags |= CHEMPI_ENVELOPE_SPLIT;
    memcpy(scratch, msg->head, msg->head_len);
    memcpy(scratch + msg->head_len, &msg->body_len, sizeof(msg->body_len));
    return inject(msg, chempi_conn_route(msg->peer, env.len), &env);
}

static int send_body(struct chempi_sysmsg *msg)
{
    msg->tx.env = envelope_of(msg);
    msg->tx.env.tag = CHEMPI_SYSMSG_BODY;
    msg->tx.env.flags &= CHEMPI_ENVELOPE_URGENT;
    msg->tx.env.len = msg->body_len;
    msg->tx.buf = msg->body;
    msg->tx.iter = msg->iter;
    msg->tx.needs_consent = true;
    msg->tx.may_keep = false;
    if (msg->iter)
        chempi_segment_seek(msg->iter, 0);
    return send_tx(msg, chempi_conn_route(msg->peer, msg->body_len));
}

static int send_split(struct chempi_sysmsg *msg)
{
    int rc;

    if (!msg->is_head_gone) {
        rc = send_split_head(msg);
        if (rc)
            return rc;
        msg->is_head_gone = true;
    }
    return send_body(msg);
}

static struct chempi_sysmsg *msg_of(struct chempi_outgoing *out)
{
    return CHEMPI_CONTAINER_OF(out, struct chempi_sysmsg, outgoing);
}

static int send_outgoing(struct chempi_outgoing *out)
{
    struct chempi_sysmsg *msg = msg_of(out);
    const uint64_t len = msg->head_len + msg->body_len;
    struct chempi_conn_route *route = chempi_conn_route(msg->peer, len);
    int rc;

    if (!msg->is_split && (len <= route->eager_max || !msg->body_len)) {
        rc = send_whole(msg, route);
        if (rc != -EMSGSIZE)
            return rc;
    }
    msg->is_split = true;
    return send_split(msg);
}

static void finish_outgoing(struct chempi_outgoing *out, int rc)
{
    if (rc != CHEMPI_PENDING)
        complete(msg_of(out), rc);
}

static void sent(struct chempi_tx *tx, int status)
{
    complete(CHEMPI_CONTAINER_OF(tx, struct chempi_sysmsg, tx), status);
}

/* ---- short answers ---- */

static CHEMPI_COLD void die_unanswered(const struct chempi_peer *peer)
{
    chempi_fatal_die("out of memory for an answer to rank %u, which would "
                     "wait for it for ever; use less memory",
                     peer->proc);
}

/* Each synchronous message has an answer, so a few are kept for the next. */
static void recycle_posted(struct chempi_sysmsg *msg, int status)
{
    struct chempi_sysmsg_lane *lane = lane_of(msg->peer);

    /* A lost peer waits for no answer; one that is there does. */
    if (CHEMPI_UNLIKELY(status == -ENOMEM || status == -ENOSPC))
        die_unanswered(msg->peer);
    if (lane->spare_count < CHEMPI_ARRAY_LEN(lane->spare))
        lane->spare[lane->spare_count++] = msg;
    else
        free(msg);
}

static struct chempi_sysmsg *alloc_posted(struct chempi_sysmsg_lane *lane)
{
    struct chempi_sysmsg *msg;

    if (lane->spare_count == 0)
        return chempi_sys->calloc(1, sizeof(*msg));
    msg = lane->spare[--lane->spare_count];
    *msg = (struct chempi_sysmsg){0};
    return msg;
}

int chempi_sysmsg_post(struct chempi_peer *peer, int32_t tag, const void *head,
                       size_t head_len)
{
    struct chempi_sysmsg *msg = alloc_posted(lane_of(peer));

    if (!msg)
        return -ENOMEM;
    msg->peer = peer;
    msg->tag = tag;
    msg->head_len = (uint32_t)head_len;
    if (head_len)
        memcpy(msg->head, head, head_len);
    msg->is_answer = true;
    msg->done = recycle_posted;
    return chempi_sysmsg_send(msg);
}

void chempi_sysmsg_answer(struct chempi_peer *peer, int32_t tag,
                          const void *head, size_t head_len)
{
    if (CHEMPI_UNLIKELY(chempi_sysmsg_post(peer, tag, head, head_len) != 0))
        die_unanswered(peer);
}

/* The peer has given quota back: it tells the sum of all that it ever has. */
static void on_repaid(struct chempi_sysmsg_in *in)
{
    const uint32_t *repaid = in->head;
    struct chempi_sysmsg_peer *peer = in->peer->system;

    if (!peer || *repaid - peer->credit > peer->out - peer->credit)
        return; /* more than was ever asked for */
    peer->credit = *repaid;
    admit_waiting(lane_of(in->peer), peer);
}

/* ---- receiving ---- */

static CHEMPI_COLD void ignore(const struct chempi_peer *peer,
                               const struct chempi_envelope *env)
{
    chempi_log(CHEMPI_LOG_WARNING, "sysmsg",
               "ignored a system message %d of %llu bytes with a head of %u "
               "from rank %u",
               env->tag, (unsigned long long)env->len, env->context,
               peer->proc);
}

/* Who takes a message that is well formed; else NULL. Lanes other than the
 * first have only system messages about ordinary ones. */
static const struct chempi_sysmsg_handler *
handler_of(uint32_t lane, const struct chempi_envelope *env)
{
    const uint64_t behind =
        env->flags & CHEMPI_ENVELOPE_SPLIT ? sizeof(uint64_t) : 0;
    const struct chempi_sysmsg_handler *handler;

    if (env->tag >= 0 || env->tag < CHEMPI_SYSMSG_LAST ||
        (lane > 0 && env->tag < CHEMPI_SYSMSG_REPAID))
        return NULL;
    handler = handlers[-env->tag];
    if (!handler || env->context < handler->head_min ||
        env->context > handler->head_max || env->len < env->context + behind)
        return NULL;
    return handler;
}

bool chempi_sysmsg_is_open(const struct chempi_envelope *env)
{
    const struct chempi_sysmsg_handler *handler = handler_of(0, env);

    return handler && handler->is_open;
}

/* Have the handler name the room for a body that comes next. */
static void begin(const struct chempi_sysmsg_handler *handler,
                  struct chempi_sysmsg_in *in)
{
    struct chempi_sysmsg_room *room =
        handler->begin ? handler->begin(in) : NULL;

    if (!room) {
        if (in->cost)
            repay(in->peer, in->cost);
        return;
    }
    room->peer = in->peer;
    room->len = in->body_len;
    room->cost = in->cost;
    room->in = (struct chempi_incoming){
        .rx = {.buf = room->iter ? NULL : room->buf,
               .iter = room->iter,
               .cap = room->len},
        .kind = CHEMPI_INCOMING_SYSTEM,
        .is_blocking = room->is_ordered,
    };
    in->peer->system->room = room;
}

static bool arrived(struct chempi_peer *peer, const struct chempi_envelope *env,
                    const void *data)
{
    const struct chempi_sysmsg_handler *handler =
        handler_of(peer->lane->number, env);
    const bool is_split = env->flags & CHEMPI_ENVELOPE_SPLIT;
    _Alignas(16) unsigned char head[CHEMPI_SYSMSG_HEAD_MAX];
    struct chempi_sysmsg_in in = {
        .peer = peer, .tag = env->tag, .head_len = env->context};

    if (!handler) {
        ignore(peer, env);
        return true;
    }
    if ((env->flags & (CHEMPI_ENVELOPE_REQUEST | CHEMPI_ENVELOPE_SPLIT)) &&
        !account_of(peer))
        return false;
    if (in.head_len)
        memcpy(head, data, in.head_len);
    in.head = head;
    in.body_len = env->len - in.head_len;
    if (is_split)
        memcpy(&in.body_len, (const char *)data + in.head_len,
               sizeof(in.body_len));
    else if (in.body_len)
        in.body = (const char *)data + in.head_len;
    if (env->flags & CHEMPI_ENVELOPE_REQUEST)
        in.cost = cost_of(in.head_len, in.body_len);
    if (is_split) {
        begin(handler, &in);
        return true;
    }
    handler->run(&in);
    if (in.cost)
        repay(peer, in.cost);
    return true;
}

static void delivered(struct chempi_incoming *incoming, int status)
{
    struct chempi_sysmsg_room *room =
        CHEMPI_CONTAINER_OF(incoming, struct chempi_sysmsg_room, in);
    struct chempi_peer *peer = room->peer;
    const bool is_blocking = peer->is_blocked && incoming->is_blocking;
    uint32_t cost = room->cost;

    room->done(room, status, &cost);
    if (cost)
        repay(peer, cost);
    if (is_blocking)
        chempi_engine_unblock(peer);
}

static struct chempi_incoming *room_of(struct chempi_peer *peer,
                                       const struct chempi_envelope *env)
{
    struct chempi_sysmsg_room *room = peer->system ? peer->system->room : NULL;

    if (!room)
        return NULL;
    peer->system->room = NULL;
    if (env->len == room->len)
        return &room->in;
    delivered(&room->in, -EPROTO);
    chempi_conn_set_lost(peer->lane, peer->proc,
                         "it sent a system message of another length than it "
                         "said");
    return NULL;
}

/* ---- the peer is lost ---- */

static void lost(struct chempi_peer *peer)
{
    struct chempi_sysmsg_peer *account = peer->system;
    struct chempi_sysmsg_room *room;

    if (!account)
        return;
    room = account->room;
    account->room = NULL;
    if (room)
        delivered(&room->in, -EPIPE);
    while (!chempi_list_is_empty(&account->waiting)) {
        struct chempi_outgoing *out = CHEMPI_CONTAINER_OF(
            chempi_list_first(&account->waiting), struct chempi_outgoing, link);

        chempi_list_remove(&out->link);
        lane_of(peer)->waiting--;
        complete(msg_of(out), -EPIPE);
    }
}

uint64_t chempi_sysmsg_waiting_count(const struct chempi_lane *lane)
{
    return lane->system->waiting;
}

/* ---- what the engine needs ---- */

static void tell_credit(struct chempi_peer *peer)
{
    chempi_sysmsg_answer(peer, CHEMPI_SYSMSG_CREDIT, NULL, 0);
}

static void on_credit(struct chempi_sysmsg_in *in)
{
    (void)in; /* the envelope has said it */
}

/* What MATCHED says. */
struct matched {
    uint32_t first;
    uint32_t count;
};

/* Without a struct chempi_sysmsg, if nothing is before it and there is room. */
static bool inject_matched(struct chempi_peer *peer,
                           const struct matched *matched)
{
    struct chempi_conn_route *route = chempi_conn_route(peer, sizeof(*matched));
    struct chempi_envelope env = {
        .len = sizeof(*matched),
        .context = sizeof(*matched),
        .source = (int32_t)chempi_ctx.services.proc,
        .tag = CHEMPI_SYSMSG_MATCHED,
        .kind = CHEMPI_KIND_SYSTEM,
    };

    if (!chempi_list_is_empty(&peer->waiting) ||
        sizeof(*matched) > route->inject_max)
        return false;
    chempi_engine_stamp(peer, &env);
    if (route->ops->inject(route->ep, &env, matched, sizeof(*matched), false))
        return false;
    chempi_engine_left(peer, route, &env);
    return true;
}

static void tell_matched(struct chempi_peer *peer)
{
    const struct matched matched = {peer->matched_first, peer->matched_count};

    peer->matched_count = 0;
    if (!peer->is_lost && !inject_matched(peer, &matched))
        chempi_sysmsg_answer(peer, CHEMPI_SYSMSG_MATCHED, &matched,
                             sizeof(matched));
}

/* Many that are matched in a row are told of at once. */
static void note_matched(struct chempi_peer *peer, uint32_t serial)
{
    if (peer->matched_count == 0) {
        peer->matched_first = serial;
        chempi_engine_mark(peer);
    } else if (serial != peer->matched_first + peer->matched_count) {
        const struct matched matched = {peer->matched_first,
                                        peer->matched_count};

        chempi_sysmsg_answer(peer, CHEMPI_SYSMSG_MATCHED, &matched,
                             sizeof(matched));
        peer->matched_first = serial;
        peer->matched_count = 0;
    }
    peer->matched_count++;
}

/* The sync sends with these numbers; those that were taken back are not
 * there. By ages, since numbers wrap: the older, the larger. */
static void on_matched(struct chempi_sysmsg_in *in)
{
    const struct matched *matched = in->head;
    const uint32_t next = (uint32_t)in->peer->serial_out;
    const uint32_t first_age = next - matched->first;

    CHEMPI_LIST_FOR_SAFE (pos, &in->peer->sync) {
        struct chempi_request *req =
            CHEMPI_CONTAINER_OF(pos, struct chempi_request, match_link);
        const uint32_t age = next - req->u.tx.env.serial;

        if (age > first_age)
            continue;
        if (first_age - age >= matched->count)
            return; /* nor do later ones */
        chempi_list_remove(&req->match_link);
        req->is_queued = false;
        chempi_request_progress(req, MPI_SUCCESS);
    }
}

/* ---- start and end ---- */

void chempi_sysmsg_register(int32_t tag,
                            const struct chempi_sysmsg_handler *handler)
{
    handlers[-tag] = handler;
}

void chempi_sysmsg_init(void)
{
    static const struct chempi_sysmsg_handler matched = {
        sizeof(struct matched), sizeof(struct matched), on_matched, NULL, true};
    static const struct chempi_sysmsg_handler credit = {0, 0, on_credit, NULL,
                                                        true};
    static const struct chempi_sysmsg_handler repaid = {
        sizeof(uint32_t), sizeof(uint32_t), on_repaid, NULL, true};
    static const struct chempi_engine_system system = {
        .arrived = arrived,
        .room = room_of,
        .delivered = delivered,
        .send = send_outgoing,
        .finish = finish_outgoing,
        .sent = sent,
        .credit = tell_credit,
        .matched = note_matched,
        .tell_matched = tell_matched,
        .lost = lost,
    };
    static struct chempi_sysmsg_lane first;

    chempi_lane_main.system = &first;
    chempi_engine_set_system(&system);
    chempi_conn_on_lost(chempi_engine_mark);
    chempi_sysmsg_register(CHEMPI_SYSMSG_MATCHED, &matched);
    chempi_sysmsg_register(CHEMPI_SYSMSG_CREDIT, &credit);
    chempi_sysmsg_register(CHEMPI_SYSMSG_REPAID, &repaid);
}

void chempi_sysmsg_fini(struct chempi_lane *lane)
{
    struct chempi_sysmsg_lane *own = lane->system;

    while (own && own->spare_count > 0)
        free(own->spare[--own->spare_count]);
    if (lane->number > 0)
        free(own);
    lane->system = NULL;
}

int chempi_sysmsg_open_lane(struct chempi_lane *lane)
{
    lane->system = chempi_sys->calloc(1, sizeof(*lane->system));
    return lane->system ? 0 : -ENOMEM;
}
