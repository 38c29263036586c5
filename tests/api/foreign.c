/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program of another implementation of the standard ABI: it sees neither our
 * header nor our wrappers; see the script "foreign". Any number of ranks.
 */
#include <mpi.h>
#include <stddef.h>
#include <string.h>

#include "expect.h"

static int rank;
static int size;

static void versions(void)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int major = -1;
    int minor = -1;
    int len = -1;

    EXPECT(MPI_Abi_get_version(&major, &minor) == MPI_SUCCESS);
    EXPECT(major == MPI_ABI_VERSION && minor == MPI_ABI_SUBVERSION);
    EXPECT(MPI_Get_version(&major, &minor) == MPI_SUCCESS);
    EXPECT(major == MPI_VERSION && minor == MPI_SUBVERSION);
    EXPECT(MPI_Get_library_version(text, &len) == MPI_SUCCESS);
    EXPECT(len > 0 && len < MPI_MAX_LIBRARY_VERSION_STRING);
}

static void messages(void)
{
    int next = (rank + 1) % size;
    int last = (rank + size - 1) % size;
    double in[3] = {0};
    double out[3] = {rank + 0.5, 1, 2};
    MPI_Request requests[2];
    MPI_Status statuses[2];
    int count = -1;

    MPI_Irecv(in, 3, MPI_DOUBLE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
              &requests[0]);
    MPI_Isend(out, 3, MPI_DOUBLE, next, 17, MPI_COMM_WORLD, &requests[1]);
    EXPECT(MPI_Waitall(2, requests, statuses) == MPI_SUCCESS);
    EXPECT(statuses[0].MPI_SOURCE == last && statuses[0].MPI_TAG == 17);
    EXPECT(MPI_Get_count(&statuses[0], MPI_DOUBLE, &count) == MPI_SUCCESS);
    EXPECT(count == 3 && in[0] == last + 0.5 && in[2] == 2);
    EXPECT(requests[0] == MPI_REQUEST_NULL);
    EXPECT(MPI_Sendrecv(out, 1, MPI_DOUBLE, MPI_PROC_NULL, 0, in, 1, MPI_DOUBLE,
                        MPI_PROC_NULL, 0, MPI_COMM_WORLD,
                        MPI_STATUS_IGNORE) == MPI_SUCCESS);
}

static void twice(void *in, void *inout, int *len, MPI_Datatype *type)
{
    EXPECT(*type == MPI_INT);
    for (int i = 0; i < *len; i++)
        ((int *)inout)[i] += ((int *)in)[i];
}

static void collectives(void)
{
    int one = 1;
    int sum = -1;
    MPI_Count wide = 1;
    MPI_Op op;

    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    EXPECT(sum == size);
    MPI_Allreduce_c(MPI_IN_PLACE, &wide, 1, MPI_COUNT, MPI_SUM, MPI_COMM_WORLD);
    EXPECT(wide == size);
    MPI_Op_create(twice, 1, &op);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, op, MPI_COMM_WORLD);
    EXPECT(sum == size);
    MPI_Op_free(&op);
    EXPECT(op == MPI_OP_NULL);
}

static void types(void)
{
    int data[6] = {1, 2, 3, 4, 5, 6};
    int got[3] = {0};
    int position = 0;
    int bytes = -1;
    MPI_Datatype column;

    MPI_Type_vector(3, 1, 2, MPI_INT, &column);
    MPI_Type_commit(&column);
    MPI_Type_size(column, &bytes);
    EXPECT(bytes == (int)(3 * sizeof(int)));
    MPI_Pack(data, 1, column, got, sizeof(got), &position, MPI_COMM_WORLD);
    EXPECT(got[0] == 1 && got[1] == 3 && got[2] == 5);
    EXPECT(MPI_Type_fromint(MPI_Type_toint(column)) == column);
    MPI_Type_free(&column);
    EXPECT(column == MPI_DATATYPE_NULL);
}

static void communicators(void)
{
    int keyval = MPI_KEYVAL_INVALID;
    int value = 5;
    int flag = 0;
    void *got = NULL;
    MPI_Comm copy;

    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &got, &flag);
    EXPECT(flag && *(int *)got >= 32767);
    MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &keyval,
                           NULL);
    MPI_Comm_set_attr(MPI_COMM_WORLD, keyval, &value);
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    got = NULL;
    MPI_Comm_get_attr(copy, keyval, &got, &flag);
    EXPECT(flag && got == &value);
    MPI_Comm_free(&copy);
    MPI_Comm_free_keyval(&keyval);
    EXPECT(copy == MPI_COMM_NULL && keyval == MPI_KEYVAL_INVALID);
}

static void errors(void)
{
    char text[MPI_MAX_ERROR_STRING];
    int class = -1;
    int len = -1;
    int rc;

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    rc = MPI_Send(NULL, 0, MPI_INT, size, 0, MPI_COMM_WORLD);
    EXPECT(MPI_Error_class(rc, &class) == MPI_SUCCESS);
    EXPECT(class == MPI_ERR_RANK);
    EXPECT(MPI_Error_string(rc, text, &len) == MPI_SUCCESS);
    EXPECT(len > 0 && (size_t)len == strlen(text));
}

int main(int argc, char **argv)
{
    int provided = -1;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    EXPECT(provided >= MPI_THREAD_FUNNELED);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    versions();
    messages();
    collectives();
    types();
    communicators();
    errors();
    EXPECT(PMPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS);
    MPI_Finalize();
    return expect_failures != 0;
}
