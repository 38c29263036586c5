/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the library tells of itself and of this start: MPI_INFO_ENV, the
 * binary interface, hints of communicators, error classes and their strings.
 *
 * usage: about [maxprocs [argument ...]]   as the launcher was told
 */
#include "check.h"

#include <unistd.h>

static void has(MPI_Info info, const char *key, const char *want)
{
    char text[MPI_MAX_INFO_VAL] = "";
    int room = sizeof(text);
    int flag = 0;

    MPI_Info_get_string(info, key, &room, text, &flag);
    CHECK(flag, "%s is not set", key);
    CHECK(!flag || !want || strcmp(text, want) == 0, "%s is \"%s\", not \"%s\"",
          key, text, want);
}

/* ---- the start ---- */

static void start(int argc, char **argv)
{
    char directory[4096] = "";
    char words[1024] = "";
    MPI_Info made = MPI_INFO_NULL;

    for (int i = 1; i < argc; i++)
        snprintf(words + strlen(words), sizeof(words) - strlen(words),
                 i > 1 ? " %s" : "%s", argv[i]);
    has(MPI_INFO_ENV, "command", argv[0]);
    if (argc > 1)
        has(MPI_INFO_ENV, "argv", words);
    has(MPI_INFO_ENV, "maxprocs", argc > 1 ? argv[1] : "1");
    has(MPI_INFO_ENV, "host", getenv("CHEMPI_NODE"));
    has(MPI_INFO_ENV, "arch", NULL);
    CHECK(getcwd(directory, sizeof(directory)) != NULL, "no directory");
    has(MPI_INFO_ENV, "wdir", directory);
    CHECK(MPI_Info_set(MPI_INFO_ENV, "command", "x") == MPI_ERR_INFO,
          "MPI_INFO_ENV can be changed");
    MPI_Info_create_env(argc, argv, &made);
    has(made, "command", argv[0]);
    if (argc > 1)
        has(made, "argv", words);
    MPI_Info_set(made, "command", "x");
    has(made, "command", "x");
    MPI_Info_free(&made);
}

/* ---- the binary interface ---- */

/* Results are Fortran's values; what is not .FALSE. is true. */
static void logical_operations(void)
{
    const unsigned char yes[4] = {1, 2, 3, 4};
    unsigned char in[8] = {0, 0, 0, 0, 7};
    unsigned char out[8] = {1, 2, 3, 4, 1, 2, 3, 4};

    MPI_Reduce_local(in, out, 2, MPI_LOGICAL, MPI_LAND);
    CHECK(!memcmp(out, in, 4) && !memcmp(out + 4, yes, 4), "MPI_LAND");
    MPI_Reduce_local(in, out, 2, MPI_LOGICAL4, MPI_LOR);
    CHECK(!memcmp(out, in, 4) && !memcmp(out + 4, yes, 4), "MPI_LOR");
    MPI_Reduce_local(in, out, 2, MPI_LOGICAL, MPI_LXOR);
    CHECK(!memcmp(out, in, 4) && !memcmp(out + 4, in, 4), "MPI_LXOR");
    memset(in, 0, sizeof(in));
    in[0] = 1;
    memset(out, 0, sizeof(out));
    MPI_Reduce_local(in, out, 1, MPI_LOGICAL8, MPI_LOR);
    CHECK(!memcmp(in, out, 8), "MPI_LOR of a size that was not set");
}

static void interface(void)
{
    MPI_Info info = MPI_INFO_NULL;
    unsigned char yes[4] = {1, 2, 3, 4};
    unsigned char no[4] = {0};
    unsigned char got[4] = {0};
    unsigned char got_no[4] = {9, 9, 9, 9};
    int flag = -1;

    MPI_Abi_get_info(&info);
    has(info, "mpi_aint_size", sizeof(MPI_Aint) == 8 ? "8" : "4");
    has(info, "mpi_count_size", "8");
    has(info, "mpi_offset_size", "8");
    MPI_Info_free(&info);

    MPI_Abi_get_fortran_info(&info);
    CHECK(info == MPI_INFO_NULL, "Fortran is known before it was set");
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_integer_size", "3");
    CHECK(MPI_Abi_set_fortran_info(info) == MPI_ERR_ABI,
          "integers of 3 bytes are taken");
    MPI_Info_set(info, "mpi_integer_size", "4");
    MPI_Info_set(info, "mpi_logical1_supported", "true");
    CHECK(MPI_Abi_set_fortran_info(info) == MPI_SUCCESS, "not taken");
    CHECK(MPI_Abi_set_fortran_info(info) == MPI_ERR_ABI, "taken twice");
    MPI_Info_free(&info);
    MPI_Abi_get_fortran_info(&info);
    has(info, "mpi_integer_size", "4");
    has(info, "mpi_logical1_supported", "true");
    MPI_Info_free(&info);

    MPI_Abi_get_fortran_booleans(4, got, got_no, &flag);
    CHECK(!flag, "booleans are known before they were set");
    CHECK(MPI_Abi_set_fortran_booleans(3, yes, no) == MPI_ERR_ARG, "3 bytes");
    MPI_Abi_set_fortran_booleans(4, yes, no);
    CHECK(MPI_Abi_set_fortran_booleans(4, yes, no) == MPI_ERR_ABI,
          "booleans are set twice");
    MPI_Abi_get_fortran_booleans(4, got, got_no, &flag);
    CHECK(flag && !memcmp(got, yes, 4) && !memcmp(got_no, no, 4),
          "other booleans than those set");
    logical_operations();
    MPI_Abi_get_fortran_booleans(8, got, got_no, &flag);
    CHECK(!flag, "booleans of another size are known");
}

/* ---- hints ---- */

static void hints(void)
{
    MPI_Info info;
    MPI_Comm comm;

    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_assert_no_any_tag", "true");
    MPI_Info_set(info, "mpi_assert_exact_length", "perhaps");
    MPI_Info_set(info, "no such hint", "true");
    MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm);
    MPI_Info_free(&info);
    MPI_Comm_get_info(comm, &info);
    has(info, "mpi_assert_no_any_tag", "true");
    has(info, "mpi_assert_no_any_source", "false");
    has(info, "mpi_assert_exact_length", "false");
    has(info, "mpi_assert_allow_overtaking", "false");
    has(info, "mpi_memory_alloc_kinds", "system,mpi");
    MPI_Info_free(&info);
    MPI_Comm_free(&comm);
}

/* ---- errors ---- */

static int count_classes(void)
{
    char text[MPI_MAX_ERROR_STRING];
    int count = 0;
    int class = -1;
    int len = -1;

    for (int code = 0; code <= MPI_ERR_LASTCODE; code++) {
        if (MPI_Error_class(code, &class) != MPI_SUCCESS)
            continue;
        CHECK(class == code, "the class of class %d is %d", code, class);
        CHECK(MPI_Error_string(code, text, &len) == MPI_SUCCESS && len > 4 &&
                  len == (int)strlen(text) && strncmp(text, "MPI_", 4) == 0,
              "the string of class %d is \"%s\"", code, text);
        count++;
    }
    return count;
}

static void own_errors(void)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int class = -1;
    int code = -1;
    int got = -1;
    int len = -1;
    int flag = 0;
    void *last = NULL;

    MPI_Add_error_class(&class);
    MPI_Add_error_code(class, &code);
    MPI_Add_error_string(code, "too blue");
    MPI_Error_class(code, &got);
    CHECK(class > MPI_ERR_LASTCODE && code > MPI_ERR_LASTCODE && got == class,
          "class %d, code %d of class %d", class, code, got);
    MPI_Error_string(code, text, &len);
    CHECK(strcmp(text, "too blue") == 0, "string \"%s\"", text);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &last, &flag);
    CHECK(flag && *(int *)last >= code, "MPI_LASTUSEDCODE");
    CHECK(MPI_Comm_call_errhandler(MPI_COMM_WORLD, code) == MPI_SUCCESS,
          "own code is not raised");
    CHECK(MPI_Remove_error_class(class) != MPI_SUCCESS, "class with codes");
    CHECK(MPI_Remove_error_code(code) != MPI_SUCCESS, "code with a string");
    CHECK(MPI_Remove_error_string(code) == MPI_SUCCESS, "string stays");
    CHECK(MPI_Remove_error_code(code) == MPI_SUCCESS, "code stays");
    CHECK(MPI_Remove_error_class(class) == MPI_SUCCESS, "class stays");
    CHECK(MPI_Error_class(class, &got) != MPI_SUCCESS, "class is still known");
    CHECK(MPI_Add_error_string(MPI_ERR_RANK, "x") != MPI_SUCCESS,
          "a predefined string can be changed");
}

int main(int argc, char **argv)
{
    check_start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    start(argc, argv);
    interface();
    hints();
    CHECK(count_classes() >= 82, "%d error classes", count_classes());
    own_errors();
    return check_finish();
}
