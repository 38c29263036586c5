/* SPDX-License-Identifier: BSD-3-Clause */
/* Internet addresses of either family, what this machine has of them, and names
 * of sockets within the host. */
#ifndef CHEMPI_COMMON_FD_ADDRESS_H
#define CHEMPI_COMMON_FD_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define CHEMPI_ADDRESS_TEXT 80           /* bytes with the terminating zero */
#define CHEMPI_ADDRESS_INTERFACES_MAX 64 /* of this machine, looked at */

struct sockaddr_un;

struct chempi_address {
    union {
        struct sockaddr sa;
        struct sockaddr_in in;
        struct sockaddr_in6 in6;
    } u;
};

struct chempi_interface {
    struct chempi_address address; /* port 0 */
    uint8_t prefix;                /* length of the network part, bits */
    char name[16];
};

/* An IPv4 or IPv6 number, "fe80::1%eth0" included; no names are looked up.
 * 0 or -EINVAL. */
int chempi_address_parse(const char *text, struct chempi_address *out);

/* "127.0.0.1:4711", "[::1]:4711"; returns buf. */
const char *chempi_address_format(const struct chempi_address *address,
                                  char buf[CHEMPI_ADDRESS_TEXT]);

socklen_t chempi_address_len(const struct chempi_address *address);
uint16_t chempi_address_port(const struct chempi_address *address);
void chempi_address_set_port(struct chempi_address *address, uint16_t port);
/* The number's bytes: 4 or 16 of them. */
const uint8_t *chempi_address_bytes(const struct chempi_address *address);
bool chempi_address_is_loopback(const struct chempi_address *address);
bool chempi_address_is_link_local(const struct chempi_address *address);
/* The same family and the same first `prefix` bits. */
bool chempi_address_is_near(const struct chempi_address *a,
                            const struct chempi_address *b, unsigned prefix);
/* ::ffff:a.b.c.d becomes a.b.c.d. */
void chempi_address_unmap(struct chempi_address *address);

/* Those of this machine's interfaces that are up; their number or -errno. */
int chempi_address_local(
    struct chempi_interface out[CHEMPI_ADDRESS_INTERFACES_MAX]);

/* The address of a local socket that has this name and no file (Linux' abstract
 * sockets): it goes with the socket. Its length for bind() and connect(); 0:
 * the name is too long. */
socklen_t chempi_address_abstract(const char *name, struct sockaddr_un *out);

#endif
