/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a program and the library must know of each other's types (MPI 5.0,
 * chapter 20). Sizes of C types are the ABI's. Fortran is not part of this
 * library: whoever binds it says once how its compiler was set up, and is
 * heard if our predefined types fit.
 *
 *   A1  what was set stays set, for the life of the process
 *   A2  `lock` guards it: these calls work at any time, from any thread
 */
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "common/base/number.h"
#include "libchempi/api/api_impl.h"
#include "libchempi/didl/datatype/datatype.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/info/info.h"
#include "libchempi/didl/op/op_loops.h"

static struct {
    pthread_mutex_t lock;
    struct chempi_info *fortran; /* NULL: not set */
} abi = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int no_memory(void)
{
    return chempi_error_set(MPI_ERR_NO_MEM, "no room for an info object");
}

static int put_size(struct chempi_info *info, const char *key, size_t size)
{
    char text[16];

    (void)snprintf(text, sizeof(text), "%zu", size);
    return chempi_info_set(info, key, text);
}

int chempi_env_abi_get_info(MPI_Info *info)
{
    struct chempi_info *made = chempi_info_copy(NULL);
    int rc;

    if (!made)
        return no_memory();
    rc = put_size(made, "mpi_aint_size", sizeof(MPI_Aint));
    if (!rc)
        rc = put_size(made, "mpi_count_size", sizeof(MPI_Count));
    if (!rc)
        rc = put_size(made, "mpi_offset_size", sizeof(MPI_Offset));
    if (rc)
        chempi_info_release(made);
    else
        *info = (MPI_Info)(void *)made;
    return rc;
}

/* ---- Fortran's types ---- */

/* Types whose size the compiler chooses, and ours of the same name. */
static const struct {
    const char *key;
    MPI_Datatype type;
} sizes[] = {
    {"mpi_logical_size", MPI_LOGICAL},
    {"mpi_integer_size", MPI_INTEGER},
    {"mpi_real_size", MPI_REAL},
    {"mpi_double_precision_size", MPI_DOUBLE_PRECISION},
};

/* Types that a compiler may lack. */
static const char *const optional[] = {
    "mpi_logical1_supported",      "mpi_logical2_supported",
    "mpi_logical4_supported",      "mpi_logical8_supported",
    "mpi_logical16_supported",     "mpi_integer1_supported",
    "mpi_integer2_supported",      "mpi_integer4_supported",
    "mpi_integer8_supported",      "mpi_integer16_supported",
    "mpi_real2_supported",         "mpi_real4_supported",
    "mpi_real8_supported",         "mpi_real16_supported",
    "mpi_complex4_supported",      "mpi_complex8_supported",
    "mpi_complex16_supported",     "mpi_complex32_supported",
    "mpi_double_complex_supported"};

/* A size that is not given, or is that of our type. */
static int check_size(const struct chempi_info *info, const char *key,
                      MPI_Count size)
{
    const char *text = chempi_info_find(info, key);
    uint32_t value;

    if (!text)
        return MPI_SUCCESS;
    if (!chempi_number_parse32(text, 1, INT32_MAX, &value))
        return chempi_error_set(MPI_ERR_INFO_VALUE,
                                "%s is \"%s\", not a size in bytes", key, text);
    if (value != size)
        return chempi_error_set(MPI_ERR_ABI,
                                "%s is %u, but the type has %lld bytes here: "
                                "compile the Fortran program without options "
                                "that change default sizes",
                                key, value, (long long)size);
    return MPI_SUCCESS;
}

static int check_flag(const struct chempi_info *info, const char *key)
{
    const char *text = chempi_info_find(info, key);

    if (!text || strcmp(text, "true") == 0 || strcmp(text, "false") == 0)
        return MPI_SUCCESS;
    return chempi_error_set(MPI_ERR_INFO_VALUE,
                            "%s is \"%s\", neither \"true\" nor \"false\"", key,
                            text);
}

static int check_fortran(const struct chempi_info *info)
{
    int rc = MPI_SUCCESS;

    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(sizes) && !rc; i++)
        rc = check_size(info, sizes[i].key,
                        chempi_datatype_lookup(sizes[i].type)->size);
    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(optional) && !rc; i++)
        rc = check_flag(info, optional[i]);
    return rc;
}

static int set_already(const char *what)
{
    return chempi_error_set(MPI_ERR_ABI, "%s have been set before", what);
}

int chempi_env_abi_set_fortran_info(struct chempi_info *info)
{
    struct chempi_info *copy;
    int rc;

    if (!info)
        return chempi_error_set(MPI_ERR_INFO,
                                "the info object is MPI_INFO_NULL");
    rc = check_fortran(info);
    if (rc)
        return rc;
    copy = chempi_info_copy(info);
    if (!copy)
        return no_memory();
    (void)pthread_mutex_lock(&abi.lock);
    if (abi.fortran)
        rc = set_already("the properties of Fortran's types");
    else
        abi.fortran = copy;
    (void)pthread_mutex_unlock(&abi.lock);
    if (rc)
        chempi_info_release(copy);
    return rc;
}

int chempi_env_abi_get_fortran_info(MPI_Info *info)
{
    struct chempi_info *known;
    struct chempi_info *copy;

    (void)pthread_mutex_lock(&abi.lock);
    known = abi.fortran; /* never changes again (A1) */
    (void)pthread_mutex_unlock(&abi.lock);
    *info = MPI_INFO_NULL;
    if (!known)
        return MPI_SUCCESS;
    copy = chempi_info_copy(known);
    if (!copy)
        return no_memory();
    *info = (MPI_Info)(void *)copy;
    return MPI_SUCCESS;
}

/* ---- Fortran's booleans ---- */

static int find_booleans(int logical_size, struct chempi_op_booleans **out)
{
    for (int i = 0; i < CHEMPI_OP_LOGICAL_SIZES; i++)
        if (logical_size == 1 << i) {
            *out = &chempi_op_booleans[i];
            return MPI_SUCCESS;
        }
    return chempi_error_set(MPI_ERR_ARG,
                            "a Fortran LOGICAL has 1, 2, 4, 8 or 16 bytes, "
                            "not %d",
                            logical_size);
}

int chempi_env_abi_set_fortran_booleans(int logical_size, void *logical_true,
                                        void *logical_false)
{
    struct chempi_op_booleans *b = NULL;
    int rc = find_booleans(logical_size, &b);

    if (rc)
        return rc;
    (void)pthread_mutex_lock(&abi.lock);
    if (b->is_set) {
        rc = set_already("the values of .TRUE. and .FALSE. of this size");
    } else {
        memcpy(b->yes, logical_true, (size_t)logical_size);
        memcpy(b->no, logical_false, (size_t)logical_size);
        atomic_store_explicit(&b->is_set, true, memory_order_release);
    }
    (void)pthread_mutex_unlock(&abi.lock);
    return rc;
}

int chempi_env_abi_get_fortran_booleans(int logical_size, void *logical_true,
                                        void *logical_false, int *is_set)
{
    struct chempi_op_booleans *b = NULL;
    int rc = find_booleans(logical_size, &b);

    if (rc)
        return rc;
    (void)pthread_mutex_lock(&abi.lock);
    if (b->is_set) {
        memcpy(logical_true, b->yes, (size_t)logical_size);
        memcpy(logical_false, b->no, (size_t)logical_size);
    }
    *is_set = b->is_set;
    (void)pthread_mutex_unlock(&abi.lock);
    return rc;
}
