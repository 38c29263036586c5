/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The access layer: what files need of a file system, as a table, so that a
 * failing one can take its place in tests. Results are those of the system
 * calls with -errno instead of -1. A call may transfer less than it was asked
 * for; chempi_io_*_runs() go on where it stopped.
 * Blocking; threads: any.
 *
 * A write beyond the limit of file sizes (RLIMIT_FSIZE) would end the process
 * by SIGXFSZ. Whose signals these are is the program's to say, so the layer
 * compares with the limit, as it was when the file was opened, before it asks
 * the system: -EFBIG.
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_IO_ACCESS_ACCESS_H
#define CHEMPI_LIBCHEMPI_DIDL_IO_ACCESS_ACCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

struct chempi_file;
struct chempi_io_fd;

enum chempi_io_lock {
    CHEMPI_IO_UNLOCK,
    CHEMPI_IO_LOCK_SHARED,
    CHEMPI_IO_LOCK_EXCLUSIVE
};

/* Where the files of a file system are. */
enum chempi_io_home {
    CHEMPI_IO_ELSEWHERE, /* with other nodes, or nobody knows */
    CHEMPI_IO_ON_DISK,   /* one of this node's own */
    CHEMPI_IO_IN_MEMORY  /* of this node */
};

struct chempi_io_stat {
    int64_t size;
    uint64_t inode;
    mode_t mode;
    int64_t born_ns; /* when the file was made; 0: nobody knows */
};

/* Every member is mandatory. */
struct chempi_io_access {
    const char *name;
    int (*open)(struct chempi_io_fd *fd, const char *path, int flags,
                mode_t mode);
    int (*close)(struct chempi_io_fd *fd);
    int (*remove)(const char *path);
    int (*stat)(struct chempi_io_fd *fd, struct chempi_io_stat *out);
    int (*truncate)(struct chempi_io_fd *fd, int64_t size);
    /* Room for [offset, offset + len); the file grows if it must. -EOPNOTSUPP
     * where the file system cannot. */
    int (*reserve)(struct chempi_io_fd *fd, int64_t offset, int64_t len);
    ssize_t (*readv)(struct chempi_io_fd *fd, const struct iovec *runs,
                     int count, int64_t offset);
    ssize_t (*writev)(struct chempi_io_fd *fd, const struct iovec *runs,
                      int count, int64_t offset);
    int (*sync)(struct chempi_io_fd *fd);
    /* The file's name in its folder, which sync() need not bring to the
     * disk. */
    int (*sync_name)(struct chempi_io_fd *fd);
    /* After a sync: what this node remembers of the file is asked for anew,
     * where other nodes may have changed it unseen. */
    int (*refresh)(struct chempi_io_fd *fd);
    /* Of a range of bytes, among open files; blocks until it is there. */
    int (*lock)(struct chempi_io_fd *fd, enum chempi_io_lock how,
                int64_t offset, int64_t len);
    enum chempi_io_home (*home)(struct chempi_io_fd *fd);
    /* May files of this file system be written through mappings, which other
     * processes of this node see at once? */
    bool (*can_map)(struct chempi_io_fd *fd);
};

struct chempi_io_fd {
    const struct chempi_io_access *ops;
    int number;
    uint64_t size_limit; /* of this process's files, bytes */
    void *own;           /* the layer's */
};

/* Linux transfers at most so many bytes at a time. */
#define CHEMPI_IO_TRANSFER_MAX UINT64_C(0x7ffff000)

extern const struct chempi_io_access chempi_io_posix;
extern const struct chempi_io_access chempi_io_failing;

/* The layer for files opened from now on: chempi_io_failing if the environment
 * has CHEMPI_IO_FAULTS, else chempi_io_posix. */
const struct chempi_io_access *chempi_io_access_choose(void);

/*
 * All of the runs, of which there are at most CHEMPI_IO_RUNS_MAX, from offset
 * on; the list is used up. Returns 0 or -errno; *done counts the bytes that
 * were transferred, also before an error. A read that ends early has met the
 * end of the file. A write that transfers nothing is -EIO.
 */
#define CHEMPI_IO_RUNS_MAX 256
int chempi_io_read_runs(struct chempi_file *file, struct iovec *runs, int count,
                        int64_t offset, uint64_t *done);
int chempi_io_write_runs(struct chempi_file *file, struct iovec *runs,
                         int count, int64_t offset, uint64_t *done);

/*
 * Lock [offset, offset + len) of the file against other processes and other
 * open files, and against this process's other threads, as locks of an open
 * file do not exclude those. What may pass (EAGAIN, EDEADLK) is tried again
 * for about a second. -errno: it is not locked.
 */
int chempi_io_lock_range(struct chempi_file *file, enum chempi_io_lock how,
                         int64_t offset, int64_t len);
/* Can ranges be locked at all? 0 or -errno. */
int chempi_io_probe_locks(struct chempi_file *file);
void chempi_io_unlock_range(struct chempi_file *file, int64_t offset,
                            int64_t len);

#endif
