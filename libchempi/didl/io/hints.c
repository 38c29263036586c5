/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hints (MPI 5.0, section 14.2.8): the standard's and the well-known ones of
 * ROMIO that mean something here; others are ignored. MPI_File_get_info tells
 * what is used. A value that makes no sense is ignored, too, as hints are.
 */
#include "libchempi/didl/io/hints.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libchempi/api/api_impl.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/info/info.h"
#include "libchempi/didl/io/exchange/aggregators.h"

static const char *const choice_names[] = {
    [CHEMPI_IO_AUTO] = "automatic",
    [CHEMPI_IO_ENABLE] = "enable",
    [CHEMPI_IO_DISABLE] = "disable",
};

static const struct size_key {
    const char *name;
    size_t offset; /* of a uint64_t */
    uint64_t min;
    uint64_t max;
    uint64_t bits; /* that a value must have */
    int base;      /* how it is written */
} size_keys[] = {
    {"cb_buffer_size", offsetof(struct chempi_io_hints, cb_buffer), 4096,
     UINT64_C(1) << 40, 0, 10},
    {"cb_nodes", offsetof(struct chempi_io_hints, nodes), 1, UINT64_C(1) << 30,
     0, 10},
    /* Other members open for reading and writing what the first one makes. */
    {"file_perm", offsetof(struct chempi_io_hints, perm), 0600, 0777, 0600, 8},
    {"ind_rd_buffer_size", offsetof(struct chempi_io_hints, ind_read), 4096,
     UINT64_C(1) << 40, 0, 10},
    {"ind_wr_buffer_size", offsetof(struct chempi_io_hints, ind_write), 4096,
     UINT64_C(1) << 40, 0, 10},
    {"striping_unit", offsetof(struct chempi_io_hints, stripe), 4096,
     UINT64_C(1) << 40, 0, 10},
};

static const struct choice_key {
    const char *name;
    size_t offset; /* of a uint8_t */
} choice_keys[] = {
    {"romio_cb_read", offsetof(struct chempi_io_hints, cb_read)},
    {"romio_cb_write", offsetof(struct chempi_io_hints, cb_write)},
    {"romio_ds_read", offsetof(struct chempi_io_hints, ds_read)},
    {"romio_ds_write", offsetof(struct chempi_io_hints, ds_write)},
};

static uint64_t *size_at(struct chempi_io_hints *hints,
                         const struct size_key *key)
{
    return (uint64_t *)(void *)((char *)hints + key->offset);
}

static uint8_t *choice_at(struct chempi_io_hints *hints,
                          const struct choice_key *key)
{
    return (uint8_t *)hints + key->offset;
}

void chempi_io_hints_default(struct chempi_io_hints *hints)
{
    long page = sysconf(_SC_PAGESIZE);

    *hints = (struct chempi_io_hints){
        .cb_buffer = UINT64_C(4) << 20,
        .ind_read = UINT64_C(256) << 10, /* it stays in caches */
        .ind_write = UINT64_C(4) << 20,
        .perm = 0666,
        .stripe = page > 4096 ? (uint64_t)page : 4096,
    };
}

static bool is_sane(const struct size_key *key, uint64_t value)
{
    return value >= key->min && value <= key->max &&
           (value & key->bits) == key->bits;
}

static void take_size(struct chempi_io_hints *hints, const struct size_key *key,
                      const char *text)
{
    char *end;
    unsigned long long value;

    errno = 0;
    value = strtoull(text, &end, key->base);
    if (errno || end == text || *end || *text == '-' || !is_sane(key, value))
        return;
    *size_at(hints, key) = value;
}

static void take_choice(struct chempi_io_hints *hints,
                        const struct choice_key *key, const char *text)
{
    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(choice_names); i++)
        if (strcmp(text, choice_names[i]) == 0)
            *choice_at(hints, key) = (uint8_t)i;
}

int chempi_io_hints_take(struct chempi_io_hints *hints,
                         const struct chempi_info *info)
{
    const char *text =
        info ? chempi_info_find(info, "collective_buffering") : NULL;

    if (text && (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)) {
        hints->cb_read = text[0] == 't' ? CHEMPI_IO_ENABLE : CHEMPI_IO_DISABLE;
        hints->cb_write = hints->cb_read;
    }
    for (size_t i = 0; info && i < CHEMPI_ARRAY_LEN(size_keys); i++) {
        text = chempi_info_find(info, size_keys[i].name);
        if (text)
            take_size(hints, &size_keys[i], text);
    }
    for (size_t i = 0; info && i < CHEMPI_ARRAY_LEN(choice_keys); i++) {
        text = chempi_info_find(info, choice_keys[i].name);
        if (text)
            take_choice(hints, &choice_keys[i], text);
    }
    return MPI_SUCCESS;
}

bool chempi_io_hints_are_alike(const struct chempi_io_hints *a,
                               const struct chempi_io_hints *b)
{
    struct chempi_io_hints left = *a;
    struct chempi_io_hints right = *b;

    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(size_keys); i++)
        if (*size_at(&left, &size_keys[i]) != *size_at(&right, &size_keys[i]))
            return false;
    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(choice_keys); i++)
        if (*choice_at(&left, &choice_keys[i]) !=
            *choice_at(&right, &choice_keys[i]))
            return false;
    return true;
}

bool chempi_io_hints_are_sane(const struct chempi_io_hints *hints)
{
    struct chempi_io_hints copy = *hints;

    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(size_keys); i++) {
        uint64_t value = *size_at(&copy, &size_keys[i]);
        bool is_default = value == 0 && size_keys[i].min == 1;

        if (!is_default && !is_sane(&size_keys[i], value))
            return false;
    }
    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(choice_keys); i++)
        if (*choice_at(&copy, &choice_keys[i]) >=
            CHEMPI_ARRAY_LEN(choice_names))
            return false;
    return true;
}

static int put_all(struct chempi_info *info, struct chempi_io_hints *hints)
{
    char text[32];
    int rc = MPI_SUCCESS;

    for (size_t i = 0; !rc && i < CHEMPI_ARRAY_LEN(size_keys); i++) {
        (void)snprintf(text, sizeof(text),
                       size_keys[i].base == 8 ? "0%" PRIo64 : "%" PRIu64,
                       *size_at(hints, &size_keys[i]));
        rc = chempi_info_set(info, size_keys[i].name, text);
    }
    for (size_t i = 0; !rc && i < CHEMPI_ARRAY_LEN(choice_keys); i++)
        rc = chempi_info_set(info, choice_keys[i].name,
                             choice_names[*choice_at(hints, &choice_keys[i])]);
    if (!rc)
        rc = chempi_info_set(info, "collective_buffering",
                             hints->cb_read == CHEMPI_IO_DISABLE &&
                                     hints->cb_write == CHEMPI_IO_DISABLE
                                 ? "false"
                                 : "true");
    return rc;
}

/* What the file itself says. */
static int put_facts(struct chempi_info *info, struct chempi_file *file)
{
    int rc = MPI_SUCCESS;

    if (strlen(file->path) < MPI_MAX_INFO_VAL)
        rc = chempi_info_set(info, "filename", file->path);
    if (!rc && file->home != CHEMPI_IO_ELSEWHERE)
        rc = chempi_info_set(info, "striping_factor", "1");
    return rc;
}

int chempi_io_get_info(struct chempi_file *fh, MPI_Info *info_used)
{
    struct chempi_io_hints hints = fh->hints;
    struct chempi_io_stat st;
    MPI_Info made;
    int rc = chempi_info_create(&made);

    if (rc)
        return rc;
    hints.nodes = fh->aggregators ? (uint64_t)fh->aggregators->count : 1;
    if (fh->fd.ops->stat(&fh->fd, &st) == 0)
        hints.perm = st.mode & 0777;
    rc = put_all(chempi_info_lookup(made), &hints);
    if (!rc)
        rc = put_facts(chempi_info_lookup(made), fh);
    if (rc)
        chempi_info_release(chempi_info_lookup(made));
    else
        *info_used = made;
    return rc;
}
