/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random one-sided programs against a sequential model of MPI 5.0, chapter 12.
 *
 *     winrandom SEED PROGRAMS
 *
 * A program is made from a seed that all ranks know, so each of them can play
 * it in its head: rounds of operations, each round closed by some form of
 * synchronization. Within a round the cells of every target are given to one
 * way of access each, as the standard demands: one put, any gets, accumulates
 * with one operation, or accumulates of one origin in order. After each round
 * every rank compares its memory and what it has fetched with the model. A
 * failure names seed and program, to be played again.
 */
#include "check.h"

enum {
    CELLS = 512, /* of 8 bytes, per rank */
    ROUNDS = 6,
    OPS = 24, /* at most, per origin and round */
    RANKS_MAX = 16
};

enum access { FREE, GETS, ONE_PUT, SUMS, XORS, MAXES, ORDERED };

enum kind { PUT, GET, ACCUMULATE, GET_ACCUMULATE, FETCH, SWAP, KINDS };

enum shape { PLAIN, VECTOR, INDEXED, SHAPES };

struct op {
    enum kind kind;
    enum access access;
    enum shape shape;
    int target;
    int at;    /* first cell */
    int count; /* elements */
    int64_t seed;
    bool is_exact; /* what it fetches is known */
    bool has_request;
};

struct program {
    uint64_t state;
    int flavor;
    int shift; /* bytes by which elements are off their alignment */
    enum access owner[RANKS_MAX][CELLS];
    int orderer[RANKS_MAX][CELLS];
    int64_t model[RANKS_MAX][CELLS];
    struct op ops[RANKS_MAX][OPS];
    int op_count[RANKS_MAX];
    MPI_Datatype shapes[SHAPES];
    char *memory;
    char *raw;
    MPI_Aint base[RANKS_MAX];
    MPI_Win win;
    int64_t *fetched[OPS];
    int64_t *expected[OPS];
    int64_t *given[OPS];
    MPI_Request requests[OPS];
};

static struct program p;

static int pick(int n)
{
    return (int)(check_random(&p.state) % (uint64_t)n);
}

/* The cell of element i of a shape: every element is one cell. */
static int cell_of(enum shape shape, int i)
{
    if (shape == VECTOR)
        return i / 2 * 3 + i % 2; /* 2 of 3 */
    if (shape == INDEXED)
        return i / 3 * 8 + (i % 3 == 2 ? 6 : i % 3 * 3); /* 0, 3, 6 of 8 */
    return i;
}

static int elements_per_type(enum shape shape)
{
    if (shape == VECTOR)
        return 2;
    return shape == INDEXED ? 3 : 1;
}

static void make_types(void)
{
    const int displs[3] = {0, 3, 6};
    MPI_Datatype part;

    p.shapes[PLAIN] = MPI_INT64_T;
    MPI_Type_vector(1, 2, 3, MPI_INT64_T, &part);
    MPI_Type_create_resized(part, 0, 24, &p.shapes[VECTOR]);
    MPI_Type_free(&part);
    MPI_Type_create_indexed_block(3, 1, displs, MPI_INT64_T, &part);
    MPI_Type_create_resized(part, 0, 64, &p.shapes[INDEXED]);
    MPI_Type_free(&part);
    MPI_Type_commit(&p.shapes[VECTOR]);
    MPI_Type_commit(&p.shapes[INDEXED]);
}

static void free_types(void)
{
    MPI_Type_free(&p.shapes[VECTOR]);
    MPI_Type_free(&p.shapes[INDEXED]);
}

/* ---- making a round ---- */

static enum access access_for(enum kind kind)
{
    static const enum access ways[] = {SUMS, XORS, MAXES, ORDERED};

    if (kind == PUT)
        return ONE_PUT;
    return kind == GET ? GETS : ways[pick(4)];
}

/* May the origin have these cells in this way? A put wants them alone. */
static bool take_cells(const struct op *op, int origin)
{
    for (int i = 0; i < op->count; i++) {
        int cell = op->at + cell_of(op->shape, i);
        enum access owner;

        if (cell >= CELLS)
            return false;
        owner = p.owner[op->target][cell];
        if (owner != FREE &&
            (owner != op->access || owner == ONE_PUT ||
             (owner == ORDERED && p.orderer[op->target][cell] != origin)))
            return false;
    }
    for (int i = 0; i < op->count; i++) {
        int cell = op->at + cell_of(op->shape, i);

        p.owner[op->target][cell] = op->access;
        p.orderer[op->target][cell] = origin;
    }
    return true;
}

static void draw_op(int origin)
{
    struct op op = {.kind = (enum kind)pick(KINDS)};

    op.access = access_for(op.kind);
    if (op.kind == SWAP)
        op.access = ORDERED;
    op.target = pick(check_size());
    op.shape = (enum shape)pick(SHAPES);
    op.count = (pick(8) == 0 ? pick(80) + 1 : pick(6) + 1) *
               elements_per_type(op.shape);
    if (op.kind == FETCH || op.kind == SWAP) {
        op.shape = PLAIN;
        op.count = 1;
    }
    op.at = pick(CELLS);
    op.seed = (int64_t)check_random(&p.state);
    op.is_exact = op.access == ORDERED || op.kind == GET;
    op.has_request = pick(4) == 0;
    if (take_cells(&op, origin))
        p.ops[origin][p.op_count[origin]++] = op;
}

static void draw_round(void)
{
    memset(p.owner, 0, sizeof(p.owner));
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
    return (int64_t)check_mix((uint64_t)op->seed, (uint64_t)i) >> 8;
}

static MPI_Op operation_of(const struct op *op)
{
    static const MPI_Op ordered[] = {MPI_REPLACE, MPI_SUM, MPI_PROD, MPI_MIN};

    switch (op->access) {
    case SUMS:
        return MPI_SUM;
    case XORS:
        return MPI_BXOR;
    case MAXES:
        return MPI_MAX;
    default:
        return ordered[(uint64_t)op->seed % 4];
    }
}

static int64_t combine(const struct op *op, int64_t old, int64_t value)
{
    MPI_Op how = operation_of(op);

    if (op->kind == SWAP) /* compares with a value that is there every second
                             time */
        return (op->seed & 1) ? value : old;
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

/* Gets first: they share no cell with anything that writes. */
static void play_op(int origin, int index)
{
    const struct op *op = &p.ops[origin][index];
    bool is_mine = origin == check_rank();

    for (int i = 0; i < op->count; i++) {
        int64_t *cell = &p.model[op->target][op->at + cell_of(op->shape, i)];

        if (is_mine && p.expected[index])
            p.expected[index][i] = *cell;
        if (op->kind == PUT)
            *cell = value_of(op, i);
        else if (op->kind != GET)
            *cell = combine(op, *cell, value_of(op, i));
    }
}

static void play_round(void)
{
    for (int origin = 0; origin < check_size(); origin++)
        for (int i = 0; i < p.op_count[origin]; i++)
            play_op(origin, i);
}

/* ---- doing it ---- */

static void accumulate(struct op *op, int index, MPI_Aint disp, bool may_ask)
{
    MPI_Datatype type = p.shapes[op->shape];
    int n = op->count / elements_per_type(op->shape);
    MPI_Op how = operation_of(op);

    if (op->kind == ACCUMULATE && may_ask)
        MPI_Raccumulate(p.given[index], op->count, MPI_INT64_T, op->target,
                        disp, n, type, how, p.win, &p.requests[index]);
    else if (op->kind == ACCUMULATE)
        MPI_Accumulate(p.given[index], op->count, MPI_INT64_T, op->target, disp,
                       n, type, how, p.win);
    else if (op->kind == FETCH)
        MPI_Fetch_and_op(p.given[index], p.fetched[index], MPI_INT64_T,
                         op->target, disp, how, p.win);
    else if (may_ask)
        MPI_Rget_accumulate(p.given[index], op->count, MPI_INT64_T,
                            p.fetched[index], op->count, MPI_INT64_T,
                            op->target, disp, n, type, how, p.win,
                            &p.requests[index]);
    else
        MPI_Get_accumulate(p.given[index], op->count, MPI_INT64_T,
                           p.fetched[index], op->count, MPI_INT64_T, op->target,
                           disp, n, type, how, p.win);
}

/* The compared value is what the model has there, or not. */
static void swap(const struct op *op, int index, MPI_Aint disp)
{
    static int64_t compare[OPS];

    compare[index] = p.expected[index][0] + ((op->seed & 1) ? 0 : 1);
    MPI_Compare_and_swap(p.given[index], &compare[index], p.fetched[index],
                         MPI_INT64_T, op->target, disp, p.win);
}

static void do_op(int index, bool is_passive)
{
    struct op *op = &p.ops[check_rank()][index];
    MPI_Aint disp = p.base[op->target] + (MPI_Aint)op->at * 8 + p.shift;
    MPI_Datatype type = p.shapes[op->shape];
    int n = op->count / elements_per_type(op->shape);
    bool may_ask = is_passive && op->has_request;

    if (op->kind == PUT && may_ask)
        MPI_Rput(p.given[index], op->count, MPI_INT64_T, op->target, disp, n,
                 type, p.win, &p.requests[index]);
    else if (op->kind == PUT)
        MPI_Put(p.given[index], op->count, MPI_INT64_T, op->target, disp, n,
                type, p.win);
    else if (op->kind == GET && may_ask)
        MPI_Rget(p.fetched[index], op->count, MPI_INT64_T, op->target, disp, n,
                 type, p.win, &p.requests[index]);
    else if (op->kind == GET)
        MPI_Get(p.fetched[index], op->count, MPI_INT64_T, op->target, disp, n,
                type, p.win);
    else if (op->kind == SWAP)
        swap(op, index, disp);
    else
        accumulate(op, index, disp, may_ask);
}

static void do_all(bool is_passive)
{
    for (int i = 0; i < p.op_count[check_rank()]; i++)
        do_op(i, is_passive);
    MPI_Waitall(OPS, p.requests, MPI_STATUSES_IGNORE);
}

static void do_post_start(void)
{
    MPI_Group all;

    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Win_post(all, 0, p.win);
    MPI_Win_start(all, 0, p.win);
    do_all(false);
    MPI_Win_complete(p.win);
    MPI_Win_wait(p.win);
    MPI_Group_free(&all);
}

/* Target by target, so that requests are complete before the lock goes. */
static void do_locks(int type)
{
    for (int target = 0; target < check_size(); target++) {
        MPI_Win_lock(type, target, 0, p.win);
        for (int i = 0; i < p.op_count[check_rank()]; i++)
            if (p.ops[check_rank()][i].target == target)
                do_op(i, true);
        MPI_Waitall(OPS, p.requests, MPI_STATUSES_IGNORE);
        MPI_Win_unlock(target, p.win);
    }
}

static void do_round(int how)
{
    switch (how) {
    case 0:
        MPI_Win_fence(0, p.win);
        do_all(false);
        MPI_Win_fence(MPI_MODE_NOSUCCEED, p.win);
        break;
    case 1:
        do_post_start();
        break;
    case 2:
        MPI_Win_lock_all(0, p.win);
        do_all(true);
        MPI_Win_flush_all(p.win);
        MPI_Win_unlock_all(p.win);
        break;
    case 3:
        do_locks(MPI_LOCK_SHARED);
        break;
    default:
        do_locks(MPI_LOCK_EXCLUSIVE);
        break;
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* ---- windows ---- */

static void make_window(void)
{
    const size_t len = CELLS * 8 + 8;
    MPI_Aint mine = 0;

    p.raw = NULL;
    if (p.flavor == MPI_WIN_FLAVOR_ALLOCATE) {
        MPI_Win_allocate((MPI_Aint)len, 1, MPI_INFO_NULL, MPI_COMM_WORLD,
                         &p.memory, &p.win);
    } else {
        p.raw = check_alloc(len);
        p.memory = p.raw;
        if (p.flavor == MPI_WIN_FLAVOR_CREATE) {
            MPI_Win_create(p.memory, (MPI_Aint)len, 1, MPI_INFO_NULL,
                           MPI_COMM_WORLD, &p.win);
        } else {
            MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &p.win);
            MPI_Win_attach(p.win, p.memory, (MPI_Aint)len);
            MPI_Get_address(p.memory, &mine);
        }
    }
    memset(p.memory, 0, len);
    memset(p.model, 0, sizeof(p.model));
    MPI_Allgather(&mine, 1, MPI_AINT, p.base, 1, MPI_AINT, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void free_window(void)
{
    if (p.flavor == MPI_WIN_FLAVOR_DYNAMIC)
        MPI_Win_detach(p.win, p.memory);
    MPI_Win_free(&p.win);
    free(p.raw);
}

/* ---- all of it ---- */

static void prepare_buffers(void)
{
    const struct op *ops = p.ops[check_rank()];

    for (int i = 0; i < OPS; i++) {
        bool is_there = i < p.op_count[check_rank()];
        size_t len = is_there ? (size_t)ops[i].count * 8 : 8;

        p.requests[i] = MPI_REQUEST_NULL;
        p.given[i] = check_alloc(len);
        p.fetched[i] = check_alloc(len);
        p.expected[i] = check_alloc(len);
        for (int k = 0; is_there && k < ops[i].count; k++)
            p.given[i][k] = value_of(&ops[i], k);
    }
}

static void compare(unsigned long long seed, int program, int round, int how)
{
    const struct op *ops = p.ops[check_rank()];
    bool is_good = true;

    for (int i = 0; i < CELLS && is_good; i++) {
        int64_t found;

        memcpy(&found, p.memory + i * 8 + p.shift, sizeof(found));
        is_good = found == p.model[check_rank()][i];
        CHECK(is_good,
              "winrandom %llu, program %d, round %d (closed by %d, flavor %d): "
              "cell %d is %lld, not %lld",
              seed, program, round, how, p.flavor, i, (long long)found,
              (long long)p.model[check_rank()][i]);
    }
    for (int i = 0; i < p.op_count[check_rank()]; i++) {
        bool is_fetch = ops[i].kind != PUT && ops[i].kind != ACCUMULATE;

        if (is_fetch && ops[i].is_exact)
            CHECK(memcmp(p.fetched[i], p.expected[i],
                         (size_t)ops[i].count * 8) == 0,
                  "winrandom %llu, program %d, round %d (closed by %d, flavor "
                  "%d): operation %d of kind %d at rank %d fetched another "
                  "value",
                  seed, program, round, how, p.flavor, i, (int)ops[i].kind,
                  ops[i].target);
    }
}

static void run_program(unsigned long long seed, int program)
{
    static const int flavors[] = {
        MPI_WIN_FLAVOR_CREATE, MPI_WIN_FLAVOR_ALLOCATE, MPI_WIN_FLAVOR_DYNAMIC};

    p.state = check_mix(seed, (uint64_t)program);
    p.flavor = flavors[pick(3)];
    p.shift = pick(3) == 0 ? 4 : 0;
    make_window();
    for (int round = 0; round < ROUNDS; round++) {
        int how = pick(5);

        draw_round();
        prepare_buffers();
        play_round();
        do_round(how);
        compare(seed, program, round, how);
        for (int i = 0; i < OPS; i++) {
            free(p.given[i]);
            free(p.fetched[i]);
            free(p.expected[i]);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    free_window();
}

int main(int argc, char *argv[])
{
    unsigned long long seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
    int programs = argc > 2 ? atoi(argv[2]) : 10;

    check_start(&argc, &argv);
    if (check_size() > RANKS_MAX)
        check_skip("too many ranks");
    make_types();
    for (int i = 0; i < programs; i++)
        run_program(seed, i);
    free_types();
    return check_finish();
}
