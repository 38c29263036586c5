/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names of ports: each rank publishes one that all others find, whatever node
 * they are on; what is wrong with a name, and who withdraws it.
 *
 * usage: names [withdrawn]
 *
 * withdrawn: a rank finalizes, and its name is gone
 */
#include "check.h"

static char service[MPI_MAX_PORT_NAME];
static char port[MPI_MAX_PORT_NAME];

static void name(int rank)
{
    (void)snprintf(service, sizeof(service), "service of %d", rank);
    (void)snprintf(port, sizeof(port), "port of %d", rank);
}

static int look_up(const char *what, char found[MPI_MAX_PORT_NAME])
{
    return check_class(MPI_Lookup_name(what, MPI_INFO_NULL, found));
}

static void find_all(void)
{
    char found[MPI_MAX_PORT_NAME];

    for (int i = 0; i < check_size(); i++) {
        name(i);
        CHECK(look_up(service, found) == MPI_SUCCESS, "%s is not there",
              service);
        CHECK(strcmp(found, port) == 0, "%s instead of %s", found, port);
    }
}

static void is_nowhere(const char *what)
{
    char found[MPI_MAX_PORT_NAME] = "as before";

    CHECK(look_up(what, found) == MPI_ERR_NAME, "%s is there", what);
    CHECK(strcmp(found, "as before") == 0, "%s was written", found);
}

static void spoil(void)
{
    char longest[256];
    char found[MPI_MAX_PORT_NAME];
    int rc;

    name(check_rank());
    rc = MPI_Publish_name(service, MPI_INFO_NULL, "another");
    CHECK(check_class(rc) == MPI_ERR_SERVICE, "published twice: %d", rc);
    rc = MPI_Unpublish_name(service, MPI_INFO_NULL, "another");
    CHECK(check_class(rc) == MPI_ERR_SERVICE, "another's withdrawn: %d", rc);
    rc = MPI_Unpublish_name("nobody's", MPI_INFO_NULL, port);
    CHECK(check_class(rc) == MPI_ERR_SERVICE, "nobody's withdrawn: %d", rc);
    is_nowhere("nobody's");
    memset(longest, 'x', sizeof(longest));
    longest[255] = '\0';
    is_nowhere(longest);
    CHECK(look_up("", found) == MPI_ERR_ARG, "a name of no bytes");
}

static void too_long(void)
{
    char text[MPI_MAX_PORT_NAME + 1];
    int rc;

    memset(text, 'x', sizeof(text));
    text[256] = '\0';
    CHECK(look_up(text, port) == MPI_ERR_ARG, "a service that is too long");
    text[256] = 'x';
    text[MPI_MAX_PORT_NAME] = '\0';
    rc = MPI_Publish_name("x", MPI_INFO_NULL, text);
    CHECK(check_class(rc) == MPI_ERR_PORT, "a port that is too long: %d", rc);
}

/* All that one may say, whole. */
static void longest(void)
{
    char long_service[256];
    char long_port[MPI_MAX_PORT_NAME];
    char found[MPI_MAX_PORT_NAME];

    memset(long_service, 's', sizeof(long_service));
    long_service[255] = '\0';
    memset(long_port, 'p', sizeof(long_port));
    long_port[MPI_MAX_PORT_NAME - 1] = '\0';
    CHECK(MPI_Publish_name(long_service, MPI_INFO_NULL, long_port) ==
              MPI_SUCCESS,
          "the longest names are refused");
    CHECK(look_up(long_service, found) == MPI_SUCCESS, "and not found");
    CHECK(strcmp(found, long_port) == 0, "and not whole");
    CHECK(MPI_Unpublish_name(long_service, MPI_INFO_NULL, long_port) ==
              MPI_SUCCESS,
          "and not withdrawn");
}

static void withdraw(void)
{
    name(check_rank());
    CHECK(MPI_Unpublish_name(service, MPI_INFO_NULL, port) == MPI_SUCCESS,
          "%s is not withdrawn", service);
    is_nowhere(service);
}

/* Rank 1 of two finalizes when rank 0 has found its name, which is gone then:
 * the launcher hears of the one and of the other at some time. */
static int withdrawn(void)
{
    char found[MPI_MAX_PORT_NAME];
    MPI_Session session;
    MPI_Group group;
    int rank;

    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Group_rank(group, &rank);
    MPI_Group_free(&group);
    if (rank == 0) {
        while (look_up("theirs", found) != MPI_SUCCESS)
            ;
        MPI_Publish_name("seen", MPI_INFO_NULL, "port");
        while (look_up("theirs", found) == MPI_SUCCESS)
            ;
        puts("it is gone");
    } else {
        MPI_Publish_name("theirs", MPI_INFO_NULL, "port");
        while (look_up("seen", found) != MPI_SUCCESS)
            ;
    }
    MPI_Session_finalize(&session);
    return 0;
}

int main(int argc, char **argv)
{

    if (argc > 1 && strcmp(argv[1], "withdrawn") == 0)
        return withdrawn();
    check_start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    name(check_rank());
    CHECK(MPI_Publish_name(service, MPI_INFO_NULL, port) == MPI_SUCCESS,
          "%s cannot be published", service);
    MPI_Barrier(MPI_COMM_WORLD);
    find_all();
    MPI_Barrier(MPI_COMM_WORLD);
    spoil();
    too_long();
    if (check_rank() == 0)
        longest();
    MPI_Barrier(MPI_COMM_WORLD);
    withdraw();
    return check_finish();
}
