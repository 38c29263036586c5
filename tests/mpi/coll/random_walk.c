/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A random walk through the collectives that all ranks draw from one seed:
 * every operation in its blocking, non-blocking, persistent and large-count
 * form, on communicators that come and go, with types that differ from rank to
 * rank, several at a time, and messages between them. What must be in every
 * byte of every buffer afterwards is computed from the seed alone.
 *
 * Arguments: seed, steps, most bytes that one operation moves in all.
 */
#include "random_walk/random_walk.h"

struct walk walk;
MPI_Datatype pair_type;
MPI_Datatype square_type;

const char *const kind_names[] = {"barrier",
                                  "bcast",
                                  "gather",
                                  "gatherv",
                                  "scatter",
                                  "scatterv",
                                  "allgather",
                                  "allgatherv",
                                  "alltoall",
                                  "alltoallv",
                                  "alltoallw",
                                  "reduce",
                                  "allreduce",
                                  "reduce_scatter_block",
                                  "reduce_scatter",
                                  "scan",
                                  "exscan",
                                  "neighbor_allgather",
                                  "neighbor_allgatherv",
                                  "neighbor_alltoall",
                                  "neighbor_alltoallv",
                                  "neighbor_alltoallw"};

const char *const shape_names[] = {"world",    "dup",      "idup",    "split",
                                   "reversed", "node",     "leaders", "subset",
                                   "inter",    "merged",   "cart",    "graph",
                                   "dist",     "adjacent", "self"};

uint64_t walk_draw(uint64_t step, int what, int a, int b)
{
    return check_mix(
               check_mix(walk.seed * 1000003 + step, (uint64_t)what * 7919 + 1),
               (uint64_t)a * 65537 + (uint64_t)b) >>
           8;
}

bool walk_chance(uint64_t step, int what, int a, int percent)
{
    return (int)(walk_draw(step, what, a, 0) % 100) < percent;
}

/* ---- completion ---- */

static void compare(struct act *a, const struct side *s, const char *which)
{
    size_t i = 0;

    if (s->mem == NULL || memcmp(s->mem, s->want, s->len) == 0)
        return;
    while (s->mem[i] == s->want[i])
        i++;
    CHECK(false,
          "step %llu: %s (%s form %d big %d in place %d op %d) rank %d of %d "
          "root %d: %s buffer is wrong at byte %ld of %zu (layouts %d items %d "
          "extent %ld count %d base %ld) is %02x want %02x",
          (unsigned long long)a->id, kind_names[a->kind], shape_names[a->shape],
          (int)a->form, a->is_big, a->in_place, a->op.class, a->rank, a->size,
          a->root, which, (long)i - GUARD, s->len, s->layouts,
          s->layout[0].items, s->layout[0].extent, s->counts[0], a->base.size,
          s->mem[i], s->want[i]);
}

/* What a call may change in the receive buffer besides its result, and which of
 * two equal results it gives, is not held against it. */
static void forgive(struct act *a)
{
    struct side *r = &a->recv;

    if (a->in_place &&
        (a->kind == REDUCE_SCATTER || a->kind == REDUCE_SCATTER_BLOCK))
        for (long k = r->block[1].n; k < r->block[0].n; k++) {
            unsigned char *at = walk_item_at(r, r->buf, 0, k);
            memcpy(at + (r->want - r->mem), at, (size_t)a->base.pitch);
        }
    if (walk_is_reduction(a->kind) && a->op.class == PAIR && r->blocks)
        for (long k = 0; k < r->block[1].n; k++) {
            unsigned char *at = walk_item_at(r, r->buf, 0, k);
            unsigned char *want = at + (r->want - r->mem);
            struct loc x;
            walk_pair_get(a->base.type, want, &x);
            memcpy(want, at, (size_t)a->base.pitch);
            walk_pair_put(a->base.type, want, &x);
        }
    if (walk_is_reduction(a->kind) && a->op.class == COMPLEX && r->blocks)
        for (long k = 0; k < 2 * r->block[1].n; k++) {
            /* one zero is as good as the other */
            ((double *)(void *)r->buf)[k] += 0;
            ((double *)(void *)(r->buf + (r->want - r->mem)))[k] += 0;
        }
    if (a->kind == EXSCAN && a->rank == 0)
        memcpy(r->want, r->mem, r->len);
}

static void message_check(struct act *a, const MPI_Status *status);

static void settle(struct act *a, const MPI_Status *status)
{
    a->is_active = false;
    if (a->is_message) {
        message_check(a, status);
        return;
    }
    if (a->kind == BARRIER)
        return;
    forgive(a);
    compare(a, &a->send, "send");
    compare(a, &a->recv, "receive");
}

void walk_act_free(struct act *a)
{
    if (a->is_message) {
        free(a->recv.mem);
    } else if (a->kind != BARRIER) {
        walk_side_fini(&a->send);
        walk_side_fini(&a->recv);
        if (a->op.is_user && a->op.op != MPI_OP_NULL)
            MPI_Op_free(&a->op.op);
    }
    free(a);
}

/* Pending operation i has been completed by a call of MPI's. */
static void take_out(int i, const MPI_Status *status)
{
    struct act *a = walk.pending[i];

    walk.pending[i] = walk.pending[--walk.pendings];
    settle(a, status);
    if (a->form != PERSISTENT)
        walk_act_free(a);
}

static void take_out_many(int n, const int *which, const MPI_Status *statuses)
{
    for (int i = walk.pendings - 1; i >= 0; i--)
        for (int j = 0; j < n; j++)
            if (which[j] == i) {
                take_out(i, &statuses[j]);
                break;
            }
}

/* Say which of the operations have failed, and end the job. */
static void report(int n, const int *which, const MPI_Status *statuses)
{
    for (int j = 0; j < n; j++) {
        const struct act *a = walk.pending[which[j]];
        char words[MPI_MAX_ERROR_STRING];
        int len;

        if (statuses[j].MPI_ERROR == MPI_SUCCESS)
            continue;
        MPI_Error_string(statuses[j].MPI_ERROR, words, &len);
        CHECK(false, "step %llu: %s on %s: %s", (unsigned long long)a->id,
              a->is_message ? "a message" : kind_names[a->kind],
              shape_names[a->shape], words);
    }
    MPI_Abort(MPI_COMM_WORLD, 3);
}

static void complete_some(uint64_t r)
{
    int rc = 0;
    MPI_Request requests[PENDING_MAX];
    MPI_Status statuses[PENDING_MAX];
    int which[PENDING_MAX];
    int n = walk.pendings;
    int flag = 0;
    int done = 0;
    int i;

    if (n == 0)
        return;
    for (int j = 0; j < n; j++) {
        requests[j] = walk.pending[j]->request;
        which[j] = j;
    }
    i = (int)(r / 8 % (uint64_t)n);
    switch (r % 8) {
    case 0:
        MPI_Wait(&requests[i], &statuses[0]);
        done = 1;
        which[0] = i;
        break;
    case 1:
        MPI_Test(&requests[i], &flag, &statuses[0]);
        done = flag;
        which[0] = i;
        break;
    case 2:
        MPI_Waitany(n, requests, &which[0], &statuses[0]);
        done = 1;
        break;
    case 3:
        MPI_Testany(n, requests, &which[0], &flag, &statuses[0]);
        done = flag && which[0] != MPI_UNDEFINED;
        break;
    case 4:
        rc = MPI_Waitsome(n, requests, &done, which, statuses);
        break;
    case 5:
        rc = MPI_Testsome(n, requests, &done, which, statuses);
        break;
    case 6:
        rc = MPI_Waitall(n, requests, statuses);
        done = n;
        break;
    default:
        rc = MPI_Testall(n, requests, &flag, statuses);
        done = flag ? n : 0;
        break;
    }
    for (int j = 0; j < n; j++)
        walk.pending[j]->request = requests[j];
    if (rc == MPI_ERR_IN_STATUS)
        report(done > 0 ? done : n, which, statuses);
    take_out_many(done, which, statuses);
}

void walk_complete_one(struct act *a)
{
    for (int i = 0; i < walk.pendings; i++)
        if (walk.pending[i] == a) {
            MPI_Status status;
            MPI_Wait(&a->request, &status);
            take_out(i, &status);
            return;
        }
}

static void pend(struct act *a)
{
    while (walk.pendings == PENDING_MAX)
        complete_some(2);
    a->is_active = true;
    walk.pending[walk.pendings++] = a;
}

/* ---- messages between ---- */

static uint64_t message_word(uint64_t id, int from, long k)
{
    return check_mix(id * 64 + (uint64_t)from, (uint64_t)k);
}

static void message_check(struct act *a, const MPI_Status *status)
{
    uint64_t *words = (uint64_t *)a->recv.mem;
    int n = 0;

    if (!a->is_receive)
        return;
    MPI_Get_count(status, MPI_UINT64_T, &n);
    CHECK(n >= 2 && words[0] == (uint64_t)status->MPI_SOURCE &&
              words[1] % 1000 == (uint64_t)status->MPI_TAG,
          "a message is not what was sent: %d words", n);
    for (long k = 2; k < n; k++)
        if (words[k] != message_word(words[1], status->MPI_SOURCE, k)) {
            CHECK(false, "a message has other data");
            break;
        }
}

static void message(uint64_t step)
{
    int from = (int)(walk_draw(step, 40, 0, 0) % (uint64_t)check_size());
    int to = (int)(walk_draw(step, 41, 0, 0) % (uint64_t)check_size());
    static const int sizes[] = {2, 3, 10, 600, 3000, 9000};
    int n = sizes[walk_draw(step, 42, 0, 0) % 6];

    for (int side = 0; side < 2; side++) {
        struct act *a;
        if (check_rank() != (side ? to : from))
            continue;
        a = check_alloc(sizeof(*a));
        a->is_message = true;
        a->id = step;
        a->is_receive = side;
        a->recv.mem = check_alloc(9000 * 8);
        if (side) {
            /* not both: a later message must not take this one's place */
            MPI_Irecv(a->recv.mem, 9000, MPI_UINT64_T,
                      step % 2 ? MPI_ANY_SOURCE : from,
                      step % 2 ? (int)(step % 1000) : MPI_ANY_TAG,
                      MPI_COMM_WORLD, &a->request);
        } else {
            uint64_t *words = (uint64_t *)a->recv.mem;
            words[0] = (uint64_t)from;
            words[1] = step;
            for (long k = 2; k < n; k++)
                words[k] = message_word(step, from, k);
            MPI_Isend(words, n, MPI_UINT64_T, to, (int)(step % 1000),
                      MPI_COMM_WORLD, &a->request);
        }
        a->form = NONBLOCKING;
        pend(a);
    }
}

/* ---- the walk ---- */

static void begin(struct slot *s, uint64_t step)
{
    struct act *a = walk_describe(s, step);
    int k = (int)(walk_draw(step, 70, 0, 0) % KEPT_MAX);
    int rc;

    if (a->kind == BARRIER)
        rc = walk_call_barrier(a);
    else if (walk_is_reduction(a->kind))
        rc = walk_call_reduction(a);
    else if (a->kind == ALLTOALLW || a->kind == NEIGHBOR_ALLTOALLW)
        rc = walk_call_w(a);
    else
        rc = walk_call_move(a);
    CHECK(rc == MPI_SUCCESS, "step %llu: %s gave %d", (unsigned long long)step,
          kind_names[a->kind], rc);
    if (a->form != BLOCKING && a->kind != BARRIER &&
        walk_chance(step, 71, check_rank(), 50)) {
        if (a->op.is_user) {
            MPI_Op_free(&a->op.op);
        } else if (!walk_is_reduction(a->kind)) {
            walk_forget_types(&a->send);
            walk_forget_types(&a->recv);
        }
    }
    if (a->form == BLOCKING) {
        settle(a, NULL);
        walk_act_free(a);
        return;
    }
    if (a->form == PERSISTENT) {
        if (s->kept[k] != NULL) {
            walk_complete_one(s->kept[k]);
            MPI_Request_free(&s->kept[k]->request);
            walk_act_free(s->kept[k]);
        }
        s->kept[k] = a;
        MPI_Start(&a->request);
    }
    pend(a);
}

static void again(struct slot *s, uint64_t step)
{
    for (int k = 0; k < KEPT_MAX; k++) {
        struct act *a = s->kept[k];
        if (a == NULL)
            continue;
        walk_complete_one(a);
        if (a->kind != BARRIER)
            walk_fill(a, step * 8 + (uint64_t)k);
        MPI_Start(&a->request);
        pend(a);
    }
}

static void be_late(uint64_t step)
{
    volatile double x = 1;
    long n = walk_chance(step, 80, check_rank(), 10)
                 ? (long)(walk_draw(step, 81, check_rank(), 0) % 300000)
                 : 0;

    while (n-- > 0)
        x = x * 1.0000001 + 1e-9;
}

static void one_step(uint64_t step)
{
    struct slot *s = &walk.slot[walk_draw(step, 1, 0, 0) % SLOTS];
    uint64_t r = walk_draw(step, 0, 0, 0) % 100;

    be_late(step);
    if (r < 6) {
        walk_slot_close(s);
        walk_slot_open(s, step,
                       (enum shape)(walk_draw(step, 82, 0, 0) % SHAPES));
    } else if (r < 20) {
        message(step);
    } else if (r < 28) {
        if (s->is_member)
            again(s, step);
    } else if (s->is_member) {
        begin(s, step);
    }
    if (walk_chance(step, 83, check_rank(), 30))
        complete_some(walk_draw(step, 84, check_rank(), 0));
}

int main(int argc, char **argv)
{
    long steps;

    check_start(&argc, &argv);
    walk.seed = (uint64_t)check_arg(argc, argv, 1, 1);
    steps = check_arg(argc, argv, 2, 300);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    walk.most = check_arg(argc, argv, 3, 1 << 20);
    MPI_Type_contiguous(2, MPI_UNSIGNED, &pair_type);
    MPI_Type_commit(&pair_type);
    MPI_Type_contiguous(4, MPI_UNSIGNED, &square_type);
    MPI_Type_commit(&square_type);
    walk.node = check_nodes();
    for (int i = 0; i < SLOTS; i++)
        walk_slot_open(&walk.slot[i], (uint64_t)(1000000 + i),
                       i < 2
                           ? (enum shape)i
                           : (enum shape)(walk_draw(900000, i, 0, 0) % SHAPES));
    for (walk.step = 1; walk.step <= (uint64_t)steps; walk.step++)
        one_step(walk.step);
    while (walk.pendings > 0)
        complete_some(0);
    for (int i = 0; i < SLOTS; i++)
        walk_slot_close(&walk.slot[i]);
    MPI_Type_free(&pair_type);
    MPI_Type_free(&square_type);
    free(walk.node);
    return check_finish();
}
