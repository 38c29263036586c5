/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names of ports, as MPI_Open_port gives them (doc/dynamic.md):
 *
 *   chempi1:TOKEN:KEY:ADDRESS,...
 *
 * Who has the token may call; the key is the public one by which callers know
 * the owner. Both are 64 hexadecimal digits. An address is "1.2.3.4:5" or
 * "[::1]:5".
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_PORT_NAME_H
#define CHEMPI_LIBCHEMPI_DIDL_PORT_NAME_H

#include <stddef.h>
#include <stdint.h>

#include "common/auth/noise.h"
#include "common/control/dynamic.h"
#include "common/fd/address.h"

#define CHEMPI_PORT_ADDRESSES_MAX 8u

struct chempi_port_name {
    uint8_t token[CHEMPI_NOISE_KEY_BYTES];
    uint8_t key[CHEMPI_NOISE_KEY_BYTES];
    uint32_t count; /* 1 .. CHEMPI_PORT_ADDRESSES_MAX */
    struct chempi_address addresses[CHEMPI_PORT_ADDRESSES_MAX];
};

/* It always fits. */
void chempi_port_name_write(const struct chempi_port_name *name,
                            char text[CHEMPI_PORT_NAME_MAX]);

/* Read what anybody may have made up; text ends somewhere. 0 or -EINVAL. */
int chempi_port_name_read(const char *text, struct chempi_port_name *out);

#endif
