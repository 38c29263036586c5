/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What processes of other worlds may send. A device that reaches them has
 * proven who has sent a message (bond.h), and nothing more; so what it reports
 * is looked at here before the engine gets it. Messages of the own job take
 * another way, and pay nothing.
 *
 *   G1  each number comes once, and less than CHEMPI_GUARD_AHEAD before its
 *       turn. Of what overtakes others, later ones come later: looking for its
 *       place takes less than CHEMPI_ENGINE_STEPS
 *   G2  a message is for an open context (comm.h), and its sender is the
 *       process that has the rank which it names in the communicator there. As
 *       long as there is none, it is held, for nobody can receive it; it is
 *       looked at again when there is (chempi_guard_admit())
 *   G3  payload that comes by itself is counted, and within the quota; not
 *       more than CHEMPI_MEET_HELD_MAX messages of one process are held,
 *       answers that it does not take included
 *   G4  a system message has a handler that takes it from other worlds
 *       (chempi_sysmsg_handler.is_open), and its head; it is no longer than any
 *       that is sent in one piece: its body waits until it is asked for
 *
 * Who breaks one of them is lost, with a sentence. Under the first lane's lock.
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_FOREIGN_GUARD_H
#define CHEMPI_LIBCHEMPI_DIDL_FOREIGN_GUARD_H

#include <stdint.h>

#include "libchempi/ddi.h"

#define CHEMPI_GUARD_AHEAD (1u << 16)

/* What the device reports to; its arg is the first lane. */
const struct chempi_sink *chempi_guard_sink(void);

/* Has the process the rank `source` (of the side that sends) in the
 * communicator that receives in the context, less its kind? Set at the start.
 */
enum chempi_guard_answer {
    CHEMPI_GUARD_UNKNOWN, /* there is none */
    CHEMPI_GUARD_NO,
    CHEMPI_GUARD_YES
};
typedef enum chempi_guard_answer
chempi_guard_context_fn(uint32_t context, int32_t source, uint32_t proc);
void chempi_guard_on_context(chempi_guard_context_fn *is_sender);

/* There is a communicator in this context now (G2). */
void chempi_guard_admit(uint32_t context);

/* Forget what was held: at the end. */
void chempi_guard_fini(void);

#endif
