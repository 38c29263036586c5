/* SPDX-License-Identifier: BSD-3-Clause */
/* What this machine's interfaces become in a description. */
#define _GNU_SOURCE /* IFF_ */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <string.h>

#include "common/base/compiler.h"
#include "mdconfig/import/import.h"

/* The linker puts them in the place of getifaddrs() and freeifaddrs(). */
int __wrap_getifaddrs(struct ifaddrs **list);
void __wrap_freeifaddrs(struct ifaddrs *list);

static struct {
    char name[16];
    const char *address;
    unsigned flags;
    struct sockaddr_in in;
    struct ifaddrs entry;
} interfaces[] = {
    {.name = "lo", .address = "127.0.0.1", .flags = IFF_UP | IFF_LOOPBACK},
    {.name = "eth0:1", .address = "10.0.0.7", .flags = IFF_UP},
    {.name = "eth0", .address = "10.0.0.1", .flags = IFF_UP},
    {.name = "eth0:2", .address = "10.0.0.8", .flags = IFF_UP},
    {.name = "eth1", .address = "10.1.0.1", .flags = 0},
    {.name = "vlan.9", .address = "10.2.0.1", .flags = IFF_UP},
};

int __wrap_getifaddrs(struct ifaddrs **list)
{
    struct ifaddrs *next = NULL;

    for (size_t i = CHEMPI_ARRAY_LEN(interfaces); i-- > 0;) {
        interfaces[i].in.sin_family = AF_INET;
        cr_assert_eq(inet_pton(AF_INET, interfaces[i].address,
                               &interfaces[i].in.sin_addr),
                     1);
        interfaces[i].entry =
            (struct ifaddrs){.ifa_next = next,
                             .ifa_name = interfaces[i].name,
                             .ifa_flags = interfaces[i].flags,
                             .ifa_addr = (struct sockaddr *)&interfaces[i].in};
        next = &interfaces[i].entry;
    }
    *list = next;
    return 0;
}

void __wrap_freeifaddrs(struct ifaddrs *list)
{
    (void)list;
}

Test(import_local, takes_interfaces_and_no_labels)
{
    struct chempi_import made = {.node_count = 0};
    struct chempi_err err = {.code = 0};

    cr_assert_eq(chempi_import_local(&made, &err), 0, "%s", err.text);
    cr_assert_eq(made.network_count, 2);
    cr_expect_str_eq(made.networks[0].name, "lan");
    cr_assert_eq(made.networks[0].count, 1);
    cr_expect_str_eq(made.networks[0].attachments[0].interface, "eth0");
    cr_expect_str_eq(made.networks[0].attachments[0].address, "10.0.0.1");
    cr_expect_str_eq(made.networks[1].name, "vlan.9");
    chempi_import_fini(&made);
}
