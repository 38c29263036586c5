/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All of the tool interface's inventory: every control variable is read and
 * written back, every performance variable read, every category, enumeration,
 * event and source looked at, with short buffers and without any; wrong
 * handles and indices; several threads; registrations that outlive the tool.
 */
#include <pthread.h>

#include "check.h"

enum { TEXT = 512 };

static int calls_of_handler;

static void count_calls(MPI_Comm *comm, int *error, ...)
{
    (void)comm;
    (void)error;
    calls_of_handler++;
}

/* What a call with room for 5 bytes gives: 4 characters and the whole length.
 */
static void check_short(const char *whole, const char *cut, int len,
                        const char *what)
{
    CHECK(len == (int)strlen(whole) + 1, "%s: length %d of \"%s\"", what, len,
          whole);
    CHECK(strlen(cut) == 4 && strncmp(cut, whole, 4) == 0, "%s: cut to \"%s\"",
          what, cut);
}

static void check_enum(MPI_T_enum set, const char *what)
{
    char name[TEXT] = "";
    int len = TEXT;
    int num = -1;

    CHECK(MPI_T_enum_get_info(set, &num, name, &len) == MPI_SUCCESS &&
              num > 0 && name[0],
          "%s: enumeration", what);
    CHECK(MPI_T_enum_get_info(set, NULL, NULL, NULL) == MPI_SUCCESS,
          "%s: enumeration without arguments", what);
    for (int i = 0; i < num; i++) {
        int value = -1;

        len = TEXT;
        CHECK(MPI_T_enum_get_item(set, i, &value, name, &len) == MPI_SUCCESS &&
                  name[0],
              "%s: item %d", what, i);
    }
    CHECK(MPI_T_enum_get_item(set, num, &len, NULL, NULL) != MPI_SUCCESS,
          "%s: an item beyond the last", what);
}

static void check_cvar_value(int i, MPI_Datatype type, const char *name)
{
    MPI_T_cvar_handle handle = MPI_T_CVAR_HANDLE_NULL;
    unsigned long long wide = 0;
    int narrow = 0;
    int count = -1;
    void *buf = type == MPI_INT ? (void *)&narrow : (void *)&wide;
    int rc;

    CHECK(type == MPI_INT || type == MPI_UNSIGNED_LONG_LONG, "%s: type", name);
    CHECK(!MPI_T_cvar_handle_alloc(i, NULL, &handle, &count) && count == 1,
          "%s: handle", name);
    CHECK(!MPI_T_cvar_read(handle, buf), "%s: read", name);
    rc = MPI_T_cvar_write(handle, buf);
    CHECK(rc == MPI_SUCCESS || rc == MPI_T_ERR_CVAR_SET_NOT_NOW,
          "%s: write: %d", name, rc);
    CHECK(MPI_T_cvar_read(handle, NULL) != MPI_SUCCESS, "%s: to NULL", name);
    CHECK(MPI_T_cvar_write(handle, NULL) != MPI_SUCCESS, "%s: of NULL", name);
    CHECK(!MPI_T_cvar_handle_free(&handle) && handle == MPI_T_CVAR_HANDLE_NULL,
          "%s: free", name);
}

static void cvars(void)
{
    int n = -1;
    int index = -1;
    MPI_T_cvar_handle none = MPI_T_CVAR_HANDLE_NULL;

    MPI_T_cvar_get_num(&n);
    CHECK(n > 20, "%d control variables", n);
    for (int i = 0; i < n; i++) {
        char name[TEXT] = "";
        char desc[TEXT] = "";
        char cut[5] = "";
        int len = TEXT;
        int desc_len = TEXT;
        int short_len = 5;
        int verbosity = -1;
        int bind = -1;
        int scope = -1;
        MPI_Datatype type = MPI_DATATYPE_NULL;
        MPI_T_enum set = MPI_T_ENUM_NULL;

        CHECK(!MPI_T_cvar_get_info(i, name, &len, &verbosity, &type, &set, desc,
                                   &desc_len, &bind, &scope),
              "cvar %d", i);
        CHECK(len == (int)strlen(name) + 1 && desc_len > 10, "cvar %s", name);
        CHECK(bind == MPI_T_BIND_NO_OBJECT, "%s: bound to %d", name, bind);
        CHECK(verbosity >= MPI_T_VERBOSITY_USER_BASIC &&
                  verbosity <= MPI_T_VERBOSITY_MPIDEV_ALL,
              "%s: verbosity %d", name, verbosity);
        CHECK(scope >= MPI_T_SCOPE_CONSTANT && scope <= MPI_T_SCOPE_ALL_EQ,
              "%s: scope %d", name, scope);
        CHECK(!MPI_T_cvar_get_info(i, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
                                   NULL, NULL),
              "%s: without arguments", name);
        MPI_T_cvar_get_info(i, cut, &short_len, NULL, NULL, NULL, NULL, NULL,
                            NULL, NULL);
        check_short(name, cut, short_len, name);
        short_len = 0;
        MPI_T_cvar_get_info(i, NULL, &short_len, NULL, NULL, NULL, NULL, NULL,
                            NULL, NULL);
        CHECK(short_len == len, "%s: length %d", name, short_len);
        CHECK(!MPI_T_cvar_get_index(name, &index) && index == i,
              "%s has index %d", name, index);
        if (set != MPI_T_ENUM_NULL)
            check_enum(set, name);
        check_cvar_value(i, type, name);
    }
    CHECK(MPI_T_cvar_get_info(n, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
                              NULL) == MPI_T_ERR_INVALID_INDEX,
          "beyond the last");
    CHECK(MPI_T_cvar_get_info(-1, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
                              NULL, NULL) == MPI_T_ERR_INVALID_INDEX,
          "before the first");
    CHECK(MPI_T_cvar_get_index("no such name", &index) ==
              MPI_T_ERR_INVALID_NAME,
          "a name that there is not");
    CHECK(MPI_T_cvar_handle_free(&none) == MPI_T_ERR_INVALID_HANDLE, "null");
    CHECK(MPI_T_cvar_read(none, &index) == MPI_T_ERR_INVALID_HANDLE, "null");
}

/* What variables of windows are bound to; null before MPI_Init. */
static MPI_Win window = MPI_WIN_NULL;

static void check_pvar_value(MPI_T_pvar_session session, int i, void *object,
                             int is_readonly, int is_continuous, int is_atomic,
                             const char *name)
{
    MPI_T_pvar_handle handle = MPI_T_PVAR_HANDLE_NULL;
    unsigned long long value = ~0ULL;
    int count = 0;
    int rc;

    rc = MPI_T_pvar_handle_alloc(session, i, object, &handle, &count);
    if (object && window == MPI_WIN_NULL) {
        CHECK(rc == MPI_T_ERR_INVALID, "%s: of no window: %d", name, rc);
        return;
    }
    CHECK(!rc && count == 1, "%s: handle", name);
    rc = MPI_T_pvar_start(session, handle);
    CHECK(rc == (is_continuous ? MPI_T_ERR_PVAR_NO_STARTSTOP : MPI_SUCCESS),
          "%s: start: %d", name, rc);
    CHECK(!MPI_T_pvar_read(session, handle, &value) && value != ~0ULL,
          "%s: read", name);
    rc = MPI_T_pvar_stop(session, handle);
    CHECK(rc == (is_continuous ? MPI_T_ERR_PVAR_NO_STARTSTOP : MPI_SUCCESS),
          "%s: stop: %d", name, rc);
    rc = MPI_T_pvar_write(session, handle, &value);
    CHECK(rc == (is_readonly ? MPI_T_ERR_PVAR_NO_WRITE : MPI_SUCCESS),
          "%s: write: %d", name, rc);
    rc = MPI_T_pvar_reset(session, handle);
    CHECK(rc == (is_readonly ? MPI_T_ERR_PVAR_NO_WRITE : MPI_SUCCESS),
          "%s: reset: %d", name, rc);
    rc = MPI_T_pvar_readreset(session, handle, &value);
    CHECK((rc == MPI_SUCCESS) == (is_atomic && !is_readonly),
          "%s: readreset: %d", name, rc);
    CHECK(!MPI_T_pvar_handle_free(session, &handle) &&
              handle == MPI_T_PVAR_HANDLE_NULL,
          "%s: free", name);
}

static void pvars(void)
{
    MPI_T_pvar_session session = MPI_T_PVAR_SESSION_NULL;
    MPI_T_pvar_session other = MPI_T_PVAR_SESSION_NULL;
    MPI_T_pvar_handle handle;
    unsigned long long value;
    int count = 0;
    int n = -1;

    MPI_T_pvar_get_num(&n);
    CHECK(n > 20, "%d performance variables", n);
    CHECK(!MPI_T_pvar_session_create(&session), "session");
    CHECK(!MPI_T_pvar_session_create(&other), "session");
    CHECK(!MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES), "all of none");
    for (int i = 0; i < n; i++) {
        char name[TEXT] = "";
        char cut[5] = "";
        int len = TEXT;
        int short_len = 5;
        int class = -1;
        int bind = -1;
        int readonly = -1;
        int continuous = -1;
        int atomic = -1;
        int verbosity = -1;
        int index = -1;
        MPI_Datatype type;
        MPI_T_enum set;

        CHECK(!MPI_T_pvar_get_info(i, name, &len, &verbosity, &class, &type,
                                   &set, NULL, NULL, &bind, &readonly,
                                   &continuous, &atomic),
              "pvar %d", i);
        CHECK(len == (int)strlen(name) + 1, "pvar %s", name);
        CHECK(type == MPI_UNSIGNED_LONG_LONG, "%s: type", name);
        CHECK(bind == MPI_T_BIND_NO_OBJECT || bind == MPI_T_BIND_MPI_WIN,
              "%s: bound to %d", name, bind);
        CHECK(!MPI_T_pvar_get_info(i, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
                                   NULL, NULL, NULL, NULL, NULL),
              "%s: without arguments", name);
        MPI_T_pvar_get_info(i, cut, &short_len, NULL, NULL, NULL, NULL, NULL,
                            NULL, NULL, NULL, NULL, NULL);
        check_short(name, cut, short_len, name);
        CHECK(!MPI_T_pvar_get_index(name, class, &index) && index == i,
              "%s has index %d", name, index);
        CHECK(MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_STATE, &index) ==
                  MPI_T_ERR_INVALID_NAME,
              "%s of another class", name);
        check_pvar_value(session, i,
                         bind == MPI_T_BIND_MPI_WIN ? &window : NULL, readonly,
                         continuous, atomic, name);
    }
    CHECK(!MPI_T_pvar_handle_alloc(session, 0, NULL, &handle, &count), "one");
    CHECK(MPI_T_pvar_read(other, handle, &value) == MPI_T_ERR_INVALID_HANDLE,
          "a handle of another session");
    CHECK(MPI_T_pvar_handle_free(other, &handle) == MPI_T_ERR_INVALID_HANDLE,
          "a handle of another session");
    CHECK(MPI_T_pvar_handle_alloc(session, n, NULL, &handle, &count) ==
              MPI_T_ERR_INVALID_INDEX,
          "beyond the last");
    CHECK(!MPI_T_pvar_session_free(&session), "with a handle");
    CHECK(MPI_T_pvar_session_free(&session) == MPI_T_ERR_INVALID_SESSION,
          "twice");
    CHECK(MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES) ==
              MPI_T_ERR_INVALID_SESSION,
          "all of no session");
    CHECK(!MPI_T_pvar_session_free(&other), "empty");
}

static void categories(void)
{
    int seen[64] = {0};
    int members[64];
    int root = -1;
    int n = -1;
    int num = -1;
    int stamp = -1;

    MPI_T_category_get_num(&n);
    CHECK_OR_DIE(n > 3 && n <= 64, "%d categories", n);
    for (int i = 0; i < n; i++) {
        char name[TEXT] = "";
        char cut[5] = "";
        int len = TEXT;
        int short_len = 5;
        int cats = -1;
        int index = -1;

        CHECK(!MPI_T_category_get_info(i, name, &len, NULL, NULL, NULL, NULL,
                                       &cats),
              "category %d", i);
        MPI_T_category_get_info(i, cut, &short_len, NULL, NULL, NULL, NULL,
                                NULL);
        check_short(name, cut, short_len, name);
        CHECK(!MPI_T_category_get_index(name, &index) && index == i,
              "%s has index %d", name, index);
        if (cats > 0)
            root = i;
        CHECK(!MPI_T_category_get_categories(i, cats, members), "%s", name);
        for (int k = 0; k < cats; k++)
            seen[members[k]]++;
        CHECK(!MPI_T_category_get_num_events(i, &num), "%s", name);
        CHECK(!MPI_T_category_get_events(i, num, members), "%s", name);
        CHECK(!MPI_T_category_get_cvars(i, 0, NULL), "%s: no room", name);
    }
    for (int i = 0; i < n; i++)
        CHECK(seen[i] == (i != root), "category %d is in %d others", i,
              seen[i]);
    CHECK(!MPI_T_category_changed(&stamp), "changed");
    CHECK(MPI_T_category_get_num_events(n, &num) == MPI_T_ERR_INVALID_INDEX,
          "beyond the last");
    CHECK(MPI_T_category_get_index("none", &num) == MPI_T_ERR_INVALID_NAME,
          "a name that there is not");
}

static void nothing(MPI_T_event_instance instance, MPI_T_event_registration reg,
                    MPI_T_cb_safety safety, void *user_data)
{
    (void)instance;
    (void)reg;
    (void)safety;
    ++*(int *)user_data;
}

static void dropped(MPI_Count count, MPI_T_event_registration reg, int source,
                    MPI_T_cb_safety safety, void *user_data)
{
    (void)count;
    (void)reg;
    (void)source;
    (void)safety;
    (void)user_data;
}

static void check_registration(int i, const char *name)
{
    MPI_T_event_registration reg = (MPI_T_event_registration)0;
    MPI_T_event_registration next = (MPI_T_event_registration)0;
    MPI_Info info = MPI_INFO_NULL;
    int calls = 0;

    CHECK(!MPI_T_event_handle_alloc(i, NULL, MPI_INFO_NULL, &reg), "%s", name);
    CHECK(!MPI_T_event_register_callback(reg, MPI_T_CB_REQUIRE_THREAD_SAFE,
                                         MPI_INFO_NULL, &calls, nothing),
          "%s: callback", name);
    CHECK(!MPI_T_event_set_dropped_handler(reg, dropped), "%s: dropped", name);
    CHECK(!MPI_T_event_handle_set_info(reg, MPI_INFO_NULL), "%s: info", name);
    CHECK(!MPI_T_event_handle_get_info(reg, &info) && info != MPI_INFO_NULL,
          "%s: info", name);
    MPI_Info_free(&info);
    CHECK(!MPI_T_event_callback_set_info(reg, MPI_T_CB_REQUIRE_THREAD_SAFE,
                                         MPI_INFO_NULL),
          "%s: callback's info", name);
    CHECK(!MPI_T_event_callback_get_info(reg, MPI_T_CB_REQUIRE_THREAD_SAFE,
                                         &info) &&
              info != MPI_INFO_NULL,
          "%s: callback's info", name);
    MPI_Info_free(&info);
    CHECK(!MPI_T_event_handle_free(reg, NULL, NULL), "%s: free", name);
    CHECK(MPI_T_event_handle_free(reg, NULL, NULL) == MPI_T_ERR_INVALID_HANDLE,
          "%s: free twice", name);
    CHECK(!MPI_T_event_handle_alloc(i, NULL, MPI_INFO_NULL, &next), "%s", name);
    CHECK(MPI_T_event_set_dropped_handler(reg, NULL) ==
              MPI_T_ERR_INVALID_HANDLE,
          "%s: a freed one is the next", name);
    CHECK(!MPI_T_event_handle_free(next, NULL, NULL), "%s: free", name);
}

static void events(void)
{
    int n = -1;
    int members[8];
    int homes = 0;
    int cats = 0;
    MPI_Count tick = 0;
    MPI_Count later = 0;
    MPI_T_source_order order = MPI_T_SOURCE_UNORDERED;
    MPI_Info info = MPI_INFO_NULL;
    char text[TEXT];
    int len = TEXT;

    CHECK(!MPI_T_event_get_num(&n) && n >= 2 && n <= 8, "%d events", n);
    for (int i = 0; i < n; i++) {
        char name[TEXT] = "";
        char cut[5] = "";
        int short_len = 5;
        MPI_Datatype types[8];
        MPI_Aint places[8];
        int elements = 8;
        int index = -1;
        int bind = -1;
        int verbosity = -1;
        MPI_T_enum set = MPI_T_ENUM_NULL;

        len = TEXT;
        CHECK(!MPI_T_event_get_info(i, name, &len, &verbosity, types, places,
                                    &elements, &set, &info, NULL, NULL, &bind),
              "event %d", i);
        CHECK(elements > 0 && elements <= 8 && types[0] == MPI_INT &&
                  places[0] == 0,
              "%s: %d elements", name, elements);
        check_enum(set, name);
        MPI_Info_free(&info);
        elements = 0;
        MPI_T_event_get_info(i, cut, &short_len, NULL, NULL, NULL, &elements,
                             NULL, NULL, NULL, NULL, NULL);
        CHECK(elements > 0, "%s: %d elements", name, elements);
        check_short(name, cut, short_len, name);
        CHECK(!MPI_T_event_get_index(name, &index) && index == i,
              "%s has index %d", name, index);
        check_registration(i, name);
    }
    MPI_T_category_get_num(&cats);
    for (int c = 0; c < cats; c++) {
        int num = 0;

        MPI_T_category_get_num_events(c, &num);
        CHECK_OR_DIE(num <= 8, "%d events", num);
        MPI_T_category_get_events(c, num, members);
        homes += num;
    }
    CHECK(homes == n, "%d events are in %d categories", n, homes);
    CHECK(!MPI_T_source_get_num(&n) && n == 1, "%d sources", n);
    len = TEXT;
    CHECK(!MPI_T_source_get_info(0, text, &len, NULL, NULL, &order, &tick,
                                 &later, &info) &&
              tick > 0 && later > 0 && order == MPI_T_SOURCE_ORDERED,
          "source");
    MPI_Info_free(&info);
    CHECK(!MPI_T_source_get_info(0, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
                                 NULL),
          "source without arguments");
    CHECK(MPI_T_source_get_info(1, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
                                NULL) == MPI_T_ERR_INVALID_INDEX,
          "a source beyond the last");
    MPI_T_source_get_timestamp(0, &tick);
    MPI_T_source_get_timestamp(0, &later);
    CHECK(later >= tick, "time runs back");
}

static void *use_all(void *arg)
{
    (void)arg;
    for (int i = 0; i < 5; i++) {
        int provided;

        MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided);
        cvars();
        pvars();
        categories();
        events();
        MPI_T_finalize();
    }
    return NULL;
}

enum { THREADS = 3 };

static void by_threads(void)
{
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++)
        CHECK_OR_DIE(!pthread_create(&threads[i], NULL, use_all, NULL),
                     "thread");
    for (int i = 0; i < 200; i++) {
        int value = i;

        MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_MAX,
                      MPI_COMM_WORLD);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

/* The last MPI_T_finalize ends registrations: no callback comes after it. */
static void outlived(void)
{
    static int calls;
    MPI_T_event_registration reg;
    int provided;
    int index;
    int value = 0;

    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    MPI_T_event_get_index("chempi_conn_process_resolved", &index);
    MPI_T_event_handle_alloc(index, NULL, MPI_INFO_NULL, &reg);
    MPI_T_event_register_callback(reg, MPI_T_CB_REQUIRE_NONE, MPI_INFO_NULL,
                                  &calls, nothing);
    MPI_T_finalize();
    MPI_Sendrecv_replace(&value, 1, MPI_INT, check_rank() ^ 1, 0,
                         check_rank() ^ 1, 0, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(calls == 0, "%d callbacks after MPI_T_finalize", calls);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    CHECK(MPI_T_event_handle_free(reg, NULL, NULL) == MPI_T_ERR_INVALID_HANDLE,
          "a registration outlives MPI_T_finalize");
    MPI_T_finalize();
}

static void while_off(void)
{
    MPI_T_event_registration reg = (MPI_T_event_registration)0;
    int n;

    CHECK(MPI_T_pvar_get_num(&n) == MPI_T_ERR_NOT_INITIALIZED, "pvar");
    CHECK(MPI_T_category_get_num(&n) == MPI_T_ERR_NOT_INITIALIZED, "category");
    CHECK(MPI_T_event_get_num(&n) == MPI_T_ERR_NOT_INITIALIZED, "event");
    CHECK(MPI_T_source_get_num(&n) == MPI_T_ERR_NOT_INITIALIZED, "source");
    CHECK(MPI_T_event_handle_free(reg, NULL, NULL) == MPI_T_ERR_NOT_INITIALIZED,
          "registration");
    CHECK(MPI_T_finalize() == MPI_T_ERR_NOT_INITIALIZED, "finalize");
    CHECK(MPI_T_init_thread(-77, &n) != MPI_SUCCESS, "no such level");
}

int main(int argc, char **argv)
{
    MPI_Errhandler count;
    int provided;

    while_off();
    use_all(NULL);
    check_start_thread(&argc, &argv, MPI_THREAD_MULTIPLE);
    check_need(2);
    MPI_Comm_create_errhandler(count_calls, &count);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, count);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, count);
    MPI_Errhandler_free(&count);
    while_off();
    outlived();
    MPI_Win_create(NULL, 0, 1, MPI_INFO_NULL, MPI_COMM_SELF, &window);
    MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided);
    by_threads();
    MPI_T_finalize();
    MPI_Win_free(&window);
    CHECK(calls_of_handler == 0, "%d errors were raised", calls_of_handler);
    return check_finish();
}
