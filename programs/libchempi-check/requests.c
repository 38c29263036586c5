/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests that the program has, from the call that makes one to the call that
 * finds it complete, and the wrappers of those that do.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "programs/libchempi-check/check.h"

struct request {
    struct request *next;
    MPI_Request handle;
    struct check_site site;         /* that made it */
    struct check_request_info info; /* type MPI_DATATYPE_NULL: no message */
    struct check_region *region;    /* while active */
    struct check_match *match;      /* of a collective operation, or NULL */
    bool is_active;
};

enum { BUCKETS = 4096 };

static struct request *table[BUCKETS]; /* K1 */
static struct request *spare;          /* K1: as many as there were */

static struct request *take(void)
{
    struct request *r;

    check_lock();
    r = spare;
    if (r)
        spare = r->next;
    check_unlock();
    return r ? r : malloc(sizeof(*r));
}

static struct request **find(MPI_Request handle)
{
    const uintptr_t value = (uintptr_t)handle;
    struct request **at = &table[((value >> 4) * 2654435761u) % BUCKETS];

    while (*at && (*at)->handle != handle)
        at = &(*at)->next;
    return at;
}

static struct request *look_up(MPI_Request handle)
{
    struct request *r;

    if (handle == MPI_REQUEST_NULL || !check_is_on())
        return NULL;
    check_lock();
    r = *find(handle);
    check_unlock();
    return r;
}

static struct request *add(const struct check_call *call, MPI_Request handle,
                           const struct check_request_info *info)
{
    struct request *r;
    struct request **at;

    if (handle == MPI_REQUEST_NULL || !check_is_on())
        return NULL;
    r = take();
    if (!r)
        return NULL;
    *r = (struct request){.handle = handle,
                          .site = call->site,
                          .info = *info,
                          .is_active = !info->is_persistent};
    check_lock();
    at = find(handle);
    r->next = *at;
    *at = r;
    check_unlock();
    return r;
}

static void activate(struct request *r)
{
    r->is_active = true;
    r->region = check_region_open(&r->site, r->info.use, r->info.buf,
                                  r->info.count, r->info.type);
}

void check_request_made(const struct check_call *call, MPI_Request request,
                        const struct check_request_info *info)
{
    struct request *r = add(call, request, info);

    if (r && r->is_active && info->peer != MPI_PROC_NULL)
        activate(r);
}

void check_request_plain(const struct check_call *call, MPI_Request request,
                         bool is_persistent)
{
    const struct check_request_info info = {.type = MPI_DATATYPE_NULL,
                                            .is_persistent = is_persistent};

    (void)add(call, request, &info);
}

/* A persistent operation is compared when it is made. */
void check_request_coll(const struct check_call *call, MPI_Request request,
                        struct check_match *match, bool is_persistent)
{
    const struct check_request_info info = {.type = MPI_DATATYPE_NULL,
                                            .is_persistent = is_persistent};
    struct request *r = NULL;

    if (!is_persistent)
        r = add(call, request, &info);
    else
        (void)add(call, request, &info);
    if (r)
        r->match = match;
    else
        check_match_end(match);
}

/* ---- the end of one ---- */

/* The collective operation has not to wait for the members' calls. */
static void leave_match(struct request *r)
{
    if (r->match)
        check_match_leave(r->match);
    r->match = NULL;
}

static void remove_request(struct request *r)
{
    struct request **at;

    check_lock();
    at = find(r->handle);
    while (*at && *at != r) /* another thread may have been given the handle */
        at = &(*at)->next;
    if (*at) {
        *at = r->next;
        r->handle = MPI_REQUEST_NULL; /* nobody's who still has it */
        r->next = spare;
        spare = r;
    }
    check_unlock();
}

/* A handle before a call, and what is known of it; NULL: nothing. */
struct was {
    MPI_Request handle;
    struct request *known;
};

static struct was known_as(MPI_Request handle)
{
    return (struct was){.handle = handle, .known = look_up(handle)};
}

/* What a call that completes requests has done to one: `is` is the handle after
 * it; is_told: it says that this one is complete. One that stood twice in a
 * list is settled once. */
static void settle(const struct check_call *call, const struct was *was,
                   MPI_Request is, bool is_told)
{
    struct request *r = was->known;
    struct check_region *region;

    if (!r || r->handle != was->handle ||
        (is != MPI_REQUEST_NULL && !(is_told && r->info.is_persistent)))
        return;
    region = r->region;
    r->region = NULL;
    r->is_active = false;
    leave_match(r);
    if (is == MPI_REQUEST_NULL)
        remove_request(r);
    check_region_close(region, &call->site);
}

/* Calls that wait for this one wait for the members' calls, too. */
static void await_match(const struct was *was)
{
    struct request *r = was->known;
    struct check_match *match = r ? r->match : NULL;

    if (!match)
        return;
    r->match = NULL;
    check_match_end(match);
}

/* Calls that wait for messages alone wait for what others call. */
static bool is_message(const struct was *was)
{
    return was->handle == MPI_REQUEST_NULL ||
           (was->known && was->known->info.type != MPI_DATATYPE_NULL);
}

static bool are_messages(int count, const struct was was[])
{
    for (int i = 0; was && i < count; i++)
        if (!is_message(&was[i]))
            return false;
    return true;
}

/* The handles before the call; NULL: there are none, or no memory. */
static struct was *all_known_as(int count, const MPI_Request requests[])
{
    struct was *was;

    if (count <= 0 || !requests || !check_is_on())
        return NULL;
    was = malloc((size_t)count * sizeof(*was));
    for (int i = 0; was && i < count; i++)
        was[i] = known_as(requests[i]);
    return was;
}

/* ---- wrappers ---- */

CHEMPI_EXPORT int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
    const struct was was = known_as(request ? *request : MPI_REQUEST_NULL);
    struct check_call call;
    int rc;

    CHECK_ENTER(&call, Wait);
    await_match(&was);
    check_stick(is_message(&was));
    rc = PMPI_Wait(request, status);
    if (request)
        settle(&call, &was, *request, true);
    check_leave(&call);
    return rc;
}

CHEMPI_EXPORT int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    const struct was was = known_as(request ? *request : MPI_REQUEST_NULL);
    struct check_call call;
    int rc;

    CHECK_ENTER(&call, Test);
    rc = PMPI_Test(request, flag, status);
    if (request && flag)
        settle(&call, &was, *request, *flag);
    check_leave(&call);
    return rc;
}

static void settle_all(const struct check_call *call, int count,
                       const struct was was[], const MPI_Request is[],
                       bool is_told)
{
    for (int i = 0; was && i < count; i++)
        settle(call, &was[i], is[i], is_told);
}

CHEMPI_EXPORT int MPI_Waitall(int count, MPI_Request array_of_requests[],
                              MPI_Status array_of_statuses[])
{
    struct was *was = all_known_as(count, array_of_requests);
    struct check_call call;
    int rc;

    CHECK_ENTER(&call, Waitall);
    for (int i = 0; was && i < count; i++)
        await_match(&was[i]);
    check_stick(are_messages(count, was));
    rc = PMPI_Waitall(count, array_of_requests, array_of_statuses);
    settle_all(&call, count, was, array_of_requests, rc == MPI_SUCCESS);
    check_leave(&call);
    free(was);
    return rc;
}

CHEMPI_EXPORT int MPI_Testall(int count, MPI_Request array_of_requests[],
                              int *flag, MPI_Status array_of_statuses[])
{
    struct was *was = all_known_as(count, array_of_requests);
    struct check_call call;
    int rc;

    CHECK_ENTER(&call, Testall);
    rc = PMPI_Testall(count, array_of_requests, flag, array_of_statuses);
    settle_all(&call, count, was, array_of_requests,
               rc == MPI_SUCCESS && flag && *flag);
    check_leave(&call);
    free(was);
    return rc;
}

/* indices: those that are complete, `done` of them or MPI_UNDEFINED. */
static void settle_some(const struct check_call *call, int count,
                        const struct was was[], const MPI_Request is[],
                        int done, const int indices[])
{
    for (int i = 0; was && i < done; i++)
        if (indices[i] >= 0 && indices[i] < count)
            settle(call, &was[indices[i]], is[indices[i]], true);
}

CHEMPI_EXPORT int MPI_Waitany(int count, MPI_Request array_of_requests[],
                              int *indx, MPI_Status *status)
{
    struct was *was = all_known_as(count, array_of_requests);
    struct check_call call;
    int rc;

    CHECK_ENTER(&call, Waitany);
    check_stick(are_messages(count, was));
    rc = PMPI_Waitany(count, array_of_requests, indx, status);
    if (indx)
        settle_some(&call, count, was, array_of_requests, 1, indx);
    check_leave(&call);
    free(was);
    return rc;
}

CHEMPI_EXPORT int MPI_Testany(int count, MPI_Request array_of_requests[],
                              int *indx, int *flag, MPI_Status *status)
{
    struct was *was = all_known_as(count, array_of_requests);
    struct check_call call;
    int rc;

    CHECK_ENTER(&call, Testany);
    rc = PMPI_Testany(count, array_of_requests, indx, flag, status);
    if (indx && flag)
        settle_some(&call, count, was, array_of_requests, *flag != 0, indx);
    check_leave(&call);
    free(was);
    return rc;
}

CHEMPI_EXPORT int MPI_Waitsome(int incount, MPI_Request array_of_requests[],
                               int *outcount, int array_of_indices[],
                               MPI_Status array_of_statuses[])
{
    struct was *was = all_known_as(incount, array_of_requests);
    struct check_call call;
    int rc;

    CHECK_ENTER(&call, Waitsome);
    check_stick(are_messages(incount, was));
    rc = PMPI_Waitsome(incount, array_of_requests, outcount, array_of_indices,
                       array_of_statuses);
    if (outcount)
        settle_some(&call, incount, was, array_of_requests, *outcount,
                    array_of_indices);
    check_leave(&call);
    free(was);
    return rc;
}

CHEMPI_EXPORT int MPI_Testsome(int incount, MPI_Request array_of_requests[],
                               int *outcount, int array_of_indices[],
                               MPI_Status array_of_statuses[])
{
    struct was *was = all_known_as(incount, array_of_requests);
    struct check_call call;
    int rc;

    CHECK_ENTER(&call, Testsome);
    rc = PMPI_Testsome(incount, array_of_requests, outcount, array_of_indices,
                       array_of_statuses);
    if (outcount)
        settle_some(&call, incount, was, array_of_requests, *outcount,
                    array_of_indices);
    check_leave(&call);
    free(was);
    return rc;
}

/* An active one goes on without the program: its buffer is not watched. */
CHEMPI_EXPORT int MPI_Request_free(MPI_Request *request)
{
    struct request *r = request ? look_up(*request) : NULL;
    struct check_call call;
    int rc;

    CHECK_ENTER(&call, Request_free);
    rc = PMPI_Request_free(request);
    if (r && rc == MPI_SUCCESS) {
        check_region_close(r->region, NULL);
        leave_match(r);
        remove_request(r);
    }
    check_leave(&call);
    return rc;
}

static void test_buffer(const struct check_call *call, MPI_Request handle)
{
    const struct request *r = look_up(handle);

    if (r && !r->is_active && r->info.type != MPI_DATATYPE_NULL)
        check_region_test(call, r->info.use, r->info.buf, r->info.count,
                          r->info.type);
}

static void note_start(MPI_Request handle)
{
    struct request *r = look_up(handle);

    if (r && !r->is_active)
        activate(r);
}

CHEMPI_EXPORT int MPI_Start(MPI_Request *request)
{
    struct check_call call;
    int rc;

    CHECK_ENTER(&call, Start);
    if (request)
        test_buffer(&call, *request);
    rc = PMPI_Start(request);
    if (rc == MPI_SUCCESS)
        note_start(*request);
    check_leave(&call);
    return rc;
}

CHEMPI_EXPORT int MPI_Startall(int count, MPI_Request array_of_requests[])
{
    struct check_call call;
    int rc;

    CHECK_ENTER(&call, Startall);
    for (int i = 0; array_of_requests && i < count; i++)
        test_buffer(&call, array_of_requests[i]);
    rc = PMPI_Startall(count, array_of_requests);
    for (int i = 0; rc == MPI_SUCCESS && i < count; i++)
        note_start(array_of_requests[i]);
    check_leave(&call);
    return rc;
}

/* ---- the end ---- */

static void note_one(const struct request *r)
{
    char site[CHECK_WORDS];

    (void)check_site_words(&r->site, site, sizeof(site));
    if (r->info.is_persistent && !r->is_active)
        check_note("%s: its persistent request was never freed; call "
                   "MPI_Request_free",
                   site);
    else
        check_note("%s: its request was never completed; call MPI_Wait or "
                   "MPI_Test",
                   site);
}

void check_note_requests(void)
{
    for (size_t b = 0; b < BUCKETS; b++)
        for (const struct request *r = table[b]; r; r = r->next)
            note_one(r);
}
