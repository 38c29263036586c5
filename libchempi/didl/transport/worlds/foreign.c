/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processes of other worlds; see foreign.h.
 *
 *   F1  entries below `count` are known, and mean the same process until the
 *       library ends; so do nodes below `node_count`
 *   F2  a node is known for each foreign process: where it is the same name of
 *       the same world, it is the same node
 *   F3  the indexes of a bond that was taken in are those of its members; its
 *       own place has this process's rank
 *   F4  for each fresh member of a prepared bond there is room in all tables,
 *       and for each such bond
 *   F5  again is the sum over all bonds, CHEMPI_FOREIGN_AGAIN_MAX at most
 */
#include "libchempi/didl/transport/worlds/foreign.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/auth/secret.h"
#include "common/base/invariant.h"
#include "common/base/sys.h"
#include "common/containers/array.h"
#include "common/containers/index.h"
#include "common/containers/sparse.h"
#include "common/words/plain.h"
#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/base/setting.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/transport/worlds/vouch.h"

enum {
    MEMBERS_MAX = 1 << 20, /* of both sides of a bond */
    BOND_LEAST = 4096      /* bytes that one takes at least, about */
};

struct node {
    uint64_t world[2];
    char name[CHEMPI_NODE_NAME_MAX];
};

/* A member that is to be known. */
struct fresh {
    uint32_t number; /* in the bond */
    struct chempi_foreign is;
    struct node on;
};

struct bond {
    struct chempi_bond is;
    uint32_t at;         /* among all that were taken in */
    struct fresh *fresh; /* [fresh_count], while it is prepared only */
    uint32_t fresh_count;
    uint64_t again;     /* bytes for who was known before (F5) */
    bool is_needed;     /* chempi_foreign_needs() */
    uint32_t indexes[]; /* [is.size] F3 */
};

_Static_assert(offsetof(struct bond, is) == 0, "begins as what others see");

/* Why processes are missing. */
struct sentence {
    struct sentence *next;
    char text[];
};

static struct {
    struct chempi_foreign *known; /* [CHEMPI_FOREIGN_MAX], NULL: none yet */
    _Atomic uint32_t count;       /* set_count() */
    struct node *nodes;           /* as known */
    uint32_t node_count;
    struct bond **bonds;
    uint32_t bond_count;
    uint32_t bond_room;
    uint32_t pending;            /* prepared bonds */
    uint32_t fresh_pending;      /* their fresh members */
    uint64_t again;              /* of all bonds (F5) */
    struct chempi_index names;   /* of known */
    struct chempi_index places;  /* of nodes */
    struct chempi_index by_name; /* of bonds */
    struct sentence *sentences;
} self;

/* ---- hashes ---- */

/* Others choose what they are called: the key is this process's. */
static struct {
    pthread_once_t once;
    uint8_t bytes[crypto_shorthash_KEYBYTES];
} hash_key = {.once = PTHREAD_ONCE_INIT};

static void make_hash_key(void)
{
    randombytes_buf(hash_key.bytes, sizeof(hash_key.bytes));
}

static uint32_t hash_of(const void *data, size_t len)
{
    uint8_t out[crypto_shorthash_BYTES];
    uint32_t hash;

    (void)pthread_once(&hash_key.once, make_hash_key);
    (void)crypto_shorthash(out, data, len, hash_key.bytes);
    memcpy(&hash, out, sizeof(hash));
    return hash;
}

static uint32_t hash_of_name(const struct chempi_name *name)
{
    const uint64_t parts[] = {name->world[0], name->world[1], name->rank};

    return hash_of(parts, sizeof(parts));
}

static uint32_t hash_of_node(const struct node *node)
{
    return hash_of(node, sizeof(*node)); /* behind the name it is zeros */
}

/* ---- names ---- */

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

static struct chempi_name own_name(uint32_t rank)
{
    struct chempi_name name = {.rank = rank};

    chempi_vouch_name(name.world);
    return name;
}

struct chempi_name chempi_foreign_name(uint32_t index)
{
    if (chempi_foreign_is(index))
        return chempi_foreign_at(index)->name;
    return own_name(index);
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
    uint64_t world[2];

    chempi_vouch_name(world);
    return chempi_foreign_is_world(name->world, world);
}

uint32_t chempi_foreign_find(const struct chempi_name *name)
{
    uint32_t number;

    if (is_own(name))
        return name->rank < chempi_ctx.services.rank_count ? name->rank
                                                           : UINT32_MAX;
    number = chempi_index_find(&self.names, hash_of_name(name), has_name,
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

/* "rank 3 of world 5f2c81d0". */
static void put_words(const struct chempi_name *name, char *buf, size_t len)
{
    (void)snprintf(buf, len, "rank %" PRIu32 " of world %08" PRIx32, name->rank,
                   (uint32_t)name->world[0]);
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

static struct sentence *keep_sentence(const char *text)
{
    const size_t size = strlen(text) + 1;
    struct sentence *s = chempi_sys->malloc(sizeof(*s) + size);

    if (!s)
        return NULL;
    memcpy(s->text, text, size);
    s->next = self.sentences;
    self.sentences = s;
    return s;
}

static bool is_missing_with(const struct chempi_foreign *f,
                            const struct chempi_foreign *lost, bool is_all)
{
    return f == lost || (is_all && f->name.world[0] == lost->name.world[0] &&
                         f->name.world[1] == lost->name.world[1]);
}

void chempi_foreign_note_loss(uint32_t index, bool is_all, const char *sentence)
{
    const struct chempi_foreign *lost = chempi_foreign_at(index);
    const struct sentence *s =
        chempi_foreign_loss(index) ? NULL : keep_sentence(sentence);

    for (uint32_t i = 0; s && i < count(); i++)
        if (is_missing_with(&self.known[i], lost, is_all) &&
            !atomic_load_explicit(&self.known[i].loss, memory_order_relaxed))
            /* Orders the words before; partner: chempi_foreign_loss(). */
            atomic_store_explicit(&self.known[i].loss, s->text,
                                  memory_order_release);
    if (s)
        chempi_error_note_foreign_loss(s->text);
}

const char *chempi_foreign_loss(uint32_t index)
{
    return atomic_load_explicit(&chempi_foreign_at(index)->loss,
                                memory_order_acquire);
}

static bool is_node(const void *elements, uint32_t number, const void *key)
{
    const struct node *nodes = elements;

    return memcmp(&nodes[number], key, sizeof(*nodes)) == 0;
}

/* F2. There is room (F4): a node for each process. */
static uint32_t node_for(const struct node *node)
{
    const uint32_t hash = hash_of_node(node);
    uint32_t number =
        chempi_index_find(&self.places, hash, is_node, self.nodes, node);

    if (number != CHEMPI_INDEX_NONE)
        return number;
    number = self.node_count++;
    self.nodes[number] = *node;
    (void)chempi_index_add(&self.places, hash, number);
    return number;
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

static bool share_secret(const struct chempi_bond *bond, uint32_t number,
                         uint8_t out[CHEMPI_BOND_SECRET_BYTES])
{
    const uint32_t index = index_in(bond, number);

    return index != UINT32_MAX &&
           chempi_vouch_share(chempi_foreign_at(index)->key, bond->secret, out);
}

static bool is_before(uint32_t index)
{
    const struct chempi_name mine = own_name(chempi_ctx.services.proc);
    const struct chempi_name other = chempi_foreign_name(index);

    return chempi_foreign_compare(&mine, &other) < 0;
}

const struct chempi_bonds *chempi_foreign_bonds(void)
{
    static struct chempi_bonds bonds = {.place = place,
                                        .find = find_bond,
                                        .index = index_in,
                                        .secret = share_secret,
                                        .is_before = is_before,
                                        .index_end = index_end};

    bonds.index_begin = index_begin();
    bonds.index_max = index_begin() + CHEMPI_FOREIGN_MAX;
    return &bonds;
}

/* ---- preparing a bond ---- */

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
    const struct chempi_name mine = own_name(chempi_ctx.services.proc);
    struct chempi_index roll = {0};
    int rc = 0;

    for (uint32_t i = 0; i < size && !rc; i++) {
        const uint32_t hash = hash_of_name(&members[i].name);

        rc = check_member(&members[i], i, err);
        if (!rc && chempi_index_find(&roll, hash, is_member, members,
                                     &members[i].name) != CHEMPI_INDEX_NONE)
            rc = chempi_err_set(err, -EALREADY,
                                "member %" PRIu32 " is named twice: a process "
                                "cannot meet itself",
                                i);
        if (!rc && !chempi_index_add(&roll, hash, i))
            rc = no_memory(err);
    }
    *own_number = rc ? CHEMPI_INDEX_NONE
                     : chempi_index_find(&roll, hash_of_name(&mine), is_member,
                                         members, &mine);
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

static void set_node(struct node *node, const struct chempi_introduction *in)
{
    memset(node, 0, sizeof(*node));
    memcpy(node->world, in->name.world, sizeof(node->world));
    memcpy(node->name, in->node, strlen(in->node));
}

/* Whoever is known stays who he was. */
static int check_known(uint32_t index, const struct chempi_introduction *in,
                       struct chempi_err *err)
{
    const struct chempi_foreign *f;
    char who[128];

    if (!chempi_foreign_is(index))
        return 0;
    f = chempi_foreign_at(index);
    if (strcmp(chempi_foreign_node_name(index), in->node) == 0 &&
        f->survives == in->survives && f->is_secure == in->is_secure &&
        f->eager_quota == in->eager_quota &&
        f->sysmsg_quota == in->sysmsg_quota && f->card_len == in->card_len &&
        memcmp(f->card, in->card, in->card_len) == 0)
        return 0;
    chempi_foreign_words(index, who, sizeof(who));
    return chempi_err_set(err, -EPROTO,
                          "%s is introduced as another process than the one "
                          "that is known",
                          who);
}

/* F5. What the members of the own job take is what their number costs, unless
 * nobody new has come with them. */
static int check_again(struct bond *bond, uint32_t known,
                       struct chempi_err *err)
{
    const uint64_t size = sizeof(*bond) + bond->is.size * sizeof(uint32_t);
    const uint64_t page = BOND_LEAST;

    bond->again = known * sizeof(uint32_t);
    if (bond->fresh_count == 0)
        bond->again = size > page ? size : page;
    if (bond->again <= CHEMPI_FOREIGN_AGAIN_MAX - self.again)
        return 0;
    return chempi_err_set(err, -ENOSPC,
                          "this process has met processes again that it knew "
                          "for as often as it can (%u MiB are kept of such "
                          "meetings); it still meets others",
                          CHEMPI_FOREIGN_AGAIN_MAX >> 20);
}

static int find_known(struct bond *bond,
                      const struct chempi_introduction *members,
                      struct chempi_err *err)
{
    uint32_t known = 0;
    int rc = 0;

    for (uint32_t i = 0; i < bond->is.size && !rc; i++) {
        const uint32_t index = chempi_foreign_find(&members[i].name);

        bond->indexes[i] = index;
        if (index == UINT32_MAX) {
            bond->fresh_count++;
            continue;
        }
        known += chempi_foreign_is(index);
        bond->is_needed |=
            chempi_foreign_is(index) && !chempi_foreign_at(index)->is_agreed;
        rc = check_known(index, &members[i], err);
    }
    bond->is_needed |= bond->fresh_count > 0;
    if (!rc &&
        bond->fresh_count > CHEMPI_FOREIGN_MAX - count() - self.fresh_pending)
        rc = chempi_err_set(err, -ENOSPC,
                            "%u processes of other worlds are the most that "
                            "this one can meet; it knows %u, and %u are new",
                            (unsigned)CHEMPI_FOREIGN_MAX,
                            (unsigned)(count() + self.fresh_pending),
                            (unsigned)bond->fresh_count);
    return rc ? rc : check_again(bond, known, err);
}

static int keep(struct fresh *f, uint32_t number,
                const struct chempi_introduction *in)
{
    uint8_t *card =
        chempi_sys->malloc(in->card_len > 0 ? in->card_len : (size_t)1);

    if (!card)
        return -ENOMEM;
    memcpy(card, in->card, in->card_len);
    f->number = number;
    f->is = (struct chempi_foreign){.name = in->name,
                                    .survives = in->survives,
                                    .is_secure = in->is_secure,
                                    .eager_quota = in->eager_quota,
                                    .sysmsg_quota = in->sysmsg_quota,
                                    .card_len = in->card_len,
                                    .card = card};
    memcpy(f->is.key, in->key, sizeof(f->is.key));
    put_words(&in->name, f->is.who, sizeof(f->is.who));
    set_node(&f->on, in);
    return 0;
}

/* What is to be known of the fresh ones, and room for it (F4). */
static int keep_fresh(struct bond *bond,
                      const struct chempi_introduction *members)
{
    const uint32_t more = self.fresh_pending + bond->fresh_count;
    uint32_t done = 0;

    bond->fresh = chempi_sys->calloc(bond->fresh_count ? bond->fresh_count : 1,
                                     sizeof(*bond->fresh));
    if (!bond->fresh ||
        !CHEMPI_ARRAY_FIT(self.bonds, self.bond_room,
                          self.bond_count + self.pending + 1) ||
        !chempi_index_reserve(&self.by_name, self.pending + 1) ||
        !chempi_index_reserve(&self.names, more) ||
        !chempi_index_reserve(&self.places, more))
        return -ENOMEM;
    for (uint32_t i = 0; i < bond->is.size; i++)
        if (bond->indexes[i] == UINT32_MAX &&
            keep(&bond->fresh[done++], i, &members[i]))
            return -ENOMEM;
    return 0;
}

static void free_bond(struct bond *bond)
{
    for (uint32_t i = 0; bond->fresh && i < bond->fresh_count; i++)
        free(bond->fresh[i].is.card);
    free(bond->fresh);
    chempi_secret_destroy(bond,
                          sizeof(*bond) + bond->is.size * sizeof(uint32_t));
}

static struct bond *make_bond(const uint8_t *secret,
                              const struct chempi_introduction *members,
                              uint32_t size, uint32_t number)
{
    struct bond *bond =
        chempi_secret_create(sizeof(*bond) + size * sizeof(uint32_t));

    if (!bond)
        return NULL;
    bond->is.self = number;
    bond->is.size = size;
    memcpy(bond->is.secret, secret, sizeof(bond->is.secret));
    (void)crypto_generichash(bond->is.name, sizeof(bond->is.name), secret,
                             CHEMPI_BOND_SECRET_BYTES, NULL, 0);
    for (uint32_t i = 0; i < size; i++)
        bond->is.is_secure |= members[i].is_secure != 0;
    return bond;
}

int chempi_foreign_prepare(const uint8_t secret[CHEMPI_BOND_SECRET_BYTES],
                           const struct chempi_introduction *members,
                           uint32_t size, struct chempi_bond **out,
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
    bond = make_bond(secret, members, size, number);
    if (!bond)
        return no_memory(err);
    rc = find_known(bond, members, err);
    if (!rc && keep_fresh(bond, members))
        rc = no_memory(err);
    if (rc) {
        free_bond(bond);
        return rc;
    }
    self.pending++;
    self.fresh_pending += bond->fresh_count;
    self.again += bond->again;
    *out = &bond->is;
    return 0;
}

/* ---- what becomes of it ---- */

static struct bond *bond_of(struct chempi_bond *bond)
{
    return (struct bond *)(void *)bond;
}

bool chempi_foreign_needs(const struct chempi_bond *bond)
{
    return ((const struct bond *)(const void *)bond)->is_needed;
}

const uint32_t *chempi_foreign_indexes(const struct chempi_bond *bond)
{
    return ((const struct bond *)(const void *)bond)->indexes;
}

static void end_pending(struct bond *bond)
{
    self.pending--;
    self.fresh_pending -= bond->fresh_count;
}

void chempi_foreign_drop(struct chempi_bond *bond)
{
    if (!bond)
        return;
    end_pending(bond_of(bond));
    self.again -= bond_of(bond)->again;
    free_bond(bond_of(bond));
}

/* The index of a fresh member; another bond may have made it known since. */
static uint32_t get_to_know(struct bond *bond, struct fresh *f)
{
    const uint32_t number = count();
    uint32_t index = chempi_foreign_find(&f->is.name);

    if (index != UINT32_MAX)
        return index;
    f->is.node = node_for(&f->on);
    f->is.bond = bond->at;
    f->is.number = f->number;
    self.known[number] = f->is;
    f->is.card = NULL; /* it has gone there */
    (void)chempi_index_add(&self.names, hash_of_name(&f->is.name), number);
    set_count(number + 1);
    return index_begin() + number;
}

void chempi_foreign_take_in(struct chempi_bond *of)
{
    struct bond *bond = bond_of(of);

    end_pending(bond);
    bond->at = self.bond_count;
    self.bonds[bond->at] = bond;
    (void)chempi_index_add(&self.by_name, hash_of_bond(of->name), bond->at);
    self.bond_count++;
    for (uint32_t i = 0; i < bond->fresh_count; i++) {
        bond->indexes[bond->fresh[i].number] =
            get_to_know(bond, &bond->fresh[i]);
        free(bond->fresh[i].is.card);
    }
    free(bond->fresh);
    bond->fresh = NULL;
    bond->fresh_count = 0;
    CHEMPI_CHECK_EVERY(16, chempi_foreign_check());
}

void chempi_foreign_agree(struct chempi_bond *of)
{
    const struct bond *bond = bond_of(of);

    for (uint32_t i = 0; i < of->size; i++) {
        struct chempi_foreign *f =
            chempi_foreign_is(bond->indexes[i])
                ? &self.known[bond->indexes[i] - index_begin()]
                : NULL;

        if (!f || f->is_agreed)
            continue;
        f->bond = bond->at;
        f->number = i;
        f->is_agreed = true;
    }
}

/* ---- invariants ---- */

static const char *check_process(uint32_t index)
{
    const struct chempi_foreign *f = chempi_foreign_at(index);

    if (chempi_foreign_find(&f->name) != index)
        return "foreign F1: a name has two indexes, or none";
    if (f->node >= self.node_count ||
        !chempi_foreign_is_world(f->name.world, self.nodes[f->node].world))
        return "foreign F2: a process without a node of its world";
    if (f->bond >= self.bond_count ||
        f->number >= self.bonds[f->bond]->is.size ||
        self.bonds[f->bond]->indexes[f->number] != index)
        return "foreign F3: a process is called by a bond of others";
    return NULL;
}

static const char *check_bond(const struct bond *bond)
{
    for (uint32_t i = 0; i < bond->is.size; i++)
        if (bond->indexes[i] >= chempi_ctx.services.rank_count &&
            (!chempi_foreign_is(bond->indexes[i]) ||
             bond->indexes[i] >= index_end()))
            return "foreign F3: a member that is not known";
    if (bond->indexes[bond->is.self] != chempi_ctx.services.proc)
        return "foreign F3: the own place is another one's";
    return NULL;
}

const char *chempi_foreign_check(void)
{
    const char *broken = NULL;
    uint64_t again = 0;

    if (self.node_count > count() || count() > CHEMPI_FOREIGN_MAX)
        return "foreign F1: more nodes than processes, or too many";
    if (self.fresh_pending > CHEMPI_FOREIGN_MAX - count() ||
        self.bond_count + self.pending > self.bond_room)
        return "foreign F4: no room for what is prepared";
    for (uint32_t i = 0; i < count() && !broken; i++)
        broken = check_process(index_begin() + i);
    for (uint32_t i = 0; i < self.bond_count && !broken; i++) {
        broken = check_bond(self.bonds[i]);
        again += self.bonds[i]->again;
    }
    if (!broken &&
        (again > self.again || self.again > CHEMPI_FOREIGN_AGAIN_MAX))
        broken = "foreign F5: more is kept of meetings than was counted";
    return broken;
}

/* ---- who has met a world ---- */

static bool is_in(const struct bond *bond, const uint64_t world[2])
{
    for (uint32_t i = 0; i < bond->is.size; i++) {
        const struct chempi_foreign *f =
            chempi_foreign_is(bond->indexes[i])
                ? chempi_foreign_at(bond->indexes[i])
                : NULL;

        if (f && chempi_foreign_is_world(f->name.world, world))
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
    for (uint32_t i = 0; i < count(); i++)
        free(self.known[i].card);
    for (uint32_t i = 0; i < self.bond_count; i++)
        free_bond(self.bonds[i]);
    free(self.bonds);
    chempi_sparse_free(self.known, CHEMPI_FOREIGN_MAX, sizeof(*self.known));
    chempi_sparse_free(self.nodes, CHEMPI_FOREIGN_MAX, sizeof(*self.nodes));
    chempi_index_fini(&self.names);
    chempi_index_fini(&self.places);
    chempi_index_fini(&self.by_name);
    chempi_error_note_foreign_loss(NULL);
    while (self.sentences) {
        struct sentence *next = self.sentences->next;

        free(self.sentences);
        self.sentences = next;
    }
    memset(&self, 0, sizeof(self));
}
