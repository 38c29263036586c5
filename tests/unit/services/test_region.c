/* SPDX-License-Identifier: BSD-3-Clause */
/* libchempi/services/region. */
#define _GNU_SOURCE /* memfd_create */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libchempi/services/region.h"
#include "tests/unit/base/rig.h"

static int make_file(uint32_t magic, uint32_t version, uint32_t local_size)
{
    uint64_t len = chempi_region_reserved(local_size);
    struct chempi_region_header header = {
        .magic = magic,
        .version = version,
        .local_size = local_size,
    };
    int fd = memfd_create("test", MFD_CLOEXEC);

    cr_assert(fd >= 0);
    cr_assert_eq(posix_fallocate(fd, 0, (off_t)len), 0);
    cr_assert_eq(pwrite(fd, &header, sizeof(header), 0), sizeof(header));
    return fd;
}

static int good_file(uint32_t local_size)
{
    return make_file(CHEMPI_REGION_MAGIC, CHEMPI_REGION_VERSION, local_size);
}

Test(region, a_world_of_one_makes_its_own)
{
    struct chempi_region *region;
    char *area;

    cr_assert_eq(chempi_region_open(-1, 1, &region, NULL), 0);
    cr_assert_eq(chempi_region_wakes(region)->state, CHEMPI_WAKE_AWAKE);
    cr_assert_eq(chempi_region_extend(region, 100, (void **)&area, NULL), 0);
    cr_assert_eq(chempi_region_reserve(region, area, 100, NULL), 0);
    for (int i = 0; i < 4096; i++)
        cr_assert_eq(area[i], 0);
    chempi_region_close(region);
    chempi_region_close(NULL);
}

Test(region, areas_lie_at_the_same_place_for_all_however_late_they_come)
{
    int fd = good_file(2);
    int fd2 = dup(fd);
    struct chempi_region *a;
    struct chempi_region *b;
    char *a1;
    char *a2;
    char *b1;
    char *b2;

    cr_assert_eq(chempi_region_open(fd, 2, &a, NULL), 0);
    cr_assert_eq(chempi_region_extend(a, 5000, (void **)&a1, NULL), 0);
    cr_assert_eq(chempi_region_extend(a, 1 << 20, (void **)&a2, NULL), 0);
    cr_assert_eq(chempi_region_reserve(a, a1 + 4999, 1, NULL), 0);
    cr_assert_eq(chempi_region_reserve(a, a2 + 70000, 10, NULL), 0);
    a1[4999] = 'x';
    a2[70000] = 'y';
    cr_assert_eq(chempi_region_open(fd2, 2, &b, NULL), 0);
    cr_assert_eq(chempi_region_extend(b, 5000, (void **)&b1, NULL), 0);
    cr_assert_eq(chempi_region_extend(b, 1 << 20, (void **)&b2, NULL), 0);
    cr_assert_eq(b1[4999], 'x');
    cr_assert_eq(b2[70000], 'y');
    chempi_region_close(a);
    chempi_region_close(b);
}

/* A region with one area, and a look at its file. */
struct seen {
    struct chempi_region *region;
    char *area;
    int look;
    struct stat before; /* with nothing reserved in the area */
};

static void open_seen(struct seen *s, size_t len)
{
    int fd = good_file(1);

    s->look = dup(fd);
    cr_assert_eq(chempi_region_open(fd, 1, &s->region, NULL), 0);
    cr_assert_eq(chempi_region_extend(s->region, len, (void **)&s->area, NULL),
                 0);
    cr_assert_eq(fstat(s->look, &s->before), 0);
}

/* Bytes that the file has taken since. */
static long long taken(const struct seen *s)
{
    struct stat now;

    cr_assert_eq(fstat(s->look, &now), 0);
    cr_assert_eq(now.st_size, s->before.st_size);
    return (long long)(now.st_blocks - s->before.st_blocks) * 512;
}

static void close_seen(struct seen *s)
{
    chempi_region_close(s->region);
    (void)close(s->look);
}

Test(region, whoever_comes_first_sets_the_words_that_ranks_compare)
{
    int fd = good_file(2);
    int fd2 = dup(fd);
    struct chempi_region *a;
    struct chempi_region *b;
    uint64_t value = 0;

    cr_assert_eq(chempi_region_open(fd, 2, &a, NULL), 0);
    cr_assert_eq(chempi_region_open(fd2, 2, &b, NULL), 0);
    cr_assert(chempi_region_compare(a, 0, &value));
    value = 5;
    cr_assert_not(chempi_region_compare(b, 0, &value));
    cr_assert_eq(value, 0);
    value = 5;
    cr_assert(chempi_region_compare(b, CHEMPI_REGION_WORDS - 1, &value));
    value = 6;
    cr_assert_not(chempi_region_compare(a, CHEMPI_REGION_WORDS - 1, &value));
    cr_assert_eq(value, 5);
    chempi_region_close(a);
    chempi_region_close(b);
}

/* What another process of the node may have written there. */
static void write_lanes(int fd, uint32_t lanes)
{
    cr_assert_eq(pwrite(fd, &lanes, sizeof(lanes),
                        offsetof(struct chempi_region_header, lanes)),
                 sizeof(lanes));
}

Test(region, the_first_process_says_how_many_lanes_there_may_be)
{
    int fd = good_file(2);
    int fd2 = dup(fd);
    struct chempi_region *a;
    struct chempi_region *b;
    uint32_t lanes = 3;

    cr_assert_eq(chempi_region_open(fd, 2, &a, NULL), 0);
    cr_assert_eq(chempi_region_open(fd2, 2, &b, NULL), 0);
    cr_assert_eq(chempi_region_agree_lanes(a, 8, &lanes, NULL), 0);
    cr_assert_eq(lanes, 3);
    lanes = 1;
    cr_assert_eq(chempi_region_agree_lanes(b, 8, &lanes, NULL), 0);
    cr_assert_eq(lanes, 3);
    chempi_region_close(a);
    chempi_region_close(b);
}

Test(region, a_number_of_lanes_that_nobody_can_have_is_refused)
{
    static const uint32_t bad[] = {9, 0x80000000, UINT32_MAX};
    int fd = good_file(1);
    struct chempi_region *region;
    struct chempi_err err;
    uint32_t lanes = 2;

    cr_assert_eq(chempi_region_open(fd, 1, &region, NULL), 0);
    write_lanes(fd, 8);
    cr_assert_eq(chempi_region_agree_lanes(region, 8, &lanes, &err), 0);
    cr_assert_eq(lanes, 8);
    lanes = 2;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        write_lanes(fd, bad[i]);
        err.text[0] = '\0';
        cr_assert_eq(chempi_region_agree_lanes(region, 8, &lanes, &err),
                     -EPROTO);
        cr_assert_eq(lanes, 2);
        cr_assert_neq(err.text[0], '\0');
    }
    chempi_region_close(region);
}

Test(region, only_what_is_reserved_takes_memory)
{
    struct seen s;

    open_seen(&s, 1 << 30);
    cr_assert_lt(s.before.st_blocks * 512, 1 << 16);
    cr_assert_eq(chempi_region_reserve(s.region, s.area + 4096, 8192, NULL), 0);
    cr_assert_eq(chempi_region_reserve(s.region, s.area + 5000, 3000, NULL), 0);
    cr_assert_eq(taken(&s), 8192);
    close_seen(&s);
}

Test(region, pages_that_are_given_back_are_zero_again)
{
    struct seen s;
    int here;

    open_seen(&s, 1 << 20);
    cr_assert_eq(chempi_region_reserve(s.region, s.area, 4 * 4096, NULL), 0);
    memset(s.area, 7, 4 * 4096);
    rig_fail(RIG_FALLOCATE, 1, EINTR, 0);
    /* The first and the last page are used by others, too. */
    cr_assert_eq(chempi_region_release(s.region, s.area + 1, 3 * 4096), 0);
    rig_reset();
    cr_assert_eq(taken(&s), 2 * 4096);
    for (int i = 0; i < 4; i++)
        cr_assert_eq(s.area[i * 4096 + 100], i == 0 || i == 3 ? 7 : 0);
    cr_assert_eq(chempi_region_release(s.region, s.area + 5000, 3000), 0);
    cr_assert_eq(chempi_region_release(s.region, &here, 4096), -EINVAL);
    rig_fail(RIG_FALLOCATE, 1, ENODEV, 0);
    cr_assert_eq(chempi_region_release(s.region, s.area, 4096), -ENODEV);
    rig_reset();
    close_seen(&s);
}

Test(region, what_is_laid_out_is_mapped_where_it_is_used)
{
    const uint64_t pages = UINT64_C(1) << 22;
    struct seen s;
    uint64_t at;
    char *part;
    char *same;
    char *after;

    open_seen(&s, 4096);
    cr_assert_eq(chempi_region_lay_out(s.region, pages * 4096, &at, NULL), 0);
    cr_assert_eq(chempi_region_extend(s.region, 4096, (void **)&after, NULL),
                 0);
    cr_assert_eq(fstat(s.look, &s.before), 0);
    cr_assert_eq(chempi_region_show(s.region, at + 9 * 4096, 4 * 4096,
                                    (void **)&part, NULL),
                 0);
    cr_assert_eq(
        chempi_region_map(s.region, at + 10 * 4096, 4096, (void **)&same, NULL),
        0);
    cr_assert_eq(chempi_region_reserve(s.region, part + 4096, 4096, NULL), 0);
    cr_assert_eq(
        chempi_region_reserve_at(s.region, at + 10 * 4096 + 5, 4000, NULL), 0);
    cr_assert_eq(taken(&s), 4096);
    part[4096] = 'x';
    cr_assert_eq(same[0], 'x');
    cr_assert_eq(munmap(same, 4096), 0);
    chempi_region_hide(s.region, part);
    cr_assert_eq(chempi_region_reserve(s.region, part, 1, NULL), -EINVAL);
    cr_assert_eq(chempi_region_reserve(s.region, after, 1, NULL), 0);
    close_seen(&s);
}

static void expect_refused(int fd, uint32_t local_size, int code)
{
    struct chempi_region *region = NULL;
    struct chempi_err err = {.text = ""};

    cr_assert_eq(chempi_region_open(fd, local_size, &region, &err), code);
    cr_assert_null(region);
    cr_assert_neq(err.text[0], '\0');
    cr_assert_eq(fcntl(fd, F_GETFD), -1); /* taken over, hence closed */
}

Test(region, a_file_of_another_kind_is_refused)
{
    int fd = memfd_create("short", MFD_CLOEXEC);

    expect_refused(fd, 1, -EPROTO);
    expect_refused(make_file(1, CHEMPI_REGION_VERSION, 2), 2, -EPROTO);
    expect_refused(make_file(CHEMPI_REGION_MAGIC, 99, 2), 2, -EPROTO);
    expect_refused(good_file(2), 3, -EPROTO);
    expect_refused(good_file(2), 0, -EINVAL);
    expect_refused(good_file(2), UINT32_MAX, -EINVAL);
}

Test(region, odd_wishes_are_refused)
{
    struct chempi_region *region;
    struct chempi_err err;
    void *area;
    int here;

    cr_assert_eq(chempi_region_open(-1, 1, &region, NULL), 0);
    cr_assert_eq(chempi_region_extend(region, 0, &area, &err), -EINVAL);
    cr_assert_eq(chempi_region_extend(region, SIZE_MAX, &area, &err), -EINVAL);
    cr_assert_eq(chempi_region_reserve(region, &here, 4, &err), -EINVAL);
    cr_assert_eq(chempi_region_extend(region, 4096, &area, &err), 0);
    cr_assert_eq(chempi_region_reserve(region, area, 4097, &err), -EINVAL);
    cr_assert_eq(chempi_region_reserve(region, area, SIZE_MAX, &err), -EINVAL);
    cr_assert_eq(chempi_region_reserve(region, area, 0, &err), 0);
    for (int i = 0; i < 70 && chempi_region_extend(region, 1, &area, &err) == 0;
         i++)
        ;
    cr_assert_eq(err.code, -ENOSPC);
    chempi_region_close(region);
}

Test(region, exhaustion_is_an_error_that_names_the_remedy)
{
    struct chempi_region *region;
    struct chempi_err err;
    void *area;

    cr_assert_eq(chempi_region_open(-1, 1, &region, NULL), 0);
    cr_assert_eq(chempi_region_extend(region, 1 << 20, &area, NULL), 0);
    rig_fail(RIG_FALLOCATE, 1, ENOSPC, 0);
    cr_assert_eq(chempi_region_reserve(region, area, 1 << 20, &err), -ENOSPC);
    cr_assert_not_null(strstr(err.text, "1024 KiB"));
    cr_assert_not_null(strstr(err.text, "control group"));
    rig_fail(RIG_FALLOCATE, 1, EINTR, 0); /* a signal is no reason to fail */
    cr_assert_eq(chempi_region_reserve(region, area, 1 << 20, &err), 0);
    rig_reset();
    chempi_region_close(region);
}

Test(region, a_file_size_limit_is_an_error_not_a_signal)
{
    struct rlimit limit = {.rlim_cur = 1 << 20, .rlim_max = 1 << 20};
    struct chempi_region *region;
    struct chempi_err err;
    void *area;

    cr_assert_eq(chempi_region_open(-1, 1, &region, NULL), 0);
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    cr_assert_eq(chempi_region_extend(region, 2 << 20, &area, &err), -EFBIG);
    cr_assert_not_null(strstr(err.text, "ulimit -f"));
    cr_assert_eq(chempi_region_extend(region, 65536, &area, &err), 0);
    chempi_region_close(region);
}

Test(region, each_call_that_fails_while_opening_is_survived)
{
    static const enum rig_call calls[] = {RIG_MALLOC, RIG_MEMFD, RIG_FALLOCATE,
                                          RIG_MMAP};

    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(calls); i++) {
        struct chempi_region *region = NULL;
        struct chempi_err err = {.text = ""};

        rig_fail(calls[i], 1, ENOMEM, 0);
        cr_assert_eq(chempi_region_open(-1, 1, &region, &err), -ENOMEM);
        cr_assert_null(region);
        cr_assert_neq(err.text[0], '\0');
        rig_reset();
    }
}

Test(region, each_call_that_fails_while_extending_is_survived)
{
    static const enum rig_call calls[] = {RIG_FALLOCATE, RIG_MMAP};
    struct chempi_region *region;
    void *area;

    cr_assert_eq(chempi_region_open(-1, 1, &region, NULL), 0);
    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(calls); i++) {
        struct chempi_err err = {.text = ""};

        rig_fail(calls[i], 1, ENOMEM, 0);
        cr_assert_eq(chempi_region_extend(region, 4096, &area, &err), -ENOMEM);
        cr_assert_neq(err.text[0], '\0');
        rig_reset();
        cr_assert_eq(chempi_region_extend(region, 4096, &area, &err), 0);
    }
    chempi_region_close(region);
}
