/* SPDX-License-Identifier: BSD-3-Clause */
/* Two adapters in one process, driven in turn by one thread. */
#ifndef CHEMPI_TESTS_UNIT_SCIVIA_DUO_H
#define CHEMPI_TESTS_UNIT_SCIVIA_DUO_H

#include <criterion/criterion.h>

#include "libchempi/devices/scivia/adapter/sci/sci.h"
#include "libchempi/devices/scivia/adapter/via/via.h"

struct side {
    struct chempi_adapter *adapter;
    struct chempi_adapter_link *link; /* to the other one */
    unsigned reached;
    unsigned up;
    unsigned down;
    unsigned left;
    bool was_clean;
    int down_status;
    unsigned errors; /* VIA */
    int error_status;
};

struct duo {
    struct side a;
    struct side b;
    struct chempi_adapter_params params; /* of both; set before opening */
};

/* What the tests start from: a faultless adapter with a free clock. */
void duo_init(struct duo *duo);
void duo_open(struct duo *duo);
void duo_close(struct duo *duo);
void duo_open_side(struct duo *duo, struct side *side, uint32_t user);
/* Serve both until nothing happens any more. */
void duo_pump(struct duo *duo);

/* b exports a segment of len bytes, a is connected to it. */
struct chempi_sci_remote *duo_segment(struct duo *duo, uint64_t len,
                                      struct chempi_sci_segment **segment);

/* A connected pair of VIs with one protection tag each. */
struct pair {
    struct chempi_via_vi *a;
    struct chempi_via_vi *b;
    uint32_t tag_a;
    uint32_t tag_b;
};
void duo_connect(struct duo *duo, enum chempi_via_reliability reliability,
                 struct pair *pair);

/* A descriptor with one segment. */
struct chempi_via_descriptor duo_descriptor(enum chempi_via_op op, void *addr,
                                            uint32_t len, uint32_t handle);

#endif
