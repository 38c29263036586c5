/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One read or write of a process, whatever call it belongs to: bytes of the
 * view from a position on, and the memory they come from or go to.
 *
 *   -   mem holds the bytes as they are in the file, one after the other, or
 *       is NULL; then iter walks the user's memory, which has the same bytes
 *   -   converted is mem, and ours, where the representation is not native
 *   -   done counts the bytes that are in the file or in memory, from the
 *       start; it is below `bytes` after an error or at the end of the file
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_IO_OP_H
#define CHEMPI_LIBCHEMPI_DIDL_IO_OP_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "libchempi/didl/io/file.h"

enum chempi_io_place {
    CHEMPI_IO_AT,         /* explicit offset */
    CHEMPI_IO_INDIVIDUAL, /* at the individual pointer */
    CHEMPI_IO_SHARED,     /* at the shared pointer; collective: in order */
};

/* The arguments of a call. */
struct chempi_io_call {
    struct chempi_file *file;
    enum chempi_io_place place;
    bool is_write;
    bool is_collective;
    int refused;       /* MPI error class, noted with words: offset, buf, count
                          and type do not count; the members are to hear of it */
    MPI_Offset offset; /* CHEMPI_IO_AT: etypes */
    void *buf;
    MPI_Count count;
    struct chempi_datatype *type;
};

struct chempi_io_op {
    struct chempi_file *file;    /* held */
    struct chempi_io_view *view; /* held */
    bool is_write;
    bool is_atomic; /* so it was when the operation began */
    uint64_t position;
    uint64_t bytes;
    uint64_t done;
    char *mem;
    void *converted;
    struct chempi_segment iter;
    void *buf;
    MPI_Count count;
    struct chempi_datatype *type; /* held */
    int error;                    /* MPI error class of the access */
    char words[256];
};

/*
 * Check a call as far as the API does not, find its position, advance the
 * individual pointer by what is asked for, convert what is to be written. On
 * failure nothing is held, and the individual pointer is where it was. MPI
 * error class.
 */
int chempi_io_op_open(struct chempi_io_op *op, const struct chempi_io_call *c);

/* It begins `at` etypes into its view. MPI error class: that is too far. */
int chempi_io_op_place(struct chempi_io_op *op, uint64_t at);

/* Instead, for a member of a collective call that has failed with class rc: it
 * has nothing to move, and goes through all steps. */
void chempi_io_op_open_empty(struct chempi_io_op *op,
                             const struct chempi_io_call *c, int rc);

/* After the access: convert what was read; the error, with its words noted
 * for this thread; fill in the status. Then give everything back. */
int chempi_io_op_close(struct chempi_io_op *op, MPI_Status *status);

/* A read that ends early leaves the individual pointer where it stopped, unless
 * another call has moved it meanwhile: within a split access these are allowed.
 */
void chempi_io_op_correct_pointer(struct chempi_io_op *op,
                                  enum chempi_io_place place);

/* Read or write all of it here and now, by this process alone; the result is
 * in op. Blocking, without the lane lock; threads: any. */
void chempi_io_op_run(struct chempi_io_op *op);

/* Note -errno or an MPI error class (0: nothing); the first one stays. */
void chempi_io_op_fail(struct chempi_io_op *op, int neg_errno, const char *what,
                       int64_t offset);
void chempi_io_op_note(struct chempi_io_op *op, int rc);

/* Packed bytes [position, position + len) of the memory side, to or from a
 * buffer. */
void chempi_io_op_pack(struct chempi_io_op *op, uint64_t position, void *to,
                       uint64_t len);
void chempi_io_op_unpack(struct chempi_io_op *op, uint64_t position,
                         const void *from, uint64_t len);

/*
 * len packed bytes of a view, from position on, between the file and
 * consecutive memory: by runs, by windows, through a mapping, as it pays.
 * is_locked: the caller has locked all of it. *done counts what was transferred
 * from the start. 0 or -errno; *at is the offset of the failure.
 */
int chempi_io_view_write(struct chempi_file *file,
                         const struct chempi_io_view *view, uint64_t position,
                         const char *data, uint64_t len, bool is_locked,
                         uint64_t *done, int64_t *at);

/* Write through a mapping: position, len as above, all within the offsets
 * [from, to). -EOPNOTSUPP: not here. */
int chempi_io_map_write(struct chempi_file *file,
                        const struct chempi_io_view *view, uint64_t position,
                        const char *data, uint64_t len, int64_t from,
                        int64_t to);

/* The same for the bytes of a window, which holds the offsets [from, to), whose
 * mask is not 0. */
int chempi_io_map_store(struct chempi_file *file, const char *window,
                        const char *mask, int64_t from, int64_t to);

/* ---- calls.c ---- */

int chempi_io_do(const struct chempi_io_call *c, MPI_Status *status);
int chempi_io_start(const struct chempi_io_call *c, MPI_Request *request);
int chempi_io_begin(const struct chempi_io_call *c);
int chempi_io_end(struct chempi_file *file, const void *buf, bool is_write,
                  MPI_Status *status);

#endif
