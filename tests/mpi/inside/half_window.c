/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * In the last agreement about a window one member hears that another one is
 * lost, and the others do not: they have a window, which that one has not.
 * Whatever they do with it there ends with an error, and they free it without
 * waiting for it.
 *
 * Linked with a chempi_comm_max() that fails when it is told to.
 *
 * usage: half_window [late]
 *
 * late: it hears that when the others have begun to use their windows.
 */
#include "libchempi/didl/comm/make/comm_make.h"
#include "tests/mpi/check.h"

#define FAILS 1 /* the rank without a window */
#define COUNT                                                                  \
    (1 << 17)   /* long: more than any device sends without being              \
                   asked */
#define BEGUN 5 /* the tag of who has */

typedef int max_fn(const struct chempi_comm_channel *ch, int error,
                   int64_t *vals, int n);
max_fn __real_chempi_comm_max;
max_fn __wrap_chempi_comm_max;

static int calls;
static int fails_at; /* that call; 0: none */
static bool is_late;
static long mine[COUNT], memory[COUNT];

static void await_others(void)
{
    for (int i = 1; i < check_size(); i++)
        MPI_Recv(NULL, 0, MPI_BYTE, MPI_ANY_SOURCE, BEGUN, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
}

int __wrap_chempi_comm_max(const struct chempi_comm_channel *ch, int error,
                           int64_t *vals, int n)
{
    const int rc = __real_chempi_comm_max(ch, error, vals, n);

    if (++calls != fails_at)
        return rc;
    if (is_late)
        await_others();
    return MPI_ERR_PROC_ABORTED;
}

static MPI_Win make(bool allocates, int class)
{
    MPI_Win win = MPI_WIN_NULL;
    void *base;
    int rc;

    calls = 0;
    if (allocates)
        rc = MPI_Win_allocate(sizeof(memory), sizeof(long), MPI_INFO_NULL,
                              MPI_COMM_WORLD, &base, &win);
    else
        rc = MPI_Win_create(memory, sizeof(memory), sizeof(long), MPI_INFO_NULL,
                            MPI_COMM_WORLD, &win);
    CHECK(check_class(rc) == class, "class %d, not %d", check_class(rc), class);
    return win;
}

/* ---- ways to use it: an error class ---- */

static bool has_begun;

static void begin(void)
{
    if (is_late && !has_begun)
        MPI_Send(NULL, 0, MPI_BYTE, FAILS, BEGUN, MPI_COMM_WORLD);
    has_begun = true;
}

static int put(int count, MPI_Win win)
{
    return MPI_Put(mine, count, MPI_LONG, FAILS, 0, count, MPI_LONG, win);
}

static int get(int count, MPI_Win win)
{
    return MPI_Get(mine, count, MPI_LONG, FAILS, 0, count, MPI_LONG, win);
}

static int add(int count, MPI_Win win)
{
    return MPI_Accumulate(mine, count, MPI_LONG, FAILS, 0, count, MPI_LONG,
                          MPI_SUM, win);
}

/* Those whose errors a synchronization tells. */
static int (*const operations[])(int count, MPI_Win win) = {put, get, add};
enum { OPERATIONS = sizeof(operations) / sizeof(*operations) };

static int operate(int turn, MPI_Win win)
{
    return operations[turn % OPERATIONS](turn / OPERATIONS % 2 ? COUNT : 1,
                                         win);
}

static int fences(int turn, MPI_Win win)
{
    int rc;

    begin(); /* it waits for all */
    rc = MPI_Win_fence(turn % 2 ? 0 : MPI_MODE_NOPRECEDE, win);

    if (rc == MPI_SUCCESS)
        rc = operate(turn, win);
    return rc ? rc : MPI_Win_fence(0, win);
}

static int starts(int turn, MPI_Win win)
{
    MPI_Group group = check_group_of(FAILS);
    int rc;

    (void)turn;
    begin();
    rc = MPI_Win_start(group, 0, win);
    MPI_Group_free(&group);
    return rc;
}

static int completes(int turn, MPI_Win win)
{
    MPI_Group group = check_group_of(FAILS);
    int rc = MPI_Win_start(group, MPI_MODE_NOCHECK, win);
    int error;

    MPI_Group_free(&group);
    if (rc)
        return rc;
    rc = operate(turn, win);
    begin();
    error = MPI_Win_complete(win);
    return rc ? rc : error;
}

static int posts(int turn, MPI_Win win)
{
    MPI_Group group = check_group_of(FAILS);
    int flag = 0;
    int rc = MPI_Win_post(group, 0, win);

    begin();
    MPI_Group_free(&group);
    while (rc == MPI_SUCCESS && turn % 2 && !flag)
        rc = MPI_Win_test(win, &flag);
    return rc || flag ? rc : MPI_Win_wait(win);
}

static int locks(int turn, MPI_Win win)
{
    int rc = MPI_Win_lock(turn % 2 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE,
                          FAILS, 0, win);
    int error;

    if (rc)
        return rc;
    rc = operate(turn, win);
    begin();
    error = MPI_Win_unlock(FAILS, win);
    return rc ? rc : error;
}

static int flushes(int turn, MPI_Win win)
{
    int rc = MPI_Win_lock_all(0, win);

    while (rc == MPI_SUCCESS) {
        rc = operate(turn, win);
        begin();
        if (rc == MPI_SUCCESS && turn % 3 == 0)
            rc = MPI_Win_flush(FAILS, win);
        else if (rc == MPI_SUCCESS && turn % 3 == 1)
            rc = MPI_Win_flush_all(win);
        else if (rc == MPI_SUCCESS)
            rc = MPI_Win_flush_local(FAILS, win);
        turn++;
    }
    (void)MPI_Win_unlock_all(win);
    return rc;
}

static int request(int turn, MPI_Win win, MPI_Request *req)
{
    const int count = turn % 2 ? COUNT : 1;

    switch (turn % 4) {
    case 0:
        return MPI_Rput(mine, count, MPI_LONG, FAILS, 0, count, MPI_LONG, win,
                        req);
    case 1:
        return MPI_Rget(mine, count, MPI_LONG, FAILS, 0, count, MPI_LONG, win,
                        req);
    case 2:
        return MPI_Raccumulate(mine, count, MPI_LONG, FAILS, 0, count, MPI_LONG,
                               MPI_SUM, win, req);
    default:
        return MPI_Rget_accumulate(NULL, 0, MPI_LONG, mine, count, MPI_LONG,
                                   FAILS, 0, count, MPI_LONG, MPI_NO_OP, win,
                                   req);
    }
}

static int requests(int turn, MPI_Win win)
{
    int rc = MPI_Win_lock_all(0, win);

    while (rc == MPI_SUCCESS) {
        MPI_Request req;

        rc = request(turn++, win, &req);
        begin();
        if (rc == MPI_SUCCESS)
            rc = MPI_Wait(&req, MPI_STATUS_IGNORE);
    }
    (void)MPI_Win_unlock_all(win);
    return rc;
}

static const struct {
    const char *name;
    int (*use)(int turn, MPI_Win win); /* NULL: it is freed only */
} ways[] = {{"free", NULL},          {"fence", fences},    {"start", starts},
            {"complete", completes}, {"post", posts},      {"lock", locks},
            {"flush", flushes},      {"request", requests}};

static void use(size_t way, MPI_Win win)
{
    int rc = MPI_SUCCESS;

    has_begun = false;
    for (int turn = 0; rc == MPI_SUCCESS && ways[way].use; turn++)
        rc = ways[way].use(turn, win);
    begin();
    CHECK(!ways[way].use || check_class(rc) == MPI_ERR_PROC_ABORTED,
          "%s: class %d", ways[way].name, check_class(rc));
}

static void try(bool allocates, size_t way)
{
    const bool fails = check_rank() == FAILS;
    MPI_Win win;

    fails_at = 0;
    win = make(allocates, MPI_SUCCESS);
    MPI_Win_free(&win);
    fails_at = fails ? calls : 0;
    win = make(allocates, fails ? MPI_ERR_PROC_ABORTED : MPI_SUCCESS);
    CHECK((win == MPI_WIN_NULL) == fails, "a window");
    if (win == MPI_WIN_NULL)
        return;
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    use(way, win);
    MPI_Win_free(&win);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    check_need(2);
    is_late = argc > 1 && strcmp(argv[1], "late") == 0;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    for (size_t way = 0; way < sizeof(ways) / sizeof(*ways); way++)
        for (int allocates = 0; allocates < 2; allocates++)
            try(allocates, way);
    return check_finish();
}
