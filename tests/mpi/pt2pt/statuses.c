/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Statuses that are read and set (MPI 5.0, sections 3.2.5 and 13.3), combined
 * non-blocking exchanges (3.10), handles of every kind as integers (chapter 20)
 * and what the deprecated calls do.
 */
#include "check.h"

static void fields(void)
{
    MPI_Status status;
    int value = -1;
    int flag = -1;
    MPI_Count wide = -1;
    MPI_Datatype pair;

    memset(&status, 0, sizeof(status));
    MPI_Status_set_source(&status, 11);
    MPI_Status_set_tag(&status, 12);
    MPI_Status_set_error(&status, MPI_ERR_TRUNCATE);
    CHECK(status.MPI_SOURCE == 11 && status.MPI_TAG == 12 &&
              status.MPI_ERROR == MPI_ERR_TRUNCATE,
          "set");
    MPI_Status_get_source(&status, &value);
    CHECK(value == 11, "source %d", value);
    MPI_Status_get_tag(&status, &value);
    CHECK(value == 12, "tag %d", value);
    MPI_Status_get_error(&status, &value);
    CHECK(value == MPI_ERR_TRUNCATE, "error %d", value);
    MPI_Status_set_cancelled(&status, 5);
    MPI_Test_cancelled(&status, &flag);
    CHECK(flag == 1, "cancelled: %d", flag);
    MPI_Status_set_cancelled(&status, 0);
    MPI_Test_cancelled(&status, &flag);
    CHECK(flag == 0, "cancelled: %d", flag);

    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    MPI_Status_set_elements(&status, MPI_INT, 7);
    MPI_Get_elements(&status, pair, &value);
    CHECK(value == 7, "%d elements", value);
    MPI_Get_count(&status, pair, &value);
    CHECK(value == MPI_UNDEFINED, "%d pairs in 7 integers", value);
    MPI_Status_set_elements_c(&status, pair, 6);
    MPI_Get_count(&status, pair, &value);
    CHECK(value == 3, "%d pairs", value); /* compatible with 6 elements */
    MPI_Get_elements(&status, pair, &value);
    CHECK(value == 6, "%d elements", value);
    MPI_Status_set_elements_x(&status, MPI_BYTE, (MPI_Count)5 << 40);
    MPI_Get_elements_x(&status, MPI_BYTE, &wide);
    CHECK(wide == (MPI_Count)5 << 40, "%lld elements", (long long)wide);
    MPI_Get_count_c(&status, MPI_BYTE, &wide);
    CHECK(wide == (MPI_Count)5 << 40, "%lld bytes", (long long)wide);
    MPI_Get_count(&status, MPI_BYTE, &value);
    CHECK(value == MPI_UNDEFINED, "%d bytes in an int", value);
    MPI_Get_elements(&status, MPI_BYTE, &value);
    CHECK(value == MPI_UNDEFINED, "%d elements in an int", value);
    MPI_Type_free(&pair);
}

static void exchanges(void)
{
    int size = check_size();
    int next = (check_rank() + 1) % size;
    int last = (check_rank() + size - 1) % size;
    int out[1000];
    int in[1000];
    MPI_Request requests[3];
    MPI_Status statuses[3];
    int count = -1;

    for (int n = 1; n <= 1000; n += 333) {
        for (int i = 0; i < n; i++)
            out[i] = check_rank() * 10000 + i;
        memset(in, 0, sizeof(in));
        MPI_Isendrecv(out, n, MPI_INT, next, 3, in, 1000, MPI_INT, last, 3,
                      MPI_COMM_WORLD, &requests[0]);
        MPI_Isendrecv_replace(out, 0, MPI_INT, MPI_PROC_NULL, 3, MPI_PROC_NULL,
                              3, MPI_COMM_WORLD, &requests[1]);
        MPI_Irecv(NULL, 0, MPI_INT, MPI_PROC_NULL, 3, MPI_COMM_WORLD,
                  &requests[2]);
        MPI_Waitall(3, requests, statuses);
        MPI_Get_count(&statuses[0], MPI_INT, &count);
        CHECK(count == n && statuses[0].MPI_SOURCE == last &&
                  statuses[0].MPI_TAG == 3,
              "status: %d from %d tag %d", count, statuses[0].MPI_SOURCE,
              statuses[0].MPI_TAG);
        CHECK(statuses[1].MPI_SOURCE == MPI_PROC_NULL, "source %d of nobody",
              statuses[1].MPI_SOURCE);
        for (int i = 0; i < n; i++)
            CHECK(in[i] == last * 10000 + i, "element %d is %d", i, in[i]);
        MPI_Isendrecv_replace(out, n, MPI_INT, next, 4, MPI_ANY_SOURCE,
                              MPI_ANY_TAG, MPI_COMM_WORLD, &requests[0]);
        MPI_Wait(&requests[0], &statuses[0]);
        MPI_Get_count(&statuses[0], MPI_INT, &count);
        CHECK(count == n && statuses[0].MPI_SOURCE == last &&
                  statuses[0].MPI_TAG == 4,
              "replaced: %d from %d tag %d", count, statuses[0].MPI_SOURCE,
              statuses[0].MPI_TAG);
        for (int i = 0; i < n; i++)
            CHECK(out[i] == last * 10000 + i, "element %d is %d", i, out[i]);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

#define BOTH_WAYS(name, handle)                                                \
    do {                                                                       \
        int number_ = MPI_##name##_toint(handle);                              \
        CHECK(MPI_##name##_fromint(number_) == (handle), #name " by number");  \
        CHECK(MPI_##name##_c2f(handle) == number_, #name "_c2f");              \
        CHECK(MPI_##name##_f2c(number_) == (handle), #name "_f2c");            \
    } while (0)

static int nothing(void *extra, MPI_Status *status)
{
    (void)extra;
    (void)status;
    return MPI_SUCCESS;
}

static int no_free(void *extra)
{
    (void)extra;
    return MPI_SUCCESS;
}

static int no_cancel(void *extra, int complete)
{
    (void)extra;
    (void)complete;
    return MPI_SUCCESS;
}

static void on_comm(MPI_Comm *comm, int *error, ...)
{
    (void)comm;
    (void)error;
}

static void add(void *in, void *inout, int *len, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *len; i++)
        ((int *)inout)[i] += ((int *)in)[i];
}

/* MPI_Message_c2f and its like have the same names in the ABI. */
static void numbers_of_objects(void)
{
    MPI_Comm comm;
    MPI_Datatype type;
    MPI_Errhandler errhandler;
    MPI_Group group;
    MPI_Info info;
    MPI_Op op;
    MPI_Request request;
    MPI_Session session;
    MPI_Message message;
    int value = 1;
    int in = 0;

    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    MPI_Type_contiguous(3, MPI_INT, &type);
    MPI_Comm_create_errhandler(on_comm, &errhandler);
    MPI_Comm_group(comm, &group);
    MPI_Info_create(&info);
    MPI_Op_create(add, 1, &op);
    MPI_Grequest_start(nothing, no_free, no_cancel, NULL, &request);
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
    MPI_Send(&value, 1, MPI_INT, 0, 0, comm);
    MPI_Mprobe(0, 0, comm, &message, MPI_STATUS_IGNORE);
    BOTH_WAYS(Comm, comm);
    BOTH_WAYS(Type, type);
    BOTH_WAYS(Errhandler, errhandler);
    BOTH_WAYS(Group, group);
    BOTH_WAYS(Info, info);
    BOTH_WAYS(Op, op);
    BOTH_WAYS(Request, request);
    BOTH_WAYS(Session, session);
    BOTH_WAYS(Message, message);
    message = MPI_Message_fromint(MPI_Message_toint(message));
    MPI_Mrecv(&in, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
    CHECK(in == 1 && message == MPI_MESSAGE_NULL, "message by number");
    MPI_Grequest_complete(request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Session_finalize(&session);
    MPI_Op_free(&op);
    MPI_Info_free(&info);
    MPI_Group_free(&group);
    MPI_Errhandler_free(&errhandler);
    MPI_Type_free(&type);
    MPI_Comm_free(&comm);
}

static void numbers_of_constants(void)
{
    BOTH_WAYS(Comm, MPI_COMM_NULL);
    BOTH_WAYS(Comm, MPI_COMM_WORLD);
    BOTH_WAYS(Comm, MPI_COMM_SELF);
    BOTH_WAYS(Type, MPI_DATATYPE_NULL);
    BOTH_WAYS(Type, MPI_2INT);
    BOTH_WAYS(Type, MPI_PACKED);
    BOTH_WAYS(Errhandler, MPI_ERRHANDLER_NULL);
    BOTH_WAYS(Errhandler, MPI_ERRORS_RETURN);
    BOTH_WAYS(Errhandler, MPI_ERRORS_ABORT);
    BOTH_WAYS(File, MPI_FILE_NULL);
    BOTH_WAYS(Group, MPI_GROUP_NULL);
    BOTH_WAYS(Group, MPI_GROUP_EMPTY);
    BOTH_WAYS(Info, MPI_INFO_NULL);
    BOTH_WAYS(Info, MPI_INFO_ENV);
    BOTH_WAYS(Message, MPI_MESSAGE_NULL);
    BOTH_WAYS(Message, MPI_MESSAGE_NO_PROC);
    BOTH_WAYS(Op, MPI_OP_NULL);
    BOTH_WAYS(Op, MPI_NO_OP);
    BOTH_WAYS(Request, MPI_REQUEST_NULL);
    BOTH_WAYS(Session, MPI_SESSION_NULL);
    BOTH_WAYS(Win, MPI_WIN_NULL);
    CHECK(MPI_Comm_toint(MPI_Comm_fromint(-1)) == -1 &&
              MPI_Comm_toint(MPI_Comm_f2c(0x7fffffff)) == 0x7fffffff &&
              MPI_Comm_toint(MPI_Comm_fromint(0x1100)) == 0x1100,
          "a number that nobody was given");
}

static int copies;
static int deletions;

static int copy_attr(MPI_Comm comm, int keyval, void *extra, void *in,
                     void *out, int *flag)
{
    (void)comm;
    (void)keyval;
    CHECK(extra == &copies, "extra state");
    copies++;
    *(void **)out = (char *)in + 1;
    *flag = 1;
    return MPI_SUCCESS;
}

static int delete_attr(MPI_Comm comm, int keyval, void *value, void *extra)
{
    (void)comm;
    (void)keyval;
    (void)value;
    CHECK(extra == &copies, "extra state");
    deletions++;
    return MPI_SUCCESS;
}

static void deprecated(void)
{
    char text[4];
    int keyval = MPI_KEYVAL_INVALID;
    char *got = NULL;
    int flag = 0;
    MPI_Comm comm;
    MPI_Comm copy;
    MPI_Count a = -1;
    MPI_Count b = -1;

    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    MPI_Keyval_create(copy_attr, delete_attr, &keyval, &copies);
    MPI_Attr_get(comm, keyval, &got, &flag);
    CHECK(!flag, "an attribute before it was put");
    MPI_Attr_put(comm, keyval, text);
    MPI_Attr_get(comm, keyval, &got, &flag);
    CHECK(flag && got == text, "the attribute");
    MPI_Comm_dup(comm, &copy);
    MPI_Attr_get(copy, keyval, &got, &flag);
    CHECK(flag && got == text + 1 && copies == 1, "the copy's attribute");
    MPI_Attr_delete(comm, keyval);
    CHECK(deletions == 1, "%d deletions", deletions);
    MPI_Keyval_free(&keyval);
    CHECK(keyval == MPI_KEYVAL_INVALID, "the key is %d", keyval);
    MPI_Comm_free(&copy);
    CHECK(deletions == 2, "%d deletions", deletions);
    MPI_Attr_get(MPI_COMM_WORLD, MPI_TAG_UB, &got, &flag);
    CHECK(flag && *(int *)(void *)got >= 32767, "MPI_TAG_UB");
    MPI_Comm_free(&comm);
    MPI_Type_size_x(MPI_DOUBLE, &a);
    CHECK(a == 8, "size %lld", (long long)a);
    MPI_Type_get_extent_x(MPI_DOUBLE, &a, &b);
    CHECK(a == 0 && b == 8, "extent %lld", (long long)b);
    MPI_Type_get_true_extent_x(MPI_DOUBLE, &a, &b);
    CHECK(a == 0 && b == 8, "true extent %lld", (long long)b);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    fields();
    exchanges();
    numbers_of_constants();
    numbers_of_objects();
    deprecated();
    return check_finish();
}
