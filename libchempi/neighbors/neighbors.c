/* SPDX-License-Identifier: BSD-3-Clause */
/* Neighbours and what waits for them; see neighbors.h. */
#include "libchempi/neighbors/neighbors.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
#include "common/base/sys.h"
#include "common/control/client.h"
#include "libchempi/devices/host.h"

/* One size range towards a neighbour. */
struct way {
    uint64_t max_len; /* bytes, inclusive */
    struct chempi_ep *ep;
    uint32_t network; /* of the table, or NONE */
};

struct chempi_neighbor {
    uint32_t proc;
    int status; /* 0, or why nothing goes any more */
    uint32_t way_count;
    struct way ways[CHEMPI_NEIGHBOR_WAYS_MAX];
    uint32_t sending; /* frames that its devices read */
    bool is_full;     /* its device had no room: all in `waiting` has waited */
    struct chempi_list waiting; /* buf.queue */
    struct chempi_list dirty;
};

/* ---- buffers ------------------------------------------------------------ */

struct chempi_neighbor_buf *chempi_neighbor_buf_create(size_t cap)
{
    struct chempi_neighbor_buf *buf = chempi_sys->malloc(sizeof(*buf) + cap);

    if (!buf)
        return NULL;
    memset(buf, 0, sizeof(*buf));
    chempi_list_init(&buf->link);
    chempi_list_init(&buf->queue);
    buf->refs = 1;
    buf->way = CHEMPI_NEIGHBOR_UNSENT;
    buf->len = (uint32_t)cap;
    return buf;
}

void chempi_neighbor_buf_hold(struct chempi_neighbor_buf *buf)
{
    buf->refs++;
}

void chempi_neighbor_buf_drop(struct chempi_neighbor_buf *buf)
{
    if (!buf || --buf->refs > 0)
        return;
    chempi_list_remove(&buf->link);
    chempi_list_remove(&buf->queue);
    free(buf);
}

/* ---- neighbours --------------------------------------------------------- */

int chempi_neighbors_open(struct chempi_neighbors *neighbors,
                          const struct chempi_services *services,
                          struct chempi_dev *const *devices,
                          const uint32_t *device_count,
                          const struct chempi_neighbors_ops *ops, void *arg)
{
    *neighbors = (struct chempi_neighbors){
        .services = services,
        .devices = devices,
        .device_count = device_count,
        .ops = ops,
        .arg = arg,
    };
    chempi_list_init(&neighbors->dirty);
    chempi_list_init(&neighbors->incoming);
    chempi_list_init(&neighbors->left);
    chempi_list_init(&neighbors->sending);
    neighbors->peers = chempi_sys->calloc(services->proc_count,
                                          sizeof(struct chempi_neighbor *));
    neighbors->sources =
        chempi_sys->calloc(services->proc_count, sizeof(*neighbors->sources));
    if (neighbors->peers && neighbors->sources)
        return 0;
    free(neighbors->peers);
    free(neighbors->sources);
    neighbors->peers = NULL;
    return -ENOMEM;
}

static void drop_waiting(struct chempi_neighbors *neighbors,
                         struct chempi_neighbor *peer)
{
    while (!chempi_list_is_empty(&peer->waiting)) {
        struct chempi_neighbor_buf *buf =
            CHEMPI_CONTAINER_OF(chempi_list_first(&peer->waiting),
                                struct chempi_neighbor_buf, queue);

        chempi_list_remove(&buf->queue);
        buf->way = CHEMPI_NEIGHBOR_UNSENT;
        neighbors->queued--;
        neighbors->ops->left(neighbors->arg, buf);
        chempi_neighbor_buf_drop(buf);
    }
}

static void drop_all(struct chempi_list *head)
{
    while (!chempi_list_is_empty(head)) {
        struct chempi_neighbor_buf *buf = CHEMPI_CONTAINER_OF(
            chempi_list_first(head), struct chempi_neighbor_buf, queue);

        chempi_list_remove(&buf->queue);
        chempi_neighbor_buf_drop(buf);
    }
}

void chempi_neighbors_close(struct chempi_neighbors *neighbors)
{
    if (!neighbors->peers)
        return;
    for (uint32_t p = 0; p < neighbors->services->proc_count; p++) {
        if (!neighbors->peers[p])
            continue;
        drop_waiting(neighbors, neighbors->peers[p]);
        free(neighbors->peers[p]);
    }
    drop_all(&neighbors->incoming);
    drop_all(&neighbors->left);
    drop_all(&neighbors->sending);
    free(neighbors->sources);
    free(neighbors->peers);
    neighbors->peers = NULL;
}

static void mark_dirty(struct chempi_neighbors *neighbors,
                       struct chempi_neighbor *peer)
{
    if (chempi_list_is_empty(&peer->dirty))
        chempi_list_append(&neighbors->dirty, &peer->dirty);
}

static struct chempi_dev *find_device(const struct chempi_neighbors *neighbors,
                                      const char *name)
{
    for (uint32_t i = 0; i < *neighbors->device_count; i++)
        if (strcmp(neighbors->devices[i]->ops->name, name) == 0)
            return neighbors->devices[i];
    return NULL;
}

/* 0, also where the device does not lead there, or -ENOMEM. */
static int add_way(struct chempi_neighbor *peer, struct chempi_dev *dev,
                   uint64_t max_len, uint32_t network, struct chempi_err *err)
{
    struct way *last =
        peer->way_count ? &peer->ways[peer->way_count - 1] : NULL;
    struct chempi_ep *ep;
    const int rc = dev->ops->connect(dev, peer->proc, &ep, err);

    if (rc)
        return rc == -ENOMEM ? rc : 0;
    if (last && ((last->ep == ep && last->network == network) ||
                 peer->way_count == CHEMPI_NEIGHBOR_WAYS_MAX))
        last->max_len = max_len;
    else
        peer->ways[peer->way_count++] =
            (struct way){.max_len = max_len, .ep = ep, .network = network};
    return 0;
}

/* The direct ranges of the table; where it goes round, the next smaller or
 * larger direct one serves. */
static int ways_from_table(const struct chempi_neighbors *neighbors,
                           struct chempi_neighbor *peer, struct chempi_err *err)
{
    const struct chempi_services *s = neighbors->services;
    const struct chempi_table_range *ranges;
    uint32_t node = chempi_table_find_node(
        s->table, s->node_names[s->node_of_proc[peer->proc]]);
    uint32_t count = 0;
    int rc = 0;

    if (node == CHEMPI_TABLE_NONE)
        return 0;
    ranges = chempi_table_ranges(s->table, node, &count);
    for (uint32_t i = 0; i < count && !rc; i++) {
        struct chempi_dev *dev = find_device(neighbors, ranges[i].device);

        if (dev && ranges[i].stage_count <= 1)
            rc = add_way(peer, dev, ranges[i].max_len, ranges[i].network, err);
    }
    return rc;
}

static int ways_by_reach(const struct chempi_neighbors *neighbors,
                         struct chempi_neighbor *peer, struct chempi_err *err)
{
    int rc = 0;

    for (uint32_t i = 0;
         i < *neighbors->device_count && !peer->way_count && !rc; i++)
        rc = add_way(peer, neighbors->devices[i], UINT64_MAX, CHEMPI_TABLE_NONE,
                     err);
    return rc;
}

static int ask_cards(const struct chempi_neighbors *neighbors,
                     const struct chempi_neighbor *peer)
{
    for (uint32_t i = 0; i < peer->way_count; i++) {
        const struct chempi_dev *dev = peer->ways[i].ep->dev;
        char key[CHEMPI_KVS_KEY_MAX];
        bool is_asked = false;
        int rc;

        for (uint32_t k = 0; k < i; k++)
            is_asked |= peer->ways[k].ep->dev == dev;
        if (is_asked || !(dev->caps->flags & CHEMPI_DEV_NEEDS_CARD))
            continue;
        rc = chempi_host_card_key(dev, key);
        if (!rc)
            rc = neighbors->ops->ask(neighbors->arg, peer->proc, key);
        if (rc)
            return rc;
    }
    return 0;
}

static int find_peer(struct chempi_neighbors *neighbors, uint32_t proc,
                     struct chempi_neighbor **out, struct chempi_err *err)
{
    const struct chempi_services *s = neighbors->services;
    struct chempi_neighbor *peer;
    int rc = 0;

    if (proc >= s->proc_count || proc == s->proc)
        return chempi_err_set(err, -EINVAL, "no neighbour has number %u", proc);
    *out = neighbors->peers[proc];
    if (CHEMPI_LIKELY(*out != NULL))
        return 0;
    peer = chempi_sys->calloc(1, sizeof(*peer));
    if (!peer)
        return chempi_err_set(err, -ENOMEM, "out of memory");
    peer->proc = proc;
    chempi_list_init(&peer->waiting);
    chempi_list_init(&peer->dirty);
    if (s->table)
        rc = ways_from_table(neighbors, peer, err);
    if (!peer->way_count && !rc)
        rc = ways_by_reach(neighbors, peer, err);
    if (!rc)
        rc = peer->way_count ? ask_cards(neighbors, peer) : -EHOSTUNREACH;
    if (rc) {
        free(peer);
        return chempi_err_set(
            err, rc, "%s from node %s to %s",
            rc == -ENOMEM ? "out of memory for the way" : "no device leads",
            s->node_names[s->node], s->node_names[s->node_of_proc[proc]]);
    }
    peer->ways[peer->way_count - 1].max_len = UINT64_MAX;
    neighbors->peers[proc] = peer;
    *out = peer;
    return 0;
}

int chempi_neighbors_reach(struct chempi_neighbors *neighbors, uint32_t proc,
                           struct chempi_err *err)
{
    struct chempi_neighbor *peer;

    return find_peer(neighbors, proc, &peer, err);
}

bool chempi_neighbors_way_names(const struct chempi_neighbors *neighbors,
                                uint32_t proc, uint32_t way,
                                const char **network, const char **device)
{
    const struct chempi_table *table = neighbors->services->table;
    const struct chempi_neighbor *peer =
        proc < neighbors->services->proc_count ? neighbors->peers[proc] : NULL;

    if (!peer || way >= peer->way_count)
        return false;
    *device = peer->ways[way].ep->dev->ops->name;
    *network = "-";
    if (table && peer->ways[way].network != CHEMPI_TABLE_NONE)
        *network = chempi_table_network(table, peer->ways[way].network)->name;
    return true;
}

void chempi_neighbors_card(struct chempi_neighbors *neighbors, uint32_t proc,
                           const char *key, const void *card, size_t len)
{
    struct chempi_neighbor *peer =
        proc < neighbors->services->proc_count ? neighbors->peers[proc] : NULL;

    for (uint32_t i = 0; peer && i < peer->way_count; i++) {
        struct chempi_ep *ep = peer->ways[i].ep;
        char own_key[CHEMPI_KVS_KEY_MAX];
        struct chempi_err err = {0};

        if (chempi_host_card_key(ep->dev, own_key) || strcmp(own_key, key) != 0)
            continue;
        if (ep->dev->ops->card_arrived(ep, card, len, &err))
            neighbors->ops->lost(neighbors->arg, proc, err.text);
        return;
    }
}

/* ---- sending ------------------------------------------------------------ */

int chempi_neighbors_queue(struct chempi_neighbors *neighbors, uint32_t proc,
                           struct chempi_neighbor_buf *buf)
{
    struct chempi_neighbor *peer;
    int rc = find_peer(neighbors, proc, &peer, NULL);

    if (rc)
        return rc;
    if (peer->status)
        return peer->status;
    buf->peer = peer;
    buf->has_waited = peer->is_full;
    chempi_list_append(&peer->waiting, &buf->queue);
    neighbors->queued++;
    mark_dirty(neighbors, peer);
    return 0;
}

/* The eager protocol with the longest range, unless the frame is longer. */
static uint32_t choose_protocol(const struct chempi_dev_caps *caps,
                                uint64_t len)
{
    uint32_t best = 0;

    for (uint32_t i = 0; i < caps->protocol_count; i++) {
        if (len > caps->eager_max && len <= caps->protocol_max[i])
            return i;
        if (caps->protocol_max[i] <= caps->eager_max)
            best = i;
    }
    return best;
}

/* DONE, PENDING, -EAGAIN, or an error. */
static int hand_over(struct chempi_neighbor *peer,
                     struct chempi_neighbor_buf *buf)
{
    const struct way *way = peer->ways;
    const struct chempi_envelope env = {
        .len = buf->len,
        .context = CHEMPI_NEIGHBOR_CONTEXT,
        .kind = CHEMPI_KIND_MESSAGE,
    };
    const struct chempi_dev_caps *caps;
    int rc;

    while (buf->len > way->max_len)
        way++;
    buf->way = (uint8_t)(way - peer->ways);
    caps = way->ep->dev->caps;
    if (buf->len <= caps->inject_max)
        return way->ep->dev->ops->inject(way->ep, &env, buf->data, buf->len,
                                         false);
    if (CHEMPI_UNLIKELY(peer->sending == CHEMPI_NEIGHBOR_SENDING_MAX))
        return -EAGAIN; /* until one is sent */
    buf->u.tx = (struct chempi_tx){
        .env = env,
        .buf = buf->data,
        .protocol = choose_protocol(caps, buf->len),
    };
    chempi_list_init(&buf->u.tx.link);
    buf->is_sending = true;
    rc = way->ep->dev->ops->send(way->ep, &buf->u.tx);
    if (rc != CHEMPI_PENDING)
        buf->is_sending = false;
    else
        peer->sending++;
    return rc;
}

/* What waits now has waited, and what comes until the queue is empty. */
static void note_full(struct chempi_neighbor *peer)
{
    if (peer->is_full)
        return;
    peer->is_full = true;
    CHEMPI_LIST_FOR (pos, &peer->waiting)
        CHEMPI_CONTAINER_OF(pos, struct chempi_neighbor_buf, queue)
            ->has_waited = true;
}

static void flush_peer(struct chempi_neighbors *neighbors,
                       struct chempi_neighbor *peer)
{
    while (!peer->status && !chempi_list_is_empty(&peer->waiting)) {
        struct chempi_neighbor_buf *buf =
            CHEMPI_CONTAINER_OF(chempi_list_first(&peer->waiting),
                                struct chempi_neighbor_buf, queue);
        int rc = hand_over(peer, buf);

        if (rc == -EAGAIN) {
            note_full(peer);
            return;
        }
        chempi_list_remove(&buf->queue);
        if (rc < 0)
            buf->way = CHEMPI_NEIGHBOR_UNSENT;
        if (rc == CHEMPI_PENDING) {
            chempi_list_append(&neighbors->sending,
                               &buf->queue); /* until sent() */
            continue;
        }
        neighbors->queued--;
        neighbors->ops->left(neighbors->arg, buf);
        chempi_neighbor_buf_drop(buf);
        if (rc < 0)
            peer->status = rc; /* its device says more by lost() */
    }
    peer->is_full = false;
    if (peer->status)
        drop_waiting(neighbors, peer);
}

void chempi_neighbors_flush(struct chempi_neighbors *neighbors)
{
    while (!chempi_list_is_empty(&neighbors->dirty)) {
        struct chempi_neighbor *peer =
            CHEMPI_CONTAINER_OF(chempi_list_first(&neighbors->dirty),
                                struct chempi_neighbor, dirty);

        chempi_list_remove(&peer->dirty);
        flush_peer(neighbors, peer);
    }
}

void chempi_neighbors_forget(struct chempi_neighbors *neighbors, uint32_t proc)
{
    struct chempi_neighbor *peer =
        proc < neighbors->services->proc_count ? neighbors->peers[proc] : NULL;

    if (!peer)
        return;
    peer->status = -EPIPE;
    drop_waiting(neighbors, peer);
}

bool chempi_neighbors_sent(struct chempi_neighbors *neighbors,
                           struct chempi_tx *tx, int status)
{
    struct chempi_neighbor_buf *buf;

    if (CHEMPI_LIKELY(tx->env.context != CHEMPI_NEIGHBOR_CONTEXT))
        return false;
    buf = CHEMPI_CONTAINER_OF(tx, struct chempi_neighbor_buf, u.tx);
    buf->is_sending = false;
    chempi_list_remove(&buf->queue);
    buf->peer->sending--;
    if (!chempi_list_is_empty(&buf->peer->waiting))
        mark_dirty(neighbors, buf->peer);
    if (status < 0) {
        buf->peer->status = status;
        buf->way = CHEMPI_NEIGHBOR_UNSENT;
    }
    neighbors->queued--;
    neighbors->ops->left(neighbors->arg, buf);
    chempi_neighbor_buf_drop(buf);
    return true;
}

void chempi_neighbors_room(struct chempi_neighbors *neighbors,
                           const struct chempi_ep *ep)
{
    struct chempi_neighbor *peer = neighbors->peers[ep->proc];

    if (peer)
        mark_dirty(neighbors, peer);
}

/* ---- receiving ---------------------------------------------------------- */

/* So a neighbour makes this process keep no more of what is left than was under
 * way from it when the first was. */
static bool has_left_from(const struct chempi_neighbors *neighbors,
                          uint32_t proc)
{
    CHEMPI_LIST_FOR (pos, &neighbors->left)
        if (CHEMPI_CONTAINER_OF(pos, struct chempi_neighbor_buf, queue)->flow ==
            proc)
            return true;
    return false;
}

/* NULL, or why there is no place for it, whether there is memory or not. */
static const char *find_fault(const struct chempi_neighbors *neighbors,
                              const struct chempi_arrival *a)
{
    if (a->env.len > CHEMPI_NEIGHBOR_FRAME_MAX)
        return "it sent a frame that is too long";
    if (!(a->flags & CHEMPI_ARRIVAL_STREAMED) &&
        neighbors->sources[a->ep->proc].filling >=
            CHEMPI_NEIGHBOR_SENDING_MAX * CHEMPI_NEIGHBOR_WAYS_MAX)
        return "it announced more frames than it may";
    return NULL;
}

static CHEMPI_COLD void lose(const struct chempi_neighbors *neighbors,
                             const struct chempi_ep *ep, const char *why)
{
    const struct chempi_services *s = neighbors->services;
    char text[CHEMPI_ERR_TEXT_MAX];

    (void)snprintf(text, sizeof(text), "%s, over device %s from node %s", why,
                   ep->dev->ops->name,
                   s->node_names[s->node_of_proc[ep->proc]]);
    neighbors->ops->lost(neighbors->arg, ep->proc, text);
}

bool chempi_neighbors_arrived(struct chempi_neighbors *neighbors,
                              const struct chempi_arrival *a,
                              enum chempi_verdict *verdict,
                              struct chempi_rx **rx)
{
    struct chempi_neighbor_source *source = &neighbors->sources[a->ep->proc];
    struct chempi_neighbor_buf *buf;
    const char *why;

    if (CHEMPI_LIKELY(a->env.context != CHEMPI_NEIGHBOR_CONTEXT))
        return false;
    *verdict = CHEMPI_TAKEN;
    if (a->avail == a->env.len) {
        if (!neighbors->ops->frame(neighbors->arg, a->ep->proc, a->data,
                                   (size_t)a->env.len, NULL))
            *verdict = CHEMPI_NO_ROOM;
        return true;
    }
    if (CHEMPI_UNLIKELY(has_left_from(neighbors, a->ep->proc))) {
        *verdict = CHEMPI_NO_ROOM;
        return true;
    }
    why = find_fault(neighbors, a);
    buf = why ? NULL : chempi_neighbor_buf_create((size_t)a->env.len);
    if (CHEMPI_LIKELY(buf != NULL)) {
        chempi_shortage_end(&source->shortage);
    } else if (!why && chempi_shortage_may_wait(&source->shortage)) {
        *verdict = CHEMPI_NO_ROOM;
        return true;
    } else {
        lose(neighbors, a->ep, why ? why : "out of memory for its frame");
        if (!(a->flags & CHEMPI_ARRIVAL_STREAMED)) {
            *verdict = CHEMPI_REFUSED;
            return true;
        }
        /* The bytes of a stream must go somewhere: nothing is kept. */
        buf = chempi_neighbor_buf_create(0);
        if (!buf)
            abort();
    }
    buf->flow = a->ep->proc;
    buf->u.rx = (struct chempi_rx){.buf = buf->data, .cap = buf->len};
    chempi_list_init(&buf->u.rx.link);
    chempi_list_append(&neighbors->incoming, &buf->queue);
    source->filling++;
    *rx = &buf->u.rx;
    *verdict = CHEMPI_ACCEPT;
    return true;
}

/* A frame that a device has filled. False: it is left. */
static bool take(struct chempi_neighbors *neighbors,
                 struct chempi_neighbor_buf *buf)
{
    const uint32_t from = buf->flow; /* the holder's from now on */

    if (!neighbors->ops->frame(neighbors->arg, from, buf->data, buf->len,
                               buf)) {
        buf->flow = from;
        chempi_list_append(&neighbors->left, &buf->queue);
        return false;
    }
    chempi_neighbor_buf_drop(buf);
    return true;
}

bool chempi_neighbors_delivered(struct chempi_neighbors *neighbors,
                                struct chempi_rx *rx, int status)
{
    CHEMPI_LIST_FOR (pos, &neighbors->incoming) {
        struct chempi_neighbor_buf *buf =
            CHEMPI_CONTAINER_OF(pos, struct chempi_neighbor_buf, queue);

        if (&buf->u.rx != rx)
            continue;
        chempi_list_remove(&buf->queue);
        neighbors->sources[buf->flow].filling--;
        if (status == 0 && buf->len)
            (void)take(neighbors, buf);
        else
            chempi_neighbor_buf_drop(buf);
        return true;
    }
    return false;
}

int chempi_neighbors_retake(struct chempi_neighbors *neighbors)
{
    struct chempi_list now; /* each once */
    int events = 0;

    chempi_list_init(&now);
    chempi_list_splice(&now, &neighbors->left);
    while (!chempi_list_is_empty(&now)) {
        struct chempi_neighbor_buf *buf = CHEMPI_CONTAINER_OF(
            chempi_list_first(&now), struct chempi_neighbor_buf, queue);

        chempi_list_remove(&buf->queue);
        events += take(neighbors, buf);
    }
    return events;
}
