/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Windows as objects, and what goes wrong with them: shared memory, attributes,
 * names, hints, error handlers; MPI_PROC_NULL; flushes; large-count forms;
 * dynamic windows beside shared ones; and every error that a program can make
 * with epochs, ranges and types.
 */
#include <sched.h>

#include "check.h"

enum { CELLS = 64 };

static int rank;
static int size;

static MPI_Win make(int64_t **memory)
{
    MPI_Win win;

    MPI_Win_allocate(CELLS * 8, 8, MPI_INFO_NULL, MPI_COMM_WORLD, memory, &win);
    memset(*memory, 0, CELLS * 8);
    MPI_Barrier(MPI_COMM_WORLD);
    return win;
}

static int size_of(MPI_Comm comm)
{
    int count;

    MPI_Comm_size(comm, &count);
    return count;
}

/* ---- objects ---- */

static int delete_calls;

static int copy_attr(MPI_Win win, int keyval, void *extra, void *in, void *out,
                     int *flag)
{
    (void)win;
    (void)keyval;
    (void)extra;
    *(void **)out = in;
    *flag = 1;
    return MPI_SUCCESS;
}

static int delete_attr(MPI_Win win, int keyval, void *value, void *extra)
{
    (void)win;
    (void)keyval;
    CHECK(value == extra, "the delete callback got another value");
    delete_calls++;
    return MPI_SUCCESS;
}

static void test_attributes(void)
{
    int64_t *memory;
    MPI_Win win = make(&memory);
    int keyval;
    int flag = 0;
    void *value = NULL;

    MPI_Win_get_attr(win, MPI_WIN_BASE, &value, &flag);
    CHECK(flag && value == memory, "MPI_WIN_BASE is %p", value);
    MPI_Win_get_attr(win, MPI_WIN_SIZE, &value, &flag);
    CHECK(flag && *(MPI_Aint *)value == CELLS * 8, "MPI_WIN_SIZE is wrong");
    MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, &value, &flag);
    CHECK(flag && *(int *)value == 8, "MPI_WIN_DISP_UNIT is wrong");
    MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, &value, &flag);
    CHECK(flag && *(int *)value == MPI_WIN_FLAVOR_ALLOCATE, "wrong flavor");
    MPI_Win_get_attr(win, MPI_WIN_MODEL, &value, &flag);
    CHECK(flag && *(int *)value == MPI_WIN_UNIFIED, "wrong model");
    MPI_Win_create_keyval(copy_attr, delete_attr, &keyval, &rank);
    MPI_Win_set_attr(win, keyval, &rank);
    MPI_Win_get_attr(win, keyval, &value, &flag);
    CHECK(flag && value == &rank, "an attribute has another value");
    MPI_Win_delete_attr(win, keyval);
    MPI_Win_get_attr(win, keyval, &value, &flag);
    CHECK(!flag && delete_calls == 1, "an attribute is there after all");
    MPI_Win_set_attr(win, keyval, &rank);
    MPI_Win_free_keyval(&keyval);
    CHECK(keyval == MPI_KEYVAL_INVALID, "the key is there after all");
    MPI_Win_free(&win);
    CHECK(delete_calls == 2, "%d delete callbacks", delete_calls);
    CHECK(win == MPI_WIN_NULL, "the handle is not null");
}

static void test_names(void)
{
    char name[MPI_MAX_OBJECT_NAME];
    int64_t *memory;
    MPI_Win win = make(&memory);
    MPI_Group mine;
    MPI_Group all;
    MPI_Info info;
    int len;
    int flag;
    int result;

    MPI_Win_get_name(win, name, &len);
    CHECK(len == 0 && name[0] == '\0', "a new window is named %s", name);
    MPI_Win_set_name(win, "table");
    MPI_Win_get_name(win, name, &len);
    CHECK(len == 5 && strcmp(name, "table") == 0, "named %s", name);
    MPI_Win_get_group(win, &mine);
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_compare(mine, all, &result);
    CHECK(result == MPI_IDENT, "the groups differ");
    MPI_Group_free(&mine);
    MPI_Group_free(&all);
    MPI_Info_create(&info);
    MPI_Info_set(info, "accumulate_ordering", "none");
    MPI_Win_set_info(win, info);
    MPI_Info_free(&info);
    MPI_Win_get_info(win, &info);
    len = sizeof(name);
    MPI_Info_get_string(info, "accumulate_ordering", &len, name, &flag);
    CHECK(flag && strcmp(name, "none") == 0, "the hint is %s", name);
    MPI_Info_free(&info);
    MPI_Win_free(&win);
}

/* What is asked for is shown if it is known, else what was there before. */
static void test_hints(void)
{
    static const struct {
        const char *key;
        const char *value;
        const char *shown;
    } hints[] = {
        {"no_locks", "maybe", "false"},
        {"no_locks", "true", "true"},
        {"accumulate_ordering", "rar,war", "rar,war"},
        {"accumulate_ordering", "rar,now", "rar,war"},
        {"accumulate_ordering", "rar,", "rar,war"},
        {"accumulate_ops", "same_op", "same_op"},
        {"accumulate_ops", "any", "same_op"},
        {"mpi_accumulate_granularity", "16", "16"},
        {"mpi_accumulate_granularity", "16 bytes", "16"},
        {"mpi_accumulate_granularity", "-1", "16"},
        {"same_size", "true", "true"},
        {"same_disp_unit", "true", "true"},
        {"no_locks", "false", "false"},
    };
    int64_t *memory;
    MPI_Win win = make(&memory);

    for (size_t i = 0; i < sizeof(hints) / sizeof(hints[0]); i++) {
        char value[MPI_MAX_INFO_VAL] = "";
        int len = sizeof(value);
        int flag;
        MPI_Info info;

        MPI_Info_create(&info);
        MPI_Info_set(info, hints[i].key, hints[i].value);
        MPI_Win_set_info(win, info);
        MPI_Info_free(&info);
        MPI_Win_get_info(win, &info);
        MPI_Info_get_string(info, hints[i].key, &len, value, &flag);
        CHECK(flag && strcmp(value, hints[i].shown) == 0,
              "%s set to %s is %s, not %s", hints[i].key, hints[i].value, value,
              hints[i].shown);
        MPI_Info_free(&info);
    }
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win);
    MPI_Win_unlock(rank, win);
    MPI_Win_free(&win);
}

/* ---- shared memory ---- */

static void test_shared(MPI_Comm node, bool is_noncontig)
{
    int64_t *mine;
    int64_t *other;
    int me;
    int count;
    int unit;
    MPI_Aint len;
    MPI_Info info = MPI_INFO_NULL;
    MPI_Win win;

    MPI_Comm_rank(node, &me);
    MPI_Comm_size(node, &count);
    if (is_noncontig) {
        MPI_Info_create(&info);
        MPI_Info_set(info, "alloc_shared_noncontig", "true");
    }
    MPI_Win_allocate_shared((MPI_Aint)(me + 1) * 8, 8, info, node, &mine, &win);
    if (is_noncontig)
        MPI_Info_free(&info);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
    for (int i = 0; i <= me; i++)
        mine[i] = me * 100 + i;
    MPI_Win_sync(win);
    MPI_Barrier(node);
    MPI_Win_sync(win);
    for (int i = 0; i < count; i++) {
        MPI_Win_shared_query(win, i, &len, &unit, &other);
        CHECK(len == (i + 1) * 8 && unit == 8, "rank %d: %d bytes", i,
              (int)len);
        for (int k = 0; k <= i; k++)
            CHECK(other[k] == i * 100 + k, "cell %d of rank %d is %d", k, i,
                  (int)other[k]);
    }
    MPI_Win_shared_query(win, MPI_PROC_NULL, &len, &unit, &other);
    CHECK(len == 8 && other[0] == 0, "the first one with memory is another");
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

/* Who has an exclusive lock is alone with the memory, also with loads and
 * stores of others that lock_all has let in: member 0 calls it when it knows
 * that member 1 is about to change the cell, and must not see it half done. */
static void test_exclusion(MPI_Comm node)
{
    enum { TURNS = 5, YIELDS = 200 };
    volatile int64_t *cell;
    int64_t *memory;
    int me;
    int unit;
    MPI_Aint len;
    MPI_Win win;

    MPI_Comm_rank(node, &me);
    MPI_Win_allocate_shared(me ? 0 : 8, 8, MPI_INFO_NULL, node, &memory, &win);
    MPI_Win_shared_query(win, 0, &len, &unit, &memory);
    cell = memory;
    if (!me)
        *cell = 0;
    MPI_Barrier(node);
    for (int i = 0; i < TURNS && me == 1; i++) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
        *cell = 1;
        MPI_Send(NULL, 0, MPI_BYTE, 0, 0, node);
        for (int k = 0; k < YIELDS; k++)
            sched_yield();
        *cell = 0;
        MPI_Win_unlock(0, win);
        MPI_Recv(NULL, 0, MPI_BYTE, 0, 0, node, MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < TURNS && me == 0 && size_of(node) > 1; i++) {
        MPI_Recv(NULL, 0, MPI_BYTE, 1, 0, node, MPI_STATUS_IGNORE);
        MPI_Win_lock_all(0, win);
        CHECK(*cell == 0, "lock_all beside an exclusive lock");
        MPI_Win_unlock_all(win);
        MPI_Send(NULL, 0, MPI_BYTE, 1, 0, node);
    }
    MPI_Barrier(node);
    MPI_Win_free(&win);
}

static void test_shared_all(void)
{
    MPI_Comm node;
    MPI_Aint len;
    MPI_Aint unit;
    int64_t *memory;
    int64_t *other;
    MPI_Win win;

    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL,
                        &node);
    test_shared(node, false);
    test_shared(node, true);
    test_exclusion(node);
    MPI_Win_allocate_shared_c(16, 8, MPI_INFO_NULL, node, &memory, &win);
    MPI_Win_free(&win);
    MPI_Win_allocate_c(16, 8, MPI_INFO_NULL, node, &memory, &win);
    MPI_Win_shared_query_c(win, 0, &len, &unit, &other);
    CHECK(len == 16 && unit == 8 && other, "of MPI_Win_allocate: %d bytes",
          (int)len);
    MPI_Win_free(&win);
    MPI_Comm_free(&node);
}

/* ---- operations ---- */

static void test_nobody(void)
{
    int64_t *memory;
    int64_t value = 7;
    MPI_Win win = make(&memory);
    MPI_Request request;

    MPI_Win_fence(0, win);
    MPI_Put(&value, 1, MPI_INT64_T, MPI_PROC_NULL, 0, 1, MPI_INT64_T, win);
    MPI_Get(&value, 1, MPI_INT64_T, MPI_PROC_NULL, 0, 1, MPI_INT64_T, win);
    MPI_Accumulate(&value, 1, MPI_INT64_T, MPI_PROC_NULL, 0, 1, MPI_INT64_T,
                   MPI_SUM, win);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    MPI_Win_lock(MPI_LOCK_SHARED, MPI_PROC_NULL, 0, win);
    MPI_Rput(&value, 1, MPI_INT64_T, MPI_PROC_NULL, 0, 1, MPI_INT64_T, win,
             &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Win_flush(MPI_PROC_NULL, win);
    MPI_Win_unlock(MPI_PROC_NULL, win);
    CHECK(value == 7, "MPI_PROC_NULL gave %d", (int)value);
    MPI_Win_free(&win);
}

static void test_flushes(void)
{
    int64_t *memory;
    MPI_Win win = make(&memory);
    int next = (rank + 1) % size;
    int64_t values[4] = {1, 2, 3, 4};
    int64_t got[4] = {0};
    int64_t one = 1;
    MPI_Request requests[2];

    MPI_Win_lock_all(0, win);
    MPI_Put_c(values, 4, MPI_INT64_T, next, 0, 4, MPI_INT64_T, win);
    MPI_Win_flush_local(next, win);
    values[0] = 99;
    MPI_Win_flush(next, win);
    MPI_Get_c(got, 4, MPI_INT64_T, next, 0, 4, MPI_INT64_T, win);
    MPI_Win_flush_local_all(win);
    CHECK(got[0] == 1 && got[3] == 4, "got %d and %d", (int)got[0],
          (int)got[3]);
    MPI_Accumulate_c(&one, 1, MPI_INT64_T, next, 3, 1, MPI_INT64_T, MPI_SUM,
                     win);
    MPI_Get_accumulate_c(NULL, 0, MPI_DATATYPE_NULL, got, 1, MPI_INT64_T, next,
                         3, 1, MPI_INT64_T, MPI_NO_OP, win);
    MPI_Win_flush_all(win);
    CHECK(got[0] == 5, "the sum is %d", (int)got[0]);
    MPI_Rput_c(values, 1, MPI_INT64_T, next, 8, 1, MPI_INT64_T, win,
               &requests[0]);
    MPI_Raccumulate_c(&one, 1, MPI_INT64_T, next, 3, 1, MPI_INT64_T, MPI_SUM,
                      win, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Win_flush(next, win);
    MPI_Rget_c(got, 1, MPI_INT64_T, next, 8, 1, MPI_INT64_T, win, &requests[0]);
    MPI_Rget_accumulate_c(&one, 1, MPI_INT64_T, &got[1], 1, MPI_INT64_T, next,
                          3, 1, MPI_INT64_T, MPI_SUM, win, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    CHECK(got[0] == 99 && got[1] == 6, "got %d and %d", (int)got[0],
          (int)got[1]);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

/* Memory that began with MPI_Win_create_c; exposure is tested for its end. */
static void test_test(void)
{
    int64_t *memory = check_alloc(CELLS * 8);
    int64_t value = rank + 1;
    int flag = 0;
    MPI_Group all;
    MPI_Win win;

    MPI_Win_create_c(memory, CELLS * 8, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_get_group(win, &all);
    MPI_Win_post(all, 0, win);
    MPI_Win_start(all, 0, win);
    for (int i = 0; i < size; i++)
        MPI_Put(&value, 1, MPI_INT64_T, i, rank, 1, MPI_INT64_T, win);
    MPI_Win_complete(win);
    while (!flag)
        MPI_Win_test(win, &flag);
    for (int i = 0; i < size; i++)
        CHECK(memory[i] == i + 1, "cell %d is %d", i, (int)memory[i]);
    MPI_Group_free(&all);
    MPI_Win_free(&win);
    free(memory);
}

/* A loop on one window must not keep another from being served. */
static void test_two_windows(void)
{
    int64_t *flag;
    int64_t *memory = check_alloc(CELLS * 8);
    MPI_Aint base;
    MPI_Aint bases[64];
    int64_t one = 1;
    int64_t seen = 0;
    int64_t value = 0;
    MPI_Win first = make(&flag);
    MPI_Win second;

    if (size > 64)
        return;
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &second);
    MPI_Win_attach(second, memory, CELLS * 8);
    MPI_Get_address(memory, &base);
    MPI_Allgather(&base, 1, MPI_AINT, bases, 1, MPI_AINT, MPI_COMM_WORLD);
    MPI_Win_lock_all(0, first);
    MPI_Win_lock_all(0, second);
    MPI_Accumulate(&one, 1, MPI_INT64_T, 0, bases[0], 1, MPI_INT64_T, MPI_SUM,
                   second);
    MPI_Win_flush(0, second);
    MPI_Accumulate(&one, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, MPI_SUM, first);
    while (seen < size) {
        MPI_Fetch_and_op(NULL, &seen, MPI_INT64_T, 0, 0, MPI_NO_OP, first);
        MPI_Win_flush_local(0, first);
    }
    MPI_Get_accumulate(NULL, 0, MPI_INT64_T, &value, 1, MPI_INT64_T, 0,
                       bases[0], 1, MPI_INT64_T, MPI_NO_OP, second);
    MPI_Win_flush(0, second);
    CHECK(value == size, "the sum is %d", (int)value);
    MPI_Win_unlock_all(second);
    MPI_Win_unlock_all(first);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_detach(second, memory);
    MPI_Win_free(&second);
    MPI_Win_free(&first);
    free(memory);
}

/* ---- errors ---- */

static int handler_calls;

static void count_error(MPI_Win *win, int *code, ...)
{
    (void)win;
    (void)code;
    handler_calls++;
}

static void test_handlers(void)
{
    int64_t *memory;
    MPI_Win win = make(&memory);
    MPI_Errhandler mine;
    MPI_Errhandler found;
    int64_t value = 0;

    MPI_Win_get_errhandler(win, &found);
    CHECK(found == MPI_ERRORS_ARE_FATAL, "the first handler is another");
    MPI_Win_create_errhandler(count_error, &mine);
    MPI_Win_set_errhandler(win, mine);
    MPI_Win_get_errhandler(win, &found);
    CHECK(found == mine, "the handler is another");
    MPI_Errhandler_free(&found);
    MPI_Win_call_errhandler(win, MPI_ERR_OTHER);
    MPI_Put(&value, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, win);
    CHECK(handler_calls == 2, "%d calls of the handler", handler_calls);
    MPI_Errhandler_free(&mine);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Win_free(&win);
}

/* The class, and what the words must name. */
static void expect(int code, int errclass, const char *word)
{
    char text[MPI_MAX_ERROR_STRING];
    int len;

    CHECK(check_class(code) == errclass, "class %d instead of %d",
          check_class(code), errclass);
    if (code == MPI_SUCCESS)
        return;
    MPI_Error_string(code, text, &len);
    CHECK(strstr(text, word) != NULL, "\"%s\" does not say \"%s\"", text, word);
}

static void test_epoch_errors(MPI_Win win)
{
    MPI_Group all;
    int64_t v = 0;
    int flag;

    MPI_Win_get_group(win, &all);
    expect(MPI_Put(&v, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, win),
           MPI_ERR_RMA_SYNC, "table");
    expect(MPI_Win_unlock(0, win), MPI_ERR_RMA_SYNC, "without a lock");
    expect(MPI_Win_unlock_all(win), MPI_ERR_RMA_SYNC, "MPI_Win_lock_all");
    expect(MPI_Win_flush(0, win), MPI_ERR_RMA_SYNC, "without a lock");
    expect(MPI_Win_flush_all(win), MPI_ERR_RMA_SYNC, "without a lock");
    expect(MPI_Win_flush_local(0, win), MPI_ERR_RMA_SYNC, "without a lock");
    expect(MPI_Win_flush_local_all(win), MPI_ERR_RMA_SYNC, "without a lock");
    expect(MPI_Win_complete(win), MPI_ERR_RMA_SYNC, "MPI_Win_start");
    expect(MPI_Win_wait(win), MPI_ERR_RMA_SYNC, "MPI_Win_post");
    expect(MPI_Win_test(win, &flag), MPI_ERR_RMA_SYNC, "MPI_Win_post");
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
    expect(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win), MPI_ERR_RMA_SYNC,
           "already");
    expect(MPI_Win_lock_all(0, win), MPI_ERR_RMA_SYNC, "already");
    expect(MPI_Win_fence(0, win), MPI_ERR_RMA_SYNC, "MPI_Win_lock");
    expect(MPI_Win_start(all, 0, win), MPI_ERR_RMA_SYNC, "MPI_Win_lock");
    expect(MPI_Win_free(&win), MPI_ERR_RMA_SYNC, "MPI_Win_lock");
    if (size > 1)
        expect(MPI_Put(&v, 1, MPI_INT64_T, (rank + 1) % size, 0, 1, MPI_INT64_T,
                       win),
               MPI_ERR_RMA_SYNC, "not in an access epoch");
    MPI_Win_unlock(rank, win);
    expect(MPI_Win_lock(17, rank, 0, win), MPI_ERR_LOCKTYPE, "17");
    expect(MPI_Win_lock(MPI_LOCK_SHARED, size, 0, win), MPI_ERR_RANK, "rank");
    expect(MPI_Win_fence(1, win), MPI_ERR_ASSERT, "assert");
    MPI_Group_free(&all);
}

static void test_argument_errors(MPI_Win win)
{
    int64_t v[2] = {0, 0};
    double d = 0;
    MPI_Request request;
    int32_t n = 0;

    MPI_Win_lock_all(0, win);
    expect(MPI_Put(v, 1, MPI_INT64_T, 0, CELLS, 1, MPI_INT64_T, win),
           MPI_ERR_RMA_RANGE, "512");
    expect(MPI_Get(v, 2, MPI_INT64_T, 0, CELLS - 1, 2, MPI_INT64_T, win),
           MPI_ERR_RMA_RANGE, "rank 0");
    expect(MPI_Put(v, 1, MPI_INT64_T, 0, -1, 1, MPI_INT64_T, win), MPI_ERR_DISP,
           "-1");
    expect(MPI_Put(v, 1, MPI_INT64_T, size, 0, 1, MPI_INT64_T, win),
           MPI_ERR_RANK, "ranks 0 to");
    expect(MPI_Put(v, 2, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, win), MPI_ERR_TYPE,
           "16 bytes");
    expect(MPI_Put(v, -1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, win),
           MPI_ERR_COUNT, "origin_count");
    expect(MPI_Put(v, 1, MPI_INT64_T, 0, 0, -1, MPI_INT64_T, win),
           MPI_ERR_COUNT, "target_count");
    expect(MPI_Put(NULL, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, win),
           MPI_ERR_BUFFER, "origin_addr");
    expect(MPI_Put(v, 1, MPI_INT64_T, 0, 0, 1, MPI_DATATYPE_NULL, win),
           MPI_ERR_TYPE, "target_datatype");
    expect(
        MPI_Accumulate(&d, 1, MPI_DOUBLE, 0, 0, 1, MPI_INT64_T, MPI_SUM, win),
        MPI_ERR_TYPE, "same basic type");
    expect(
        MPI_Accumulate(v, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, MPI_NO_OP, win),
        MPI_ERR_OP, "MPI_NO_OP");
    expect(
        MPI_Accumulate(&d, 1, MPI_DOUBLE, 0, 0, 1, MPI_DOUBLE, MPI_BXOR, win),
        MPI_ERR_OP, "not defined");
    expect(MPI_Compare_and_swap(&d, &d, &d, MPI_DOUBLE, 0, 0, win),
           MPI_ERR_TYPE, "integers");
    expect(MPI_Win_attach(win, &n, 4), MPI_ERR_RMA_FLAVOR,
           "MPI_Win_create_dynamic");
    MPI_Win_unlock_all(win);
    MPI_Win_fence(0, win);
    expect(MPI_Rput(v, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, win, &request),
           MPI_ERR_RMA_SYNC, "MPI_Rput");
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    expect(MPI_Put(v, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, MPI_WIN_NULL),
           MPI_ERR_WIN, "MPI_WIN_NULL");
}

/* What only the target can know comes back with the next synchronization. */
static void test_dynamic_errors(void)
{
    char memory[32] = {0};
    MPI_Win win;

    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Win_attach(win, memory, 16);
    expect(MPI_Win_attach(win, memory + 8, 16), MPI_ERR_RMA_ATTACH, "overlap");
    expect(MPI_Win_detach(win, memory + 8), MPI_ERR_RMA_ATTACH, "attached");
    MPI_Win_lock_all(0, win);
    if (size > 1) { /* an accumulate, which no attach can do for us */
        int64_t one = 1;
        int next = (rank + 1) % size;

        MPI_Accumulate(&one, 1, MPI_INT64_T, next, 8, 1, MPI_INT64_T, MPI_SUM,
                       win);
        expect(MPI_Win_flush(next, win), MPI_ERR_RMA_RANGE, "attach");
    }
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_detach(win, memory);
    MPI_Win_free(&win);
}

/* A lock ends the epoch of a fence that no operation has followed. */
static void test_fence_then_lock(void)
{
    int64_t *memory;
    int64_t value = 0;
    MPI_Win win = make(&memory);

    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Win_fence(0, win);
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    MPI_Win_unlock(0, win);
    expect(MPI_Get(&value, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, win),
           MPI_ERR_RMA_SYNC, "not in an access epoch");
    MPI_Win_fence(0, win);
    MPI_Get(&value, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, win);
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
}

/* The mistake of one member is the error of all, and nobody waits for it. */
static void test_one_mistake(void)
{
    int64_t *memory;
    MPI_Win win = MPI_WIN_NULL;
    const int culprit = size - 1;
    int code;

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    code = MPI_Win_allocate(rank == culprit ? -1 : CELLS, 8, MPI_INFO_NULL,
                            MPI_COMM_WORLD, &memory, &win);
    expect(code, MPI_ERR_SIZE,
           rank == culprit ? "size is -1" : "at another rank");
    code = MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    CHECK(code == MPI_SUCCESS, "the next window: %d", code);
    MPI_Win_free(&win);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

static void test_errors(void)
{
    int64_t *memory;
    MPI_Win win = make(&memory);

    MPI_Win_set_name(win, "table");
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    test_epoch_errors(win);
    MPI_Barrier(MPI_COMM_WORLD);
    test_argument_errors(win);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    MPI_Win_free(&win);
    test_dynamic_errors();
    test_fence_then_lock();
    test_one_mistake();
}

int main(int argc, char *argv[])
{
    check_start(&argc, &argv);
    rank = check_rank();
    size = check_size();
    test_attributes();
    test_names();
    test_hints();
    test_shared_all();
    test_nobody();
    test_flushes();
    test_test();
    test_two_windows();
    test_handlers();
    test_errors();
    return check_finish();
}
