/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE /* memfd_create */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <criterion/criterion.h>

#include "common/base/file.h"

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
