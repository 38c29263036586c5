/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The access layer's member for tests: posix, but what CHEMPI_IO_FAULTS says
 * goes wrong. The environment variable holds "name=number" separated by
 * commas; a word that is none of these makes opening fail:
 *
 *   seed           of what happens at random
 *   short          thousandths of transfers that end early, at any byte
 *   interrupt      thousandths of transfers that EINTR interrupts before
 *   no-space-at    writes beyond this offset fail with ENOSPC
 *   quota-at       writes beyond this offset fail with EDQUOT
 *   bad-write-at   a write that covers this offset fails with EIO
 *   bad-read-at    the same for a read
 *   bad-rank       which rank these five are for; without it, every one
 *   bad-sync       so many syncs of a file fail with EIO
 *   born-apart     each rank's file was made at another time
 *   stale          what other processes append is not seen before a sync, as
 *                  NFS has it
 *   end-at         reads find the end of the file here, whatever its size
 *   no-locks       locks fail with ENOLCK
 *   busy-locks     thousandths of locks that fail with EAGAIN
 *   pretend        nothing is transferred, but the file gets as long as if;
 *                  for requests larger than memory. More than the system
 *                  transfers at a time fails with EINVAL
 *   drop-unsynced  what was written and not synced is undone when the file is
 *                  closed, and when the process ends, as if the node had lost
 *                  its power; a file that was made, and whose folder was not
 *                  synced, is gone
 */
#define _POSIX_C_SOURCE 200809L /* strdup */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/fault.h"
#include "common/base/sys.h"
#include "libchempi/didl/base/ctx.h"
#include "libchempi/didl/io/access/access.h"

struct faults {
    uint64_t seed;
    uint64_t short_rate;
    uint64_t interrupt_rate;
    uint64_t no_space_at; /* UINT64_MAX: never; also the following */
    uint64_t quota_at;
    uint64_t bad_write_at;
    uint64_t bad_read_at;
    uint64_t end_at;
    uint64_t bad_rank; /* UINT64_MAX: all */
    uint64_t bad_syncs;
    uint64_t born_apart;
    uint64_t is_stale;
    uint64_t no_locks;
    uint64_t busy_rate;
    uint64_t drop_unsynced;
    uint64_t pretends;
};

static const struct chempi_fault_word words[] = {
    {"seed", offsetof(struct faults, seed), UINT64_MAX},
    {"short", offsetof(struct faults, short_rate), CHEMPI_FAULT_RATE_MAX},
    {"interrupt", offsetof(struct faults, interrupt_rate),
     CHEMPI_FAULT_RATE_MAX},
    {"no-space-at", offsetof(struct faults, no_space_at), UINT64_MAX},
    {"quota-at", offsetof(struct faults, quota_at), UINT64_MAX},
    {"bad-write-at", offsetof(struct faults, bad_write_at), UINT64_MAX},
    {"bad-read-at", offsetof(struct faults, bad_read_at), UINT64_MAX},
    {"end-at", offsetof(struct faults, end_at), UINT64_MAX},
    {"bad-rank", offsetof(struct faults, bad_rank), UINT64_MAX},
    {"bad-sync", offsetof(struct faults, bad_syncs), UINT64_MAX},
    {"born-apart", offsetof(struct faults, born_apart), UINT64_MAX},
    {"stale", offsetof(struct faults, is_stale), UINT64_MAX},
    {"no-locks", offsetof(struct faults, no_locks), UINT64_MAX},
    {"busy-locks", offsetof(struct faults, busy_rate), CHEMPI_FAULT_RATE_MAX},
    {"drop-unsynced", offsetof(struct faults, drop_unsynced), UINT64_MAX},
    {"pretend", offsetof(struct faults, pretends), UINT64_MAX},
};

/* Old contents of a range that was overwritten. */
struct undo {
    struct undo *next;
    int64_t offset;
    uint64_t len; /* bytes that were there */
    char data[];
};

struct own {
    struct own *next; /* all open files */
    struct chempi_io_fd *fd;
    pthread_mutex_t lock; /* guards dice, log and seen */
    struct faults faults;
    struct chempi_dice dice;
    int64_t size;     /* at the last sync */
    int64_t seen;     /* of the file, as far as this process knows */
    char *unnamed;    /* path, while its folder does not have it on the disk */
    struct undo *log; /* the latest first */
};

static struct own *open_files;
static pthread_mutex_t files_lock = PTHREAD_MUTEX_INITIALIZER;

static int parse(const char *text, struct faults *f)
{
    *f = (struct faults){.seed = 1,
                         .no_space_at = UINT64_MAX,
                         .quota_at = UINT64_MAX,
                         .bad_write_at = UINT64_MAX,
                         .bad_read_at = UINT64_MAX,
                         .end_at = UINT64_MAX,
                         .bad_rank = UINT64_MAX};
    return chempi_fault_parse(text, words, CHEMPI_ARRAY_LEN(words), f, NULL);
}

static struct own *own_of(struct chempi_io_fd *fd)
{
    return fd->own;
}

/* The posix layer's file behind ours. */
static int failing_open(struct chempi_io_fd *fd, const char *path, int flags,
                        mode_t mode)
{
    struct own *own = chempi_sys->calloc(1, sizeof(*own));
    struct chempi_io_stat st = {0};
    const char *text = getenv("CHEMPI_IO_FAULTS");
    int rc;

    if (!own)
        return -ENOMEM;
    rc = parse(text ? text : "", &own->faults);
    if (rc == 0)
        rc = chempi_io_posix.open(fd, path, flags, mode);
    if (rc) {
        free(own);
        return rc;
    }
    if (own->faults.bad_rank != UINT64_MAX &&
        own->faults.bad_rank != chempi_ctx.services.proc) {
        own->faults.no_space_at = own->faults.quota_at = UINT64_MAX;
        own->faults.bad_write_at = own->faults.bad_read_at = UINT64_MAX;
        own->faults.bad_syncs = 0;
    }
    (void)pthread_mutex_init(&own->lock, NULL);
    chempi_dice_start(&own->dice, own->faults.seed,
                      chempi_ctx.services.proc + UINT64_C(1));
    (void)chempi_io_posix.stat(fd, &st);
    own->size = st.size;
    own->seen = st.size;
    if (own->faults.drop_unsynced && flags & O_CREAT && st.size == 0)
        own->unnamed = strdup(path);
    own->fd = fd;
    fd->own = own;
    (void)pthread_mutex_lock(&files_lock);
    own->next = open_files;
    open_files = own;
    (void)pthread_mutex_unlock(&files_lock);
    return 0;
}

static void forget(struct own *own)
{
    while (own->log) {
        struct undo *first = own->log;

        own->log = first->next;
        free(first);
    }
}

/* What was there before comes back, the latest change first. */
static void lose_power(struct own *own)
{
    if (own->log && own->faults.drop_unsynced) {
        for (struct undo *u = own->log; u; u = u->next) {
            struct iovec run = {u->data, u->len};

            if (u->len > 0)
                (void)chempi_io_posix.writev(own->fd, &run, 1, u->offset);
        }
        (void)chempi_io_posix.truncate(own->fd, own->size);
    }
    if (own->unnamed)
        (void)chempi_io_posix.remove(own->unnamed);
    free(own->unnamed);
    own->unnamed = NULL;
    forget(own);
}

static int failing_close(struct chempi_io_fd *fd)
{
    struct own *own = own_of(fd);
    struct own **at = &open_files;

    (void)pthread_mutex_lock(&files_lock);
    while (*at != own)
        at = &(*at)->next;
    *at = own->next;
    (void)pthread_mutex_unlock(&files_lock);
    lose_power(own);
    (void)pthread_mutex_destroy(&own->lock);
    free(own);
    return chempi_io_posix.close(fd);
}

CHEMPI_AT_UNLOAD static void end_of_process(void)
{
    for (struct own *own = open_files; own; own = own->next)
        lose_power(own);
}

static int failing_remove(const char *path)
{
    return chempi_io_posix.remove(path);
}

static int64_t seen_of(struct own *own)
{
    int64_t seen;

    (void)pthread_mutex_lock(&own->lock);
    seen = own->seen;
    (void)pthread_mutex_unlock(&own->lock);
    return seen;
}

static void see(struct own *own, int64_t end, bool is_exact)
{
    (void)pthread_mutex_lock(&own->lock);
    if (is_exact || end > own->seen)
        own->seen = end;
    (void)pthread_mutex_unlock(&own->lock);
}

static int failing_stat(struct chempi_io_fd *fd, struct chempi_io_stat *out)
{
    struct own *own = own_of(fd);
    int rc = chempi_io_posix.stat(fd, out);

    if (own->faults.is_stale)
        out->size = seen_of(own);
    if (own->faults.born_apart)
        out->born_ns = 1 + chempi_ctx.services.proc;
    return rc;
}

static int failing_truncate(struct chempi_io_fd *fd, int64_t size)
{
    struct own *own = own_of(fd);

    if (size >= 0 && (uint64_t)size > own->faults.no_space_at)
        return -ENOSPC;
    see(own, size, true);
    return chempi_io_posix.truncate(fd, size);
}

static int failing_reserve(struct chempi_io_fd *fd, int64_t offset, int64_t len)
{
    (void)fd;
    (void)offset;
    (void)len;
    return -EOPNOTSUPP;
}

/* Interrupted, or how many bytes of the first run are transferred. */
static int shorten(struct own *own, struct iovec *run)
{
    int rc = 0;

    (void)pthread_mutex_lock(&own->lock);
    if (chempi_dice_strikes(&own->dice, own->faults.interrupt_rate))
        rc = -EINTR;
    else if (run->iov_len > 1 &&
             chempi_dice_strikes(&own->dice, own->faults.short_rate))
        run->iov_len = 1 + chempi_dice_roll(&own->dice) % (run->iov_len - 1);
    (void)pthread_mutex_unlock(&own->lock);
    return rc;
}

/* Cut the run off before `at`; no byte is left: fail. */
static int cut(struct iovec *run, int64_t offset, uint64_t at, int neg_errno)
{
    uint64_t from = (uint64_t)offset;

    if (at == UINT64_MAX || from + run->iov_len <= at)
        return 0;
    if (from >= at)
        return neg_errno;
    run->iov_len = at - from;
    return 0;
}

static bool covers(const struct iovec *run, int64_t offset, uint64_t at)
{
    return at >= (uint64_t)offset && at - (uint64_t)offset < run->iov_len;
}

/* The last byte makes a file longer, and never shorter than others make it. */
static ssize_t pretend(struct own *own, const struct iovec *runs, int count,
                       int64_t offset, bool is_write)
{
    struct chempi_io_stat st = {0};
    struct iovec last = {.iov_base = "", .iov_len = 1};
    uint64_t sum = 0;
    ssize_t rc = chempi_io_posix.stat(own->fd, &st);

    for (int i = 0; i < count; i++)
        sum += runs[i].iov_len;
    if (rc || sum > 0x7ffff000) /* as Linux has it */
        return rc ? rc : -EINVAL;
    if (is_write && offset + (int64_t)sum > st.size)
        rc = chempi_io_posix.writev(own->fd, &last, 1,
                                    offset + (int64_t)sum - 1);
    if (!is_write && offset + (int64_t)sum > st.size)
        sum = st.size > offset ? (uint64_t)(st.size - offset) : 0;
    return rc < 0 ? rc : (ssize_t)sum;
}

static ssize_t failing_readv(struct chempi_io_fd *fd, const struct iovec *runs,
                             int count, int64_t offset)
{
    struct own *own = own_of(fd);
    struct iovec run = runs[0];
    int rc;

    if (own->faults.pretends)
        return pretend(own, runs, count, offset, false);
    rc = shorten(own, &run); /* less than was asked for */
    if (rc)
        return rc;
    if (covers(&run, offset, own->faults.bad_read_at))
        return -EIO;
    if (cut(&run, offset, own->faults.end_at, -ENODATA) ||
        (own->faults.is_stale &&
         cut(&run, offset, (uint64_t)seen_of(own), -ENODATA)))
        return 0;
    return chempi_io_posix.readv(fd, &run, 1, offset);
}

/* Keep what the write will change. */
static int keep(struct own *own, const struct iovec *run, int64_t offset)
{
    struct undo *u = chempi_sys->malloc(sizeof(*u) + run->iov_len);
    struct iovec old;
    ssize_t n;

    if (!u)
        return -ENOMEM;
    old = (struct iovec){u->data, run->iov_len};
    n = chempi_io_posix.readv(own->fd, &old, 1, offset);
    u->offset = offset;
    u->len = n > 0 ? (uint64_t)n : 0;
    (void)pthread_mutex_lock(&own->lock);
    u->next = own->log;
    own->log = u;
    (void)pthread_mutex_unlock(&own->lock);
    return 0;
}

static ssize_t failing_writev(struct chempi_io_fd *fd, const struct iovec *runs,
                              int count, int64_t offset)
{
    struct own *own = own_of(fd);
    struct iovec run = runs[0];
    int rc;

    if (own->faults.pretends)
        return pretend(own, runs, count, offset, true);
    rc = shorten(own, &run);
    if (!rc)
        rc = cut(&run, offset, own->faults.no_space_at, -ENOSPC);
    if (!rc)
        rc = cut(&run, offset, own->faults.quota_at, -EDQUOT);
    if (!rc && covers(&run, offset, own->faults.bad_write_at))
        rc = -EIO;
    if (!rc && own->faults.drop_unsynced)
        rc = keep(own, &run, offset);
    if (!rc)
        see(own, offset + (int64_t)run.iov_len, false);
    return rc ? rc : chempi_io_posix.writev(fd, &run, 1, offset);
}

static int failing_sync(struct chempi_io_fd *fd)
{
    struct own *own = own_of(fd);
    struct chempi_io_stat st = {0};

    if (own->faults.bad_syncs > 0) {
        own->faults.bad_syncs--;
        return -EIO;
    }
    (void)pthread_mutex_lock(&own->lock);
    forget(own);
    (void)chempi_io_posix.stat(fd, &st);
    own->size = st.size;
    (void)pthread_mutex_unlock(&own->lock);
    return chempi_io_posix.sync(fd);
}

static int failing_sync_name(struct chempi_io_fd *fd)
{
    struct own *own = own_of(fd);

    free(own->unnamed);
    own->unnamed = NULL;
    return chempi_io_posix.sync_name(fd);
}

static int failing_refresh(struct chempi_io_fd *fd)
{
    struct chempi_io_stat st = {0};
    int rc = chempi_io_posix.stat(fd, &st);

    if (!rc)
        see(own_of(fd), st.size, true);
    return rc ? rc : chempi_io_posix.refresh(fd);
}

static int failing_lock(struct chempi_io_fd *fd, enum chempi_io_lock how,
                        int64_t offset, int64_t len)
{
    struct own *own = own_of(fd);
    bool is_busy;

    if (own->faults.no_locks)
        return -ENOLCK;
    (void)pthread_mutex_lock(&own->lock);
    is_busy = how != CHEMPI_IO_UNLOCK &&
              chempi_dice_strikes(&own->dice, own->faults.busy_rate);
    (void)pthread_mutex_unlock(&own->lock);
    return is_busy ? -EAGAIN : chempi_io_posix.lock(fd, how, offset, len);
}

static enum chempi_io_home failing_home(struct chempi_io_fd *fd)
{
    return chempi_io_posix.home(fd);
}

static bool failing_can_map(struct chempi_io_fd *fd)
{
    (void)fd;
    return false; /* everything is to come by here */
}

const struct chempi_io_access chempi_io_failing = {
    .name = "failing",
    .open = failing_open,
    .close = failing_close,
    .remove = failing_remove,
    .stat = failing_stat,
    .truncate = failing_truncate,
    .reserve = failing_reserve,
    .readv = failing_readv,
    .writev = failing_writev,
    .sync = failing_sync,
    .sync_name = failing_sync_name,
    .refresh = failing_refresh,
    .lock = failing_lock,
    .home = failing_home,
    .can_map = failing_can_map,
};
