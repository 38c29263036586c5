/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of ports; see port_name.h. */
#define _GNU_SOURCE /* strnlen */
#include "libchempi/didl/proc/port_name.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "common/base/number.h"

#define MAGIC "chempi1:"
#define DIGITS (2 * CHEMPI_NOISE_KEY_BYTES) /* of a token, or a key */

_Static_assert(sizeof(MAGIC) + 2 * (DIGITS + 1) +
                       CHEMPI_PORT_ADDRESSES_MAX * CHEMPI_ADDRESS_TEXT <=
                   CHEMPI_PORT_NAME_MAX,
               "the longest name fits");

void chempi_port_name_write(const struct chempi_port_name *name,
                            char text[CHEMPI_PORT_NAME_MAX])
{
    char token[DIGITS + 1];
    char key[DIGITS + 1];
    char address[CHEMPI_ADDRESS_TEXT];
    size_t len;

    (void)sodium_bin2hex(token, sizeof(token), name->token,
                         sizeof(name->token));
    (void)sodium_bin2hex(key, sizeof(key), name->key, sizeof(name->key));
    len =
        (size_t)snprintf(text, CHEMPI_PORT_NAME_MAX, MAGIC "%s:%s", token, key);
    for (uint32_t i = 0; i < name->count; i++)
        len += (size_t)snprintf(
            text + len, CHEMPI_PORT_NAME_MAX - len, "%c%s", i ? ',' : ':',
            chempi_address_format(&name->addresses[i], address));
}

/* DIGITS hexadecimal digits and a colon; what follows, or NULL. */
static const char *read_key(const char *text,
                            uint8_t out[CHEMPI_NOISE_KEY_BYTES])
{
    const char *end;
    size_t len;

    if (strnlen(text, DIGITS) < DIGITS || text[DIGITS] != ':' ||
        sodium_hex2bin(out, CHEMPI_NOISE_KEY_BYTES, text, DIGITS, NULL, &len,
                       &end) != 0 ||
        len != CHEMPI_NOISE_KEY_BYTES || end != text + DIGITS)
        return NULL;
    return text + DIGITS + 1;
}

/* 1 to 65535, up to the end; 0: it is none. */
static uint16_t read_port(const char *text)
{
    uint32_t port;

    return *text != '0' && chempi_number_parse32(text, 1, UINT16_MAX, &port)
               ? (uint16_t)port
               : 0;
}

/* The two parts of "host:port" or "[host]:port", in text, which is changed. */
static int split(char *text, char **host, char **port, int *family)
{
    const bool is_v6 = text[0] == '[';
    char *end = is_v6 ? strchr(text, ']') : strchr(text, ':');

    if (!end || (is_v6 && end[1] != ':'))
        return -EINVAL;
    *end = '\0';
    *host = text + is_v6;
    *port = end + 1 + is_v6;
    *family = is_v6 ? AF_INET6 : AF_INET;
    return 0;
}

/* len bytes of text. No scopes: they mean something on one host only. */
static int read_address(const char *text, size_t len,
                        struct chempi_address *out)
{
    struct chempi_address a = {.u.in6.sin6_port = 0};
    char copy[CHEMPI_ADDRESS_TEXT];
    char *host;
    char *port;
    int family;

    if (len >= sizeof(copy))
        return -EINVAL;
    memcpy(copy, text, len);
    copy[len] = '\0';
    if (split(copy, &host, &port, &family) || !read_port(port))
        return -EINVAL;
    if (inet_pton(family, host,
                  family == AF_INET6 ? (void *)&a.u.in6.sin6_addr
                                     : (void *)&a.u.in.sin_addr) != 1)
        return -EINVAL;
    a.u.sa.sa_family = (sa_family_t)family;
    chempi_address_set_port(&a, read_port(port));
    *out = a;
    return 0;
}

int chempi_port_name_read(const char *text, struct chempi_port_name *out)
{
    struct chempi_port_name name = {.count = 0};

    if (strnlen(text, CHEMPI_PORT_NAME_MAX) == CHEMPI_PORT_NAME_MAX ||
        strncmp(text, MAGIC, sizeof(MAGIC) - 1) != 0)
        return -EINVAL;
    text = read_key(text + sizeof(MAGIC) - 1, name.token);
    text = text ? read_key(text, name.key) : NULL;
    while (text) {
        const size_t len = strcspn(text, ",");

        if (name.count == CHEMPI_PORT_ADDRESSES_MAX ||
            read_address(text, len, &name.addresses[name.count]))
            return -EINVAL;
        name.count++;
        text = text[len] ? text + len + 1 : NULL;
    }
    if (!name.count)
        return -EINVAL;
    *out = name;
    return 0;
}
