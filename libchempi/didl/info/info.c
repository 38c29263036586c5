/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Info objects (MPI 5.0, chapter 10): a list of pairs in the order of their
 * keys' first insertion. Keys are few, so a search is linear.
 *
 * A mutex guards each pair list against concurrent calls on the same object
 * (section 10: calls on one info object are the user's to order, yet a reader
 * beside a reader must be safe); it is one for all objects.
 */
#define _GNU_SOURCE /* ssize_t */
#include "libchempi/didl/info/info.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "common/base/sys.h"
#include "common/containers/array.h"
#include "common/control/client.h"
#include "common/fd/file.h"
#include "libchempi/api/api_impl.h"
#include "libchempi/didl/error/error.h"

/* Empty until somebody asks for the first time. */
static struct chempi_info env = {
    .obj = {.magic = CHEMPI_MAGIC_INFO, .refs = 1}};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int no_memory(void)
{
    return chempi_error_set(MPI_ERR_NO_MEM, "no room for an info object");
}

static struct chempi_info *make(void)
{
    struct chempi_info *info = chempi_sys->calloc(1, sizeof(*info));

    if (info)
        chempi_object_init(&info->obj, CHEMPI_MAGIC_INFO);
    else
        (void)no_memory();
    return info;
}

static void clear(struct chempi_info *info)
{
    for (uint32_t i = 0; i < info->count; i++) {
        free(info->pairs[i].key);
        free(info->pairs[i].value);
    }
    free(info->pairs);
    info->pairs = NULL;
    info->count = 0;
    info->room = 0;
}

void chempi_info_release(struct chempi_info *info)
{
    if (!info || info == &env || !chempi_object_drop(&info->obj))
        return;
    clear(info);
    info->obj.magic = 0;
    free(info);
}

static struct chempi_info_pair *find(const struct chempi_info *info,
                                     const char *key)
{
    for (uint32_t i = 0; i < info->count; i++)
        if (strcmp(info->pairs[i].key, key) == 0)
            return &info->pairs[i];
    return NULL;
}

static char *copy_text(const char *text)
{
    size_t len = strlen(text) + 1;
    char *copy = chempi_sys->malloc(len);

    if (copy)
        memcpy(copy, text, len);
    return copy;
}

/* A new pair of copies at the end. */
static bool append(struct chempi_info *info, const char *key, const char *value)
{
    struct chempi_info_pair pair;

    if (!CHEMPI_ARRAY_FIT(info->pairs, info->room, info->count + 1))
        return false;
    pair.key = copy_text(key);
    pair.value = copy_text(value);
    if (!pair.key || !pair.value) {
        free(pair.key);
        free(pair.value);
        return false;
    }
    info->pairs[info->count++] = pair;
    return true;
}

static bool put(struct chempi_info *info, const char *key, const char *value)
{
    struct chempi_info_pair *pair = find(info, key);
    char *copy;

    if (!pair)
        return append(info, key, value);
    copy = copy_text(value);
    if (!copy)
        return false;
    free(pair->value);
    pair->value = copy;
    return true;
}

struct chempi_info *chempi_info_copy(const struct chempi_info *info)
{
    struct chempi_info *copy = make();

    if (!copy || !info)
        return copy;
    (void)pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < info->count; i++)
        if (!append(copy, info->pairs[i].key, info->pairs[i].value)) {
            chempi_info_release(copy);
            copy = NULL;
            (void)no_memory();
            break;
        }
    (void)pthread_mutex_unlock(&lock);
    return copy;
}

const char *chempi_info_find(const struct chempi_info *info, const char *key)
{
    struct chempi_info_pair *pair = info ? find(info, key) : NULL;

    return pair ? pair->value : NULL;
}

/* ---- the environment: MPI_INFO_ENV and MPI_Info_create_env ---- */

/* One value of the environment, if it is set and fits. */
static bool put_env(struct chempi_info *info, const char *key,
                    const char *variable)
{
    const char *value = getenv(variable);

    if (!value || strlen(value) >= MPI_MAX_INFO_VAL)
        return true;
    return put(info, key, value);
}

/* The words of the command line from `text` on, which ends at `end`, with
 * blanks between them; false when they do not fit. */
static bool join(const char *text, const char *end, char *out, size_t room)
{
    size_t used = 0;

    for (; text < end; text += strlen(text) + 1) {
        int len = snprintf(out + used, room - used, used ? " %s" : "%s", text);

        if (len < 0 || (size_t)len >= room - used)
            return false;
        used += (size_t)len;
    }
    return used > 0;
}

/* How this process was started, if the caller did not say. What the program
 * does to its own arguments does not matter. */
static bool put_command_line(struct chempi_info *info)
{
    char line[4 * MPI_MAX_INFO_VAL];
    char args[MPI_MAX_INFO_VAL];
    const ssize_t len =
        chempi_file_read("/proc/self/cmdline", line, sizeof(line));
    const char *rest = line + strlen(line) + 1;

    if (len <= 0)
        return true;
    if (strlen(line) < MPI_MAX_INFO_VAL && !put(info, "command", line))
        return false;
    return (size_t)len == sizeof(line) - 1 ||
           !join(rest, line + len, args, sizeof(args)) ||
           put(info, "argv", args);
}

/* The same from the arguments of MPI_Info_create_env. */
static bool put_arguments(struct chempi_info *info, int argc, char **argv)
{
    char args[MPI_MAX_INFO_VAL] = "";
    size_t used = 0;

    if (strlen(argv[0]) < MPI_MAX_INFO_VAL && !put(info, "command", argv[0]))
        return false;
    for (int i = 1; i < argc && argv[i]; i++) {
        size_t room = sizeof(args) - used;
        int len = snprintf(args + used, room, i > 1 ? " %s" : "%s", argv[i]);

        if (len < 0 || (size_t)len >= room)
            return true; /* too long for a value */
        used += (size_t)len;
    }
    return used == 0 || put(info, "argv", args);
}

static bool put_place(struct chempi_info *info)
{
    struct utsname system;

    if (uname(&system) != 0)
        return true;
    return put(info, "arch", system.machine) &&
           (getenv("CHEMPI_NODE") ? put_env(info, "host", "CHEMPI_NODE")
                                  : put(info, "host", system.nodename));
}

/* The one of now: nobody has noted that of the start. */
static bool put_directory(struct chempi_info *info)
{
    char path[MPI_MAX_INFO_VAL];

    return !getcwd(path, sizeof(path)) || put(info, "wdir", path);
}

/* What the launcher was asked for beyond a number, as it was written. */
static bool put_wishes(struct chempi_info *info)
{
    return put_env(info, "soft", CHEMPI_COUNT_RANGE_ENV) &&
           put_env(info, CHEMPI_ERRHANDLER_INITIAL_KEY,
                   CHEMPI_ERRHANDLER_ENV) &&
           put_env(info, CHEMPI_SESSION_KINDS_KEY, CHEMPI_KINDS_ENV);
}

/* What the launcher and the system know of this start; the same before
 * MPI_Init and after MPI_Finalize. "file" cannot be given. */
static bool fill_env(struct chempi_info *info, int argc, char **argv)
{
    bool is_good = argc > 0 && argv && argv[0] ? put_arguments(info, argc, argv)
                                               : put_command_line(info);

    if (!is_good || !put_place(info) || !put_wishes(info))
        return false;
    if (!getenv(CHEMPI_MAXPROCS_ENV))
        return put(info, "maxprocs", "1") && put_directory(info);
    return put_env(info, "maxprocs", CHEMPI_MAXPROCS_ENV) &&
           put_env(info, "wdir", "CHEMPI_WDIR");
}

int chempi_info_create_env(int argc, char *argv[], MPI_Info *info)
{
    struct chempi_info *made = make();

    if (!made)
        return MPI_ERR_NO_MEM;
    if (!fill_env(made, argc, argv)) {
        chempi_info_release(made);
        return no_memory();
    }
    *info = (MPI_Info)(void *)made;
    return MPI_SUCCESS;
}

struct chempi_info *chempi_info_of_env(void)
{
    (void)pthread_mutex_lock(&lock);
    if (env.count == 0)
        (void)fill_env(&env, 0, NULL); /* short of memory: fewer pairs */
    (void)pthread_mutex_unlock(&lock);
    return &env;
}

/* ---- the calls ---- */

int chempi_info_create(MPI_Info *info)
{
    struct chempi_info *made = make();

    if (!made)
        return MPI_ERR_NO_MEM;
    *info = (MPI_Info)(void *)made;
    return MPI_SUCCESS;
}

static int null_info(void)
{
    return chempi_error_set(MPI_ERR_INFO, "the info object is MPI_INFO_NULL");
}

static int check_changeable(const struct chempi_info *info)
{
    if (info == &env)
        return chempi_error_set(MPI_ERR_INFO, "MPI_INFO_ENV cannot be changed");
    return info ? MPI_SUCCESS : null_info();
}

static int check_key(const char *key)
{
    if (!key || key[0] == '\0' || strlen(key) >= MPI_MAX_INFO_KEY)
        return chempi_error_set(MPI_ERR_INFO_KEY,
                                "an info key has 1 to %d "
                                "characters",
                                MPI_MAX_INFO_KEY - 1);
    return MPI_SUCCESS;
}

int chempi_info_set(struct chempi_info *info, const char *key,
                    const char *value)
{
    int rc = check_changeable(info);

    if (rc == MPI_SUCCESS)
        rc = check_key(key);
    if (rc != MPI_SUCCESS)
        return rc;
    if (!value || strlen(value) >= MPI_MAX_INFO_VAL)
        return chempi_error_set(MPI_ERR_INFO_VALUE,
                                "an info value has at "
                                "most %d characters",
                                MPI_MAX_INFO_VAL - 1);
    (void)pthread_mutex_lock(&lock);
    rc = put(info, key, value) ? MPI_SUCCESS : no_memory();
    (void)pthread_mutex_unlock(&lock);
    return rc;
}

int chempi_info_delete(struct chempi_info *info, const char *key)
{
    struct chempi_info_pair *pair;
    int rc = check_changeable(info);

    if (rc == MPI_SUCCESS)
        rc = check_key(key);
    if (rc != MPI_SUCCESS)
        return rc;
    (void)pthread_mutex_lock(&lock);
    pair = find(info, key);
    if (pair) {
        size_t at = (size_t)(pair - info->pairs);

        free(pair->key);
        free(pair->value);
        info->count--;
        memmove(pair, pair + 1, (info->count - at) * sizeof(*pair));
    } else {
        rc = chempi_error_set(MPI_ERR_INFO_NOKEY, "key \"%s\" is not set", key);
    }
    (void)pthread_mutex_unlock(&lock);
    return rc;
}

/* Copy at most room bytes of text, always with a terminating zero. */
static void cut_copy(char *out, size_t room, const char *text)
{
    size_t len = strlen(text);

    if (room == 0)
        return;
    if (len >= room)
        len = room - 1;
    memcpy(out, text, len);
    out[len] = '\0';
}

/* The value of key under the lock, with its length; false when not set. */
static bool read_value(struct chempi_info *info, const char *key, char *out,
                       size_t room, size_t *len)
{
    struct chempi_info_pair *pair;

    (void)pthread_mutex_lock(&lock);
    pair = find(info, key);
    if (pair) {
        *len = strlen(pair->value);
        cut_copy(out, room, pair->value);
    }
    (void)pthread_mutex_unlock(&lock);
    return pair != NULL;
}

int chempi_info_get(struct chempi_info *info, const char *key, int valuelen,
                    char *value, int *flag)
{
    size_t len;
    int rc = info ? check_key(key) : null_info();

    if (rc != MPI_SUCCESS)
        return rc;
    if (valuelen < 0)
        return chempi_error_set(MPI_ERR_ARG, "valuelen is %d", valuelen);
    /* valuelen does not count the terminating zero. */
    *flag = read_value(info, key, value, (size_t)valuelen + 1, &len);
    return MPI_SUCCESS;
}

int chempi_info_get_string(struct chempi_info *info, const char *key,
                           int *buflen, char *value, int *flag)
{
    size_t len = 0;
    int rc = info ? check_key(key) : null_info();

    if (rc != MPI_SUCCESS)
        return rc;
    if (*buflen < 0)
        return chempi_error_set(MPI_ERR_ARG, "*buflen is %d", *buflen);
    *flag = read_value(info, key, value, (size_t)*buflen, &len);
    if (*flag)
        *buflen = (int)len + 1;
    return MPI_SUCCESS;
}

int chempi_info_get_valuelen(struct chempi_info *info, const char *key,
                             int *valuelen, int *flag)
{
    size_t len = 0;
    int rc = info ? check_key(key) : null_info();

    if (rc != MPI_SUCCESS)
        return rc;
    *flag = read_value(info, key, NULL, 0, &len);
    if (*flag)
        *valuelen = (int)len;
    return MPI_SUCCESS;
}

int chempi_info_get_nkeys(struct chempi_info *info, int *nkeys)
{
    if (!info)
        return null_info();
    (void)pthread_mutex_lock(&lock);
    *nkeys = (int)info->count;
    (void)pthread_mutex_unlock(&lock);
    return MPI_SUCCESS;
}

int chempi_info_get_nthkey(struct chempi_info *info, int n, char *key)
{
    int rc = MPI_SUCCESS;

    if (!info)
        return null_info();
    (void)pthread_mutex_lock(&lock);
    if (n >= 0 && (uint32_t)n < info->count)
        cut_copy(key, MPI_MAX_INFO_KEY, info->pairs[n].key);
    else
        rc = chempi_error_set(MPI_ERR_ARG,
                              "there is no key number %d: the "
                              "info object has %u",
                              n, info->count);
    (void)pthread_mutex_unlock(&lock);
    return rc;
}

int chempi_info_dup(struct chempi_info *info, MPI_Info *newinfo)
{
    struct chempi_info *copy;

    if (!info)
        return null_info();
    copy = chempi_info_copy(info);
    if (!copy)
        return MPI_ERR_NO_MEM;
    *newinfo = (MPI_Info)(void *)copy;
    return MPI_SUCCESS;
}

int chempi_info_free(MPI_Info *info)
{
    struct chempi_info *old = chempi_info_lookup(*info);

    if (!old || old == &env)
        return chempi_error_set(MPI_ERR_INFO, "the handle names no info "
                                              "object that could be freed");
    chempi_info_release(old);
    *info = MPI_INFO_NULL;
    return MPI_SUCCESS;
}
