/* SPDX-License-Identifier: BSD-3-Clause */
/* Data representations; see datarep.h. */
#include "libchempi/didl/io/view/datarep.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/sys.h"
#include "libchempi/api/api_impl.h"
#include "libchempi/didl/datatype/recipe.h"
#include "libchempi/didl/error/error.h"

struct chempi_io_datarep {
    struct chempi_io_datarep *next;
    bool is_wide; /* registered by the large-count form */
    MPI_Datarep_conversion_function *read;
    MPI_Datarep_conversion_function *write;
    MPI_Datarep_conversion_function_c *read_c;
    MPI_Datarep_conversion_function_c *write_c;
    MPI_Datarep_extent_function *extent;
    void *extra_state;
    char name[MPI_MAX_DATAREP_STRING + 1];
};

static struct chempi_io_datarep external32 = {.name = "external32"};
static struct chempi_io_datarep *registered = &external32;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool is_native(const char *name)
{
    return strcmp(name, "native") == 0 || strcmp(name, "internal") == 0;
}

/* Entries are never removed: found once, they can be used without the lock. */
static struct chempi_io_datarep *find(const char *name)
{
    struct chempi_io_datarep *rep;

    (void)pthread_mutex_lock(&lock);
    rep = registered;
    while (rep && strcmp(rep->name, name) != 0)
        rep = rep->next;
    (void)pthread_mutex_unlock(&lock);
    return rep;
}

int chempi_io_datarep_find(const char *name, struct chempi_io_datarep **out)
{
    *out = is_native(name) ? NULL : find(name);
    if (*out || is_native(name))
        return MPI_SUCCESS;
    return chempi_error_set(MPI_ERR_UNSUPPORTED_DATAREP,
                            "there is no data representation \"%.128s\"; "
                            "there are native, internal, external32, and "
                            "those of MPI_Register_datarep",
                            name);
}

bool chempi_io_datarep_is_users(const struct chempi_io_datarep *rep)
{
    return rep && rep != &external32;
}

static int add(const char *name, struct chempi_io_datarep *rep)
{
    size_t len = strlen(name);

    if (len == 0 || len >= MPI_MAX_DATAREP_STRING)
        return chempi_error_set(MPI_ERR_ARG,
                                "the name of a data representation has 1 to "
                                "%d bytes, not %zu",
                                MPI_MAX_DATAREP_STRING - 1, len);
    if (is_native(name) || find(name))
        return chempi_error_set(MPI_ERR_DUP_DATAREP,
                                "there is a data representation \"%s\" "
                                "already",
                                name);
    memcpy(rep->name, name, len + 1);
    (void)pthread_mutex_lock(&lock);
    rep->next = registered;
    registered = rep;
    (void)pthread_mutex_unlock(&lock);
    return MPI_SUCCESS;
}

static int register_copy(const char *name, const struct chempi_io_datarep *from)
{
    struct chempi_io_datarep *rep;
    int rc;

    if (!from->extent)
        return chempi_error_set(MPI_ERR_ARG, "argument dtype_file_extent_fn "
                                             "must not be NULL");
    rep = chempi_sys->malloc(sizeof(*rep));
    if (!rep)
        return chempi_error_set(MPI_ERR_NO_MEM,
                                "no room for a data representation");
    *rep = *from;
    rc = add(name, rep);
    if (rc)
        free(rep);
    return rc;
}

int chempi_io_register_datarep(const char *datarep,
                               MPI_Datarep_conversion_function *read_fn,
                               MPI_Datarep_conversion_function *write_fn,
                               MPI_Datarep_extent_function *extent_fn,
                               void *extra_state)
{
    struct chempi_io_datarep rep = {.read = read_fn,
                                    .write = write_fn,
                                    .extent = extent_fn,
                                    .extra_state = extra_state};

    return register_copy(datarep, &rep);
}

int chempi_io_register_datarep_c(const char *datarep,
                                 MPI_Datarep_conversion_function_c *read_fn,
                                 MPI_Datarep_conversion_function_c *write_fn,
                                 MPI_Datarep_extent_function *extent_fn,
                                 void *extra_state)
{
    struct chempi_io_datarep rep = {.is_wide = true,
                                    .read_c = read_fn,
                                    .write_c = write_fn,
                                    .extent = extent_fn,
                                    .extra_state = extra_state};

    return register_copy(datarep, &rep);
}

/* ---- sizes ---- */

static int too_large(void)
{
    return chempi_error_set(MPI_ERR_COUNT, "the size in the file exceeds 2^63 "
                                           "bytes");
}

/* The user's function knows basic types; sums over one element of a type. */
struct sum {
    struct chempi_io_datarep *rep;
    MPI_Count size;
    int rc;
};

static int ask_extent(struct chempi_io_datarep *rep, MPI_Datatype handle,
                      MPI_Count *extent)
{
    MPI_Aint value = 0;
    int rc = rep->extent(handle, &value, rep->extra_state);

    if (rc)
        return chempi_error_set(MPI_ERR_CONVERSION,
                                "the extent function of the data "
                                "representation \"%s\" has returned %d",
                                rep->name, rc);
    if (value < 0)
        return too_large();
    *extent = value;
    return MPI_SUCCESS;
}

static bool add_leaf(void *arg, struct chempi_datatype *leaf, MPI_Count disp,
                     MPI_Count n)
{
    struct sum *s = arg;
    MPI_Count one = 0;
    bool is_overflown = false;

    (void)disp;
    s->rc = ask_extent(s->rep, leaf->handle, &one);
    s->size = chempi_datatype_muladd(n, one, s->size, &is_overflown);
    if (!s->rc && is_overflown)
        s->rc = too_large();
    return s->rc == MPI_SUCCESS;
}

static int registered_size(struct chempi_io_datarep *rep,
                           struct chempi_datatype *type, MPI_Count *size)
{
    struct sum s = {.rep = rep};

    if (!type->is_predefined &&
        type->recipe->depth > CHEMPI_DATATYPE_WALK_DEPTH_MAX)
        return chempi_error_set(MPI_ERR_TYPE,
                                "the datatype is made of datatypes on more "
                                "than %d levels",
                                CHEMPI_DATATYPE_WALK_DEPTH_MAX);
    (void)chempi_datatype_for_leaves(type, 1, add_leaf, &s);
    *size = s.size;
    return s.rc;
}

int chempi_io_datarep_size(struct chempi_io_datarep *rep,
                           struct chempi_datatype *type, MPI_Count *size)
{
    *size = type->size;
    if (!rep)
        return MPI_SUCCESS;
    if (rep != &external32)
        return registered_size(rep, type, size);
    *size = chempi_datatype_external_size(type, 1, 0);
    return *size < 0 ? too_large() : MPI_SUCCESS;
}

int chempi_io_datarep_extent(struct chempi_io_datarep *rep,
                             struct chempi_datatype *type, MPI_Count *extent)
{
    MPI_Count size;
    int rc = chempi_io_datarep_size(rep, type, &size);

    if (rc)
        return rc;
    /* Distances grow as data does; see scale_tile() in view.c. */
    *extent = type->size == size || type->size == 0
                  ? type->extent
                  : (MPI_Count)((chempi_i128)type->extent * size / type->size);
    return MPI_SUCCESS;
}

/* ---- conversion ---- */

static int user_failed(const struct chempi_io_datarep *rep, const char *way,
                       int rc)
{
    return rc == MPI_SUCCESS
               ? rc
               : chempi_error_set(MPI_ERR_CONVERSION,
                                  "the %s conversion function of the data "
                                  "representation \"%s\" has returned %d",
                                  way, rep->name, rc);
}

/* The int form in pieces that fit an int. */
static int convert(struct chempi_io_datarep *rep,
                   MPI_Datarep_conversion_function *fn, void *buf,
                   MPI_Count count, struct chempi_datatype *type, void *data)
{
    MPI_Count done = 0;
    MPI_Count size;
    int rc = chempi_io_datarep_size(rep, type, &size);

    while (!rc && done < count) {
        int n = count - done > 1 << 30 ? 1 << 30 : (int)(count - done);

        rc = fn(buf, type->handle, n, (char *)data + done * size, done,
                rep->extra_state);
        done += n;
    }
    return rc;
}

/* What no function converts is the same in memory and in the file, whatever
 * size the user's extent function says. */
static int check_same_size(struct chempi_io_datarep *rep,
                           struct chempi_datatype *type)
{
    MPI_Count size;
    int rc = chempi_io_datarep_size(rep, type, &size);

    if (rc || size == type->size)
        return rc;
    return chempi_error_set(MPI_ERR_CONVERSION,
                            "the data representation \"%s\" has no function "
                            "that converts between the %lld bytes in memory "
                            "and the %lld in the file of a datatype",
                            rep->name, (long long)type->size, (long long)size);
}

static int copy_out(struct chempi_io_datarep *rep, const void *buf,
                    MPI_Count count, struct chempi_datatype *type, void *data)
{
    int rc = check_same_size(rep, type);

    return rc ? rc
              : chempi_datatype_copy(buf, count, type, data, count * type->size,
                                     chempi_datatype_lookup(MPI_BYTE));
}

static int copy_in(struct chempi_io_datarep *rep, void *buf, MPI_Count count,
                   struct chempi_datatype *type, const void *data)
{
    int rc = check_same_size(rep, type);

    return rc ? rc
              : chempi_datatype_copy(data, count * type->size,
                                     chempi_datatype_lookup(MPI_BYTE), buf,
                                     count, type);
}

int chempi_io_datarep_to_file(struct chempi_io_datarep *rep, const void *buf,
                              MPI_Count count, struct chempi_datatype *type,
                              void *data)
{
    void *from = (void *)(uintptr_t)buf;
    MPI_Count position = 0;
    MPI_Count size;

    if (rep == &external32) {
        size = chempi_datatype_external_size(type, count, 0);
        return chempi_datatype_pack_external("external32", buf, count, type,
                                             data, size, &position);
    }
    if (rep->is_wide ? !rep->write_c : !rep->write)
        return copy_out(rep, buf, count, type, data);
    return user_failed(
        rep, "write",
        rep->is_wide
            ? rep->write_c(from, type->handle, count, data, 0, rep->extra_state)
            : convert(rep, rep->write, from, count, type, data));
}

int chempi_io_datarep_from_file(struct chempi_io_datarep *rep, void *buf,
                                MPI_Count count, struct chempi_datatype *type,
                                void *data)
{
    MPI_Count position = 0;
    MPI_Count size;

    if (rep == &external32) {
        size = chempi_datatype_external_size(type, count, 0);
        return chempi_datatype_unpack_external("external32", data, size,
                                               &position, buf, count, type);
    }
    if (rep->is_wide ? !rep->read_c : !rep->read)
        return copy_in(rep, buf, count, type, data);
    return user_failed(
        rep, "read",
        rep->is_wide
            ? rep->read_c(buf, type->handle, count, data, 0, rep->extra_state)
            : convert(rep, rep->read, buf, count, type, data));
}
