/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processes of other worlds; see foreign.h.
 *
 *   F1  entries below `count` are known, and mean the same process until the
 *       library ends, and so are nodes below `node_count`; those of `names` and
 *       `places` from there on are left over from a bond that was refused, and
 *       are found by nobody
 *   F2  a node is known for each foreign process: where it is the same name of
 *       the same world, it is the same node
 *   F3  a bond's indexes are those of its members; its own place has this
 *       process's rank
 */
#include "libchempi/didl/transport/foreign.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/auth/secret.h"
#include "common/base/sys.h"
#include "common/containers/array.h"
#include "common/containers/index.h"
#include "common/containers/sparse.h"
#include "common/words/plain.h"
#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/base/setting.h"

enum { MEMBERS_MAX = 1 << 20 }; /* of both sides of a bond */

struct node {
    uint64_t world[2];
    char name[CHEMPI_NODE_NAME_MAX];
};

struct bond {
    struct chempi_bond is;
    uint32_t indexes[]; /* [is.size] F3 */
};

_Static_assert(offsetof(struct bond, is) == 0, "begins as what others see");

static struct {
    struct chempi_foreign *known; /* [CHEMPI_FOREIGN_MAX], NULL: none yet */
    _Atomic uint32_t count;       /* set_count() */
    struct node *nodes;           /* as known */
    uint32_t node_count;
    struct bond **bonds;
    uint32_t bond_count;
    uint32_t bond_room;
    struct chempi_index names;   /* of known */
    struct chempi_index places;  /* of nodes */
    struct chempi_index by_name; /* of bonds */
} self;

/* ---- names ---- */

static struct {
    pthread_once_t once;
    uint64_t world[2];
} own = {.once = PTHREAD_ONCE_INIT};

/* Nobody has told a process that nobody launched a secret. */
static void name_own_world(void)
{
    static const uint8_t none[CHEMPI_JOB_SECRET_BYTES];
    const struct chempi_services *s = &chempi_ctx.services;
    crypto_generichash_state hash;

    if (sodium_init() < 0 || !s->secret ||
        memcmp(s->secret, none, sizeof(none)) == 0) {
        randombytes_buf(own.world, sizeof(own.world));
        return;
    }
    (void)crypto_generichash_init(&hash, s->secret, sizeof(none),
                                  sizeof(own.world));
    (void)crypto_generichash_update(&hash, (const uint8_t *)s->job_id,
                                    strlen(s->job_id));
    (void)crypto_generichash_final(&hash, (uint8_t *)own.world,
                                   sizeof(own.world));
    sodium_memzero(&hash, sizeof(hash));
}

static uint32_t index_begin(void)
{
    return chempi_ctx.services.proc_count;
}

static uint32_t count(void)
{
    return atomic_load_explicit(&self.count, memory_order_acquire);
}

/* All before is written: partner of count(). */
static void set_count(uint32_t to)
{
    atomic_store_explicit(&self.count, to, memory_order_release);
}

static uint32_t index_end(void)
{
    return index_begin() + count();
}

bool chempi_foreign_is(uint32_t index)
{
    return count() > 0 && index >= index_begin();
}

const struct chempi_foreign *chempi_foreign_at(uint32_t index)
{
    return &self.known[index - index_begin()];
}

struct chempi_name chempi_foreign_name(uint32_t index)
{
    if (chempi_foreign_is(index))
        return chempi_foreign_at(index)->name;
    (void)pthread_once(&own.once, name_own_world);
    return (struct chempi_name){.world = {own.world[0], own.world[1]},
                                .rank = index};
}

static int compare(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

int chempi_foreign_compare(const struct chempi_name *a,
                           const struct chempi_name *b)
{
    int by = compare(a->world[0], b->world[0]);

    if (by == 0)
        by = compare(a->world[1], b->world[1]);
    return by ? by : compare(a->rank, b->rank);
}

uint32_t chempi_foreign_hash(const struct chempi_name *name)
{
    return chempi_index_hash_number(name->world[0] ^ name->world[1] ^
                                    name->rank * UINT64_C(0x9e3779b97f4a7c15));
}

static bool has_name(const void *elements, uint32_t number, const void *key)
{
    const struct chempi_foreign *known = elements;

    return number < count() &&
           chempi_foreign_compare(&known[number].name, key) == 0;
}

static bool is_own(const struct chempi_name *name)
{
    const struct chempi_name first = chempi_foreign_name(0);

    return name->world[0] == first.world[0] && name->world[1] == first.world[1];
}

uint32_t chempi_foreign_find(const struct chempi_name *name)
{
    uint32_t number;

    if (is_own(name))
        return name->rank < chempi_ctx.services.rank_count ? name->rank
                                                           : UINT32_MAX;
    number = chempi_index_find(&self.names, chempi_foreign_hash(name), has_name,
                               self.known, name);
    return number == CHEMPI_INDEX_NONE ? UINT32_MAX : index_begin() + number;
}

/* ---- nodes ---- */

uint32_t chempi_foreign_node(uint32_t index)
{
    return chempi_foreign_is(index)
               ? chempi_ctx.services.node_count + chempi_foreign_at(index)->node
               : chempi_ctx.services.node_of_proc[index];
}

const char *chempi_foreign_node_name(uint32_t index)
{
    const uint32_t node = chempi_foreign_node(index);

    return chempi_foreign_is(index)
               ? self.nodes[node - chempi_ctx.services.node_count].name
               : chempi_ctx.services.node_names[node];
}

void chempi_foreign_words(uint32_t index, char *buf, size_t len)
{
    if (chempi_foreign_is(index))
        (void)snprintf(buf, len, "%s on node %s", chempi_foreign_at(index)->who,
                       chempi_foreign_node_name(index));
    else
        (void)snprintf(buf, len, "rank %" PRIu32 " on node %s", index,
                       chempi_foreign_node_name(index));
}

static bool has_place(const void *elements, uint32_t number, const void *key)
{
    const struct node *nodes = elements;
    const struct chempi_introduction *in = key;

    return number < self.node_count &&
           nodes[number].world[0] == in->name.world[0] &&
           nodes[number].world[1] == in->name.world[1] &&
           strcmp(nodes[number].name, in->node) == 0;
}

/* F2. UINT32_MAX: no memory. */
static uint32_t node_for(const struct chempi_introduction *in)
{
    const uint32_t hash =
        chempi_index_hash_text((uint32_t)in->name.world[0], in->node);
    uint32_t node =
        chempi_index_find(&self.places, hash, has_place, self.nodes, in);

    if (node != CHEMPI_INDEX_NONE)
        return node;
    node = self.node_count;
    if (node == CHEMPI_FOREIGN_MAX || !chempi_index_add(&self.places, hash, node))
        return UINT32_MAX;
    memcpy(self.nodes[node].world, in->name.world, sizeof(in->name.world));
    memcpy(self.nodes[node].name, in->node, sizeof(self.nodes[node].name));
    self.node_count++;
    return node;
}

/* ---- what others are told of ---- */

static bool place(uint32_t index, struct chempi_bond_place *out)
{
    const struct chempi_foreign *f;

    if (index < index_begin() || index >= index_end())
        return false;
    f = chempi_foreign_at(index);
    *out = (struct chempi_bond_place){.bond = &self.bonds[f->bond]->is,
                                      .number = f->number,
                                      .node = chempi_foreign_node_name(index),
                                      .who = f->who};
    return true;
}

static bool has_bond_name(const void *elements, uint32_t number,
                          const void *key)
{
    struct bond *const *bonds = elements;

    return number < self.bond_count &&
           memcmp(bonds[number]->is.name, key, CHEMPI_BOND_NAME_BYTES) == 0;
}

static uint32_t hash_of_bond(const uint8_t *name)
{
    uint32_t hash;

    memcpy(&hash, name, sizeof(hash)); /* it is a digest */
    return hash;
}

static const struct chempi_bond *
find_bond(const uint8_t name[CHEMPI_BOND_NAME_BYTES])
{
    const uint32_t number = chempi_index_find(&self.by_name, hash_of_bond(name),
                                              has_bond_name, self.bonds, name);

    return number == CHEMPI_INDEX_NONE ? NULL : &self.bonds[number]->is;
}

static uint32_t index_in(const struct chempi_bond *bond, uint32_t number)
{
    const struct bond *b = (const struct bond *)(const void *)bond;

    return number >= bond->size || number == bond->self ||
                   !chempi_foreign_is(b->indexes[number])
               ? UINT32_MAX
               : b->indexes[number];
}

static bool is_before(uint32_t index)
{
    const struct chempi_name mine =
        chempi_foreign_name(chempi_ctx.services.proc);
    const struct chempi_name other = chempi_foreign_name(index);

    return chempi_foreign_compare(&mine, &other) < 0;
}

const struct chempi_bonds *chempi_foreign_bonds(void)
{
    static struct chempi_bonds bonds = {.place = place,
                                        .find = find_bond,
                                        .index = index_in,
                                        .is_before = is_before,
                                        .index_end = index_end};

    bonds.index_begin = index_begin();
    bonds.index_max = index_begin() + CHEMPI_FOREIGN_MAX;
    return &bonds;
}

/* ---- taking in a bond ---- */

static int no_memory(struct chempi_err *err)
{
    return chempi_err_set(err, -ENOMEM,
                          "no memory for processes of other "
                          "worlds");
}

/* It is shown to users. */
static bool is_plain(const char *name, size_t room)
{
    char shown[sizeof(((struct chempi_introduction *)NULL)->node)];
    const char *end = memchr(name, '\0', room);

    if (!end || end == name)
        return false;
    memcpy(shown, name, (size_t)(end - name));
    chempi_plain(shown, (size_t)(end - name), "");
    return memcmp(shown, name, (size_t)(end - name)) == 0;
}

static bool is_quota(uint32_t quota, enum chempi_setting_id id)
{
    const struct chempi_setting *setting = &chempi_setting_table().table[id];

    return quota >= setting->min && quota <= setting->max;
}

static int check_member(const struct chempi_introduction *in, uint32_t number,
                        struct chempi_err *err)
{
    if (in->card_len > sizeof(in->card) || in->survives > 1 ||
        in->is_secure > 1 || !is_plain(in->node, sizeof(in->node)) ||
        !is_quota(in->eager_quota, CHEMPI_SET_CONN_EAGER_QUOTA) ||
        !is_quota(in->sysmsg_quota, CHEMPI_SET_SYSMSG_QUOTA))
        return chempi_err_set(err, -EPROTO,
                              "what is told of member %" PRIu32 " is malformed",
                              number);
    if (is_own(&in->name) && in->name.rank >= chempi_ctx.services.rank_count)
        return chempi_err_set(err, -EPROTO,
                              "member %" PRIu32 " claims to be rank %" PRIu32
                              " of this world, which has no such rank",
                              number, in->name.rank);
    return 0;
}

static bool is_member(const void *elements, uint32_t number, const void *key)
{
    const struct chempi_introduction *members = elements;

    return chempi_foreign_compare(&members[number].name, key) == 0;
}

/* Each member once, and this process among them. */
static int check_members(const struct chempi_introduction *members,
                         uint32_t size, uint32_t *own_number,
                         struct chempi_err *err)
{
    const struct chempi_name mine =
        chempi_foreign_name(chempi_ctx.services.proc);
    struct chempi_index roll = {0};
    int rc = 0;

    for (uint32_t i = 0; i < size && !rc; i++) {
        const uint32_t hash = chempi_foreign_hash(&members[i].name);

        rc = check_member(&members[i], i, err);
        if (!rc && chempi_index_find(&roll, hash, is_member, members,
                                     &members[i].name) != CHEMPI_INDEX_NONE)
            rc = chempi_err_set(err, -EPROTO,
                                "member %" PRIu32 " is named twice: a process "
                                "cannot meet itself",
                                i);
        if (!rc && !chempi_index_add(&roll, hash, i))
            rc = no_memory(err);
    }
    *own_number = rc ? CHEMPI_INDEX_NONE
                     : chempi_index_find(&roll, chempi_foreign_hash(&mine),
                                         is_member, members, &mine);
    chempi_index_fini(&roll);
    if (!rc && *own_number == CHEMPI_INDEX_NONE)
        rc = chempi_err_set(err, -EPROTO, "this process is no member");
    return rc;
}

static int make_tables(struct chempi_err *err)
{
    if (!self.known)
        self.known =
            chempi_sparse_alloc(CHEMPI_FOREIGN_MAX, sizeof(*self.known));
    if (!self.nodes)
        self.nodes =
            chempi_sparse_alloc(CHEMPI_FOREIGN_MAX, sizeof(*self.nodes));
    return self.known && self.nodes ? 0 : no_memory(err);
}

/* As the next one; the caller counts it. */
static int get_to_know(struct chempi_foreign *f, uint32_t number,
                       const struct chempi_introduction *in,
                       struct chempi_err *err)
{
    const uint32_t node = node_for(in);
    uint8_t *card =
        chempi_sys->malloc(in->card_len > 0 ? in->card_len : (size_t)1);

    if (!card || node == UINT32_MAX ||
        !chempi_index_add(&self.names, chempi_foreign_hash(&in->name),
                          number)) {
        free(card);
        return no_memory(err);
    }
    memcpy(card, in->card, in->card_len);
    *f = (struct chempi_foreign){.name = in->name,
                                 .node = node,
                                 .survives = in->survives != 0,
                                 .eager_quota = in->eager_quota,
                                 .sysmsg_quota = in->sysmsg_quota,
                                 .card_len = in->card_len,
                                 .card = card};
    (void)snprintf(f->who, sizeof(f->who),
                   "rank %" PRIu32 " of world %08" PRIx32, in->name.rank,
                   (uint32_t)in->name.world[0]);
    return 0;
}

/* The indexes of all, new ones for those who are not known yet. */
static int find_all(const struct chempi_introduction *members, uint32_t size,
                    uint32_t *indexes, struct chempi_err *err)
{
    int rc = 0;

    for (uint32_t i = 0; i < size && !rc; i++) {
        const uint32_t number = count();
        struct chempi_foreign *f = &self.known[number];

        indexes[i] = chempi_foreign_find(&members[i].name);
        if (indexes[i] != UINT32_MAX)
            continue;
        if (number == CHEMPI_FOREIGN_MAX)
            return chempi_err_set(err, -ENOSPC,
                                  "this process has met %u processes of other "
                                  "worlds, the most that it can",
                                  (unsigned)CHEMPI_FOREIGN_MAX);
        rc = get_to_know(f, number, &members[i], err);
        if (rc)
            break;
        f->bond = self.bond_count; /* as soon as it is there */
        f->number = i;
        indexes[i] = index_begin() + number;
        set_count(number + 1);
    }
    return rc;
}

/* F1 */
static void forget_from(uint32_t first, uint32_t first_node)
{
    for (uint32_t i = first; i < count(); i++)
        free(self.known[i].card);
    set_count(first);
    self.node_count = first_node;
}

static void free_bond(struct bond *bond)
{
    if (bond)
        chempi_secret_destroy(bond,
                              sizeof(*bond) + bond->is.size * sizeof(uint32_t));
}

static struct bond *make_bond(const uint8_t *secret,
                              const struct chempi_introduction *members,
                              uint32_t size, uint32_t number,
                              struct chempi_err *err)
{
    struct bond *bond =
        chempi_secret_create(sizeof(*bond) + size * sizeof(uint32_t));

    if (!bond) {
        (void)no_memory(err);
        return NULL;
    }
    bond->is.self = number;
    bond->is.size = size;
    memcpy(bond->is.secret, secret, sizeof(bond->is.secret));
    (void)crypto_generichash(bond->is.name, sizeof(bond->is.name), secret,
                             CHEMPI_BOND_SECRET_BYTES, NULL, 0);
    for (uint32_t i = 0; i < size; i++)
        bond->is.is_secure |= members[i].is_secure != 0;
    return bond;
}

static int add_bond(struct bond *bond,
                    const struct chempi_introduction *members,
                    uint32_t *indexes, struct chempi_err *err)
{
    const uint32_t known = count();
    const uint32_t nodes = self.node_count;
    int rc;

    if (find_bond(bond->is.name))
        return chempi_err_set(err, -EPROTO, "this bond is known already");
    if (!CHEMPI_ARRAY_FIT(self.bonds, self.bond_room, self.bond_count + 1) ||
        !chempi_index_add(&self.by_name, hash_of_bond(bond->is.name),
                          self.bond_count))
        return no_memory(err);
    rc = find_all(members, bond->is.size, bond->indexes, err);
    if (rc) {
        forget_from(known, nodes);
        return rc;
    }
    self.bonds[self.bond_count++] = bond;
    memcpy(indexes, bond->indexes, bond->is.size * sizeof(*indexes));
    return 0;
}

int chempi_foreign_bind(const uint8_t secret[CHEMPI_BOND_SECRET_BYTES],
                        const struct chempi_introduction *members,
                        uint32_t size, uint32_t *indexes,
                        struct chempi_err *err)
{
    struct bond *bond;
    uint32_t number;
    int rc;

    if (size > MEMBERS_MAX)
        return chempi_err_set(err, -ENOSPC,
                              "%" PRIu32 " processes are more than can meet, "
                              "%d",
                              size, (int)MEMBERS_MAX);
    rc = make_tables(err);
    if (!rc)
        rc = check_members(members, size, &number, err);
    if (rc)
        return rc;
    bond = make_bond(secret, members, size, number, err);
    if (!bond)
        return -ENOMEM;
    rc = add_bond(bond, members, indexes, err);
    if (rc)
        free_bond(bond);
    return rc;
}

/* ---- who has met a world ---- */

static bool is_in(const struct bond *bond, const uint64_t world[2])
{
    for (uint32_t i = 0; i < bond->is.size; i++) {
        const struct chempi_foreign *f =
            chempi_foreign_is(bond->indexes[i])
                ? chempi_foreign_at(bond->indexes[i])
                : NULL;

        if (f && f->name.world[0] == world[0] && f->name.world[1] == world[1])
            return true;
    }
    return false;
}

void chempi_foreign_for_met(const uint64_t world[2],
                            void (*visit)(uint32_t rank, const void *arg),
                            const void *arg)
{
    for (uint32_t b = 0; b < self.bond_count; b++) {
        const struct bond *bond = self.bonds[b];

        if (!is_in(bond, world))
            continue;
        for (uint32_t i = 0; i < bond->is.size; i++)
            if (!chempi_foreign_is(bond->indexes[i]))
                visit(bond->indexes[i], arg);
    }
}

void chempi_foreign_fini(void)
{
    forget_from(0, 0);
    for (uint32_t i = 0; i < self.bond_count; i++)
        free_bond(self.bonds[i]);
    free(self.bonds);
    chempi_sparse_free(self.known, CHEMPI_FOREIGN_MAX, sizeof(*self.known));
    chempi_sparse_free(self.nodes, CHEMPI_FOREIGN_MAX, sizeof(*self.nodes));
    chempi_index_fini(&self.names);
    chempi_index_fini(&self.places);
    chempi_index_fini(&self.by_name);
    memset(&self, 0, sizeof(self));
}
