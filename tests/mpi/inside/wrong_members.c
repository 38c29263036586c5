/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two jobs of one rank have met, and the one that has connected takes part in
 * collective calls with words that cannot be. The other one's call fails, or is
 * none the worse for it.
 *
 * inside-wrong_members accept|connect FIFO HOW: one of `hows`
 */

#include "libchempi/didl/comm/context_id.h"
#include "libchempi/didl/comm/make/comm_make.h"
#include "libchempi/didl/comm/message.h"
#include "libchempi/didl/datatype/basic_type.h"
#include "libchempi/didl/op/op_loops.h"
#include "libchempi/didl/rma/internal.h"
#include "libchempi/didl/topo/topology.h"
#include "libchempi/didl/transport/lane.h"
#include "tests/mpi/check.h"

enum {
    WILD = 10000000,
    PAIR = 6, /* packed bytes of MPI_SHORT_INT */
    ROUNDS = 20,
    ROUND = 100,           /* more than CHEMPI_MEET_HELD_MAX */
    WINDOW = 64000,        /* 20 rounds are more than CHEMPI_RMA_IN_MAX */
    DESCRIPTION = 9 << 20, /* two are more than another world may tell */
    LONG = 3 << 20         /* blocks; so is one of them */
};

static MPI_Comm inter; /* the two jobs have met .. */
static MPI_Comm both;  /* .. and are merged; the one that lies comes second */

/* ---- the one that lies: the library's messages, with other words --------- */

/* As in MPI_Comm_split: colour, key, rank. */
static const uint32_t lie[3] = {0, 0, WILD};

static void lie_in_split(void)
{
    struct chempi_comm_channel ch =
        chempi_comm_channel(chempi_comm_lookup(both));
    uint32_t all[2][3];
    uint32_t context;

    (void)chempi_comm_allgather(&ch, MPI_SUCCESS, lie, sizeof(lie), all);
    (void)chempi_comm_agree_context(&ch, MPI_SUCCESS, &context);
}

static void lie_to_other_side(void)
{
    struct chempi_comm *comm = chempi_comm_lookup(inter);
    struct chempi_comm_channel ch = chempi_comm_channel(comm);
    uint32_t id = CHEMPI_CONTEXT_ID_OPEN + 1000;
    void *theirs = NULL;
    size_t len;

    ch.inter = NULL;
    (void)chempi_comm_swap_inter(&ch, comm, MPI_SUCCESS, lie, sizeof(lie),
                                 &theirs, &len);
    free(theirs);
    theirs = NULL;
    ch = chempi_comm_channel(comm);
    ch.inter = NULL;
    (void)chempi_comm_swap_inter(&ch, comm, MPI_SUCCESS, &id, sizeof(id),
                                 &theirs, &len);
    free(theirs);
}

/* In MPI_Intercomm_create, whose leader has failed: so has a member that is
 * none. */
static void lie_of_bridge(void)
{
    struct chempi_comm_channel ch =
        chempi_comm_channel(chempi_comm_lookup(both));
    const struct chempi_comm_far far = {.error = MPI_SUCCESS};
    int64_t worst = ((int64_t)MPI_ERR_COMM << 32) + INT32_MAX;
    char heard[520]; /* of both sides' verdicts */
    uint32_t context;
    void *theirs = NULL;
    size_t len;

    ch.is_open = true;
    (void)chempi_comm_agree_context(&ch, MPI_SUCCESS, &context);
    (void)chempi_comm_agree_context(&ch, MPI_SUCCESS, &context);
    (void)chempi_comm_swap(&ch, &far, MPI_SUCCESS, NULL, 0, &theirs, &len);
    free(theirs);
    (void)chempi_comm_max(&ch, MPI_SUCCESS, &worst, 1);
    (void)chempi_comm_bcast(&ch, MPI_SUCCESS, heard, sizeof(heard));
}

/* As in MPI_Dist_graph_create, by the user's calls; between these members say
 * that all is well. */
static void send_edges(int count)
{
    struct chempi_comm *comm = chempi_comm_lookup(both);
    struct chempi_comm_channel ch;
    uint32_t context;
    const int edge[3] = {1, WILD, 1};
    int counts[2] = {count, 0};
    int none[2];
    const int displs[2] = {0, 0};

    MPI_Comm_set_errhandler(both, MPI_ERRORS_RETURN);
    (void)chempi_comm_vote(comm, MPI_SUCCESS);
    MPI_Alltoall(counts, 1, MPI_INT, none, 1, MPI_INT, both);
    if (chempi_comm_vote(comm, MPI_SUCCESS) == MPI_SUCCESS)
        MPI_Alltoallv(edge, counts, displs, MPI_INT, NULL, (int[2]){0}, displs,
                      MPI_INT, both);
    ch = chempi_comm_channel(comm);
    (void)chempi_comm_agree_context(&ch, MPI_SUCCESS, &context);
}

static void lie_of_edges(void)
{
    send_edges(3);
}

static void lie_of_counts(void)
{
    send_edges(-3);
}

/* A vote for an id that is none, and then none of its own. */
static void lie_of_context(void)
{
    struct chempi_comm_channel ch =
        chempi_comm_channel(chempi_comm_lookup(both));
    int64_t vals[CHEMPI_COMM_VOTE_VALS] = {INT64_C(1) << 33,
                                           -(INT64_C(1) << 33), 0};

    (void)chempi_comm_max(&ch, MPI_SUCCESS, vals, CHEMPI_COMM_VOTE_VALS);
    vals[0] = vals[2] = 0;
    vals[1] = -(int64_t)CHEMPI_CONTEXT_ID_END;
    (void)chempi_comm_max(&ch, MPI_SUCCESS, vals, CHEMPI_COMM_VOTE_VALS);
}

/* In MPI_File_open: an error of a member that is none. */
static void lie_of_file(void)
{
    const int64_t mine[3] = {INT64_C(0x7fffffff0000000d), INT64_MIN, INT64_MIN};
    int64_t worst[3];

    MPI_Allreduce(mine, worst, 3, MPI_INT64_T, MPI_MAX, both);
}

/* In MPI_Comm_dup: a byte of a context. */
static void say_little(void)
{
    struct chempi_comm *comm = chempi_comm_lookup(inter);
    struct chempi_comm_channel ch = chempi_comm_channel(comm);
    void *theirs = NULL;
    size_t len;

    ch.inter = NULL;
    (void)chempi_comm_swap_inter(&ch, comm, MPI_SUCCESS, "", 1, &theirs, &len);
    free(theirs);
}

/* In MPI_Comm_dup: a class that is none. */
static void lie_of_class(void)
{
    struct chempi_comm_channel ch =
        chempi_comm_channel(chempi_comm_lookup(both));
    int64_t vals[CHEMPI_COMM_VOTE_VALS] = {0};

    (void)chempi_comm_max(&ch, WILD, vals, CHEMPI_COMM_VOTE_VALS);
}

/* In MPI_Comm_accept, whose root has failed: it has not, as far as the lower
 * half of a number says. */
static void lie_of_found(void)
{
    struct chempi_comm_channel ch =
        chempi_comm_channel(chempi_comm_lookup(both));
    int64_t vals[2] = {0};
    uint32_t context;

    (void)chempi_comm_agree_context(&ch, MPI_SUCCESS, &context);
    (void)chempi_comm_agree_context(&ch, MPI_SUCCESS, &context);
    (void)chempi_comm_max(&ch, MPI_SUCCESS, vals, 1);
    vals[0] = INT64_C(1) << 32;
    (void)chempi_comm_max(&ch, MPI_SUCCESS, vals, 2);
}

/* In MPI_Comm_spawn: it has failed, and there are many processes. */
static void lie_of_processes(void)
{
    struct chempi_comm *comm = chempi_comm_lookup(both);
    struct chempi_comm_channel ch = chempi_comm_channel(comm);
    int64_t wanted = WILD;
    MPI_Status status;

    (void)chempi_comm_max(&ch, MPI_ERR_OTHER, &wanted, 1);
    ch = chempi_comm_channel(comm);
    (void)chempi_message_recv_on(&wanted, 1,
                                 chempi_datatype_lookup(MPI_INT64_T), 0, ch.tag,
                                 comm, ch.kind, &status);
}

/* In MPI_Accumulate: pairs with padding have none, so that the last one would
 * end behind the window. */
static void lie_of_pairs(void)
{
    struct {
        struct chempi_rma_head head;
        unsigned char pair[PAIR];
    } request = {.head = {.kind = CHEMPI_RMA_DO_FOLD,
                          .elem = CHEMPI_BASIC_TYPE_PAIR_I16_I32,
                          .op = CHEMPI_OP_REPLACE,
                          .payload = PAIR,
                          .len = PAIR}};
    char none;
    MPI_Win win;

    memset(request.pair, 1, sizeof(request.pair));
    MPI_Win_create(&none, 0, 1, MPI_INFO_NULL, both, &win);
    MPI_Win_fence(0, win);
    (void)chempi_message_send_on(&request, sizeof(request),
                                 chempi_datatype_lookup(MPI_BYTE), 0, 0,
                                 chempi_win_lookup(win)->comm,
                                 (enum chempi_context_kind)CHEMPI_RMA_REQUESTS);
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
}

static void request(MPI_Win win, const void *data, MPI_Count len)
{
    (void)chempi_message_send_on(data, len, chempi_datatype_lookup(MPI_BYTE), 0,
                                 0, chempi_win_lookup(win)->comm,
                                 (enum chempi_context_kind)CHEMPI_RMA_REQUESTS);
}

/* In a window: what is asked for again and again. */
static void ask_often(struct chempi_rma_head head)
{
    char none;
    MPI_Win win;
    int rc = MPI_SUCCESS;

    MPI_Win_create(&none, 0, 1, MPI_INFO_NULL, both, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Win_fence(0, win);
    for (int k = 0; k < ROUNDS && rc == MPI_SUCCESS; k++) {
        for (int i = 0; i < ROUND; i++) {
            head.id++;
            request(win, &head, sizeof(head));
        }
        rc = MPI_Win_fence(0, win);
    }
    MPI_Win_free(&win);
}

/* In MPI_Put: it is large, and its data never comes; so are many others. */
static void announce_puts(void)
{
    ask_often((struct chempi_rma_head){.kind = CHEMPI_RMA_DO_PUT_LARGE,
                                       .len = UINT64_C(1) << 20});
}

/* In MPI_Get_accumulate: nobody receives the answers. */
static void fetch_often(void)
{
    ask_often((struct chempi_rma_head){.kind = CHEMPI_RMA_DO_FETCH_FOLD,
                                       .op = CHEMPI_OP_NO_OP,
                                       .elem = CHEMPI_BASIC_TYPE_BYTE,
                                       .len = WINDOW});
}

/* In MPI_Put with datatypes that need long descriptions: the second one is
 * refused, and its first words only are kept. */
static void lie_of_types(void)
{
    struct {
        struct chempi_rma_head head;
        uint64_t word;
    } told = {.head = {.kind = CHEMPI_RMA_DO_TYPE,
                       .payload = sizeof(uint64_t),
                       .total = DESCRIPTION}};
    char none = 1;
    MPI_Win win;
    int rc;

    MPI_Win_create(&none, 0, 1, MPI_INFO_NULL, both, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    for (int i = 0; i < 2; i++) {
        told.head.type = 1000 + (uint32_t)i;
        request(win, &told, sizeof(told));
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
        MPI_Put(&none, 1, MPI_BYTE, 0, 0, 1, MPI_BYTE, win);
        rc = MPI_Win_unlock(0, win);
        CHECK(check_class(rc) == (i ? MPI_ERR_TYPE : MPI_SUCCESS),
              "description %d: class %d", i, check_class(rc));
    }
    MPI_Win_free(&win);
}

/* In MPI_Win_unlock: a class that is none. */
static void lie_of_verdict(void)
{
    char none;
    MPI_Win win;

    MPI_Win_create(&none, 1, 1, MPI_INFO_NULL, both, &win);
    chempi_lane_lock(&chempi_lane_main);
    chempi_rma_peer(chempi_win_lookup(win), 0)->in_error.error = WILD;
    chempi_lane_unlock(&chempi_lane_main);
    MPI_Barrier(both);
    MPI_Win_free(&win);
}

/* In MPI_Accumulate: the last of more bytes than 63 bits count. All have the
 * same place. */
static void lie_of_amounts(void)
{
    struct {
        struct chempi_rma_head head;
        int64_t value;
    } sum = {.head = {.kind = CHEMPI_RMA_DO_FOLD,
                      .elem = CHEMPI_BASIC_TYPE_I64,
                      .op = CHEMPI_OP_SUM,
                      .payload = sizeof(int64_t),
                      .count = UINT64_C(1) << 60,
                      .at = UINT64_C(1) << 62,
                      .len = sizeof(int64_t)}};
    struct chempi_rma_peer *peer;
    MPI_Datatype type;
    MPI_Win win;
    char none = 0;
    int rc;

    MPI_Type_create_resized(MPI_INT64_T, 0, 0, &type);
    MPI_Type_commit(&type);
    MPI_Win_create(&none, 0, 1, MPI_INFO_NULL, both, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    MPI_Put(&none, 1, MPI_BYTE, 0, 0, 1, MPI_BYTE, win);
    MPI_Win_flush(0, win);
    chempi_lane_lock(&chempi_lane_main);
    peer = chempi_rma_peer(chempi_win_lookup(win), 0);
    sum.head.type = chempi_rma_tell_type(peer, chempi_datatype_lookup(type));
    (void)chempi_rma_request(peer, &sum.head, &sum.value, NULL,
                             sizeof(sum.value));
    peer->is_dirty = true;
    chempi_lane_unlock(&chempi_lane_main);
    rc = MPI_Win_unlock(0, win);
    CHECK(sum.head.type && check_class(rc) == MPI_ERR_TYPE, "class %d",
          check_class(rc));
    MPI_Win_free(&win);
    MPI_Type_free(&type);
}

/* No lie: a datatype that needs a longer description than another world may
 * tell. */
static void get_long_type(void)
{
    MPI_Aint *at = check_alloc(sizeof(*at) * LONG);
    char *to = check_alloc(LONG);
    MPI_Datatype type;
    MPI_Win win;
    char none;
    int rc;

    for (MPI_Aint i = 0; i < LONG; i++)
        at[i] = 3 * i + i % 2;
    MPI_Type_create_hindexed_block(LONG, 1, at, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    MPI_Win_create(&none, 0, 1, MPI_INFO_NULL, both, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    MPI_Get(to, LONG, MPI_BYTE, 0, 0, 1, type, win);
    rc = MPI_Win_unlock(0, win);
    CHECK(check_class(rc) == MPI_ERR_TYPE, "MPI_Get: class %d",
          check_class(rc));
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    MPI_Get_accumulate(NULL, 0, MPI_BYTE, to, LONG, MPI_BYTE, 0, 0, 1, type,
                       MPI_NO_OP, win);
    rc = MPI_Win_unlock(0, win);
    CHECK(check_class(rc) == MPI_ERR_TYPE, "MPI_Get_accumulate: class %d",
          check_class(rc));
    MPI_Win_free(&win);
    MPI_Type_free(&type);
    free(at);
    free(to);
}

/* ---- the other one ------------------------------------------------------- */

static void check_none(MPI_Comm made)
{
    CHECK(made == MPI_COMM_NULL, "a communicator");
}

static int make_graph(void)
{
    MPI_Comm graph = MPI_COMM_NULL;
    const int none = 0;
    const int rc = MPI_Dist_graph_create(
        both, 0, &none, &none, &none, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph);

    check_none(graph);
    return rc;
}

static int split(MPI_Comm comm)
{
    MPI_Comm made = MPI_COMM_NULL;
    const int rc = MPI_Comm_split(comm, 0, 0, &made);

    check_none(made);
    return rc;
}

static int split_both(void)
{
    return split(both);
}

static int split_inter(void)
{
    return split(inter);
}

static int duplicate(MPI_Comm comm)
{
    MPI_Comm made = MPI_COMM_NULL;
    const int rc = MPI_Comm_dup(comm, &made);

    check_none(made);
    return rc;
}

static int dup_both(void)
{
    return duplicate(both);
}

static int dup_inter(void)
{
    return duplicate(inter);
}

static int dup_well(void)
{
    MPI_Comm made = MPI_COMM_NULL;
    const int rc = MPI_Comm_dup(both, &made);
    uint32_t context;

    CHECK_OR_DIE(rc == MPI_SUCCESS, "a duplicate: %d", rc);
    context = chempi_comm_lookup(made)->recv_context;
    CHECK(context / CHEMPI_CONTEXT_STEP >= CHEMPI_CONTEXT_ID_OPEN,
          "context %u is the job's own", context);
    return rc;
}

static int build_bridge(void)
{
    MPI_Comm made = MPI_COMM_NULL;
    const int rc =
        MPI_Intercomm_create(both, 0, MPI_COMM_WORLD, WILD, 1, &made);

    check_none(made);
    return rc;
}

static int open_none(void)
{
    MPI_File f;

    return MPI_File_open(both, "none", MPI_MODE_RDONLY, MPI_INFO_NULL, &f);
}

static int accept_nowhere(void)
{
    MPI_Comm made = MPI_COMM_NULL;
    const int rc = MPI_Comm_accept("nowhere", MPI_INFO_NULL, 0, both, &made);

    check_none(made);
    return rc;
}

/* One code is written, and none behind it. */
static int spawn(void)
{
    MPI_Comm made = MPI_COMM_NULL;
    int *codes = check_alloc(sizeof(*codes));
    const int rc = MPI_Comm_spawn("none", MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0,
                                  both, &made, codes);

    check_none(made);
    CHECK(codes[0] == MPI_ERR_SPAWN, "code %d", codes[0]);
    free(codes);
    return rc;
}

static int show_window(void)
{
    char *mem = check_alloc(2 * PAIR);
    MPI_Win win;
    int rc;

    MPI_Win_create(mem, PAIR, 1, MPI_INFO_NULL, both, &win);
    MPI_Win_fence(0, win);
    MPI_Win_fence(0, win);
    rc = MPI_Win_free(&win);
    for (int i = PAIR; i < 2 * PAIR; i++)
        CHECK(mem[i] == 0, "byte %d behind the window", i - PAIR);
    free(mem);
    return rc;
}

static int hear_types(void)
{
    char mem = 0;
    MPI_Win win;

    MPI_Win_create(&mem, 1, 1, MPI_INFO_NULL, both, &win);
    MPI_Win_free(&win);
    CHECK(mem == 1, "nothing was put");
    return MPI_SUCCESS;
}

static int hear_verdict(void)
{
    char mine = 0;
    MPI_Win win;
    int rc;

    MPI_Win_create(&mine, 1, 1, MPI_INFO_NULL, both, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Barrier(both);
    MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
    MPI_Put(&mine, 1, MPI_BYTE, 1, 0, 1, MPI_BYTE, win);
    rc = MPI_Win_unlock(1, win);
    MPI_Win_free(&win);
    return rc;
}

static int serve_window(void)
{
    int64_t mem = 0;
    MPI_Win win;

    MPI_Win_create(&mem, sizeof(mem), 1, MPI_INFO_NULL, both, &win);
    return MPI_Win_free(&win);
}

static int serve_large_window(void)
{
    char *mem = check_alloc(3 * LONG);
    MPI_Win win;
    int rc;

    MPI_Win_create(mem, 3 * LONG, 1, MPI_INFO_NULL, both, &win);
    rc = MPI_Win_free(&win);
    free(mem);
    return rc;
}

static int count_requests(void)
{
    static char mem[WINDOW];
    MPI_Win win;
    int rc;

    MPI_Win_create(mem, sizeof(mem), 1, MPI_INFO_NULL, both, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    rc = MPI_Win_fence(0, win);
    for (int k = 0; k < ROUNDS && rc == MPI_SUCCESS; k++)
        rc = MPI_Win_fence(0, win);
    MPI_Win_free(&win);
    return rc;
}

/* ---- what is said, where, and what comes of it --------------------------- */

static const struct how {
    const char *name;
    void (*lie)(void);
    int (*hear)(void);
    int errclass;
} hows[] = {
    {"split", lie_in_split, split_both, MPI_ERR_INTERN},
    {"other_side", lie_to_other_side, split_inter, MPI_ERR_INTERN},
    {"edges", lie_of_edges, make_graph, MPI_ERR_INTERN},
    {"counts", lie_of_counts, make_graph, MPI_ERR_INTERN},
    {"context", lie_of_context, dup_well, MPI_SUCCESS},
    {"file", lie_of_file, open_none, MPI_ERR_INTERN},
    {"bridge", lie_of_bridge, build_bridge, MPI_ERR_RANK},
    {"short", say_little, dup_inter, MPI_ERR_INTERN},
    {"class", lie_of_class, dup_both, MPI_ERR_INTERN},
    {"found", lie_of_found, accept_nowhere, MPI_ERR_INTERN},
    {"pairs", lie_of_pairs, show_window, MPI_SUCCESS},
    {"puts", announce_puts, count_requests, MPI_ERR_PROC_ABORTED},
    {"fetches", fetch_often, count_requests, MPI_ERR_PROC_ABORTED},
    {"types", lie_of_types, hear_types, MPI_SUCCESS},
    {"verdict", lie_of_verdict, hear_verdict, MPI_ERR_INTERN},
    {"amounts", lie_of_amounts, serve_window, MPI_SUCCESS},
    {"long_types", get_long_type, serve_large_window, MPI_SUCCESS},
    {"processes", lie_of_processes, spawn, MPI_ERR_OTHER},
};

static const struct how *find_how(const char *name)
{
    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(hows); i++)
        if (strcmp(hows[i].name, name) == 0)
            return &hows[i];
    CHECK_OR_DIE(false, "no way %s", name);
    return NULL;
}

static void meet(bool accepts, const char *fifo)
{
    char name[MPI_MAX_PORT_NAME] = "";

    if (accepts)
        MPI_Open_port(MPI_INFO_NULL, name);
    check_pass_port(accepts, fifo, name);
    if (accepts)
        MPI_Comm_accept(name, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter);
    else
        MPI_Comm_connect(name, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter);
    MPI_Intercomm_merge(inter, !accepts, &both);
    MPI_Comm_set_errhandler(both, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
}

int main(int argc, char **argv)
{
    const struct how *how;
    int errclass;

    check_start(&argc, &argv);
    CHECK_OR_DIE(argc > 3, "usage: wrong_members accept|connect FIFO HOW");
    how = find_how(argv[3]);
    meet(strcmp(argv[1], "accept") == 0, argv[2]);
    if (strcmp(argv[1], "accept") == 0) {
        errclass = check_class(how->hear());
        CHECK(errclass == how->errclass, "class %d", errclass);
    } else {
        how->lie();
    }
    return check_finish();
}
