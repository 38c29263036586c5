/* SPDX-License-Identifier: BSD-3-Clause */
/* What an outpost writes before its first frame; see outpost.h. */
#ifndef CHEMPI_CHEMPID_OUTPOST_MARK_H
#define CHEMPI_CHEMPID_OUTPOST_MARK_H

#include "common/auth/noise.h"
#include "common/control/msg.h"

#define CHEMPI_OUTPOST_TEXT(x) #x
#define CHEMPI_OUTPOST_VERSION(x) CHEMPI_OUTPOST_TEXT(x)

/* Ends with the version of the control messages. The first byte is nowhere
 * else in it. */
#define CHEMPI_OUTPOST_MARK                                                    \
    "\001chempi-outpost-" CHEMPI_OUTPOST_VERSION(CHEMPI_CONTROL_VERSION) "\n"

/* What follows it: the launcher says a fresh key, and then both shake hands
 * for this purpose (common/auth/handshake.h), the launcher calling. */
#define CHEMPI_OUTPOST_PURPOSE "chempi outpost"
#define CHEMPI_OUTPOST_KEY CHEMPI_NOISE_KEY_BYTES

#endif
