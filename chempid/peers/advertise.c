/* SPDX-License-Identifier: BSD-3-Clause */
/* What others are told of a daemon on all addresses; see advertise.h. */
#define _GNU_SOURCE /* getifaddrs */
#include "chempid/peers/advertise.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static bool is_callable(const struct ifaddrs *i, int family)
{
    const struct sockaddr_in6 *v6 = (const void *)i->ifa_addr;

    if (!i->ifa_addr || i->ifa_addr->sa_family != family ||
        !(i->ifa_flags & IFF_UP) || (i->ifa_flags & IFF_LOOPBACK))
        return false;
    return family == AF_INET || !IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr);
}

static void take(const struct ifaddrs *i, in_port_t port,
                 struct chempi_addr *out)
{
    *out = (struct chempi_addr){.len = i->ifa_addr->sa_family == AF_INET
                                           ? sizeof(struct sockaddr_in)
                                           : sizeof(struct sockaddr_in6)};
    memcpy(&out->storage, i->ifa_addr, out->len);
    if (i->ifa_addr->sa_family == AF_INET)
        ((struct sockaddr_in *)&out->storage)->sin_port = port;
    else
        ((struct sockaddr_in6 *)&out->storage)->sin6_port = port;
}

/* How many there are; *out is the last one, text names them. */
static unsigned look(const struct ifaddrs *list, int family, in_port_t port,
                     struct chempi_addr *out, char *text, size_t size)
{
    unsigned count = 0;

    for (const struct ifaddrs *i = list; i; i = i->ifa_next) {
        const size_t len = strlen(text);

        if (!is_callable(i, family))
            continue;
        take(i, port, out);
        if (len + CHEMPI_ADDR_MAX < size) {
            (void)snprintf(text + len, size - len, "%s", count ? ", " : "");
            chempi_addr_format(out, text + strlen(text), CHEMPI_ADDR_MAX);
        }
        count++;
    }
    return count;
}

int chempi_advertise_find(struct chempi_addr *addr, struct chempi_err *err)
{
    const bool is_v6 = addr->storage.ss_family == AF_INET6;
    const in_port_t port =
        is_v6 ? ((const struct sockaddr_in6 *)&addr->storage)->sin6_port
              : ((const struct sockaddr_in *)&addr->storage)->sin_port;
    char names[4 * CHEMPI_ADDR_MAX] = "";
    char text[CHEMPI_ADDR_MAX];
    struct ifaddrs *list;
    unsigned count;

    chempi_addr_format(addr, text, sizeof(text));
    if (getifaddrs(&list) < 0)
        return chempi_err_set(err, -errno,
                              "cannot find the addresses of this host: %s",
                              chempi_err_name(errno));
    count = look(list, AF_INET, port, addr, names, sizeof(names));
    if (!count && is_v6)
        count = look(list, AF_INET6, port, addr, names, sizeof(names));
    freeifaddrs(list);
    if (count == 1)
        return 0;
    return chempi_err_set(err, -EADDRNOTAVAIL,
                          "others cannot call %s: name the address of this "
                          "host that they shall call, with --listen or in the "
                          "--cluster file (this host has %s%.300s)",
                          text, count ? "" : "none but loopback now", names);
}
