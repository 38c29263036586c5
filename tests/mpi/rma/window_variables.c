/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Performance variables of single windows (MPI 5.0, section 15.3): each window
 * counts what was done to it and nothing else, by reach; a handle outlives its
 * window and says so.
 */
#include "check.h"

enum { PUTS = 20, REACHES = 4 };

static const char *const reaches[REACHES] = {"self", "node", "attach",
                                             "message"};

/* Handles of one window. */
struct watch {
    MPI_T_pvar_handle operations[REACHES];
    MPI_T_pvar_handle bytes[REACHES];
    MPI_T_pvar_handle locks;
};

static MPI_T_pvar_session session;

static int find(const char *what)
{
    char name[64];
    int index = -1;

    (void)snprintf(name, sizeof(name), "chempi_rma_window_%s", what);
    CHECK_OR_DIE(!MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index),
                 "%s is not there", name);
    return index;
}

static MPI_T_pvar_handle bind(const char *what, MPI_Win *win)
{
    MPI_T_pvar_handle handle = MPI_T_PVAR_HANDLE_NULL;
    int count = 0;

    CHECK_OR_DIE(
        !MPI_T_pvar_handle_alloc(session, find(what), win, &handle, &count) &&
            count == 1,
        "no handle for %s", what);
    return handle;
}

static void watch(struct watch *w, MPI_Win *win)
{
    for (int i = 0; i < REACHES; i++) {
        char what[32];

        (void)snprintf(what, sizeof(what), "%s_operations", reaches[i]);
        w->operations[i] = bind(what, win);
        (void)snprintf(what, sizeof(what), "%s_bytes", reaches[i]);
        w->bytes[i] = bind(what, win);
    }
    w->locks = bind("locks", win);
}

static unsigned long long value(MPI_T_pvar_handle handle)
{
    unsigned long long v = 0;
    int rc = MPI_T_pvar_read(session, handle, &v);

    CHECK(rc == MPI_SUCCESS, "reading fails with %d", rc);
    return v;
}

static unsigned long long sum(const MPI_T_pvar_handle handles[REACHES])
{
    unsigned long long n = 0;

    for (int i = 0; i < REACHES; i++)
        n += value(handles[i]);
    return n;
}

static void put(MPI_Win win, int target, int times)
{
    const int64_t word = 1;

    MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win);
    for (int i = 0; i < times; i++)
        MPI_Put(&word, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, win);
    MPI_Win_unlock(target, win);
}

static void expect(const struct watch *w, const char *name, unsigned puts,
                   unsigned locks)
{
    CHECK(sum(w->operations) == puts && sum(w->bytes) == 8ull * puts &&
              value(w->locks) == locks,
          "%s counts %llu operations with %llu bytes and %llu locks, not %u "
          "with %u and %u",
          name, sum(w->operations), sum(w->bytes), value(w->locks), puts,
          8 * puts, locks);
}

static MPI_Win make(int64_t **memory)
{
    MPI_Win win;

    MPI_Win_allocate(8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, memory, &win);
    return win;
}

static void check_binding(void)
{
    const int index = find("locks");
    MPI_Win none = MPI_WIN_NULL;
    MPI_T_pvar_handle handle;
    int bound = 0;
    int count;

    CHECK(!MPI_T_pvar_get_info(index, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
                               NULL, &bound, NULL, NULL, NULL) &&
              bound == MPI_T_BIND_MPI_WIN,
          "bound to %d", bound);
    CHECK(MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count) ==
              MPI_T_ERR_INVALID,
          "a handle of no object");
    CHECK(MPI_T_pvar_handle_alloc(session, index, &none, &handle, &count) ==
              MPI_T_ERR_INVALID,
          "a handle of MPI_WIN_NULL");
}

/* Its handle stays what it was when another window is made at its place. */
static void outlive(const struct watch *w, MPI_Win *win)
{
    unsigned long long v = 7;
    int64_t *memory;
    MPI_Win next;

    MPI_Win_free(win);
    next = make(&memory);
    put(next, check_rank(), 1);
    CHECK(MPI_T_pvar_read(session, w->locks, &v) == MPI_T_ERR_INVALID_HANDLE &&
              v == 7,
          "a window that is gone has counted %llu locks", v);
    CHECK(MPI_T_pvar_readreset(session, w->locks, &v) ==
              MPI_T_ERR_INVALID_HANDLE,
          "a window that is gone is read and reset");
    MPI_Win_free(&next);
}

int main(int argc, char *argv[])
{
    const int self_index = 0;
    struct watch first;
    struct watch second;
    int64_t *memory[2];
    MPI_Win win[2];
    int provided;
    int next;

    check_start(&argc, &argv);
    next = (check_rank() + 1) % check_size();
    CHECK_OR_DIE(!MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) &&
                     !MPI_T_pvar_session_create(&session),
                 "no session");
    check_binding();
    for (int i = 0; i < 2; i++)
        win[i] = make(&memory[i]);
    put(win[0], next, 3); /* before anybody counts */
    watch(&first, &win[0]);
    watch(&second, &win[1]);
    CHECK(!MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES), "start");
    put(win[0], next, PUTS);
    put(win[0], check_rank(), 1);
    put(win[1], next, PUTS / 2);
    expect(&first, "the first window", PUTS + 1, 2);
    expect(&second, "the second window", PUTS / 2, 1);
    CHECK(value(first.operations[self_index]) ==
              (next == check_rank() ? PUTS + 1 : 1),
          "%llu operations on itself", value(first.operations[self_index]));
    CHECK(!MPI_T_pvar_stop(session, second.locks), "stop");
    put(win[1], next, 1);
    CHECK(value(second.locks) == 1, "a stopped handle counts");
    MPI_Barrier(MPI_COMM_WORLD);
    outlive(&first, &win[0]);
    expect(&second, "the second window, later", PUTS / 2 + 1, 1);
    MPI_Win_free(&win[1]);
    MPI_T_pvar_session_free(&session);
    MPI_T_finalize();
    return check_finish();
}
