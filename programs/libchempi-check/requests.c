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

/* The oldest first, for several may have one handle: collective operations that
 * end in their start share it. Who completes a request, or frees it, takes what
 * is known of it out until the call ends: what one has is nobody else's. */
struct bucket {
    struct request *first;
    struct request *last; /* unless it is empty */
};

static struct bucket table[BUCKETS]; /* K1 */
static struct request *spare;        /* K1: as many as there were */

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

static struct bucket *bucket_of(MPI_Request handle)
{
    const uintptr_t value = (uintptr_t)handle;

    return &table[((value >> 4) * 2654435761u) % BUCKETS];
}

static void append(struct bucket *b, struct request *r)
{
    r->next = NULL;
    if (b->first)
        b->last->next = r;
    else
        b->first = r;
    b->last = r;
}

static void prepend(struct bucket *b, struct request *r)
{
    if (!b->first)
        b->last = r;
    r->next = b->first;
    b->first = r;
}

/* The oldest of this handle, and what stands before it; NULL: none. */
static struct request *find(const struct bucket *b, MPI_Request handle,
                            struct request **before)
{
    struct request *r = b->first;

    *before = NULL;
    while (r && r->handle != handle) {
        *before = r;
        r = r->next;
    }
    return r;
}

static struct request *look_up(MPI_Request handle)
{
    struct request *before;
    struct request *r;

    if (handle == MPI_REQUEST_NULL || !check_is_on())
        return NULL;
    check_lock();
    r = find(bucket_of(handle), handle, &before);
    check_unlock();
    return r;
}

static struct request *take_out(MPI_Request handle)
{
    struct bucket *b = bucket_of(handle);
    struct request *before;
    struct request *r;

    if (handle == MPI_REQUEST_NULL || !check_is_on())
        return NULL;
    check_lock();
    r = find(b, handle, &before);
    if (r) {
        *(before ? &before->next : &b->first) = r->next;
        if (!r->next)
            b->last = before;
    }
    check_unlock();
    return r;
}

/* The oldest again. */
static void put_back(struct request *r)
{
    check_lock();
    prepend(bucket_of(r->handle), r);
    check_unlock();
}

/* One that was taken out. */
static void forget(struct request *r)
{
    check_lock();
    r->next = spare;
    spare = r;
    check_unlock();
}

static struct request *add(const struct check_call *call, MPI_Request handle,
                           const struct check_request_info *info,
                           struct check_match *match)
{
    struct request *r;

    if (handle == MPI_REQUEST_NULL || !check_is_on())
        return NULL;
    r = take();
    if (!r)
        return NULL;
    *r = (struct request){.handle = handle,
                          .site = call->site,
                          .info = *info,
                          .match = match,
                          .is_active = !info->is_persistent};
    check_lock();
    append(bucket_of(handle), r);
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
    struct request *r = add(call, request, info, NULL);

    if (r && r->is_active && info->peer != MPI_PROC_NULL)
        activate(r);
}

void check_request_plain(const struct check_call *call, MPI_Request request,
                         bool is_persistent)
{
    const struct check_request_info info = {.type = MPI_DATATYPE_NULL,
                                            .is_persistent = is_persistent};

    (void)add(call, request, &info, NULL);
}

/* A persistent operation is compared when it is made. */
void check_request_coll(const struct check_call *call, MPI_Request request,
                        struct check_match *match, bool is_persistent)
{
    const struct check_request_info info = {.type = MPI_DATATYPE_NULL,
                                            .is_persistent = is_persistent};
    const struct request *r =
        add(call, request, &info, is_persistent ? NULL : match);

    if (is_persistent || !r)
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

/* A handle before a call, and what is known of it, which is the call's until
 * release(). NULL: nothing, or it is gone, or the handle stood in the list
 * before. */
struct was {
    MPI_Request handle;
    struct request *known;
};

static struct was known_as(MPI_Request handle)
{
    return (struct was){.handle = handle, .known = take_out(handle)};
}

static void release(struct was *was)
{
    if (was->known)
        put_back(was->known);
    was->known = NULL;
}

/* What a call that completes requests has done to one: `is` is the handle after
 * it; is_told: it says that this one is complete. */
static void settle(const struct check_call *call, struct was *was,
                   MPI_Request is, bool is_told)
{
    struct request *r = was->known;
    struct check_region *region;

    if (!r || (is != MPI_REQUEST_NULL && !(is_told && r->info.is_persistent)))
        return;
    region = r->region;
    r->region = NULL;
    r->is_active = false;
    leave_match(r);
    if (is == MPI_REQUEST_NULL) {
        was->known = NULL;
        forget(r);
    }
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

/* In the order in which they were. */
static void release_all(int count, struct was was[])
{
    for (int i = count - 1; was && i >= 0; i--)
        release(&was[i]);
    free(was);
}

/* ---- wrappers ---- */

CHEMPI_EXPORT int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
    struct was was = known_as(request ? *request : MPI_REQUEST_NULL);
    struct check_call call;
    int rc;

    CHECK_ENTER(&call, Wait);
    await_match(&was);
    check_stick(is_message(&was));
    rc = PMPI_Wait(request, status);
    if (request)
        settle(&call, &was, *request, true);
    release(&was);
    check_leave(&call);
    return rc;
}

CHEMPI_EXPORT int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    struct was was = known_as(request ? *request : MPI_REQUEST_NULL);
    struct check_call call;
    int rc;

    CHECK_ENTER(&call, Test);
    rc = PMPI_Test(request, flag, status);
    if (request && flag)
        settle(&call, &was, *request, *flag);
    release(&was);
    check_leave(&call);
    return rc;
}

static void settle_all(const struct check_call *call, int count,
                       struct was was[], const MPI_Request is[], bool is_told)
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
    release_all(count, was);
    check_leave(&call);
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
    release_all(count, was);
    check_leave(&call);
    return rc;
}

/* indices: those that are complete, `done` of them or MPI_UNDEFINED. */
static void settle_some(const struct check_call *call, int count,
                        struct was was[], const MPI_Request is[], int done,
                        const int indices[])
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
    release_all(count, was);
    check_leave(&call);
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
    release_all(count, was);
    check_leave(&call);
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
    release_all(incount, was);
    check_leave(&call);
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
    release_all(incount, was);
    check_leave(&call);
    return rc;
}

/* An active one goes on without the program: its buffer is not watched. */
CHEMPI_EXPORT int MPI_Request_free(MPI_Request *request)
{
    struct was was = known_as(request ? *request : MPI_REQUEST_NULL);
    struct request *r = was.known;
    struct check_call call;
    int rc;

    CHECK_ENTER(&call, Request_free);
    rc = PMPI_Request_free(request);
    if (r && rc == MPI_SUCCESS) {
        check_region_close(r->region, NULL);
        leave_match(r);
        was.known = NULL;
        forget(r);
    }
    release(&was);
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
        for (const struct request *r = table[b].first; r; r = r->next)
            note_one(r);
}
