/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where in this process's source its last messages were sent, by receiver and
 * serial number; for a checker (doc/checking.md). Under the lane lock.
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_TRANSPORT_WHERE_SENT_SITES_H
#define CHEMPI_LIBCHEMPI_DIDL_TRANSPORT_WHERE_SENT_SITES_H

#include <stdint.h>

/* site: as of chempi_call_site_number(). Without memory nothing is kept. */
void chempi_sent_sites_note(uint32_t proc, uint32_t serial, uint16_t site);
/* 0: not known, or too many messages ago. */
uint16_t chempi_sent_sites_find(uint32_t proc, uint32_t serial);

#endif
