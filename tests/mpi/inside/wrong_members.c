/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two jobs of one rank have met, and the one that has connected takes part in
 * the making of communicators with words that cannot be. The other one's call
 * fails, or is none the worse for it.
 *
 * inside-wrong_members accept|connect FIFO
 * split|other_side|edges|counts|context|
 * file|short|bridge
 */

#include "libchempi/didl/comm/context_id.h"
#include "libchempi/didl/comm/make/comm_make.h"
#include "tests/mpi/check.h"

enum { WILD = 10000000 };

/* ---- the one that lies: the library's messages, with other words --------- */

/* As in MPI_Comm_split: colour, key, rank. */
static const uint32_t lie[3] = {0, 0, WILD};

static void lie_in_split(MPI_Comm both)
{
    struct chempi_comm_channel ch =
        chempi_comm_channel(chempi_comm_lookup(both));
    uint32_t all[2][3];
    uint32_t context;

    (void)chempi_comm_allgather(&ch, MPI_SUCCESS, lie, sizeof(lie), all);
    (void)chempi_comm_agree_context(&ch, MPI_SUCCESS, &context);
}

static void lie_to_other_side(MPI_Comm inter)
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
static void lie_of_bridge(MPI_Comm both)
{
    struct chempi_comm_channel ch =
        chempi_comm_channel(chempi_comm_lookup(both));
    const struct chempi_comm_far far = {.error = MPI_SUCCESS};
    int64_t worst = ((int64_t)MPI_ERR_COMM << 32) + INT32_MAX;
    uint32_t context;
    void *theirs = NULL;
    size_t len;

    ch.is_open = true;
    (void)chempi_comm_agree_context(&ch, MPI_SUCCESS, &context);
    (void)chempi_comm_agree_context(&ch, MPI_SUCCESS, &context);
    (void)chempi_comm_swap(&ch, &far, MPI_SUCCESS, NULL, 0, &theirs, &len);
    (void)chempi_comm_max(&ch, MPI_SUCCESS, &worst, 1);
    (void)chempi_comm_swap(&ch, &far, MPI_SUCCESS, NULL, 0, &theirs, &len);
    free(theirs);
}

/* As in MPI_Dist_graph_create, by the user's calls. */
static void lie_of_edges(MPI_Comm both, int count)
{
    const int edge[3] = {1, WILD, 1};
    int counts[2] = {count, 0};
    int none[2];
    const int displs[2] = {0, 0};

    MPI_Comm_set_errhandler(both, MPI_ERRORS_RETURN);
    MPI_Alltoall(counts, 1, MPI_INT, none, 1, MPI_INT, both);
    if (count == 3)
        MPI_Alltoallv(edge, counts, displs, MPI_INT, NULL, (int[2]){0}, displs,
                      MPI_INT, both);
}

/* A vote for an id that is none, and then none of its own. */
static void lie_of_context(MPI_Comm both)
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
static void lie_of_file(MPI_Comm both)
{
    const int64_t mine[3] = {INT64_C(0x7fffffff0000000d), INT64_MIN, INT64_MIN};
    int64_t worst[3];

    MPI_Allreduce(mine, worst, 3, MPI_INT64_T, MPI_MAX, both);
}

/* In MPI_Comm_dup: a byte of a context. */
static void say_little(MPI_Comm inter)
{
    struct chempi_comm *comm = chempi_comm_lookup(inter);
    struct chempi_comm_channel ch = chempi_comm_channel(comm);
    void *theirs = NULL;
    size_t len;

    ch.inter = NULL;
    (void)chempi_comm_swap_inter(&ch, comm, MPI_SUCCESS, "", 1, &theirs, &len);
    free(theirs);
}

/* ---- the other one ------------------------------------------------------- */

static int make_graph(MPI_Comm both)
{
    MPI_Comm graph = MPI_COMM_NULL;
    const int none = 0;
    const int rc = MPI_Dist_graph_create(
        both, 0, &none, &none, &none, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph);

    CHECK(graph == MPI_COMM_NULL, "a graph");
    return rc;
}

static void hear(MPI_Comm both, MPI_Comm inter, const char *what)
{
    MPI_Comm made = MPI_COMM_NULL;
    uint32_t context;
    int rc;

    if (strcmp(what, "bridge") == 0) {
        rc = MPI_Intercomm_create(both, 0, MPI_COMM_WORLD, WILD, 1, &made);
        CHECK(check_class(rc) == MPI_ERR_RANK, "class %d", check_class(rc));
        return;
    }
    if (strcmp(what, "split") == 0) {
        rc = MPI_Comm_split(both, 0, 0, &made);
    } else if (strcmp(what, "other_side") == 0) {
        rc = MPI_Comm_split(inter, 0, 0, &made);
    } else if (strcmp(what, "file") == 0) {
        MPI_File file;

        rc = MPI_File_open(both, "none", MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
    } else if (strcmp(what, "short") == 0) {
        rc = MPI_Comm_dup(inter, &made);
    } else if (strcmp(what, "context") != 0) {
        rc = make_graph(both);
    } else {
        rc = MPI_Comm_dup(both, &made);
        CHECK_OR_DIE(rc == MPI_SUCCESS, "a duplicate: %d", rc);
        context = chempi_comm_lookup(made)->recv_context;
        CHECK(context / CHEMPI_CONTEXT_STEP >= CHEMPI_CONTEXT_ID_OPEN,
              "context %u is the job's own", context);
        return;
    }
    CHECK(check_class(rc) == MPI_ERR_INTERN, "class %d", check_class(rc));
    CHECK(made == MPI_COMM_NULL, "a communicator");
}

int main(int argc, char **argv)
{
    char name[MPI_MAX_PORT_NAME] = "";
    MPI_Comm both, inter;
    bool accepts;

    check_start(&argc, &argv);
    CHECK_OR_DIE(argc > 3, "usage: wrong_members accept|connect FIFO HOW");
    accepts = strcmp(argv[1], "accept") == 0;
    if (accepts)
        MPI_Open_port(MPI_INFO_NULL, name);
    check_pass_port(accepts, argv[2], name);
    if (accepts)
        MPI_Comm_accept(name, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter);
    else
        MPI_Comm_connect(name, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter);
    MPI_Intercomm_merge(inter, !accepts, &both);
    MPI_Comm_set_errhandler(both, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
    if (accepts)
        hear(both, inter, argv[3]);
    else if (strcmp(argv[3], "split") == 0)
        lie_in_split(both);
    else if (strcmp(argv[3], "other_side") == 0)
        lie_to_other_side(inter);
    else if (strcmp(argv[3], "bridge") == 0)
        lie_of_bridge(both);
    else if (strcmp(argv[3], "context") == 0)
        lie_of_context(both);
    else if (strcmp(argv[3], "file") == 0)
        lie_of_file(both);
    else if (strcmp(argv[3], "short") == 0)
        say_little(inter);
    else
        lie_of_edges(both, strcmp(argv[3], "edges") == 0 ? 3 : -3);
    return check_finish();
}
