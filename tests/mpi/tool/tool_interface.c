/* SPDX-License-Identifier: BSD-3-Clause */
/* The tool interface: before MPI starts, while messages go, after its end. */
#include "check.h"

#define MESSAGES 20
#define BYTES 8

/* Which pvar has this name? Any class. */
static int pvar_index(const char *name)
{
    for (int c = MPI_T_PVAR_CLASS_STATE; c <= MPI_T_PVAR_CLASS_GENERIC; c++) {
        int i;

        if (MPI_T_pvar_get_index(name, c, &i) == MPI_SUCCESS)
            return i;
    }
    return -1;
}

static MPI_T_pvar_handle watch(MPI_T_pvar_session session, const char *name)
{
    MPI_T_pvar_handle handle = MPI_T_PVAR_HANDLE_NULL;
    int count = 0;
    int i = pvar_index(name);

    CHECK_OR_DIE(i >= 0, "no variable %s", name);
    CHECK_OR_DIE(!MPI_T_pvar_handle_alloc(session, i, NULL, &handle, &count) &&
                     count == 1,
                 "no handle for %s", name);
    return handle;
}

static unsigned long long value(MPI_T_pvar_session session,
                                MPI_T_pvar_handle handle)
{
    unsigned long long v = ~0ULL;
    int rc = MPI_T_pvar_read(session, handle, &v);

    CHECK(rc == MPI_SUCCESS, "read: %d", rc);
    return v;
}

/* ---- control variables ---- */

static MPI_T_cvar_handle cvar(const char *name)
{
    MPI_T_cvar_handle handle = MPI_T_CVAR_HANDLE_NULL;
    int i = -1;
    int count = 0;

    CHECK(!MPI_T_cvar_get_index(name, &i), "no variable %s", name);
    CHECK(!MPI_T_cvar_handle_alloc(i, NULL, &handle, &count) && count == 1,
          "no handle for %s", name);
    return handle;
}

static void before_init(void)
{
    unsigned long long quota = 0;
    unsigned long long other = 1u << 20;
    MPI_T_cvar_handle handle;
    int n = -1;

    CHECK(MPI_T_cvar_get_num(&n) == MPI_T_ERR_NOT_INITIALIZED, "not started");
    CHECK(MPI_T_finalize() == MPI_T_ERR_NOT_INITIALIZED, "not started");
    for (int i = 0; i < 2; i++) {
        int provided = -1;

        CHECK(!MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided) &&
                  provided == MPI_THREAD_MULTIPLE,
              "provided %d", provided);
    }
    CHECK(!MPI_T_finalize(), "the first of two");
    handle = cvar("chempi_conn_eager_quota");
    CHECK(!MPI_T_cvar_read(handle, &quota) && quota == 4u << 20, "quota %llu",
          quota);
    CHECK(!MPI_T_cvar_write(handle, &other), "write before MPI_Init");
    other = 1;
    CHECK(MPI_T_cvar_write(handle, &other) == MPI_T_ERR_INVALID, "too small");
    CHECK(!MPI_T_cvar_read(handle, &quota) && quota == 1u << 20, "quota %llu",
          quota);
    CHECK(!MPI_T_cvar_handle_free(&handle) && handle == MPI_T_CVAR_HANDLE_NULL,
          "free");
}

/* How many categories have this variable? */
static int homes(int index, bool is_cvar)
{
    int members[512];
    int found = 0;
    int count = 0;

    MPI_T_category_get_num(&count);
    for (int c = 0; c < count; c++) {
        int cvars = 0;
        int pvars = 0;
        int n;

        MPI_T_category_get_info(c, NULL, NULL, NULL, NULL, &cvars, &pvars,
                                NULL);
        n = is_cvar ? cvars : pvars;
        CHECK_OR_DIE(n <= 512, "%d members", n);
        if (is_cvar)
            MPI_T_category_get_cvars(c, n, members);
        else
            MPI_T_category_get_pvars(c, n, members);
        for (int i = 0; i < n; i++)
            found += members[i] == index;
    }
    return found;
}

static void categories(void)
{
    int count = 0;

    MPI_T_cvar_get_num(&count);
    CHECK(count > 20, "%d control variables", count);
    for (int i = 0; i < count; i++)
        CHECK(homes(i, true) == 1, "cvar %d has %d", i, homes(i, true));
    MPI_T_pvar_get_num(&count);
    CHECK(count > 20, "%d performance variables", count);
    for (int i = 0; i < count; i++)
        CHECK(homes(i, false) == 1, "pvar %d has %d", i, homes(i, false));
}

static void while_up(void)
{
    unsigned long long v = 5000;
    MPI_T_cvar_handle fixed = cvar("chempi_conn_eager_quota");
    MPI_T_cvar_handle loose = cvar("chempi_match_pool");
    MPI_T_cvar_handle stale = loose;

    CHECK(MPI_T_cvar_write(fixed, &v) == MPI_T_ERR_CVAR_SET_NOT_NOW, "fixed");
    CHECK(!MPI_T_cvar_write(loose, &v), "at run time");
    CHECK(!MPI_T_cvar_handle_free(&fixed) && !MPI_T_cvar_handle_free(&loose),
          "free");
    CHECK(MPI_T_cvar_read(stale, &v) == MPI_T_ERR_INVALID_HANDLE, "stale");
}

/* Checks of arguments can be turned off. */
static void unchecked(void)
{
    MPI_T_cvar_handle handle = cvar("chempi_check_arguments");
    int is_on = 0;

    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    CHECK(!MPI_T_cvar_write(handle, &is_on), "off");
    CHECK(MPI_Send(&is_on, 1, MPI_INT, MPI_PROC_NULL, -5, MPI_COMM_SELF) ==
              MPI_SUCCESS,
          "a wrong tag, unchecked");
    is_on = 2;
    CHECK(MPI_T_cvar_write(handle, &is_on) == MPI_T_ERR_INVALID, "2");
    is_on = 1;
    CHECK(!MPI_T_cvar_write(handle, &is_on), "on");
    CHECK(MPI_Send(&is_on, 1, MPI_INT, MPI_PROC_NULL, -5, MPI_COMM_SELF) !=
              MPI_SUCCESS,
          "a wrong tag, checked");
    MPI_T_cvar_handle_free(&handle);
}

/* ---- performance variables ---- */

static void messages(int count, int tag)
{
    char data[BYTES] = {0};
    int other = check_rank() ^ 1;

    for (int i = 0; i < count; i++)
        MPI_Sendrecv(data, BYTES, MPI_BYTE, other, tag, data, BYTES, MPI_BYTE,
                     other, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* All variables with this in their name, whatever the device. */
static int watch_all(MPI_T_pvar_session session, const char *what,
                     MPI_T_pvar_handle handles[], int room)
{
    int count = 0;
    int n = 0;

    MPI_T_pvar_get_num(&n);
    for (int i = 0; i < n && count < room; i++) {
        char name[128];
        int len = sizeof(name);
        int one = 0;

        MPI_T_pvar_get_info(i, name, &len, NULL, NULL, NULL, NULL, NULL, NULL,
                            NULL, NULL, NULL, NULL);
        if (strstr(name, what) &&
            !MPI_T_pvar_handle_alloc(session, i, NULL, &handles[count], &one))
            count++;
    }
    CHECK(count >= 3, "only %d variables are called %s", count, what);
    return count;
}

static unsigned long long total(MPI_T_pvar_session session,
                                MPI_T_pvar_handle handles[], int count)
{
    unsigned long long all = 0;

    for (int i = 0; i < count; i++)
        all += value(session, handles[i]);
    return all;
}

enum { ROOM = 32 };

/* Handles of everything that the messages below should move. */
struct watched {
    MPI_T_pvar_session session;
    MPI_T_pvar_handle sent[ROOM];
    MPI_T_pvar_handle got[ROOM];
    MPI_T_pvar_handle bytes[ROOM];
    MPI_T_pvar_handle met_posted;
    MPI_T_pvar_handle met_held;
    int sents;
    int gots;
    int byteses;
};

static void watch_messages(struct watched *w)
{
    CHECK_OR_DIE(!MPI_T_pvar_session_create(&w->session), "session");
    w->sents = watch_all(w->session, "_messages_sent", w->sent, ROOM);
    w->gots = watch_all(w->session, "_messages_received", w->got, ROOM);
    w->byteses = watch_all(w->session, "_bytes_received", w->bytes, ROOM);
    w->met_posted = watch(w->session, "chempi_match_met_posted");
    w->met_held = watch(w->session, "chempi_match_met_unexpected");
}

/* The other rank may be one message behind or ahead. */
static bool is_about(unsigned long long v, unsigned long long unit)
{
    return v >= (MESSAGES - 1) * unit && v <= (MESSAGES + 1) * unit;
}

static void counters(struct watched *w)
{
    unsigned long long met;
    unsigned long long old;

    CHECK(value(w->session, w->met_posted) == 0, "a handle begins at 0");
    CHECK(!MPI_T_pvar_start(w->session, MPI_T_PVAR_ALL_HANDLES), "start");
    messages(MESSAGES, 3);
    CHECK(!MPI_T_pvar_stop(w->session, MPI_T_PVAR_ALL_HANDLES), "stop");
    messages(5, 4);
    CHECK(total(w->session, w->sent, w->sents) == MESSAGES, "sent %llu",
          total(w->session, w->sent, w->sents));
    CHECK(is_about(total(w->session, w->got, w->gots), 1), "received %llu",
          total(w->session, w->got, w->gots));
    CHECK(is_about(total(w->session, w->bytes, w->byteses), BYTES),
          "received %llu bytes", total(w->session, w->bytes, w->byteses));
    met = value(w->session, w->met_posted) + value(w->session, w->met_held);
    CHECK(is_about(met, 1), "matched %llu", met);
    old = value(w->session, w->met_posted);
    CHECK(!MPI_T_pvar_readreset(w->session, w->met_posted, &met) &&
              met == old && value(w->session, w->met_posted) == 0,
          "readreset %llu", met);
    met = 7;
    CHECK(!MPI_T_pvar_write(w->session, w->met_posted, &met) &&
              value(w->session, w->met_posted) == 7,
          "write");
}

/* Rank 0 sends before rank 1 receives. */
static void unexpected(MPI_T_pvar_session session)
{
    MPI_T_pvar_handle level = watch(session, "chempi_match_unexpected");
    MPI_T_pvar_handle peak = watch(session, "chempi_match_unexpected_max");
    MPI_T_pvar_handle two = watch(session, "chempi_match_unexpected_max");
    int data = 1;

    CHECK(MPI_T_pvar_start(session, level) == MPI_T_ERR_PVAR_NO_STARTSTOP,
          "a level is continuous");
    CHECK(MPI_T_pvar_reset(session, level) == MPI_T_ERR_PVAR_NO_WRITE,
          "a level is read-only");
    CHECK(!MPI_T_pvar_start(session, peak), "start");
    if (check_rank() == 0) {
        for (int i = 0; i < 3; i++)
            MPI_Send(&data, 1, MPI_INT, 1, i, MPI_COMM_WORLD);
        MPI_Send(&data, 1, MPI_INT, 1, 9, MPI_COMM_WORLD);
        MPI_Recv(&data, 1, MPI_INT, 1, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        return; /* not before: what follows would be unexpected, too */
    }
    MPI_Probe(0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(value(session, level) == 4, "%llu wait", value(session, level));
    CHECK(value(session, peak) == 4, "at most %llu", value(session, peak));
    MPI_Recv(&data, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(!MPI_T_pvar_start(session, two), "start");
    CHECK(value(session, two) == 3, "begins at %llu", value(session, two));
    CHECK(value(session, peak) == 4, "of its own %llu", value(session, peak));
    for (int i = 0; i < 3; i++)
        MPI_Recv(&data, 1, MPI_INT, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(!MPI_T_pvar_reset(session, peak) && value(session, peak) == 0,
          "after reset %llu", value(session, peak));
    CHECK(value(session, two) == 3, "then %llu", value(session, two));
    MPI_Send(&data, 1, MPI_INT, 0, 8, MPI_COMM_WORLD);
}

/* Nothing is counted any more: true if all is well. */
static bool after_finalize(struct watched *w)
{
    unsigned long long old = total(w->session, w->got, w->gots);
    unsigned long long v = 0;
    MPI_T_cvar_handle loose = cvar("chempi_match_pool");

    return MPI_T_cvar_read(loose, &v) == MPI_SUCCESS && v == 5000 &&
           old >= MESSAGES - 1 && MPI_T_pvar_session_free(&w->session) == 0 &&
           w->session == MPI_T_PVAR_SESSION_NULL && MPI_T_finalize() == 0 &&
           MPI_T_finalize() == MPI_T_ERR_NOT_INITIALIZED;
}

/* ---- events ---- */

struct seen {
    int calls;
    int freed;
    int elements[3];
    MPI_Count time;
};

static void saw(MPI_T_event_instance instance, MPI_T_event_registration reg,
                MPI_T_cb_safety safety, void *user_data)
{
    struct seen *seen = user_data;
    int copied[3] = {-1, -1, -1};
    int source = -1;

    (void)reg;
    (void)safety;
    seen->calls++;
    CHECK(!MPI_T_event_copy(instance, copied), "copy");
    for (int i = 0; i < 3; i++)
        CHECK(!MPI_T_event_read(instance, i, &seen->elements[i]) &&
                  seen->elements[i] == copied[i],
              "element %d", i);
    CHECK(MPI_T_event_read(instance, 3, copied) == MPI_T_ERR_INVALID_INDEX,
          "no such element");
    CHECK(!MPI_T_event_get_timestamp(instance, &seen->time), "time");
    CHECK(!MPI_T_event_get_source(instance, &source) && source == 0, "source");
}

static void freed(MPI_T_event_registration reg, MPI_T_cb_safety safety,
                  void *user_data)
{
    struct seen *seen = user_data;

    (void)reg;
    (void)safety;
    seen->freed++;
}

/* The first message to a process is an event. */
static void events(struct seen *seen)
{
    MPI_T_event_registration reg;
    MPI_Count begin = 0;
    MPI_Count end = 0;
    int i = -1;

    CHECK_OR_DIE(!MPI_T_event_get_index("chempi_conn_process_resolved", &i),
                 "no such event");
    CHECK_OR_DIE(!MPI_T_event_handle_alloc(i, NULL, MPI_INFO_NULL, &reg),
                 "no registration");
    CHECK(!MPI_T_event_register_callback(reg, MPI_T_CB_REQUIRE_NONE,
                                         MPI_INFO_NULL, seen, saw),
          "register");
    MPI_T_source_get_timestamp(0, &begin);
    messages(1, 1);
    MPI_Barrier(MPI_COMM_WORLD); /* more progress */
    MPI_T_source_get_timestamp(0, &end);
    CHECK(seen->calls == 1 && seen->elements[0] == (check_rank() ^ 1),
          "%d calls, process %d", seen->calls, seen->elements[0]);
    CHECK(seen->time >= begin && seen->time <= end, "at the time");
    CHECK(!MPI_T_event_handle_free(reg, seen, freed) && seen->freed == 1,
          "freed %d times", seen->freed);
}

int main(int argc, char **argv)
{
    struct watched watched;
    struct seen seen = {0};

    before_init();
    check_start(&argc, &argv);
    check_need(2);
    events(&seen);
    while_up();
    categories();
    unchecked();
    watch_messages(&watched);
    counters(&watched);
    unexpected(watched.session);
    MPI_Barrier(MPI_COMM_WORLD);
    if (check_finish() != 0)
        return 1;
    if (after_finalize(&watched))
        return 0;
    printf("after MPI_Finalize something is wrong\n");
    return 1;
}
