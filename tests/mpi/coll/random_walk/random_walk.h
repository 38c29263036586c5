/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the parts of the walk through the collectives share: operations, the
 * types and buffers of one, and communicators. See ../random_walk.c.
 */
#ifndef CHEMPI_TESTS_MPI_MINGLE_RANDOM_WALK_H
#define CHEMPI_TESTS_MPI_MINGLE_RANDOM_WALK_H

#include "../../check.h"

#define RANKS_MAX 64
#define SLOTS 7
#define PENDING_MAX 24
#define KEPT_MAX 3
#define GUARD 64
#define EVERYBODY 0xfff
#define ITEMS_MAX 6

enum kind {
    BARRIER,
    BCAST,
    GATHER,
    GATHERV,
    SCATTER,
    SCATTERV,
    ALLGATHER,
    ALLGATHERV,
    ALLTOALL,
    ALLTOALLV,
    ALLTOALLW,
    REDUCE,
    ALLREDUCE,
    REDUCE_SCATTER_BLOCK,
    REDUCE_SCATTER,
    SCAN,
    EXSCAN,
    NEIGHBOR_ALLGATHER,
    NEIGHBOR_ALLGATHERV,
    NEIGHBOR_ALLTOALL,
    NEIGHBOR_ALLTOALLV,
    NEIGHBOR_ALLTOALLW,
    KINDS
};

enum form { BLOCKING, NONBLOCKING, PERSISTENT };
enum shape {
    WORLD,
    DUP,
    IDUP,
    SPLIT,
    REVERSED,
    NODE,
    LEADERS,
    SUBSET,
    INTER,
    MERGED,
    CART,
    GRAPH,
    DIST,
    ADJACENT,
    SELF,
    SHAPES
};

struct base {
    MPI_Datatype type;
    long size;  /* bytes of data, from the start on */
    long pitch; /* extent */
};

struct layout {
    MPI_Datatype type;
    int items;
    long at[ITEMS_MAX];
    long extent;
    long low; /* true bounds of one element */
    long high;
    bool is_made;
};

struct block {
    uint64_t key;
    long n; /* items */
    bool is_there;
};

struct side {
    int blocks;
    int layouts; /* 1, or one for each block */
    struct block *block;
    struct layout *layout;
    int *counts;
    int *displs;
    MPI_Count *big_counts;
    MPI_Aint *big_displs;
    MPI_Datatype *types;
    unsigned char *mem;
    unsigned char *want;
    size_t len;
    unsigned char *buf;
};

struct slot {
    enum shape shape;
    MPI_Comm comm;
    bool is_member;
    bool is_inter;
    bool is_second; /* of the two groups */
    int rank;
    int size;
    int peers; /* whose data comes: the group, or the remote one */
    int member[RANKS_MAX];
    int peer[RANKS_MAX];
    int ins;
    int outs;
    int in[4 * RANKS_MAX];
    int out[4 * RANKS_MAX];
    int in_edge[4 * RANKS_MAX];
    int out_edge[4 * RANKS_MAX];
    struct act *kept[KEPT_MAX];
};

struct op_case {
    MPI_Op op;
    struct base base;
    int class;
    bool is_user;
    bool commutes;
};

struct act {
    uint64_t id;   /* of the step */
    uint64_t salt; /* of the data */
    enum kind kind;
    enum form form;
    bool is_big;
    bool in_place;
    bool is_void; /* takes no part in the data: MPI_PROC_NULL */
    bool is_active;
    enum shape shape;
    int rank;
    int size;
    int root;     /* as in the call */
    bool is_root; /* or of a kind without a root */
    struct base base;
    struct side send;
    struct side recv;
    /* reductions */
    struct op_case op;
    int voices;
    int voice[RANKS_MAX + 1];
    long skip; /* items of the vector before what is for this rank */
    MPI_Comm comm;
    MPI_Request request;
    /* messages */
    bool is_receive;
    bool is_message;
};

enum class { SIGNED, UNSIGNED_, REAL, COMPLEX, PAIR, AFFINE, MATRIX, ADD };

struct loc {
    double value;
    int index;
};

struct walk {
    uint64_t seed;
    uint64_t step;
    long most; /* bytes */
    int *node; /* of each rank */
    struct slot slot[SLOTS];
    struct act *pending[PENDING_MAX];
    int pendings;
    struct layout *living[64];
    int livings;
};
extern struct walk walk;

extern MPI_Datatype pair_type;   /* two unsigned */
extern MPI_Datatype square_type; /* four */
extern const char *const kind_names[];
extern const char *const shape_names[];

/* ---- in data.c ---- */

/* A type that user-defined operations may be called with. */
void walk_live(struct layout *l);
void walk_bounds(struct layout *l, const struct base *base);
/* A type for blocks whose numbers of items are multiples of `step`, in a
 * buffer of so many elements; huge: its extent may be. */
void walk_make_layout(struct layout *l, const struct base *base, uint64_t r,
                      long step, long elements, bool huge);
void walk_forget_types(struct side *s);
void walk_side_init(struct side *s, int blocks);
void walk_side_fini(struct side *s);
struct layout *walk_layout_of(const struct side *s, int i);
/* Item k of block i in a copy of the buffer. */
unsigned char *walk_item_at(const struct side *s, unsigned char *buf, int i,
                            long k);
/* Where the blocks lie; then the memory for them, full of other things. */
void walk_place(struct side *s, bool is_v, uint64_t r);
/* Types and places of all blocks of a side. */
void walk_furnish(struct act *a, struct side *s, bool is_v, bool is_w,
                  long step, uint64_t r);
/* What is to be in a block; now: it is there already. */
void walk_write_block(const struct act *a, struct side *s, int i, uint64_t key,
                      bool now);

/* ---- in reduction.c ---- */

void walk_choose_op(struct op_case *c, uint64_t r);
void walk_pair_get(MPI_Datatype t, const void *from, struct loc *to);
void walk_pair_put(MPI_Datatype t, void *at, const struct loc *from);
bool walk_is_reduction(enum kind k);
/* (Re)fill what goes out, and say what is to come in. */
void walk_fill(struct act *a, uint64_t salt);

/* ---- in plan.c ---- */

/* The operation of a step, ready to be called. */
struct act *walk_describe(struct slot *s, uint64_t step);

/* ---- in call.c ---- */

int walk_call_move(struct act *a);
int walk_call_w(struct act *a);
int walk_call_reduction(struct act *a);
int walk_call_barrier(struct act *a);

/* ---- in comms.c ---- */

/* All ranks of the world, whoever is a member then. */
void walk_slot_open(struct slot *s, uint64_t step, enum shape shape);
void walk_slot_close(struct slot *s);

/* ---- in random_walk.c ---- */

/* The same on all ranks. */
uint64_t walk_draw(uint64_t step, int what, int a, int b);
bool walk_chance(uint64_t step, int what, int a, int percent);
void walk_act_free(struct act *a);
void walk_complete_one(struct act *a);

#endif
