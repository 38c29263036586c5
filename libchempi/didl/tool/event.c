/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events and their sources: what transport raises, told to callbacks.
 *
 *   E1  the queue, and what registrations hold, are guarded by event.lock;
 *       the order is tool lock, lane lock, event.lock
 *   E2  one thread delivers at a time; `current` is the instance that its
 *       callbacks may look at
 *   E3  a registration that is freed while a thread delivers is destroyed by
 *       that thread, after the callback that may be running
 *   E4  no callback begins for a registration that is freed, and whoever
 *       frees all of them at the end waits for a thread that delivers
 *   E5  a handle names one registration for ever: when it is freed, no other
 *       thread's new one answers to it, as an address would
 *
 * Callbacks run where the library holds no lock and is in no operation, so
 * they need nothing (MPI_T_CB_REQUIRE_NONE), and any callback may be called;
 * of several the one for the lowest level is.
 */

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/sys.h"
#include "libchempi/didl/tool/tool.h"
#include "libchempi/didl/transport/event.h"
#include "libchempi/didl/transport/lane.h"
#include "libchempi/didl/transport/progress/progress.h"

enum {
    QUEUE_MAX = 64, /* instances; more are dropped, and that is told */
    LEVELS = 4
};

static const char *const resolved_list[] = {"process", "node", "ways"};
static const struct chempi_words resolved_words = {
    "process_resolved", resolved_list, CHEMPI_ARRAY_LEN(resolved_list)};
static const char *const lost_list[] = {"process", "node", "error"};
static const struct chempi_words lost_words = {"process_lost", lost_list,
                                               CHEMPI_ARRAY_LEN(lost_list)};

static const struct {
    const char *name;
    const char *module;
    const char *text;
    const struct chempi_words *words; /* of the elements, all of MPI_INT */
} types[CHEMPI_EVENT_COUNT] = {
    [CHEMPI_EVENT_RESOLVED] =
        {"chempi_conn_process_resolved", "conn",
         "The ways to a process were looked up, because a message goes there "
         "for the first time: its number in the job, its node's, the number "
         "of size ranges with a way of their own.",
         &resolved_words},
    [CHEMPI_EVENT_LOST] =
        {"chempi_conn_process_lost", "conn",
         "A process cannot be reached any more: its number in the job, its "
         "node's, and errno or 0. The job is about to end.",
         &lost_words},
};

struct instance {
    enum chempi_event type;
    uint64_t time_ns;
    int32_t elements[CHEMPI_EVENT_ELEMENTS];
};

struct registration {
    struct chempi_list link;
    MPI_T_event_registration handle; /* a number, counted up (E5) */
    enum chempi_event type;
    MPI_T_event_cb_function *callbacks[LEVELS];
    void *user_data[LEVELS];
    MPI_T_event_dropped_cb_function *dropped;
    MPI_Count dropped_count;
    bool is_freed;
    MPI_T_event_free_cb_function *free_callback;
    void *free_data;
};

static const MPI_T_cb_safety levels[LEVELS] = {
    MPI_T_CB_REQUIRE_NONE,
    MPI_T_CB_REQUIRE_MPI_RESTRICTED,
    MPI_T_CB_REQUIRE_THREAD_SAFE,
    MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE,
};

static struct {
    pthread_mutex_t lock;
    struct chempi_list registrations;
    uintptr_t last_handle;
    _Atomic uint32_t wanted[CHEMPI_EVENT_COUNT]; /* registrations */
    struct instance queue[QUEUE_MAX];
    uint32_t head;
    uint32_t count;
    uint32_t freed; /* registrations that wait to be destroyed */
    bool is_delivering;
    pthread_t deliverer; /* while is_delivering */
    pthread_cond_t is_idle;
    const struct instance *current;
} event = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .is_idle = PTHREAD_COND_INITIALIZER,
    .registrations = {&event.registrations, &event.registrations},
};

static void lock(void)
{
    (void)pthread_mutex_lock(&event.lock);
}

static void unlock(void)
{
    (void)pthread_mutex_unlock(&event.lock);
}

/* ---- raising ---- */

/* One instance finds no room: every registration for it shall know. */
static void drop_locked(enum chempi_event type)
{
    CHEMPI_LIST_FOR (pos, &event.registrations) {
        struct registration *r =
            CHEMPI_CONTAINER_OF(pos, struct registration, link);

        r->dropped_count += r->type == type;
    }
}

static bool is_wanted(enum chempi_event type)
{
    return atomic_load_explicit(&event.wanted[type], memory_order_acquire) > 0;
}

static void note(enum chempi_event type,
                 const int32_t elements[CHEMPI_EVENT_ELEMENTS])
{
    lock();
    if (event.count == QUEUE_MAX) {
        drop_locked(type);
    } else {
        struct instance *at =
            &event.queue[(event.head + event.count++) % QUEUE_MAX];

        at->type = type;
        at->time_ns = chempi_clock_ns();
        memcpy(at->elements, elements, sizeof(at->elements));
    }
    unlock();
    chempi_progress_announce();
}

/* ---- delivering ---- */

/* Let go of what was freed meanwhile (E3). */
static void reap_locked(void)
{
    CHEMPI_LIST_FOR_SAFE (pos, &event.registrations) {
        struct registration *r =
            CHEMPI_CONTAINER_OF(pos, struct registration, link);

        if (!r->is_freed)
            continue;
        chempi_list_remove(&r->link);
        event.freed--;
        unlock();
        if (r->free_callback)
            r->free_callback(r->handle, MPI_T_CB_REQUIRE_NONE, r->free_data);
        free(r);
        lock();
    }
}

/* LEVELS: it has none. */
static int lowest_level(const struct registration *r)
{
    int level = 0;

    while (level < LEVELS && !r->callbacks[level])
        level++;
    return level;
}

static void tell_dropped_locked(struct registration *r)
{
    const int level = lowest_level(r);
    const struct registration now = *r;

    if (r->is_freed || level == LEVELS)
        return;
    r->dropped_count = 0;
    if (!now.dropped_count || !now.dropped)
        return;
    unlock();
    now.dropped(now.dropped_count, r->handle, 0, MPI_T_CB_REQUIRE_NONE,
                now.user_data[level]);
    lock();
}

/* The handler of what was dropped may have freed the registration. */
static void tell_locked(struct registration *r, const struct instance *instance)
{
    const int level = lowest_level(r);
    const struct registration now = *r;

    if (r->is_freed || level == LEVELS)
        return;
    unlock();
    now.callbacks[level]((MPI_T_event_instance)(uintptr_t)instance, r->handle,
                         MPI_T_CB_REQUIRE_NONE, now.user_data[level]);
    lock();
}

/* Registrations leave the list only in reap_locked(), by this thread. */
static void tell_all_locked(const struct instance *instance)
{
    event.current = instance;
    CHEMPI_LIST_FOR (pos, &event.registrations) {
        struct registration *r =
            CHEMPI_CONTAINER_OF(pos, struct registration, link);

        if (r->type != instance->type)
            continue;
        tell_dropped_locked(r);
        tell_locked(r, instance);
    }
    event.current = NULL;
}

static void deliver(void)
{
    lock();
    if (event.is_delivering) {
        unlock(); /* that thread goes on until nothing is left */
        return;
    }
    event.is_delivering = true;
    event.deliverer = pthread_self();
    while (event.count > 0 || event.freed > 0) {
        struct instance instance;

        reap_locked();
        if (event.count == 0)
            continue;
        instance = event.queue[event.head];
        event.head = (event.head + 1) % QUEUE_MAX;
        event.count--;
        tell_all_locked(&instance);
    }
    event.is_delivering = false;
    (void)pthread_cond_broadcast(&event.is_idle);
    unlock();
}

static const struct chempi_event_listener listener = {
    .wants = is_wanted,
    .raise = note,
    .deliver = deliver,
};

/* A callback of this thread's that asks for the end must not wait for itself:
 * what is left goes when it has returned (E3). */
void chempi_tool_event_settle(void)
{
    lock();
    while (event.is_delivering &&
           !pthread_equal(event.deliverer, pthread_self()))
        (void)pthread_cond_wait(&event.is_idle, &event.lock);
    unlock();
    deliver();
}

/* ---- types ---- */

uint32_t chempi_tool_event_count(void)
{
    return CHEMPI_EVENT_COUNT;
}

const char *chempi_tool_event_module(uint32_t i)
{
    return types[i].module;
}

const struct chempi_words *chempi_tool_event_words(int i)
{
    return i >= 0 && i < CHEMPI_EVENT_COUNT ? types[i].words : NULL;
}

/* An info object without hints: none is understood. */
static int put_info(MPI_Info *info)
{
    if (!info)
        return MPI_SUCCESS;
    return chempi_info_create(info) ? MPI_T_ERR_MEMORY : MPI_SUCCESS;
}

int chempi_tool_event_get_num(int *num_events)
{
    if (!num_events)
        return MPI_T_ERR_INVALID;
    *num_events = CHEMPI_EVENT_COUNT;
    return MPI_SUCCESS;
}

static void put_elements(MPI_Datatype datatypes[], MPI_Aint displacements[],
                         int *num_elements)
{
    if (!num_elements)
        return;
    for (int i = 0; i < *num_elements && i < CHEMPI_EVENT_ELEMENTS; i++) {
        if (datatypes)
            datatypes[i] = MPI_INT;
        if (displacements)
            displacements[i] = (MPI_Aint)((size_t)i * sizeof(int));
    }
    *num_elements = CHEMPI_EVENT_ELEMENTS;
}

int chempi_tool_event_get_info(int event_index, char *name, int *name_len,
                               int *verbosity,
                               MPI_Datatype array_of_datatypes[],
                               MPI_Aint array_of_displacements[],
                               int *num_elements, MPI_T_enum *enumtype,
                               MPI_Info *info, char *desc, int *desc_len,
                               int *bind)
{
    int rc;

    if (!chempi_tool_event_words(event_index))
        return MPI_T_ERR_INVALID_INDEX;
    rc = put_info(info);
    if (rc)
        return rc;
    chempi_tool_put_text(types[event_index].name, name, name_len);
    chempi_tool_put_text(types[event_index].text, desc, desc_len);
    chempi_tool_put(verbosity, MPI_T_VERBOSITY_USER_BASIC);
    chempi_tool_put(bind, MPI_T_BIND_NO_OBJECT);
    put_elements(array_of_datatypes, array_of_displacements, num_elements);
    if (enumtype)
        *enumtype = chempi_tool_enum(types[event_index].words);
    return MPI_SUCCESS;
}

int chempi_tool_event_get_index(const char *name, int *event_index)
{
    if (!name || !event_index)
        return MPI_T_ERR_INVALID;
    for (int i = 0; i < CHEMPI_EVENT_COUNT; i++) {
        if (strcmp(types[i].name, name) != 0)
            continue;
        *event_index = i;
        return MPI_SUCCESS;
    }
    return MPI_T_ERR_INVALID_NAME;
}

/* ---- registrations ---- */

/* The next call that makes progress looks who wants what. */
static void announce(void)
{
    chempi_lane_lock(&chempi_lane_main);
    chempi_progress_announce();
    chempi_lane_unlock(&chempi_lane_main);
}

static struct registration *find_locked(MPI_T_event_registration handle)
{
    CHEMPI_LIST_FOR (pos, &event.registrations) {
        struct registration *r =
            CHEMPI_CONTAINER_OF(pos, struct registration, link);

        if (r->handle == handle && !r->is_freed)
            return r;
    }
    return NULL;
}

/* Both locks are held on success. */
static int enter(MPI_T_event_registration handle, struct registration **out)
{
    int rc = chempi_tool_enter();

    if (rc)
        return rc;
    lock();
    *out = find_locked(handle);
    if (*out)
        return MPI_SUCCESS;
    unlock();
    return chempi_tool_leave(MPI_T_ERR_INVALID_HANDLE);
}

static int leave(int rc)
{
    unlock();
    return chempi_tool_leave(rc);
}

static int level_of(MPI_T_cb_safety safety)
{
    for (int i = 0; i < LEVELS; i++)
        if (levels[i] == safety)
            return i;
    return -1;
}

int chempi_tool_event_handle_alloc(int event_index, void *obj_handle,
                                   MPI_Info info,
                                   MPI_T_event_registration *registration)
{
    struct registration *r;

    (void)obj_handle; /* no event is bound to an object */
    (void)info;       /* no hint is understood */
    if (!chempi_tool_event_words(event_index))
        return MPI_T_ERR_INVALID_INDEX;
    if (!registration)
        return MPI_T_ERR_INVALID;
    r = chempi_sys->calloc(1, sizeof(*r));
    if (!r)
        return MPI_T_ERR_OUT_OF_HANDLES;
    r->type = (enum chempi_event)event_index;
    lock();
    r->handle = (MPI_T_event_registration)++event.last_handle;
    *registration = r->handle;
    chempi_list_append(&event.registrations, &r->link);
    atomic_fetch_add(&event.wanted[event_index], 1);
    chempi_event_listen(&listener);
    unlock();
    announce();
    return MPI_SUCCESS;
}

/* Nobody finds it any more; it is destroyed by the next delivery (E3). */
static void let_go_locked(struct registration *r)
{
    r->is_freed = true;
    event.freed++;
    atomic_fetch_sub(&event.wanted[r->type], 1);
}

int chempi_tool_event_handle_free(
    MPI_T_event_registration event_registration, void *user_data,
    MPI_T_event_free_cb_function *free_cb_function)
{
    struct registration *r;
    int rc = enter(event_registration, &r);

    if (rc)
        return rc;
    r->free_callback = free_cb_function;
    r->free_data = user_data;
    let_go_locked(r);
    rc = leave(MPI_SUCCESS);
    announce();
    deliver(); /* which reaps */
    return rc;
}

void chempi_tool_event_fini(void)
{
    lock();
    CHEMPI_LIST_FOR (pos, &event.registrations) {
        struct registration *r =
            CHEMPI_CONTAINER_OF(pos, struct registration, link);

        if (!r->is_freed)
            let_go_locked(r);
    }
    unlock();
    announce();
}

int chempi_tool_event_register_callback(
    MPI_T_event_registration event_registration, MPI_T_cb_safety cb_safety,
    MPI_Info info, void *user_data, MPI_T_event_cb_function *event_cb_function)
{
    struct registration *r;
    int level = level_of(cb_safety);
    int rc = enter(event_registration, &r);

    (void)info; /* no hint is understood */
    if (rc)
        return rc;
    if (level < 0)
        return leave(MPI_T_ERR_INVALID);
    r->callbacks[level] = event_cb_function;
    r->user_data[level] = user_data;
    return leave(MPI_SUCCESS);
}

int chempi_tool_event_set_dropped_handler(
    MPI_T_event_registration event_registration,
    MPI_T_event_dropped_cb_function *dropped_cb_function)
{
    struct registration *r;
    int rc = enter(event_registration, &r);

    if (rc)
        return rc;
    r->dropped = dropped_cb_function;
    return leave(MPI_SUCCESS);
}

/* Hints of registrations and callbacks: all are ignored, none is kept. */
static int check(MPI_T_event_registration handle, MPI_Info *info)
{
    struct registration *r;
    int rc = enter(handle, &r);

    return rc ? rc : leave(put_info(info));
}

int chempi_tool_event_handle_set_info(
    MPI_T_event_registration event_registration, MPI_Info info)
{
    (void)info;
    return check(event_registration, NULL);
}

int chempi_tool_event_handle_get_info(
    MPI_T_event_registration event_registration, MPI_Info *info_used)
{
    return check(event_registration, info_used);
}

int chempi_tool_event_callback_set_info(
    MPI_T_event_registration event_registration, MPI_T_cb_safety cb_safety,
    MPI_Info info)
{
    (void)info;
    if (level_of(cb_safety) < 0)
        return MPI_T_ERR_INVALID;
    return check(event_registration, NULL);
}

int chempi_tool_event_callback_get_info(
    MPI_T_event_registration event_registration, MPI_T_cb_safety cb_safety,
    MPI_Info *info_used)
{
    if (level_of(cb_safety) < 0)
        return MPI_T_ERR_INVALID;
    return check(event_registration, info_used);
}

/* ---- instances, which live as long as the callback runs ---- */

static const struct instance *find_instance(MPI_T_event_instance handle)
{
    const struct instance *current;

    lock();
    current = event.current;
    unlock();
    return current && (MPI_T_event_instance)(uintptr_t)current == handle
               ? current
               : NULL;
}

int chempi_tool_event_read(MPI_T_event_instance event_instance,
                           int element_index, void *buffer)
{
    const struct instance *at = find_instance(event_instance);

    if (!at)
        return MPI_T_ERR_INVALID_HANDLE;
    if (element_index < 0 || element_index >= CHEMPI_EVENT_ELEMENTS)
        return MPI_T_ERR_INVALID_INDEX;
    if (!buffer)
        return MPI_T_ERR_INVALID;
    *(int *)buffer = at->elements[element_index];
    return MPI_SUCCESS;
}

int chempi_tool_event_copy(MPI_T_event_instance event_instance, void *buffer)
{
    const struct instance *at = find_instance(event_instance);

    if (!at)
        return MPI_T_ERR_INVALID_HANDLE;
    if (!buffer)
        return MPI_T_ERR_INVALID;
    memcpy(buffer, at->elements, sizeof(at->elements));
    return MPI_SUCCESS;
}

int chempi_tool_event_get_timestamp(MPI_T_event_instance event_instance,
                                    MPI_Count *event_timestamp)
{
    const struct instance *at = find_instance(event_instance);

    if (!at)
        return MPI_T_ERR_INVALID_HANDLE;
    if (!event_timestamp)
        return MPI_T_ERR_INVALID;
    *event_timestamp = (MPI_Count)at->time_ns;
    return MPI_SUCCESS;
}

int chempi_tool_event_get_source(MPI_T_event_instance event_instance,
                                 int *source_index)
{
    if (!find_instance(event_instance))
        return MPI_T_ERR_INVALID_HANDLE;
    if (!source_index)
        return MPI_T_ERR_INVALID;
    *source_index = 0;
    return MPI_SUCCESS;
}

/* ---- sources: there is one, the library ---- */

int chempi_tool_source_get_num(int *num_sources)
{
    if (!num_sources)
        return MPI_T_ERR_INVALID;
    *num_sources = 1;
    return MPI_SUCCESS;
}

int chempi_tool_source_get_info(int source_index, char *name, int *name_len,
                                char *desc, int *desc_len,
                                MPI_T_source_order *ordering,
                                MPI_Count *ticks_per_second,
                                MPI_Count *max_ticks, MPI_Info *info)
{
    int rc;

    if (source_index != 0)
        return MPI_T_ERR_INVALID_INDEX;
    rc = put_info(info);
    if (rc)
        return rc;
    chempi_tool_put_text("chempi", name, name_len);
    chempi_tool_put_text("The library in this process; times are those of the "
                         "machine's monotonic clock, in nanoseconds.",
                         desc, desc_len);
    if (ordering)
        *ordering = MPI_T_SOURCE_ORDERED;
    if (ticks_per_second)
        *ticks_per_second = (MPI_Count)CHEMPI_NS_PER_S;
    if (max_ticks)
        *max_ticks = INT64_MAX;
    return MPI_SUCCESS;
}

int chempi_tool_source_get_timestamp(int source_index, MPI_Count *timestamp)
{
    if (source_index != 0)
        return MPI_T_ERR_INVALID_INDEX;
    if (!timestamp)
        return MPI_T_ERR_INVALID;
    *timestamp = (MPI_Count)chempi_clock_ns();
    return MPI_SUCCESS;
}
