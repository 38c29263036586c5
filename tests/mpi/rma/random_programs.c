/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random one-sided programs against a sequential model of MPI 5.0, chapter 12.
 *
 *     winrandom SEED PROGRAMS [FIRST]
 *
 * WINRANDOM_SEED in the environment is taken instead of SEED, WINRANDOM_TIMES
 * multiplies PROGRAMS: for long runs of the same cases.
 *
 * A program is made from a seed that all ranks know, so each of them can play
 * it in its head: up to three windows at a time, of any kind, element size,
 * displacement unit and alignment, and rounds of operations on all of them,
 * with derived datatypes on every side. Each round closes by some form of
 * synchronization per window. Within a round the cells of every target are
 * given to one way of access each, as the standard demands: one put, any gets,
 * accumulates with one operation, or accumulates of one origin in order. After
 * each round every rank compares its memory, what it has fetched and what lies
 * between with the model. A failure names the seed and the program; FIRST is
 * the program to begin with, so that it can be played alone.
 */
#include "check.h"

enum {
    WINDOWS = 3,       /* at most, at a time */
    CELLS = 256,       /* elements, per rank and window */
    CELLS_MAX = 12000, /* the same of a large window */
    ROUNDS = 6,
    OPS = 24, /* at most, per origin and round */
    RANKS_MAX = 16,
    CANARY = 0x5a
};

enum access { FREE, GETS, ONE_PUT, SUMS, XORS, MAXES, ORDERED };

enum kind { PUT, GET, ACCUMULATE, GET_ACCUMULATE, FETCH, SWAP, KINDS };

enum shape { PLAIN, VECTOR, INDEXED, BACKWARD, SHAPES };

enum elem { I8, I16, I32, I64, ELEMS };

/* What begins and ends the epochs of a window in a round. */
enum how {
    FENCE,
    POST_START,
    LOCK_ALL,
    LOCK_SHARED,
    LOCK_EXCLUSIVE,
    LOCK_ALL_UNCHECKED,
    HOWS
};

struct op {
    enum kind kind;
    enum access access;
    int win;
    int target;
    int at;            /* first cell */
    int count;         /* elements */
    enum shape shape;  /* of the target */
    enum shape origin; /* of what is given */
    enum shape result; /* of what is fetched */
    int64_t seed;
    bool is_exact; /* what it fetches is known */
    bool has_request;
    bool is_flushed; /* right behind it, where that is allowed */
};

struct window {
    MPI_Win win;
    int flavor;
    enum elem elem;
    int cells;
    int units[RANKS_MAX]; /* displacement unit, bytes */
    bool has_no_order;    /* by its hints accumulates of an origin have none, or
                             all that meet use one operation */
    int shift;            /* bytes by which elements are off their alignment */
    enum how how;
    bool reaches[RANKS_MAX][RANKS_MAX]; /* POST_START: origin, target */
    char *memory;
    char *raw;
    const char *neighbor; /* memory of the next rank, or NULL */
    MPI_Aint base[RANKS_MAX];
    bool is_written[RANKS_MAX]; /* in this round */
    enum access owner[RANKS_MAX][CELLS_MAX];
    int orderer[RANKS_MAX][CELLS_MAX];
    int64_t model[RANKS_MAX][CELLS_MAX];
};

struct program {
    unsigned long long seed;
    int number;
    int round;
    uint64_t state;
    int count; /* windows */
    struct window windows[WINDOWS];
    struct op ops[RANKS_MAX][OPS];
    int op_count[RANKS_MAX];
    char *fetched[OPS];
    char *given[OPS];
    int64_t *expected[OPS]; /* packed */
    int64_t compare[OPS];
    MPI_Request requests[OPS];
};

static struct program p;
static MPI_Datatype shapes[ELEMS][SHAPES];
static bool is_one_node;

static int pick(int n)
{
    return (int)(check_random(&p.state) % (uint64_t)n);
}

static int size_of(enum elem elem)
{
    return 1 << elem;
}

/* The cell of element i of a shape: every element is one cell. */
static int cell_of(enum shape shape, int i)
{
    if (shape == VECTOR)
        return i / 2 * 3 + i % 2; /* 2 of 3 */
    if (shape == INDEXED)
        return i / 3 * 8 + (i % 3 == 2 ? 6 : i % 3 * 3); /* 0, 3, 6 of 8 */
    if (shape == BACKWARD)
        return i / 2 * 3 + (i % 2 ? 0 : 2); /* 2, 0 of 3 */
    return i;
}

static int elements_per_type(enum shape shape)
{
    if (shape == VECTOR || shape == BACKWARD)
        return 2;
    return shape == INDEXED ? 3 : 1;
}

static void make_types(void)
{
    const MPI_Datatype basic[ELEMS] = {MPI_INT8_T, MPI_INT16_T, MPI_INT32_T,
                                       MPI_INT64_T};
    const int displs[3] = {0, 3, 6};
    const int back[2] = {2, 0};

    for (int e = 0; e < ELEMS; e++) {
        MPI_Datatype part;

        shapes[e][PLAIN] = basic[e];
        MPI_Type_vector(1, 2, 3, basic[e], &part);
        MPI_Type_create_resized(part, 0, 3 << e, &shapes[e][VECTOR]);
        MPI_Type_free(&part);
        MPI_Type_create_indexed_block(3, 1, displs, basic[e], &part);
        MPI_Type_create_resized(part, 0, 8 << e, &shapes[e][INDEXED]);
        MPI_Type_free(&part);
        MPI_Type_create_indexed_block(2, 1, back, basic[e], &part);
        MPI_Type_create_resized(part, 0, 3 << e, &shapes[e][BACKWARD]);
        MPI_Type_free(&part);
        MPI_Type_commit(&shapes[e][BACKWARD]);
        MPI_Type_commit(&shapes[e][VECTOR]);
        MPI_Type_commit(&shapes[e][INDEXED]);
    }
}

static void free_types(void)
{
    for (int e = 0; e < ELEMS; e++)
        for (int s = VECTOR; s < SHAPES; s++)
            MPI_Type_free(&shapes[e][s]);
}

/* ---- elements ---- */

static int64_t narrow(enum elem elem, int64_t value)
{
    switch (elem) {
    case I8:
        return (int8_t)value;
    case I16:
        return (int16_t)value;
    case I32:
        return (int32_t)value;
    default:
        return value;
    }
}

static int64_t load(enum elem elem, const char *from)
{
    int64_t wide = 0;

    memcpy(&wide, from, (size_t)size_of(elem)); /* little-endian */
    return narrow(elem, wide);
}

static void store(enum elem elem, char *to, int64_t value)
{
    memcpy(to, &value, (size_t)size_of(elem));
}

/* ---- making a round ---- */

static enum access access_for(enum kind kind)
{
    static const enum access ways[] = {SUMS, XORS, MAXES, ORDERED};

    if (kind == PUT)
        return ONE_PUT;
    if (kind == SWAP)
        return ORDERED;
    return kind == GET ? GETS : ways[pick(4)];
}

/* May the origin have these cells in this way? A put wants them alone. */
static bool take_cells(const struct op *op, int origin)
{
    struct window *w = &p.windows[op->win];

    for (int i = 0; i < op->count; i++) {
        int cell = op->at + cell_of(op->shape, i);
        enum access owner;

        if (cell >= w->cells)
            return false;
        owner = w->owner[op->target][cell];
        if (owner != FREE &&
            (owner != op->access || owner == ONE_PUT ||
             (owner == ORDERED && w->orderer[op->target][cell] != origin)))
            return false;
    }
    for (int i = 0; i < op->count; i++) {
        int cell = op->at + cell_of(op->shape, i);

        w->owner[op->target][cell] = op->access;
        w->orderer[op->target][cell] = origin;
    }
    if (op->access != GETS)
        w->is_written[op->target] = true;
    return true;
}

/* So many elements that each side has whole types of them. */
static void draw_shapes(struct op *op)
{
    const int cells = p.windows[op->win].cells;
    int step = 1;

    op->shape = (enum shape)pick(SHAPES);
    op->origin = (enum shape)pick(SHAPES);
    op->result = (enum shape)pick(SHAPES);
    if (elements_per_type(op->shape) == 2 ||
        elements_per_type(op->origin) == 2 ||
        elements_per_type(op->result) == 2)
        step = 2;
    if (op->shape == INDEXED || op->origin == INDEXED || op->result == INDEXED)
        step *= 3;
    if (pick(8) == 0)
        op->count = (pick(80 / step) + 1) * step;
    else if (cells > CELLS && pick(4) == 0)
        op->count = (pick(cells / 2 / step) + 1) * step;
    else
        op->count = (pick(4) + 1) * step;
}

static void draw_op(int origin)
{
    struct op op = {.kind = (enum kind)pick(KINDS)};

    op.access = access_for(op.kind);
    op.win = pick(p.count);
    op.target = pick(check_size());
    draw_shapes(&op);
    if (op.kind == FETCH || op.kind == SWAP) {
        op.shape = op.origin = op.result = PLAIN;
        op.count = 1;
    }
    op.at = op.count > CELLS ? pick(CELLS) : pick(p.windows[op.win].cells);
    op.seed = (int64_t)check_random(&p.state);
    op.is_exact = op.access == ORDERED || op.kind == GET;
    op.has_request = pick(4) == 0;
    op.is_flushed = pick(4) == 0;
    if (p.windows[op.win].how == POST_START &&
        !p.windows[op.win].reaches[origin][op.target])
        return;
    if (op.access == ORDERED && p.windows[op.win].has_no_order)
        return;
    if (take_cells(&op, origin))
        p.ops[origin][p.op_count[origin]++] = op;
}

static void draw_window(struct window *w)
{
    memset(w->owner, 0, sizeof(w->owner));
    memset(w->is_written, 0, sizeof(w->is_written));
    w->how = (enum how)pick(HOWS);
    for (int origin = 0; origin < check_size(); origin++)
        for (int target = 0; target < check_size(); target++)
            w->reaches[origin][target] = pick(3) != 0;
}

static void draw_round(void)
{
    for (int i = 0; i < p.count; i++)
        draw_window(&p.windows[i]);
    for (int origin = 0; origin < check_size(); origin++) {
        int n = pick(OPS);

        p.op_count[origin] = 0;
        for (int i = 0; i < n; i++)
            draw_op(origin);
    }
}

/* ---- the model ---- */

static int64_t value_of(const struct op *op, int i)
{
    return narrow(p.windows[op->win].elem,
                  (int64_t)check_mix((uint64_t)op->seed, (uint64_t)i) >> 8);
}

static MPI_Op operation_of(const struct op *op)
{
    static const MPI_Op ordered[] = {MPI_REPLACE, MPI_SUM, MPI_PROD, MPI_MIN,
                                     MPI_NO_OP};

    switch (op->access) {
    case SUMS:
        return MPI_SUM;
    case XORS:
        return MPI_BXOR;
    case MAXES:
        return MPI_MAX;
    default: /* MPI_NO_OP where something is fetched */
        return ordered[(uint64_t)op->seed % (op->kind == ACCUMULATE ? 4 : 5)];
    }
}

static int64_t combine(const struct op *op, int64_t old, int64_t value)
{
    MPI_Op how = operation_of(op);

    if (op->kind == SWAP) /* compares with a value that is there every second
                             time */
        return (op->seed & 1) ? value : old;
    if (how == MPI_NO_OP)
        return old;
    if (how == MPI_SUM)
        return (int64_t)((uint64_t)old + (uint64_t)value);
    if (how == MPI_PROD)
        return (int64_t)((uint64_t)old * (uint64_t)value);
    if (how == MPI_BXOR)
        return old ^ value;
    if (how == MPI_MAX)
        return old > value ? old : value;
    if (how == MPI_MIN)
        return old < value ? old : value;
    return value;
}

/* Gets share no cell with anything that writes. */
static void play_op(int origin, int index)
{
    const struct op *op = &p.ops[origin][index];
    struct window *w = &p.windows[op->win];
    bool is_mine = origin == check_rank();

    for (int i = 0; i < op->count; i++) {
        int64_t *cell = &w->model[op->target][op->at + cell_of(op->shape, i)];

        if (is_mine)
            p.expected[index][i] = *cell;
        if (op->kind == PUT)
            *cell = value_of(op, i);
        else if (op->kind != GET)
            *cell = narrow(w->elem, combine(op, *cell, value_of(op, i)));
    }
}

static void play_round(void)
{
    for (int origin = 0; origin < check_size(); origin++)
        for (int i = 0; i < p.op_count[origin]; i++)
            play_op(origin, i);
}

/* ---- doing it ---- */

/* One side as the calls take it. */
struct side {
    int count;
    MPI_Datatype type;
};

static struct side side_of(const struct op *op, enum shape shape)
{
    return (struct side){op->count / elements_per_type(shape),
                         shapes[p.windows[op->win].elem][shape]};
}

static MPI_Aint disp_of(const struct op *op)
{
    const struct window *w = &p.windows[op->win];
    MPI_Aint bytes = (MPI_Aint)op->at * size_of(w->elem) + w->shift;

    return w->base[op->target] + bytes / w->units[op->target];
}

static void accumulate(struct op *op, int i, bool may_ask)
{
    const struct side from = side_of(op, op->origin);
    const struct side to = side_of(op, op->shape);
    MPI_Win win = p.windows[op->win].win;

    if (may_ask)
        MPI_Raccumulate(p.given[i], from.count, from.type, op->target,
                        disp_of(op), to.count, to.type, operation_of(op), win,
                        &p.requests[i]);
    else
        MPI_Accumulate(p.given[i], from.count, from.type, op->target,
                       disp_of(op), to.count, to.type, operation_of(op), win);
}

static void get_accumulate(struct op *op, int i, bool may_ask)
{
    const struct side from = side_of(op, op->origin);
    const struct side out = side_of(op, op->result);
    const struct side to = side_of(op, op->shape);
    MPI_Win win = p.windows[op->win].win;

    if (may_ask)
        MPI_Rget_accumulate(p.given[i], from.count, from.type, p.fetched[i],
                            out.count, out.type, op->target, disp_of(op),
                            to.count, to.type, operation_of(op), win,
                            &p.requests[i]);
    else
        MPI_Get_accumulate(p.given[i], from.count, from.type, p.fetched[i],
                           out.count, out.type, op->target, disp_of(op),
                           to.count, to.type, operation_of(op), win);
}

static void put(struct op *op, int i, bool may_ask)
{
    const struct side from = side_of(op, op->origin);
    const struct side to = side_of(op, op->shape);
    MPI_Win win = p.windows[op->win].win;

    if (may_ask)
        MPI_Rput(p.given[i], from.count, from.type, op->target, disp_of(op),
                 to.count, to.type, win, &p.requests[i]);
    else
        MPI_Put(p.given[i], from.count, from.type, op->target, disp_of(op),
                to.count, to.type, win);
}

static void get(struct op *op, int i, bool may_ask)
{
    const struct side out = side_of(op, op->result);
    const struct side to = side_of(op, op->shape);
    MPI_Win win = p.windows[op->win].win;

    if (may_ask)
        MPI_Rget(p.fetched[i], out.count, out.type, op->target, disp_of(op),
                 to.count, to.type, win, &p.requests[i]);
    else
        MPI_Get(p.fetched[i], out.count, out.type, op->target, disp_of(op),
                to.count, to.type, win);
}

/* The compared value is what the model has there, or not. */
static void swap(const struct op *op, int i)
{
    const struct window *w = &p.windows[op->win];

    store(w->elem, (char *)&p.compare[i],
          p.expected[i][0] + ((op->seed & 1) ? 0 : 1));
    MPI_Compare_and_swap(p.given[i], &p.compare[i], p.fetched[i],
                         shapes[w->elem][PLAIN], op->target, disp_of(op),
                         w->win);
}

static void do_op(int i)
{
    struct op *op = &p.ops[check_rank()][i];
    struct window *w = &p.windows[op->win];
    bool is_passive = w->how >= LOCK_ALL;
    bool may_ask = is_passive && op->has_request;

    if (op->kind == PUT)
        put(op, i, may_ask);
    else if (op->kind == GET)
        get(op, i, may_ask);
    else if (op->kind == ACCUMULATE)
        accumulate(op, i, may_ask);
    else if (op->kind == GET_ACCUMULATE)
        get_accumulate(op, i, may_ask);
    else if (op->kind == FETCH)
        MPI_Fetch_and_op(p.given[i], p.fetched[i], shapes[w->elem][PLAIN],
                         op->target, disp_of(op), operation_of(op), w->win);
    else
        swap(op, i);
    if (!is_passive || !op->is_flushed)
        return;
    switch (op->seed >> 1 & 3) {
    case 0:
        MPI_Win_flush(op->target, w->win);
        break;
    case 1:
        MPI_Win_flush_all(w->win);
        break;
    case 2:
        MPI_Win_flush_local_all(w->win);
        break;
    default:
        MPI_Win_flush_local(op->target, w->win);
    }
}

static bool is_locking(const struct window *w)
{
    return w->how == LOCK_SHARED || w->how == LOCK_EXCLUSIVE;
}

/* Target by target; locks of several windows at a time, in one order. Requests
 * are complete before the locks go. */
static void do_locks(void)
{
    for (int target = 0; target < check_size(); target++) {
        for (int i = 0; i < p.count; i++)
            if (is_locking(&p.windows[i]))
                MPI_Win_lock(p.windows[i].how == LOCK_SHARED
                                 ? MPI_LOCK_SHARED
                                 : MPI_LOCK_EXCLUSIVE,
                             target, 0, p.windows[i].win);
        for (int i = 0; i < p.op_count[check_rank()]; i++) {
            const struct op *op = &p.ops[check_rank()][i];

            if (op->target == target && is_locking(&p.windows[op->win]))
                do_op(i);
        }
        MPI_Waitall(OPS, p.requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < p.count; i++)
            if (is_locking(&p.windows[i]))
                MPI_Win_unlock(target, p.windows[i].win);
    }
}

/* Ranks that this one reaches, or by which it is reached. */
static MPI_Group group_of(const struct window *w, bool is_origin)
{
    int ranks[RANKS_MAX];
    int n = 0;
    int me = check_rank();
    MPI_Group all;
    MPI_Group some;

    for (int r = 0; r < check_size(); r++)
        if (is_origin ? w->reaches[me][r] : w->reaches[r][me])
            ranks[n++] = r;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, n, ranks, &some);
    MPI_Group_free(&all);
    return some;
}

/* What is true of this rank's memory. */
static int assert_of(const struct window *w)
{
    return (p.round > 0 ? MPI_MODE_NOSTORE : 0) |
           (w->is_written[check_rank()] ? 0 : MPI_MODE_NOPUT);
}

static void post_or_start(struct window *w, bool is_start)
{
    MPI_Group group = group_of(w, is_start);

    if (is_start)
        MPI_Win_start(group, 0, w->win);
    else
        MPI_Win_post(group, assert_of(w), w->win);
    MPI_Group_free(&group);
}

/* All that any rank waits for comes first at all ranks. */
static void open_epochs(void)
{
    for (int i = 0; i < p.count; i++) {
        struct window *w = &p.windows[i];

        if (w->how == FENCE)
            MPI_Win_fence((pick(2) ? MPI_MODE_NOPRECEDE : 0) | assert_of(w),
                          w->win);
        else if (w->how == POST_START)
            post_or_start(w, false);
        else if (w->how == LOCK_ALL)
            MPI_Win_lock_all(0, w->win);
        else if (w->how == LOCK_ALL_UNCHECKED)
            MPI_Win_lock_all(MPI_MODE_NOCHECK, w->win);
    }
    for (int i = 0; i < p.count; i++)
        if (p.windows[i].how == POST_START)
            post_or_start(&p.windows[i], true);
}

static void wait_or_test(struct window *w)
{
    int flag = 0;

    if (pick(2)) {
        MPI_Win_wait(w->win);
        return;
    }
    while (!flag)
        MPI_Win_test(w->win, &flag);
}

static void close_epochs(void)
{
    MPI_Waitall(OPS, p.requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < p.count; i++)
        if (p.windows[i].how == POST_START)
            MPI_Win_complete(p.windows[i].win);
    for (int i = 0; i < p.count; i++) {
        struct window *w = &p.windows[i];

        if (w->how == FENCE)
            MPI_Win_fence(MPI_MODE_NOSUCCEED | MPI_MODE_NOSTORE, w->win);
        else if (w->how == POST_START)
            wait_or_test(w);
        else if (!is_locking(w))
            MPI_Win_unlock_all(w->win);
    }
}

static void do_round(void)
{
    open_epochs();
    do_locks();
    for (int i = 0; i < p.op_count[check_rank()]; i++)
        if (!is_locking(&p.windows[p.ops[check_rank()][i].win]))
            do_op(i);
    close_epochs();
    MPI_Barrier(MPI_COMM_WORLD);
}

/* ---- windows ---- */

/* NULL: none. */
static const char *const hints[][2] = {
    {NULL, NULL},
    {"accumulate_ordering", "none"},
    {"accumulate_ordering", "rar,raw"},
    {"accumulate_ops", "same_op"},
    {"mpi_accumulate_granularity", "8"},
};

static MPI_Info draw_hints(struct window *w)
{
    const int i = pick(2) ? pick((int)(sizeof(hints) / sizeof(hints[0]))) : 0;
    MPI_Info info = MPI_INFO_NULL;

    w->has_no_order = i >= 1 && i <= 3;
    if (i > 0) {
        MPI_Info_create(&info);
        MPI_Info_set(info, hints[i][0], hints[i][1]);
    }
    return info;
}

static void make_shared(struct window *w, MPI_Aint len, MPI_Info info)
{
    MPI_Aint size;
    int unit;
    char *next;

    MPI_Win_allocate_shared(len, w->units[check_rank()], info, MPI_COMM_WORLD,
                            &w->memory, &w->win);
    MPI_Win_shared_query(w->win, (check_rank() + 1) % check_size(), &size,
                         &unit, &next);
    w->neighbor = next;
}

static void make_memory(struct window *w, MPI_Aint len, MPI_Info info,
                        MPI_Aint *address)
{
    w->raw = check_alloc((size_t)len);
    w->memory = w->raw;
    if (w->flavor == MPI_WIN_FLAVOR_CREATE) {
        MPI_Win_create(w->memory, len, w->units[check_rank()], info,
                       MPI_COMM_WORLD, &w->win);
        return;
    }
    MPI_Win_create_dynamic(info, MPI_COMM_WORLD, &w->win);
    MPI_Win_attach(w->win, w->memory, len / 3); /* pieces that adjoin */
    MPI_Win_attach(w->win, w->memory + len / 3, len - len / 3);
    MPI_Get_address(w->memory, address);
}

static void make_window(struct window *w)
{
    static const int flavors[] = {
        MPI_WIN_FLAVOR_CREATE, MPI_WIN_FLAVOR_ALLOCATE, MPI_WIN_FLAVOR_DYNAMIC,
        MPI_WIN_FLAVOR_SHARED};
    MPI_Aint mine = 0;
    MPI_Aint len;
    MPI_Info info;

    memset(w, 0, sizeof(*w));
    w->flavor = flavors[pick(4)];
    w->elem = (enum elem)pick(ELEMS);
    w->cells = pick(3) ? CELLS : CELLS_MAX;
    w->shift = pick(3) == 0 ? size_of(w->elem) / 2 : 0;
    len = (MPI_Aint)w->cells * size_of(w->elem) + 8;
    for (int i = 0; i < check_size(); i++)
        w->units[i] = w->shift == 0 && pick(2) ? size_of(w->elem) : 1;
    if (w->flavor == MPI_WIN_FLAVOR_SHARED && !is_one_node)
        w->flavor = MPI_WIN_FLAVOR_ALLOCATE;
    for (int i = 0; w->flavor == MPI_WIN_FLAVOR_DYNAMIC && i < check_size();
         i++)
        w->units[i] = 1;
    info = draw_hints(w);
    if (w->flavor == MPI_WIN_FLAVOR_SHARED)
        make_shared(w, len, info);
    else if (w->flavor == MPI_WIN_FLAVOR_ALLOCATE)
        MPI_Win_allocate(len, w->units[check_rank()], info, MPI_COMM_WORLD,
                         &w->memory, &w->win);
    else
        make_memory(w, len, info, &mine);
    if (info != MPI_INFO_NULL)
        MPI_Info_free(&info);
    memset(w->memory, 0, (size_t)len);
    MPI_Allgather(&mine, 1, MPI_AINT, w->base, 1, MPI_AINT, MPI_COMM_WORLD);
}

static void free_window(struct window *w)
{
    if (w->flavor == MPI_WIN_FLAVOR_DYNAMIC) {
        MPI_Win_detach(w->win, w->memory);
        MPI_Win_detach(w->win,
                       w->memory + (w->cells * size_of(w->elem) + 8) / 3);
    }
    MPI_Win_free(&w->win);
    free(w->raw);
}

/* ---- buffers ---- */

static size_t room_of(const struct op *op, enum shape shape)
{
    return (size_t)(op->count / elements_per_type(shape) * 8 + 8) *
           (size_t)size_of(p.windows[op->win].elem);
}

static void prepare_buffer(int i)
{
    const struct op *op = &p.ops[check_rank()][i];
    enum elem elem = p.windows[op->win].elem;

    p.given[i] = check_alloc(room_of(op, op->origin));
    p.fetched[i] = check_alloc(room_of(op, op->result));
    p.expected[i] = check_alloc((size_t)op->count * sizeof(int64_t));
    memset(p.given[i], CANARY, room_of(op, op->origin));
    memset(p.fetched[i], CANARY, room_of(op, op->result));
    for (int k = 0; k < op->count; k++)
        store(elem, p.given[i] + cell_of(op->origin, k) * size_of(elem),
              value_of(op, k));
}

static void prepare_buffers(void)
{
    for (int i = 0; i < OPS; i++) {
        p.requests[i] = MPI_REQUEST_NULL;
        p.given[i] = p.fetched[i] = NULL;
        p.expected[i] = NULL;
        if (i < p.op_count[check_rank()])
            prepare_buffer(i);
    }
}

static void free_buffers(void)
{
    for (int i = 0; i < OPS; i++) {
        free(p.given[i]);
        free(p.fetched[i]);
        free(p.expected[i]);
    }
}

/* ---- comparing ---- */

static void compare_memory(int index, int rank, const char *memory)
{
    const struct window *w = &p.windows[index];

    for (int i = 0; i < w->cells; i++) {
        int64_t found = load(w->elem, memory + i * size_of(w->elem) + w->shift);

        CHECK(found == w->model[rank][i],
              "winrandom %llu 1 %d, round %d: window %d (flavor %d, element "
              "size %d, closed by %d): cell %d of rank %d is %lld, not %lld",
              p.seed, p.number, p.round, index, w->flavor, size_of(w->elem),
              (int)w->how, i, rank, (long long)found,
              (long long)w->model[rank][i]);
        if (found != w->model[rank][i])
            return;
    }
}

static bool is_as_expected(int i)
{
    const struct op *op = &p.ops[check_rank()][i];
    enum elem elem = p.windows[op->win].elem;

    for (int k = 0; k < op->count; k++)
        if (load(elem, p.fetched[i] + cell_of(op->result, k) * size_of(elem)) !=
            p.expected[i][k])
            return false;
    return true;
}

/* Is what lies between and behind the elements as it was? */
static bool has_holes(int i)
{
    const struct op *op = &p.ops[check_rank()][i];
    const size_t size = (size_t)size_of(p.windows[op->win].elem);
    const size_t cells = room_of(op, op->result) / size;
    bool *is_cell = check_alloc(cells * sizeof(*is_cell));
    bool is_good = true;

    memset(is_cell, 0, cells * sizeof(*is_cell));
    for (int k = 0; k < op->count; k++)
        is_cell[cell_of(op->result, k)] = true;
    for (size_t at = 0; at < cells * size; at++)
        if (!is_cell[at / size] && p.fetched[i][at] != CANARY)
            is_good = false;
    free(is_cell);
    return is_good;
}

static void compare_fetched(int i)
{
    const struct op *op = &p.ops[check_rank()][i];
    bool is_fetch = op->kind != PUT && op->kind != ACCUMULATE;

    if (!is_fetch)
        return;
    CHECK(has_holes(i),
          "winrandom %llu 1 %d, round %d: operation %d of kind %d at rank %d "
          "wrote between the elements of its result",
          p.seed, p.number, p.round, i, (int)op->kind, op->target);
    if (op->is_exact)
        CHECK(is_as_expected(i),
              "winrandom %llu 1 %d, round %d: operation %d of kind %d at rank "
              "%d of window %d (closed by %d) fetched another value",
              p.seed, p.number, p.round, i, (int)op->kind, op->target, op->win,
              (int)p.windows[op->win].how);
}

static void compare(void)
{
    for (int i = 0; i < p.count; i++) {
        compare_memory(i, check_rank(), p.windows[i].memory);
        if (p.windows[i].neighbor)
            compare_memory(i, (check_rank() + 1) % check_size(),
                           p.windows[i].neighbor);
    }
    for (int i = 0; i < p.op_count[check_rank()]; i++)
        compare_fetched(i);
}

/* ---- all of it ---- */

static void run_program(unsigned long long seed, int number)
{
    p.seed = seed;
    p.number = number;
    p.state = check_mix(seed, (uint64_t)number);
    p.count = pick(WINDOWS) + 1;
    for (int i = 0; i < p.count; i++)
        make_window(&p.windows[i]);
    MPI_Barrier(MPI_COMM_WORLD);
    for (p.round = 0; p.round < ROUNDS; p.round++) {
        draw_round();
        prepare_buffers();
        play_round();
        do_round();
        compare();
        free_buffers();
        MPI_Barrier(MPI_COMM_WORLD);
    }
    for (int i = 0; i < p.count; i++)
        free_window(&p.windows[i]);
}

int main(int argc, char *argv[])
{
    const char *other_seed = getenv("WINRANDOM_SEED");
    const char *times = getenv("WINRANDOM_TIMES");
    unsigned long long seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
    int programs = argc > 2 ? atoi(argv[2]) : 10;
    int first = argc > 3 ? atoi(argv[3]) : 0;

    if (other_seed)
        seed = strtoull(other_seed, NULL, 0);
    if (times)
        programs *= atoi(times);
    check_start(&argc, &argv);
    if (check_size() > RANKS_MAX)
        check_skip("too many ranks");
    is_one_node = check_is_one_node();
    make_types();
    for (int i = 0; i < programs; i++)
        run_program(seed, first + i);
    free_types();
    return check_finish();
}
