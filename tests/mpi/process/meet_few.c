/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A port for few: a world that brings more processes than
 * CHEMPI_MEET_PROCESSES_MAX (1) and the own job has (2) is not met; some of it
 * are. What is spawned is not counted.
 *
 * meet_few accept|connect FIFO: the name of the port goes through FIFO.
 */
#include <string.h>

#include "check.h"

enum { FEW = 3, CHILDREN = 5 };

static int meet(bool accepts, const char *name, MPI_Comm comm, MPI_Comm *inter)
{
    return accepts ? MPI_Comm_accept(name, MPI_INFO_NULL, 0, comm, inter)
                   : MPI_Comm_connect(name, MPI_INFO_NULL, 0, comm, inter);
}

static void fail(bool accepts, const char *name)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    MPI_Comm inter = MPI_COMM_WORLD;
    int len;
    int rc;

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    rc = meet(accepts, name, MPI_COMM_WORLD, &inter);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    CHECK(rc != MPI_SUCCESS && inter == MPI_COMM_NULL, "too many have met");
    MPI_Error_string(rc, text, &len);
    CHECK(!accepts || check_rank() > 0 ||
              strstr(text, "CHEMPI_MEET_PROCESSES_MAX"),
          "%s", text);
}

static void succeed(bool accepts, const char *name)
{
    const bool is_in = accepts || check_rank() < FEW;
    MPI_Comm comm, inter;
    int remote;

    MPI_Comm_split(MPI_COMM_WORLD, is_in ? 0 : MPI_UNDEFINED, 0, &comm);
    if (!is_in)
        return;
    meet(accepts, name, comm, &inter);
    MPI_Comm_remote_size(inter, &remote);
    CHECK(remote == (accepts ? FEW : 2), "%d have come", remote);
    MPI_Comm_disconnect(&inter);
    MPI_Comm_free(&comm);
}

static void spawn(char *program)
{
    MPI_Comm inter;

    MPI_Comm_spawn(program, MPI_ARGV_NULL, CHILDREN, MPI_INFO_NULL, 0,
                   MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
    MPI_Comm_disconnect(&inter);
}

int main(int argc, char **argv)
{
    char name[MPI_MAX_PORT_NAME] = "";
    MPI_Comm parent;
    bool accepts;

    check_start(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        MPI_Comm_disconnect(&parent);
        return check_finish();
    }
    CHECK_OR_DIE(argc > 2, "usage: meet_few accept|connect FIFO");
    accepts = strcmp(argv[1], "accept") == 0;
    if (accepts && check_rank() == 0)
        MPI_Open_port(MPI_INFO_NULL, name);
    check_pass_port(accepts, argv[2], name);
    fail(accepts, name);
    succeed(accepts, name);
    if (accepts)
        spawn(argv[0]);
    return check_finish();
}
