/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completing requests (MPI 5.0, sections 3.7.3 to 3.7.6, 3.9): wait, test,
 * get_status, start, free, cancel. A persistent request that is not active
 * counts as MPI_REQUEST_NULL.
 */
#include <stdio.h>

#include "libchempi/api/api_impl.h"
#include "libchempi/didl/base/status.h"
#include "libchempi/didl/comm/message_request.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/transport/engine.h"
#include "libchempi/didl/transport/lane.h"
#include "libchempi/didl/transport/progress/agent.h"
#include "libchempi/didl/transport/progress/progress.h"
#include "libchempi/didl/transport/request.h"

/* The active request behind a handle, or NULL. */
static inline struct chempi_request *active(MPI_Request handle)
{
    struct chempi_request *req = chempi_request_lookup(handle);

    return req && req->is_active ? req : NULL;
}

static CHEMPI_COLD int bad_request(int i, MPI_Request handle)
{
    char text[CHEMPI_ERROR_HANDLE_TEXT];

    return chempi_error_set(MPI_ERR_REQUEST,
                            "request %d (%s) is neither MPI_REQUEST_NULL nor a "
                            "request; was it freed or completed before?",
                            i, chempi_error_put_handle(text, handle));
}

static int check_all(int count, const MPI_Request requests[])
{
    for (int i = 0; i < count; i++)
        if (requests[i] != MPI_REQUEST_NULL &&
            !chempi_request_lookup(requests[i]))
            return bad_request(i, requests[i]);
    return MPI_SUCCESS;
}

static CHEMPI_COLD void note_error(const struct chempi_request *req, int error)
{
    if (req->comm && !req->comm->is_freed)
        chempi_error_set_comm(req->comm);
    (void)chempi_request_explain(req, error);
}

/* The requests of an array that have failed. */
struct failures {
    int count;
    char first[CHEMPI_ERR_TEXT_MAX]; /* words about it */
};

/* Request i has failed, and the words of that were noted: keep the first. */
static CHEMPI_COLD void note_failure(struct failures *failures, int i,
                                     int error)
{
    const char *name = chempi_error_name(error);

    if (failures->count++ == 0)
        (void)snprintf(failures->first, sizeof(failures->first),
                       "request %d: %s: %s", i,
                       name ? name : "an error that was added",
                       chempi_error_words()); /* cut is fine */
}

static int sum_up(const struct failures *failures)
{
    if (CHEMPI_LIKELY(failures->count == 0))
        return MPI_SUCCESS;
    if (failures->count == 1)
        return chempi_error_set(MPI_ERR_IN_STATUS, "%s", failures->first);
    return chempi_error_set(MPI_ERR_IN_STATUS, "%s; %d more have failed, too",
                            failures->first, failures->count - 1);
}

/* The status of a complete, active request, which wait or test tells again;
 * with the error, if it has one. */
static void peek(struct chempi_request *req, MPI_Status *status)
{
    if (req->ops->finish(req, status) != MPI_SUCCESS) {
        chempi_error_forget();
        chempi_error_blame(NULL);
    }
}

/* The user's own part of a generalized request, whose last callback counts, and
 * words of an error; without the lock. */
static CHEMPI_COLD int finish_badly(struct chempi_request *req, int error)
{
    if (req->kind == CHEMPI_REQUEST_GENERAL) {
        int free_error = chempi_request_release_general(req);

        error = free_error ? free_error : error;
    }
    if (error)
        note_error(req, error);
    return error;
}

/* Of all operations that were over in their call? */
static inline bool is_of_many(const struct chempi_request *req)
{
    return (uintptr_t)req - (uintptr_t)chempi_request_over <
           sizeof(chempi_request_over);
}

/* The user has an operation no longer that was over in its call. */
static inline void forget_over(MPI_Request *handle)
{
    if (chempi_light_is(*handle))
        chempi_light_give_back(*handle);
    *handle = MPI_REQUEST_NULL;
}

static inline void harvest_over(MPI_Request *handle, MPI_Status *status)
{
    chempi_status_set_empty(status);
    forget_over(handle);
}

/* A complete, active request: hand out its status; free or deactivate it.
 * Holder of the lock, which may be let go meanwhile. */
static int harvest_locked(MPI_Request *handle, struct chempi_request *req,
                          MPI_Status *status)
{
    int error;

    if (is_of_many(req)) {
        harvest_over(handle, status);
        return MPI_SUCCESS;
    }
    error = chempi_request_finish_locked(req, status);
    if (CHEMPI_UNLIKELY(error || req->kind == CHEMPI_REQUEST_GENERAL)) {
        chempi_lane_pause(req->lane);
        error = finish_badly(req, error);
        chempi_lane_lock(req->lane);
    }
    if (req->is_persistent) {
        req->is_active = false;
    } else {
        chempi_request_drop(req);
        *handle = MPI_REQUEST_NULL;
    }
    return error;
}

static int harvest(MPI_Request *handle, struct chempi_request *req,
                   MPI_Status *status)
{
    struct chempi_lane *lane = req->lane;
    int error;

    chempi_lane_lock(lane);
    error = harvest_locked(handle, req, status);
    chempi_lane_unlock(lane);
    return error;
}

/* ---- one ---- */

static CHEMPI_NOINLINE int wait_for(MPI_Request *request, MPI_Status *status)
{
    struct chempi_request *req = active(*request);
    struct chempi_lane *lane;
    int rc;

    if (!req) {
        chempi_status_set_empty(status);
        return check_all(1, request);
    }
    lane = req->lane;
    chempi_lane_lock(lane);
    rc = chempi_request_is_complete(req) ? MPI_SUCCESS
                                         : chempi_request_await_locked(req);
    if (!rc)
        rc = harvest_locked(request, req, status);
    chempi_lane_unlock(lane);
    return rc;
}

/* Without a lock for what was over in its call. */
int chempi_request_wait(MPI_Request *request, MPI_Status *status)
{
    const MPI_Request handle = *request;
    const bool is_light = handle != chempi_request_handle(chempi_request_over);

    if (CHEMPI_UNLIKELY(chempi_lane_has_kept()) ||
        (is_light && !(chempi_light_is(handle) && chempi_light_is_plain())))
        return wait_for(request, status);
    chempi_status_set_empty(status);
    if (is_light)
        chempi_light_give_back(handle);
    *request = MPI_REQUEST_NULL;
    return MPI_SUCCESS;
}

int chempi_request_test(MPI_Request *request, int *flag, MPI_Status *status)
{
    struct chempi_request *req = active(*request);

    *flag = 1;
    if (!req) {
        chempi_status_set_empty(status);
        return check_all(1, request);
    }
    if (!chempi_request_is_complete(req)) {
        (void)chempi_progress_poll_in(req->lane);
        if (!chempi_request_is_complete(req)) {
            *flag = 0;
            return MPI_SUCCESS;
        }
    }
    return harvest(request, req, status);
}

int chempi_request_get_status(MPI_Request request, int *flag,
                              MPI_Status *status)
{
    struct chempi_request *req = active(request);

    *flag = 1;
    if (!req) {
        chempi_status_set_empty(status);
        return check_all(1, &request);
    }
    if (!chempi_request_is_complete(req))
        (void)chempi_progress_poll_in(req->lane);
    *flag = chempi_request_is_complete(req);
    if (*flag)
        peek(req, status);
    return MPI_SUCCESS;
}

/* ---- all ---- */

struct set {
    const MPI_Request *requests;
    int count;
    int next; /* requests[0..next) are complete (all) */
};

static bool are_all_complete(void *arg)
{
    struct set *set = arg;

    while (set->next < set->count) {
        struct chempi_request *req = active(set->requests[set->next]);

        if (req && !chempi_request_is_complete(req))
            return false;
        set->next++;
    }
    return true;
}

/* What are_all_complete() and is_any_complete() wait for. */
static void put_set(struct chempi_wait_report *w, const void *object)
{
    const struct set *set = object;
    int pending = 0;

    for (int i = 0; i < set->count; i++) {
        const struct chempi_request *req = active(set->requests[i]);

        if (req && !chempi_request_is_complete(req))
            chempi_wait_report_put_one(w, req, pending++);
    }
    chempi_wait_report_put_rest(w, pending);
}

/* The lanes of the active requests, a bit each; of none the first. */
static CHEMPI_NOINLINE uint32_t collect_lanes(const struct set *set)
{
    uint32_t lanes = 0;

    for (int i = 0; i < set->count; i++) {
        const struct chempi_request *req = active(set->requests[i]);

        if (req)
            lanes |= 1u << req->lane->number;
    }
    return lanes ? lanes : 1;
}

static inline uint32_t lanes_of(const struct set *set)
{
    return CHEMPI_LIKELY(chempi_lane_count == 1) ? 1 : collect_lanes(set);
}

/* The one lane that all are in; NULL: there are several, *lanes. */
static inline struct chempi_lane *find_lane(const struct set *set,
                                            uint32_t *lanes)
{
    if (CHEMPI_LIKELY(chempi_lane_count == 1))
        return &chempi_lane_main;
    *lanes = collect_lanes(set);
    for (uint32_t i = 0; i < chempi_lane_count; i++)
        if (*lanes == 1u << i)
            return chempi_lanes[i];
    return NULL;
}

/* Test a condition on the set, with one poll if need be. */
static bool look(bool (*is_met)(void *arg), struct set *set)
{
    if (is_met(set))
        return true;
    (void)chempi_progress_poll_among(lanes_of(set));
    return is_met(set);
}

static MPI_Status *status_at(MPI_Status *statuses, int i)
{
    return statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[i];
}

/* Take each by `one`, which is known where this is called. */
CHEMPI_INLINE int
harvest_each(int count, MPI_Request requests[], MPI_Status *statuses,
             int (*one)(MPI_Request *request, struct chempi_request *req,
                        MPI_Status *status))
{
    struct failures failures;

    failures.count = 0;
    for (int i = 0; i < count; i++) {
        MPI_Status *status = status_at(statuses, i);
        struct chempi_request *req = active(requests[i]);
        int error = MPI_SUCCESS;

        if (req)
            error = one(&requests[i], req, status);
        else
            chempi_status_set_empty(status);
        if (status)
            status->MPI_ERROR = error;
        if (CHEMPI_UNLIKELY(error))
            note_failure(&failures, i, error);
    }
    return sum_up(&failures);
}

/* Under the lock of the lane that all are in, as harvest_locked(). */
static int harvest_all(int count, MPI_Request requests[], MPI_Status *statuses)
{
    return harvest_each(count, requests, statuses, harvest_locked);
}

/* The same of several lanes, without a lock. */
static int harvest_apart(int count, MPI_Request requests[],
                         MPI_Status *statuses)
{
    return harvest_each(count, requests, statuses, harvest);
}

int chempi_request_waitall(int count, MPI_Request array_of_requests[],
                           MPI_Status *array_of_statuses)
{
    struct set set = {.requests = array_of_requests, .count = count};
    struct chempi_lane *lane;
    uint32_t lanes = 0;
    int rc;

    rc = check_all(count, array_of_requests);
    if (rc)
        return rc;
    lane = find_lane(&set, &lanes);
    if (CHEMPI_UNLIKELY(!lane)) {
        rc = chempi_progress_wait_among(lanes, are_all_complete, &set, put_set,
                                        &set);
        return rc ? rc
                  : harvest_apart(count, array_of_requests, array_of_statuses);
    }
    chempi_lane_lock(lane);
    rc = chempi_progress_wait_in(lane, are_all_complete, &set, put_set, &set);
    if (!rc)
        rc = harvest_all(count, array_of_requests, array_of_statuses);
    chempi_lane_unlock(lane);
    return rc;
}

int chempi_request_testall(int count, MPI_Request array_of_requests[],
                           int *flag, MPI_Status *array_of_statuses)
{
    struct set set = {.requests = array_of_requests, .count = count};
    struct chempi_lane *lane;
    uint32_t lanes = 0;
    int rc;

    rc = check_all(count, array_of_requests);
    if (rc)
        return rc;
    *flag = look(are_all_complete, &set);
    if (!*flag)
        return MPI_SUCCESS;
    lane = find_lane(&set, &lanes);
    if (CHEMPI_UNLIKELY(!lane))
        return harvest_apart(count, array_of_requests, array_of_statuses);
    chempi_lane_lock(lane);
    rc = harvest_all(count, array_of_requests, array_of_statuses);
    chempi_lane_unlock(lane);
    return rc;
}

int chempi_request_get_status_all(int count,
                                  const MPI_Request array_of_requests[],
                                  int *flag, MPI_Status *array_of_statuses)
{
    struct set set = {.requests = array_of_requests, .count = count};
    int rc;

    rc = check_all(count, array_of_requests);
    if (rc)
        return rc;
    *flag = look(are_all_complete, &set);
    for (int i = 0; *flag && i < count; i++) {
        struct chempi_request *req = active(array_of_requests[i]);
        MPI_Status *status = status_at(array_of_statuses, i);

        if (req)
            peek(req, status);
        else
            chempi_status_set_empty(status);
    }
    return MPI_SUCCESS;
}

/* ---- any and some ---- */

/* Index of the first complete request, or -1 (some are active, none is
 * complete), or MPI_UNDEFINED (none is active). Under the lock. */
static int first_complete(const struct set *set)
{
    int result = MPI_UNDEFINED;

    for (int i = 0; i < set->count; i++) {
        struct chempi_request *req = active(set->requests[i]);

        if (!req)
            continue;
        if (chempi_request_is_complete(req))
            return i;
        result = -1;
    }
    return result;
}

static bool is_any_complete(void *arg)
{
    struct set *set = arg;

    set->next = first_complete(set);
    return set->next != -1;
}

/* Wait for one of them; set->next is MPI_UNDEFINED if none is active. */
static int wait_for_any(struct set *set)
{
    int rc = check_all(set->count, set->requests);
    struct chempi_lane *lane;
    uint32_t lanes = 0;

    if (rc)
        return rc;
    lane = find_lane(set, &lanes);
    if (!lane)
        return chempi_progress_wait_among(lanes, is_any_complete, set, put_set,
                                          set);
    chempi_lane_lock(lane);
    rc = chempi_progress_wait_in(lane, is_any_complete, set, put_set, set);
    chempi_lane_unlock(lane);
    return rc;
}

/* The same without waiting; *flag: one is complete, or none is active. */
static int look_for_any(struct set *set, int *indx, int *flag)
{
    int rc = check_all(set->count, set->requests);

    if (rc)
        return rc;
    *flag = look(is_any_complete, set);
    *indx = set->next < 0 ? MPI_UNDEFINED : set->next;
    return MPI_SUCCESS;
}

/* What was found, if anything was. */
static int harvest_any(const struct set *set, MPI_Request requests[],
                       MPI_Status *status)
{
    if (set->next < 0) {
        chempi_status_set_empty(status);
        return MPI_SUCCESS;
    }
    return harvest(&requests[set->next], active(requests[set->next]), status);
}

int chempi_request_waitany(int count, MPI_Request array_of_requests[],
                           int *indx, MPI_Status *status)
{
    struct set set = {.requests = array_of_requests, .count = count};
    int rc = wait_for_any(&set);

    if (rc)
        return rc;
    *indx = set.next;
    return harvest_any(&set, array_of_requests, status);
}

int chempi_request_testany(int count, MPI_Request array_of_requests[],
                           int *indx, int *flag, MPI_Status *status)
{
    struct set set = {.requests = array_of_requests, .count = count};
    int rc = look_for_any(&set, indx, flag);

    if (rc || !*flag)
        return rc;
    return harvest_any(&set, array_of_requests, status);
}

int chempi_request_get_status_any(int count,
                                  const MPI_Request array_of_requests[],
                                  int *indx, int *flag, MPI_Status *status)
{
    struct set set = {.requests = array_of_requests, .count = count};
    int rc = look_for_any(&set, indx, flag);

    if (rc || !*flag)
        return rc;
    if (set.next < 0)
        chempi_status_set_empty(status);
    else
        peek(active(array_of_requests[set.next]), status);
    return MPI_SUCCESS;
}

/* Harvest every complete one; statuses and indices are packed. */
static int harvest_some(int incount, MPI_Request requests[], int *outcount,
                        int indices[], MPI_Status *statuses)
{
    struct failures failures;
    int n = 0;

    failures.count = 0;
    for (int i = 0; i < incount; i++) {
        struct chempi_request *req = active(requests[i]);
        MPI_Status *status = status_at(statuses, n);
        int error;

        if (!req || !chempi_request_is_complete(req))
            continue;
        error = harvest(&requests[i], req, status);
        if (status)
            status->MPI_ERROR = error;
        if (CHEMPI_UNLIKELY(error))
            note_failure(&failures, i, error);
        indices[n++] = i;
    }
    *outcount = n;
    return sum_up(&failures);
}

int chempi_request_waitsome(int incount, MPI_Request array_of_requests[],
                            int *outcount, int array_of_indices[],
                            MPI_Status *array_of_statuses)
{
    struct set set = {.requests = array_of_requests, .count = incount};
    int rc = wait_for_any(&set);

    if (rc)
        return rc;
    if (set.next < 0) {
        *outcount = MPI_UNDEFINED;
        return MPI_SUCCESS;
    }
    return harvest_some(incount, array_of_requests, outcount, array_of_indices,
                        array_of_statuses);
}

int chempi_request_testsome(int incount, MPI_Request array_of_requests[],
                            int *outcount, int array_of_indices[],
                            MPI_Status *array_of_statuses)
{
    struct set set = {.requests = array_of_requests, .count = incount};
    int rc;

    rc = check_all(incount, array_of_requests);
    if (rc)
        return rc;
    if (look(is_any_complete, &set) && set.next < 0) {
        *outcount = MPI_UNDEFINED;
        return MPI_SUCCESS;
    }
    return harvest_some(incount, array_of_requests, outcount, array_of_indices,
                        array_of_statuses);
}

int chempi_request_get_status_some(int incount,
                                   const MPI_Request array_of_requests[],
                                   int *outcount, int array_of_indices[],
                                   MPI_Status *array_of_statuses)
{
    struct set set = {.requests = array_of_requests, .count = incount};
    int n = 0;
    int rc;

    rc = check_all(incount, array_of_requests);
    if (rc)
        return rc;
    if (look(is_any_complete, &set) && set.next < 0) {
        *outcount = MPI_UNDEFINED;
        return MPI_SUCCESS;
    }
    for (int i = 0; i < incount; i++) {
        struct chempi_request *req = active(array_of_requests[i]);

        if (!req || !chempi_request_is_complete(req))
            continue;
        peek(req, status_at(array_of_statuses, n));
        array_of_indices[n++] = i;
    }
    *outcount = n;
    return MPI_SUCCESS;
}

/* ---- start, free, cancel ---- */

static int start_one(MPI_Request handle, int i)
{
    struct chempi_request *req = chempi_request_lookup(handle);
    char text[CHEMPI_ERROR_HANDLE_TEXT];
    struct chempi_lane *lane;
    int rc;

    if (!req || !req->is_persistent || req->is_active)
        return chempi_error_set(MPI_ERR_REQUEST,
                                "request %d (%s) is not an inactive persistent "
                                "request",
                                i, chempi_error_put_handle(text, handle));
    lane = req->lane;
    chempi_lane_lock(lane);
    req->is_active = true;
    req->is_cancelled = false;
    req->is_cancelling = false;
    req->error = MPI_SUCCESS;
    req->source = MPI_ANY_SOURCE;
    req->tag = MPI_ANY_TAG;
    req->bytes = 0;
    chempi_request_set_pending(req, 0);
    if (req->kind == CHEMPI_REQUEST_SEND)
        req->is_posted = chempi_agent_is_offered();
    rc = req->ops->start(req);
    if (rc) {
        req->is_active = false;
        chempi_error_set_comm(req->comm);
    } else if (req->kind == CHEMPI_REQUEST_SEND ||
               req->kind == CHEMPI_REQUEST_RECV) {
        chempi_request_owe(req, (uint64_t)(req->count * req->type->size));
    }
    chempi_progress_nudge_in(lane);
    chempi_lane_unlock_posted(lane);
    return rc;
}

int chempi_request_start(MPI_Request *request)
{
    return start_one(*request, 0);
}

int chempi_request_startall(int count, MPI_Request array_of_requests[])
{
    for (int i = 0; i < count; i++) {
        int rc = start_one(array_of_requests[i], i);

        if (rc)
            return rc;
    }
    return MPI_SUCCESS;
}

int chempi_request_free(MPI_Request *request)
{
    struct chempi_request *req = chempi_request_lookup(*request);
    struct chempi_lane *lane;
    char text[CHEMPI_ERROR_HANDLE_TEXT];
    int rc = MPI_SUCCESS;

    if (!req)
        return chempi_error_set(MPI_ERR_REQUEST, "%s is not a request",
                                chempi_error_put_handle(text, *request));
    lane = req->lane;
    chempi_lane_lock(lane);
    if (is_of_many(req)) {
        forget_over(request);
    } else if (req->is_active && !chempi_request_is_complete(req)) {
        chempi_request_orphan(req);
    } else {
        if (req->kind == CHEMPI_REQUEST_GENERAL) {
            chempi_lane_unlock(lane);
            rc = chempi_request_release_general(req);
            chempi_lane_lock(lane);
        }
        chempi_request_drop(req);
    }
    chempi_lane_unlock(lane);
    *request = MPI_REQUEST_NULL;
    return rc;
}

int chempi_request_cancel(MPI_Request *request)
{
    struct chempi_request *req = active(*request);
    struct chempi_lane *lane;

    if (*request == MPI_REQUEST_NULL)
        return chempi_error_set(MPI_ERR_REQUEST,
                                "the request is MPI_REQUEST_NULL; was it "
                                "completed before?");
    if (!req)
        return chempi_request_lookup(*request) ? MPI_SUCCESS
                                               : bad_request(0, *request);
    if (chempi_light_is(*request))
        return chempi_message_recall(*request) ? bad_request(0, *request)
                                               : MPI_SUCCESS;
    if (req->kind == CHEMPI_REQUEST_GENERAL)
        return chempi_request_cancel_general(req);
    lane = req->lane;
    chempi_lane_lock(lane);
    req->ops->cancel(req);
    chempi_progress_nudge_in(lane);
    chempi_lane_unlock(lane);
    return MPI_SUCCESS;
}
