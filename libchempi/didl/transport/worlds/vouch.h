/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a process shows that it is of its world. A world has a pair of keys
 * (ed25519), of which all its processes have both halves: the secret one is
 * derived from the job's secret (in a secure job from the key that only ranks
 * have), or random in a process that nobody launched.
 * The world's name is a digest of the public one. Each process signs its
 * introduction, for one meeting only.
 *
 *   -   a signature is good for one handshake of two leaders, one side of it,
 *       one context and one place in the list of that side: it cannot be
 *       played again, nor put elsewhere
 *   -   keys of other worlds are believed to be theirs by name alone
 *   -   bytes that are sealed for a world are read by its processes only
 *
 * Thread-safe. libsodium has been started.
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_WORLDS_VOUCH_H
#define CHEMPI_LIBCHEMPI_DIDL_WORLDS_VOUCH_H

#include <stdbool.h>
#include <stdint.h>

#include "libchempi/didl/transport/worlds/foreign.h"

#define CHEMPI_VOUCH_MEETING_BYTES 64u
#define CHEMPI_VOUCH_BOX_BYTES (CHEMPI_BOND_SECRET_BYTES + 48u)

/* What an introduction is signed for. */
struct chempi_vouch_use {
    uint8_t meeting[CHEMPI_VOUCH_MEETING_BYTES]; /* the handshake's hash */
    uint32_t is_first;                           /* its side */
    uint32_t context; /* in which that side receives */
    uint32_t count;   /* members of that side */
    uint32_t number;  /* its place among them */
};

/* The own world's name. */
void chempi_vouch_name(uint64_t world[2]);

/* Set the key, and sign all else. */
void chempi_vouch_sign(struct chempi_introduction *in,
                       const struct chempi_vouch_use *use);
/* Is it by a process of the world that it names, for this use? */
bool chempi_vouch_check(const struct chempi_introduction *in,
                        const struct chempi_vouch_use *use);

/* Seal a bond's secret for the world of this key. False: it is no key. */
bool chempi_vouch_seal(const uint8_t key[CHEMPI_FOREIGN_KEY_BYTES],
                       const uint8_t secret[CHEMPI_BOND_SECRET_BYTES],
                       uint8_t box[CHEMPI_VOUCH_BOX_BYTES]);
/* Open what was sealed for the own one. False: it was changed. */
bool chempi_vouch_open(const uint8_t box[CHEMPI_VOUCH_BOX_BYTES],
                       uint8_t secret[CHEMPI_BOND_SECRET_BYTES]);

/* Out of a bond's secret, what only processes of the own world and that of this
 * key know. False: it is no key. */
bool chempi_vouch_share(const uint8_t key[CHEMPI_FOREIGN_KEY_BYTES],
                        const uint8_t secret[CHEMPI_BOND_SECRET_BYTES],
                        uint8_t out[CHEMPI_BOND_SECRET_BYTES]);

#endif
