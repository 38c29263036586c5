/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Opening and closing files (MPI 5.0, section 14.2), and agreeing on errors.
 *
 * Member 0 creates the file, then the others open it: if that fails, no other
 * member has made one. That it is the same file everywhere shows in its inode
 * number. A member that fails takes part in every step that follows, so that
 * nobody waits for it.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/sys.h"
#include "libchempi/api/api_impl.h"
#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/coll/coll.h"
#include "libchempi/didl/coll/sched.h"
#include "libchempi/didl/comm/make/comm_make.h"
#include "libchempi/didl/error/error.h"
#include "libchempi/didl/info/info.h"
#include "libchempi/didl/io/agree.h"
#include "libchempi/didl/io/collective.h"
#include "libchempi/didl/io/count.h"
#include "libchempi/didl/io/exchange/aggregators.h"
#include "libchempi/didl/io/exchange/memory.h"
#include "libchempi/didl/io/file.h"
#include "libchempi/didl/io/shared.h"
#include "libchempi/didl/io/task/worker.h"
#include "libchempi/didl/transport/conn.h"
#include "libchempi/didl/transport/progress/progress.h"

#define ACCESS_MODES (MPI_MODE_RDONLY | MPI_MODE_RDWR | MPI_MODE_WRONLY)
#define ALL_MODES                                                              \
    (ACCESS_MODES | MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_APPEND |        \
     MPI_MODE_DELETE_ON_CLOSE | MPI_MODE_UNIQUE_OPEN | MPI_MODE_SEQUENTIAL)

static struct chempi_datatype *int64_type(void)
{
    return chempi_datatype_lookup(MPI_INT64_T);
}

/* vals[0..n) become the maxima over all members. */
static int maximum(struct chempi_comm *comm, int64_t *vals, int n)
{
    int64_t mine[4];
    struct chempi_coll_call c = {.kind = CHEMPI_COLL_ALLREDUCE,
                                 .comm = comm,
                                 .send.buf = mine,
                                 .recv.buf = vals,
                                 .recv.count = n,
                                 .recv.type = int64_type(),
                                 .op = chempi_op_lookup(MPI_MAX)};

    memcpy(mine, vals, (size_t)n * sizeof(*vals));
    return chempi_coll_do(&c);
}

/* Of the first member. */
static int broadcast(struct chempi_comm *comm, void *buf, size_t len)
{
    struct chempi_coll_call c = {.kind = CHEMPI_COLL_BCAST,
                                 .root = 0,
                                 .comm = comm,
                                 .recv.buf = buf,
                                 .recv.count = (MPI_Count)len,
                                 .recv.type = chempi_coll_byte()};

    return chempi_coll_do(&c);
}

int chempi_io_hints_share(struct chempi_comm *comm,
                          struct chempi_io_hints *hints)
{
    int rc =
        comm->size == 1 ? MPI_SUCCESS : broadcast(comm, hints, sizeof(*hints));

    if (!rc && !chempi_io_hints_are_sane(hints))
        chempi_io_hints_default(hints); /* everywhere alike */
    return rc;
}

/* Windows are written back only if every member can lock ranges. */
static int agree_locks(struct chempi_file *file)
{
    int64_t lacks = 0;
    int rc = MPI_SUCCESS;

    if (file->hints.ds_write != CHEMPI_IO_ENABLE)
        return MPI_SUCCESS;
    lacks = !file->can_rewrite || chempi_io_probe_locks(file);
    if (file->comm->size > 1)
        rc = maximum(file->comm, &lacks, 1);
    file->has_locks = lacks == 0;
    return rc;
}

static bool has_no_jobs(void *arg)
{
    struct chempi_file *file = arg;

    return atomic_load(&file->jobs) == 0;
}

static void put_jobs(struct chempi_wait_report *w, const void *object)
{
    (void)object;
    chempi_wait_report_put(w,
                           " of reads and writes of the file that were begun "
                           "before");
}

/* Also for accesses whose requests were freed, which nobody else can wait
 * for. */
static void await_jobs(struct chempi_file *file)
{
    if (!has_no_jobs(file))
        (void)chempi_progress_wait_for(has_no_jobs, file, put_jobs, NULL);
}

/* Workers read the hints; and what they write without locks is in the file when
 * all have agreed on these, so that no window brings back what was there
 * before. */
int chempi_io_hints_put(struct chempi_file *file,
                        const struct chempi_io_hints *hints)
{
    bool was_rewriting = file->hints.ds_write == CHEMPI_IO_ENABLE;
    bool has_changed = file->hints.nodes != hints->nodes;
    int rc = MPI_SUCCESS;

    await_jobs(file);
    file->hints = *hints;
    if (file->aggregators && has_changed)
        rc = chempi_io_aggregators_choose(file);
    else if (file->aggregators)
        chempi_io_aggregators_forget(file);
    return rc || was_rewriting ? rc : agree_locks(file);
}

/* The file's own communicator. */
static int make_comm(struct chempi_comm *comm, struct chempi_comm **out)
{
    struct chempi_comm_channel channel = chempi_comm_channel(comm);
    uint32_t context;
    int rc = chempi_comm_agree_context(&channel, MPI_SUCCESS, &context);

    if (rc)
        return rc;
    *out = chempi_comm_make(comm->local, NULL, context, context);
    if (!*out) {
        chempi_comm_return_context(context, MPI_ERR_NO_MEM);
        return chempi_error_set(MPI_ERR_NO_MEM,
                                "no memory for a file's communicator");
    }
    return chempi_coll_own(*out)
               ? MPI_SUCCESS
               : chempi_error_set(MPI_ERR_NO_MEM,
                                  "no memory for a file's communicator");
}

/* What the members need of each other. Those of other worlds are not believed
 * what views they have: no member has data of others. */
static int make_company(struct chempi_file *file, struct chempi_comm *comm)
{
    int rc = make_comm(comm, &file->comm);

    return rc || comm->size == 1 || comm->has_foreign
               ? rc
               : chempi_io_aggregators_make(file);
}

/* ---- opening ---- */

static int check_amode(int amode)
{
    int access = amode & ACCESS_MODES;

    if (amode & ~ALL_MODES)
        return chempi_error_set(MPI_ERR_AMODE,
                                "argument amode has bits (0x%x) that are no "
                                "access modes",
                                (unsigned)(amode & ~ALL_MODES));
    if (access != MPI_MODE_RDONLY && access != MPI_MODE_RDWR &&
        access != MPI_MODE_WRONLY)
        return chempi_error_set(MPI_ERR_AMODE,
                                "argument amode needs exactly one of "
                                "MPI_MODE_RDONLY, MPI_MODE_RDWR and "
                                "MPI_MODE_WRONLY");
    if (access == MPI_MODE_RDONLY && amode & (MPI_MODE_CREATE | MPI_MODE_EXCL))
        return chempi_error_set(MPI_ERR_AMODE,
                                "MPI_MODE_CREATE and MPI_MODE_EXCL do not go "
                                "with MPI_MODE_RDONLY");
    if (access == MPI_MODE_RDWR && amode & MPI_MODE_SEQUENTIAL)
        return chempi_error_set(MPI_ERR_AMODE,
                                "MPI_MODE_SEQUENTIAL does not go with "
                                "MPI_MODE_RDWR");
    return MPI_SUCCESS;
}

/* Everybody's error, or that the modes differ. */
static int agree_amode(struct chempi_comm *comm, const char *path, int amode,
                       int rc)
{
    struct chempi_io_same same = {"amode", amode, NULL};
    char text[16];
    uint8_t wish = 0;

    (void)snprintf(text, sizeof(text), "0x%x", (unsigned)amode);
    same.text = text;
    return chempi_io_agree_same(comm, path, rc, &same, 1, &wish);
}

static int open_here(struct chempi_file *file, int flags)
{
    struct chempi_io_fd *fd = &file->fd;
    bool is_writing = (file->amode & MPI_MODE_RDONLY) == 0;
    mode_t perm = (mode_t)file->hints.perm;
    /* Also to write only: mappings and windows read. */
    int rc =
        fd->ops->open(fd, file->path, flags | (is_writing ? O_RDWR : 0), perm);

    if (rc == -EACCES && file->amode & MPI_MODE_WRONLY) {
        rc = fd->ops->open(fd, file->path, flags | O_WRONLY, perm);
        file->can_rewrite = false;
    } else if (!rc) {
        file->is_mappable = is_writing && fd->ops->can_map(fd);
    }
    if (!rc)
        file->home = fd->ops->home(fd);
    return rc ? chempi_io_fail(file, rc, "opening", -1) : MPI_SUCCESS;
}

/* Inode numbers are given anew in each file system, so that two files may have
 * the same one; when a file was made tells them apart, where it is known. */
static int compare(struct chempi_file *file)
{
    struct chempi_io_stat st = {0};
    int rc = file->fd.ops->stat(&file->fd, &st);
    struct chempi_io_stat first = st;
    int failed = broadcast(file->comm, &first, sizeof(first));

    if (failed)
        return failed;
    if (rc)
        return chempi_io_fail(file, rc, "asking for the state of", -1);
    if (first.inode != st.inode ||
        (first.born_ns && st.born_ns && first.born_ns != st.born_ns))
        return chempi_error_set(
            MPI_ERR_NOT_SAME,
            "%.160s is not the same file here (node %s, inode %" PRIu64
            ", made at %" PRId64 " ns) as for rank 0 (inode %" PRIu64
            ", made at %" PRId64
            " ns); files must lie in a file system that all nodes share",
            file->path,
            chempi_ctx.services.node_names
                [chempi_ctx.services.node_of_proc[chempi_ctx.services.proc]],
            st.inode, st.born_ns, first.inode, first.born_ns);
    return MPI_SUCCESS;
}

static int open_all(struct chempi_file *file)
{
    int flags = (file->amode & MPI_MODE_CREATE ? O_CREAT : 0) |
                (file->amode & MPI_MODE_EXCL ? O_EXCL : 0);
    bool is_first = file->comm->rank == 0;
    int rc =
        chempi_io_agree(file, is_first ? open_here(file, flags) : MPI_SUCCESS);

    file->owes_name = is_first && flags & O_CREAT;
    if (rc || file->comm->size == 1)
        return rc;
    rc = chempi_io_agree(file, is_first ? MPI_SUCCESS : open_here(file, 0));
    if (rc)
        return rc;
    return chempi_io_agree(file, compare(file));
}

static int go_to_end(struct chempi_file *file)
{
    struct chempi_io_stat st = {0};
    int rc = file->fd.ops->stat(&file->fd, &st);

    if (rc)
        return chempi_io_fail(file, rc, "asking for the size of", -1);
    file->pointer = (uint64_t)st.size;
    file->shared_at = (uint64_t)st.size;
    return MPI_SUCCESS;
}

/* MPI_MODE_EXCL alone opens a file that was there before. */
static void abandon(struct chempi_file *file)
{
    const int making = MPI_MODE_CREATE | MPI_MODE_EXCL;
    bool was_made = file->comm && file->comm->rank == 0 &&
                    file->fd.number >= 0 && (file->amode & making) == making;

    if (file->fd.number >= 0)
        (void)file->fd.ops->close(&file->fd);
    if (was_made)
        (void)file->fd.ops->remove(file->whole_path);
    chempi_file_release(file);
}

int chempi_io_open(struct chempi_comm *comm, const char *filename, int amode,
                   struct chempi_info *info, MPI_File *fh, int refused)
{
    struct chempi_file *file;
    int rc = refused;

    if (fh)
        *fh = MPI_FILE_NULL;
    if (comm->is_inter)
        return chempi_error_set(MPI_ERR_COMM,
                                "argument comm is an intercommunicator; files "
                                "are opened by an intracommunicator");
    if (!rc)
        rc = check_amode(amode);
    file = rc ? NULL : chempi_file_make(filename, amode);
    if (!rc && !file)
        rc = chempi_error_set(MPI_ERR_NO_MEM, "no memory for a file");
    if (!rc)
        rc = chempi_io_hints_take(&file->hints, info);
    rc = agree_amode(comm, filename ? filename : "", amode, rc);
    if (!rc)
        rc = chempi_io_agree_on(comm, filename, make_company(file, comm));
    if (!rc)
        rc = chempi_io_hints_share(file->comm, &file->hints);
    if (!rc && file->aggregators)
        rc = chempi_io_aggregators_choose(file);
    if (!rc)
        rc = chempi_io_shared_open(file);
    if (!rc)
        rc = open_all(file);
    if (!rc)
        rc = agree_locks(file);
    if (!rc && amode & MPI_MODE_APPEND)
        rc = chempi_io_agree(file, go_to_end(file));
    if (rc) {
        if (file) {
            chempi_io_shared_close(file);
            abandon(file);
        }
        return rc;
    }
    *fh = (MPI_File)(void *)file;
    return MPI_SUCCESS;
}

int chempi_io_delete(const char *filename, struct chempi_info *info)
{
    int rc = chempi_io_access_choose()->remove(filename);

    (void)info;
    return rc ? chempi_io_fail_path(filename, rc, "deleting", -1) : MPI_SUCCESS;
}

/* ---- closing ---- */

/* A system that could not write pages forgets them, and its next sync succeeds
 * although they are lost: an error stays until the file is closed. */
static int sync_here(struct chempi_file *file)
{
    int failed = 0;

    if (atomic_exchange(&file->was_written, false))
        failed = file->fd.ops->sync(&file->fd);
    if (!failed && file->owes_name)
        failed = file->fd.ops->sync_name(&file->fd);
    if (!failed)
        file->owes_name = false;
    if (!file->sync_error)
        file->sync_error = failed;
    if (file->sync_error)
        return chempi_io_fail(file, file->sync_error, "bringing to the disk",
                              -1);
    failed = file->fd.ops->refresh(&file->fd);
    return failed ? chempi_io_fail(file, failed, "asking for the state of", -1)
                  : MPI_SUCCESS;
}

int chempi_io_sync(struct chempi_file *fh)
{
    int rc = chempi_io_quiet(fh);

    await_jobs(fh);
    return chempi_io_agree(fh, rc ? rc : sync_here(fh));
}

/* No member below this one is there to do it. */
static bool is_lowest_survivor(const struct chempi_file *file)
{
    for (uint32_t i = 0; i < (uint32_t)file->comm->rank; i++)
        if (!chempi_conn_is_missing(chempi_comm_proc(file->comm, i)))
            return false;
    return true;
}

/* Member 0 does it; if it dies before all have heard of that, another one, for
 * which it is no error that the file is gone. Collective. */
static int delete_file(struct chempi_file *file)
{
    int removed = MPI_SUCCESS;
    int failed = 0;

    if (file->comm->rank == 0)
        failed = file->fd.ops->remove(file->whole_path);
    if (failed)
        removed = chempi_io_fail(file, failed, "deleting", -1);
    removed = chempi_io_agree(file, removed);
    if (removed && file->comm->rank > 0 && is_lowest_survivor(file))
        (void)file->fd.ops->remove(file->whole_path);
    return removed;
}

/* The handle is gone in any case; the object stays for the error handler,
 * until the error was raised. */
static int close_file(struct chempi_file *file)
{
    int rc = chempi_io_sync(file);
    int failed = file->fd.ops->close(&file->fd);

    if (failed && !rc)
        rc = chempi_io_fail(file, failed, "closing", -1);
    rc = chempi_io_agree(file, rc);
    if (file->amode & MPI_MODE_DELETE_ON_CLOSE) {
        int removed = delete_file(file);

        rc = rc ? rc : removed;
    }
    chempi_io_shared_close(file);
    return rc;
}

/* The error of a close is raised after it: the object, whose error handler
 * that is, stays until the next such error on this thread. */
static void keep_for_raising(struct chempi_file *file)
{
    static _Thread_local struct chempi_file *last;

    if (last)
        chempi_file_release(last);
    last = file;
    chempi_error_blame(&file->obj);
}

int chempi_io_close(MPI_File *fh)
{
    struct chempi_file *file = chempi_file_lookup(*fh);
    int rc;

    if (!file) {
        chempi_error_blame(&chempi_file_null.obj);
        return chempi_error_set(MPI_ERR_FILE, "argument fh is no open file%s",
                                *fh == MPI_FILE_NULL ? ": MPI_FILE_NULL" : "");
    }
    rc = chempi_io_agree(file, chempi_io_quiet(file));
    /* A split access that is open keeps the file open, at all members; a member
     * that is lost does not. */
    if (rc == MPI_ERR_IO || (rc && file->split)) {
        chempi_error_blame(&file->obj);
        return rc;
    }
    rc = close_file(file);
    *fh = MPI_FILE_NULL;
    file->is_closed = true;
    if (rc)
        keep_for_raising(file);
    else
        chempi_file_release(file);
    return rc;
}

/* ---- the room ---- */

int chempi_io_init(void)
{
    chempi_io_count_init();
    chempi_error_set_subject(CHEMPI_MAGIC_FILE, chempi_io_describe);
    chempi_io_shared_init();
    return MPI_SUCCESS;
}

void chempi_io_fini(void)
{
    chempi_io_workers_fini();
    chempi_io_task_fini();
    chempi_io_memory_fini();
}
