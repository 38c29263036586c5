/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank dies in the second round of an agreement on a context: some of the
 * others have heard of it in that round and leave, the others go on to a third
 * one (chempirun --survive). All end with the same error class, and what was
 * sent in vain is not taken for a vote in the next agreement under the same
 * tag.
 *
 * groups: it dies behind the agreements of its group, whose leader waits for
 * the other group's. Neither leader waits for ever.
 *
 * behind: the same, and another member of that group leaves before its leader
 * hands on what the other group's has said; this is nothing of the next
 * agreement under the same tag.
 *
 * early: it dies while one of the others is in the agreement without it, under
 * the same tag, already: those who come from the one with it find its votes.
 *
 * usage: agreements_lost group | strings | idup | groups | behind | early
 */
#define _GNU_SOURCE /* kill */
#include <signal.h>
#include <unistd.h>

#include "libchempi/didl/comm/make/comm_circle.h"
#include "libchempi/didl/comm/message.h"
#include "tests/mpi/check.h"

enum {
    TAG = 7,
    NOT_NOW = 1, /* in the third value of a vote */
    EXTRA = 3,
    TIMES = 3,
    MARK_BITS = 31 /* behind it: whom a vote is for */
};

static const int victim = 3; /* of four */
static const char *how;

static bool is_group(void)
{
    return strcmp(how, "idup") != 0;
}

_Noreturn static void die(void)
{
    (void)kill(getpid(), SIGKILL);
    for (;;)
        (void)pause();
}

/* So that members have different ids free, and need a second round. */
static void take_ids(MPI_Comm extra[EXTRA])
{
    for (int i = 0; i < EXTRA; i++)
        MPI_Comm_dup(MPI_COMM_SELF, &extra[i]);
}

static void give_ids(MPI_Comm extra[EXTRA])
{
    for (int i = 0; i < EXTRA; i++)
        MPI_Comm_free(&extra[i]);
}

/* ---- the victim, by hand ---- */

/* The tag that a string stands for. */
static int tag_of(const char *string)
{
    uint32_t hash = UINT32_C(2166136261);

    for (; *string; string++)
        hash = (hash ^ (unsigned char)*string) * UINT32_C(16777619);
    return (int)((hash ^ hash >> 31) & INT32_MAX);
}

static const struct chempi_comm_channel *channel_of(MPI_Comm comm)
{
    static struct chempi_comm_circle circle;
    static int ranks[] = {0, 1, 2, 3};
    struct chempi_comm *c = chempi_comm_lookup(comm);

    if (strcmp(how, "group") == 0)
        chempi_comm_circle_open(&circle, c, ranks, c->local, TAG,
                                CHEMPI_CONTEXT_GROUP);
    else if (strcmp(how, "strings") == 0)
        chempi_comm_circle_open(&circle, &chempi_comm_world, ranks, c->local,
                                tag_of("lost"), CHEMPI_CONTEXT_STRING);
    else
        circle.channel = chempi_comm_channel(c);
    return &circle.channel;
}

/* "Not now": whoever hears no more than this goes another round. */
static void vote(const struct chempi_comm_channel *ch, int steps)
{
    struct chempi_comm_step plan[CHEMPI_COMM_STEPS_MAX];
    const int count = chempi_comm_plan_max(ch, plan);
    int64_t vals[CHEMPI_COMM_VALS_MAX] = {0};
    int64_t other[CHEMPI_COMM_VALS_MAX];
    const int n = is_group() ? CHEMPI_COMM_VOTE_VALS + 1 : CHEMPI_COMM_VALS_MAX;
    struct chempi_datatype *type = chempi_datatype_lookup(MPI_INT64_T);

    vals[1] = INT32_MIN;
    vals[2] = NOT_NOW;
    if (is_group())
        vals[3] = (int64_t)ch->circle << MARK_BITS;
    for (int i = 0; i < count && i < steps; i++)
        CHECK_OR_DIE(
            !chempi_message_sendrecv_on(vals, n, type, plan[i].to, ch->tag,
                                        other, n, type, plan[i].from, ch->tag,
                                        ch->comm, ch->kind, MPI_STATUS_IGNORE),
            "a step");
}

/* ---- groups: ranks 0 and 3, ranks 1 and 2; behind: 0, 2 and 3, and 1 ---- */

static bool is_behind(void)
{
    return strcmp(how, "behind") == 0;
}

static MPI_Group group_of(MPI_Group all, int n, const int *ranks)
{
    MPI_Group group;

    MPI_Group_incl(all, n, ranks, &group);
    return group;
}

_Noreturn static void agree_and_die(MPI_Group group)
{
    struct chempi_comm_circle circle;
    uint32_t context;

    chempi_comm_circle_open(&circle, &chempi_comm_world, NULL,
                            chempi_group_lookup(group), tag_of("lost"),
                            CHEMPI_CONTEXT_STRING);
    for (int i = 0; i < 2; i++)
        CHECK_OR_DIE(
            !chempi_comm_agree_context(&circle.channel, MPI_SUCCESS, &context),
            "an agreement");
    die();
}

/* The other group's leader comes when it has heard of the loss, or when rank 2
 * has, and has left. */
static void await_loss(void)
{
    char none;

    if (is_behind())
        MPI_Recv(NULL, 0, MPI_CHAR, 2, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
        CHECK_OR_DIE(MPI_Recv(&none, 1, MPI_CHAR, victim, TAG, MPI_COMM_WORLD,
                              MPI_STATUS_IGNORE),
                     "a message from nobody");
}

static void meet(MPI_Group all)
{
    const int me = check_rank();
    MPI_Group mine = is_behind() ? group_of(all, 3, (const int[]){0, 2, 3})
                                 : group_of(all, 2, (const int[]){0, 3});
    MPI_Group theirs = is_behind() ? group_of(all, 1, (const int[]){1})
                                   : group_of(all, 2, (const int[]){1, 2});
    const bool is_other = me == 1 || (me == 2 && !is_behind());
    MPI_Comm made;
    int code;

    if (me == victim)
        agree_and_die(mine);
    if (me == 1)
        await_loss();
    code = MPI_Intercomm_create_from_groups(
        is_other ? theirs : mine, 0, is_other ? mine : theirs, 0, "lost",
        MPI_INFO_NULL, MPI_ERRORS_RETURN, &made);
    CHECK_OR_DIE(!code || check_class(code) == MPI_ERR_PROC_ABORTED, "class %d",
                 check_class(code));
    if (me == 2 && is_behind()) {
        CHECK_OR_DIE(code, "it has not left");
        MPI_Send(NULL, 0, MPI_CHAR, 1, TAG, MPI_COMM_WORLD);
    }
    MPI_Group_free(&mine);
    MPI_Group_free(&theirs);
}

/* ---- early ---- */

static void lose_behind(MPI_Group all)
{
    const int early = 2; /* it begins with a vote for rank 0 */
    MPI_Comm made;
    int code;

    if (check_rank() == early)
        MPI_Send(NULL, 0, MPI_BYTE, victim, TAG, MPI_COMM_WORLD);
    if (check_rank() == victim) {
        MPI_Recv(NULL, 0, MPI_BYTE, early, TAG, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        die();
    }
    if (check_rank() == early)
        return;
    code = check_class(MPI_Comm_create_group(MPI_COMM_WORLD, all, TAG, &made));
    CHECK_OR_DIE(code == MPI_ERR_PROC_ABORTED, "class %d", code);
}

/* ---- the others ---- */

static int agree(MPI_Comm comm, MPI_Group group, MPI_Comm *made)
{
    MPI_Request request;
    int rc;

    if (strcmp(how, "group") == 0)
        return MPI_Comm_create_group(comm, group, TAG, made);
    if (strcmp(how, "strings") == 0 || is_behind())
        return MPI_Comm_create_from_group(group, "lost", MPI_INFO_NULL,
                                          MPI_ERRORS_RETURN, made);
    rc = MPI_Comm_idup(comm, made, &request);
    return rc ? rc : MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void use(MPI_Comm comm)
{
    int sum = 1;
    int size;

    MPI_Comm_size(comm, &size);
    CHECK_OR_DIE(!MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, comm),
                 "MPI_Allreduce");
    CHECK_OR_DIE(sum == size, "%d of %d members", sum, size);
}

/* Under the same tag, and through several rounds, for which the turn has to be
 * there. */
static void go_on(MPI_Group all)
{
    MPI_Comm extra[EXTRA];
    MPI_Group rest;
    MPI_Comm comms[TIMES];

    MPI_Group_excl(all, 1, &victim, &rest);
    for (int i = 0; i < TIMES; i++) {
        if (check_rank() == i % victim)
            take_ids(extra);
        CHECK_OR_DIE(
            !MPI_Comm_create_group(MPI_COMM_WORLD, rest, TAG, &comms[i]),
            "MPI_Comm_create_group");
        if (check_rank() == i % victim)
            give_ids(extra);
        use(comms[i]);
    }
    if (strcmp(how, "strings") == 0 || is_behind()) {
        MPI_Comm comm;

        CHECK_OR_DIE(!agree(MPI_COMM_WORLD, rest, &comm),
                     "MPI_Comm_create_from_group");
        use(comm);
        MPI_Comm_free(&comm);
    }
    for (int i = 0; i < TIMES; i++)
        MPI_Comm_free(&comms[i]);
    MPI_Group_free(&rest);
}

int main(int argc, char **argv)
{
    MPI_Comm extra[EXTRA];
    MPI_Comm comm;
    MPI_Comm made;
    MPI_Group all;
    int code;

    how = argc == 2 ? argv[1] : "group";
    check_start(&argc, &argv);
    check_need(victim + 1);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    if (strcmp(how, "groups") == 0 || is_behind() ||
        strcmp(how, "early") == 0) {
        if (strcmp(how, "early") == 0)
            lose_behind(all);
        else
            meet(all);
        go_on(all);
        if (check_rank() == 0)
            printf("the survivors are well\n");
        MPI_Finalize();
        return 0;
    }
    if (check_rank() == 0)
        take_ids(extra);
    MPI_Barrier(comm);
    if (check_rank() == victim) {
        const struct chempi_comm_channel *ch = channel_of(comm);

        vote(ch, CHEMPI_COMM_STEPS_MAX);
        vote(ch, 1);
        die();
    }
    code = check_class(agree(comm, all, &made));
    CHECK_OR_DIE(code == MPI_ERR_PROC_ABORTED, "class %d", code);
    if (check_rank() == 0)
        give_ids(extra);
    go_on(all);
    if (check_rank() == 0)
        printf("the survivors are well\n");
    MPI_Group_free(&all);
    MPI_Comm_free(&comm);
    MPI_Finalize();
    return 0;
}
