/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Generalized requests (MPI 5.0, section 13.2): which callback runs when,
 * what they return and where it comes out, in every call that completes.
 */
#include <pthread.h>

#include "check.h"

struct state {
    int queries;
    int frees;
    int cancels;
    int was_complete; /* what cancel was told */
    int query_code;   /* to return */
    int free_code;
    int cancel_code;
    int count; /* elements of MPI_INT for the status */
    int is_cancelled;
    int has_freed_before_query;
};

static int query(void *extra, MPI_Status *status)
{
    struct state *s = extra;

    s->queries++;
    s->has_freed_before_query |= s->frees > 0;
    MPI_Status_set_elements(status, MPI_INT, s->count);
    MPI_Status_set_cancelled(status, s->is_cancelled);
    MPI_Status_set_source(status, 71);
    MPI_Status_set_tag(status, 72);
    return s->query_code;
}

static int release(void *extra)
{
    struct state *s = extra;

    s->frees++;
    return s->free_code;
}

static int cancel(void *extra, int complete)
{
    struct state *s = extra;

    s->cancels++;
    s->was_complete = complete;
    return s->cancel_code;
}

static MPI_Request begin(struct state *s)
{
    MPI_Request request = MPI_REQUEST_NULL;

    *s = (struct state){.count = 5};
    CHECK(MPI_Grequest_start(query, release, cancel, s, &request) ==
              MPI_SUCCESS,
          "start");
    return request;
}

static void expect_calls(const struct state *s, int queries, int frees,
                         const char *what)
{
    CHECK(s->queries == queries && s->frees == frees,
          "%s: %d queries, %d frees instead of %d, %d", what, s->queries,
          s->frees, queries, frees);
    CHECK(!s->has_freed_before_query, "%s: freed before the query", what);
}

static void expect_status(MPI_Status *status, int count, const char *what)
{
    int got = -1;
    int flag = -1;

    MPI_Get_count(status, MPI_INT, &got);
    MPI_Test_cancelled(status, &flag);
    CHECK(got == count && !flag, "%s: count %d, cancelled %d", what, got, flag);
    CHECK(status->MPI_SOURCE == 71 && status->MPI_TAG == 72,
          "%s: source %d, tag %d", what, status->MPI_SOURCE, status->MPI_TAG);
}

static void completed_by_one(void)
{
    struct state s;
    MPI_Status status = {.MPI_ERROR = 99};
    MPI_Request request = begin(&s);
    MPI_Request copy;
    int flag = 1;
    int index = -1;

    CHECK(MPI_Test(&request, &flag, &status) == MPI_SUCCESS && !flag, "early");
    MPI_Request_get_status(request, &flag, &status);
    CHECK(!flag, "early");
    expect_calls(&s, 0, 0, "early");
    MPI_Grequest_complete(request);
    MPI_Request_get_status(request, &flag, &status);
    CHECK(flag, "complete");
    expect_status(&status, 5, "get_status");
    expect_calls(&s, 1, 0, "get_status");
    CHECK(MPI_Wait(&request, &status) == MPI_SUCCESS, "wait");
    CHECK(request == MPI_REQUEST_NULL, "the request is still there");
    CHECK(status.MPI_ERROR == 99, "MPI_Wait has set MPI_ERROR");
    expect_status(&status, 5, "wait");
    expect_calls(&s, 2, 1, "wait");

    request = begin(&s);
    MPI_Grequest_complete(request);
    CHECK(MPI_Test(&request, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS && flag,
          "test");
    expect_calls(&s, 1, 1, "test without a status");

    request = begin(&s);
    copy = request;
    MPI_Request_free(&request);
    CHECK(request == MPI_REQUEST_NULL && s.frees == 0, "freed while active");
    MPI_Grequest_complete(copy);
    expect_calls(&s, 0, 1, "complete after free");

    request = begin(&s);
    MPI_Grequest_complete(request);
    MPI_Request_free(&request);
    expect_calls(&s, 0, 1, "free after complete");

    request = begin(&s);
    MPI_Grequest_complete(request);
    CHECK(MPI_Waitany(1, &request, &index, &status) == MPI_SUCCESS &&
              index == 0,
          "waitany");
    expect_status(&status, 5, "waitany");
    expect_calls(&s, 1, 1, "waitany");
}

static void cancelled(void)
{
    struct state s;
    MPI_Status status;
    MPI_Request request = begin(&s);
    int flag = -1;

    CHECK(MPI_Cancel(&request) == MPI_SUCCESS, "cancel");
    CHECK(s.cancels == 1 && s.was_complete == 0, "%d cancels, complete %d",
          s.cancels, s.was_complete);
    s.is_cancelled = 1;
    MPI_Grequest_complete(request);
    CHECK(MPI_Cancel(&request) == MPI_SUCCESS && s.cancels == 2 &&
              s.was_complete == 1,
          "%d cancels, complete %d", s.cancels, s.was_complete);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &flag);
    CHECK(flag == 1, "not cancelled");
    expect_calls(&s, 1, 1, "cancelled");
}

enum { MANY = 6 };

/* 0: good; 1: the query fails; 2: free fails; 3: both; 4: pending receive of
 * nothing; 5: MPI_REQUEST_NULL. */
static void start_many(struct state *s, MPI_Request *requests)
{
    for (int i = 0; i < 4; i++) {
        requests[i] = begin(&s[i]);
        s[i].count = i;
        s[i].query_code = i & 1 ? MPI_ERR_FILE : MPI_SUCCESS;
        s[i].free_code = i & 2 ? MPI_ERR_NAME : MPI_SUCCESS;
        MPI_Grequest_complete(requests[i]);
    }
    MPI_Irecv(NULL, 0, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_SELF, &requests[4]);
    requests[5] = MPI_REQUEST_NULL;
}

static void expect_many(const struct state *s, MPI_Status *statuses,
                        const int *indices, int n, const char *what)
{
    /* Of two that fail, the last callback counts (section 13.2). */
    static const int errors[] = {MPI_SUCCESS,  MPI_ERR_FILE, MPI_ERR_NAME,
                                 MPI_ERR_NAME, MPI_SUCCESS,  MPI_SUCCESS};

    for (int i = 0; i < n; i++) {
        int at = indices ? indices[i] : i;

        CHECK(statuses[i].MPI_ERROR == errors[at], "%s: error %d of request %d",
              what, statuses[i].MPI_ERROR, at);
        if (at < 4)
            expect_status(&statuses[i], at, what);
    }
    for (int i = 0; i < 4; i++)
        expect_calls(&s[i], 1, 1, what);
}

/* MPI_Waitsome or MPI_Testsome. */
typedef int some_fn(int count, MPI_Request requests[], int *outcount,
                    int indices[], MPI_Status statuses[]);

static void completed_by_some(some_fn *some, const char *what)
{
    struct state s[4];
    MPI_Request requests[MANY];
    MPI_Status statuses[MANY];
    int indices[MANY];
    int count = -1;

    memset(statuses, 0, sizeof(statuses));
    start_many(s, requests);
    CHECK(some(MANY, requests, &count, indices, statuses) ==
                  MPI_ERR_IN_STATUS &&
              count == 5,
          "%s hides an error, or %d", what, count);
    expect_many(s, statuses, indices, count, what);
}

static void completed_by_many(void)
{
    struct state s[4];
    MPI_Request requests[MANY];
    MPI_Status statuses[MANY];
    int flag = 0;

    memset(statuses, 0, sizeof(statuses));
    start_many(s, requests);
    CHECK(MPI_Waitall(MANY, requests, statuses) == MPI_ERR_IN_STATUS,
          "waitall hides an error");
    expect_many(s, statuses, NULL, MANY, "waitall");
    for (int i = 0; i < MANY; i++)
        CHECK(requests[i] == MPI_REQUEST_NULL, "request %d is left", i);

    start_many(s, requests);
    CHECK(MPI_Testall(MANY, requests, &flag, statuses) == MPI_ERR_IN_STATUS &&
              flag,
          "testall hides an error");
    expect_many(s, statuses, NULL, MANY, "testall");

    completed_by_some(MPI_Waitsome, "waitsome");
    completed_by_some(MPI_Testsome, "testsome");

    start_many(s, requests);
    CHECK(MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE) == MPI_ERR_IN_STATUS,
          "waitall without statuses hides an error");
    for (int i = 0; i < 4; i++)
        expect_calls(&s[i], 1, 1, "waitall without statuses");
}

static void failed(void)
{
    struct state s;
    MPI_Request request = begin(&s);
    int flag = 0;

    s.query_code = MPI_ERR_FILE;
    MPI_Grequest_complete(request);
    CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_ERR_FILE, "wait");
    CHECK(request == MPI_REQUEST_NULL, "a failed request stays");
    expect_calls(&s, 1, 1, "failed query");
    request = begin(&s);
    s.free_code = MPI_ERR_NAME;
    MPI_Grequest_complete(request);
    CHECK(MPI_Test(&request, &flag, MPI_STATUS_IGNORE) == MPI_ERR_NAME, "test");
    expect_calls(&s, 1, 1, "failed free");
    request = MPI_REQUEST_NULL;
    CHECK(MPI_Grequest_complete(request) != MPI_SUCCESS, "completed none");
    request = begin(&s);
    MPI_Grequest_complete(request);
    CHECK(MPI_Grequest_complete(request) != MPI_SUCCESS, "completed twice");
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* By calls that complete nothing. */
static void failed_elsewhere(void)
{
    struct state s;
    MPI_Request request = begin(&s);
    MPI_Request copy;

    s.cancel_code = MPI_ERR_FILE;
    CHECK(MPI_Cancel(&request) == MPI_ERR_FILE && s.cancels == 1, "cancel");
    s.free_code = MPI_ERR_NAME;
    MPI_Grequest_complete(request);
    CHECK(MPI_Request_free(&request) == MPI_ERR_NAME, "free after complete");
    CHECK(request == MPI_REQUEST_NULL, "a failed request stays");
    expect_calls(&s, 0, 1, "free after complete");
    request = begin(&s);
    copy = request;
    s.free_code = MPI_ERR_NAME;
    CHECK(MPI_Request_free(&request) == MPI_SUCCESS, "free while active");
    CHECK(MPI_Grequest_complete(copy) == MPI_ERR_NAME, "complete after free");
    expect_calls(&s, 0, 1, "complete after free");
}

static void looked_at(void)
{
    struct state s[4];
    MPI_Request requests[MANY];
    MPI_Request nothing[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Status statuses[MANY];
    int indices[MANY];
    int count = -1;
    int flag = 0;
    int index = -1;

    start_many(s, requests);
    for (int i = 0; i < 4; i++)
        s[i].query_code = s[i].free_code = MPI_SUCCESS;
    CHECK(MPI_Request_get_status_all(MANY, requests, &flag, statuses) ==
                  MPI_SUCCESS &&
              flag,
          "get_status_all");
    for (int i = 0; i < 4; i++)
        expect_status(&statuses[i], i, "get_status_all");
    CHECK(statuses[5].MPI_SOURCE == MPI_ANY_SOURCE, "an empty status");
    CHECK(MPI_Request_get_status_some(MANY, requests, &count, indices,
                                      statuses) == MPI_SUCCESS &&
              count == 5,
          "get_status_some: %d", count);
    for (int i = 0; i < count; i++)
        if (indices[i] < 4)
            expect_status(&statuses[i], indices[i], "get_status_some");
    CHECK(MPI_Request_get_status_any(MANY, requests, &index, &flag,
                                     &statuses[0]) == MPI_SUCCESS &&
              flag && index >= 0 && index < 5,
          "get_status_any");
    for (int i = 0; i < 4; i++)
        expect_calls(&s[i], index == i ? 3 : 2, 0, "looked at");
    MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE);

    MPI_Request_get_status_all(2, nothing, &flag, statuses);
    CHECK(flag && statuses[1].MPI_SOURCE == MPI_ANY_SOURCE &&
              statuses[1].MPI_TAG == MPI_ANY_TAG,
          "get_status_all of nothing");
    flag = 0;
    index = 0;
    MPI_Request_get_status_any(2, nothing, &index, &flag, statuses);
    CHECK(flag && index == MPI_UNDEFINED, "get_status_any of nothing");
    count = 0;
    MPI_Request_get_status_some(2, nothing, &count, indices, statuses);
    CHECK(count == MPI_UNDEFINED, "get_status_some of nothing: %d", count);
    MPI_Request_get_status_all(0, NULL, &flag, MPI_STATUSES_IGNORE);
    CHECK(flag, "get_status_all of no request");

    requests[0] = begin(&s[0]);
    MPI_Irecv(NULL, 0, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_SELF, &requests[1]);
    MPI_Request_get_status_all(2, requests, &flag, statuses);
    CHECK(!flag, "get_status_all with one pending");
    MPI_Request_get_status_any(2, requests, &index, &flag, statuses);
    CHECK(flag && index == 1, "get_status_any with one pending: %d", index);
    MPI_Request_get_status_some(2, requests, &count, indices,
                                MPI_STATUSES_IGNORE);
    CHECK(count == 1 && indices[0] == 1, "get_status_some with one pending");
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    MPI_Request_get_status_some(2, requests, &count, indices, statuses);
    CHECK(count == 0, "get_status_some: %d complete, all are pending", count);
    MPI_Grequest_complete(requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
}

static void *complete_later(void *arg)
{
    MPI_Request *request = arg;
    int flag;

    for (int i = 0; i < 10; i++)
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &flag,
                   MPI_STATUS_IGNORE);
    MPI_Grequest_complete(*request);
    return NULL;
}

static void completed_by_another_thread(void)
{
    for (int i = 0; i < 200; i++) {
        struct state s;
        MPI_Request request = begin(&s);
        MPI_Request copy = request;
        pthread_t thread;

        CHECK_OR_DIE(pthread_create(&thread, NULL, complete_later, &copy) == 0,
                     "no thread");
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        expect_calls(&s, 1, 1, "another thread");
        pthread_join(thread, NULL);
    }
}

/* The callbacks call MPI themselves. */
static int busy_query(void *extra, MPI_Status *status)
{
    int *value = extra;
    int in = 0;

    MPI_Sendrecv(value, 1, MPI_INT, 0, 0, &in, 1, MPI_INT, 0, 0, MPI_COMM_SELF,
                 MPI_STATUS_IGNORE);
    MPI_Status_set_elements(status, MPI_INT, in);
    MPI_Status_set_cancelled(status, 0);
    return MPI_SUCCESS;
}

static int busy_free(void *extra)
{
    (void)extra;
    return MPI_Barrier(MPI_COMM_SELF);
}

/* Cancelling ends the operation. */
static int ending_cancel(void *extra, int complete)
{
    MPI_Request *request = extra;

    CHECK(!complete, "complete before it was cancelled");
    return MPI_Grequest_complete(*request);
}

static int cancelled_query(void *extra, MPI_Status *status)
{
    (void)extra;
    MPI_Status_set_elements(status, MPI_INT, 0);
    return MPI_Status_set_cancelled(status, 1);
}

static void callbacks_call(void)
{
    int value = 33;
    int got = 0;
    MPI_Request request;
    MPI_Status status;

    MPI_Grequest_start(busy_query, busy_free, cancel, &value, &request);
    MPI_Grequest_complete(request);
    MPI_Waitall(1, &request, &status);
    MPI_Get_count(&status, MPI_INT, &got);
    CHECK(got == 33, "count %d", got);
    MPI_Grequest_start(cancelled_query, busy_free, ending_cancel, &request,
                       &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &got);
    CHECK(got == 1, "not cancelled by its cancel callback");
}

int main(int argc, char **argv)
{
    check_start_thread(&argc, &argv, MPI_THREAD_MULTIPLE);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    completed_by_one();
    cancelled();
    completed_by_many();
    failed();
    failed_elsewhere();
    looked_at();
    completed_by_another_thread();
    callbacks_call();
    return check_finish();
}
