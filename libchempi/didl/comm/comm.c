/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Communicators: life of the struct and local questions (MPI 5.0, section
 * 7.4.1). Creation that needs agreement stands in make/.
 *
 *   M1  `all` holds every communicator between make and destroy, under
 *       all_lock
 *   M2  obj.refs counts the user's handle and pending operations, those that
 *       `requests` counts as one; the context id is given back only with the
 *       last reference, so no message of this process can meet a new
 *       communicator that it is a member of. (It may where nobody has received
 *       it, which only MPI_Cancel makes right, and its receiver has freed its
 *       communicator: in one of others; or, as the sides of an
 *       intercommunicator have ids of their own, after one of those.)
 *   M3  `listening` has those of `all` that chempi_comm_listen() was called
 *       for: by their contexts, under all_lock
 */
#include "libchempi/didl/comm/comm.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/invariant.h"
#include "common/base/sys.h"
#include "libchempi/api/api_impl.h"
#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/base/setting.h"
#include "libchempi/didl/comm/comm_life.h"
#include "libchempi/didl/comm/context_id.h"
#include "libchempi/didl/comm/session/session.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/info/attr.h"
#include "libchempi/didl/info/info.h"
#include "libchempi/didl/transport/foreign/guard.h"
#include "libchempi/didl/transport/lane.h"
#include "libchempi/didl/transport/loss.h"
#include "libchempi/didl/transport/request.h"

static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static struct chempi_list all = {&all, &all};

static bool is_bereft(uint32_t context)
{
    bool is = false;

    if (!chempi_ctx.job->survives && !chempi_context_is_open(context))
        return false;
    (void)pthread_mutex_lock(&all_lock);
    CHEMPI_LIST_FOR (link, &all) {
        const struct chempi_comm *comm =
            CHEMPI_CONTAINER_OF(link, struct chempi_comm, link);

        if (comm->recv_context == context)
            is = chempi_loss_is_in(comm);
    }
    (void)pthread_mutex_unlock(&all_lock);
    return is;
}

/* ---- who may send in an open context ---- */

enum { OPEN_BUCKETS = 256 };
static struct chempi_comm *listening[OPEN_BUCKETS]; /* M3 */

static struct chempi_comm **bucket_of(uint32_t context)
{
    return &listening[context / CHEMPI_CONTEXT_STEP % OPEN_BUCKETS];
}

static enum chempi_guard_answer is_sender(uint32_t context, int32_t source,
                                          uint32_t proc)
{
    enum chempi_guard_answer answer = CHEMPI_GUARD_UNKNOWN;
    const struct chempi_comm *comm;

    (void)pthread_mutex_lock(&all_lock);
    comm = *bucket_of(context);
    while (comm && comm->recv_context != context)
        comm = comm->next_open;
    if (comm)
        answer = (uint32_t)source < comm->remote_size &&
                         chempi_comm_proc(comm, (uint32_t)source) == proc
                     ? CHEMPI_GUARD_YES
                     : CHEMPI_GUARD_NO;
    (void)pthread_mutex_unlock(&all_lock);
    return answer;
}

void chempi_comm_listen(struct chempi_comm *comm)
{
    struct chempi_comm **bucket = bucket_of(comm->recv_context);

    if (!chempi_context_is_open(comm->recv_context))
        return;
    (void)pthread_mutex_lock(&all_lock);
    comm->next_open = *bucket;
    *bucket = comm;
    (void)pthread_mutex_unlock(&all_lock);
    chempi_guard_admit(comm->recv_context);
}

static void unlisten_locked(const struct chempi_comm *comm)
{
    struct chempi_comm **at = bucket_of(comm->recv_context);

    while (*at && *at != comm)
        at = &(*at)->next_open;
    if (*at)
        *at = comm->next_open;
}

/* ---- all of them ---- */

static void link_in(struct chempi_comm *comm)
{
    (void)pthread_mutex_lock(&all_lock);
    chempi_list_append(&all, &comm->link);
    (void)pthread_mutex_unlock(&all_lock);
}

static void unlink_from(struct chempi_comm *comm)
{
    (void)pthread_mutex_lock(&all_lock);
    chempi_list_remove(&comm->link);
    unlisten_locked(comm);
    (void)pthread_mutex_unlock(&all_lock);
}

static void fill(struct chempi_comm *comm, struct chempi_group *local,
                 struct chempi_group *remote)
{
    chempi_object_init(&comm->obj, CHEMPI_MAGIC_COMM);
    comm->is_inter = remote != NULL;
    if (!remote)
        remote = local;
    comm->local = local;
    comm->remote = remote;
    comm->rank = local->rank;
    comm->size = local->size;
    comm->remote_size = remote->size;
    comm->procs = remote->procs;
    comm->has_foreign = local->has_foreign || remote->has_foreign;
    comm->origin = local->origin;
    chempi_object_hold(&local->obj);
    chempi_object_hold(&remote->obj);
    link_in(comm);
}

const char *chempi_comm_check(const struct chempi_comm *comm)
{
    if (comm->send_context % CHEMPI_CONTEXT_STEP != 0 ||
        comm->recv_context % CHEMPI_CONTEXT_STEP != 0 ||
        (comm->send_context == 0) != (comm->recv_context == 0))
        return "comm C1: a context that cannot be a communicator's";
    if (!comm->is_inter && (comm->send_context != comm->recv_context ||
                            comm->remote != comm->local))
        return "comm C2: an intracommunicator with two sides";
    if ((comm->has_foreign || comm->is_inter) && comm->recv_context != 0 &&
        (!chempi_context_is_open(comm->recv_context) ||
         !chempi_context_is_open(comm->send_context)))
        return "comm C3: processes of other worlds, or two sides, and a "
               "context "
               "that is not open";
    return NULL;
}

struct chempi_comm *chempi_comm_make(struct chempi_group *local,
                                     struct chempi_group *remote,
                                     uint32_t send_context,
                                     uint32_t recv_context)
{
    struct chempi_comm *comm = chempi_sys->calloc(1, sizeof(*comm));

    if (!comm) {
        (void)chempi_error_set(MPI_ERR_NO_MEM, "no room for a communicator");
        return NULL;
    }
    comm->send_context = send_context;
    comm->recv_context = recv_context;
    comm->lane = &chempi_lane_main;
    comm->handle = (MPI_Comm)(void *)comm;
    fill(comm, local, remote);
    CHEMPI_CHECK(chempi_comm_check(comm));
    chempi_loss_note_change();
    if (chempi_context_is_open(recv_context)) {
        chempi_lane_lock(&chempi_lane_main);
        chempi_comm_listen(comm);
        chempi_lane_unlock(&chempi_lane_main);
    }
    return comm;
}

/* What every communicator holds, beside its own memory. */
static void fini(struct chempi_comm *comm)
{
    unlink_from(comm);
    if (comm->fini_votes)
        comm->fini_votes(comm);
    if (comm->fini_buffer)
        comm->fini_buffer(comm);
    if (comm->coll && comm->fini_coll)
        comm->fini_coll(comm);
    if (comm->topology && comm->fini_topology)
        comm->fini_topology(comm);
    chempi_errhandler_put(&comm->errhandler, NULL);
    chempi_info_release(comm->info);
    chempi_attr_drop_all(&comm->attrs);
    chempi_comm_release_servant(comm->local_comm);
    free(comm->absent);
    chempi_group_release(comm->local);
    chempi_group_release(comm->remote);
    comm->obj.magic = 0;
}

void chempi_comm_release(struct chempi_comm *comm)
{
    uint32_t context;
    bool is_clean;

    if (!comm || !chempi_object_drop(&comm->obj))
        return;
    is_clean = !comm->is_partial && !chempi_loss_is_in(comm);
    fini(comm);
    if (comm == &chempi_comm_world || comm == &chempi_comm_self)
        return;
    context = comm->recv_context;
    free(comm);
    if (is_clean)
        chempi_comm_rest_context(context);
    else /* messages may be left that nobody can take */
        chempi_loss_bury(context);
}

/* Members have left it, or never got it, for what has become of the one that
 * it serves, too. */
void chempi_comm_release_servant(struct chempi_comm *comm)
{
    if (comm && comm->serves) {
        comm->is_partial |= comm->serves->is_partial || chempi_loss_is_in(comm);
        comm->serves = NULL;
    }
    chempi_comm_release(comm);
}

/* ---- lanes ---- */

void chempi_comm_leave(struct chempi_comm *comm, struct chempi_lane *lane)
{
    int32_t refs = atomic_load_explicit(&comm->obj.refs, memory_order_relaxed);

    while (refs > 1)
        if (atomic_compare_exchange_weak_explicit(
                &comm->obj.refs, &refs, refs - 1, memory_order_acq_rel,
                memory_order_relaxed))
            return;
    comm->next_gone = lane->gone;
    lane->gone = comm;
    lane->has_deferred = true;
}

/* Lanes that all members have; 1: also where some are on other nodes. */
static uint32_t common_lanes(const struct chempi_comm *comm)
{
    const struct chempi_services *s = &chempi_ctx.services;
    uint32_t least = chempi_lane_count;

    for (uint32_t i = 0; i < comm->size && least > 1; i++) {
        const uint32_t proc = chempi_comm_proc(comm, i);
        uint32_t lanes = 1;

        if (chempi_ctx_is_here(proc))
            lanes = atomic_load_explicit(
                &s->wakes[s->local_rank_of_proc[proc]].lanes,
                memory_order_acquire);
        if (lanes < least)
            least = lanes;
    }
    return least;
}

void chempi_comm_choose_lane(struct chempi_comm *comm)
{
    const uint32_t lanes = comm->is_inter ? 1 : common_lanes(comm);

    if (lanes > 1) /* the first one has enough to do */
        comm->lane = chempi_lanes[1 + comm->recv_context / CHEMPI_CONTEXT_STEP %
                                          (lanes - 1)];
}

/* ---- MPI_COMM_WORLD and MPI_COMM_SELF ---- */

static int init_one(struct chempi_comm *comm, MPI_Comm handle, const char *name,
                    uint32_t context, struct chempi_group *group)
{
    if (!group)
        return chempi_error_set(MPI_ERR_NO_MEM, "no room for %s", name);
    comm->send_context = context;
    comm->recv_context = context;
    comm->lane = &chempi_lane_main;
    comm->handle = handle;
    (void)snprintf(comm->name, sizeof(comm->name), "%s", name);
    fill(comm, group, NULL);
    chempi_group_release(group); /* fill took its own */
    return MPI_SUCCESS;
}

/* Users get the addresses of values. */
static bool get_predefined(struct chempi_object *object, int keyval,
                           void **value, int *flag)
{
    static int values[MPI_UNIVERSE_SIZE - MPI_TAG_UB + 1];
    const struct chempi_job *job = chempi_ctx.job;
    int now = 0;

    (void)object;
    switch (keyval) {
    case MPI_TAG_UB:
        now = INT32_MAX;
        break;
    case MPI_IO:
        now = MPI_ANY_SOURCE;
        break;
    case MPI_HOST:
        now = MPI_PROC_NULL;
        break;
    case MPI_WTIME_IS_GLOBAL:
        break;
    case MPI_APPNUM:
        now = job ? (int)job->app_num : 0;
        break;
    case MPI_LASTUSEDCODE:
        now = chempi_error_last_used();
        break;
    case MPI_UNIVERSE_SIZE:
        now = job ? (int)job->universe_size : 0;
        break;
    default:
        return false;
    }
    *flag = keyval != MPI_UNIVERSE_SIZE || now > 0; /* not set: not known */
    if (*flag) {
        values[keyval - MPI_TAG_UB] = now;
        *value = &values[keyval - MPI_TAG_UB];
    }
    return true;
}

static void explain(struct chempi_object *object, int code)
{
    chempi_loss_explain(CHEMPI_CONTAINER_OF(object, struct chempi_comm, obj),
                        -1, code);
}

static void describe(struct chempi_object *object,
                     struct chempi_error_subject *out)
{
    struct chempi_comm *comm =
        CHEMPI_CONTAINER_OF(object, struct chempi_comm, obj);

    *out = (struct chempi_error_subject){
        .errhandler = &comm->errhandler,
        .attrs = &comm->attrs,
        .predefined = get_predefined,
        .explain = explain,
        .handle = comm->handle,
        .name = comm->name[0] != '\0' ? comm->name : "a communicator"};
}

int chempi_comm_init(uint32_t rank, uint32_t size)
{
    chempi_loss_on_context(is_bereft);
    chempi_guard_on_context(is_sender);
    uint32_t *self = chempi_sys->malloc(sizeof(*self));
    int rc;

    chempi_error_set_subject(CHEMPI_MAGIC_COMM, describe);
    memset(&chempi_comm_world, 0, sizeof(chempi_comm_world));
    memset(&chempi_comm_self, 0, sizeof(chempi_comm_self));
    chempi_comm_reset_contexts();
    chempi_loss_forget();
    if (!self)
        return chempi_error_set(MPI_ERR_NO_MEM, "no room for MPI_COMM_SELF");
    *self = rank;
    chempi_comm_world.rank = (int32_t)rank; /* groups find themselves by it */
    rc = init_one(&chempi_comm_world, MPI_COMM_WORLD, "MPI_COMM_WORLD",
                  CHEMPI_COMM_WORLD_CONTEXT, chempi_group_make(size, NULL));
    if (rc != MPI_SUCCESS) {
        free(self);
        return rc;
    }
    rc = init_one(&chempi_comm_self, MPI_COMM_SELF, "MPI_COMM_SELF",
                  CHEMPI_COMM_SELF_CONTEXT, chempi_group_make(1, self));
    if (rc != MPI_SUCCESS)
        chempi_comm_release(&chempi_comm_world);
    return rc;
}

void chempi_comm_run_self_deleters(void)
{
    /* All callbacks run (MPI 5.0, section 11.2.4): libraries clean up here that
     * know nothing of each other, or of an error of another one's. */
    chempi_attr_end_all(&chempi_comm_self.obj);
    chempi_attr_end_all(&chempi_comm_world.obj);
}

/* To who has spawned this world, until it is freed; MPI_COMM_NULL: nobody has.
 */
static _Atomic(MPI_Comm) parent_comm;

void chempi_comm_set_parent(MPI_Comm parent)
{
    atomic_store(&parent_comm, parent);
}

void chempi_comm_show_world(bool is_shown)
{
    struct chempi_comm *of_nobody = chempi_setting(CHEMPI_SET_ERRORS_OF_NOBODY)
                                        ? &chempi_comm_world
                                        : &chempi_comm_self;

    chempi_comm_shown_world = is_shown ? &chempi_comm_world : NULL;
    chempi_comm_shown_self = is_shown ? &chempi_comm_self : NULL;
    chempi_error_set_default(is_shown ? &of_nobody->obj : NULL);
    if (!is_shown)
        chempi_comm_set_parent(MPI_COMM_NULL);
}

void chempi_comm_fini(void)
{
    chempi_comm_release(&chempi_comm_self);
    chempi_comm_release(&chempi_comm_world);
    chempi_comm_free_contexts();
}

/* ---- local questions ---- */

int chempi_comm_get_size(struct chempi_comm *comm, int *size)
{
    *size = (int)comm->size;
    return MPI_SUCCESS;
}

int chempi_comm_get_rank(struct chempi_comm *comm, int *rank)
{
    *rank = comm->rank;
    return MPI_SUCCESS;
}

int chempi_comm_test_inter(struct chempi_comm *comm, int *flag)
{
    *flag = comm->is_inter;
    return MPI_SUCCESS;
}

/* Groups that were made for a communicator do not know of its session. */
static int give_group(const struct chempi_comm *comm,
                      struct chempi_group *group, MPI_Group *out)
{
    if (group->origin.session == comm->origin.session) {
        chempi_object_hold(&group->obj);
    } else {
        group = chempi_group_copy(group, comm->origin);
        if (!group)
            return chempi_error_set(MPI_ERR_NO_MEM, "no room for a group");
    }
    *out = (MPI_Group)(void *)group;
    return MPI_SUCCESS;
}

int chempi_comm_get_group(struct chempi_comm *comm, MPI_Group *group)
{
    return give_group(comm, comm->local, group);
}

static int not_inter(const struct chempi_comm *comm)
{
    return chempi_error_set(MPI_ERR_COMM, "%s is not an intercommunicator",
                            comm->name[0] ? comm->name : "the communicator");
}

int chempi_comm_get_remote_group(struct chempi_comm *comm, MPI_Group *group)
{
    return comm->is_inter ? give_group(comm, comm->remote, group)
                          : not_inter(comm);
}

int chempi_comm_get_remote_size(struct chempi_comm *comm, int *size)
{
    if (!comm->is_inter)
        return not_inter(comm);
    *size = (int)comm->remote_size;
    return MPI_SUCCESS;
}

/* The weaker of two results of comparing groups. */
static int worse(int a, int b)
{
    if (a == MPI_UNEQUAL || b == MPI_UNEQUAL)
        return MPI_UNEQUAL;
    return a == MPI_SIMILAR || b == MPI_SIMILAR ? MPI_SIMILAR : MPI_IDENT;
}

int chempi_comm_compare(struct chempi_comm *comm1, struct chempi_comm *comm2,
                        int *result)
{
    int local = MPI_UNEQUAL;
    int remote = MPI_IDENT;
    int rc = MPI_SUCCESS;

    if (comm1 == comm2) {
        *result = MPI_IDENT;
        return rc;
    }
    if (comm1->is_inter == comm2->is_inter)
        rc = chempi_group_compare(comm1->local, comm2->local, &local);
    if (rc == MPI_SUCCESS && comm1->is_inter && comm2->is_inter)
        rc = chempi_group_compare(comm1->remote, comm2->remote, &remote);
    if (rc != MPI_SUCCESS)
        return rc;
    *result = worse(local, remote);
    if (*result == MPI_IDENT)
        *result = MPI_CONGRUENT;
    return rc;
}

int chempi_comm_set_name(struct chempi_comm *comm, const char *comm_name)
{
    /* Another thread may be telling where it waits. */
    chempi_lane_lock(&chempi_lane_main);
    (void)snprintf(comm->name, sizeof(comm->name), "%s", comm_name);
    chempi_lane_unlock(&chempi_lane_main);
    return MPI_SUCCESS;
}

int chempi_comm_get_name(struct chempi_comm *comm, char *comm_name,
                         int *resultlen)
{
    *resultlen = snprintf(comm_name, MPI_MAX_OBJECT_NAME, "%s",
                          comm ? comm->name : "MPI_COMM_NULL");
    return MPI_SUCCESS;
}

int chempi_comm_get_parent(MPI_Comm *parent)
{
    MPI_Comm found = atomic_load(&parent_comm);

    *parent = found ? found : MPI_COMM_NULL;
    return MPI_SUCCESS;
}

/* ---- the end of a communicator ---- */

int chempi_comm_free(MPI_Comm *comm)
{
    struct chempi_comm *old = chempi_comm_lookup(*comm);
    int rc;

    if (!old || old == &chempi_comm_world || old == &chempi_comm_self)
        return chempi_error_set(MPI_ERR_COMM, "%s cannot be freed",
                                old ? old->name
                                    : "argument comm names no communicator; "
                                      "it");
    rc = chempi_attr_delete_all(&old->obj);
    if (rc != MPI_SUCCESS)
        return rc;
    if (atomic_load(&parent_comm) == *comm)
        chempi_comm_set_parent(MPI_COMM_NULL);
    old->is_freed = true;
    chempi_comm_release(old);
    *comm = MPI_COMM_NULL;
    return MPI_SUCCESS;
}

void chempi_comm_discard(struct chempi_comm *comm)
{
    if (!comm)
        return;
    chempi_attr_end_all(&comm->obj); /* the first error was reported */
    chempi_comm_release(comm);
}

void chempi_comm_inherit(struct chempi_comm *comm, struct chempi_comm *parent)
{
    struct chempi_errhandler *eh = chempi_errhandler_get(&parent->errhandler);

    chempi_errhandler_put(&comm->errhandler, eh);
    chempi_errhandler_release(eh);
    comm->origin = parent->origin;
    chempi_comm_choose_lane(comm);
}

/* ---- hints ---- */

/* The hints of MPI 5.0, sections 6.13 and 7.4.4; all are "true" or "false". */
static const char *const hints[] = {
    "mpi_assert_no_any_tag", "mpi_assert_no_any_source",
    "mpi_assert_exact_length", "mpi_assert_allow_overtaking",
    "mpi_assert_strict_persistent_collective_ordering"};

/* Of all communicators: threads may ask for the hints of one at the same time,
 * and the first one makes them. */
static pthread_mutex_t hints_lock = PTHREAD_MUTEX_INITIALIZER;

/* What is kept, with those of info that we know. */
static int fill_hints(const struct chempi_comm *comm, struct chempi_info *kept,
                      const struct chempi_info *info)
{
    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(hints); i++) {
        const char *value = info ? chempi_info_find(info, hints[i]) : NULL;
        int rc = MPI_SUCCESS;

        if (value &&
            (strcmp(value, "true") == 0 || strcmp(value, "false") == 0))
            rc = chempi_info_set(kept, hints[i], value);
        else if (!chempi_info_find(kept, hints[i]))
            rc = chempi_info_set(kept, hints[i], "false");
        if (rc != MPI_SUCCESS)
            return rc;
    }
    if (chempi_info_find(kept, CHEMPI_SESSION_KINDS_KEY))
        return MPI_SUCCESS;
    return chempi_session_put_kinds(kept, chempi_session_kinds(&comm->origin));
}

static int no_hints(void)
{
    return chempi_error_set(MPI_ERR_NO_MEM, "no room for hints");
}

static int take_hints_locked(struct chempi_comm *comm,
                             const struct chempi_info *info)
{
    struct chempi_info *kept = chempi_info_copy(comm->info);
    int rc = kept ? fill_hints(comm, kept, info) : no_hints();

    if (rc != MPI_SUCCESS) {
        chempi_info_release(kept);
        return rc;
    }
    chempi_info_release(comm->info);
    comm->info = kept;
    return MPI_SUCCESS;
}

int chempi_comm_take_hints(struct chempi_comm *comm,
                           const struct chempi_info *info)
{
    int rc;

    (void)pthread_mutex_lock(&hints_lock);
    rc = take_hints_locked(comm, info);
    (void)pthread_mutex_unlock(&hints_lock);
    return rc;
}

int chempi_comm_set_info(struct chempi_comm *comm, struct chempi_info *info)
{
    return chempi_comm_take_hints(comm, info);
}

int chempi_comm_get_info(struct chempi_comm *comm, MPI_Info *info_used)
{
    struct chempi_info *copy = NULL;
    int rc = MPI_SUCCESS;

    (void)pthread_mutex_lock(&hints_lock);
    if (!comm->info)
        rc = take_hints_locked(comm, NULL);
    if (rc == MPI_SUCCESS) {
        copy = chempi_info_copy(comm->info);
        rc = copy ? MPI_SUCCESS : no_hints();
    }
    (void)pthread_mutex_unlock(&hints_lock);
    if (rc == MPI_SUCCESS)
        *info_used = (MPI_Info)(void *)copy;
    return rc;
}
