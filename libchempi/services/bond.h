/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bonds: who may speak with whom across worlds (doc/dynamic.md). Two groups of
 * processes that have met share a bond: a name, a fresh secret, and a number
 * for each member. A device proves and names processes by bond and number,
 * never by an index, which is local.
 *
 *   -   name, secret and numbers of a bond are the same at all of its members;
 *       names are digests of the secret, so two bonds differ
 *   -   the own job is none of them: its devices know the job's secret, and
 *       call by rank (or a gateway's process number); on the wire its name is
 *       zeros
 *   -   a process has one index here, in however many bonds it is; it is
 *       called by the one that all have agreed on first, and found by any
 *   -   an index, once given, means the same process until this one ends
 *
 * Under the first lane's lock.
 */
#ifndef CHEMPI_LIBCHEMPI_SERVICES_BOND_H
#define CHEMPI_LIBCHEMPI_SERVICES_BOND_H

#include <stdbool.h>
#include <stdint.h>

#define CHEMPI_BOND_NAME_BYTES 16u
#define CHEMPI_BOND_SECRET_BYTES 32u

struct chempi_bond {
    uint8_t name[CHEMPI_BOND_NAME_BYTES];
    uint8_t secret[CHEMPI_BOND_SECRET_BYTES];
    uint32_t self;  /* this process's number in it */
    uint32_t size;  /* members of both sides */
    bool is_secure; /* connections are sealed: one side's job is secure */
};

/* How to call a process, or how it has called. */
struct chempi_bond_place {
    const struct chempi_bond *bond;
    uint32_t number;  /* the process's */
    const char *node; /* its node's name, for words */
    const char *who;  /* "rank 3 of world 1", for words */
};

/* What a device that reaches processes of other worlds is handed
 * (chempi_services.bonds; NULL: it serves its own job only, and indexes are
 * numbers). */
struct chempi_bonds {
    /* How to call the process of an index. False: it is none of theirs. */
    bool (*place)(uint32_t index, struct chempi_bond_place *out);
    /* The bond of a name that somebody has called by; NULL: none. */
    const struct chempi_bond *(*find)(
        const uint8_t name[CHEMPI_BOND_NAME_BYTES]);
    /* The index of a member; UINT32_MAX: no such number, or one of the own
     * job, whom this device does not reach. */
    uint32_t (*index)(const struct chempi_bond *bond, uint32_t number);
    /* What this process and that member prove themselves to each other by: made
     * of the bond's secret, and known to their two worlds only. False: there
     * is no such member, or it has no key. */
    bool (*secret)(const struct chempi_bond *bond, uint32_t number,
                   uint8_t out[CHEMPI_BOND_SECRET_BYTES]);
    /* Does this process come before that one? The two say the opposite,
     * whatever bonds they call each other by: for both calling at once. */
    bool (*is_before)(uint32_t index);
    uint32_t index_begin; /* of the first one that is not of the own job */
    uint32_t index_max;   /* indexes stay below it: what tables are laid out
                             for */
    /* Indexes are below it so far: what loops go up to. */
    uint32_t (*index_end)(void);
};

#endif
