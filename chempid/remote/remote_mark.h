/* SPDX-License-Identifier: BSD-3-Clause */
/* What a remote writes before its first frame; see remote.h. */
#ifndef CHEMPI_CHEMPID_REMOTE_MARK_H
#define CHEMPI_CHEMPID_REMOTE_MARK_H

#include "common/auth/noise.h"
#include "common/control/msg.h"

#define CHEMPI_REMOTE_TEXT(x) #x
#define CHEMPI_REMOTE_VERSION(x) CHEMPI_REMOTE_TEXT(x)

/* Ends with the version of the control messages. The first byte is nowhere
 * else in it. */
#define CHEMPI_REMOTE_MARK                                                     \
    "\001chempi-remote-" CHEMPI_REMOTE_VERSION(CHEMPI_CONTROL_VERSION) "\n"

/* What follows it: the launcher says a fresh key, and then both shake hands
 * for this purpose (common/auth/handshake.h), the launcher calling. */
#define CHEMPI_REMOTE_PURPOSE "chempi remote"
#define CHEMPI_REMOTE_KEY CHEMPI_NOISE_KEY_BYTES

#endif
