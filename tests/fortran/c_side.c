/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the C library offers to Fortran's, in a C program: c_side alone, and
 * c_side with, when libmpifort_abi was loaded, too.
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static int errors;

#define CHECK(ok, what)                                                        \
    do {                                                                       \
        if (!(ok)) {                                                           \
            (void)printf("%s:%d: %s\n", __FILE__, __LINE__, (what));           \
            errors++;                                                          \
        }                                                                      \
    } while (0)

/* ---- before MPI_Init ---- */

static void booleans(int is_loaded)
{
    unsigned char yes[16];
    unsigned char no[16];
    static const unsigned char zero[16];

    for (int size = 1; size <= 16; size *= 2) {
        int is_set = -1;

        memset(yes, 7, sizeof(yes));
        memset(no, 7, sizeof(no));
        CHECK(!MPI_Abi_get_fortran_booleans(size, yes, no, &is_set),
              "booleans");
        CHECK(is_set == is_loaded, "who knows booleans");
        if (!is_loaded)
            continue;
        CHECK(!memcmp(no, zero, (size_t)size), ".FALSE.");
        CHECK(yes[0] == 1 && !memcmp(yes + 1, zero, (size_t)size - 1),
              ".TRUE.");
    }
}

static void about(int is_loaded)
{
    MPI_Info info = MPI_INFO_NULL;
    char value[16] = "";
    int len = (int)sizeof(value);
    int is_set = 0;

    CHECK(!MPI_Abi_get_fortran_info(&info), "info");
    CHECK((info != MPI_INFO_NULL) == is_loaded, "who told about Fortran");
    if (!is_loaded)
        return;
    (void)MPI_Info_get_string(info, "mpi_logical16_supported", &len, value,
                              &is_set);
    CHECK(is_set && !strcmp(value, "true"), "LOGICAL(16)");
    CHECK(!MPI_Info_free(&info), "free");
}

/* Errors are returned. */
static void told_twice(void)
{
    int yes = 1;
    int no = 0;
    MPI_Info info;

    CHECK(MPI_Abi_set_fortran_booleans(4, &yes, &no) == MPI_ERR_ABI,
          "booleans are told twice");
    CHECK(!MPI_Abi_get_fortran_info(&info), "info");
    CHECK(MPI_Abi_set_fortran_info(info) == MPI_ERR_ABI, "told twice");
    CHECK(!MPI_Info_free(&info), "free");
}

/* ---- handles and statuses ---- */

static void handles(void)
{
    static const MPI_Datatype types[] = {
        MPI_INTEGER,      MPI_LOGICAL,  MPI_REAL,      MPI_DOUBLE_PRECISION,
        MPI_COMPLEX,      MPI_INTEGER2, MPI_LOGICAL16, MPI_DOUBLE_COMPLEX,
        MPI_2INTEGER,     MPI_2REAL,    MPI_CHARACTER, MPI_2DOUBLE_PRECISION,
        MPI_DATATYPE_NULL};
    MPI_Datatype made;

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        MPI_Fint f = MPI_Type_c2f(types[i]);

        CHECK(f == MPI_Type_toint(types[i]), "c2f of a predefined datatype");
        CHECK(MPI_Type_f2c(f) == types[i], "f2c of a predefined datatype");
    }
    CHECK(!MPI_Type_contiguous(3, MPI_INTEGER, &made), "contiguous");
    CHECK(MPI_Type_c2f(made) == MPI_Type_toint(made) &&
              MPI_Type_f2c(MPI_Type_c2f(made)) == made,
          "a datatype of the program");
    CHECK(!MPI_Type_free(&made), "free");
    CHECK(MPI_Comm_c2f(MPI_COMM_WORLD) == MPI_Comm_toint(MPI_COMM_WORLD) &&
              MPI_Op_c2f(MPI_SUM) == MPI_Op_toint(MPI_SUM) &&
              MPI_Request_f2c(MPI_Request_c2f(MPI_REQUEST_NULL)) ==
                  MPI_REQUEST_NULL &&
              MPI_Win_f2c(MPI_Win_c2f(MPI_WIN_NULL)) == MPI_WIN_NULL &&
              MPI_Info_f2c(MPI_Info_c2f(MPI_INFO_ENV)) == MPI_INFO_ENV &&
              MPI_Group_f2c(MPI_Group_c2f(MPI_GROUP_EMPTY)) ==
                  MPI_GROUP_EMPTY &&
              MPI_File_f2c(MPI_File_c2f(MPI_FILE_NULL)) == MPI_FILE_NULL &&
              MPI_Message_f2c(MPI_Message_c2f(MPI_MESSAGE_NO_PROC)) ==
                  MPI_MESSAGE_NO_PROC &&
              MPI_Errhandler_f2c(MPI_Errhandler_c2f(MPI_ERRORS_RETURN)) ==
                  MPI_ERRORS_RETURN &&
              MPI_Session_f2c(MPI_Session_c2f(MPI_SESSION_NULL)) ==
                  MPI_SESSION_NULL,
          "other predefined handles");
}

/* All that a status says survives all conversions. */
static void statuses(void)
{
    MPI_Fint f[MPI_F_STATUS_SIZE];
    MPI_F08_status f08;
    MPI_Status status;
    MPI_Status back;
    int sent[5] = {0};
    int got[5];
    int count = 0;

    CHECK(!MPI_Sendrecv(sent, 5, MPI_INTEGER, 0, 17, got, 5, MPI_INTEGER, 0,
                        MPI_ANY_TAG, MPI_COMM_SELF, &status),
          "sendrecv");
    status.MPI_ERROR = 12;
    memset(&back, 0xff, sizeof(back));
    CHECK(!MPI_Status_c2f(&status, f) && !MPI_Status_f2f08(f, &f08) &&
              !MPI_Status_f082c(&f08, &back),
          "there by f2f08");
    CHECK(back.MPI_TAG == 17 && back.MPI_SOURCE == 0 && back.MPI_ERROR == 12,
          "members");
    CHECK(!MPI_Get_count(&back, MPI_INTEGER, &count) && count == 5, "count");
    memset(&back, 0xff, sizeof(back));
    memset(f, 0xff, sizeof(f));
    CHECK(!MPI_Status_c2f08(&status, &f08) && !MPI_Status_f082f(&f08, f) &&
              !MPI_Status_f2c(f, &back),
          "there by f082f");
    CHECK(f[MPI_F_SOURCE] == 0 && f[MPI_F_TAG] == 17 && f[MPI_F_ERROR] == 12,
          "places in Fortran's array");
    CHECK(!MPI_Get_count(&back, MPI_INTEGER, &count) && count == 5, "count");
    CHECK(MPI_F_STATUS_IGNORE && MPI_F_STATUSES_IGNORE &&
              MPI_F_STATUS_IGNORE != MPI_F_STATUSES_IGNORE,
          "ignored statuses");
    CHECK(MPI_Status_f2c(MPI_F_STATUS_IGNORE, &back) != MPI_SUCCESS,
          "an ignored status has nothing to convert");
}

/* ---- datatypes ---- */

static void match(int typeclass, int size, MPI_Datatype wanted)
{
    MPI_Datatype found = MPI_DATATYPE_NULL;
    int bytes = 0;

    CHECK(!MPI_Type_match_size(typeclass, size, &found), "match_size");
    CHECK(found == wanted, "another type than wanted");
    CHECK(!MPI_Type_size(found, &bytes) && bytes == size, "size");
}

static void classes(void)
{
    match(MPI_TYPECLASS_INTEGER, 1, MPI_INTEGER1);
    match(MPI_TYPECLASS_INTEGER, 2, MPI_INTEGER2);
    match(MPI_TYPECLASS_INTEGER, 4, MPI_INTEGER4);
    match(MPI_TYPECLASS_INTEGER, 8, MPI_INTEGER8);
    match(MPI_TYPECLASS_INTEGER, 16, MPI_INTEGER16);
    match(MPI_TYPECLASS_REAL, 2, MPI_REAL2);
    match(MPI_TYPECLASS_REAL, 4, MPI_REAL4);
    match(MPI_TYPECLASS_REAL, 8, MPI_REAL8);
    match(MPI_TYPECLASS_REAL, 16, MPI_REAL16);
    match(MPI_TYPECLASS_COMPLEX, 4, MPI_COMPLEX4);
    match(MPI_TYPECLASS_COMPLEX, 8, MPI_COMPLEX8);
    match(MPI_TYPECLASS_COMPLEX, 16, MPI_COMPLEX16);
    match(MPI_TYPECLASS_COMPLEX, 32, MPI_COMPLEX32);
}

/* Without Fortran's values, 1 is true; with them the same here. */
static void logicals(MPI_Datatype type, size_t size)
{
    unsigned char in[32] = {0};
    unsigned char out[32] = {0};
    static const unsigned char zero[16];

    in[0] = 1;
    out[size] = 1;
    CHECK(!MPI_Reduce_local(in, out, 2, type, MPI_LOR), "MPI_LOR");
    CHECK(out[0] == 1 && !memcmp(out + 1, zero, size - 1) && out[size] == 1 &&
              !memcmp(out + size + 1, zero, size - 1),
          "values of MPI_LOR");
    CHECK(!MPI_Reduce_local(in, out, 2, type, MPI_LAND), "MPI_LAND");
    CHECK(out[0] == 1 && !memcmp(out + size, zero, size), "values of MPI_LAND");
    CHECK(!MPI_Reduce_local(in, out, 2, type, MPI_LXOR), "MPI_LXOR");
    CHECK(!memcmp(out, zero, size) && !memcmp(out + size, zero, size),
          "values of MPI_LXOR");
}

int main(int argc, char **argv)
{
    int is_loaded = argc > 1 && strcmp(argv[1], "with") == 0;

    booleans(is_loaded);
    about(is_loaded);
    MPI_Init(NULL, NULL);
    (void)MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    (void)MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    booleans(is_loaded);
    about(is_loaded);
    if (is_loaded)
        told_twice();
    handles();
    classes();
    logicals(MPI_LOGICAL, 4);
    logicals(MPI_LOGICAL1, 1);
    logicals(MPI_LOGICAL2, 2);
    logicals(MPI_LOGICAL4, 4);
    logicals(MPI_LOGICAL8, 8);
    logicals(MPI_LOGICAL16, 16);
    statuses();
    MPI_Finalize();
    booleans(is_loaded);
    if (errors == 0)
        (void)puts("No Errors");
    return errors != 0;
}
