/* SPDX-License-Identifier: BSD-3-Clause */
/* The object behind MPI_File; see file.h. */
#define _POSIX_C_SOURCE 200809L /* PATH_MAX */
#include "libchempi/didl/io/file.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/sys.h"
#include "libchempi/didl/comm/make/comm_make.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/io/exchange/aggregators.h"

struct chempi_file chempi_file_null = {
    .obj = {.magic = CHEMPI_MAGIC_FILE, .refs = 1},
    .errhandler = &chempi_errhandler_return,
};

void chempi_io_describe(struct chempi_object *object,
                        struct chempi_error_subject *out)
{
    struct chempi_file *file =
        CHEMPI_CONTAINER_OF(object, struct chempi_file, obj);

    out->errhandler = &file->errhandler;
    out->handle = file == &chempi_file_null || file->is_closed
                      ? (void *)MPI_FILE_NULL
                      : (void *)file;
    out->name = "a file";
}

void chempi_file_release(struct chempi_file *file)
{
    if (file == &chempi_file_null || !chempi_object_drop(&file->obj))
        return;
    file->obj.magic = 0;
    chempi_io_view_release(file->view);
    chempi_io_view_release(file->plain);
    chempi_io_aggregators_drop(file);
    if (file->errhandler)
        chempi_errhandler_release(file->errhandler);
    if (file->comm)
        chempi_comm_release(file->comm);
    (void)pthread_mutex_destroy(&file->lock);
    (void)pthread_mutex_destroy(&file->range_lock);
    free(file->whole_path);
    free(file->path);
    free(file);
}

/* The working directory may be another one when the file is to be deleted.
 * NULL: no memory. */
static char *find_whole_path(const char *path)
{
    char folder[PATH_MAX];
    bool is_whole = path[0] == '/' || !getcwd(folder, sizeof(folder));
    size_t room = strlen(path) + 2 + (is_whole ? 0 : strlen(folder));
    char *whole = chempi_sys->malloc(room);

    if (whole)
        (void)snprintf(whole, room, "%s%s%s", is_whole ? "" : folder,
                       is_whole ? "" : "/", path);
    return whole;
}

struct chempi_file *chempi_file_make(const char *path, int amode)
{
    struct chempi_file *file = chempi_sys->calloc(1, sizeof(*file));
    size_t len = strlen(path) + 1;

    if (!file)
        return NULL;
    chempi_object_init(&file->obj, CHEMPI_MAGIC_FILE);
    (void)pthread_mutex_init(&file->lock, NULL);
    (void)pthread_mutex_init(&file->range_lock, NULL);
    chempi_list_init(&file->link);
    chempi_list_init(&file->tasks);
    file->errhandler = chempi_errhandler_get(&chempi_file_null.errhandler);
    file->amode = amode;
    file->can_rewrite = (amode & MPI_MODE_RDONLY) == 0;
    file->fd.ops = chempi_io_access_choose();
    file->fd.number = -1;
    chempi_io_hints_default(&file->hints);
    file->path = chempi_sys->malloc(len);
    file->whole_path = find_whole_path(path);
    file->view = chempi_io_view_default();
    if (file->path && file->whole_path && file->view) {
        file->plain = chempi_io_view_hold(file->view);
        memcpy(file->path, path, len);
        return file;
    }
    chempi_file_release(file);
    return NULL;
}
