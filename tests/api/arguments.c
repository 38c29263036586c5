/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Wrong arguments are refused with the class that the standard names and with
 * words that name the argument; legal oddities are not refused. Runs as a
 * world of one.
 */
#include <limits.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"

static int class_of(int code)
{
    int errclass = -1;

    (void)MPI_Error_class(code, &errclass);
    return errclass;
}

/* The call returns an error of this class whose words have this text. */
#define REFUSED(call, errclass, text)                                          \
    do {                                                                       \
        int code_ = (call);                                                    \
        char words_[MPI_MAX_ERROR_STRING] = "";                                \
        int len_ = 0;                                                          \
        if (class_of(code_) != (errclass)) {                                   \
            fprintf(stderr, "%s:%d: class %d, not %s: %s\n", __FILE__,         \
                    __LINE__, class_of(code_), #errclass, #call);              \
            expect_failures++;                                                 \
        }                                                                      \
        (void)MPI_Error_string(code_, words_, &len_);                          \
        if (!strstr(words_, (text))) {                                         \
            fprintf(stderr, "%s:%d: no \"%s\" in \"%s\"\n", __FILE__,          \
                    __LINE__, (text), words_);                                 \
            expect_failures++;                                                 \
        }                                                                      \
    } while (0)

static MPI_Comm comm; /* MPI_COMM_WORLD */
static int data[4];

static void check_send_arguments(void)
{
    MPI_Request request;
    MPI_Datatype type;

    REFUSED(MPI_Send(data, 1, MPI_INT, 0, 1, MPI_COMM_NULL), MPI_ERR_COMM,
            "comm");
    REFUSED(MPI_Send(data, 1, MPI_INT, 0, 1, (MPI_Comm)0), MPI_ERR_COMM,
            "comm");
    REFUSED(MPI_Send(data, 1, MPI_INT, 0, 1, (MPI_Comm)MPI_INT), MPI_ERR_COMM,
            "comm");
    REFUSED(MPI_Send(data, -1, MPI_INT, 0, 1, comm), MPI_ERR_COUNT, "-1");
    REFUSED(MPI_Send_c(data, -1, MPI_INT, 0, 1, comm), MPI_ERR_COUNT, "-1");
    REFUSED(MPI_Send(data, 1, MPI_DATATYPE_NULL, 0, 1, comm), MPI_ERR_TYPE,
            "datatype");
    REFUSED(MPI_Send(data, 1, MPI_INT, 1, 1, comm), MPI_ERR_RANK, "dest");
    REFUSED(MPI_Send(data, 1, MPI_INT, MPI_ANY_SOURCE, 1, comm), MPI_ERR_RANK,
            "dest");
    REFUSED(MPI_Send(data, 1, MPI_INT, 0, -7, comm), MPI_ERR_TAG, "-7");
    REFUSED(MPI_Send(data, 1, MPI_INT, 0, MPI_ANY_TAG, comm), MPI_ERR_TAG,
            "tag");
    REFUSED(MPI_Send(NULL, 1, MPI_INT, 0, 1, comm), MPI_ERR_BUFFER, "buf");
    REFUSED(MPI_Isend(data, 1, MPI_INT, 0, 1, comm, NULL), MPI_ERR_REQUEST,
            "request");
    EXPECT(MPI_Type_contiguous(2, MPI_INT, &type) == MPI_SUCCESS);
    REFUSED(MPI_Isend(data, 1, type, 0, 1, comm, &request), MPI_ERR_TYPE,
            "commit");
    EXPECT(MPI_Type_free(&type) == MPI_SUCCESS);
    EXPECT(MPI_Send(NULL, 0, MPI_INT, MPI_PROC_NULL, 1, comm) == MPI_SUCCESS);
    EXPECT(MPI_Send(data, 1, MPI_INT, MPI_PROC_NULL, INT_MAX, comm) ==
           MPI_SUCCESS);
}

static void check_receive_arguments(void)
{
    MPI_Status status;
    int flag = 1;

    REFUSED(MPI_Recv(data, 1, MPI_INT, 1, 1, comm, &status), MPI_ERR_RANK,
            "source");
    REFUSED(MPI_Recv(data, 1, MPI_INT, 0, -3, comm, &status), MPI_ERR_TAG,
            "tag");
    REFUSED(MPI_Probe(5, 1, comm, &status), MPI_ERR_RANK, "source");
    REFUSED(MPI_Iprobe(0, 1, comm, NULL, &status), MPI_ERR_ARG, "flag");
    EXPECT(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &flag, &status) ==
           MPI_SUCCESS);
    EXPECT(!flag);
    EXPECT(MPI_Recv(data, 4, MPI_INT, MPI_PROC_NULL, 1, comm, &status) ==
           MPI_SUCCESS);
    EXPECT(status.MPI_SOURCE == MPI_PROC_NULL);
}

static void check_collective_arguments(void)
{
    int out[4];

    REFUSED(MPI_Bcast(data, 1, MPI_INT, 1, comm), MPI_ERR_ROOT, "root");
    REFUSED(MPI_Bcast(data, 1, MPI_INT, MPI_ROOT, comm), MPI_ERR_ROOT, "root");
    REFUSED(MPI_Bcast(data, -1, MPI_INT, 0, comm), MPI_ERR_COUNT, "count");
    REFUSED(MPI_Allreduce(data, out, 1, MPI_INT, MPI_OP_NULL, comm), MPI_ERR_OP,
            "op");
    REFUSED(MPI_Allreduce(data, NULL, 1, MPI_INT, MPI_SUM, comm),
            MPI_ERR_BUFFER, "recvbuf");
    REFUSED(MPI_Gather(data, 1, MPI_INT, out, 1, MPI_DATATYPE_NULL, 0, comm),
            MPI_ERR_TYPE, "recvtype");
    REFUSED(MPI_Barrier(MPI_COMM_NULL), MPI_ERR_COMM, "comm");
    /* Not significant: the send side of an in-place call. */
    EXPECT(MPI_Gather(MPI_IN_PLACE, -1, (MPI_Datatype)(intptr_t)-64, out, 1,
                      MPI_INT, 0, comm) == MPI_SUCCESS);
    EXPECT(MPI_Allgather(MPI_IN_PLACE, -1, (MPI_Datatype)(intptr_t)-64, out, 1,
                         MPI_INT, comm) == MPI_SUCCESS);
}

static void check_other_arguments(void)
{
    MPI_Comm made;
    MPI_Group group;
    int rank;

    REFUSED(MPI_Comm_rank(comm, NULL), MPI_ERR_ARG, "rank");
    REFUSED(MPI_Comm_size(MPI_COMM_NULL, &rank), MPI_ERR_COMM, "comm");
    REFUSED(MPI_Comm_dup(comm, NULL), MPI_ERR_ARG, "newcomm");
    REFUSED(MPI_Group_rank(MPI_GROUP_NULL, &rank), MPI_ERR_GROUP, "group");
    REFUSED(MPI_Comm_create(comm, (MPI_Group)MPI_INT, &made), MPI_ERR_GROUP,
            "group");
    REFUSED(MPI_Info_set(MPI_INFO_NULL, "a", "b"), MPI_ERR_INFO, "info");
    REFUSED(MPI_Comm_set_errhandler(comm, MPI_ERRHANDLER_NULL),
            MPI_ERR_ERRHANDLER, "errhandler");
    EXPECT(MPI_Comm_group(comm, &group) == MPI_SUCCESS);
    EXPECT(MPI_Group_free(&group) == MPI_SUCCESS);
}

/* Lists may be NULL when they are empty, and only then. */
static void check_lists(void)
{
    MPI_Group group, made;
    MPI_Datatype type;
    int one[1] = {1};
    MPI_Aint place[1] = {0};

    EXPECT(MPI_Comm_group(comm, &group) == MPI_SUCCESS);
    REFUSED(MPI_Group_incl(group, -1, one, &made), MPI_ERR_ARG, "n is -1");
    REFUSED(MPI_Group_excl(group, -1, one, &made), MPI_ERR_ARG, "n is -1");
    REFUSED(MPI_Group_range_incl(group, -1, NULL, &made), MPI_ERR_ARG,
            "n is -1");
    REFUSED(MPI_Group_incl(group, 1, NULL, &made), MPI_ERR_ARG, "ranks");
    REFUSED(MPI_Group_range_excl(group, 1, NULL, &made), MPI_ERR_ARG, "ranges");
    EXPECT(MPI_Group_incl(group, 0, NULL, &made) == MPI_SUCCESS);
    EXPECT(made == MPI_GROUP_EMPTY);
    EXPECT(MPI_Group_free(&group) == MPI_SUCCESS);
    REFUSED(MPI_Type_indexed(1, NULL, one, MPI_INT, &type), MPI_ERR_ARG,
            "array_of_blocklengths");
    REFUSED(MPI_Type_create_hindexed_block(1, 1, NULL, MPI_INT, &type),
            MPI_ERR_ARG, "array_of_displacements");
    REFUSED(MPI_Type_create_struct(1, one, place, NULL, &type), MPI_ERR_ARG,
            "array_of_types");
    REFUSED(MPI_Type_create_subarray(1, one, one, NULL, MPI_ORDER_C, MPI_INT,
                                     &type),
            MPI_ERR_ARG, "array_of_starts");
    EXPECT(MPI_Type_create_struct(0, NULL, NULL, NULL, &type) == MPI_SUCCESS);
    EXPECT(MPI_Type_free(&type) == MPI_SUCCESS);
}

/* A communicator that was freed is refused, not followed. */
static void check_stale_handle(void)
{
    MPI_Comm made, copy;

    EXPECT(MPI_Comm_dup(comm, &made) == MPI_SUCCESS);
    copy = made;
    EXPECT(MPI_Comm_free(&made) == MPI_SUCCESS);
    EXPECT(made == MPI_COMM_NULL);
    (void)copy; /* reading it is legal only while the memory is mapped */
}

int main(int argc, char **argv)
{
    comm = MPI_COMM_WORLD;
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    check_send_arguments();
    check_receive_arguments();
    check_collective_arguments();
    check_other_arguments();
    check_lists();
    check_stale_handle();
    MPI_Finalize();
    return expect_failures != 0;
}
