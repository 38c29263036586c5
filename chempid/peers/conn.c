/* SPDX-License-Identifier: BSD-3-Clause */
/* A daemon's connections; see conn.h. */
#define _GNU_SOURCE /* struct ucred, POLLRDHUP */
#include "chempid/peers/conn.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sodium.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chempid/peers/users.h"
#include "chempid/tree/nodes/members.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/sys.h"
#include "common/control/msg.h"
#include "common/fd/rights.h"

#define STRANGER_LEN offsetof(struct chempi_conn, link)

_Static_assert(STRANGER_LEN <= CHEMPI_CONN_UNPROVEN_BYTES,
               "what a stranger costs (N1)");

#define PURPOSE "chempid" /* of the handshake */

#define CLOSED_AT_KEY                                                          \
    "it closed the connection when it knew this node's key (is that revoked "  \
    "there, or not allowed?)"

void chempi_conns_init(struct chempi_conns *conns, struct ev_loop *loop,
                       const char *name, const struct chempi_secrets *secrets,
                       bool serves_users, uint64_t descriptors,
                       const struct chempi_conn_ops *ops, void *arg)
{
    *conns = (struct chempi_conns){.loop = loop,
                                   .name = name,
                                   .secrets = secrets,
                                   .ops = ops,
                                   .arg = arg,
                                   .serves_users = serves_users};
    chempi_list_init(&conns->all);
    chempi_list_init(&conns->strangers);
    chempi_user_shares_init(&conns->shares, descriptors,
                            serves_users ? 0 : geteuid());
}

static void destroy(struct chempi_conn *c)
{
    struct chempi_conns *conns = c->conns;

    ev_io_stop(conns->loop, &c->io);
    ev_timer_stop(conns->loop, &c->limit);
    if (c->resolve)
        chempi_resolve_stop(c->resolve);
    free(c->resolve);
    if (c->fd >= 0)
        (void)close(c->fd); /* unproven: nothing of value was sent */
    if (!c->is_proven && c->kind == CHEMPI_CONN_INBOUND)
        conns->unproven--;
    chempi_list_remove(&c->fellow);
    if (c->has_link) {
        chempi_link_close(&c->link);
        chempi_room_fini(&c->room);
    }
    chempi_handshake_fini(&c->shake);
    chempi_list_remove(&c->entry);
    if (c->user)
        chempi_user_shares_leave(&conns->shares, c->user,
                                 CHEMPI_USER_SHARES_CONNS);
    free(c);
}

void chempi_conns_fini(struct chempi_conns *conns)
{
    CHEMPI_LIST_FOR_SAFE (e, &conns->all)
        destroy(CHEMPI_CONTAINER_OF(e, struct chempi_conn, entry));
    chempi_user_shares_fini(&conns->shares);
}

/* N3 */
static void lose(struct chempi_conn *c, const char *text)
{
    chempi_list_remove(&c->entry); /* nobody finds it for a new message */
    c->conns->ops->on_lost(c, text);
    destroy(c);
}

void chempi_conns_end(struct chempi_conn *conn, const char *text)
{
    lose(conn, text);
}

/* A client of ours learns why, a stranger does not. */
static void tell_client(struct chempi_conn *c, const char *why)
{
    struct chempi_writer *w;

    if (c->kind != CHEMPI_CONN_LOCAL || !c->is_proven)
        return;
    w = chempi_link_begin(&c->link, CHEMPI_MSG_REPLY, 0);
    chempi_wire_put_u32(w, EINVAL);
    chempi_wire_put_str(w, why);
    chempi_link_end(&c->link);
}

static void refuse_and_log(struct chempi_conn *c, const char *why, bool is_said)
{
    char text[CHEMPI_TEXT_MAX];

    tell_client(c, why);
    (void)snprintf(text, sizeof(text), "%.400s: %.500s", c->where, why);
    if (c->kind != CHEMPI_CONN_OUTBOUND && is_said)
        chempi_log(CHEMPI_LOG_WARNING, "conn", "refused %s", text);
    lose(c, text);
}

static void refuse(struct chempi_conn *c, const char *why)
{
    refuse_and_log(c, why, true);
}

/* For too many clients: such users try again and again. */
static void refuse_crowd(struct chempi_conn *c, const char *why)
{
    struct chempi_conns *conns = c->conns;
    const bool is_said =
        ev_now(conns->loop) - conns->complained > CHEMPI_CONN_COMPLAINT_S;

    if (is_said)
        conns->complained = ev_now(conns->loop);
    refuse_and_log(c, why, is_said);
}

/* ---- frames -------------------------------------------------------------- */

static int take_greeting(struct chempi_conn *c,
                         const struct chempi_frame *frame,
                         struct chempi_err *err)
{
    struct chempi_reader r;
    uint32_t version;
    const char *name;

    chempi_wire_read(&r, frame->data, frame->len);
    version = chempi_wire_get_u32(&r);
    name = chempi_wire_get_str(&r, sizeof(c->peer));
    if (frame->type != CHEMPI_MSG_GREET || !chempi_wire_is_done(&r))
        return chempi_err_set(err, -EBADMSG, "it did not greet");
    if (version != CHEMPI_CONTROL_VERSION)
        return chempi_err_set(err, -EPROTO,
                              "it speaks version %u of the control protocol, "
                              "we speak %u",
                              version, CHEMPI_CONTROL_VERSION);
    if (c->kind == CHEMPI_CONN_INBOUND && !chempi_members_is_name(name))
        return chempi_err_set(err, -EBADMSG, "it has no node name");
    if (c->kind == CHEMPI_CONN_OUTBOUND && c->peer[0] &&
        strcmp(name, c->peer) != 0)
        return chempi_err_set(err, -EINVAL,
                              "the daemon there is of node %s, not %s", name,
                              c->peer);
    if (c->kind != CHEMPI_CONN_LOCAL &&
        chempi_trust_check(&c->conns->secrets->trust,
                           chempi_handshake_peer(&c->shake), name, err))
        return err->code;
    memcpy(c->peer, name, strlen(name) + 1);
    c->is_greeted = true;
    c->link.ch.in_max = CHEMPI_TREE_MAX;
    return c->conns->ops->on_greet(c, err);
}

static int take(struct chempi_link *link, const struct chempi_frame *frame,
                struct chempi_err *err)
{
    struct chempi_conn *c = link->arg;

    c->heard_ns = chempi_clock_ns();
    if (!c->is_greeted) /* N2 */
        return take_greeting(c, frame, err);
    return c->conns->ops->on_frame(c, frame, err);
}

static void link_lost(struct chempi_link *link, int code,
                      const struct chempi_err *err)
{
    struct chempi_conn *c = link->arg;

    if (*c->gave_up)
        lose(c, c->gave_up);
    else if (code == -EPIPE && !c->is_greeted &&
             c->kind == CHEMPI_CONN_OUTBOUND)
        lose(c, CLOSED_AT_KEY);
    else if (code == -EPIPE)
        lose(c, "the connection was closed");
    else if (code == -EDQUOT)
        refuse_crowd(c, err->text);
    else
        refuse(c, err->text);
}

static void greet(struct chempi_conn *c)
{
    struct chempi_writer *w = chempi_link_begin(&c->link, CHEMPI_MSG_GREET, 0);

    chempi_wire_put_u32(w, CHEMPI_CONTROL_VERSION);
    chempi_wire_put_str(w, c->conns->name);
    chempi_link_end(&c->link);
}

static void prepare_link(struct chempi_conn *c)
{
    chempi_link_prepare(&c->link, c->conns->loop, CHEMPI_CONN_GREET_MAX,
                        CHEMPI_QUEUE_MAX);
    c->link.on_frame = take;
    c->link.on_lost = link_lost;
    c->link.arg = c;
    if (c->kind != CHEMPI_CONN_LOCAL) {
        chempi_link_share(&c->link);
        ev_set_priority(&c->link.in, 1); /* before clients: for the beats */
    }
    c->has_link = true;
    greet(c);
}

static struct chempi_conn *create(struct chempi_conns *conns,
                                  enum chempi_conn_kind kind, int fd)
{
    const bool is_stranger = kind == CHEMPI_CONN_INBOUND;
    struct chempi_conn *c =
        chempi_sys->calloc(1, is_stranger ? STRANGER_LEN : sizeof(*c));

    if (!c)
        return NULL;
    c->conns = conns;
    c->kind = kind;
    c->fd = fd;
    chempi_list_init(&c->fellow);
    chempi_list_append(&conns->all, &c->entry);
    if (!is_stranger)
        prepare_link(c);
    return c;
}

/* It has proven the key: room for all that follows. Only the list knows where
 * it was. NULL: no memory, and nothing is changed. */
static struct chempi_conn *grow(struct chempi_conn *c)
{
    struct chempi_conns *conns = c->conns;
    struct chempi_conn *whole;

    if (c->has_link)
        return c;
    whole = chempi_sys->calloc(1, sizeof(*whole));
    if (!whole)
        return NULL;
    ev_io_stop(conns->loop, &c->io);
    ev_timer_stop(conns->loop, &c->limit);
    chempi_list_remove(&c->entry);
    chempi_list_remove(&c->fellow);
    memcpy(whole, c, STRANGER_LEN);
    chempi_list_init(&whole->fellow);
    whole->shake.arg = whole;
    sodium_memzero(c, STRANGER_LEN);
    free(c);
    chempi_list_append(&conns->all, &whole->entry);
    prepare_link(whole);
    return whole;
}

static bool is_known(const struct chempi_conn *c)
{
    const struct chempi_conns *conns = c->conns;

    for (uint32_t i = 0; i < conns->known_count && i < CHEMPI_CONN_KNOWN_MAX;
         i++)
        if (memcmp(&conns->known[i], &c->net, sizeof(c->net)) == 0)
            return true;
    return false;
}

/* It has proven the key. */
static void remember(const struct chempi_conn *c)
{
    struct chempi_conns *conns = c->conns;

    if (!is_known(c))
        conns->known[conns->known_count++ % CHEMPI_CONN_KNOWN_MAX] = c->net;
}

static void stand(struct chempi_conn *c)
{
    const int fd = c->fd;

    ev_io_stop(c->conns->loop, &c->io);
    ev_timer_stop(c->conns->loop, &c->limit);
    if (c->kind == CHEMPI_CONN_INBOUND) {
        c->conns->unproven--;
        remember(c);
    }
    c->is_proven = true;
    c->fd = -1;
    chempi_link_start(&c->link, fd); /* N4 */
}

/* ---- proof --------------------------------------------------------------- */

/* The messages are far smaller than any socket's buffer. */
static int send_all(int fd, const uint8_t *data, size_t len)
{
    ssize_t n = len ? chempi_sys->send(fd, data, len, MSG_NOSIGNAL) : 0;

    return n < 0 ? -errno : (size_t)n == len ? 0 : -EIO;
}

/* Returns 1 when proven, 0 to go on, -errno with words. */
static int step(struct chempi_conn *c, struct chempi_err *err)
{
    uint8_t out[CHEMPI_HANDSHAKE_MSG_MAX];
    size_t len;
    int rc = chempi_handshake_step(&c->shake, c->bytes, c->byte_count, out,
                                   &len, err);
    int sent;

    c->byte_count = 0;
    if (rc < 0)
        return rc;
    c->has_merit = true;
    sent = send_all(c->fd, out, len);
    if (sent)
        return chempi_err_set(err, sent, "%s", chempi_err_name(sent));
    return rc;
}

/* Who calls with the cluster's key, and leaves when it has our own. */
static const char *why_left(const struct chempi_conn *c)
{
    return c->kind == CHEMPI_CONN_INBOUND && c->has_merit
               ? CLOSED_AT_KEY
               : "it closed the connection before the key was proven (does it "
                 "hold another secret?)";
}

/* Take what is there of the message that is due. */
static int collect(struct chempi_conn *c, struct chempi_err *err)
{
    const size_t need = chempi_handshake_need(&c->shake);
    ssize_t n = chempi_sys->recv(c->fd, c->bytes + c->byte_count,
                                 need - c->byte_count, MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n < 0)
        return chempi_err_set(err, -errno, "%s", chempi_err_name(errno));
    if (n == 0)
        return chempi_err_set(err, -EPIPE, "%s", why_left(c));
    c->byte_count += (size_t)n;
    return c->byte_count == need ? step(c, err) : 0;
}

/* All that follows, what is queued already included. */
static int seal(struct chempi_conn *c, struct chempi_err *err)
{
    struct chempi_noise_cipher tx;
    struct chempi_noise_cipher rx;
    int rc = chempi_handshake_split(&c->shake, &tx, &rx);

    if (!rc)
        rc = chempi_channel_seal(&c->link.ch, &tx, &rx);
    sodium_memzero(&tx, sizeof(tx));
    sodium_memzero(&rx, sizeof(rx));
    return rc ? chempi_err_set(err, rc, "%s", chempi_err_name(rc)) : 0;
}

/* With what has come so far; it may end the connection. */
static void go_on_proving(struct chempi_conn *c)
{
    struct chempi_err err = {0};
    int rc = collect(c, &err);
    struct chempi_conn *whole;

    if (rc == 0)
        return;
    whole = rc > 0 ? grow(c) : NULL;
    if (rc > 0)
        rc = whole ? seal(whole, &err)
                   : chempi_err_set(&err, -ENOMEM, "out of memory");
    if (rc)
        refuse(whole ? whole : c, err.text);
    else
        stand(whole);
}

static void proving(struct ev_loop *loop, ev_io *w, int events)
{
    (void)loop;
    (void)events;
    go_on_proving(w->data);
}

static void too_late(struct ev_loop *loop, ev_timer *w, int events)
{
    const struct chempi_conn *c = w->data;

    (void)loop;
    (void)events;
    if (c->resolve && c->resolve->fd >= 0)
        refuse(w->data, "the look-up of its name takes too long");
    else
        refuse(w->data, "no proof of the key within the time limit");
}

static void start_limit(struct chempi_conn *c, double seconds)
{
    ev_timer_init(&c->limit, too_late, seconds, 0.0);
    c->limit.data = c;
    ev_timer_start(c->conns->loop, &c->limit);
}

static void watch(struct chempi_conn *c, int events,
                  void (*fn)(struct ev_loop *, ev_io *, int))
{
    ev_io_stop(c->conns->loop, &c->io);
    ev_io_init(&c->io, fn, c->fd, events);
    c->io.data = c;
    ev_io_start(c->conns->loop, &c->io);
}

static int check_trust(void *arg, const uint8_t *key, struct chempi_err *err)
{
    const struct chempi_conn *c = arg;

    return chempi_trust_check(&c->conns->secrets->trust, key, NULL, err);
}

static void begin_proof(struct chempi_conn *c)
{
    const bool is_caller = c->kind == CHEMPI_CONN_OUTBOUND;
    struct chempi_err err = {0};
    int rc =
        chempi_handshake_init(&c->shake, is_caller, c->conns->secrets->keys,
                              PURPOSE, sizeof(PURPOSE) - 1, check_trust, c);

    if (!rc && is_caller)
        rc = step(c, &err);
    if (rc < 0) {
        refuse(c, err.code ? err.text : "libsodium does not start");
        return;
    }
    watch(c, EV_READ, proving);
    if (!is_caller) /* N6: a node has its merit before another one comes */
        go_on_proving(c);
}

static void connected(struct ev_loop *loop, ev_io *w, int events)
{
    struct chempi_conn *c = w->data;
    int rc = chempi_addr_result(c->fd);
    char text[128];

    (void)loop;
    (void)events;
    if (!rc) {
        begin_proof(c);
        return;
    }
    (void)snprintf(text, sizeof(text), "%s", chempi_err_name(rc));
    refuse(c, text);
}

/* ---- coming to be -------------------------------------------------------- */

static bool find_credentials(struct chempi_conn *c)
{
    struct ucred cred;
    socklen_t len = sizeof(cred);

    if (getsockopt(c->fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
        return false;
    c->uid = cred.uid;
    c->gid = cred.gid;
    (void)snprintf(c->where, sizeof(c->where),
                   "local client (pid %ld, uid %ld)", (long)cred.pid,
                   (long)cred.uid);
    return chempi_users_is_client(c->conns->serves_users, cred.uid);
}

int chempi_conns_admit_job(const struct chempi_conn *conn,
                           struct chempi_err *err)
{
    const struct chempi_user *u = conn->user;
    uint32_t share;

    if (!u)
        return 0;
    share =
        chempi_user_shares_share(&conn->conns->shares, CHEMPI_USER_SHARES_CONNS,
                                 u->uid, u->counts[CHEMPI_USER_SHARES_CONNS]);
    if (u->counts[CHEMPI_USER_SHARES_CONNS] + CHEMPI_CONN_LAUNCH_SPARE <=
            share ||
        u->counts[CHEMPI_USER_SHARES_CONNS] <= share / 2)
        return 0;
    return chempi_err_set(err, -EDQUOT,
                          "user %ld has too many jobs and questions under way "
                          "with this daemon (limit: %u); wait until some have "
                          "ended, or end some with 'chempictl kill'",
                          (long)u->uid, share);
}

/* N7 */
static void look_after(struct ev_loop *loop, ev_timer *w, int events)
{
    struct chempi_conn *c = w->data;
    const bool is_silent =
        (double)(chempi_clock_ns() - c->heard_ns) / 1e9 >= CHEMPI_CONN_IDLE_S;

    (void)events;
    if (c->link.waits_since_ns) /* for us: what it says is not read yet */
        ev_timer_again(loop, w);
    else if (!c->is_greeted)
        refuse(c, "it has not greeted within the time limit");
    else if (is_silent && !c->conns->ops->is_busy(c))
        refuse(c, "it has no job and has said nothing for too long");
    else
        ev_timer_again(loop, w);
}

static void accept_local(struct chempi_conn *c)
{
    struct chempi_err err;

    if (!find_credentials(c)) {
        refuse(c, "this daemon serves its own user only");
        return;
    }
    c->link.ch.is_wary = !chempi_rights_are_refused(c->fd);
    stand(c);
    c->user = chempi_user_shares_enter(&c->conns->shares, c->uid,
                                       CHEMPI_USER_SHARES_CONNS, &err);
    if (!c->user) {
        refuse_crowd(c, err.text);
        return;
    }
    c->link.ch.purse = &c->user->purse;
    c->heard_ns = chempi_clock_ns();
    ev_timer_init(&c->limit, look_after, CHEMPI_CONN_GREET_S,
                  CHEMPI_CONN_IDLE_S);
    c->limit.data = c;
    ev_timer_start(c->conns->loop, &c->limit);
}

static void note_net(struct chempi_conn *c, const struct chempi_addr *addr)
{
    const struct sockaddr_in *v4 = (const void *)&addr->storage;
    const struct sockaddr_in6 *v6 = (const void *)&addr->storage;

    if (addr->storage.ss_family == AF_INET)
        memcpy(c->net.bytes + 12, &v4->sin_addr, 4);
    else if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr))
        memcpy(c->net.bytes + 12, v6->sin6_addr.s6_addr + 12, 4);
    else
        memcpy(c->net.bytes, &v6->sin6_addr, 8);
}

static uint32_t count_at(const struct chempi_conns *conns,
                         const struct chempi_conn_net *net)
{
    uint32_t count = 0;

    CHEMPI_LIST_FOR (e, &conns->strangers) {
        const struct chempi_conn *c =
            CHEMPI_CONTAINER_OF(e, struct chempi_conn, fellow);

        count += memcmp(&c->net, net, sizeof(*net)) == 0;
    }
    return count;
}

/* The higher, the sooner it leaves. */
static uint32_t burden(const struct chempi_conn *c)
{
    const uint32_t silence = c->has_merit ? 0 : 1;

    if (is_known(c))
        return 1 + silence;
    return 2 * count_at(c->conns, &c->net) + 2 + silence;
}

/* N6: among those of the newcomer's address if it has too many, else among
 * all; the list is in the order of arrival. */
static struct chempi_conn *choose_leaver(const struct chempi_conn *newcomer,
                                         bool is_own)
{
    struct chempi_conn *leaver = NULL;
    uint32_t most = 0;

    CHEMPI_LIST_FOR (e, &newcomer->conns->strangers) {
        struct chempi_conn *c =
            CHEMPI_CONTAINER_OF(e, struct chempi_conn, fellow);
        uint32_t b;

        if (c == newcomer ||
            (is_own && memcmp(&c->net, &newcomer->net, sizeof(c->net)) != 0))
            continue;
        b = burden(c);
        if (b > most) {
            most = b;
            leaver = c;
        }
    }
    return leaver;
}

static void make_place(struct chempi_conn *c)
{
    const bool is_own = count_at(c->conns, &c->net) > CHEMPI_CONN_ADDRESS_MAX;
    struct chempi_conn *leaver;

    if (!is_own && c->conns->unproven <= CHEMPI_CONN_UNPROVEN_MAX)
        return;
    leaver = choose_leaver(c, is_own);
    if (leaver)
        refuse(leaver, "too many connections without proof");
}

static void accept_daemon(struct chempi_conn *c)
{
    const int on = 1;
    struct chempi_addr addr = {.len = sizeof(addr.storage)};
    char where[CHEMPI_ADDR_MAX] = "?";

    if (getpeername(c->fd, (struct sockaddr *)&addr.storage, &addr.len) == 0) {
        chempi_addr_format(&addr, where, sizeof(where));
        note_net(c, &addr);
    }
    (void)snprintf(c->where, sizeof(c->where), "%.*s",
                   (int)sizeof(c->where) - 1, where);
    (void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    (void)setsockopt(c->fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    c->conns->unproven++;
    chempi_list_append(&c->conns->strangers, &c->fellow);
    make_place(c);
    start_limit(c, CHEMPI_CONN_PROOF_S);
    begin_proof(c);
}

void chempi_conns_accept(struct chempi_conns *conns, int fd,
                         enum chempi_conn_kind kind)
{
    struct chempi_conn *c = create(conns, kind, fd);

    if (!c) {
        (void)close(fd); /* nothing was said */
        chempi_log(CHEMPI_LOG_ERROR, "conn", "out of memory");
    } else if (kind == CHEMPI_CONN_LOCAL) {
        accept_local(c);
    } else {
        accept_daemon(c);
    }
}

/* Its end is here, and has not been read: perhaps a new daemon of that name
 * serves by now, and nothing that is said to the old one is answered. */
static bool has_left(const struct chempi_conn *c)
{
    struct pollfd p = {.events = POLLRDHUP};

    if (!c->is_proven)
        return false;
    p.fd = c->link.ch.fd;
    return poll(&p, 1, 0) > 0;
}

static struct chempi_conn *find(const struct chempi_conns *conns,
                                const char *name)
{
    CHEMPI_LIST_FOR (e, &conns->all) {
        struct chempi_conn *c =
            CHEMPI_CONTAINER_OF(e, struct chempi_conn, entry);

        if (c->kind == CHEMPI_CONN_OUTBOUND && strcmp(c->peer, name) == 0 &&
            !has_left(c))
            return c;
    }
    return NULL;
}

static int dial(struct chempi_conn *c, const struct chempi_addr *addr,
                struct chempi_err *err)
{
    char where[CHEMPI_ADDR_MAX];

    c->fd = chempi_addr_connect(addr, err);
    if (c->fd < 0)
        return c->fd;
    chempi_addr_format(addr, where, sizeof(where));
    (void)snprintf(c->where, sizeof(c->where), "%.*s",
                   (int)sizeof(c->where) - 1, where);
    watch(c, EV_WRITE, connected);
    return 0;
}

static void have_found(void *arg, const struct chempi_addr *addr,
                       const struct chempi_err *err)
{
    struct chempi_conn *c = arg;
    struct chempi_err why = {0};

    if (!addr)
        refuse(c, err->text);
    else if (dial(c, addr, &why))
        refuse(c, why.text);
}

static int find_host(struct chempi_conn *c, const char *address,
                     struct chempi_err *err)
{
    c->resolve = chempi_sys->calloc(1, sizeof(*c->resolve));
    if (!c->resolve)
        return chempi_err_set(err, -ENOMEM, "out of memory");
    *c->resolve = (struct chempi_resolve){.loop = c->conns->loop,
                                          .supervisors = c->conns->supervisors,
                                          .done = have_found,
                                          .arg = c};
    return chempi_resolve_start(c->resolve, address, err);
}

struct chempi_conn *chempi_conns_call(struct chempi_conns *conns,
                                      const char *name, const char *address,
                                      struct chempi_err *err)
{
    struct chempi_conn *c = *name ? find(conns, name) : NULL;
    struct chempi_addr addr;
    int rc;

    if (c)
        return c;
    if (!conns->secrets) {
        (void)chempi_err_set(err, -EACCES,
                             "this daemon has no cluster key (--key) and "
                             "cannot speak to others");
        return NULL;
    }
    rc = chempi_addr_parse_number(address, &addr, err);
    if (rc && rc != -ENOENT)
        return NULL;
    c = create(conns, CHEMPI_CONN_OUTBOUND, -1);
    if (!c) {
        (void)chempi_err_set(err, -ENOMEM, "out of memory");
        return NULL;
    }
    (void)snprintf(c->peer, sizeof(c->peer), "%s", name);
    (void)snprintf(c->where, sizeof(c->where), "%.*s",
                   (int)sizeof(c->where) - 1, address);
    rc = rc ? find_host(c, address, err) : dial(c, &addr, err);
    if (rc) {
        destroy(c);
        return NULL;
    }
    start_limit(c, CHEMPI_CONN_CALL_S);
    return c;
}

void chempi_conns_recheck(struct chempi_conns *conns)
{
    CHEMPI_LIST_FOR_SAFE (e, &conns->all) {
        struct chempi_conn *c =
            CHEMPI_CONTAINER_OF(e, struct chempi_conn, entry);
        struct chempi_err err;

        if (c->kind != CHEMPI_CONN_LOCAL && c->is_proven &&
            chempi_trust_check(&conns->secrets->trust,
                               chempi_handshake_peer(&c->shake),
                               c->is_greeted ? c->peer : NULL, &err))
            refuse(c, err.text);
    }
}

/* Then both ends have the hash of the same handshake. */
bool chempi_conns_is_own(const struct chempi_conn *conn)
{
    CHEMPI_LIST_FOR (e, &conn->conns->all) {
        const struct chempi_conn *c =
            CHEMPI_CONTAINER_OF(e, struct chempi_conn, entry);

        if (c->kind == CHEMPI_CONN_INBOUND && c->is_proven &&
            memcmp(chempi_handshake_hash(&c->shake),
                   chempi_handshake_hash(&conn->shake),
                   CHEMPI_NOISE_HASH_BYTES) == 0)
            return true;
    }
    return false;
}

int chempi_conns_end_for(struct chempi_conn *conn, uid_t uid)
{
    return chempi_room_end(
        &conn->room, &conn->link,
        chempi_subordinates_account(&conn->conns->shares.subordinates, uid));
}

void chempi_conns_refuse(struct chempi_conn *conn, uint16_t type, uint64_t job,
                         const char *why)
{
    uint8_t data[CHEMPI_TEXT_MAX + 16];
    struct chempi_writer w;

    chempi_wire_fix(&w, data, sizeof(data)); /* also without memory */
    chempi_wire_put_u32(&w, type);
    chempi_wire_put_str(&w, why);
    chempi_link_send(&conn->link, CHEMPI_MSG_REFUSED, job, w.data, w.len);
}
