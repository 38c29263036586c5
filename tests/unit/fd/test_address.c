/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <stddef.h>
#include <string.h>
#include <sys/un.h>

#include "common/fd/address.h"

Test(address, a_name_without_a_file_is_not_ended_by_a_zero)
{
    struct sockaddr_un out;

    cr_assert_eq(chempi_address_abstract("ab", &out),
                 offsetof(struct sockaddr_un, sun_path) + 3);
    cr_assert_eq(out.sun_family, AF_UNIX);
    cr_assert_eq(memcmp(out.sun_path, "\0ab", 4), 0);
}

Test(address, a_name_may_fill_the_address_and_no_more)
{
    struct sockaddr_un out;
    char name[sizeof(out.sun_path) + 1];

    memset(name, 'x', sizeof(name));
    name[sizeof(out.sun_path)] = '\0';
    cr_assert_eq(chempi_address_abstract(name, &out), 0);
    name[sizeof(out.sun_path) - 1] = '\0';
    cr_assert_eq(chempi_address_abstract(name, &out), sizeof(out));
    cr_assert_eq(out.sun_path[sizeof(out.sun_path) - 1], 'x');
}
