/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Access by one process: whole runs where they are large, windows with holes
 * where they are small.
 *
 * A window that is read brings holes along, which costs time only. A window
 * that is written must not bring back old contents of holes that somebody else
 * has written meanwhile. So small runs are stored through a mapping where the
 * file system has coherent ones; the hint romio_ds_write=enable asks for
 * read, change and write back under an exclusive lock instead, and then every
 * write through the same handle takes at least a shared lock.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/sys.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/io/count.h"
#include "libchempi/didl/io/exchange/memory.h"
#include "libchempi/didl/io/op.h"

/* Up to so many bytes of hole per run it is quicker to read the hole along than
 * to call the kernel for each run, which may wait for a disk each time. */
#define HOLE_READ_MAX 4096
/* Files in memory: a run and its hole, which are read, and the run copied. */
#define STEP_READ_MAX 4096
#define HOLE_MAP_MAX 4096
/* Runs from here on are written as they are. */
#define RUN_MAP_MAX 2048
/* Scattered memory is gathered in pieces of this size. */
#define STAGE_BYTES (UINT64_C(1) << 20)
/* Runs of memory from here on are handed to the kernel as a list. */
#define RUN_LIST_MIN 2048

enum way { WAY_RUNS, WAY_WINDOWS, WAY_MAPPING };

/* Bytes of hole that belong to a run, on average. */
static uint64_t mean_hole(const struct chempi_io_view *view)
{
    uint64_t runs = view->tile.size / view->run;

    return ((uint64_t)view->tile.extent - view->tile.size) / (runs ? runs : 1);
}

static enum way way_of_write(const struct chempi_file *file,
                             const struct chempi_io_view *view)
{
    if (!view->is_ordered || file->hints.ds_write == CHEMPI_IO_DISABLE)
        return WAY_RUNS;
    if (file->hints.ds_write == CHEMPI_IO_ENABLE)
        return file->has_locks ? WAY_WINDOWS : WAY_RUNS;
    return file->is_mappable && view->run <= RUN_MAP_MAX &&
                   mean_hole(view) <= HOLE_MAP_MAX
               ? WAY_MAPPING
               : WAY_RUNS;
}

static enum way way_of_read(const struct chempi_file *file,
                            const struct chempi_io_view *view)
{
    if (!view->is_ordered || file->hints.ds_read == CHEMPI_IO_DISABLE)
        return WAY_RUNS;
    if (file->hints.ds_read == CHEMPI_IO_ENABLE)
        return WAY_WINDOWS;
    if (file->home == CHEMPI_IO_IN_MEMORY)
        return view->run + mean_hole(view) <= STEP_READ_MAX ? WAY_WINDOWS
                                                            : WAY_RUNS;
    return mean_hole(view) <= HOLE_READ_MAX ? WAY_WINDOWS : WAY_RUNS;
}

/* ---- one run ---- */

static int write_run(struct chempi_file *file, const char *data, uint64_t len,
                     int64_t offset, bool is_locked, uint64_t *done)
{
    struct iovec run = {(void *)(uintptr_t)data, len};
    bool is_guarded = file->hints.ds_write == CHEMPI_IO_ENABLE &&
                      file->has_locks && !is_locked;
    int rc = 0;

    *done = 0;
    if (is_guarded)
        rc = chempi_io_lock_range(file, CHEMPI_IO_LOCK_SHARED, offset,
                                  (int64_t)len);
    if (rc)
        return rc;
    rc = chempi_io_write_runs(file, &run, 1, offset, done);
    if (is_guarded)
        chempi_io_unlock_range(file, offset, (int64_t)len);
    return rc;
}

static int read_run(struct chempi_file *file, char *data, uint64_t len,
                    int64_t offset, uint64_t *done)
{
    struct iovec run = {data, len};

    return chempi_io_read_runs(file, &run, 1, offset, done);
}

/* ---- run by run ---- */

/* is_locked: of a write, whose data is only read; NULL: a read. */
static int by_runs(struct chempi_file *file, const struct chempi_io_view *view,
                   uint64_t position, char *data, uint64_t len,
                   const bool *is_locked, uint64_t *done, int64_t *at)
{
    struct chempi_segment iter;
    struct iovec runs[64];

    chempi_io_view_iter(view, &iter, NULL, 0, position);
    while (*done < len) {
        size_t n = chempi_segment_runs(&iter, runs, CHEMPI_ARRAY_LEN(runs),
                                       len - *done);

        for (size_t i = 0; i < n; i++) {
            int64_t offset = (int64_t)(uintptr_t)runs[i].iov_base;
            uint64_t got;
            int rc = is_locked ? write_run(file, data + *done, runs[i].iov_len,
                                           offset, *is_locked, &got)
                               : read_run(file, data + *done, runs[i].iov_len,
                                          offset, &got);

            *done += got;
            *at = offset + (int64_t)got;
            if (rc || got < runs[i].iov_len)
                return rc;
        }
        if (n == 0)
            break;
    }
    return 0;
}

/* ---- windows ---- */

/* The part of [position, end) that lies within `max` bytes of file from the
 * first byte on. */
struct window {
    int64_t from; /* offsets */
    int64_t to;
    uint64_t len; /* packed bytes in it; at least 1 */
};

static struct window next_window(const struct chempi_io_view *view,
                                 uint64_t position, uint64_t end, uint64_t max)
{
    struct window w = {.from = chempi_io_view_offset(view, position)};
    uint64_t below = chempi_io_view_below(view, w.from + (int64_t)max);

    w.len = chempi_io_least(below, end) - position;
    w.to = chempi_io_view_offset(view, position + w.len - 1) + 1;
    return w;
}

static int read_window(struct chempi_file *file,
                       const struct chempi_io_view *view, uint64_t position,
                       const struct window *w, char *room, char *data,
                       uint64_t *got)
{
    uint64_t have;
    struct chempi_segment iter;
    int rc = read_run(file, room, (uint64_t)(w->to - w->from), w->from, &have);
    uint64_t below = chempi_io_view_below(view, w->from + (int64_t)have);

    *got = below > position ? chempi_io_least(below - position, w->len) : 0;
    chempi_io_view_iter(view, &iter, room, w->from, position);
    (void)chempi_segment_pack(&iter, data, *got);
    chempi_io_count(CHEMPI_IO_COUNT_SIEVED, have);
    return rc;
}

/* Under an exclusive lock: what lies beyond the end of the file is zero. */
static int rewrite_window(struct chempi_file *file,
                          const struct chempi_io_view *view, uint64_t position,
                          const struct window *w, char *room, const char *data,
                          uint64_t *got)
{
    int64_t span = w->to - w->from;
    struct iovec run = {room, (uint64_t)span};
    struct chempi_segment iter;
    uint64_t have;
    int rc = read_run(file, room, (uint64_t)span, w->from, &have);

    *got = 0;
    if (rc)
        return rc;
    memset(room + have, 0, (uint64_t)span - have);
    chempi_io_view_iter(view, &iter, room, w->from, position);
    (void)chempi_segment_unpack(&iter, data, w->len);
    rc = chempi_io_write_runs(file, &run, 1, w->from, &have);
    have = chempi_io_view_below(view, w->from + (int64_t)have);
    *got = have > position ? chempi_io_least(have - position, w->len) : 0;
    chempi_io_count(CHEMPI_IO_COUNT_SIEVED, (uint64_t)span);
    return rc;
}

static int write_window(struct chempi_file *file,
                        const struct chempi_io_view *view, uint64_t position,
                        const struct window *w, char *room, const char *data,
                        bool is_locked, uint64_t *got)
{
    int rc = 0;

    *got = 0;
    if (!is_locked)
        rc = chempi_io_lock_range(file, CHEMPI_IO_LOCK_EXCLUSIVE, w->from,
                                  w->to - w->from);
    if (rc)
        return rc;
    rc = rewrite_window(file, view, position, w, room, data, got);
    if (!is_locked)
        chempi_io_unlock_range(file, w->from, w->to - w->from);
    return rc;
}

static int by_windows(struct chempi_file *file,
                      const struct chempi_io_view *view, uint64_t position,
                      char *data, uint64_t len, const bool *is_locked,
                      uint64_t *done, int64_t *at)
{
    uint64_t all = (uint64_t)(chempi_io_view_offset(view, position + len - 1) +
                              1 - chempi_io_view_offset(view, position));
    uint64_t max = chempi_io_least(all, is_locked ? file->hints.ind_write
                                                  : file->hints.ind_read);
    char *room = chempi_io_memory_take(max);
    int rc = room ? 0 : -ENOMEM;

    while (!rc && *done < len) {
        struct window w =
            next_window(view, position + *done, position + len, max);
        uint64_t got;

        rc = is_locked ? write_window(file, view, position + *done, &w, room,
                                      data + *done, *is_locked, &got)
                       : read_window(file, view, position + *done, &w, room,
                                     data + *done, &got);
        *done += got;
        *at = w.from;
        if (got < w.len)
            break;
    }
    chempi_io_memory_give(room);
    return rc;
}

static int by_mapping(struct chempi_file *file,
                      const struct chempi_io_view *view, uint64_t position,
                      const char *data, uint64_t len, uint64_t *done,
                      int64_t *at)
{
    int rc = 0;

    while (!rc && *done < len) {
        struct window w = next_window(view, position + *done, position + len,
                                      file->hints.ind_write);

        *at = w.from;
        rc = chempi_io_map_write(file, view, position + *done, data + *done,
                                 w.len, w.from, w.to);
        if (!rc)
            *done += w.len;
    }
    return rc;
}

/* ---- consecutive memory ---- */

int chempi_io_view_write(struct chempi_file *file,
                         const struct chempi_io_view *view, uint64_t position,
                         const char *data, uint64_t len, bool is_locked,
                         uint64_t *done, int64_t *at)
{
    char *from = (char *)(uintptr_t)data;
    enum way way;
    int rc = 0;

    *done = 0;
    if (view->is_contiguous) {
        *at = chempi_io_view_offset(view, position);
        rc = write_run(file, data, len, *at, is_locked, done);
        *at += (int64_t)*done;
        return rc;
    }
    way = way_of_write(file, view);
    if (way == WAY_MAPPING) {
        rc = by_mapping(file, view, position, data, len, done, at);
        if (rc != -EOPNOTSUPP)
            return rc;
        file->is_mappable = false;
        *done = 0;
    }
    if (way == WAY_WINDOWS)
        return by_windows(file, view, position, from, len, &is_locked, done,
                          at);
    return by_runs(file, view, position, from, len, &is_locked, done, at);
}

static int read_view(struct chempi_file *file,
                     const struct chempi_io_view *view, uint64_t position,
                     char *data, uint64_t len, uint64_t *done, int64_t *at)
{
    int rc;

    *done = 0;
    if (view->is_contiguous) {
        *at = chempi_io_view_offset(view, position);
        rc = read_run(file, data, len, *at, done);
        *at += (int64_t)*done;
        return rc;
    }
    return way_of_read(file, view) == WAY_WINDOWS
               ? by_windows(file, view, position, data, len, NULL, done, at)
               : by_runs(file, view, position, data, len, NULL, done, at);
}

/* ---- scattered memory ---- */

/* Lists of memory runs straight to and from consecutive bytes of the file. */
static int by_lists(struct chempi_io_op *op, int64_t *at)
{
    struct iovec runs[CHEMPI_IO_RUNS_MAX];

    while (op->done < op->bytes) {
        uint64_t left = op->bytes - op->done;
        uint64_t want;
        uint64_t got;
        size_t n;
        int rc;

        chempi_segment_seek(&op->iter, op->done);
        n = chempi_segment_runs(&op->iter, runs, CHEMPI_IO_RUNS_MAX, left);
        want = op->iter.position - op->done;
        *at = chempi_io_view_offset(op->view, op->position + op->done);
        rc = op->is_write
                 ? chempi_io_write_runs(op->file, runs, (int)n, *at, &got)
                 : chempi_io_read_runs(op->file, runs, (int)n, *at, &got);
        op->done += got;
        *at += (int64_t)got;
        if (rc || got < want)
            return rc;
    }
    return 0;
}

static int by_stages(struct chempi_io_op *op, int64_t *at)
{
    uint64_t room = chempi_io_least(op->bytes, STAGE_BYTES);
    char *stage = chempi_sys->malloc(room);
    int rc = stage ? 0 : -ENOMEM;

    while (!rc && op->done < op->bytes) {
        uint64_t len = chempi_io_least(op->bytes - op->done, room);
        uint64_t at_file = op->position + op->done;
        uint64_t got = 0;

        if (op->is_write) {
            chempi_io_op_pack(op, op->done, stage, len);
            rc = chempi_io_view_write(op->file, op->view, at_file, stage, len,
                                      op->is_atomic, &got, at);
        } else {
            rc = read_view(op->file, op->view, at_file, stage, len, &got, at);
            chempi_io_op_unpack(op, op->done, stage, got);
        }
        op->done += got;
        if (got < len)
            break;
    }
    free(stage);
    return rc;
}

static int run(struct chempi_io_op *op, int64_t *at)
{
    if (op->mem && op->is_write)
        return chempi_io_view_write(op->file, op->view, op->position, op->mem,
                                    op->bytes, op->is_atomic, &op->done, at);
    if (op->mem)
        return read_view(op->file, op->view, op->position, op->mem, op->bytes,
                         &op->done, at);
    if (op->view->is_contiguous &&
        op->file->hints.ds_write != CHEMPI_IO_ENABLE &&
        chempi_segment_mean_run(&op->iter) >= RUN_LIST_MIN)
        return by_lists(op, at);
    return by_stages(op, at);
}

void chempi_io_op_run(struct chempi_io_op *op)
{
    struct chempi_file *file = op->file;
    bool is_locking = op->is_atomic && op->bytes > 0;
    int64_t from = 0;
    int64_t len = 0; /* an unordered view may lie anywhere: 0 is all */
    int64_t at = -1;
    int rc = 0;

    if (op->bytes == 0)
        return;
    if (is_locking && op->view->is_ordered) {
        from = chempi_io_view_offset(op->view, op->position);
        len = chempi_io_view_offset(op->view, op->position + op->bytes - 1) +
              1 - from;
    }
    if (is_locking)
        rc = chempi_io_lock_range(file,
                                  op->is_write ? CHEMPI_IO_LOCK_EXCLUSIVE
                                               : CHEMPI_IO_LOCK_SHARED,
                                  from, len);
    if (!rc) {
        rc = run(op, &at);
        if (is_locking)
            chempi_io_unlock_range(file, from, len);
    }
    chempi_io_op_fail(op, rc, op->is_write ? "writing" : "reading", at);
}
