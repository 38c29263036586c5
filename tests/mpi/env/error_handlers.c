/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Error handlers on communicators and sessions, error classes, codes and
 * strings that a program adds and removes, and the strings of all classes.
 */
#include "check.h"

static struct {
    int calls;
    int code;
    void *handle;
} seen;

static void on_comm(MPI_Comm *comm, int *error, ...)
{
    seen.calls++;
    seen.code = *error;
    seen.handle = (void *)*comm;
}

static void on_session(MPI_Session *session, int *error, ...)
{
    seen.calls++;
    seen.code = *error;
    seen.handle = (void *)*session;
}

static void on_win(MPI_Win *win, int *error, ...)
{
    (void)win;
    (void)error;
}

static void on_file(MPI_File *file, int *error, ...)
{
    (void)file;
    (void)error;
}

/* An error that belongs to no object goes to MPI_COMM_SELF's handler; to that
 * of MPI_COMM_WORLD when the setting says so. */
static void without_object(bool is_worlds)
{
    MPI_Errhandler handler;
    MPI_Comm mine = is_worlds ? MPI_COMM_WORLD : MPI_COMM_SELF;
    MPI_Comm other = is_worlds ? MPI_COMM_SELF : MPI_COMM_WORLD;
    MPI_Datatype type;

    MPI_Comm_create_errhandler(on_comm, &handler);
    MPI_Comm_set_errhandler(mine, handler);
    MPI_Comm_set_errhandler(other, MPI_ERRORS_RETURN);
    seen.calls = 0;
    CHECK(MPI_Type_contiguous(-1, MPI_INT, &type) != MPI_SUCCESS,
          "a type of -1 elements was made");
    CHECK(seen.calls == 1 && seen.handle == (void *)mine,
          "%d calls of the handler", seen.calls);
    MPI_Comm_set_errhandler(mine, MPI_ERRORS_RETURN);
    MPI_Errhandler_free(&handler);
}

static void strings_of_classes(void)
{
    char text[MPI_MAX_ERROR_STRING];
    char before[MPI_MAX_ERROR_STRING] = "";
    int len;

    for (int code = MPI_SUCCESS; code <= MPI_ERR_ABI; code++) {
        memset(text, 'x', sizeof(text));
        len = -1;
        CHECK(MPI_Error_string(code, text, &len) == MPI_SUCCESS,
              "string of class %d", code);
        CHECK(len > 0 && len == (int)strlen(text), "length %d of \"%s\"", len,
              text);
        CHECK(strcmp(text, before) != 0, "classes %d and %d have one string",
              code - 1, code);
        CHECK(check_class(code) == code, "class of %d", code);
        strcpy(before, text);
    }
    CHECK(check_class(MPI_Error_string(-1, text, &len)) == MPI_ERR_ARG,
          "string of an unknown code");
    CHECK(check_class(MPI_Error_class(MPI_ERR_LASTCODE + 12345, &len)) ==
              MPI_ERR_ARG,
          "class of an unknown code");
}

static int last_used(MPI_Comm comm)
{
    int *value = NULL;
    int flag = 0;

    MPI_Comm_get_attr(comm, MPI_LASTUSEDCODE, &value, &flag);
    CHECK(flag && value, "MPI_LASTUSEDCODE is not set");
    return flag ? *value : -1;
}

static void own_codes(void)
{
    char text[MPI_MAX_ERROR_STRING];
    char longest[MPI_MAX_ERROR_STRING + 1];
    int first = last_used(MPI_COMM_WORLD);
    int family = -1;
    int code = -1;
    int other = -1;
    int len = -1;

    CHECK(first >= MPI_ERR_LASTCODE, "last used code is %d", first);
    MPI_Add_error_class(&family);
    CHECK(family > MPI_ERR_LASTCODE, "own class is %d", family);
    CHECK(last_used(MPI_COMM_WORLD) == family, "last used code stayed");
    MPI_Add_error_code(family, &code);
    CHECK(last_used(MPI_COMM_WORLD) == code && code > family,
          "last used code stayed, code %d", code);
    CHECK(check_class(code) == family && check_class(family) == family,
          "class of an own code");
    MPI_Add_error_code(MPI_ERR_TRUNCATE, &other);
    CHECK(check_class(other) == MPI_ERR_TRUNCATE, "own code of an MPI class");
    CHECK(MPI_Error_string(code, text, &len) == MPI_SUCCESS && len == 0 &&
              text[0] == '\0',
          "a code without string has \"%s\"", text);
    MPI_Add_error_string(family, "family");
    MPI_Add_error_string(code, "one");
    MPI_Add_error_string(code, "two");
    CHECK(MPI_Error_string(code, text, &len) == MPI_SUCCESS && len == 3 &&
              strcmp(text, "two") == 0,
          "the string is \"%s\"", text);
    memset(longest, 'a', sizeof(longest));
    longest[MPI_MAX_ERROR_STRING] = '\0';
    CHECK(MPI_Add_error_string(code, longest) != MPI_SUCCESS,
          "a string without room for its end");
    longest[MPI_MAX_ERROR_STRING - 1] = '\0';
    CHECK(MPI_Add_error_string(code, longest) == MPI_SUCCESS &&
              MPI_Error_string(code, text, &len) == MPI_SUCCESS &&
              len == MPI_MAX_ERROR_STRING - 1 && strcmp(text, longest) == 0,
          "the longest string");
    CHECK(check_class(MPI_Add_error_string(MPI_ERR_RANK, "no")) != MPI_SUCCESS,
          "a class of MPI's has a string of ours");
    CHECK(MPI_Add_error_code(code, &len) != MPI_SUCCESS,
          "a code of a code that is no class");

    /* MPI 5.0, section 9.5: codes before their class, strings before both. */
    CHECK(MPI_Remove_error_class(family) != MPI_SUCCESS,
          "removed a class with a code and a string");
    CHECK(MPI_Remove_error_string(code) == MPI_SUCCESS, "remove a string");
    CHECK(MPI_Remove_error_code(code) == MPI_SUCCESS, "remove a code");
    CHECK(MPI_Remove_error_code(code) != MPI_SUCCESS, "remove it again");
    CHECK(MPI_Remove_error_code(family) != MPI_SUCCESS, "a class is no code");
    CHECK(MPI_Remove_error_string(family) == MPI_SUCCESS, "remove a string");
    CHECK(MPI_Remove_error_class(family) == MPI_SUCCESS, "remove a class");
    CHECK(MPI_Remove_error_class(MPI_ERR_RANK) != MPI_SUCCESS,
          "removed a class of MPI's");
    CHECK(MPI_Remove_error_string(MPI_ERR_RANK) != MPI_SUCCESS,
          "removed a string of MPI's");
    CHECK(MPI_Remove_error_code(other) == MPI_SUCCESS, "remove a code");
    CHECK(MPI_Error_class(code, &len) != MPI_SUCCESS, "class of a lost code");
}

static void on_communicators(void)
{
    MPI_Errhandler own;
    MPI_Errhandler got;
    MPI_Comm comm;
    MPI_Comm copy;
    int value = 0;
    int code;
    int rc;

    MPI_Comm_create_errhandler(on_comm, &own);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, own);
    MPI_Comm_get_errhandler(comm, &got);
    CHECK(got == own, "another handler than was set");
    MPI_Errhandler_free(&got);
    MPI_Errhandler_free(&own); /* in use: stays until the last one goes */
    CHECK(own == MPI_ERRHANDLER_NULL && got == MPI_ERRHANDLER_NULL,
          "freed handles");
    MPI_Comm_dup(comm, &copy);

    seen.calls = 0;
    rc = MPI_Send(&value, 1, MPI_INT, 100000, 0, copy);
    CHECK(check_class(rc) == MPI_ERR_RANK && seen.calls == 1 &&
              seen.handle == (void *)copy &&
              check_class(seen.code) == MPI_ERR_RANK,
          "the copy has the handler: %d calls, code %d", seen.calls, rc);

    MPI_Add_error_code(MPI_ERR_OTHER, &code);
    seen.calls = 0;
    CHECK(MPI_Comm_call_errhandler(comm, code) == MPI_SUCCESS, "call");
    CHECK(seen.calls == 1 && seen.code == code && seen.handle == (void *)comm,
          "called %d times with %d, not %d", seen.calls, seen.code, code);
    MPI_Remove_error_code(code);

    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    seen.calls = 0;
    rc = MPI_Send(&value, 1, MPI_INT, 100000, 0, comm);
    CHECK(check_class(rc) == MPI_ERR_RANK && seen.calls == 0, "returned %d",
          rc);
    CHECK(MPI_Comm_call_errhandler(comm, MPI_ERR_OTHER) == MPI_SUCCESS,
          "call with MPI_ERRORS_RETURN");
    MPI_Comm_get_errhandler(comm, &got);
    CHECK(got == MPI_ERRORS_RETURN, "not MPI_ERRORS_RETURN");
    MPI_Errhandler_free(&got);
    CHECK(got == MPI_ERRHANDLER_NULL, "not MPI_ERRHANDLER_NULL");
    MPI_Comm_get_errhandler(comm, &got);
    CHECK(got == MPI_ERRORS_RETURN, "a predefined handler is gone");
    MPI_Comm_free(&comm);
    MPI_Comm_free(&copy);
}

static void on_sessions(void)
{
    MPI_Session session = MPI_SESSION_NULL;
    MPI_Errhandler own;
    MPI_Errhandler comm_own;
    MPI_Errhandler got;
    MPI_Group group = MPI_GROUP_NULL;
    int rc;

    MPI_Session_create_errhandler(on_session, &own);
    MPI_Comm_create_errhandler(on_comm, &comm_own);
    CHECK(MPI_Session_init(MPI_INFO_NULL, own, &session) == MPI_SUCCESS,
          "session");
    MPI_Session_get_errhandler(session, &got);
    CHECK(got == own, "another handler than at its start");
    MPI_Errhandler_free(&got);
    MPI_Errhandler_free(&own);
    seen.calls = 0;
    rc = MPI_Group_from_session_pset(session, "no such set", &group);
    CHECK(rc != MPI_SUCCESS && seen.calls == 1 &&
              seen.handle == (void *)session && seen.code == rc,
          "%d calls, code %d of %d", seen.calls, seen.code, rc);
    seen.calls = 0;
    CHECK(MPI_Session_call_errhandler(session, MPI_ERR_INFO) == MPI_SUCCESS &&
              seen.calls == 1 && seen.code == MPI_ERR_INFO,
          "%d calls, code %d", seen.calls, seen.code);
    seen.calls = 0;
    CHECK(check_class(MPI_Session_set_errhandler(session, comm_own)) !=
                  MPI_SUCCESS &&
              seen.calls == 1,
          "a session has a handler for communicators");
    MPI_Session_set_errhandler(session, MPI_ERRORS_RETURN);
    MPI_Session_get_errhandler(session, &got);
    CHECK(got == MPI_ERRORS_RETURN, "not MPI_ERRORS_RETURN");
    MPI_Errhandler_free(&got);
    MPI_Errhandler_free(&comm_own);
    MPI_Session_finalize(&session);
}

static void of_other_objects(void)
{
    MPI_Errhandler win;
    MPI_Errhandler file;
    MPI_Errhandler none = MPI_ERRHANDLER_NULL;

    CHECK(MPI_Win_create_errhandler(on_win, &win) == MPI_SUCCESS, "window");
    CHECK(MPI_File_create_errhandler(on_file, &file) == MPI_SUCCESS, "file");
    CHECK(check_class(MPI_Comm_set_errhandler(MPI_COMM_WORLD, win)) !=
              MPI_SUCCESS,
          "a communicator has a handler for windows");
    CHECK(check_class(MPI_Comm_set_errhandler(MPI_COMM_WORLD, file)) !=
              MPI_SUCCESS,
          "a communicator has a handler for files");
    MPI_Errhandler_free(&win);
    MPI_Errhandler_free(&file);
    CHECK(MPI_Errhandler_free(&none) != MPI_SUCCESS, "freed none");
}

/* The handler replaces and frees itself while it runs. */
static void replace(MPI_Comm *comm, int *error, ...)
{
    seen.calls++;
    seen.code = *error;
    MPI_Comm_set_errhandler(*comm, MPI_ERRORS_RETURN);
}

static void replaced_in_use(void)
{
    MPI_Errhandler own;
    MPI_Comm comm;
    int value = 0;

    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    MPI_Comm_create_errhandler(replace, &own);
    MPI_Comm_set_errhandler(comm, own);
    MPI_Errhandler_free(&own);
    seen.calls = 0;
    MPI_Send(&value, 1, MPI_INT, 7, 0, comm);
    MPI_Send(&value, 1, MPI_INT, 7, 0, comm);
    CHECK(seen.calls == 1, "%d calls", seen.calls);
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
    int before = -1;
    int len = -1;
    char text[MPI_MAX_ERROR_STRING];

    /* MPI 5.0, section 11.4.1: these may come before MPI_Init. */
    MPI_Add_error_class(&before);
    MPI_Add_error_string(before, "early");
    check_start(&argc, &argv);
    without_object(check_arg(argc, argv, 1, 0) != 0);
    CHECK(MPI_Error_string(before, text, &len) == MPI_SUCCESS && len == 5 &&
              strcmp(text, "early") == 0,
          "a class from before MPI_Init");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    strings_of_classes();
    own_codes();
    on_communicators();
    on_sessions();
    of_other_objects();
    replaced_in_use();
    return check_finish();
}
