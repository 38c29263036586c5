/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The node's shared-memory region; see region.h.
 *
 * Every area is a mapping of its own at the file offset where the previous
 * one ended (G1), so that a pointer tells its area and thereby its offset.
 * The length of the file only ever grows: whoever extends first lengthens it by
 * allocating the area's last page, which cannot undo what a faster process did,
 * as setting the length could.
 */
#define _GNU_SOURCE /* memfd_create */
#include "libchempi/services/region.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/sys.h"
#include "common/fd/file.h"

#define PAGE 4096u       /* bytes; granularity of layout */
#define AREA_MAX 64u     /* areas of one region */
#define LOCAL_MAX 65536u /* ranks of one node */
#define FILE_MAX_BYTES (UINT64_C(1) << 46)

struct area {
    char *start;
    uint64_t len;
    uint64_t offset; /* in the file */
};

struct chempi_region {
    int fd;
    uint32_t local_size;
    bool is_fenced;
    pthread_mutex_t lock; /* of the areas */
    uint32_t area_count;
    uint64_t end;                /* file offset where the next area starts */
    struct area areas[AREA_MAX]; /* the first is header and wake lines */
};

static int fail_reserve(struct chempi_err *err, int code, uint64_t len)
{
    return chempi_err_set(
        err, code,
        "out of shared memory: cannot reserve %" PRIu64
        " KiB (%s); raise the memory limit of the job's control group (or of "
        "the machine), or start fewer ranks on this node",
        len / 1024, chempi_err_name(code));
}

static int check_file_limit(uint64_t end, struct chempi_err *err)
{
    const uint64_t limit = chempi_file_size_limit();

    if (end > limit)
        return chempi_err_set(
            err, -EFBIG,
            "out of shared memory: the memory file needs %" PRIu64
            " KiB, the file-size limit is %" PRIu64
            " KiB; raise it with \"ulimit -f unlimited\"",
            end / 1024, limit / 1024);
    return 0;
}

static int allocate(struct chempi_region *region, uint64_t offset, uint64_t len,
                    struct chempi_err *err)
{
    const int code = chempi_file_reserve(region->fd, offset, len);

    return code < 0 ? fail_reserve(err, code, len) : 0;
}

/* Make the file at least `end` bytes long. */
static int grow(struct chempi_region *region, uint64_t end,
                struct chempi_err *err)
{
    struct stat st;
    int rc;

    if (fstat(region->fd, &st) < 0)
        return chempi_err_set(err, -errno,
                              "cannot look at the shared memory file: %s",
                              chempi_err_name(errno));
    if (st.st_size >= 0 && (uint64_t)st.st_size >= end)
        return 0;
    rc = check_file_limit(end, err);
    if (rc < 0)
        return rc;
    return allocate(region, end - PAGE, PAGE, err);
}

int chempi_region_map(struct chempi_region *region, uint64_t offset,
                      uint64_t len, void **out, struct chempi_err *err)
{
    void *ptr =
        chempi_sys->mmap(NULL, len, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_NORESERVE, region->fd, (off_t)offset);

    /* EAGAIN, past the limit of locked memory, would say: try again. */
    if (ptr == MAP_FAILED)
        return chempi_err_set(err, errno == EAGAIN ? -ENOMEM : -errno,
                              "cannot map %" PRIu64
                              " KiB of shared memory: %s; raise the "
                              "address-space limit (\"ulimit -v unlimited\")",
                              len / 1024, chempi_err_name(errno));
    *out = ptr;
    return 0;
}

static int add_area(struct chempi_region *region, const struct area *area,
                    struct chempi_err *err)
{
    int rc = 0;

    (void)pthread_mutex_lock(&region->lock);
    if (region->area_count == AREA_MAX)
        rc =
            chempi_err_set(err, -ENOSPC, "more than %u shared areas", AREA_MAX);
    else
        region->areas[region->area_count++] = *area;
    (void)pthread_mutex_unlock(&region->lock);
    return rc;
}

int chempi_region_show(struct chempi_region *region, uint64_t offset,
                       uint64_t len, void **out, struct chempi_err *err)
{
    struct area area = {.len = len, .offset = offset};
    void *ptr = NULL;
    int rc = chempi_region_map(region, offset, len, &ptr, err);

    if (rc < 0)
        return rc;
    area.start = ptr;
    rc = add_area(region, &area, err);
    if (rc < 0) {
        (void)chempi_sys->munmap(ptr, len);
        return rc;
    }
    *out = ptr;
    return 0;
}

void chempi_region_hide(struct chempi_region *region, void *start)
{
    struct area area = {.start = NULL};

    (void)pthread_mutex_lock(&region->lock);
    for (uint32_t i = 0; i < region->area_count; i++)
        if (region->areas[i].start == start) {
            area = region->areas[i];
            region->areas[i] = region->areas[--region->area_count];
            break;
        }
    (void)pthread_mutex_unlock(&region->lock);
    if (area.start)
        (void)chempi_sys->munmap(area.start, area.len);
}

/* The next len bytes, which the file has. */
static int map_next(struct chempi_region *region, uint64_t len, void **out,
                    struct chempi_err *err)
{
    int rc = chempi_region_show(region, region->end, len, out, err);

    if (rc == 0)
        region->end += len;
    return rc;
}

static_assert(sizeof(struct chempi_region_header) <=
                      CHEMPI_REGION_WORDS_OFFSET &&
                  CHEMPI_REGION_WORDS_OFFSET +
                          CHEMPI_REGION_WORDS * sizeof(uint64_t) <=
                      CHEMPI_REGION_WAKE_OFFSET,
              "header, words, then wake lines");

static int check_header(const void *start, uint32_t local_size,
                        struct chempi_err *err)
{
    struct chempi_region_header header;

    memcpy(&header, start, sizeof(header)); /* others can write: copy once */
    if (header.magic != CHEMPI_REGION_MAGIC ||
        header.version != CHEMPI_REGION_VERSION ||
        header.local_size != local_size)
        return chempi_err_set(
            err, -EPROTO,
            "the shared memory file has magic %08" PRIx32 ", version %" PRIu32
            " and %" PRIu32 " ranks; expected %08" PRIx32 ", %" PRIu32
            " and %" PRIu32 "; library and launcher do not match",
            header.magic, header.version, header.local_size,
            CHEMPI_REGION_MAGIC, CHEMPI_REGION_VERSION, local_size);
    return 0;
}

/* W5 of wake.h: the first rank decides for all. */
static void agree_on_order(struct chempi_region *region)
{
    struct chempi_region_header *header = (void *)region->areas[0].start;
    struct chempi_wake *wakes = chempi_region_wakes(region);
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    uint32_t mine = cores > 0 && region->local_size > (unsigned long)cores
                        ? CHEMPI_WAKE_ORDER_FENCE
                        : CHEMPI_WAKE_ORDER_BARRIER;
    uint32_t order = CHEMPI_WAKE_ORDER_NONE;

    if (atomic_compare_exchange_strong(&header->wake_order, &order, mine))
        order = mine;
    region->is_fenced = order == CHEMPI_WAKE_ORDER_FENCE;
    for (uint32_t i = 0; i < region->local_size; i++)
        atomic_store_explicit(&wakes[i].order, order, memory_order_relaxed);
}

int chempi_region_agree_lanes(struct chempi_region *region, uint32_t max,
                              uint32_t *lanes, struct chempi_err *err)
{
    struct chempi_region_header *header = (void *)region->areas[0].start;
    uint32_t there = 0;

    if (atomic_compare_exchange_strong(&header->lanes, &there, *lanes))
        return 0;
    if (there > max)
        return chempi_err_set(err, -EPROTO,
                              "the shared memory file has %" PRIu32
                              " lanes of %" PRIu32
                              " at the most; library and launcher do not match",
                              there, max);
    *lanes = there;
    return 0;
}

bool chempi_region_is_fenced(const struct chempi_region *region)
{
    return region->is_fenced;
}

/* The caller's file: long enough for its own header? */
static int open_shared(struct chempi_region *region, struct chempi_err *err)
{
    uint64_t len = chempi_region_reserved(region->local_size);
    struct stat st;
    void *start;
    int rc;

    if (fstat(region->fd, &st) < 0)
        return chempi_err_set(err, -errno,
                              "cannot look at the shared memory file: %s",
                              chempi_err_name(errno));
    if (st.st_size < 0 || (uint64_t)st.st_size < len)
        return chempi_err_set(err, -EPROTO,
                              "the shared memory file is too short: %" PRId64
                              " bytes for %" PRIu32 " ranks",
                              (int64_t)st.st_size, region->local_size);
    rc = map_next(region, len, &start, err);
    if (rc < 0)
        return rc;
    return check_header(start, region->local_size, err);
}

/* A world of one: a file of its own. */
static int open_private(struct chempi_region *region, struct chempi_err *err)
{
    uint64_t len = chempi_region_reserved(region->local_size);
    struct chempi_region_header header = {
        .magic = CHEMPI_REGION_MAGIC,
        .version = CHEMPI_REGION_VERSION,
        .local_size = region->local_size,
    };
    void *start;
    int rc;

    region->fd = chempi_sys->memfd_create("chempi", MFD_CLOEXEC);
    if (region->fd < 0)
        return chempi_err_set(err, -errno,
                              "cannot create a shared memory file: %s",
                              chempi_err_name(errno));
    rc = check_file_limit(len, err);
    if (rc == 0)
        rc = allocate(region, 0, len, err);
    if (rc == 0)
        rc = map_next(region, len, &start, err);
    if (rc < 0)
        return rc;
    memcpy(start, &header, sizeof(header));
    return 0;
}

int chempi_region_open(int fd, uint32_t local_size, struct chempi_region **out,
                       struct chempi_err *err)
{
    struct chempi_region *region = NULL;
    int rc;

    if (local_size == 0 || local_size > LOCAL_MAX)
        rc = chempi_err_set(err, -EINVAL, "%" PRIu32 " ranks on one node",
                            local_size);
    else {
        region = chempi_sys->calloc(1, sizeof(*region));
        rc = region ? 0 : chempi_err_set(err, -ENOMEM, "out of memory");
    }
    if (rc < 0) {
        if (fd >= 0)
            (void)close(fd); /* only read through the mapping */
        return rc;
    }
    (void)pthread_mutex_init(&region->lock, NULL);
    region->fd = fd;
    region->local_size = local_size;
    rc = fd >= 0 ? open_shared(region, err) : open_private(region, err);
    if (rc < 0) {
        chempi_region_close(region);
        return rc;
    }
    agree_on_order(region);
    *out = region;
    return 0;
}

void chempi_region_close(struct chempi_region *region)
{
    if (!region)
        return;
    for (uint32_t i = 0; i < region->area_count; i++)
        (void)chempi_sys->munmap(region->areas[i].start, region->areas[i].len);
    if (region->fd >= 0)
        (void)close(region->fd); /* memory file: nothing to write back */
    (void)pthread_mutex_destroy(&region->lock);
    free(region);
}

struct chempi_wake *chempi_region_wakes(struct chempi_region *region)
{
    return (struct chempi_wake *)(void *)(region->areas[0].start +
                                          CHEMPI_REGION_WAKE_OFFSET);
}

bool chempi_region_compare(struct chempi_region *region, uint32_t i,
                           uint64_t *value)
{
    char *words = region->areas[0].start + CHEMPI_REGION_WORDS_OFFSET;
    uint64_t there = 0;

    if (atomic_compare_exchange_strong((_Atomic uint64_t *)(void *)words + i,
                                       &there, *value + 1))
        return true;
    *value = there - 1;
    return false;
}

/* A lock of the process's, on one byte, which no child of it gets. */
static struct flock lock_of(uint32_t local_rank)
{
    return (struct flock){.l_type = F_WRLCK,
                          .l_whence = SEEK_SET,
                          .l_start = (off_t)local_rank,
                          .l_len = 1};
}

int chempi_region_mark(struct chempi_region *region, uint32_t local_rank,
                       struct chempi_err *err)
{
    struct flock lock = lock_of(local_rank);

    if (fcntl(region->fd, F_SETLK, &lock) == 0)
        return 0;
    return chempi_err_set(err, -errno, "cannot lock shared memory: %s",
                          chempi_err_name(-errno));
}

bool chempi_region_is_marked(const struct chempi_region *region,
                             uint32_t local_rank)
{
    struct flock lock = lock_of(local_rank);

    return fcntl(region->fd, F_GETLK, &lock) < 0 || lock.l_type != F_UNLCK;
}

/* *len: whole pages; the file has them. */
static int prepare(struct chempi_region *region, uint64_t *len,
                   struct chempi_err *err)
{
    if (*len == 0 || *len > FILE_MAX_BYTES - region->end)
        return chempi_err_set(err, -EINVAL,
                              "an area of %" PRIu64 " bytes cannot be laid out",
                              *len);
    *len = (*len + PAGE - 1) & ~(uint64_t)(PAGE - 1);
    return grow(region, region->end + *len, err);
}

int chempi_region_extend(struct chempi_region *region, size_t len, void **out,
                         struct chempi_err *err)
{
    uint64_t bytes = len;
    int rc = prepare(region, &bytes, err);

    return rc < 0 ? rc : map_next(region, bytes, out, err);
}

int chempi_region_lay_out(struct chempi_region *region, uint64_t len,
                          uint64_t *offset, struct chempi_err *err)
{
    int rc = prepare(region, &len, err);

    if (rc < 0)
        return rc;
    *offset = region->end;
    region->end += len;
    return 0;
}

/* Where [ptr, ptr + len) lies in the file, or false. */
static bool find_offset(struct chempi_region *region, const char *ptr,
                        size_t len, uint64_t *offset)
{
    bool is_found = false;

    (void)pthread_mutex_lock(&region->lock);
    for (uint32_t i = 0; !is_found && i < region->area_count; i++) {
        const struct area *area = &region->areas[i];

        is_found = ptr >= area->start && ptr < area->start + area->len &&
                   len <= (size_t)(area->start + area->len - ptr);
        if (is_found)
            *offset = area->offset + (uint64_t)(ptr - area->start);
    }
    (void)pthread_mutex_unlock(&region->lock);
    return is_found;
}

int chempi_region_reserve_at(struct chempi_region *region, uint64_t offset,
                             uint64_t len, struct chempi_err *err)
{
    uint64_t end = (offset + len + PAGE - 1) & ~(uint64_t)(PAGE - 1);

    if (len == 0)
        return 0;
    offset &= ~(uint64_t)(PAGE - 1);
    return allocate(region, offset, end - offset, err);
}

int chempi_region_reserve(struct chempi_region *region, void *ptr, size_t len,
                          struct chempi_err *err)
{
    uint64_t offset;

    if (!find_offset(region, ptr, len, &offset))
        return chempi_err_set(err, -EINVAL,
                              "memory to reserve lies in no shared area");
    return chempi_region_reserve_at(region, offset, len, err);
}

int chempi_region_release(struct chempi_region *region, void *ptr, size_t len)
{
    uint64_t first;
    uint64_t end;

    if (!find_offset(region, ptr, len, &first))
        return -EINVAL;
    end = (first + len) & ~(uint64_t)(PAGE - 1);
    first = (first + PAGE - 1) & ~(uint64_t)(PAGE - 1);
    if (first >= end)
        return 0;
    do {
        if (chempi_sys->fallocate(region->fd,
                                  FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                  (off_t)first, (off_t)(end - first)) == 0)
            return 0;
    } while (errno == EINTR);
    return -errno;
}
