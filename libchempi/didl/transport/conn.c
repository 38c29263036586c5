/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections and routes; see conn.h. */
#include "libchempi/didl/transport/conn.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/sys.h"
#include "common/containers/sparse.h"
#include "libchempi/devices/host.h"
#include "libchempi/devices/registry.h"
#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/control/daemon.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/transport/event.h"
#include "libchempi/didl/transport/worlds/foreign.h"

enum {
    CARD_MAX = CHEMPI_KVS_VALUE_MAX,
    ROUTES_PER_RANGE = 2 /* through gateways: eager and rendezvous */
};

static struct {
    struct chempi_conn_params params;          /* as the devices were opened */
    const struct chempi_conn_overlay *overlay; /* NULL: the job needs none */
    struct chempi_services services;           /* the foreign device's */
    uint32_t foreign;          /* its number in the first lane; 0: not open */
    _Atomic uint64_t resolved; /* processes with routes in any lane */
    uint64_t lost;
    bool has_lost_own;
    void (*on_lost)(struct chempi_peer *peer);               /* may be NULL */
    void (*on_foreign_lost)(uint32_t proc, const char *why); /* the same */
    void (*on_resolved)(uint32_t proc);
} conn;

/* Processes of the job with peers; those behind are gateways. */
static uint32_t rank_count(void)
{
    return chempi_ctx.job->size;
}

/* What a lane has room for: processes of other worlds are the first one's. */
static uint32_t peer_room(const struct chempi_lane *lane)
{
    return lane->number > 0
               ? rank_count()
               : chempi_ctx.services.proc_count + CHEMPI_FOREIGN_MAX;
}

bool chempi_conn_is_peer(uint32_t proc)
{
    return proc < rank_count() || chempi_foreign_is(proc);
}

/* How much eager payload that process takes before it is received: the lesser
 * quota of two worlds. */
static uint32_t quota_of(uint32_t proc)
{
    const uint32_t own = (uint32_t)chempi_conn_quota();

    if (!chempi_foreign_is(proc))
        return own;
    return own < chempi_foreign_at(proc)->eager_quota
               ? own
               : chempi_foreign_at(proc)->eager_quota;
}

void chempi_conn_make_peer(struct chempi_lane *lane, uint32_t proc)
{
    struct chempi_peer *peer = &lane->conn.peers[proc];
    static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;

    (void)pthread_mutex_lock(&making);
    if (!atomic_load_explicit(&peer->is_made, memory_order_relaxed)) {
        peer->lane = lane;
        peer->proc = proc;
        peer->quota = quota_of(proc);
        peer->node = chempi_foreign_node(proc);
        chempi_list_init(&peer->waiting);
        chempi_list_init(&peer->dirty);
        chempi_list_init(&peer->early);
        chempi_list_init(&peer->sync);
        chempi_list_init(&peer->cancels);
        peer->next_made = lane->conn.made;
        lane->conn.made = peer;
        atomic_store_explicit(&peer->is_made, true,
                              memory_order_release); /* partner: peer() */
    }
    (void)pthread_mutex_unlock(&making);
}

/* ---- devices ---- */

static int publish_card(struct chempi_dev *dev)
{
    char key[CHEMPI_KVS_KEY_MAX];
    unsigned char card[CARD_MAX];
    size_t len = sizeof(card);
    int rc;

    rc = dev->ops->card(dev, card, &len);
    if (rc || len == 0)
        return rc;
    rc = chempi_host_card_key(dev, key);
    return rc ? rc : chempi_daemon_put(key, card, len);
}

/* Is it a device of the job, not the one that reaches other worlds? */
static bool is_own_device(const struct chempi_lane *lane, uint32_t device)
{
    return lane->number > 0 || conn.foreign == 0 || device != conn.foreign;
}

static int find_device(const struct chempi_lane *lane, const char *name)
{
    for (uint32_t i = 0; i < lane->conn.device_count; i++)
        if (is_own_device(lane, i) &&
            strcmp(lane->conn.devices[i]->ops->name, name) == 0)
            return (int)i;
    return -1;
}

static int check_room(const struct chempi_lane *lane, const char *name,
                      struct chempi_err *err)
{
    return lane->conn.device_count < CHEMPI_LANE_DEVICES_MAX
               ? 0
               : chempi_err_set(err, -ENOSPC,
                                "a process can open %d devices: \"%s\" is one "
                                "too many; use fewer kinds of networks in the "
                                "description",
                                (int)CHEMPI_LANE_DEVICES_MAX, name);
}

static int add_device(struct chempi_lane *lane,
                      const struct chempi_dev_ops *ops,
                      const struct chempi_dev_params *params,
                      struct chempi_err *err)
{
    struct chempi_dev *dev = NULL;
    int rc = check_room(lane, ops->name, err);

    if (rc)
        return rc;
    rc = ops->open(params, &dev, err);
    if (rc) {
        (void)chempi_err_prefix(err, "device %s", ops->name);
        return rc;
    }
    lane->conn.devices[lane->conn.device_count++] = dev;
    lane->conn.has_fds |= (dev->caps->flags & CHEMPI_DEV_HAS_FDS) != 0;
    return 0;
}

static int open_device(struct chempi_lane *lane, struct chempi_dev *first,
                       const struct chempi_dev_ops *ops,
                       const struct chempi_conn_params *with,
                       struct chempi_err *err)
{
    const struct chempi_dev_params params = {
        .services = &chempi_ctx.services,
        .sink = with->sink,
        .sink_arg = lane,
        .settings = with->settings(ops),
        .lanes = with->lanes,
        .lane = lane->number,
        .first = first,
    };
    int rc = add_device(lane, ops, &params, err);

    if (rc)
        return rc;
    rc = publish_card(lane->conn.devices[lane->conn.device_count - 1]);
    if (rc)
        return chempi_err_set(err, rc, "device %s: cannot publish its card",
                              ops->name);
    return 0;
}

/* Can a device that is already open reach this process? */
static bool is_reached(const struct chempi_lane *lane, uint32_t proc)
{
    for (uint32_t i = 0; i < lane->conn.device_count; i++) {
        struct chempi_ep *ep;

        if (lane->conn.devices[i]->ops->connect(lane->conn.devices[i], proc,
                                                &ep, NULL) == 0)
            return true;
    }
    return false;
}

/* Without a table: devices in order of preference until this process, one
 * neighbour and one process elsewhere are reached. */
static int open_by_reach(struct chempi_lane *lane,
                         const struct chempi_conn_params *with,
                         struct chempi_err *err)
{
    const struct chempi_services *s = &chempi_ctx.services;
    uint32_t probes[3] = {s->proc, s->proc, s->proc};
    const struct chempi_dev_ops *const *all;
    size_t count;
    int rc = 0;

    for (uint32_t p = 0; p < rank_count(); p++)
        if (p != s->proc)
            probes[s->node_of_proc[p] == s->node ? 1 : 2] = p;
    all = chempi_registry_all(&count);
    for (size_t i = 0; i < count && !rc; i++)
        if (!is_reached(lane, probes[0]) || !is_reached(lane, probes[1]) ||
            !is_reached(lane, probes[2]))
            rc = open_device(lane, NULL, all[i], with, err);
    return rc;
}

static int open_by_name(struct chempi_lane *lane, const char *name,
                        const struct chempi_conn_params *with,
                        struct chempi_err *err)
{
    const struct chempi_dev_ops *ops;

    if (find_device(lane, name) >= 0)
        return 0;
    ops = chempi_registry_find(name);
    if (!ops)
        return chempi_err_set(err, -ENODEV,
                              "the connection table names device \"%s\", which "
                              "this build does not have; name another device "
                              "for that network in the description",
                              name);
    return open_device(lane, NULL, ops, with, err);
}

/* For messages to itself: the first that reaches this process. */
static int open_for_self(struct chempi_lane *lane,
                         const struct chempi_conn_params *with,
                         struct chempi_err *err)
{
    size_t count;
    const struct chempi_dev_ops *const *all = chempi_registry_all(&count);
    int rc = 0;

    for (size_t i = 0;
         i < count && !rc && !is_reached(lane, chempi_ctx.services.proc); i++)
        rc = open_device(lane, NULL, all[i], with, err);
    return rc;
}

/* With a table: the devices that it names towards nodes of this job. */
static int open_by_table(struct chempi_lane *lane,
                         const struct chempi_conn_params *with,
                         struct chempi_err *err)
{
    const struct chempi_services *s = &chempi_ctx.services;
    int rc = open_for_self(lane, with, err);

    for (uint32_t n = 0; n < s->node_count && !rc; n++) {
        const struct chempi_table_range *ranges;
        uint32_t node;
        uint32_t range_count;

        if (n == s->node && s->local_size == 1)
            continue;
        node = chempi_table_find_node(s->table, s->node_names[n]);
        if (node == CHEMPI_TABLE_NONE)
            return chempi_err_set(err, -ENOENT,
                                  "node %s is not in the connection table of "
                                  "node %s; compile the description again",
                                  s->node_names[n], s->node_names[s->node]);
        ranges = chempi_table_ranges(s->table, node, &range_count);
        for (uint32_t i = 0; i < range_count && !rc; i++)
            rc = open_by_name(lane, ranges[i].device, with, err);
    }
    return rc;
}

static void free_peer(struct chempi_peer *peer)
{
    free(peer->routes);
    free(peer->system);
    free(peer->why);
}

/* Over the real devices, which it goes before when devices are closed. */
static int open_overlay(struct chempi_lane *lane,
                        const struct chempi_conn_params *with,
                        struct chempi_err *err)
{
    struct chempi_dev *dev = NULL;
    int rc = check_room(lane, conn.overlay->ops->name, err);

    if (rc)
        return rc;
    rc = conn.overlay->open(lane->conn.devices, &lane->conn.device_count,
                            with->settings(conn.overlay->ops), &dev, err);
    if (!rc)
        lane->conn.devices[lane->conn.device_count++] = dev;
    return rc;
}

int chempi_conn_open(const struct chempi_conn_params *params)
{
    struct chempi_conn_params with = *params;
    struct chempi_lane *lane = &chempi_lane_main;
    struct chempi_err err = {0};
    int rc;

    lane->conn.peers =
        chempi_sparse_reserve(peer_room(lane), sizeof(struct chempi_peer),
                              chempi_ctx.services.proc_count);
    rc = lane->conn.peers ? 0 : -ENOMEM;
    if (rc)
        return chempi_error_from(rc, NULL);
    conn.on_resolved = with.resolved;
    conn.overlay = with.overlay->is_needed() ? with.overlay : NULL;
    if (conn.overlay)
        with.sink = conn.overlay->sink(with.sink);
    rc = chempi_ctx.services.table ? open_by_table(lane, &with, &err)
                                   : open_by_reach(lane, &with, &err);
    conn.params = with;
    if (!rc && conn.overlay)
        rc = open_overlay(lane, &with, &err);
    return rc ? chempi_error_from(rc, &err) : MPI_SUCCESS;
}

/* ---- lanes that are added ---- */

static bool is_near(const struct chempi_dev *dev)
{
    return (dev->caps->flags & CHEMPI_DEV_SAME_NODE) != 0;
}

/* Do ranges of the table towards this node name near devices alone? */
static bool is_table_near(void)
{
    const struct chempi_lane *lane = &chempi_lane_main;
    const struct chempi_services *s = &chempi_ctx.services;
    const struct chempi_table_range *ranges;
    uint32_t node;
    uint32_t count;

    if (!s->table || s->local_size == 1)
        return true;
    node = chempi_table_find_node(s->table, s->node_names[s->node]);
    if (node == CHEMPI_TABLE_NONE)
        return false;
    ranges = chempi_table_ranges(s->table, node, &count);
    for (uint32_t i = 0; i < count; i++) {
        int device = find_device(lane, ranges[i].device);

        if (device < 0 || ranges[i].stage_count > 1 ||
            !is_near(lane->conn.devices[device]))
            return false;
    }
    return true;
}

/* Is this process, and another one of its node, reached by near devices? */
bool chempi_conn_can_add_lanes(void)
{
    const struct chempi_lane *lane = &chempi_lane_main;
    const struct chempi_services *s = &chempi_ctx.services;
    bool has_self = false;
    bool has_node = s->local_size == 1;

    for (uint32_t i = 0; i < lane->conn.device_count; i++) {
        const struct chempi_dev *dev = lane->conn.devices[i];

        has_self |= is_near(dev) && (dev->caps->flags & CHEMPI_DEV_SELF);
        has_node |= is_near(dev) && !(dev->caps->flags & CHEMPI_DEV_SELF);
    }
    return has_self && has_node && is_table_near();
}

bool chempi_conn_is_drained(const struct chempi_lane *lane)
{
    for (uint32_t i = 0; i < lane->conn.device_count; i++)
        if (!lane->conn.devices[i]->ops->is_drained(lane->conn.devices[i]))
            return false;
    return true;
}

static void close_lane(struct chempi_lane *lane)
{
    for (uint32_t i = lane->conn.device_count; i-- > 0;)
        lane->conn.devices[i]->ops->close(lane->conn.devices[i]);
    lane->conn.device_count = 0;
    lane->conn.has_fds = false;
    for (struct chempi_peer *p = lane->conn.made; p; p = p->next_made)
        free_peer(p);
    lane->conn.made = NULL;
    if (!lane->conn.peers)
        return;
    chempi_sparse_free(lane->conn.peers, peer_room(lane),
                       sizeof(struct chempi_peer));
    lane->conn.peers = NULL;
    chempi_list_init(&lane->engine.awaited);
}

int chempi_conn_open_lane(struct chempi_lane *lane)
{
    const struct chempi_lane *first = &chempi_lane_main;
    struct chempi_err err = {0};
    int rc = 0;

    lane->conn.peers =
        chempi_sparse_alloc(peer_room(lane), sizeof(struct chempi_peer));
    if (!lane->conn.peers)
        return chempi_error_from(-ENOMEM, NULL);
    for (uint32_t i = 0; i < first->conn.device_count && !rc; i++) {
        struct chempi_dev *dev = first->conn.devices[i];

        if (is_near(dev))
            rc = open_device(lane, dev, dev->ops, &conn.params, &err);
    }
    if (!rc)
        return MPI_SUCCESS;
    close_lane(lane);
    return chempi_error_from(rc, &err);
}

void chempi_conn_close(void)
{
    CHEMPI_LANES_FOR_OTHERS(lane)
    close_lane(lane);
    close_lane(&chempi_lane_main);
    conn.overlay = NULL;
    conn.foreign = 0;
    atomic_store_explicit(&conn.resolved, 0, memory_order_relaxed);
    conn.lost = 0;
    conn.has_lost_own = false;
    chempi_ctx.missing = 0;
}

/* ---- the device that reaches processes of other worlds ---- */

int chempi_conn_open_foreign(struct chempi_dev **out, struct chempi_err *err)
{
    struct chempi_lane *lane = &chempi_lane_main;
    const struct chempi_dev_ops *ops = chempi_registry_foreign();
    const struct chempi_dev_params params = {
        .services = &conn.services,
        .sink = conn.params.foreign_sink,
        .sink_arg = lane,
        .settings = conn.params.settings(ops),
        .lanes = 1,
    };
    int rc;

    if (conn.foreign == 0 &&
        !chempi_sparse_open(lane->conn.peers, peer_room(lane),
                            sizeof(struct chempi_peer)))
        return chempi_err_set(err, -ENOMEM,
                              "no memory for processes of other worlds");
    if (conn.foreign == 0) {
        chempi_host_open_foreign(&chempi_ctx.services, chempi_foreign_bonds(),
                                 &conn.services);
        rc = add_device(lane, ops, &params, err);
        if (rc)
            return rc;
        conn.foreign = lane->conn.device_count - 1;
        lane->engine.is_wary = true;
    }
    *out = lane->conn.devices[conn.foreign];
    return 0;
}

/* ---- routes ---- */

static int add_route(struct chempi_peer *peer, uint32_t device,
                     uint32_t protocol, uint64_t max_len, uint32_t range,
                     struct chempi_err *err)
{
    struct chempi_dev *dev = peer->lane->conn.devices[device];
    const struct chempi_dev_caps *caps = dev->caps;
    struct chempi_conn_route *route = &peer->routes[peer->route_count];
    bool is_eager = caps->protocol_max[protocol] <= caps->eager_max;
    int rc;

    rc = dev->ops->connect(dev, peer->proc, &route->ep, err);
    if (rc)
        return rc;
    route->max_len = max_len;
    route->ops = dev->ops;
    route->protocol = caps->instead ? caps->instead[protocol] : protocol;
    route->device = device;
    route->range = range;
    route->inject_max = is_eager ? caps->inject_max : 0;
    route->eager_max = is_eager ? caps->eager_max : 0;
    peer->route_count++;
    return 0;
}

static int find_protocol(const struct chempi_dev_caps *caps, const char *name)
{
    for (uint32_t i = 0; i < caps->protocol_count; i++)
        if (strcmp(caps->protocols[i], name) == 0)
            return (int)i;
    return -1;
}

/* A range through gateways: its protocols are the overlay's own. `from` is the
 * least size that it takes. */
static int add_overlay_routes(struct chempi_peer *peer,
                              const struct chempi_table_range *range,
                              uint64_t from, uint32_t index,
                              struct chempi_err *err)
{
    const struct chempi_services *s = &chempi_ctx.services;
    const struct chempi_dev_caps *caps;
    int device =
        conn.overlay ? find_device(peer->lane, conn.overlay->ops->name) : -1;
    int rc = 0;

    if (device < 0)
        return chempi_err_set(
            err, -EHOSTUNREACH,
            "messages of up to %" PRIu64 " bytes from node %s to node %s go "
            "over the gateway on node %s, which is not part of this job; "
            "start the job with chempirun --network, or attach both nodes to "
            "a common network in the description",
            range->max_len, s->node_names[s->node], s->node_names[peer->node],
            chempi_table_node_name(s->table, range->stages[0].hops[0]));
    caps = peer->lane->conn.devices[device]->caps;
    for (uint32_t i = 0; i < caps->protocol_count && !rc; i++) {
        uint64_t max_len = caps->protocol_max[i] < range->max_len
                               ? caps->protocol_max[i]
                               : range->max_len;

        if (max_len >= from)
            rc = add_route(peer, (uint32_t)device, i, max_len, index, err);
        if (max_len == range->max_len)
            break;
        if (max_len >= from)
            from = max_len + 1;
    }
    return rc;
}

static int add_table_route(struct chempi_peer *peer,
                           const struct chempi_table_range *ranges,
                           uint32_t index, struct chempi_err *err)
{
    const struct chempi_table_range *range = &ranges[index];
    int device = find_device(peer->lane, range->device);
    int protocol;

    if (range->stage_count > 1)
        return add_overlay_routes(
            peer, range, index ? ranges[index - 1].max_len + 1 : 0, index, err);
    protocol =
        find_protocol(peer->lane->conn.devices[device]->caps, range->protocol);
    if (protocol < 0)
        return chempi_err_set(err, -ENOPROTOOPT,
                              "the connection table names protocol \"%s\" "
                              "towards node %s, which device %s does not have; "
                              "compile the description again with the mdconfig "
                              "of this version",
                              range->protocol,
                              chempi_ctx.services.node_names[peer->node],
                              range->device);
    return add_route(peer, (uint32_t)device, (uint32_t)protocol, range->max_len,
                     index, err);
}

static int routes_from_table(struct chempi_peer *peer, struct chempi_err *err)
{
    const struct chempi_services *s = &chempi_ctx.services;
    const struct chempi_table_range *ranges;
    uint32_t node = chempi_table_find_node(s->table, s->node_names[peer->node]);
    uint32_t count;
    int rc = 0;

    ranges = chempi_table_ranges(s->table, node, &count);
    if (count == 0)
        return chempi_err_set(err, -EHOSTUNREACH,
                              "node %s has no network that leads to node %s; "
                              "see mdconfig explain",
                              s->node_names[s->node],
                              s->node_names[peer->node]);
    peer->routes = chempi_sys->calloc((size_t)count * ROUTES_PER_RANGE,
                                      sizeof(*peer->routes));
    if (!peer->routes)
        return -ENOMEM;
    for (uint32_t i = 0; i < count && !rc; i++)
        rc = add_table_route(peer, ranges, i, err);
    return rc;
}

/* All that a device has. */
static int routes_of_device(struct chempi_peer *peer, uint32_t device,
                            struct chempi_err *err)
{
    const struct chempi_dev_caps *caps = peer->lane->conn.devices[device]->caps;
    int rc = 0;

    peer->routes =
        chempi_sys->calloc(caps->protocol_count, sizeof(*peer->routes));
    if (!peer->routes)
        return -ENOMEM;
    for (uint32_t i = 0; i < caps->protocol_count && !rc; i++)
        rc = add_route(peer, device, i, caps->protocol_max[i], 0, err);
    return rc;
}

/* By what the devices say of themselves: the first that reaches the peer. */
static int routes_by_reach(struct chempi_peer *peer, struct chempi_err *err)
{
    for (uint32_t d = 0; d < peer->lane->conn.device_count; d++) {
        struct chempi_dev *dev = peer->lane->conn.devices[d];
        struct chempi_ep *ep;

        if (is_own_device(peer->lane, d) &&
            dev->ops->connect(dev, peer->proc, &ep, err) == 0)
            return routes_of_device(peer, d, err);
    }
    return chempi_err_set(
        err, -EHOSTUNREACH,
        "no device of this build reaches rank %u on node %s "
        "from node %s; describe the networks between them "
        "(chempirun --network)",
        peer->proc, chempi_ctx.services.node_names[peer->node],
        chempi_ctx.services.node_names[chempi_ctx.services.node]);
}

/* Ask for the card of each device that needs one, once per device. */
static int ask_cards(const struct chempi_peer *peer)
{
    uint32_t asked = 0;

    for (uint32_t i = 0; i < peer->route_count; i++) {
        const struct chempi_conn_route *route = &peer->routes[i];
        const struct chempi_dev *dev = peer->lane->conn.devices[route->device];
        char key[CHEMPI_KVS_KEY_MAX];
        int rc;

        if (!(dev->caps->flags & CHEMPI_DEV_NEEDS_CARD) ||
            (asked & 1u << route->device))
            continue;
        asked |= 1u << route->device;
        rc = chempi_host_card_key(dev, key);
        if (!rc)
            rc = chempi_daemon_get(peer->proc, key);
        if (rc)
            return rc;
    }
    return 0;
}

/* To a process of another world: its card came with the bond between the
 * worlds, so none is asked for. */
static int routes_to_foreign(struct chempi_peer *peer, struct chempi_err *err)
{
    const struct chempi_foreign *f = chempi_foreign_at(peer->proc);
    int rc = routes_of_device(peer, conn.foreign, err);

    return rc ? rc
              : peer->routes->ops->card_arrived(peer->routes->ep, f->card,
                                                f->card_len, err);
}

/* To a process of the job. What on_resolved() asks is answered before the
 * cards are. */
static int routes_to_own(struct chempi_peer *peer, struct chempi_err *err)
{
    const struct chempi_services *s = &chempi_ctx.services;
    int rc = s->table && peer->proc != s->proc ? routes_from_table(peer, err)
                                               : routes_by_reach(peer, err);

    if (rc || peer->lane->number > 0)
        return rc;
    conn.on_resolved(peer->proc);
    return ask_cards(peer);
}

static void tell(enum chempi_event event, const struct chempi_peer *peer,
                 int32_t detail)
{
    const bool is_foreign = chempi_foreign_is(peer->proc);
    const int32_t elements[CHEMPI_EVENT_ELEMENTS] = {
        is_foreign ? -1 : (int32_t)peer->proc,
        is_foreign ? -1 : (int32_t)peer->node, detail};

    chempi_event_raise(event, elements);
}

/* A process counts as resolved once, whichever lane finds it first. */
static void count_resolved(const struct chempi_peer *peer)
{
    struct chempi_peer *first = chempi_conn_peer(&chempi_lane_main, peer->proc);

    if (atomic_exchange_explicit(&first->is_met, true, memory_order_relaxed))
        return;
    (void)atomic_fetch_add_explicit(&conn.resolved, 1, memory_order_relaxed);
    tell(CHEMPI_EVENT_RESOLVED, peer, (int32_t)peer->route_count);
}

static CHEMPI_NOINLINE int resolve(struct chempi_peer *peer)
{
    struct chempi_err err = {0};
    int rc = chempi_foreign_is(peer->proc) ? routes_to_foreign(peer, &err)
                                           : routes_to_own(peer, &err);

    if (!rc) {
        count_resolved(peer);
        return MPI_SUCCESS;
    }
    free(peer->routes);
    peer->routes = NULL;
    peer->route_count = 0;
    return chempi_error_from(rc, &err);
}

int chempi_conn_resolve(struct chempi_peer *peer)
{
    if (CHEMPI_LIKELY(peer->routes != NULL))
        return MPI_SUCCESS;
    return resolve(peer);
}

void chempi_conn_card(uint32_t proc, const char *key, const void *card,
                      size_t len)
{
    struct chempi_peer *peer;

    if (!chempi_lane_main.conn.peers)
        return;
    if (conn.overlay)
        conn.overlay->card(proc, key, card, len);
    if (proc >= rank_count())
        return;
    peer = &chempi_lane_main.conn.peers[proc];
    for (uint32_t i = 0; i < peer->route_count; i++) {
        struct chempi_conn_route *route = &peer->routes[i];
        struct chempi_dev *dev = chempi_lane_main.conn.devices[route->device];
        char own_key[CHEMPI_KVS_KEY_MAX];
        struct chempi_err err = {0};

        if (chempi_host_card_key(dev, own_key) || strcmp(own_key, key) != 0)
            continue;
        if (route->ops->card_arrived(route->ep, card, len, &err))
            chempi_conn_set_lost(&chempi_lane_main, proc, err.text);
        return;
    }
}

void chempi_conn_on_lost(void (*told)(struct chempi_peer *peer))
{
    conn.on_lost = told;
}

void chempi_conn_on_foreign_lost(void (*told)(uint32_t proc, const char *why))
{
    conn.on_foreign_lost = told;
}

enum chempi_remains chempi_conn_end(struct chempi_peer *peer)
{
    const struct chempi_lane *lane = peer->lane;
    const bool is_foreign = chempi_foreign_is(peer->proc);
    /* The foreign device is opened last. */
    const uint32_t own = conn.foreign && lane->number == 0
                             ? conn.foreign
                             : lane->conn.device_count;

    return is_foreign
               ? chempi_dev_remains(&lane->conn.devices[own], 1, peer->proc)
               : chempi_dev_remains(lane->conn.devices, own, peer->proc);
}

/* Another lane than the first has found it, and defers the rest. */
static void note_lost(struct chempi_lane *lane, uint32_t proc, const char *why)
{
    struct chempi_peer *peer = chempi_conn_peer(lane, proc);
    const size_t size = strlen(why) + 1;

    if (peer->is_lost)
        return;
    peer->is_lost = true;
    peer->why = chempi_sys->malloc(size);
    if (peer->why)
        memcpy(peer->why, why, size);
    peer->next_lost = lane->lost;
    lane->lost = peer;
    lane->has_deferred = true;
    if (conn.on_lost)
        conn.on_lost(peer);
}

/* Whether they have found it or not: what waits for the process ends when the
 * first lane knows. Who has that one's lock polls the others. */
static void lose_in_others(uint32_t proc)
{
    CHEMPI_LANES_FOR_OTHERS(lane)
    {
        struct chempi_peer *peer = chempi_conn_peer(lane, proc);

        chempi_lane_lock(lane);
        peer->is_lost = true;
        if (conn.on_lost)
            conn.on_lost(peer);
        if (lane->is_locking)
            chempi_lane_drop(lane);
    }
}

/* Others go on after the loss of a process of another world, whatever the job
 * does about its own. */
static void lose(struct chempi_peer *peer, const char *why)
{
    const bool is_foreign = chempi_foreign_is(peer->proc);

    conn.lost++;
    if (!is_foreign)
        chempi_error_note_loss(peer->proc, why);
    conn.has_lost_own |= !is_foreign;
    tell(CHEMPI_EVENT_LOST, peer, 0);
    peer->is_lost = true;
    chempi_ctx.missing += is_foreign || chempi_ctx.job->survives;
    if (!is_foreign)
        lose_in_others(peer->proc);
    if (conn.on_lost)
        conn.on_lost(peer);
    if (is_foreign && conn.on_foreign_lost)
        conn.on_foreign_lost(peer->proc, why);
}

void chempi_conn_set_lost(struct chempi_lane *lane, uint32_t proc,
                          const char *why)
{
    struct chempi_peer *peer;

    if (!chempi_lane_main.conn.peers)
        return;
    if (lane->number > 0) {
        note_lost(lane, proc, why);
        return;
    }
    if (!chempi_conn_is_peer(proc)) {
        if (conn.overlay)
            conn.overlay->lost(proc, why);
        return;
    }
    peer = chempi_conn_peer(lane, proc);
    if (peer->is_lost)
        return;
    lose(peer, why);
    if (proc < rank_count())
        chempi_daemon_suspect(proc, why);
}

void chempi_conn_lose_deferred(struct chempi_peer *lost)
{
    while (lost) {
        struct chempi_peer *next = lost->next_lost;

        chempi_conn_set_lost(&chempi_lane_main, lost->proc,
                             lost->why
                                 ? lost->why
                                 : "its shared memory cannot be used any more");
        lost = next;
    }
}

void chempi_conn_set_ended(uint32_t proc, const char *why)
{
    if (chempi_lane_main.conn.peers && chempi_conn_is_peer(proc))
        chempi_conn_peer(&chempi_lane_main, proc)->has_ended = true;
    chempi_conn_set_lost(&chempi_lane_main, proc, why);
}

void chempi_conn_forget_end(uint32_t proc)
{
    struct chempi_peer *peer = chempi_conn_peer(&chempi_lane_main, proc);

    if (!peer->has_ended)
        return;
    peer->has_ended = false;
    chempi_ctx.missing++; /* whoever has looked looks again */
    if (conn.on_lost)
        conn.on_lost(peer);
}

bool chempi_conn_has_ended(uint32_t rank)
{
    return chempi_conn_is_missing(rank) &&
           chempi_lane_main.conn.peers[rank].has_ended;
}

void chempi_conn_drained(uint32_t gateway, bool is_drained)
{
    if (conn.overlay)
        conn.overlay->drained(gateway, is_drained);
}

/* ---- counters ---- */

uint64_t chempi_conn_resolved_count(void)
{
    return atomic_load_explicit(&conn.resolved, memory_order_relaxed);
}

uint64_t chempi_conn_lost_count(void)
{
    return conn.lost;
}

bool chempi_conn_has_lost_own(void)
{
    return conn.has_lost_own;
}

const struct chempi_conn_overlay *chempi_conn_get_overlay(void)
{
    return conn.overlay;
}

bool chempi_conn_is_missing(uint32_t proc)
{
    return chempi_conn_missing_count() && chempi_conn_is_peer(proc) &&
           chempi_lane_main.conn.peers[proc].is_lost;
}
