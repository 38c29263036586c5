/* SPDX-License-Identifier: BSD-3-Clause */
/* Info objects: limits, order, copies, short buffers, hints of communicators
 * (MPI 5.0, chapter 10 and section 7.4.4). */

#include "check.h"

static void pairs(void)
{
    MPI_Info info;
    MPI_Info copy;
    char key[MPI_MAX_INFO_KEY];
    char value[64];
    int n = -1;
    int flag = -1;
    int len = -1;

    MPI_Info_create(&info);
    MPI_Info_set(info, "b", "1");
    MPI_Info_set(info, "a", "22");
    MPI_Info_set(info, "c", "");
    MPI_Info_set(info, "b", "4444");
    MPI_Info_get_nkeys(info, &n);
    CHECK(n == 3, "%d keys", n);
    for (int i = 0; i < 3; i++) {
        MPI_Info_get_nthkey(info, i, key);
        CHECK(strlen(key) == 1 && key[0] == "bac"[i], "key %d is \"%s\"", i,
              key);
    }
    CHECK(MPI_Info_get_nthkey(info, 3, key) != MPI_SUCCESS &&
              MPI_Info_get_nthkey(info, -1, key) != MPI_SUCCESS,
          "a key beyond the last");
    MPI_Info_dup(info, &copy);
    MPI_Info_set(info, "a", "changed");
    CHECK(MPI_Info_delete(info, "b") == MPI_SUCCESS, "delete");
    CHECK(check_class(MPI_Info_delete(info, "b")) == MPI_ERR_INFO_NOKEY,
          "deleted twice");
    MPI_Info_get_nthkey(info, 0, key);
    CHECK(strcmp(key, "a") == 0, "after a deletion: \"%s\"", key);
    MPI_Info_get_nkeys(copy, &n);
    MPI_Info_get(copy, "a", sizeof(value) - 1, value, &flag);
    CHECK(n == 3 && flag && strcmp(value, "22") == 0, "the copy: \"%s\"",
          value);
    MPI_Info_get_nthkey(copy, 2, key);
    CHECK(strcmp(key, "c") == 0, "the copy's order: \"%s\"", key);

    /* Short buffers. */
    memset(value, 'x', sizeof(value));
    MPI_Info_get(copy, "b", 2, value, &flag);
    CHECK(flag && strcmp(value, "44") == 0, "cut to \"%.8s\"", value);
    CHECK(value[3] == 'x', "written behind the buffer");
    MPI_Info_get_valuelen(copy, "b", &len, &flag);
    CHECK(flag && len == 4, "length %d", len);
    len = 77;
    MPI_Info_get_valuelen(copy, "none", &len, &flag);
    CHECK(!flag && len == 77, "length of nothing: %d", len);
    len = 0;
    value[0] = 'y';
    MPI_Info_get_string(copy, "b", &len, value, &flag);
    CHECK(flag && len == 5 && value[0] == 'y', "buflen 0: %d", len);
    len = 0;
    CHECK(MPI_Info_get_string(copy, "b", &len, NULL, &flag) == MPI_SUCCESS &&
              flag && len == 5,
          "buflen 0 without a buffer");
    len = 3;
    MPI_Info_get_string(copy, "b", &len, value, &flag);
    CHECK(flag && len == 5 && strcmp(value, "44") == 0, "buflen 3: \"%.8s\"",
          value);
    len = (int)sizeof(value);
    MPI_Info_get_string(copy, "b", &len, value, &flag);
    CHECK(flag && len == 5 && strcmp(value, "4444") == 0, "whole: \"%.8s\"",
          value);
    MPI_Info_get_string(copy, "c", &len, value, &flag);
    CHECK(flag && len == 1 && value[0] == '\0', "empty value");
    len = 9;
    value[0] = 'z';
    MPI_Info_get_string(copy, "none", &len, value, &flag);
    CHECK(!flag && len == 9 && value[0] == 'z', "no key: %d", len);
    MPI_Info_free(&info);
    MPI_Info_free(&copy);
    CHECK(info == MPI_INFO_NULL, "freed");
}

static void limits(void)
{
    char key[MPI_MAX_INFO_KEY + 1];
    char value[MPI_MAX_INFO_VAL + 1];
    char got[MPI_MAX_INFO_VAL + 1];
    int flag = 0;
    MPI_Info info;

    MPI_Info_create(&info);
    memset(key, 'k', sizeof(key));
    memset(value, 'v', sizeof(value));
    key[MPI_MAX_INFO_KEY] = value[MPI_MAX_INFO_VAL] = '\0';
    CHECK(check_class(MPI_Info_set(info, key, "v")) == MPI_ERR_INFO_KEY,
          "a key that is too long");
    CHECK(check_class(MPI_Info_set(info, "", "v")) == MPI_ERR_INFO_KEY,
          "an empty key");
    CHECK(check_class(MPI_Info_set(info, "k", value)) == MPI_ERR_INFO_VALUE,
          "a value that is too long");
    CHECK(check_class(MPI_Info_get(info, key, 5, got, &flag)) ==
              MPI_ERR_INFO_KEY,
          "get of a key that is too long");
    CHECK(check_class(MPI_Info_delete(info, key)) == MPI_ERR_INFO_KEY,
          "deletion of a key that is too long");
    key[MPI_MAX_INFO_KEY - 1] = value[MPI_MAX_INFO_VAL - 1] = '\0';
    CHECK(MPI_Info_set(info, key, value) == MPI_SUCCESS, "the longest pair");
    MPI_Info_get(info, key, MPI_MAX_INFO_VAL, got, &flag);
    CHECK(flag && strcmp(got, value) == 0, "the longest value");
    CHECK(check_class(MPI_Info_set(MPI_INFO_NULL, "a", "b")) == MPI_ERR_INFO,
          "the null object");
    CHECK(check_class(MPI_Info_set(MPI_INFO_ENV, "a", "b")) == MPI_ERR_INFO,
          "MPI_INFO_ENV is changed");
    MPI_Info_free(&info);
    CHECK(MPI_Info_free(&info) != MPI_SUCCESS, "freed twice");
    info = MPI_INFO_ENV;
    CHECK(MPI_Info_free(&info) != MPI_SUCCESS, "MPI_INFO_ENV freed");
}

static void expect_hint(MPI_Comm comm, const char *key, const char *want)
{
    MPI_Info info = MPI_INFO_NULL;
    char value[128] = "";
    int flag = 0;

    MPI_Comm_get_info(comm, &info);
    MPI_Info_get(info, key, sizeof(value) - 1, value, &flag);
    if (want)
        CHECK(flag && strcmp(value, want) == 0, "hint %s is \"%s\", not \"%s\"",
              key, flag ? value : "(none)", want);
    else
        CHECK(!flag, "hint %s is \"%s\"", key, value);
    MPI_Info_free(&info);
}

enum { HINTS = 5 };

static void hints(void)
{
    static const char *const keys[HINTS] = {
        "mpi_assert_no_any_tag", "mpi_assert_no_any_source",
        "mpi_assert_exact_length", "mpi_assert_allow_overtaking",
        "mpi_assert_strict_persistent_collective_ordering"};
    MPI_Comm comm;
    MPI_Comm copy;
    MPI_Request request;
    MPI_Info info;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Info_create(&info);
    for (int i = 0; i < HINTS; i++)
        MPI_Info_set(info, keys[i], "true");
    MPI_Info_set(info, "no_such_hint", "5");
    MPI_Comm_set_info(comm, info);
    for (int i = 0; i < HINTS; i++)
        expect_hint(comm, keys[i], "true");
    /* MPI_Comm_dup takes no hints along (MPI 5.0, section 7.4.2). */
    MPI_Comm_dup(comm, &copy);
    for (int i = 0; i < HINTS; i++)
        expect_hint(copy, keys[i], "false");
    expect_hint(copy, "mpi_memory_alloc_kinds", "system,mpi");
    MPI_Comm_free(&copy);
    MPI_Comm_idup(comm, &copy, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect_hint(copy, keys[0], "false");
    MPI_Comm_free(&copy);
    for (int i = 0; i < HINTS; i++)
        MPI_Info_set(info, keys[i], "false");
    MPI_Comm_dup_with_info(comm, info, &copy);
    for (int i = 0; i < HINTS; i++)
        expect_hint(copy, keys[i], "false");
    MPI_Comm_free(&copy);
    MPI_Info_set(info, keys[1], "true");
    MPI_Comm_idup_with_info(comm, info, &copy, &request);
    MPI_Info_set(info, keys[1], "nonsense"); /* may be changed at once */
    MPI_Info_free(&info);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect_hint(copy, keys[1], "true");
    expect_hint(copy, keys[0], "false");
    MPI_Comm_free(&copy);
    MPI_Comm_set_info(comm, MPI_INFO_NULL); /* no news */
    MPI_Info_create(&info);
    MPI_Info_set(info, keys[0], "nonsense");
    MPI_Comm_set_info(comm, info);
    MPI_Info_free(&info);
    expect_hint(comm, keys[1], "true");
    MPI_Comm_free(&comm);
}

enum { THREADS = 4, ROUNDS = 500 };

static void *use_own(void *arg)
{
    char key[32];
    char value[32];
    int flag;

    (void)snprintf(key, sizeof(key), "key%d", *(int *)arg);
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Info info;
        MPI_Info copy;

        MPI_Info_create(&info);
        MPI_Info_set(info, key, key + 3);
        MPI_Info_dup(info, &copy);
        MPI_Info_free(&info);
        MPI_Info_get(copy, key, 31, value, &flag);
        CHECK(flag && strcmp(value, key + 3) == 0, "thread's value");
        MPI_Info_get(MPI_INFO_ENV, "command", 31, value, &flag);
        MPI_Info_free(&copy);
    }
    return NULL;
}

static void by_threads(void)
{
    int numbers[THREADS];

    for (int i = 0; i < THREADS; i++)
        numbers[i] = i;
    check_run_threads(THREADS, use_own, numbers, sizeof(numbers[0]));
}

int main(int argc, char **argv)
{
    by_threads(); /* before MPI_Init from any thread: section 10 */
    check_start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    pairs();
    limits();
    hints();
    return check_finish();
}
