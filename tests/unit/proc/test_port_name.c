/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of ports. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "libchempi/didl/proc/port_name.h"

#define TOKEN "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define KEY "ffeeddccbbaa99887766554433221100ffeeddccbbaa99887766554433221100"
#define FRONT "chempi1:" TOKEN ":" KEY ":"

TestSuite(port_name, .timeout = 20);

static struct chempi_port_name longest(void)
{
    struct chempi_port_name name = {.count = CHEMPI_PORT_ADDRESSES_MAX};

    memset(name.token, 0xfe, sizeof(name.token));
    memset(name.key, 0xdc, sizeof(name.key));
    for (uint32_t i = 0; i < name.count; i++) {
        cr_assert_eq(
            chempi_address_parse("1111:2222:3333:4444:5555:6666:7777:8888",
                                 &name.addresses[i]),
            0);
        chempi_address_set_port(&name.addresses[i], (uint16_t)(65535 - i));
    }
    return name;
}

Test(port_name, the_longest_one_is_read_as_it_was_written)
{
    const struct chempi_port_name name = longest();
    struct chempi_port_name read;
    char text[CHEMPI_PORT_NAME_MAX];

    chempi_port_name_write(&name, text);
    cr_assert_lt(strlen(text), sizeof(text) - 1);
    cr_assert_eq(chempi_port_name_read(text, &read), 0, "%s", text);
    cr_assert_eq(memcmp(&name, &read, sizeof(name)), 0);
}

Test(port_name, both_families_are_read)
{
    struct chempi_port_name name;
    char text[CHEMPI_ADDRESS_TEXT];

    cr_assert_eq(chempi_port_name_read(FRONT "10.1.2.3:45,[::1]:65535", &name),
                 0);
    cr_assert_eq(name.count, 2u);
    cr_assert_eq(name.token[1], 0x11);
    cr_assert_eq(name.key[31], 0x00);
    cr_assert_str_eq(chempi_address_format(&name.addresses[0], text),
                     "10.1.2.3:45");
    cr_assert_str_eq(chempi_address_format(&name.addresses[1], text),
                     "[::1]:65535");
}

Test(port_name, what_is_none_is_refused)
{
    static const char *const wrong[] = {
        "",
        "chempi1:",
        "chempi2:" TOKEN ":" KEY ":1.2.3.4:5",
        FRONT,
        FRONT ",",
        FRONT "1.2.3.4:5,",
        FRONT ",1.2.3.4:5",
        FRONT "1.2.3.4",
        FRONT "1.2.3.4:",
        FRONT "1.2.3.4:0",
        FRONT "1.2.3.4:65536",
        FRONT "1.2.3.4:005",
        FRONT "1.2.3.4:-5",
        FRONT "1.2.3.4:5x",
        FRONT "1.2.3:5",
        FRONT "localhost:5",
        FRONT "1.2.3.4:5 ",
        FRONT " 1.2.3.4:5",
        FRONT "::1:5",
        FRONT "[::1:5",
        FRONT "[::1]",
        FRONT "[::1]5",
        FRONT "[fe80::1%lo]:5",
        FRONT "[]:5",
        FRONT "[1.2.3.4]:5",
        FRONT "1.1.1.1:1,1.1.1.1:1,1.1.1.1:1,1.1.1.1:1,1.1.1.1:1,1.1.1.1:1,"
              "1.1.1.1:1,1.1.1.1:1,1.1.1.1:1",
        "chempi1:" TOKEN ":1.2.3.4:5",
        "chempi1:" TOKEN KEY ":1.2.3.4:5",
        "chempi1:0" TOKEN ":" KEY ":1.2.3.4:5",
        "chempi1:" TOKEN ":g" KEY ":1.2.3.4:5",
        "tag#0$description#a$port#1$"};
    struct chempi_port_name name;

    for (size_t i = 0; i < CHEMPI_ARRAY_LEN(wrong); i++)
        cr_assert_eq(chempi_port_name_read(wrong[i], &name), -EINVAL, "%s",
                     wrong[i]);
}

Test(port_name, one_cut_anywhere_is_refused_or_has_fewer_addresses)
{
    const struct chempi_port_name name = longest();
    struct chempi_port_name read;
    char text[CHEMPI_PORT_NAME_MAX];
    char cut[CHEMPI_PORT_NAME_MAX];

    chempi_port_name_write(&name, text);
    for (size_t len = 0; len < strlen(text); len++) {
        (void)snprintf(cut, sizeof(cut), "%.*s", (int)len, text);
        read.count = 0;
        if (chempi_port_name_read(cut, &read) == 0)
            cr_assert(read.count >= 1 && read.count <= name.count);
        else
            cr_assert_eq(read.count, 0u);
    }
}

Test(port_name, one_that_does_not_end_is_not_read_beyond_its_room)
{
    struct chempi_port_name name;
    char text[CHEMPI_PORT_NAME_MAX + 1];

    memset(text, '1', sizeof(text));
    memcpy(text, FRONT "1.2.3.4:", sizeof(FRONT "1.2.3.4:") - 1);
    text[CHEMPI_PORT_NAME_MAX] = '\0';
    cr_assert_eq(chempi_port_name_read(text, &name), -EINVAL);
}
