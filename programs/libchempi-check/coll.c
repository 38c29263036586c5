/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Before a collective operation its members tell each other what they call, in
 * one record each, on the communicator's shadow: members that call different
 * operations meet there, so that nothing hangs. All see the same records and
 * come to the same judgement; the lowest rank says it. Counts for each member
 * are compared by those who have them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/symbol/symbol.h"
#include "programs/libchempi-check/windows.h"

/* What a member tells. */
struct record {
    struct check_far_site site;
    int64_t root;
    uint64_t op; /* the handle of a predefined one, else 1; 0: none */
    int64_t facts[3];
    struct chempi_checker_signature send;
    struct chempi_checker_signature recv;
};

#define BLANK 2 /* is_open: it has no meaning at this member */

struct check_match {
    struct check_match *next; /* of those that nobody waits for */
    MPI_Request exchange;
    MPI_Comm shadow;
    MPI_Comm comm;
    struct check_coll coll; /* its rule; the rest may be gone */
    struct check_site site;
    int rank;
    int size;
    /* What this one has counts for, of each member, or NULL: the program's
     * arrays and types may be gone when all have told. */
    struct chempi_checker_signature *wanted;
    struct record own;
    struct record all[];
};

static struct check_match *left; /* K1: without a waiter */

/* ---- places in other processes ---- */

static uint64_t hash_of(const char *path)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (const char *c = chempi_symbol_base(path); *c; c++)
        hash = (hash ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
    return hash;
}

/* Where this library's records say a call is: by the address in its file,
 * which is the same in all processes. */
static void tell_place(const void *from, struct check_far_site *out)
{
    struct chempi_symbol symbol;

    out->from = (uintptr_t)from;
    if (chempi_symbol_find((const char *)from - 1, &symbol)) {
        out->module = hash_of(symbol.path);
        out->from = symbol.address;
    }
}

/* Places are found once: the list of mappings is dear to read. */
void check_site_tell(const struct check_site *site, struct check_far_site *out)
{
    const void *from = site->from;
    static _Thread_local struct {
        const void *from;
        uint64_t module;
        uint64_t address;
    } known[64];
    const size_t i = ((uintptr_t)from >> 2) % CHEMPI_ARRAY_LEN(known);

    if (known[i].from != from) {
        tell_place(from, out);
        known[i].from = from;
        known[i].module = out->module;
        known[i].address = out->from;
    }
    out->module = known[i].module;
    out->from = known[i].address;
    out->id = site->id;
}

/* The file that it is in lies elsewhere in other processes, but as a whole. */
bool check_site_hear(const struct check_site *own,
                     const struct check_far_site *far, struct check_site *out)
{
    struct check_far_site told;

    check_site_tell(own, &told);
    if (far->module != told.module)
        return false;
    *out = (struct check_site){.id = (uint32_t)far->id,
                               .from = (const char *)own->from +
                                       (far->from - told.from)};
    return true;
}

bool check_match_site(const struct check_match *match, int rank,
                      struct check_site *out)
{
    return check_site_hear(&match->site, &match->all[rank].site, out);
}

/* "MPI_Bcast at ring.c:12" of a member. */
char *check_match_words(const struct check_match *match, int rank, char *out,
                        size_t len)
{
    struct check_site site;

    if (check_match_site(match, rank, &site))
        return check_site_words(&site, out, len);
    (void)snprintf(out, len, "%s in another program",
                   check_names[match->all[rank].site.id]);
    return out;
}

const int64_t *check_match_facts(const struct check_match *match, int rank)
{
    return match->all[rank].facts;
}

struct check_window *check_match_window(const struct check_match *match)
{
    return match->coll.window;
}

/* ---- what a member tells ---- */

static void blank(struct chempi_checker_signature *s)
{
    *s = (struct chempi_checker_signature){.is_open = BLANK};
}

static void sign(const void *buf, MPI_Count count, MPI_Datatype type,
                 struct chempi_checker_signature *out)
{
    if (buf == MPI_IN_PLACE || !check_door->signature(type, count, out))
        blank(out);
}

/* Sides that mean nothing at this member are not looked at. */
static void sign_both(const struct check_coll *c, bool is_root,
                      struct record *out)
{
    const bool is_scatter =
        c->rule == CHECK_SCATTER || c->rule == CHECK_SCATTERV;

    blank(&out->send);
    blank(&out->recv);
    if (c->rule == CHECK_NO_AMOUNT)
        return;
    if (c->rule != CHECK_SCATTERV && (!is_scatter || is_root))
        sign(c->sendbuf, c->sendcount, c->sendtype, &out->send);
    if (c->rule == CHECK_EVEN || is_scatter ||
        (c->rule == CHECK_GATHER && is_root))
        sign(c->recvbuf, c->recvcount, c->recvtype, &out->recv);
}

static MPI_Count count_at(const void *counts, bool is_wide, int i)
{
    return is_wide ? ((const MPI_Count *)counts)[i] : ((const int *)counts)[i];
}

MPI_Count check_sum(const void *counts, bool is_wide, MPI_Comm comm)
{
    MPI_Count sum = 0;
    int size = 0;

    if (!counts || check_shadow(comm) == MPI_COMM_NULL)
        return 0;
    (void)PMPI_Comm_size(comm, &size);
    for (int i = 0; i < size; i++)
        sum += count_at(counts, is_wide, i);
    return sum;
}

static void sign_each(struct check_match *m)
{
    const struct check_coll *c = &m->coll;
    const bool has_sends = c->rule == CHECK_SCATTERV;
    const bool is_mine = c->rule == CHECK_ALLGATHERV || c->root == m->rank;

    if (!c->counts || !is_mine)
        return;
    m->wanted = calloc((size_t)m->size, sizeof(*m->wanted));
    for (int i = 0; m->wanted && i < m->size; i++)
        sign(NULL, count_at(c->counts, c->is_wide, i),
             has_sends ? c->sendtype : c->recvtype, &m->wanted[i]);
}

static struct check_match *make_match(const struct check_call *call,
                                      const struct check_coll *coll,
                                      MPI_Comm shadow)
{
    struct check_match *m;
    int size = 0;

    (void)PMPI_Comm_size(shadow, &size);
    m = calloc(1, sizeof(*m) + (size_t)size * sizeof(m->all[0]));
    if (!m)
        check_fail("there is no memory for the check of a collective "
                   "operation of %d processes",
                   size);
    m->shadow = shadow;
    m->comm = coll->comm;
    m->coll = *coll;
    m->site = call->site;
    m->size = size;
    (void)PMPI_Comm_rank(shadow, &m->rank);
    m->own.root = coll->root;
    memcpy(m->own.facts, coll->facts, sizeof(m->own.facts));
    if (coll->op != MPI_OP_NULL)
        m->own.op = (uintptr_t)coll->op < 0x1000 ? (uintptr_t)coll->op : 1;
    check_site_tell(&call->site, &m->own.site);
    sign_both(coll, coll->root == m->rank, &m->own);
    sign_each(m);
    return m;
}

struct check_match *check_match_begin(const struct check_call *call,
                                      const struct check_coll *coll)
{
    MPI_Comm shadow = MPI_COMM_NULL;
    struct check_match *m;

    if (check_is_on())
        shadow = coll->window ? coll->window->shadow : check_shadow(coll->comm);
    if (shadow == MPI_COMM_NULL)
        return NULL;
    m = make_match(call, coll, shadow);
    (void)PMPI_Iallgather(&m->own, (int)sizeof(m->own), MPI_BYTE, m->all,
                          (int)sizeof(m->own), MPI_BYTE, shadow, &m->exchange);
    return m;
}

/* ---- comparing ---- */

static bool is_same(const struct chempi_checker_signature *a,
                    const struct chempi_checker_signature *b)
{
    if (a->is_open == BLANK || b->is_open == BLANK)
        return true;
    return a->bytes == b->bytes &&
           (a->is_open || b->is_open || a->hash == b->hash);
}

/* "16 bytes of MPI_INT" */
static char *amount_words(const struct chempi_checker_signature *s, char *out,
                          size_t len)
{
    (void)snprintf(out, len, "%llu bytes%s%s", (unsigned long long)s->bytes,
                   s->bytes ? " of " : "",
                   s->bytes ? check_door->kind_name(s->kind) : "");
    return out;
}

bool check_match_speaks(const struct check_match *match)
{
    if (match->rank == 0)
        return true;
    (void)PMPI_Barrier(match->shadow);
    return false;
}

struct words {
    char first[CHECK_WORDS];
    char other[CHECK_WORDS];
    char comm[CHECK_WORDS + MPI_MAX_OBJECT_NAME];
    char amounts[2][96];
};

static void find_words(const struct check_match *m, int a, int b,
                       struct words *w)
{
    (void)check_match_words(m, a, w->first, sizeof(w->first));
    (void)check_match_words(m, b, w->other, sizeof(w->other));
    if (m->coll.window)
        (void)check_window_words(m->coll.window, w->comm, sizeof(w->comm));
    else
        (void)check_comm_words(m->comm, w->comm, sizeof(w->comm));
}

static void compare_calls(const struct check_match *m, int i)
{
    struct words w;

    if (check_stems[m->all[i].site.id] == check_stems[m->all[0].site.id] ||
        !check_match_speaks(m))
        return;
    find_words(m, 0, i, &w);
    check_fail("on %s rank 0 calls %s while rank %d calls %s: all members "
               "must call the same collective operations in the same order",
               w.comm, w.first, i, w.other);
}

static void compare_roots(const struct check_match *m, int i)
{
    struct words w;

    if (m->all[i].root == m->all[0].root || !check_match_speaks(m))
        return;
    find_words(m, 0, i, &w);
    check_fail("on %s rank 0 calls %s with root %d while rank %d calls %s "
               "with root %d: all members must name the same root",
               w.comm, w.first, (int)m->all[0].root, i, w.other,
               (int)m->all[i].root);
}

const char *check_op_name(uint64_t op)
{
    static const struct {
        MPI_Op op;
        const char *name;
    } names[] = {
        {MPI_SUM, "MPI_SUM"},         {MPI_MIN, "MPI_MIN"},
        {MPI_MAX, "MPI_MAX"},         {MPI_PROD, "MPI_PROD"},
        {MPI_BAND, "MPI_BAND"},       {MPI_BOR, "MPI_BOR"},
        {MPI_BXOR, "MPI_BXOR"},       {MPI_LAND, "MPI_LAND"},
        {MPI_LOR, "MPI_LOR"},         {MPI_LXOR, "MPI_LXOR"},
        {MPI_MINLOC, "MPI_MINLOC"},   {MPI_MAXLOC, "MPI_MAXLOC"},
        {MPI_REPLACE, "MPI_REPLACE"}, {MPI_NO_OP, "MPI_NO_OP"},
    };

    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(names); i++)
        if ((uintptr_t)names[i].op == op)
            return names[i].name;
    return "an operation of the program's";
}

static void compare_ops(const struct check_match *m, int i)
{
    struct words w;

    if (m->all[i].op == m->all[0].op || !check_match_speaks(m))
        return;
    find_words(m, 0, i, &w);
    check_fail("on %s rank 0 calls %s with %s while rank %d calls %s with %s: "
               "all members must name the same operation",
               w.comm, w.first, check_op_name(m->all[0].op), i, w.other,
               check_op_name(m->all[i].op));
}

/* What rank a sends or gives and what rank b receives or gives. */
static void compare_amounts(const struct check_match *m, int a,
                            const struct chempi_checker_signature *x, int b,
                            const struct chempi_checker_signature *y,
                            const char *does, const char *other_does,
                            bool is_own)
{
    struct words w;

    if (is_same(x, y) || (!is_own && !check_match_speaks(m)))
        return;
    find_words(m, a, b, &w);
    check_fail("on %s rank %d %s %s in %s while rank %d %s %s in %s: both "
               "must have the same type signature",
               w.comm, a, does,
               amount_words(x, w.amounts[0], sizeof(w.amounts[0])), w.first, b,
               other_does, amount_words(y, w.amounts[1], sizeof(w.amounts[1])),
               w.other);
}

static void compare_amount(const struct check_match *m, int i)
{
    const struct record *first = &m->all[0];
    const struct record *r = &m->all[i];
    const int root = (int)first->root;

    switch (m->coll.rule) {
    case CHECK_SAME:
        compare_amounts(m, 0, &first->send, i, &r->send, "gives", "gives",
                        false);
        break;
    case CHECK_EVEN:
        compare_amounts(m, i, &r->send, 0, &first->recv, "sends", "receives",
                        false);
        compare_amounts(m, 0, &first->recv, i, &r->recv, "receives", "receives",
                        false);
        break;
    case CHECK_GATHER:
        if (root >= 0 && root < m->size)
            compare_amounts(m, i, &r->send, root, &m->all[root].recv, "sends",
                            "receives", false);
        break;
    case CHECK_SCATTER:
        if (root >= 0 && root < m->size)
            compare_amounts(m, root, &m->all[root].send, i, &r->recv, "sends",
                            "receives", false);
        break;
    case CHECK_NO_AMOUNT:
    case CHECK_GATHERV:
    case CHECK_SCATTERV:
    case CHECK_ALLGATHERV:
        break;
    }
}

/* Member i and what this one has a count for. */
static void compare_count(const struct check_match *m, int i)
{
    if (m->coll.rule == CHECK_SCATTERV)
        compare_amounts(m, m->rank, &m->wanted[i], i, &m->all[i].recv, "sends",
                        "receives", true);
    else
        compare_amounts(m, i, &m->all[i].send, m->rank, &m->wanted[i], "sends",
                        "receives", true);
}

static void compare(const struct check_match *m)
{
    for (int i = 1; i < m->size; i++)
        compare_calls(m, i);
    for (int i = 1; i < m->size; i++) {
        compare_roots(m, i);
        compare_ops(m, i);
    }
    for (int i = 0; i < m->size; i++)
        compare_amount(m, i);
    for (int i = 0; m->wanted && i < m->size; i++)
        compare_count(m, i);
    if (m->coll.compare)
        m->coll.compare(m, m->size);
}

/* ---- waiting ---- */

static void finish(struct check_match *m)
{
    compare(m);
    free(m->wanted);
    free(m);
}

bool check_match_is_here(struct check_match *match)
{
    int flag = 1;

    if (match)
        (void)PMPI_Test(&match->exchange, &flag, MPI_STATUS_IGNORE);
    return flag;
}

void check_match_end(struct check_match *match)
{
    if (!match)
        return;
    check_stick(true);
    (void)PMPI_Wait(&match->exchange, MPI_STATUS_IGNORE);
    check_stick(false);
    finish(match);
}

void check_match_leave(struct check_match *match)
{
    if (check_match_is_here(match)) {
        finish(match);
        return;
    }
    check_lock();
    match->next = left;
    left = match;
    check_unlock();
}

void check_match_end_left(void)
{
    while (left) {
        struct check_match *m = left;

        left = m->next;
        check_match_end(m);
    }
}
