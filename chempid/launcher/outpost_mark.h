/* SPDX-License-Identifier: BSD-3-Clause */
/* What an outpost writes before its first frame; see outpost.h. */
#ifndef CHEMPI_CHEMPID_OUTPOST_MARK_H
#define CHEMPI_CHEMPID_OUTPOST_MARK_H

/* Ends with the version of the control messages. The first byte is nowhere
 * else in it. */
#define CHEMPI_OUTPOST_MARK "\001chempi-outpost-9\n"

#endif
