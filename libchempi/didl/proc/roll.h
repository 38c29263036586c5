/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The roll of a side: what its root tells the other root, who hands it down to
 * all of its own side. Introductions of all members follow; when it is handed
 * down, boxes follow them, in which the bond's secret is, one for each world of
 * the side that receives it. Until it was checked it is bytes of a stranger's.
 *
 * Functions return 0, or -errno with words: -EPROTO for what cannot be,
 * -ENOMEM. Thread-safe for different rolls.
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_ROLL_H
#define CHEMPI_LIBCHEMPI_DIDL_ROLL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/wake/wake.h"
#include "libchempi/didl/transport/worlds/foreign.h"
#include "libchempi/didl/transport/worlds/vouch.h"

struct chempi_roll {
    uint32_t magic;
    uint32_t context; /* in which that side receives */
    uint32_t count;   /* introductions that follow */
    uint32_t root;    /* its rank in its side */
    uint32_t setting_count;
    uint32_t zero;
    uint64_t settings[CHEMPI_REGION_WORDS];   /* of collective operations */
    uint8_t secret[CHEMPI_BOND_SECRET_BYTES]; /* its half; to the other root */
};

/* Bytes of the roll of so many members, without boxes, and of so many besides
 * those of the own job. */
size_t chempi_roll_len(uint32_t count);
size_t chempi_roll_len_max(uint32_t most);

/* Of this side; malloc'ed, with a fresh half of a secret. NULL: no memory. */
struct chempi_roll *chempi_roll_make(const struct chempi_introduction *members,
                                     uint32_t count, uint32_t root,
                                     uint32_t context);

static inline const struct chempi_introduction *
chempi_roll_members(const struct chempi_roll *roll)
{
    return (const struct chempi_introduction *)(const void *)(roll + 1);
}

/* Is it whole, with nothing behind it (but boxes)? Before anything else. */
int chempi_roll_check(const struct chempi_roll *roll, size_t len,
                      bool has_boxes, struct chempi_err *err);
/* Do the libraries of both sides choose the same ways? -EPROTO. */
int chempi_roll_compare(const struct chempi_roll *roll, struct chempi_err *err);
/* Are all who they claim to be? use is that of the first one. */
int chempi_roll_verify(const struct chempi_introduction *members,
                       struct chempi_vouch_use use, struct chempi_err *err);

/* A checked one, malloc'ed, gets boxes for the worlds of `own`, and loses its
 * half of the secret; *roll moves. use: for this meeting, of the own side. */
int chempi_roll_add_boxes(struct chempi_roll **roll, size_t *len,
                          const struct chempi_roll *mine,
                          const struct chempi_introduction *own,
                          const struct chempi_vouch_use *use,
                          struct chempi_err *err);
/* The bond's secret, out of the box for the own world. */
int chempi_roll_open(const struct chempi_roll *roll, size_t len,
                     uint8_t secret[CHEMPI_BOND_SECRET_BYTES],
                     struct chempi_err *err);

#endif
