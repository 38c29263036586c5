/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The root of a spawn tells few members how many processes are asked for, and
 * these the others: also of a call that starts nothing.
 *
 * spawn_tree MESSAGES: at most so many, of the root.
 */
#include "check.h"

enum { VARIABLES_MAX = 64 };

static MPI_T_pvar_session session;
static MPI_T_pvar_handle sent[VARIABLES_MAX];
static int sent_count;

static bool ends_with(const char *name, const char *end)
{
    const size_t len = strlen(name);

    return len >= strlen(end) && strcmp(name + len - strlen(end), end) == 0;
}

static void count_variable(int index)
{
    char name[256] = "";
    int len = (int)sizeof(name);
    int count = 0;
    int unused;
    MPI_Datatype type;
    MPI_T_enum enums;

    MPI_T_pvar_get_info(index, name, &len, &unused, &unused, &type, &enums,
                        NULL, NULL, &unused, &unused, &unused, &unused);
    if (!ends_with(name, "_messages_sent"))
        return;
    CHECK_OR_DIE(sent_count < VARIABLES_MAX, "more variables than room");
    MPI_T_pvar_handle_alloc(session, index, NULL, &sent[sent_count], &count);
    MPI_T_pvar_start(session, sent[sent_count++]);
}

static void start_counting(void)
{
    int provided;
    int count = 0;

    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_T_pvar_session_create(&session);
    MPI_T_pvar_get_num(&count);
    for (int i = 0; i < count; i++)
        count_variable(i);
    CHECK_OR_DIE(sent_count > 0, "nothing counts messages");
}

static long long messages(void)
{
    long long sum = 0;

    for (int i = 0; i < sent_count; i++) {
        unsigned long long value = 0;

        MPI_T_pvar_read(session, sent[i], &value);
        sum += (long long)value;
    }
    return sum;
}

int main(int argc, char **argv)
{
    int codes[3] = {-1, -1, -1};
    MPI_Comm inter;
    long long count;
    int rc;

    check_start(&argc, &argv);
    CHECK_OR_DIE(argc > 1, "usage: spawn_tree MESSAGES");
    start_counting();
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Barrier(MPI_COMM_WORLD);
    count = messages();
    /* One member's root is none; the others have one. */
    rc = MPI_Comm_spawn(check_rank() == 1 ? NULL : "true", MPI_ARGV_NULL,
                        check_rank() == 1 ? 3 : -1, MPI_INFO_NULL, 1,
                        MPI_COMM_WORLD, &inter, codes);
    count = messages() - count;
    CHECK(rc != MPI_SUCCESS, "it has been started");
    for (int i = 0; i < 3; i++)
        CHECK(codes[i] == MPI_ERR_SPAWN, "code %d is %d", i, codes[i]);
    if (check_rank() == 1)
        CHECK(count <= atoll(argv[1]), "%lld messages", count);
    return check_finish();
}
