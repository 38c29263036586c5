/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Wrong use of windows: the class of each error, and its sentence, which names
 * the window, the target, the place there and what was expected. Rank 0 errs;
 * what it does is repaired before the next case.
 */
#include "check.h"

enum { CELLS = 8, TARGET = 1 };

static MPI_Win table;  /* CELLS of 8 bytes at each rank */
static MPI_Win pool;   /* dynamic */
static MPI_Win fenced; /* as table, made with no_locks */
static MPI_Group other;
static MPI_Op own_op;
static MPI_Datatype pair;
static MPI_Datatype twice;  /* the same cell two times */
static MPI_Datatype shrunk; /* a cell with the extent of half a one */
static int64_t cells[2 * CELLS];
static char memory[256];

static int put(MPI_Win win, int rank, MPI_Aint disp, int count)
{
    return MPI_Put(cells, count, MPI_INT64_T, rank, disp, count, MPI_INT64_T,
                   win);
}

static int lock(int rank)
{
    return MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, table);
}

static int accumulate(MPI_Datatype mine, MPI_Datatype theirs, MPI_Op op)
{
    return MPI_Accumulate(cells, 1, mine, TARGET, 3, 1, theirs, op, table);
}

/* ---- inside MPI_Win_lock_all of table ---- */

static int put_beyond(void)
{
    return put(table, TARGET, CELLS - 1, 2);
}

static int put_before(void)
{
    return put(table, TARGET, -1, 1);
}

static int get_far(void)
{
    return MPI_Get(cells, 1, MPI_INT64_T, TARGET, (MPI_Aint)1 << 62, 1,
                   MPI_INT64_T, table);
}

static int put_nowhere(void)
{
    return put(table, 99, 0, 1);
}

static int put_more(void)
{
    return MPI_Put(cells, 2, MPI_INT64_T, TARGET, 3, 1, MPI_INT64_T, table);
}

static int add_other(void)
{
    return accumulate(MPI_INT, MPI_FLOAT, MPI_SUM);
}

static int add_own(void)
{
    return accumulate(MPI_INT64_T, MPI_INT64_T, own_op);
}

static int add_nothing(void)
{
    return accumulate(MPI_INT64_T, MPI_INT64_T, MPI_NO_OP);
}

static int xor_reals(void)
{
    return accumulate(MPI_DOUBLE, MPI_DOUBLE, MPI_BXOR);
}

/* A byte may be read twice, and written once. */
static int put_twice(void)
{
    return MPI_Put(cells, 2, MPI_INT64_T, TARGET, 3, 1, twice, table);
}

static int put_close(void)
{
    return MPI_Put(cells, 2, MPI_INT64_T, TARGET, 3, 2, shrunk, table);
}

static int get_twice(void)
{
    return MPI_Get(cells, 1, twice, TARGET, 3, 2, MPI_INT64_T, table);
}

static int add_twice(void)
{
    return MPI_Accumulate(cells, 2, MPI_INT64_T, TARGET, 3, 1, twice, MPI_SUM,
                          table);
}

static int fetch_twice(void)
{
    return MPI_Get_accumulate(cells, 2, MPI_INT64_T, memory, 1, twice, TARGET,
                              3, 2, MPI_INT64_T, MPI_SUM, table);
}

static void read_twice(void)
{
    int rc = MPI_Get(cells, 2, MPI_INT64_T, TARGET, 3, 1, twice, table);

    CHECK(rc == MPI_SUCCESS, "a get of overlapping entries: %d", rc);
    rc = MPI_Put(cells, 1, twice, TARGET, 3, 2, MPI_INT64_T, table);
    CHECK(rc == MPI_SUCCESS, "a put from overlapping entries: %d", rc);
    rc = MPI_Put(cells, 1, MPI_INT64_T, TARGET, 3, 1, shrunk, table);
    CHECK(rc == MPI_SUCCESS, "a put of one element: %d", rc);
}

static int fetch_pair(void)
{
    return MPI_Fetch_and_op(cells, memory, pair, TARGET, 3, MPI_SUM, table);
}

static int swap_reals(void)
{
    return MPI_Compare_and_swap(cells, cells, memory, MPI_DOUBLE, TARGET, 3,
                                table);
}

static int unlock_one(void)
{
    return MPI_Win_unlock(TARGET, table);
}

static int lock_one(void)
{
    return lock(TARGET);
}

static int lock_twice(void)
{
    return MPI_Win_lock_all(0, table);
}

static int fence(void)
{
    return MPI_Win_fence(0, table);
}

static int start(void)
{
    return MPI_Win_start(other, MPI_MODE_NOCHECK, table);
}

static int free_window(void)
{
    MPI_Win win = table;

    return MPI_Win_free(&win);
}

/* ---- in no epoch ---- */

static int put_outside(void)
{
    return put(table, TARGET, 3, 1);
}

static int put_with_request(void)
{
    MPI_Request request;

    return MPI_Rput(cells, 1, MPI_INT64_T, TARGET, 3, 1, MPI_INT64_T, table,
                    &request);
}

static int unlock_all(void)
{
    return MPI_Win_unlock_all(table);
}

static int flush(void)
{
    return MPI_Win_flush(TARGET, table);
}

static int flush_all(void)
{
    return MPI_Win_flush_all(table);
}

static int lock_kind(void)
{
    return MPI_Win_lock(-5, TARGET, 0, table);
}

static int lock_assert(void)
{
    return MPI_Win_lock(MPI_LOCK_SHARED, TARGET, MPI_MODE_NOPUT, table);
}

static int lock_refused(void)
{
    return MPI_Win_lock(MPI_LOCK_SHARED, TARGET, 0, fenced);
}

static int complete(void)
{
    return MPI_Win_complete(table);
}

static int wait(void)
{
    return MPI_Win_wait(table);
}

static int test(void)
{
    int flag;

    return MPI_Win_test(table, &flag);
}

static int no_window(void)
{
    return put(MPI_WIN_NULL, TARGET, 0, 1);
}

static int attach_static(void)
{
    return MPI_Win_attach(table, memory, 8);
}

static int attach_twice(void)
{
    return MPI_Win_attach(pool, memory + 8, 16);
}

static int detach_nothing(void)
{
    return MPI_Win_detach(pool, cells);
}

static int query_dynamic(void)
{
    MPI_Aint size;
    int unit;
    void *base;

    return MPI_Win_shared_query(pool, 0, &size, &unit, &base);
}

static int make_negative(void)
{
    MPI_Win win;

    return MPI_Win_create(memory, -8, 1, MPI_INFO_NULL, MPI_COMM_SELF, &win);
}

static int make_of_nothing(void)
{
    MPI_Win win;

    return MPI_Win_create(NULL, 100, 1, MPI_INFO_NULL, MPI_COMM_SELF, &win);
}

static int attach_nothing(void)
{
    return MPI_Win_attach(pool, NULL, 10);
}

/* NULL with size 0 is legal. */
static void make_empty(void)
{
    MPI_Win win;
    int rc = MPI_Win_create(NULL, 0, 1, MPI_INFO_NULL, MPI_COMM_SELF, &win);

    CHECK(rc == MPI_SUCCESS, "an empty window: %d", rc);
    MPI_Win_free(&win);
}

static int flush_fenced(void)
{
    MPI_Win win;
    int rc;

    MPI_Win_create(memory, 8, 1, MPI_INFO_NULL, MPI_COMM_SELF, &win);
    MPI_Win_set_name(win, "own");
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Win_fence(0, win);
    rc = MPI_Win_flush(0, win);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    MPI_Win_free(&win);
    return rc;
}

static int make_unit(void)
{
    MPI_Win win;

    return MPI_Win_create(memory, 8, 0, MPI_INFO_NULL, MPI_COMM_SELF, &win);
}

/* ---- in an epoch that something is wrong with ---- */

static int put_unlocked(void)
{
    int rc;

    lock(0);
    rc = put(table, TARGET, 3, 1);
    MPI_Win_unlock(0, table);
    return rc;
}

static int flush_unlocked(void)
{
    int rc;

    lock(0);
    rc = MPI_Win_flush(TARGET, table);
    MPI_Win_unlock(0, table);
    return rc;
}

static int lock_again(void)
{
    int rc;

    lock(TARGET);
    rc = lock(TARGET);
    MPI_Win_unlock(TARGET, table);
    return rc;
}

static int put_not_started(void)
{
    int rc;

    MPI_Win_start(other, MPI_MODE_NOCHECK, fenced);
    rc = put(fenced, 0, 3, 1);
    return rc;
}

static int start_again(void)
{
    return MPI_Win_start(other, MPI_MODE_NOCHECK, fenced);
}

static int put_unattached(void)
{
    int rc;

    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, pool);
    rc = put(pool, 0, 4096, 1);
    MPI_Win_unlock(0, pool);
    return rc;
}

struct wrong {
    int (*call)(void);
    int class;
    const char *words; /* how the text ends */
};

static const struct wrong in_lock_all[] = {
    {put_beyond, MPI_ERR_RMA_RANGE,
     "table: displacement 7 (of 8 bytes each) at rank 1 means bytes 56 to 71, "
     "but the window has 64 bytes there"},
    {put_before, MPI_ERR_DISP,
     "argument target_disp is -1 at rank 1 of table; expected 0 or more"},
    {get_far, MPI_ERR_RMA_RANGE,
     "table: displacement 4611686018427387904 (of 8 bytes each) at rank 1 is "
     "beyond all memory; the window has 64 bytes there"},
    {put_nowhere, MPI_ERR_RANK,
     "argument target_rank is 99; table has ranks 0 to 1"},
    {put_more, MPI_ERR_TYPE,
     "table: the origin has 16 bytes, the target (rank 1, displacement 3) 8; "
     "both must have the same amount of the same basic types"},
    {add_other, MPI_ERR_TYPE,
     "table: accumulating at rank 1, displacement 3: MPI_INT and MPI_FLOAT "
     "are not made of the same basic type"},
    {add_own, MPI_ERR_OP,
     "table: accumulating at rank 1, displacement 3: only predefined "
     "operations can be used"},
    {add_nothing, MPI_ERR_OP,
     "table: accumulating at rank 1, displacement 3: MPI_NO_OP is for calls "
     "that fetch"},
    {xor_reals, MPI_ERR_OP,
     "table: accumulating at rank 1, displacement 3: the operation is not "
     "defined on MPI_DOUBLE"},
    {fetch_pair, MPI_ERR_TYPE,
     "table: at rank 1, displacement 3: MPI_Fetch_and_op takes predefined "
     "datatypes only"},
    {swap_reals, MPI_ERR_TYPE,
     "table: at rank 1, displacement 3: MPI_Compare_and_swap takes predefined "
     "integers, logicals and bytes only"},
    {put_twice, MPI_ERR_TYPE,
     "table: at rank 1, displacement 3: the target datatype (1 elements of "
     "twice) has entries that overlap; what is written must name each byte "
     "once"},
    {put_close, MPI_ERR_TYPE,
     "table: at rank 1, displacement 3: the target datatype (2 elements of "
     "one without a name) has entries that overlap; what is written must name "
     "each byte once"},
    {get_twice, MPI_ERR_TYPE,
     "table: at rank 1, displacement 3: the origin datatype (1 elements of "
     "twice) has entries that overlap; what is written must name each byte "
     "once"},
    {add_twice, MPI_ERR_TYPE,
     "table: at rank 1, displacement 3: the target datatype (1 elements of "
     "twice) has entries that overlap; what is written must name each byte "
     "once"},
    {fetch_twice, MPI_ERR_TYPE,
     "table: at rank 1, displacement 3: the result datatype (1 elements of "
     "twice) has entries that overlap; what is written must name each byte "
     "once"},
    {unlock_one, MPI_ERR_RMA_SYNC,
     "table is in an epoch of MPI_Win_lock_all, which MPI_Win_unlock_all "
     "ends"},
    {lock_one, MPI_ERR_RMA_SYNC,
     "table is already in an epoch of MPI_Win_lock_all"},
    {lock_twice, MPI_ERR_RMA_SYNC,
     "table is already in an epoch of MPI_Win_lock_all"},
    {fence, MPI_ERR_RMA_SYNC,
     "MPI_Win_fence while table is in an epoch of MPI_Win_lock_all"},
    {start, MPI_ERR_RMA_SYNC,
     "table is already in an epoch of MPI_Win_lock_all"},
    {free_window, MPI_ERR_RMA_SYNC,
     "table is in an epoch of MPI_Win_lock_all; end it first"},
};

static const struct wrong outside[] = {
    {put_outside, MPI_ERR_RMA_SYNC,
     "rank 1 of table is not in an access epoch (table is in none): call "
     "MPI_Win_fence, MPI_Win_start, MPI_Win_lock or MPI_Win_lock_all first"},
    {put_with_request, MPI_ERR_RMA_SYNC,
     "MPI_Rput is for epochs of MPI_Win_lock and MPI_Win_lock_all only; table "
     "is in no epoch"},
    {unlock_one, MPI_ERR_RMA_SYNC,
     "MPI_Win_unlock without a lock of rank 1: table is in no epoch"},
    {unlock_all, MPI_ERR_RMA_SYNC,
     "MPI_Win_unlock_all without MPI_Win_lock_all: table is in no epoch"},
    {flush, MPI_ERR_RMA_SYNC,
     "MPI_Win_flush without a lock of rank 1: table is in no epoch"},
    {flush_all, MPI_ERR_RMA_SYNC,
     "MPI_Win_flush_all without a lock: table is in no epoch"},
    {lock_kind, MPI_ERR_LOCKTYPE,
     "argument lock_type is -5; expected MPI_LOCK_SHARED or "
     "MPI_LOCK_EXCLUSIVE"},
    {lock_assert, MPI_ERR_ASSERT, "MPI_Win_lock knows MPI_MODE_NOCHECK only"},
    {lock_refused, MPI_ERR_RMA_SYNC, "fenced has the info key no_locks"},
    {complete, MPI_ERR_RMA_SYNC,
     "MPI_Win_complete without MPI_Win_start: table is in no epoch"},
    {wait, MPI_ERR_RMA_SYNC,
     "MPI_Win_wait without MPI_Win_post: table is not exposed"},
    {test, MPI_ERR_RMA_SYNC,
     "MPI_Win_test without MPI_Win_post: table is not exposed"},
    {no_window, MPI_ERR_WIN, "argument win (MPI_WIN_NULL) is a null handle"},
    {attach_static, MPI_ERR_RMA_FLAVOR,
     "table was not made by MPI_Win_create_dynamic"},
    {attach_twice, MPI_ERR_RMA_ATTACH,
     ", which are attached already; detach them first"},
    {detach_nothing, MPI_ERR_RMA_ATTACH, " is attached"},
    {query_dynamic, MPI_ERR_RMA_FLAVOR,
     "pool is dynamic: it has no memory of its own"},
    {make_negative, MPI_ERR_SIZE, "argument size is -8; expected 0 or more"},
    {make_unit, MPI_ERR_DISP, "argument disp_unit is 0; expected 1 or more"},
    {make_of_nothing, MPI_ERR_BASE,
     "argument base is NULL, but size is 100; expected memory, or size 0"},
    {attach_nothing, MPI_ERR_BASE,
     "argument base is NULL, but size is 10; expected memory to attach to "
     "pool, or size 0"},
    {flush_fenced, MPI_ERR_RMA_SYNC,
     "MPI_Win_flush without a lock of rank 0: own is in an epoch of "
     "MPI_Win_fence"},
    {put_unlocked, MPI_ERR_RMA_SYNC,
     "rank 1 of table is not in an access epoch (table is in an epoch of "
     "MPI_Win_lock): call MPI_Win_fence, MPI_Win_start, MPI_Win_lock or "
     "MPI_Win_lock_all first"},
    {flush_unlocked, MPI_ERR_RMA_SYNC,
     "MPI_Win_flush without a lock of rank 1: table is locked at other "
     "ranks"},
    {lock_again, MPI_ERR_RMA_SYNC,
     "table: this process holds the lock of rank 1 already; unlock it first"},
    {put_unattached, MPI_ERR_RMA_RANGE,
     "pool: displacement 4096 at rank 0 (this process): not all of the 8 "
     "bytes there are attached; call MPI_Win_attach first"},
    {put_not_started, MPI_ERR_RMA_SYNC,
     "rank 0 of fenced is not in an access epoch (fenced is in an epoch of "
     "MPI_Win_start): call MPI_Win_fence, MPI_Win_start, MPI_Win_lock or "
     "MPI_Win_lock_all first"},
    {start_again, MPI_ERR_RMA_SYNC,
     "fenced is already in an epoch of MPI_Win_start"},
};

/* How a call ended. */
static void judge(int error, const struct wrong *w)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    const size_t words = strlen(w->words);
    int len = 0;

    if (error != MPI_SUCCESS)
        MPI_Error_string(error, text, &len);
    CHECK(check_class(error) == w->class, "class %d, not %d: '%s', not '%s'",
          check_class(error), w->class, text, w->words);
    CHECK((size_t)len >= words && strcmp(text + len - words, w->words) == 0,
          "'%s' does not end with '%s'", text, w->words);
}

static void try_all(const struct wrong *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        judge(list[i].call(), &list[i]);
}

#define TRY(list) try_all(list, sizeof(list) / sizeof((list)[0]))

static void nothing(void *in, void *inout, int *len, MPI_Datatype *type)
{
    (void)in;
    (void)inout;
    (void)len;
    (void)type;
}

/* The target alone knows what is attached: it refuses, and goes on. */
static void refused_there(void)
{
    static const struct wrong by_put = {
        NULL, MPI_ERR_RMA_RANGE,
        "pool: rank 1 refused an operation of 8 bytes at displacement 4096: "
        "not all of that memory is attached there; call MPI_Win_attach first"};
    static const int ops = 2;
    const int64_t one = 1;
    int64_t before;

    for (int i = 0; i < ops; i++) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, TARGET, 0, pool);
        if (i == 0)
            MPI_Accumulate(&one, 1, MPI_INT64_T, TARGET, 4096, 1, MPI_INT64_T,
                           MPI_SUM, pool);
        else
            MPI_Fetch_and_op(&one, &before, MPI_INT64_T, TARGET, 4096, MPI_SUM,
                             pool);
        judge(MPI_Win_unlock(TARGET, pool), &by_put);
    }
}

/* The wait for a request names what its call was. */
static void refused_request(void)
{
    static const struct wrong by_wait = {
        NULL, MPI_ERR_RMA_RANGE,
        "MPI_Rget_accumulate: pool: rank 1 refused an operation of 8 bytes at "
        "displacement 4096: not all of that memory is attached there; call "
        "MPI_Win_attach first"};
    const int64_t one = 1;
    int64_t before;
    MPI_Request request;

    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, TARGET, 0, pool);
    MPI_Rget_accumulate(&one, 1, MPI_INT64_T, &before, 1, MPI_INT64_T, TARGET,
                        4096, 1, MPI_INT64_T, MPI_SUM, pool, &request);
    judge(MPI_Wait(&request, MPI_STATUS_IGNORE), &by_wait);
    MPI_Win_unlock(TARGET, pool);
}

/* ---- chempirun --check: basic types ---- */

static int put_long_as_double(void)
{
    return MPI_Put(cells, 1, MPI_INT64_T, TARGET, 3, 1, MPI_DOUBLE, table);
}

static int put_long_as_ints(void)
{
    return MPI_Put(cells, 1, MPI_INT64_T, TARGET, 3, 2, MPI_INT32_T, table);
}

static int get_bytes_as_long(void)
{
    return MPI_Get(cells, 8, MPI_BYTE, TARGET, 3, 1, MPI_INT64_T, table);
}

static const struct wrong unlike[] = {
    {put_long_as_double, MPI_ERR_TYPE,
     "table: the origin has MPI_LONG, the target (rank 1, displacement 3) "
     "MPI_DOUBLE; both must have the same amount of the same basic types"},
    {put_long_as_ints, MPI_ERR_TYPE,
     "table: the origin has MPI_LONG, the target (rank 1, displacement 3) "
     "MPI_INT; both must have the same amount of the same basic types"},
    {get_bytes_as_long, MPI_ERR_TYPE,
     "table: the result has MPI_BYTE, the target (rank 1, displacement 3) "
     "MPI_LONG; both must have the same amount of the same basic types"},
};

static void put_alike(void)
{
    int rc = MPI_Put(cells, 1, pair, TARGET, 3, 2, MPI_LONG, table);

    CHECK(rc == MPI_SUCCESS, "two in two ways: %d", rc);
    rc = MPI_Put(cells, 8, MPI_PACKED, TARGET, 3, 1, MPI_LONG, table);
    CHECK(rc == MPI_SUCCESS, "packed: %d", rc);
}

static MPI_Win make(const char *name, MPI_Info info)
{
    MPI_Win win;
    int64_t *base;

    MPI_Win_allocate((MPI_Aint)(CELLS * sizeof(int64_t)), 8, info,
                     MPI_COMM_WORLD, &base, &win);
    MPI_Win_set_name(win, name);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    return win;
}

static void make_all(void)
{
    const int one = TARGET;
    const int both[2] = {0, 0};
    MPI_Group all;
    MPI_Info info;

    table = make("table", MPI_INFO_NULL);
    MPI_Info_create(&info);
    MPI_Info_set(info, "no_locks", "true");
    fenced = make("fenced", info);
    MPI_Info_free(&info);
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &pool);
    MPI_Win_set_name(pool, "pool");
    MPI_Win_set_errhandler(pool, MPI_ERRORS_RETURN);
    MPI_Win_attach(pool, memory, sizeof(memory));
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, 1, &one, &other);
    MPI_Group_free(&all);
    MPI_Op_create(nothing, 1, &own_op);
    MPI_Type_contiguous(2, MPI_INT64_T, &pair);
    MPI_Type_commit(&pair);
    MPI_Type_create_indexed_block(2, 1, both, MPI_INT64_T, &twice);
    MPI_Type_set_name(twice, "twice");
    MPI_Type_commit(&twice);
    MPI_Type_create_resized(MPI_INT64_T, 0, 4, &shrunk);
    MPI_Type_commit(&shrunk);
}

static void free_all(void)
{
    MPI_Win_detach(pool, memory);
    MPI_Win_free(&table);
    MPI_Win_free(&fenced);
    MPI_Win_free(&pool);
    MPI_Group_free(&other);
    MPI_Op_free(&own_op);
    MPI_Type_free(&pair);
    MPI_Type_free(&twice);
    MPI_Type_free(&shrunk);
}

/* A checker compares the calls of all members, of which the rest errs in some.
 */
static void try_types(void)
{
    MPI_Win_lock_all(0, table);
    TRY(unlike);
    put_alike();
    MPI_Win_unlock_all(table);
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    check_need(2);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    make_all();
    if (argc > 1 && check_rank() == 0) {
        try_types();
    } else if (argc > 1) {
        /* serves */
    } else if (check_rank() == 0) {
        MPI_Win_lock_all(0, table);
        TRY(in_lock_all);
        read_twice();
        MPI_Win_unlock_all(table);
        TRY(outside);
        MPI_Win_complete(fenced);
        make_empty();
        refused_there();
        refused_request();
    } else if (check_rank() == TARGET) {
        MPI_Group origin;
        MPI_Group all;
        const int zero = 0;

        MPI_Comm_group(MPI_COMM_WORLD, &all);
        MPI_Group_incl(all, 1, &zero, &origin);
        MPI_Win_post(origin, MPI_MODE_NOCHECK, fenced);
        MPI_Win_wait(fenced);
        MPI_Group_free(&origin);
        MPI_Group_free(&all);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    free_all();
    return check_finish();
}
