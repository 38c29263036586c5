/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading a description: networks, their protocols and attachments. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/compiler.h"
#include "common/table/network_types.h"
#include "mdconfig/description/reader.h"
#include "mdconfig/description/text.h"

/* Networks that one key of the description makes: they differ in name only,
 * and nodes are dealt to them in equal blocks. */
struct making {
    struct chempi_desc_network model;
    const struct chempi_network_types_device *serving; /* with its protocols */
    uint32_t first;
    uint32_t count;
    chempi_yaml_value key;
};

/* ---- type and device ---------------------------------------------------- */

enum kind { TYPE, DEVICE, CARD };

/* The name of the i-th of a kind, NULL beyond the last one. */
static const char *name_at(enum kind kind, size_t i)
{
    const struct chempi_network_types_device *d =
        chempi_network_types_device_at(i);
    const struct chempi_network_types_type *t = chempi_network_types_type_at(i);
    const struct chempi_network_types_card *c = chempi_network_types_card_at(i);

    if (kind == CARD)
        return c ? c->name : NULL;
    if (kind == DEVICE)
        return d ? d->name : NULL;
    return t ? t->name : NULL;
}

static const char *list_known(struct chempi_desc_reader *r, enum kind kind,
                              const char *near_to, const char **near)
{
    const char *words[32];
    size_t n = 0;
    char text[1024] = "";
    size_t at = 0;

    for (; n < CHEMPI_ARRAY_LEN(words) && name_at(kind, n); n++) {
        words[n] = name_at(kind, n);
        at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%.24s",
                               n ? ", " : "", words[n]);
    }
    *near = chempi_text_suggest(near_to, words, n);
    return chempi_arena_text(&r->scratch, text);
}

static int unknown_word(struct chempi_desc_reader *r, chempi_yaml_value value,
                        enum kind kind, const char *what, const char *text)
{
    const char *near;
    const char *list = list_known(r, kind, text, &near);

    return chempi_yaml_fail(r->yaml, value, r->err,
                            "expected %s (%s), found '%.40s'%s%s%s", what, list,
                            text, near ? "; did you mean '" : "",
                            near ? near : "", near ? "'?" : "");
}

static int read_type(struct chempi_desc_reader *r, chempi_yaml_value value,
                     void *target)
{
    struct making *m = target;
    const struct chempi_network_types_type *type;
    const char *text = "";
    int rc = chempi_reader_text(r, value, "the type of a network", &text);

    if (rc)
        return rc;
    type = chempi_network_types_type_find(text);
    if (!type)
        return unknown_word(r, value, TYPE, "the type of a network", text);
    m->model.type = type->name;
    m->model.device = type->device;
    m->model.inside_node = type->inside_node;
    return 0;
}

static int read_device(struct chempi_desc_reader *r, chempi_yaml_value value,
                       void *target)
{
    struct making *m = target;
    const struct chempi_network_types_device *device;
    const char *text = "";
    int rc = chempi_reader_text(r, value, "the name of a device", &text);

    if (rc)
        return rc;
    device = chempi_network_types_device_find(text);
    if (!device)
        return unknown_word(r, value, DEVICE, "the name of a device", text);
    if (!m->model.inside_node && strcmp(device->name, "shm") == 0)
        return chempi_yaml_fail(r->yaml, value, r->err,
                                "expected a device that joins nodes, found "
                                "'shm', which serves the type smp only");
    m->model.device = device->name;
    return 0;
}

static int read_card(struct chempi_desc_reader *r, chempi_yaml_value value,
                     void *target)
{
    struct making *m = target;
    const struct chempi_network_types_card *card;
    const char *text = "";
    int rc = chempi_reader_text(r, value, "the name of a card", &text);

    if (rc)
        return rc;
    card = chempi_network_types_card_find(text);
    if (!card)
        return unknown_word(r, value, CARD, "the name of a card", text);
    if (strcmp(card->type, m->model.type) != 0)
        return chempi_yaml_fail(r->yaml, value, r->err,
                                "expected a card of networks of type %s, "
                                "found '%s', which is one of type %s",
                                m->model.type, card->name, card->type);
    if (strcmp(card->device.name, m->model.device) != 0)
        return chempi_yaml_fail(r->yaml, value, r->err,
                                "expected device %s, which emulates '%s', "
                                "found device %s",
                                card->device.name, card->name, m->model.device);
    m->serving = &card->device;
    m->model.card = card->name;
    return 0;
}

static const struct chempi_network_types_device *serving(const struct making *m)
{
    return m->serving
               ? m->serving
               : chempi_network_types_serving(m->model.type, m->model.device);
}

/* ---- protocols ---------------------------------------------------------- */

struct figures {
    struct chempi_desc_protocol protocol;
    bool has_latency;
    bool has_bandwidth;
};

static int read_latency(struct chempi_desc_reader *r, chempi_yaml_value value,
                        void *target)
{
    struct figures *f = target;

    f->has_latency = true;
    return chempi_reader_time(r, value, true, &f->protocol.latency_us,
                              &f->protocol.latency_spread);
}

static int read_bandwidth(struct chempi_desc_reader *r, chempi_yaml_value value,
                          void *target)
{
    struct figures *f = target;

    f->has_bandwidth = true;
    return chempi_reader_bandwidth(r, value, &f->protocol.bw_bytes_per_us,
                                   &f->protocol.bw_spread);
}

static int read_cost(struct chempi_desc_reader *r, chempi_yaml_value value,
                     void *target)
{
    struct figures *f = target;

    return chempi_reader_time(r, value, false, &f->protocol.cost_us,
                              &f->protocol.cost_spread);
}

static int read_min(struct chempi_desc_reader *r, chempi_yaml_value value,
                    void *target)
{
    struct figures *f = target;

    return chempi_reader_size(r, value, &f->protocol.min_len);
}

static int read_max(struct chempi_desc_reader *r, chempi_yaml_value value,
                    void *target)
{
    struct figures *f = target;

    if (strcmp(chempi_yaml_text(r->yaml, value), "none") == 0) {
        f->protocol.max_len = UINT64_MAX;
        return 0;
    }
    return chempi_reader_size(r, value, &f->protocol.max_len);
}

static void copy_default(const struct chempi_network_types_protocol *known,
                         struct chempi_desc_protocol *out)
{
    *out = (struct chempi_desc_protocol){
        .name = known->name,
        .latency_us = known->latency_us,
        .bw_bytes_per_us = known->bw_bytes_per_us,
        .cost_us = known->cost_us,
        .min_len = known->min_len,
        .max_len = known->max_len,
        .is_default = true,
    };
}

static int unknown_protocol(struct chempi_desc_reader *r,
                            chempi_yaml_value value, const struct making *m,
                            const char *name)
{
    const struct chempi_network_types_device *device = serving(m);
    const char *words[CHEMPI_DESC_PROTOCOLS_MAX];
    char list[256] = "";
    const char *near;
    size_t at = 0;
    size_t n = 0;

    for (; n < device->protocol_count && n < CHEMPI_ARRAY_LEN(words); n++) {
        words[n] = device->protocols[n].name;
        at += (size_t)snprintf(list + at, sizeof(list) - at, "%s%.14s",
                               n ? ", " : "", words[n]);
    }
    near = chempi_text_suggest(name, words, n);
    return chempi_yaml_fail(
        r->yaml, value, r->err,
        "expected a protocol of device %s%s%s%s%s (%s), found "
        "'%.40s'%s%s%s",
        device->name, device->card ? " on networks of type " : "",
        device->card ? m->model.type : "", m->model.card ? " with card " : "",
        m->model.card ? m->model.card : "", list, name,
        near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

static int read_protocol(struct chempi_desc_reader *r,
                         const struct chempi_yaml_pair *pair,
                         const struct making *m,
                         struct chempi_desc_protocol *out)
{
    static const struct chempi_reader_field fields[] = {
        {"latency", read_latency, false}, {"bandwidth", read_bandwidth, false},
        {"cost", read_cost, false},       {"min", read_min, false},
        {"max", read_max, false},
    };
    const struct chempi_network_types_protocol *known =
        chempi_network_types_protocol_find(serving(m), pair->name);
    struct figures f = {.has_latency = false};
    int rc;

    if (!known)
        return unknown_protocol(r, pair->key, m, pair->name);
    copy_default(known, &f.protocol);
    if (chempi_yaml_kind_of(r->yaml, pair->value) != CHEMPI_YAML_NULL) {
        rc = chempi_reader_fields(r, pair->value, "a protocol", fields,
                                  CHEMPI_ARRAY_LEN(fields), &f);
        if (rc)
            return rc;
    }
    if (f.protocol.min_len > f.protocol.max_len)
        return chempi_yaml_fail(r->yaml, pair->key, r->err,
                                "expected limits with min <= max, found "
                                "protocol '%s' with none between them",
                                known->name);
    f.protocol.is_named = true;
    f.protocol.is_default = !f.has_latency || !f.has_bandwidth;
    *out = f.protocol;
    return 0;
}

/* Every size needs a protocol (invariant D3). */
static int check_sizes(struct chempi_desc_reader *r, chempi_yaml_value value,
                       const struct chempi_desc_network *net)
{
    struct chempi_line lines[CHEMPI_DESC_PROTOCOLS_MAX];
    struct chempi_piece *pieces;
    uint64_t from = 0;
    size_t count;
    int rc;

    for (size_t i = 0; i < net->protocol_count; i++)
        lines[i] = (struct chempi_line){
            .min_len = net->protocols[i].min_len,
            .max_len = net->protocols[i].max_len,
        };
    rc = chempi_lower_envelope(lines, net->protocol_count, &pieces, &count);
    if (rc)
        return chempi_err_set(r->err, rc, "no memory");
    for (size_t i = 0; i < count && !rc; i++) {
        if (pieces[i].line == CHEMPI_LOWER_ENVELOPE_NONE)
            rc = chempi_yaml_fail(r->yaml, value, r->err,
                                  "expected protocols for messages of every "
                                  "size, found none for %llu bytes",
                                  (unsigned long long)from);
        from = pieces[i].max_len + 1; /* wraps after the last */
    }
    free(pieces);
    return rc;
}

static int read_protocols(struct chempi_desc_reader *r, chempi_yaml_value value,
                          void *target)
{
    struct making *m = target;
    struct chempi_yaml_pair *pairs;
    size_t count;
    int rc = chempi_yaml_pairs(r->yaml, value, "protocols with their figures",
                               &r->scratch, &pairs, &count, r->err);

    if (rc)
        return rc;
    if (count == 0 || count > CHEMPI_DESC_PROTOCOLS_MAX)
        return chempi_yaml_expected(r->yaml, value, r->err,
                                    "from 1 to 16 protocols");
    m->model.protocols =
        chempi_arena_get(&r->desc->arena, count, sizeof(*m->model.protocols));
    m->model.protocol_count = count;
    for (size_t i = 0; i < count; i++) {
        rc = read_protocol(r, &pairs[i], m, &m->model.protocols[i]);
        if (rc)
            return rc;
    }
    return check_sizes(r, value, &m->model);
}

static void
use_default_protocols(struct chempi_desc *desc,
                      const struct chempi_network_types_device *device,
                      struct chempi_desc_network *net)
{
    net->protocol_count = device->protocol_count;
    net->protocols = chempi_arena_get(&desc->arena, net->protocol_count,
                                      sizeof(*net->protocols));
    for (size_t i = 0; i < net->protocol_count; i++)
        copy_default(&device->protocols[i], &net->protocols[i]);
}

/* ---- attachments -------------------------------------------------------- */

/* What one key of "attach" says. */
struct attaching {
    struct making *making;
    struct chempi_unfold nodes;
    struct chempi_unfold address;
    struct chempi_unfold interface;
    bool has_address;
    bool has_interface;
    bool can_send;
    bool can_receive;
};

static int unknown_node(struct chempi_desc_reader *r, chempi_yaml_value at,
                        const char *name)
{
    const struct chempi_desc *d = r->desc;
    size_t count = d->node_count < 4096 ? d->node_count : 4096;
    const char **words = chempi_arena_get(&r->scratch, count, sizeof(*words));
    const char *near;

    for (size_t i = 0; i < count; i++)
        words[i] = d->nodes[i].name;
    near = chempi_text_suggest(name, words, count);
    return chempi_yaml_fail(r->yaml, at, r->err,
                            "expected a node, found '%.80s', which is not "
                            "among the nodes%s%s%s",
                            name, near ? "; did you mean '" : "",
                            near ? near : "", near ? "'?" : "");
}

static int attach(struct chempi_desc_reader *r, chempi_yaml_value at,
                  uint32_t node, const struct chempi_desc_attachment *a)
{
    struct chempi_desc *d = r->desc;
    struct chempi_desc_node *n = &d->nodes[node];
    size_t place = n->attachment_count;

    /* Networks are read in ascending order, but for those of one key. */
    while (place > 0 && n->attachments[place - 1].network > a->network)
        place--;
    if (place > 0 && n->attachments[place - 1].network == a->network)
        return chempi_yaml_fail(r->yaml, at, r->err,
                                "expected each node once, found '%s' attached "
                                "to '%s' again",
                                n->name, d->networks[a->network].name);
    if (d->attachment_total == CHEMPI_DESC_ATTACHMENTS_MAX)
        return chempi_yaml_fail(r->yaml, at, r->err,
                                "expected at most %u attachments, found more",
                                CHEMPI_DESC_ATTACHMENTS_MAX);
    n->attachments =
        chempi_mem_grow(n->attachments, n->attachment_count,
                        &n->attachment_room, sizeof(*n->attachments));
    memmove(n->attachments + place + 1, n->attachments + place,
            (n->attachment_count - place) * sizeof(*n->attachments));
    n->attachments[place] = *a;
    n->attachments[place].line = (uint32_t)chempi_yaml_line(r->yaml, at);
    n->attachments[place].column = (uint32_t)chempi_yaml_column(r->yaml, at);
    n->attachment_count++;
    d->attachment_total++;
    return 0;
}

static bool is_ip_address(const char *text)
{
    unsigned char bytes[16];
    char plain[64];
    size_t len = strcspn(text, "%");

    if (len >= sizeof(plain) || (text[len] == '%' && !text[len + 1]))
        return false;
    memcpy(plain, text, len);
    plain[len] = '\0';
    return inet_pton(AF_INET6, plain, bytes) == 1 ||
           (!text[len] && inet_pton(AF_INET, plain, bytes) == 1);
}

static int put_address(struct chempi_desc_reader *r, chempi_yaml_value at,
                       const struct attaching *w, uint32_t i, const char **out)
{
    char text[CHEMPI_UNFOLD_NAME_MAX];

    chempi_unfold_name(&w->address, i, text);
    if (strcmp(w->making->model.device, "tcp") == 0 && !is_ip_address(text))
        return chempi_yaml_fail(r->yaml, at, r->err,
                                "expected an IPv4 or IPv6 address, found "
                                "'%.80s'",
                                text);
    if (strpbrk(text, " \t\r\n"))
        return chempi_yaml_fail(r->yaml, at, r->err,
                                "expected an address without spaces, found "
                                "'%.80s'",
                                text);
    *out = chempi_arena_text(&r->desc->arena, text);
    return 0;
}

static int attach_one(struct chempi_desc_reader *r, chempi_yaml_value at,
                      const struct attaching *w, uint32_t i, uint32_t node)
{
    const struct making *m = w->making;
    struct chempi_desc_attachment a = {
        .network = m->first + i / (w->nodes.count / m->count),
        .can_send = w->can_send,
        .can_receive = w->can_receive,
    };
    char text[CHEMPI_UNFOLD_NAME_MAX];
    int rc;

    if (w->has_address) {
        rc = put_address(r, at, w, i, &a.address);
        if (rc)
            return rc;
    }
    if (w->has_interface) {
        chempi_unfold_name(&w->interface, w->interface.count > 1 ? i : 0, text);
        rc = chempi_reader_check_name(r, at, "the name of an interface", text);
        if (rc)
            return rc;
        a.interface = chempi_arena_text(&r->desc->arena, text);
    }
    return attach(r, at, node, &a);
}

static int check_counts(struct chempi_desc_reader *r, chempi_yaml_value at,
                        const struct attaching *w)
{
    uint32_t nodes = w->nodes.count;

    if (w->has_address && w->address.count != nodes)
        return chempi_yaml_fail(r->yaml, at, r->err,
                                "expected as many addresses as nodes (%u), "
                                "found %u",
                                nodes, w->address.count);
    if (w->has_interface && w->interface.count != 1 &&
        w->interface.count != nodes)
        return chempi_yaml_fail(r->yaml, at, r->err,
                                "expected one interface or as many as nodes "
                                "(%u), found %u",
                                nodes, w->interface.count);
    if (nodes % w->making->count != 0)
        return chempi_yaml_fail(r->yaml, at, r->err,
                                "expected nodes in equal shares for %u "
                                "networks, found %u nodes",
                                w->making->count, nodes);
    return 0;
}

static int attach_pattern(struct chempi_desc_reader *r, chempi_yaml_value at,
                          const struct attaching *w)
{
    char name[CHEMPI_UNFOLD_NAME_MAX];
    uint32_t node;
    int rc = check_counts(r, at, w);

    for (uint32_t i = 0; !rc && i < w->nodes.count; i++) {
        chempi_unfold_name(&w->nodes, i, name);
        node = chempi_names_find(&r->desc->node_names, name);
        rc = node == CHEMPI_NAMES_NONE ? unknown_node(r, at, name)
                                       : attach_one(r, at, w, i, node);
    }
    return rc;
}

/* Every node to each of the networks. */
static int attach_all(struct chempi_desc_reader *r, chempi_yaml_value at,
                      const struct making *m)
{
    int rc = 0;

    for (uint32_t k = 0; k < m->count && !rc; k++) {
        struct chempi_desc_attachment a = {
            .network = m->first + k, .can_send = true, .can_receive = true};

        for (uint32_t i = 0; i < r->desc->node_count && !rc; i++)
            rc = attach(r, at, i, &a);
    }
    return rc;
}

static int read_address(struct chempi_desc_reader *r, chempi_yaml_value value,
                        void *target)
{
    struct attaching *w = target;

    w->has_address = true;
    return chempi_reader_pattern(r, value, "an address", &w->address);
}

static int read_interface(struct chempi_desc_reader *r, chempi_yaml_value value,
                          void *target)
{
    struct attaching *w = target;

    w->has_interface = true;
    return chempi_reader_pattern(r, value, "an interface", &w->interface);
}

static int read_direction(struct chempi_desc_reader *r, chempi_yaml_value value,
                          void *target)
{
    static const char *const words[] = {"both", "send", "receive"};
    struct attaching *w = target;
    size_t i = 0;
    int rc = chempi_reader_choice(r, value, "both, send or receive", words,
                                  CHEMPI_ARRAY_LEN(words), &i);

    w->can_send = i != 2;
    w->can_receive = i != 1;
    return rc;
}

/* A pattern of nodes, with its address or its properties (0: none). */
static int read_attachment(struct chempi_desc_reader *r, struct making *m,
                           chempi_yaml_value key, chempi_yaml_value value)
{
    static const struct chempi_reader_field fields[] = {
        {"address", read_address, false},
        {"interface", read_interface, false},
        {"direction", read_direction, false},
    };
    struct attaching w = {.making = m, .can_send = true, .can_receive = true};
    int rc;

    if (strcmp(chempi_yaml_text(r->yaml, key), "all") == 0)
        return chempi_yaml_kind_of(r->yaml, value) == CHEMPI_YAML_NULL
                   ? attach_all(r, key, m)
                   : chempi_yaml_fail(r->yaml, key, r->err,
                                      "expected names of nodes with their "
                                      "addresses or properties, found 'all', "
                                      "which has neither; name the nodes, "
                                      "such as node[00-31]");
    rc = chempi_reader_pattern(r, key, "the name of a node", &w.nodes);
    if (rc)
        return rc;
    switch (chempi_yaml_kind_of(r->yaml, value)) {
    case CHEMPI_YAML_NULL:
        break;
    case CHEMPI_YAML_SCALAR:
        rc = read_address(r, value, &w);
        break;
    default:
        rc = chempi_reader_fields(r, value, "an attachment", fields,
                                  CHEMPI_ARRAY_LEN(fields), &w);
    }
    return rc ? rc : attach_pattern(r, key, &w);
}

static int read_attach(struct chempi_desc_reader *r, chempi_yaml_value value,
                       void *target)
{
    struct chempi_yaml_pair *pairs;
    size_t count;
    int rc = 0;

    switch (chempi_yaml_kind_of(r->yaml, value)) {
    case CHEMPI_YAML_SCALAR:
        return read_attachment(r, target, value, 0);
    case CHEMPI_YAML_LIST:
        count = chempi_yaml_count(r->yaml, value);
        for (size_t i = 0; i < count && !rc; i++)
            rc = read_attachment(r, target, chempi_yaml_item(r->yaml, value, i),
                                 0);
        return rc;
    default:
        rc = chempi_yaml_pairs(r->yaml, value, "the nodes that are attached",
                               &r->scratch, &pairs, &count, r->err);
        for (size_t i = 0; !rc && i < count; i++)
            rc = read_attachment(r, target, pairs[i].key, pairs[i].value);
        return rc;
    }
}

/* ---- networks ----------------------------------------------------------- */

static int add_networks(struct chempi_desc_reader *r, struct making *m)
{
    struct chempi_desc *d = r->desc;
    struct chempi_unfold pattern;
    char name[CHEMPI_UNFOLD_NAME_MAX];
    int rc =
        chempi_reader_pattern(r, m->key, "the name of a network", &pattern);

    if (rc)
        return rc;
    if (pattern.count > CHEMPI_DESC_NETWORKS_MAX - d->network_count)
        return chempi_yaml_fail(r->yaml, m->key, r->err,
                                "expected at most %u networks, found more",
                                CHEMPI_DESC_NETWORKS_MAX);
    m->first = d->network_count;
    m->count = pattern.count;
    for (uint32_t i = 0; i < pattern.count; i++) {
        struct chempi_desc_network *net;

        chempi_unfold_name(&pattern, i, name);
        rc = chempi_reader_check_name(r, m->key, "the name of a network", name);
        if (rc)
            return rc;
        if (chempi_names_find(&d->network_names, name) != CHEMPI_NAMES_NONE)
            return chempi_yaml_fail(r->yaml, m->key, r->err,
                                    "expected each network once, found '%s' "
                                    "again",
                                    name);
        d->networks = chempi_mem_grow(d->networks, d->network_count,
                                      &d->network_room, sizeof(*d->networks));
        net = &d->networks[d->network_count];
        *net = m->model;
        net->name = chempi_arena_text(&d->arena, name);
        net->line = chempi_yaml_line(r->yaml, m->key);
        net->column = chempi_yaml_column(r->yaml, m->key);
        chempi_names_add(&d->network_names, net->name, d->network_count++);
    }
    return 0;
}

static int read_network_head(struct chempi_desc_reader *r,
                             chempi_yaml_value value, void *target)
{
    /* Attachments come after the networks are made; see read_network. */
    (void)r;
    (void)value;
    (void)target;
    return 0;
}

static int read_network(struct chempi_desc_reader *r,
                        const struct chempi_yaml_pair *pair)
{
    static const struct chempi_reader_field fields[] = {
        {"type", read_type, true},
        {"device", read_device, false},
        {"card", read_card, false},
        {"protocols", read_protocols, false},
        {"attach", read_network_head, false},
    };
    struct making m = {.key = pair->key};
    struct chempi_yaml_pair *pairs;
    size_t count;
    int rc;

    rc = chempi_reader_fields(r, pair->value, "a network", fields,
                              CHEMPI_ARRAY_LEN(fields), &m);
    if (rc)
        return rc;
    if (m.model.protocol_count == 0)
        use_default_protocols(r->desc, serving(&m), &m.model);
    for (size_t i = 0; m.model.card && i < m.model.protocol_count; i++)
        m.model.protocols[i].is_default = false;
    rc = add_networks(r, &m);
    if (!rc)
        rc = chempi_yaml_pairs(r->yaml, pair->value, "a network", &r->scratch,
                               &pairs, &count, r->err);
    for (size_t i = 0; !rc && i < count; i++) {
        if (strcmp(pairs[i].name, "attach") == 0)
            return read_attach(r, pairs[i].value, &m);
    }
    if (!rc && m.model.inside_node)
        return attach_all(r, pair->key, &m);
    if (!rc)
        rc = chempi_yaml_fail(r->yaml, pair->value, r->err,
                              "expected the key 'attach' in network '%.63s', "
                              "found none",
                              pair->name);
    return rc;
}

int chempi_reader_networks(struct chempi_desc_reader *r,
                           chempi_yaml_value value, void *target)
{
    struct chempi_yaml_pair *pairs;
    size_t count;
    int rc;

    (void)target;
    if (chempi_yaml_kind_of(r->yaml, value) == CHEMPI_YAML_NULL)
        return 0;
    rc = chempi_yaml_pairs(r->yaml, value, "networks by name", &r->scratch,
                           &pairs, &count, r->err);
    for (size_t i = 0; !rc && i < count; i++)
        rc = read_network(r, &pairs[i]);
    return rc;
}

int chempi_reader_imply_smp(struct chempi_desc_reader *r)
{
    struct chempi_desc *d = r->desc;
    const struct chempi_network_types_type *smp =
        chempi_network_types_type_find("smp");
    struct chempi_desc_network *net;
    struct chempi_desc_attachment a = {.can_send = true, .can_receive = true};
    int rc = 0;

    for (uint32_t i = 0; i < d->network_count; i++) {
        if (d->networks[i].inside_node)
            return 0;
    }
    if (chempi_names_find(&d->network_names, "smp") != CHEMPI_NAMES_NONE)
        return 0; /* the name is taken: messages inside a node use it */
    d->networks = chempi_mem_grow(d->networks, d->network_count,
                                  &d->network_room, sizeof(*d->networks));
    net = &d->networks[d->network_count];
    *net = (struct chempi_desc_network){.name = "smp",
                                        .type = smp->name,
                                        .device = smp->device,
                                        .inside_node = true,
                                        .implied = true};
    use_default_protocols(d, chempi_network_types_device_find(smp->device),
                          net);
    chempi_names_add(&d->network_names, net->name, d->network_count);
    a.network = d->network_count++;
    for (uint32_t i = 0; i < d->node_count && !rc; i++)
        rc = attach(r, 0, i, &a);
    return rc;
}
