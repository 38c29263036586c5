/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE /* memfd_create */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "common/base/sys.h"
#include "common/fd/file.h"

Test(file, the_beginning_of_a_file_is_read_and_ended)
{
    const int fd = memfd_create("test", 0);
    char path[64];
    char text[16];

    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    memset(text, 'x', sizeof(text));
    cr_assert_eq(chempi_file_read(path, text, sizeof(text)), 0);
    cr_assert_str_eq(text, "");
    cr_assert_eq(write(fd, "hello", 5), 5);
    cr_assert_eq(chempi_file_read(path, text, sizeof(text)), 5);
    cr_assert_str_eq(text, "hello");
    cr_assert_eq(chempi_file_read(path, text, 6), 5);
    cr_assert_str_eq(text, "hello");
    cr_assert_eq(chempi_file_read(path, text, 4), 3);
    cr_assert_str_eq(text, "hel");
    cr_assert_eq(chempi_file_read(path, text, 1), 0);
    cr_assert_str_eq(text, "");
    (void)close(fd);
}

Test(file, what_cannot_be_read_is_an_error_and_empty)
{
    char text[8] = "before";

    cr_assert_eq(chempi_file_read("/no/such/file", text, sizeof(text)),
                 -ENOENT);
    cr_assert_str_eq(text, "");
    cr_assert_eq(chempi_file_read("/proc", text, sizeof(text)), -EISDIR);
    cr_assert_str_eq(text, "");
}

static unsigned turns;

/* A byte at a time, and an interrupt before each. */
static ssize_t little(int fd, const void *data, size_t len)
{
    if (turns++ % 2 == 0) {
        errno = EINTR;
        return -1;
    }
    return write(fd, data, len ? 1 : 0);
}

static ssize_t a_little(int fd, void *data, size_t len)
{
    if (turns++ % 2 == 0) {
        errno = EINTR;
        return -1;
    }
    return read(fd, data, len ? 1 : 0);
}

Test(file, all_bytes_go_and_come_whatever_a_call_takes)
{
    struct chempi_sys calls = chempi_sys_libc;
    char text[6] = "";
    int fds[2];

    calls.write = little;
    calls.read = a_little;
    chempi_sys = &calls;
    cr_assert_eq(pipe(fds), 0);
    cr_expect_eq(chempi_file_write_all(fds[1], "hello", 5), 0);
    cr_expect_eq(chempi_file_read_all(fds[0], text, 4), 0);
    cr_expect_str_eq(text, "hell");
    chempi_file_close(fds[1]);
    cr_expect_eq(chempi_file_read_all(fds[0], text, 4), -EPIPE);
    chempi_file_close(fds[0]);
    chempi_file_close(-1);
    cr_expect_eq(chempi_file_write_all(fds[1], "x", 1), -EBADF);
    chempi_sys = &chempi_sys_libc;
}

/* A signal comes again and again, as of a profiler, and undoes the call. */
static int undone(int fd, int mode, off_t off, off_t len)
{
    sigset_t now;

    (void)pthread_sigmask(SIG_BLOCK, NULL, &now);
    if (++turns < 100 && (!sigismember(&now, SIGPROF) || turns == 2)) {
        errno = EINTR;
        return -1;
    }
    return chempi_sys_libc.fallocate(fd, mode, off, len);
}

Test(file, signals_that_come_often_do_not_keep_memory_away)
{
    const int fd = memfd_create("test", 0);
    struct chempi_sys calls = chempi_sys_libc;
    struct stat st;
    sigset_t now;

    calls.fallocate = undone;
    chempi_sys = &calls;
    turns = 0;
    cr_expect_eq(chempi_file_reserve(fd, 4096, 8192), 0);
    cr_expect_eq(turns, 3);
    cr_expect_eq(chempi_file_reserve(fd, 0, 0), 0);
    cr_expect_eq(turns, 3);
    cr_expect_eq(chempi_file_reserve(-1, 0, 1), -EBADF);
    cr_assert_eq(fstat(fd, &st), 0);
    cr_expect_eq(st.st_size, 12288);
    cr_expect_geq(st.st_blocks * 512, 8192); /* pages may be larger */
    cr_assert_eq(pthread_sigmask(SIG_BLOCK, NULL, &now), 0);
    cr_expect_eq(sigismember(&now, SIGPROF), 0);
    chempi_file_close(fd);
    chempi_sys = &chempi_sys_libc;
}
