/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations of reductions: what every rank brings, and what it comes to. */
#include "random_walk.h"

#include <complex.h>

static void multiply(const unsigned *x, const unsigned *y, unsigned *to)
{
    unsigned r[4] = {x[0] * y[0] + x[1] * y[2], x[0] * y[1] + x[1] * y[3],
                     x[2] * y[0] + x[3] * y[2], x[2] * y[1] + x[3] * y[3]};

    memcpy(to, r, sizeof(r));
}

static struct layout *known(MPI_Datatype type)
{
    for (int i = 0; i < walk.livings; i++)
        if (walk.living[i]->type == type)
            return walk.living[i];
    CHECK_OR_DIE(false, "an operation is called with a strange type");
    return NULL;
}

static void user(int class, const void *in, void *inout, MPI_Count n,
                 MPI_Datatype type)
{
    const struct layout *l = known(type);

    for (MPI_Count e = 0; e < n; e++)
        for (int i = 0; i < l->items; i++) {
            const unsigned *x =
                (const void *)((const char *)in + e * l->extent + l->at[i]);
            unsigned *y = (void *)((char *)inout + e * l->extent + l->at[i]);
            if (class == ADD) {
                y[0] += x[0];
            } else if (class == AFFINE) {
                unsigned b = x[1] * y[0] + y[1];
                y[0] *= x[0];
                y[1] = b;
            } else {
                multiply(x, y, y);
            }
        }
}

#define USER(name, class)                                                      \
    static void name(void *in, void *inout, int *n, MPI_Datatype *type)        \
    {                                                                          \
        user(class, in, inout, *n, *type);                                     \
    }                                                                          \
    static void name##_big(void *in, void *inout, MPI_Count *n,                \
                           MPI_Datatype *type)                                 \
    {                                                                          \
        user(class, in, inout, *n, *type);                                     \
    }
USER(add, ADD)
USER(affine, AFFINE)
USER(matrix, MATRIX)

static void user_op(struct op_case *c, uint64_t r)
{
    int which = (int)(r % 3);
    MPI_User_function *const f[] = {add, affine, matrix};
    MPI_User_function_c *const g[] = {add_big, affine_big, matrix_big};
    const struct base bases[] = {
        {MPI_UNSIGNED, 4, 4}, {pair_type, 8, 8}, {square_type, 16, 16}};
    const int classes[] = {ADD, AFFINE, MATRIX};

    c->is_user = true;
    c->commutes = which == 0;
    c->class = classes[which];
    c->base = bases[which];
    if (r / 3 % 2)
        MPI_Op_create(f[which], c->commutes && r / 6 % 2, &c->op);
    else
        MPI_Op_create_c(g[which], c->commutes && r / 6 % 2, &c->op);
}

static MPI_Op number_ops(uint64_t r, bool is_integer)
{
    switch (r % (is_integer ? 10 : 4)) {
    case 0:
        return MPI_SUM;
    case 1:
        return MPI_PROD;
    case 2:
        return MPI_MAX;
    case 3:
        return MPI_MIN;
    case 4:
        return MPI_BAND;
    case 5:
        return MPI_BOR;
    case 6:
        return MPI_BXOR;
    case 7:
        return MPI_LAND;
    case 8:
        return MPI_LOR;
    default:
        return MPI_LXOR;
    }
}

void walk_choose_op(struct op_case *c, uint64_t r)
{
    static const struct {
        int size;
        int class;
    } numbers[] = {{1, SIGNED},    {2, SIGNED},    {4, SIGNED},
                   {8, SIGNED},    {1, UNSIGNED_}, {2, UNSIGNED_},
                   {4, UNSIGNED_}, {8, UNSIGNED_}, {4, REAL},
                   {8, REAL},      {16, COMPLEX}};
    const MPI_Datatype types[] = {
        MPI_INT8_T,  MPI_INT16_T,  MPI_INT32_T,         MPI_INT64_T,
        MPI_UINT8_T, MPI_UINT16_T, MPI_UINT32_T,        MPI_UINT64_T,
        MPI_FLOAT,   MPI_DOUBLE,   MPI_C_DOUBLE_COMPLEX};
    const MPI_Datatype locs[] = {MPI_2INT, MPI_DOUBLE_INT, MPI_SHORT_INT,
                                 MPI_LONG_INT, MPI_FLOAT_INT};
    int i = (int)(r % 20);

    r /= 20;
    *c = (struct op_case){.commutes = true};
    if (i < 11) {
        c->base = (struct base){types[i], numbers[i].size, numbers[i].size};
        c->class = numbers[i].class;
        if (c->class == COMPLEX)
            c->op = r % 2 ? MPI_SUM : MPI_PROD;
        else
            c->op = number_ops(r, c->class < REAL);
    } else if (i < 14) {
        MPI_Aint lb = 0;
        MPI_Aint extent = 0;
        c->class = PAIR;
        c->op = r % 2 ? MPI_MAXLOC : MPI_MINLOC;
        c->base.type = locs[r / 2 % 5];
        MPI_Type_get_extent(c->base.type, &lb, &extent);
        c->base.pitch = (long)extent;
        c->base.size = (long)extent; /* its gaps stay zero */
    } else {
        user_op(c, r);
    }
}

void walk_pair_get(MPI_Datatype t, const void *from, struct loc *to)
{
#define GET(mpi, c)                                                            \
    if (t == mpi) {                                                            \
        struct {                                                               \
            c v;                                                               \
            int i;                                                             \
        } x;                                                                   \
        memcpy(&x, from, sizeof(x));                                           \
        *to = (struct loc){(double)x.v, x.i};                                  \
    }
    GET(MPI_2INT, int)
    GET(MPI_DOUBLE_INT, double)
    GET(MPI_SHORT_INT, short)
    GET(MPI_LONG_INT, long)
    GET(MPI_FLOAT_INT, float)
}

/* Without touching the gaps. */
void walk_pair_put(MPI_Datatype t, void *at, const struct loc *from)
{
#define PUT(mpi, c)                                                            \
    if (t == mpi) {                                                            \
        struct {                                                               \
            c v;                                                               \
            int i;                                                             \
        } *x = at;                                                             \
        x->v = (c)from->value;                                                 \
        x->i = from->index;                                                    \
    }
    PUT(MPI_2INT, int)
    PUT(MPI_DOUBLE_INT, double)
    PUT(MPI_SHORT_INT, short)
    PUT(MPI_LONG_INT, long)
    PUT(MPI_FLOAT_INT, float)
}

static int64_t load(const void *at, long size, bool is_signed)
{
    uint64_t v = 0;
    int shift = (int)(64 - 8 * size);

    memcpy(&v, at, (size_t)size);
    return is_signed ? (int64_t)(v << shift) >> shift : (int64_t)v;
}

static uint64_t integers(MPI_Op op, int64_t x, int64_t y, bool is_signed)
{
    bool less = is_signed ? x < y : (uint64_t)x < (uint64_t)y;

    if (op == MPI_SUM)
        return (uint64_t)x + (uint64_t)y;
    if (op == MPI_PROD)
        return (uint64_t)x * (uint64_t)y;
    if (op == MPI_MAX)
        return (uint64_t)(less ? y : x);
    if (op == MPI_MIN)
        return (uint64_t)(less ? x : y);
    if (op == MPI_BAND)
        return (uint64_t)(x & y);
    if (op == MPI_BOR)
        return (uint64_t)(x | y);
    if (op == MPI_BXOR)
        return (uint64_t)(x ^ y);
    if (op == MPI_LAND)
        return x && y;
    if (op == MPI_LOR)
        return x || y;
    return !x != !y;
}

static double reals(MPI_Op op, double x, double y)
{
    if (op == MPI_SUM)
        return x + y;
    if (op == MPI_PROD)
        return x * y;
    if (op == MPI_MAX)
        return x > y ? x : y;
    return x < y ? x : y;
}

static void voice(const struct act *a, int who, long k, void *to)
{
    uint64_t r =
        check_mix(a->salt * 131 + (uint64_t)a->voice[who], (uint64_t)k);
    uint64_t more[2] = {r, r * 77 + 5};
    const struct op_case *c = &a->op;

    memset(to, 0, (size_t)c->base.pitch);
    if (c->class == REAL) {
        double d = c->op == MPI_PROD
                       ? (double)(int)(r % 3 + 1) - (r % 3 == 2) * 4
                       : (double)(int)(r % 2001) - 1000;
        float f;
        if (c->op == MPI_PROD && a->voices > 12)
            d = r % 2 ? 1 : -2;
        f = (float)d;
        memcpy(to, c->base.size == 4 ? (void *)&f : (void *)&d,
               (size_t)c->base.size);
    } else if (c->class == COMPLEX) {
        double complex z[] = {1, I, -1, -I};
        memcpy(to, &z[r % 4], sizeof(z[0]));
    } else if (c->class == PAIR) {
        walk_pair_put(c->base.type, to,
                      &(struct loc){(double)(r % 4), (int)(r / 4 % 9)});
    } else {
        if (r % 3 == 0 && c->class <= UNSIGNED_)
            more[0] &= 1;
        memcpy(to, more, (size_t)(c->base.size < 16 ? c->base.size : 16));
    }
}

/* acc = acc op next */
static void fold(const struct op_case *c, void *acc, const void *next)
{
    if (c->class <= UNSIGNED_) {
        bool is_signed = c->class == SIGNED;
        uint64_t v = integers(c->op, load(acc, c->base.size, is_signed),
                              load(next, c->base.size, is_signed), is_signed);
        memcpy(acc, &v, (size_t)c->base.size);
    } else if (c->class == REAL && c->base.size == 4) {
        float *x = acc;
        *x = (float)reals(c->op, *x, *(const float *)next);
    } else if (c->class == REAL) {
        double *x = acc;
        *x = reals(c->op, *x, *(const double *)next);
    } else if (c->class == COMPLEX) {
        double complex *x = acc;
        double complex y;
        memcpy(&y, next, sizeof(y));
        *x = c->op == MPI_SUM ? *x + y : *x * y;
    } else if (c->class == PAIR) {
        struct loc x, y;
        bool less;
        walk_pair_get(c->base.type, acc, &x);
        walk_pair_get(c->base.type, next, &y);
        less = c->op == MPI_MAXLOC ? y.value > x.value : y.value < x.value;
        if (less || (y.value == x.value && y.index < x.index))
            walk_pair_put(c->base.type, acc, &y);
    } else if (c->class == ADD) {
        *(unsigned *)acc += *(const unsigned *)next;
    } else if (c->class == AFFINE) {
        unsigned *f = acc;
        const unsigned *g = next;
        f[1] = f[1] * g[0] + g[1];
        f[0] *= g[0];
    } else {
        multiply(acc, next, acc);
    }
}

/* What the voices first to last come to. */
static void chorus(const struct act *a, int first, int last, long k, void *to)
{
    _Alignas(16) unsigned char next[32];

    voice(a, first, k, to);
    for (int i = first + 1; i < last; i++) {
        voice(a, i, k, next);
        fold(&a->op, to, next);
    }
}

static void store_items(const struct act *a, struct side *s, int first,
                        int last, long skip, long n, bool now)
{
    _Alignas(16) unsigned char item[32];

    for (long k = 0; k < n; k++) {
        unsigned char *to =
            walk_item_at(s, now ? s->buf : s->want + (s->buf - s->mem), 0, k);
        chorus(a, first, last, skip + k, item);
        if (a->op.class == PAIR) {
            struct loc x;
            walk_pair_get(a->base.type, item, &x);
            walk_pair_put(a->base.type, to, &x);
        } else {
            memcpy(to, item, (size_t)a->base.size);
        }
    }
}

bool walk_is_reduction(enum kind k)
{
    return k >= REDUCE && k <= EXSCAN;
}

/* (Re)fill what goes out and what is to come in. */
static void fill_reduction(struct act *a)
{
    struct side *from = a->in_place ? &a->recv : &a->send;
    int first = 0;
    int last = a->voices;
    /* on an intercommunicator this member's own voice is behind the others */
    int own = a->shape == INTER ? a->voices : a->rank;

    if (a->in_place && a->recv.blocks)
        memcpy(a->recv.want, a->recv.mem, a->recv.len);
    if (from->blocks) {
        store_items(a, from, own, own + 1, 0, from->block[0].n, true);
        memcpy(from->want, from->mem, from->len);
    }
    if (a->kind == SCAN)
        last = a->rank + 1;
    if (a->kind == EXSCAN)
        last = a->rank;
    if (a->recv.blocks && a->is_root && last > 0)
        store_items(a, &a->recv, first, last, a->skip, a->recv.block[1].n,
                    false);
}

static void fill_moves(struct act *a)
{
    uint64_t own = (uint64_t)check_rank();

    for (int i = 0; i < a->send.blocks; i++)
        walk_write_block(a, &a->send, i, a->send.block[i].key, true);
    for (int i = 0; i < a->recv.blocks; i++) {
        uint64_t key = a->recv.block[i].key;
        bool is_alltoall = a->kind >= ALLTOALL && a->kind <= ALLTOALLW;
        if (a->in_place && is_alltoall)
            walk_write_block(a, &a->recv, i, (own << 12) | (key >> 12), true);
        walk_write_block(a, &a->recv, i, key,
                         a->kind == BCAST
                             ? a->is_root
                             : a->in_place && !is_alltoall && key >> 12 == own);
    }
}

void walk_fill(struct act *a, uint64_t salt)
{
    a->salt = salt;
    if (walk_is_reduction(a->kind))
        fill_reduction(a);
    else if (a->kind != BARRIER)
        fill_moves(a);
}
