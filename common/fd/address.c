/* SPDX-License-Identifier: BSD-3-Clause */
/* Internet addresses; see address.h. */
#define _GNU_SOURCE /* getifaddrs, O_CLOEXEC */
#include "common/fd/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#include "common/base/sys.h"

int chempi_address_parse(const char *text, struct chempi_address *out)
{
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
                             .ai_family = AF_INET6,
                             .ai_socktype = SOCK_STREAM};
    struct chempi_address a = {.u.in.sin_family = AF_INET};
    struct addrinfo *found;
    int rc = -EINVAL;

    if (inet_pton(AF_INET, text, &a.u.in.sin_addr) == 1) {
        *out = a;
        return 0;
    }
    if (getaddrinfo(text, NULL, &hints, &found) != 0) /* knows scopes */
        return -EINVAL;
    if (found->ai_family == AF_INET6 && found->ai_addrlen <= sizeof(*out)) {
        memset(out, 0, sizeof(*out));
        memcpy(&out->u, found->ai_addr, found->ai_addrlen);
        rc = 0;
    }
    freeaddrinfo(found);
    return rc;
}

const char *chempi_address_format(const struct chempi_address *address,
                                  char buf[CHEMPI_ADDRESS_TEXT])
{
    char host[64]; /* INET6_ADDRSTRLEN and a scope's name */

    if (getnameinfo(&address->u.sa, chempi_address_len(address), host,
                    sizeof(host), NULL, 0, NI_NUMERICHOST) != 0)
        (void)snprintf(host, sizeof(host), "?");
    (void)snprintf(buf, CHEMPI_ADDRESS_TEXT,
                   address->u.sa.sa_family == AF_INET6 ? "[%s]:%u" : "%s:%u",
                   host, (unsigned)chempi_address_port(address));
    return buf;
}

socklen_t chempi_address_len(const struct chempi_address *address)
{
    return address->u.sa.sa_family == AF_INET6 ? sizeof(address->u.in6)
                                               : sizeof(address->u.in);
}

uint16_t chempi_address_port(const struct chempi_address *address)
{
    return ntohs(address->u.sa.sa_family == AF_INET6 ? address->u.in6.sin6_port
                                                     : address->u.in.sin_port);
}

void chempi_address_set_port(struct chempi_address *address, uint16_t port)
{
    if (address->u.sa.sa_family == AF_INET6)
        address->u.in6.sin6_port = htons(port);
    else
        address->u.in.sin_port = htons(port);
}

const uint8_t *chempi_address_bytes(const struct chempi_address *address)
{
    if (address->u.sa.sa_family == AF_INET6)
        return address->u.in6.sin6_addr.s6_addr;
    return (const uint8_t *)&address->u.in.sin_addr;
}

bool chempi_address_is_loopback(const struct chempi_address *address)
{
    const struct in6_addr *in6 = &address->u.in6.sin6_addr;

    if (address->u.sa.sa_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(in6) ||
               (IN6_IS_ADDR_V4MAPPED(in6) && in6->s6_addr[12] == 127);
    return chempi_address_bytes(address)[0] == 127;
}

bool chempi_address_is_link_local(const struct chempi_address *address)
{
    return address->u.sa.sa_family == AF_INET6 &&
           IN6_IS_ADDR_LINKLOCAL(&address->u.in6.sin6_addr);
}

bool chempi_address_is_near(const struct chempi_address *a,
                            const struct chempi_address *b, unsigned prefix)
{
    const uint8_t *x = chempi_address_bytes(a);
    const uint8_t *y = chempi_address_bytes(b);
    unsigned whole = prefix / 8;
    unsigned rest = prefix % 8;

    if (a->u.sa.sa_family != b->u.sa.sa_family ||
        prefix > (a->u.sa.sa_family == AF_INET6 ? 128u : 32u))
        return false;
    if (memcmp(x, y, whole) != 0)
        return false;
    return !rest || (x[whole] ^ y[whole]) >> (8 - rest) == 0;
}

void chempi_address_unmap(struct chempi_address *address)
{
    struct sockaddr_in in = {.sin_family = AF_INET};

    if (address->u.sa.sa_family != AF_INET6 ||
        !IN6_IS_ADDR_V4MAPPED(&address->u.in6.sin6_addr))
        return;
    in.sin_port = address->u.in6.sin6_port;
    memcpy(&in.sin_addr, address->u.in6.sin6_addr.s6_addr + 12, 4);
    memset(address, 0, sizeof(*address));
    address->u.in = in;
}

static uint8_t prefix_of(const struct sockaddr *mask)
{
    struct chempi_address m = {.u.sa.sa_family = AF_UNSPEC};
    const uint8_t *bytes;
    unsigned len;
    unsigned bits = 0;

    if (!mask || (mask->sa_family != AF_INET && mask->sa_family != AF_INET6))
        return 0;
    len = mask->sa_family == AF_INET6 ? 16 : 4;
    memcpy(&m.u, mask,
           len == 16 ? sizeof(struct sockaddr_in6)
                     : sizeof(struct sockaddr_in));
    bytes = chempi_address_bytes(&m);
    while (bits < len * 8 && bytes[bits / 8] & (0x80u >> bits % 8))
        bits++;
    return (uint8_t)bits;
}

int chempi_address_local(
    struct chempi_interface out[CHEMPI_ADDRESS_INTERFACES_MAX])
{
    struct ifaddrs *all;
    int n = 0;

    if (getifaddrs(&all) < 0)
        return -errno;
    for (struct ifaddrs *i = all; i && n < CHEMPI_ADDRESS_INTERFACES_MAX;
         i = i->ifa_next) {
        struct chempi_interface *to = &out[n];

        if (!i->ifa_addr || !(i->ifa_flags & IFF_UP) ||
            (i->ifa_addr->sa_family != AF_INET &&
             i->ifa_addr->sa_family != AF_INET6))
            continue;
        memset(to, 0, sizeof(*to));
        memcpy(&to->address.u, i->ifa_addr,
               i->ifa_addr->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                                  : sizeof(struct sockaddr_in));
        to->prefix = prefix_of(i->ifa_netmask);
        (void)snprintf(to->name, sizeof(to->name), "%s", i->ifa_name);
        n++;
    }
    freeifaddrs(all);
    return n;
}

socklen_t chempi_address_abstract(const char *name, struct sockaddr_un *out)
{
    const size_t len = strlen(name);

    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (len >= sizeof(out->sun_path))
        return 0;
    memcpy(out->sun_path + 1, name, len);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len);
}
