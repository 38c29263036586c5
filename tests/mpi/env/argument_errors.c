/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Wrong arguments: the right error class through MPI_ERRORS_RETURN and
 * through a handler of the user's; with "fatal", the default ends the job, and
 * with "status CALL" it does so for a request that is one of several.
 */
#include "check.h"

static struct {
    int calls;
    int class;
} handled;

static void expect(int error, int class, const char *what)
{
    int got = MPI_SUCCESS;

    if (error != MPI_SUCCESS)
        MPI_Error_class(error, &got);
    CHECK(got == class, "%s: error class %d, not %d", what, got, class);
}

static void wrong_arguments(void)
{
    int value = 0;
    MPI_Request request;
    MPI_Comm comm;
    int size = check_size();

    expect(MPI_Send(&value, 1, MPI_INT, size, 0, MPI_COMM_WORLD), MPI_ERR_RANK,
           "send to a rank beyond the last");
    expect(MPI_Send(&value, 1, MPI_INT, -77, 0, MPI_COMM_WORLD), MPI_ERR_RANK,
           "send to a negative rank");
    expect(MPI_Recv(&value, 1, MPI_INT, size, 0, MPI_COMM_WORLD,
                    MPI_STATUS_IGNORE),
           MPI_ERR_RANK, "receive from a rank beyond the last");
    expect(MPI_Send(&value, -1, MPI_INT, 0, 0, MPI_COMM_WORLD), MPI_ERR_COUNT,
           "negative count");
    expect(MPI_Send(&value, 1, MPI_DATATYPE_NULL, 0, 0, MPI_COMM_WORLD),
           MPI_ERR_TYPE, "null datatype");
    expect(MPI_Send(&value, 1, MPI_INT, 0, -5, MPI_COMM_WORLD), MPI_ERR_TAG,
           "negative tag");
    expect(
        MPI_Isend(&value, 1, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &request),
        MPI_ERR_TAG, "send with any tag");
    expect(MPI_Comm_dup(MPI_COMM_NULL, &comm), MPI_ERR_COMM,
           "dup of the null communicator");
    expect(MPI_Bcast(&value, 1, MPI_INT, size, MPI_COMM_WORLD), MPI_ERR_ROOT,
           "bcast from a rank beyond the last");
    expect(MPI_Allreduce(&value, &value + 1, 0, MPI_INT, MPI_OP_NULL,
                         MPI_COMM_WORLD),
           MPI_ERR_OP, "allreduce with the null operation");
}

static void handler(MPI_Comm *comm, int *error, ...)
{
    CHECK(*comm == MPI_COMM_WORLD, "handler got another communicator");
    handled.calls++;
    MPI_Error_class(*error, &handled.class);
}

static void own_handler(void)
{
    MPI_Errhandler own;
    int value = 0;

    MPI_Comm_create_errhandler(handler, &own);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, own);
    MPI_Errhandler_free(&own);
    int error = MPI_Send(&value, 1, MPI_INT, check_size(), 0, MPI_COMM_WORLD);
    expect(error, MPI_ERR_RANK, "error after the handler returned");
    CHECK(handled.calls == 1 && handled.class == MPI_ERR_RANK,
          "handler was called %d times, class %d", handled.calls,
          handled.class);
    /* A copy inherits the handler; this communicator keeps its own. */
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

static int fail_query(void *state, MPI_Status *status)
{
    (void)state;
    (void)status;
    return MPI_ERR_OTHER;
}

static int free_nothing(void *state)
{
    (void)state;
    return MPI_SUCCESS;
}

static int cancel_nothing(void *state, int is_complete)
{
    (void)state;
    (void)is_complete;
    return MPI_SUCCESS;
}

/* An error without words of its own does not borrow those of an earlier one,
 * and what was told of an error stays what it was. */
static void words_of_earlier_errors(void)
{
    char first[MPI_MAX_ERROR_STRING];
    char text[MPI_MAX_ERROR_STRING];
    MPI_Request request;
    int value = 0;
    int len;

    expect(MPI_Send(&value, 1, MPI_INT, check_size(), 0, MPI_COMM_WORLD),
           MPI_ERR_RANK, "send to a rank beyond the last");
    MPI_Error_string(MPI_ERR_RANK, first, &len);
    CHECK(strstr(first, "MPI_Send: ") && strstr(first, "dest"), "%s", first);
    MPI_Grequest_start(fail_query, free_nothing, cancel_nothing, NULL,
                       &request);
    MPI_Grequest_complete(request);
    MPI_Error_string(MPI_ERR_RANK, text, &len);
    CHECK(strcmp(first, text) == 0, "%s", text);
    expect(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_ERR_OTHER,
           "a query function that fails");
    MPI_Error_string(MPI_ERR_OTHER, text, &len);
    CHECK(!strstr(text, "MPI_Send") && !strstr(text, "dest"), "%s", text);
}

static int truncated_query(void *state, MPI_Status *status)
{
    (void)state;
    MPI_Status_set_elements(status, MPI_BYTE, 0);
    return MPI_ERR_TRUNCATE;
}

/* A status that is only looked at leaves no words for an error of the same
 * class. */
static void words_of_what_was_looked_at(void)
{
    char text[MPI_MAX_ERROR_STRING];
    MPI_Request requests[2];
    MPI_Status status;
    int values[3] = {0};
    int small;
    int flag = 0;
    int len;

    MPI_Irecv(&small, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &requests[0]);
    MPI_Isend(values, 3, MPI_INT, 0, 1, MPI_COMM_SELF, &requests[1]);
    while (!flag)
        MPI_Request_get_status(requests[0], &flag, &status);
    MPI_Request_free(&requests[0]);
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    MPI_Grequest_start(truncated_query, free_nothing, cancel_nothing, NULL,
                       &requests[0]);
    MPI_Grequest_complete(requests[0]);
    expect(MPI_Wait(&requests[0], MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE,
           "a query function that fails");
    MPI_Error_string(MPI_ERR_TRUNCATE, text, &len);
    CHECK(!strstr(text, "12 bytes"), "%s", text);
}

/* Rank 1 completes one receive that is too short, of three, with the call of
 * this name. */
static void fail_one_of_three(const char *name)
{
    int values[6] = {0};
    MPI_Request requests[3];
    int indices[3];
    int flag = 0;
    int done = 0;

    if (check_rank() == 0)
        for (int i = 0; i < 3; i++)
            MPI_Send(values, i == 1 ? 3 : 1, MPI_INT, 1, i, MPI_COMM_WORLD);
    if (check_rank() != 1)
        return;
    for (int i = 0; i < 3; i++)
        MPI_Irecv(&values[i], 1, MPI_INT, i == 2 ? MPI_ANY_SOURCE : 0, i,
                  MPI_COMM_WORLD, &requests[i]);
    if (strcmp(name, "waitall") == 0)
        MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    while (strcmp(name, "testall") == 0 && !flag)
        MPI_Testall(3, requests, &flag, MPI_STATUSES_IGNORE);
    while (strcmp(name, "waitsome") == 0 && done != MPI_UNDEFINED)
        MPI_Waitsome(3, requests, &done, indices, MPI_STATUSES_IGNORE);
    while (strcmp(name, "testsome") == 0 && done != MPI_UNDEFINED)
        MPI_Testsome(3, requests, &done, indices, MPI_STATUSES_IGNORE);
}

/* The words of the error that the last call returned. */
static void expect_words(int error, const char *words)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int len;

    if (error != MPI_SUCCESS)
        MPI_Error_string(error, text, &len);
    CHECK(strstr(text, words), "'%s' is not in '%s'", words, text);
}

/* Each says what is wanted, and what there is. */
static void words_with_numbers(void)
{
    const int periods[3] = {0};
    const int grid[3] = {1000, 3, 1};
    const int huge[3] = {2000000000, 2000000000, 2000000000};
    int dims[] = {4, 0, 30};
    char want[96];
    char data[100] = {0};
    char buffer[300];
    void *address;
    int size;
    MPI_Comm comm;
    MPI_Request requests[2];

    (void)snprintf(want, sizeof(want),
                   "needs 3000 processes, the communicator has %d",
                   check_size());
    expect_words(MPI_Cart_create(MPI_COMM_WORLD, 3, grid, periods, 0, &comm),
                 want);
    expect_words(MPI_Cart_create(MPI_COMM_WORLD, 3, huge, periods, 0, &comm),
                 "at least 4000000000000000000 processes");
    expect_words(MPI_Dims_create(7, 3, dims), "dimensions 4 x 0 x 30; those");
    expect_words(MPI_Dims_create(7, 0, dims), "dimensions none");
    expect_words(MPI_Comm_split(MPI_COMM_WORLD, -5, 0, &comm), "MPI_UNDEFINED");

    MPI_Psend_init(data, 4, 25, MPI_CHAR, 0, 0, MPI_COMM_SELF, MPI_INFO_NULL,
                   &requests[0]);
    MPI_Precv_init(buffer, 4, 25, MPI_CHAR, 0, 0, MPI_COMM_SELF, MPI_INFO_NULL,
                   &requests[1]);
    MPI_Start(&requests[0]);
    expect_words(MPI_Pready(4, requests[0]),
                 "partition 4; the operation has 4, counted from 0");
    MPI_Pready_range(0, 3, requests[0]);
    MPI_Start(&requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);

    MPI_Buffer_attach(buffer, sizeof(data));
    expect_words(MPI_Bsend(data, 100, MPI_CHAR, 0, 0, MPI_COMM_SELF),
                 "100 bytes do not fit into the attached buffer of 100 bytes");
    MPI_Buffer_detach(&address, &size);
}

int main(int argc, char **argv)
{
    int value = 0;

    check_start(&argc, &argv);
    if (argc > 2 && strcmp(argv[1], "status") == 0) {
        fail_one_of_three(argv[2]);
        MPI_Barrier(MPI_COMM_WORLD);
        return check_finish();
    }
    if (argc > 1 && strcmp(argv[1], "fatal") == 0) {
        if (check_rank() == check_size() - 1)
            MPI_Send(&value, 1, MPI_INT, check_size(), 0, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
        return check_finish();
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    /* It gets the errors that belong to no communicator (MPI 5.0, 9.3). */
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    wrong_arguments();
    words_of_earlier_errors();
    words_of_what_was_looked_at();
    words_with_numbers();
    own_handler();
    return check_finish();
}
