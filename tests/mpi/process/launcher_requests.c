/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What MPI's standard lets a launcher be asked for (MPI 5.0, sections 11.4.3,
 * 11.5 and 11.8.4), as the program sees it:
 *
 *   wishes [handler=NAME] [kinds=LIST] [asked=LIST] [soft=LIST] [maxprocs=N]
 *          [size=N] [fail=before|world|none|after]
 *
 * NAME is the initial error handler; what is not mpi_errors_return is not
 * called but asked for. The first list is what objects of the world model tell
 * of kinds of memory, the second what the launcher was asked for. With "fail",
 * an error is raised at that time or on that object; the program goes on.
 */
#define _POSIX_C_SOURCE 200809L /* setenv */
#include "check.h"

#define KINDS "mpi_memory_alloc_kinds"
#define HANDLER "mpi_initial_errhandler"

static struct {
    char **argv;
} words;

/* The value of a word of the command line, or NULL. */
static const char *word(const char *key)
{
    const size_t len = strlen(key);

    for (char **w = words.argv; *w; w++)
        if (strncmp(*w, key, len) == 0 && (*w)[len] == '=')
            return *w + len + 1;
    return NULL;
}

static const char *handler_name(void)
{
    const char *name = word("handler");

    return name ? name : "mpi_errors_are_fatal";
}

static bool returns(void)
{
    return strcmp(handler_name(), "mpi_errors_return") == 0;
}

static bool is_word(const char *key, const char *value)
{
    const char *text = word(key);

    return text && strcmp(text, value) == 0;
}

/* value NULL: not there. */
static void expect(MPI_Info info, const char *key, const char *value)
{
    char text[MPI_MAX_INFO_VAL] = "";
    int len = (int)sizeof(text);
    int flag = 0;

    MPI_Info_get_string(info, key, &len, text, &flag);
    if (value)
        CHECK(flag && strcmp(text, value) == 0, "%s is \"%s\", not \"%s\"", key,
              flag ? text : "(none)", value);
    else
        CHECK(!flag, "%s is \"%s\"", key, text);
}

static void expect_kinds(MPI_Comm comm, const char *value)
{
    MPI_Info info;

    MPI_Comm_get_info(comm, &info);
    expect(info, KINDS, value);
    MPI_Info_free(&info);
}

static void environment(void)
{
    expect(MPI_INFO_ENV, HANDLER, word("handler"));
    expect(MPI_INFO_ENV, KINDS, word("asked"));
    expect(MPI_INFO_ENV, "soft", word("soft"));
    if (word("maxprocs"))
        expect(MPI_INFO_ENV, "maxprocs", word("maxprocs"));
}

/* ---- error handlers ---- */

static void fail_without_object(const char *when)
{
    int size;

    CHECK(MPI_Type_size(MPI_DATATYPE_NULL, &size) != MPI_SUCCESS,
          "%s: the null datatype has a size", when);
}

static void expect_handler(MPI_Comm comm, const char *what)
{
    MPI_Errhandler got;

    MPI_Comm_get_errhandler(comm, &got);
    CHECK(got == (returns() ? MPI_ERRORS_RETURN
                  : strcmp(handler_name(), "mpi_errors_abort") == 0
                      ? MPI_ERRORS_ABORT
                      : MPI_ERRORS_ARE_FATAL),
          "%s has another error handler than %s", what, handler_name());
    MPI_Errhandler_free(&got);
}

static void handlers(void)
{
    MPI_Comm copy;
    int value = 0;

    expect_handler(MPI_COMM_WORLD, "MPI_COMM_WORLD");
    expect_handler(MPI_COMM_SELF, "MPI_COMM_SELF");
    if (returns() || is_word("fail", "world"))
        CHECK(MPI_Send(&value, 1, MPI_INT, check_size(), 0, MPI_COMM_WORLD) !=
                  MPI_SUCCESS,
              "a message to nobody was sent");
    if (returns() || is_word("fail", "none"))
        fail_without_object("in the world");
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    expect_handler(copy, "a copy");
    /* Another handler of one communicator is nobody else's. */
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, returns() ? MPI_ERRORS_ARE_FATAL
                                                      : MPI_ERRORS_RETURN);
    expect_handler(copy, "a copy, later,");
    expect_handler(MPI_COMM_SELF, "MPI_COMM_SELF, later,");
    MPI_Comm_free(&copy);
}

/* ---- kinds of memory ---- */

static void kinds_of_the_world(const char *value)
{
    const int dims[1] = {check_size()};
    const int periods[1] = {0};
    MPI_Comm comm;
    MPI_Comm more;
    MPI_Info info;

    expect_kinds(MPI_COMM_WORLD, value);
    expect_kinds(MPI_COMM_SELF, value);
    MPI_Info_create(&info);
    MPI_Info_set(info, KINDS, "mpi:alloc_mem,system");
    MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm);
    expect_kinds(comm, value); /* no hint of a communicator's */
    MPI_Comm_set_info(comm, info);
    MPI_Comm_set_info(MPI_COMM_WORLD, info);
    expect_kinds(comm, value);
    expect_kinds(MPI_COMM_WORLD, value);
    MPI_Info_free(&info);
    MPI_Comm_split(comm, check_rank(), 0, &more);
    expect_kinds(more, value);
    MPI_Comm_free(&more);
    MPI_Cart_create(comm, 1, dims, periods, 0, &more);
    expect_kinds(more, value);
    MPI_Comm_free(&more);
    MPI_Comm_free(&comm);
}

/* A session that asks for `wish` (NULL: for nothing) tells `value`, and so does
 * what is made from it. */
static void kinds_of_a_session(const char *wish, const char *value)
{
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm;
    MPI_Comm copy;
    MPI_Info info;

    MPI_Info_create(&info);
    if (wish)
        MPI_Info_set(info, KINDS, wish);
    MPI_Session_init(info, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Info_free(&info);
    MPI_Session_get_info(session, &info);
    expect(info, KINDS, value);
    expect(info, HANDLER, handler_name());
    MPI_Info_free(&info);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "wishes", MPI_INFO_NULL,
                               MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Group_free(&group);
    expect_kinds(comm, value);
    MPI_Comm_dup(comm, &copy);
    expect_kinds(copy, value);
    MPI_Comm_free(&copy);
    MPI_Comm_split(comm, 0, -check_rank(), &copy);
    expect_kinds(copy, value);
    MPI_Comm_free(&comm);
    MPI_Comm_group(copy, &group); /* made by the split */
    MPI_Comm_free(&copy);
    MPI_Comm_create_from_group(group, "wishes", MPI_INFO_NULL,
                               MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Group_free(&group);
    expect_kinds(comm, value);
    MPI_Comm_free(&comm);
    MPI_Session_finalize(&session);
}

static void kinds(void)
{
    const char *world = word("kinds");

    world = world ? world : "system,mpi";
    /* What the program wishes now comes too late. */
    (void)setenv("CHEMPI_MEMORY_ALLOC_KINDS",
                 strstr(world, "alloc_mem") ? "system" : "mpi:alloc_mem", 1);
    kinds_of_the_world(world);
    kinds_of_a_session(NULL, world);
    kinds_of_a_session("", "system,mpi");
    kinds_of_a_session("cuda:device,MPI:Alloc_mem,mpi:alloc_mem,system",
                       "system,mpi,mpi:alloc_mem");
}

int main(int argc, char **argv)
{
    int status;

    words.argv = argv + 1;
    environment();
    if (returns() || is_word("fail", "before"))
        fail_without_object("before MPI_Init");
    check_start(&argc, &argv);
    environment();
    CHECK(!word("size") || check_size() == atoi(word("size")), "%d ranks",
          check_size());
    handlers();
    kinds();
    status = check_finish();
    environment();
    if (returns() || is_word("fail", "after"))
        fail_without_object("after MPI_Finalize");
    return status;
}
