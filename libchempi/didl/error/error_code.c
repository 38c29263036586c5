/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Error classes, codes and strings (MPI 5.0, sections 9.4 and 9.5). We return
 * classes as codes; what users add lies above MPI_ERR_LASTCODE.
 *
 *   E1  slot i of the table is code MPI_ERR_LASTCODE + 1 + i; a class is a
 *       code whose class is itself
 *   E2  a class with codes left is not removed; a slot that was removed is
 *       used again only by another code or class added later
 *   E3  count never shrinks, so MPI_LASTUSEDCODE never does
 *
 * The table is the process's: it is there before MPI_Init and outlives it.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/sys.h"
#include "common/containers/array.h"
#include "libchempi/api/api_impl.h"
#include "libchempi/didl/error/error.h"

#define FIRST_USER_CODE (MPI_ERR_LASTCODE + 1)
#define MAX_USER_CODES 1000000 /* a limit against runaway loops */

struct name {
    int code;
    const char *name;
    const char *text;
};

#define NAME(x, text)                                                          \
    {                                                                          \
        x, #x, text                                                            \
    }

static const struct name names[] = {
    NAME(MPI_SUCCESS, "no error"),
    NAME(MPI_ERR_BUFFER, "invalid buffer pointer"),
    NAME(MPI_ERR_COUNT, "invalid count"),
    NAME(MPI_ERR_TYPE, "invalid datatype"),
    NAME(MPI_ERR_TAG, "invalid tag"),
    NAME(MPI_ERR_COMM, "invalid communicator"),
    NAME(MPI_ERR_RANK, "invalid rank"),
    NAME(MPI_ERR_REQUEST, "invalid request"),
    NAME(MPI_ERR_ROOT, "invalid root"),
    NAME(MPI_ERR_GROUP, "invalid group"),
    NAME(MPI_ERR_OP, "invalid reduction operation"),
    NAME(MPI_ERR_TOPOLOGY, "invalid topology"),
    NAME(MPI_ERR_DIMS, "invalid dimension"),
    NAME(MPI_ERR_ARG, "invalid argument"),
    NAME(MPI_ERR_UNKNOWN, "unknown error"),
    NAME(MPI_ERR_TRUNCATE, "message longer than the receive buffer"),
    NAME(MPI_ERR_OTHER, "an error of no other class"),
    NAME(MPI_ERR_INTERN, "an error inside the MPI library"),
    NAME(MPI_ERR_PENDING, "operation neither failed nor finished"),
    NAME(MPI_ERR_IN_STATUS, "the error code is in the status"),
    NAME(MPI_ERR_ACCESS, "permission denied"),
    NAME(MPI_ERR_AMODE, "invalid file access mode"),
    NAME(MPI_ERR_ASSERT, "invalid assertion"),
    NAME(MPI_ERR_BAD_FILE, "invalid file name"),
    NAME(MPI_ERR_BASE, "invalid base address"),
    NAME(MPI_ERR_CONVERSION, "data conversion failed"),
    NAME(MPI_ERR_DISP, "invalid displacement"),
    NAME(MPI_ERR_DUP_DATAREP, "data representation already defined"),
    NAME(MPI_ERR_FILE_EXISTS, "file exists"),
    NAME(MPI_ERR_FILE_IN_USE, "file is in use"),
    NAME(MPI_ERR_FILE, "invalid file handle"),
    NAME(MPI_ERR_INFO_KEY, "invalid info key"),
    NAME(MPI_ERR_INFO_NOKEY, "info key is not set"),
    NAME(MPI_ERR_INFO_VALUE, "invalid info value"),
    NAME(MPI_ERR_INFO, "invalid info object"),
    NAME(MPI_ERR_IO, "input or output failed"),
    NAME(MPI_ERR_KEYVAL, "invalid attribute key"),
    NAME(MPI_ERR_LOCKTYPE, "invalid lock type"),
    NAME(MPI_ERR_NAME, "service name is not published"),
    NAME(MPI_ERR_NO_MEM, "out of memory"),
    NAME(MPI_ERR_NOT_SAME, "collective argument differs among processes"),
    NAME(MPI_ERR_NO_SPACE, "no space left"),
    NAME(MPI_ERR_NO_SUCH_FILE, "no such file"),
    NAME(MPI_ERR_PORT, "invalid port"),
    NAME(MPI_ERR_QUOTA, "quota exceeded"),
    NAME(MPI_ERR_READ_ONLY, "read-only file or file system"),
    NAME(MPI_ERR_RMA_ATTACH, "memory cannot be attached"),
    NAME(MPI_ERR_RMA_CONFLICT, "conflicting accesses to a window"),
    NAME(MPI_ERR_RMA_RANGE, "target memory is not part of the window"),
    NAME(MPI_ERR_RMA_SHARED, "memory cannot be shared"),
    NAME(MPI_ERR_RMA_SYNC, "wrong synchronization of a window"),
    NAME(MPI_ERR_SERVICE, "service name cannot be withdrawn"),
    NAME(MPI_ERR_SIZE, "invalid size"),
    NAME(MPI_ERR_SPAWN, "processes could not be started"),
    NAME(MPI_ERR_UNSUPPORTED_DATAREP, "unsupported data representation"),
    NAME(MPI_ERR_UNSUPPORTED_OPERATION, "unsupported operation"),
    NAME(MPI_ERR_WIN, "invalid window"),
    NAME(MPI_ERR_RMA_FLAVOR, "wrong flavor of window"),
    NAME(MPI_ERR_PROC_ABORTED, "a peer process has ended"),
    NAME(MPI_ERR_VALUE_TOO_LARGE, "value does not fit its variable"),
    NAME(MPI_ERR_SESSION, "invalid session"),
    NAME(MPI_ERR_ERRHANDLER, "invalid error handler"),
    NAME(MPI_ERR_ABI, "call does not fit the binary interface"),
    NAME(MPI_T_ERR_CANNOT_INIT, "tool interface cannot start now"),
    NAME(MPI_T_ERR_NOT_ACCESSIBLE, "tool information not accessible"),
    NAME(MPI_T_ERR_NOT_INITIALIZED, "tool interface not initialized"),
    NAME(MPI_T_ERR_NOT_SUPPORTED, "tool operation not supported"),
    NAME(MPI_T_ERR_MEMORY, "tool interface out of memory"),
    NAME(MPI_T_ERR_INVALID, "invalid use of the tool interface"),
    NAME(MPI_T_ERR_INVALID_INDEX, "invalid tool index"),
    NAME(MPI_T_ERR_INVALID_ITEM, "invalid tool item"),
    NAME(MPI_T_ERR_INVALID_SESSION, "invalid tool session"),
    NAME(MPI_T_ERR_INVALID_HANDLE, "invalid tool handle"),
    NAME(MPI_T_ERR_INVALID_NAME, "invalid tool name"),
    NAME(MPI_T_ERR_OUT_OF_HANDLES, "no more tool handles"),
    NAME(MPI_T_ERR_OUT_OF_SESSIONS, "no more tool sessions"),
    NAME(MPI_T_ERR_CVAR_SET_NOT_NOW, "variable cannot be set now"),
    NAME(MPI_T_ERR_CVAR_SET_NEVER, "variable can never be set"),
    NAME(MPI_T_ERR_PVAR_NO_WRITE, "variable cannot be written"),
    NAME(MPI_T_ERR_PVAR_NO_STARTSTOP, "variable cannot start or stop"),
    NAME(MPI_T_ERR_PVAR_NO_ATOMIC, "variable has no atomic read-and-reset"),
    NAME(MPI_ERR_LASTCODE, "the last predefined error code"),
};

struct user_code {
    bool is_used;
    int errclass; /* own code for a class */
    char *text;   /* NULL: none set */
};

static struct {
    pthread_mutex_t lock;
    struct user_code *codes;
    int count;
    int room;
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const struct name *find_name(int code)
{
    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(names); i++)
        if (names[i].code == code)
            return &names[i];
    return NULL;
}

const char *chempi_error_name(int code)
{
    const struct name *name = find_name(code);

    return name ? name->name : NULL;
}

int chempi_error_last_used(void)
{
    int last;

    (void)pthread_mutex_lock(&table.lock);
    last = MPI_ERR_LASTCODE + table.count;
    (void)pthread_mutex_unlock(&table.lock);
    return last;
}

/* The slot of a user code in use, or NULL. */
static struct user_code *find_user_locked(int code)
{
    if (code < FIRST_USER_CODE || code - FIRST_USER_CODE >= table.count)
        return NULL;
    if (!table.codes[code - FIRST_USER_CODE].is_used)
        return NULL;
    return &table.codes[code - FIRST_USER_CODE];
}

/* A free slot's index, or -1 when out of memory. */
static int take_slot_locked(void)
{
    for (int i = 0; i < table.count; i++)
        if (!table.codes[i].is_used)
            return i;
    if (table.count >= MAX_USER_CODES ||
        !CHEMPI_ARRAY_FIT(table.codes, table.room, table.count + 1))
        return -1;
    table.codes[table.count] = (struct user_code){.is_used = false};
    return table.count++;
}

static int unknown(int code)
{
    return chempi_error_set(MPI_ERR_ARG,
                            "%d is neither a predefined error code nor one "
                            "that was added",
                            code);
}

/* errclass 0: the new code is a class. */
static int add(int errclass, int *out)
{
    int slot = take_slot_locked();

    if (slot < 0)
        return chempi_error_set(MPI_ERR_NO_MEM, "no room for an error code");
    table.codes[slot] = (struct user_code){
        .is_used = true,
        .errclass = errclass != 0 ? errclass : FIRST_USER_CODE + slot};
    *out = FIRST_USER_CODE + slot;
    return MPI_SUCCESS;
}

int chempi_error_add_class(int *errorclass)
{
    int rc;

    (void)pthread_mutex_lock(&table.lock);
    rc = add(0, errorclass);
    (void)pthread_mutex_unlock(&table.lock);
    return rc;
}

int chempi_error_add_code(int errorclass, int *errorcode)
{
    struct user_code *user;
    int rc;

    (void)pthread_mutex_lock(&table.lock);
    user = find_user_locked(errorclass);
    if (user ? user->errclass == errorclass
             : errorclass != MPI_SUCCESS && find_name(errorclass) != NULL)
        rc = add(errorclass, errorcode);
    else
        rc = chempi_error_set(MPI_ERR_ARG, "%d is not an error class",
                              errorclass);
    (void)pthread_mutex_unlock(&table.lock);
    return rc;
}

static int set_text(struct user_code *user, const char *string)
{
    size_t len = strlen(string) + 1;
    char *copy = chempi_sys->malloc(len);

    if (!copy)
        return chempi_error_set(MPI_ERR_NO_MEM, "no room for an error string");
    memcpy(copy, string, len);
    free(user->text);
    user->text = copy;
    return MPI_SUCCESS;
}

int chempi_error_add_string(int errorcode, const char *string)
{
    struct user_code *user;
    int rc;

    if (!string || strlen(string) >= MPI_MAX_ERROR_STRING)
        return chempi_error_set(MPI_ERR_ARG,
                                "an error string has at most %d characters",
                                MPI_MAX_ERROR_STRING - 1);
    (void)pthread_mutex_lock(&table.lock);
    user = find_user_locked(errorcode);
    if (user)
        rc = set_text(user, string);
    else
        rc = chempi_error_set(MPI_ERR_ARG,
                              "%d is not an error code that was added, so its "
                              "string cannot be set",
                              errorcode);
    (void)pthread_mutex_unlock(&table.lock);
    return rc;
}

static bool has_codes_locked(int errclass)
{
    for (int i = 0; i < table.count; i++)
        if (table.codes[i].is_used && table.codes[i].errclass == errclass &&
            FIRST_USER_CODE + i != errclass)
            return true;
    return false;
}

/* Remove a class (is_class) or a code that is none. */
int chempi_error_remove(int code, bool is_class)
{
    struct user_code *user;
    int rc = MPI_SUCCESS;

    (void)pthread_mutex_lock(&table.lock);
    user = find_user_locked(code);
    if (!user || (user->errclass == code) != is_class)
        rc = chempi_error_set(MPI_ERR_ARG,
                              "%d is not an error %s that was "
                              "added",
                              code, is_class ? "class" : "code");
    else if (user->text)
        rc = chempi_error_set(MPI_ERR_OTHER,
                              "error %s %d still has a string: "
                              "call MPI_Remove_error_string first",
                              is_class ? "class" : "code", code);
    else if (is_class && has_codes_locked(code))
        rc = chempi_error_set(MPI_ERR_OTHER,
                              "error class %d still has codes: "
                              "call MPI_Remove_error_code first",
                              code);
    else
        user->is_used = false;
    (void)pthread_mutex_unlock(&table.lock);
    return rc;
}

int chempi_error_remove_string(int errorcode)
{
    struct user_code *user;
    int rc = MPI_SUCCESS;

    (void)pthread_mutex_lock(&table.lock);
    user = find_user_locked(errorcode);
    if (user && user->text) {
        free(user->text);
        user->text = NULL;
    } else {
        rc = chempi_error_set(MPI_ERR_ARG,
                              "error code %d has no string that "
                              "was added",
                              errorcode);
    }
    (void)pthread_mutex_unlock(&table.lock);
    return rc;
}

int chempi_error_class(int errorcode, int *errorclass)
{
    struct user_code *user;
    int rc = MPI_SUCCESS;

    if (find_name(errorcode)) {
        *errorclass = errorcode;
        return rc;
    }
    (void)pthread_mutex_lock(&table.lock);
    user = find_user_locked(errorcode);
    if (user)
        *errorclass = user->errclass;
    else
        rc = unknown(errorcode);
    (void)pthread_mutex_unlock(&table.lock);
    return rc;
}

/* "MPI_ERR_RANK: invalid rank: MPI_Send: argument dest is 7; ...": with the
 * detail if this is the error that the thread saw last. Returns the length. */
static int put_string(const struct name *name, char *string)
{
    const char *func = "";
    const char *words = chempi_error_detail(name->code, &func);
    int len;

    if (words && words[0] != '\0')
        len = snprintf(string, MPI_MAX_ERROR_STRING, "%s: %s: %s: %s",
                       name->name, name->text, func, words);
    else
        len = snprintf(string, MPI_MAX_ERROR_STRING, "%s: %s", name->name,
                       name->text);
    return len < MPI_MAX_ERROR_STRING ? len : MPI_MAX_ERROR_STRING - 1;
}

int chempi_error_string(int errorcode, char *string, int *resultlen)
{
    const struct name *name = find_name(errorcode);
    struct user_code *user;
    int rc = MPI_SUCCESS;

    if (name) {
        *resultlen = put_string(name, string);
        return rc;
    }
    (void)pthread_mutex_lock(&table.lock);
    user = find_user_locked(errorcode);
    if (user)
        *resultlen = snprintf(string, MPI_MAX_ERROR_STRING, "%s",
                              user->text ? user->text : "");
    else
        rc = unknown(errorcode);
    (void)pthread_mutex_unlock(&table.lock);
    return rc;
}
