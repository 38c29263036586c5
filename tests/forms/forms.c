/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every function that has a large-count form is called in both forms with the
 * same arguments, drawn at random, and with each argument spoilt in turn. Both
 * must answer alike: the same return code, results, data and datatypes. Any
 * number of ranks.
 */
#include "forms.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calls.h"

#define FUNCTIONS ((int)(sizeof(functions) / sizeof(functions[0])))
#define ROUNDS 6
#define WRONG_RANK 4711
#define WRONG_TAG (-77)

static struct {
    int rank;
    int size;
    int left;
    int right;
    int failures;
    uint64_t random; /* the same at all ranks */
    MPI_Comm ring;
    MPI_Datatype gaps;
    MPI_Session session;
} test;

/* Source, and what the two forms made of it. */
static unsigned char source[BUFFER_BYTES];
static unsigned char result[2][BUFFER_BYTES];

static int below(int n)
{
    test.random = test.random * UINT64_C(6364136223846793005) + 1442695041;
    return (int)((test.random >> 33) % (uint64_t)n);
}

static void fail(const struct function *f, const char *what, long narrow,
                 long wide)
{
    if (test.failures++ < 20)
        fprintf(stderr, "rank %d: MPI_%s: %s: %ld, and %ld in MPI_%s_c\n",
                test.rank, f->name, what, narrow, wide, f->name);
}

static void set(struct list *list, int i, MPI_Count value)
{
    list->i[i] = (int)value;
    list->c[i] = value;
    list->a[i] = (MPI_Aint)value;
}

/* ---- arguments ---- */

static bool has(const struct function *f, const char *part)
{
    return strstr(f->name, part) != NULL;
}

static MPI_Datatype draw_type(void)
{
    const MPI_Datatype types[] = {MPI_INT, MPI_BYTE, MPI_DOUBLE, test.gaps};

    return types[below(4)];
}

/* Counts and places for blocks that differ from rank to rank. */
static void draw_lists(const struct function *f, struct args *a, int me,
                       int size)
{
    bool is_neighbor = f->family == FAMILY_NEIGHBOR;
    bool is_alltoall = has(f, "lltoall");
    bool is_w = has(f, "lltoallw");
    MPI_Count base = a->count;
    MPI_Aint lb;
    MPI_Aint extent;

    MPI_Type_get_extent(a->datatype, &lb, &extent);
    for (int i = 0; i < LIST_MAX; i++) {
        MPI_Count n = is_neighbor   ? base
                      : is_alltoall ? base + (me + i) % 3
                                    : base + i;
        MPI_Count at = i % 8 * (base + LIST_MAX) * (is_w ? extent : 1);

        set(&a->sendcounts, i, n);
        set(&a->recvcounts, i, n);
        set(&a->sdispls, i, at);
        set(&a->rdispls, i, at);
        set(&a->displs, i, at);
        a->sendtypes[i] = a->recvtypes[i] = a->datatype;
    }
    if (has(f, "atherv") && !is_neighbor)
        a->sendcount = base + me;
    if (has(f, "catterv"))
        a->recvcount = base + me;
    if (has(f, "educe_scatter_block"))
        a->recvcount = base;
    (void)size;
}

/* Small constructors: 3 blocks of up to 3 elements. */
static void draw_recipe(struct args *a)
{
    const int distribs[] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC};

    a->blocklength = 1 + below(3);
    a->stride = 16 + below(4);
    a->ndims = 2;
    a->size = 4; /* of a process grid */
    a->rank = below(4);
    a->order = below(2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
    for (int i = 0; i < LIST_MAX; i++) {
        set(&a->array_of_blocklengths, i, 1 + below(3));
        set(&a->array_of_displacements, i, i * (32 + below(3)));
        set(&a->array_of_sizes, i, 4 + below(3));
        set(&a->array_of_subsizes, i, 1 + below(3));
        set(&a->array_of_starts, i, below(2));
        set(&a->array_of_gsizes, i, 4 + below(4));
        set(&a->array_of_distribs, i, distribs[below(2)]);
        set(&a->array_of_dargs, i, MPI_DISTRIBUTE_DFLT_DARG);
        set(&a->array_of_psizes, i, 2);
        a->array_of_types[i] = below(2) ? MPI_INT : MPI_CHAR;
    }
    a->count = 1 + below(3);
}

static void draw(const struct function *f, struct args *a, int me, int size)
{
    const MPI_Op ops[] = {MPI_SUM, MPI_MAX, MPI_BXOR};

    memset(a, 0, sizeof(*a));
    a->op = ops[below(3)];
    a->datatype = has(f, "educe") || has(f, "can") ? MPI_INT : draw_type();
    a->sendtype = a->recvtype = a->oldtype = a->datatype;
    a->count = 1 + below(20);
    a->sendcount = a->recvcount = a->incount = a->outcount = a->count;
    a->partitions = 1 + below(3);
    a->sendtag = a->recvtag = a->tag = below(100);
    a->root = below(size);
    a->info = MPI_INFO_NULL;
    a->session = test.session;
    draw_lists(f, a, me, size);
    if (f->family == FAMILY_TYPE)
        draw_recipe(a);
    if (has(f, "resized")) {
        a->lb = -8;
        a->extent = 64;
    }
}

static void point(struct args *a, unsigned char *target)
{
    memset(target, 0, BUFFER_BYTES);
    a->sendbuf = a->inbuf = source;
    a->recvbuf = a->outbuf = a->inoutbuf = target;
}

/* ---- completion ---- */

static int complete(const struct function *f, struct args *a, int rc,
                    bool is_partitioned)
{
    if (rc != MPI_SUCCESS || f->start == START_NONE)
        return rc;
    if (f->start == START_LATER)
        rc = MPI_Start(a->request);
    for (int i = 0; is_partitioned && i < a->partitions; i++)
        MPI_Pready(i, *a->request);
    if (rc == MPI_SUCCESS)
        rc = MPI_Wait(a->request, a->status);
    if (f->start == START_LATER)
        MPI_Request_free(a->request);
    return rc;
}

static MPI_Count received(const MPI_Status *status, MPI_Datatype type)
{
    MPI_Count count = -1;

    MPI_Get_count_c(status, type, &count);
    return count;
}

/* ---- a right call of each family; returns its code ---- */

static int call_send(const struct function *f, struct args *a, bool is_wide,
                     unsigned char *target)
{
    MPI_Request incoming;
    int rc;

    a->buf = source;
    a->dest = test.right;
    MPI_Irecv(target, (int)a->count, a->datatype, test.left, (int)a->tag,
              a->comm, &incoming);
    MPI_Barrier(a->comm); /* ready mode wants the receive posted */
    rc = complete(f, a, f->call(is_wide, a), false);
    if (rc != MPI_SUCCESS)
        MPI_Cancel(&incoming);
    MPI_Wait(&incoming, MPI_STATUS_IGNORE);
    return rc;
}

static int call_recv(const struct function *f, struct args *a, bool is_wide,
                     unsigned char *target)
{
    MPI_Request outgoing;
    MPI_Message message = MPI_MESSAGE_NULL;
    int rc;

    a->buf = target;
    a->source = test.left;
    a->message = &message;
    MPI_Isend(source, (int)a->count, a->datatype, test.right, (int)a->tag,
              a->comm, &outgoing);
    if (f->family == FAMILY_MRECV)
        MPI_Mprobe(test.left, (int)a->tag, a->comm, &message,
                   MPI_STATUS_IGNORE);
    rc = complete(f, a, f->call(is_wide, a), false);
    MPI_Wait(&outgoing, MPI_STATUS_IGNORE);
    a->size = received(a->status, a->datatype);
    return rc;
}

static int call_sendrecv(const struct function *f, struct args *a, bool is_wide,
                         unsigned char *target)
{
    int rc;

    a->buf = target;
    a->dest = test.right;
    a->source = test.left;
    if (has(f, "replace"))
        memcpy(target, source, BUFFER_BYTES);
    rc = complete(f, a, f->call(is_wide, a), false);
    a->size = received(a->status, a->datatype);
    return rc;
}

static int call_partitioned(const struct function *f, struct args *a,
                            bool is_wide, unsigned char *target)
{
    bool is_send = has(f, "Psend");
    MPI_Request other;
    int rc;

    a->buf = is_send ? source : target;
    a->dest = is_send ? test.right : test.left;
    if (is_send)
        MPI_Precv_init(target, (int)a->partitions, (int)a->count, a->datatype,
                       test.left, (int)a->tag, a->comm, MPI_INFO_NULL, &other);
    else
        MPI_Psend_init(source, (int)a->partitions, (int)a->count, a->datatype,
                       test.right, (int)a->tag, a->comm, MPI_INFO_NULL, &other);
    MPI_Start(&other);
    for (int i = 0; !is_send && i < a->partitions; i++)
        MPI_Pready(i, other);
    rc = complete(f, a, f->call(is_wide, a), is_send);
    MPI_Wait(&other, MPI_STATUS_IGNORE);
    MPI_Request_free(&other);
    return rc;
}

/* Every buffer that the local functions read or write is there. */
static int call_local(const struct function *f, struct args *a, bool is_wide)
{
    MPI_Status status;

    memset(&status, 0, sizeof(status));
    a->status = &status;
    a->insize = a->outsize = BUFFER_BYTES;
    if (has(f, "Get_"))
        MPI_Status_set_elements_c(&status, MPI_INT, 12);
    if (has(f, "Status_set")) {
        int rc = f->call(is_wide, a);

        a->size = received(&status, a->datatype);
        return rc;
    }
    return f->call(is_wide, a);
}

static int call_right(const struct function *f, struct args *a, bool is_wide)
{
    unsigned char *target = result[is_wide];

    point(a, target);
    switch (f->family) {
    case FAMILY_SEND:
        return call_send(f, a, is_wide, target);
    case FAMILY_RECV:
    case FAMILY_MRECV:
        return call_recv(f, a, is_wide, target);
    case FAMILY_SENDRECV:
        return call_sendrecv(f, a, is_wide, target);
    case FAMILY_PARTITIONED:
        return call_partitioned(f, a, is_wide, target);
    case FAMILY_NEIGHBOR:
        a->comm = test.ring;
        return complete(f, a, f->call(is_wide, a), false);
    case FAMILY_COLLECTIVE:
        a->buffer = target;
        if (has(f, "cast"))
            memcpy(target, source, BUFFER_BYTES);
        return complete(f, a, f->call(is_wide, a), false);
    case FAMILY_LOCAL:
        return call_local(f, a, is_wide);
    case FAMILY_TYPE:
    case FAMILY_BUFFER:
    case FAMILY_HAND:
        break;
    }
    return f->call(is_wide, a);
}

/* ---- comparing ---- */

static void compare_numbers(const struct function *f, const struct args *n,
                            const struct args *w)
{
    const struct {
        const char *what;
        MPI_Count narrow;
        MPI_Count wide;
    } pairs[] = {
        {"size", n->size, w->size},
        {"count", n->count, w->count},
        {"position", n->position, w->position},
        {"lower bound", n->lb, w->lb},
        {"extent", n->extent, w->extent},
        {"true lower bound", n->true_lb, w->true_lb},
        {"true extent", n->true_extent, w->true_extent},
    };

    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
        if (pairs[i].narrow != pairs[i].wide)
            fail(f, pairs[i].what, (long)pairs[i].narrow, (long)pairs[i].wide);
}

static void compare_types(const struct function *f, MPI_Datatype n,
                          MPI_Datatype w)
{
    static unsigned char packed[2][BUFFER_BYTES];
    MPI_Aint bounds[2][4];
    int size[2];
    int position[2] = {0, 0};
    MPI_Datatype types[2] = {n, w};

    if (!hand_is_alike(n, w))
        fail(f, "envelope and contents", 0, 0);
    memset(packed, 0, sizeof(packed));
    for (int i = 0; i < 2; i++) {
        MPI_Type_commit(&types[i]);
        MPI_Type_get_extent(types[i], &bounds[i][0], &bounds[i][1]);
        MPI_Type_get_true_extent(types[i], &bounds[i][2], &bounds[i][3]);
        MPI_Type_size(types[i], &size[i]);
        MPI_Pack(source + 64, 2, types[i], packed[i], BUFFER_BYTES,
                 &position[i], MPI_COMM_SELF);
    }
    if (size[0] != size[1])
        fail(f, "size", size[0], size[1]);
    if (memcmp(bounds[0], bounds[1], sizeof(bounds[0])) != 0)
        fail(f, "bounds", (long)bounds[0][1], (long)bounds[1][1]);
    if (position[0] != 2 * size[0] || position[0] != position[1] ||
        memcmp(packed[0], packed[1], BUFFER_BYTES) != 0)
        fail(f, "packed data", position[0], position[1]);
}

/* ---- right arguments ---- */

static void try_right(const struct function *f)
{
    struct args args[2];
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Datatype made[2] = {MPI_DATATYPE_NULL, MPI_DATATYPE_NULL};
    MPI_Status status;
    int rc[2];

    draw(f, &args[0], test.rank, test.size);
    args[0].comm = MPI_COMM_WORLD;
    args[0].request = &request;
    args[0].status = &status;
    args[1] = args[0];
    for (int i = 0; i < 2; i++) {
        args[i].newtype = &made[i];
        rc[i] = call_right(f, &args[i], i);
    }
    if (rc[0] != MPI_SUCCESS || rc[1] != MPI_SUCCESS) {
        fail(f, "return code", rc[0], rc[1]);
        return;
    }
    compare_numbers(f, &args[0], &args[1]);
    if (memcmp(result[0], result[1], BUFFER_BYTES) != 0)
        fail(f, "data", 0, 0);
    if (f->family == FAMILY_TYPE) {
        compare_types(f, made[0], made[1]);
        MPI_Type_free(&made[0]);
        MPI_Type_free(&made[1]);
    }
}

/* ---- wrong arguments ---- */

static void spoil_one(const struct spoil *s, struct args *a)
{
    void *at = (char *)a + s->offset;

    switch (s->fault) {
    case FAULT_NONE:
        break;
    case FAULT_COUNT:
        *(MPI_Count *)at = -1;
        break;
    case FAULT_COUNTS:
        set(at, 0, -1);
        break;
    case FAULT_RANK:
        *(MPI_Count *)at = WRONG_RANK;
        break;
    case FAULT_TAG:
        *(MPI_Count *)at = WRONG_TAG;
        break;
    case FAULT_TYPE:
    case FAULT_TYPES:
        *(MPI_Datatype *)at = MPI_DATATYPE_NULL;
        break;
    case FAULT_COMM:
        *(MPI_Comm *)at = MPI_COMM_NULL;
        break;
    case FAULT_OP:
        *(MPI_Op *)at = MPI_OP_NULL;
        break;
    case FAULT_OUT:
    case FAULT_BUFFER:
        *(void **)at = NULL;
        break;
    }
}

/* Alone, so that no rank waits for one that found its arguments wrong. */
static int call_wrong(const struct function *f, const struct spoil *s,
                      struct args *a, bool is_wide)
{
    MPI_Message message = MPI_MESSAGE_NO_PROC;
    MPI_Datatype made = MPI_DATATYPE_NULL;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Status status;
    int rc;

    memset(&status, 0, sizeof(status));
    point(a, result[is_wide]);
    a->buf = a->buffer = result[is_wide];
    a->insize = a->outsize = BUFFER_BYTES;
    a->comm = MPI_COMM_SELF;
    a->message = &message;
    a->newtype = &made;
    a->request = &request;
    a->status = &status;
    spoil_one(s, a);
    rc = f->call(is_wide, a);
    return rc;
}

static void try_wrong(const struct function *f, const struct spoil *s)
{
    struct args args[2];
    int class[2];

    draw(f, &args[0], 0, 1);
    if (s->fault == FAULT_BUFFER) /* derived types may hold addresses */
        args[0].datatype = args[0].sendtype = args[0].recvtype = MPI_INT;
    args[1] = args[0];
    for (int i = 0; i < 2; i++)
        MPI_Error_class(call_wrong(f, s, &args[i], i), &class[i]);
    if (class[0] == class[1] && class[0] != MPI_SUCCESS &&
        class[0] != MPI_ERR_UNSUPPORTED_OPERATION)
        return;
    fail(f, s->param, class[0], class[1]);
}

/* ---- buffers: whatever form attaches, either detaches ---- */

static const struct function *find_detach(const struct function *attach)
{
    char name[64];

    snprintf(name, sizeof(name), "%s", attach->name);
    memcpy(strstr(name, "attach"), "detach", 6);
    for (int i = 0; i < FUNCTIONS; i++)
        if (strcmp(functions[i].name, name) == 0)
            return &functions[i];
    return NULL;
}

static void try_buffers(const struct function *f)
{
    static char memory[1 << 16];
    const struct function *detach = find_detach(f);
    struct args a = {.comm = MPI_COMM_WORLD, .session = test.session};

    for (int way = 0; way < 4 && detach; way++) {
        int in;
        int out;

        a.buffer = memory;
        a.size = sizeof(memory);
        in = f->call(way & 1, &a);
        a.buffer = NULL;
        a.size = -1;
        out = detach->call(way >> 1, &a);
        if (in != MPI_SUCCESS || out != MPI_SUCCESS)
            fail(f, "return codes", in, out);
        if (a.buffer != memory || a.size != (MPI_Count)sizeof(memory))
            fail(detach, "what was attached", 0, (long)a.size);
    }
    if (!detach)
        fail(f, "has nothing to detach", 0, 0);
}

/* ---- all ---- */

static void try_function(const struct function *f)
{
    int rounds = f->family == FAMILY_HAND ? 1 : ROUNDS;

    if (f->family == FAMILY_BUFFER) {
        if (has(f, "attach"))
            try_buffers(f);
        return;
    }
    for (int i = 0; i < rounds; i++)
        try_right(f);
    for (const struct spoil *s = f->spoils; s->fault != FAULT_NONE; s++)
        try_wrong(f, s);
}

static void start(int *argc, char ***argv)
{
    const int periodic = 1;

    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &test.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &test.size);
    test.left = (test.rank + test.size - 1) % test.size;
    test.right = (test.rank + 1) % test.size;
    test.random = 20;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &test.session);
    MPI_Cart_create(MPI_COMM_WORLD, 1, &test.size, &periodic, 0, &test.ring);
    MPI_Comm_set_errhandler(test.ring, MPI_ERRORS_RETURN);
    MPI_Type_vector(2, 1, 2, MPI_INT, &test.gaps);
    MPI_Type_commit(&test.gaps);
    for (int i = 0; i < BUFFER_BYTES; i++)
        source[i] = (unsigned char)(i * 7 + test.rank * 29 + i / 251);
}

int main(int argc, char **argv)
{
    static char buffered[1 << 17];
    int failures = 0;

    start(&argc, &argv);
    for (int i = 0; i < FUNCTIONS; i++)
        if (functions[i].family == FAMILY_BUFFER)
            try_function(&functions[i]);
    MPI_Buffer_attach(buffered, sizeof(buffered));
    for (int i = 0; i < FUNCTIONS; i++)
        if (functions[i].family != FAMILY_BUFFER)
            try_function(&functions[i]);
    MPI_Buffer_detach(&(void *){NULL}, &(int){0});
    MPI_Type_free(&test.gaps);
    MPI_Comm_free(&test.ring);
    MPI_Session_finalize(&test.session);
    MPI_Allreduce(&test.failures, &failures, 1, MPI_INT, MPI_SUM,
                  MPI_COMM_WORLD);
    MPI_Finalize();
    return failures != 0;
}
