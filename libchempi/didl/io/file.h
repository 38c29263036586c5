/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Files (MPI 5.0, chapter 14): the object behind MPI_File, its view and hints.
 * doc/files.md tells how the files of this room work together.
 *
 *   F1  comm is the file's own: a duplicate of the communicator of the open,
 *       on which nothing but operations on the file communicates
 *   -   view is never changed, only replaced; an operation under way holds
 *       the one it began with
 *   -   pointer, view and split are guarded by `lock`
 *   -   collective operations of a file run one after another, in the order of
 *       their calls, which is the same at all members
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_IO_FILE_H
#define CHEMPI_LIBCHEMPI_DIDL_IO_FILE_H

#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/containers/list.h"
#include "libchempi/didl/base/object.h"
#include "libchempi/didl/comm/comm.h"
#include "libchempi/didl/io/access/access.h"
#include "libchempi/didl/io/hints.h"
#include "libchempi/didl/io/view/view.h"

struct chempi_errhandler;
struct chempi_io_aggregators; /* aggregators.h: what is known about the others
                               */
struct chempi_request;

struct chempi_file {
    struct chempi_object obj;
    struct chempi_errhandler *errhandler; /* held; NULL: of MPI_FILE_NULL */
    struct chempi_comm *comm;             /* F1; NULL: MPI_FILE_NULL's */
    int amode;
    _Atomic bool is_atomic;   /* of accesses that begin from now on */
    bool is_closed;           /* kept for the error of its close only */
    _Atomic bool is_mappable; /* may be written through mappings */
    enum chempi_io_home home;
    bool can_rewrite;         /* may be read where it is written */
    _Atomic bool has_locks;   /* of byte ranges, at all members: as far as
                                 windows are written back, which need them */
    _Atomic bool was_written; /* by this process, since the last sync */
    bool owes_name;           /* member 0 may have made the file, and its folder
                                 was not synced since */
    int sync_error;           /* -errno of the first sync that failed; then no
                                 later one can promise anything */
    struct chempi_io_fd fd;
    char *path;
    char *whole_path; /* from the root on */
    uint64_t pointer; /* individual, etypes */
    pthread_mutex_t lock;
    pthread_mutex_t range_lock; /* threads of this process; see access.h */
    struct chempi_io_view *view;
    struct chempi_io_hints hints;
    struct chempi_list tasks; /* collective accesses that progress runs; under
                                 the lane lock */
    _Atomic int jobs;         /* independent accesses under way in workers */
    struct chempi_request *split; /* of a split collective; NULL: none */
    uint8_t split_place;          /* enum chempi_io_place */
    bool is_split_write;
    void *split_buf;
    struct chempi_io_view *plain; /* bytes from 0 on */
    int tags;            /* of messages on comm so far; alike at all members */
    uint64_t token;      /* names the file between its members */
    uint32_t views;      /* collective set_view calls so far */
    bool has_short_runs; /* at some member, so that an exchange may pay; alike
                            at all of them */
    struct chempi_io_aggregators *aggregators; /* what two-phase access knows;
                                    NULL: there is one member */
    struct chempi_list link; /* all open files of the process */
    uint64_t shared_at;      /* shared pointer, etypes; at member 0 only */
    uint32_t shared_views;   /* `views` when it was moved last */
};

static inline uint64_t chempi_io_least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Stands for MPI_FILE_NULL, whose handler hears of errors without a file. */
extern struct chempi_file chempi_file_null;

/* NULL when the handle names no open file. */
static inline struct chempi_file *chempi_file_lookup(MPI_File handle)
{
    struct chempi_file *file = (struct chempi_file *)(void *)handle;

    if (!chempi_handle_is_address(handle))
        return NULL;
    return file->obj.magic == CHEMPI_MAGIC_FILE && !file->is_closed ? file
                                                                    : NULL;
}

/* The same for calls that know MPI_FILE_NULL, too. */
static inline struct chempi_file *chempi_file_or_null(MPI_File handle)
{
    return handle == MPI_FILE_NULL ? &chempi_file_null
                                   : chempi_file_lookup(handle);
}

struct chempi_error_subject;

/* The library starts and ends; nothing is under way at the end. */
int chempi_io_init(void);
void chempi_io_fini(void);

/* For raising errors; chempi_error_subject_fn. */
void chempi_io_describe(struct chempi_object *object,
                        struct chempi_error_subject *out);

/* One that is not open, without communicator; NULL: no memory. */
struct chempi_file *chempi_file_make(const char *path, int amode);
/* Drop one reference; frees the memory at the last. */
void chempi_file_release(struct chempi_file *file);

/*
 * The words for -errno from the file system: what was done, path, offset (-1:
 * does not matter), errno. Returns the MPI error class.
 */
int chempi_io_fail(const struct chempi_file *file, int neg_errno,
                   const char *what, int64_t offset);
int chempi_io_fail_path(const char *path, int neg_errno, const char *what,
                        int64_t offset);

/* The words noted for the error class rc (0: none) are to name the file, too,
 * and the offset of an access, in elementary types (-1: none). Returns rc. */
int chempi_io_name_file(const struct chempi_file *file, int rc, int64_t offset);
int chempi_io_name_path(const char *path, int rc, int64_t offset);

#endif
