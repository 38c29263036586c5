/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The set of ids of contexts that are taken at this process. Any thread may
 * call; nothing blocks.
 *
 * There are two ranges, which are taken from below. In contexts of the upper
 * one, and in no others, processes of other worlds may have a say (guard.h):
 * it has those of intercommunicators, and of what is made out of such
 * communicators.
 */
#ifndef CHEMPI_LIBCHEMPI_DIDL_CONTEXT_ID_H
#define CHEMPI_LIBCHEMPI_DIDL_CONTEXT_ID_H

#include <stdint.h>

#include "libchempi/didl/comm/comm.h"

/* 0 system, 1 MPI_COMM_WORLD, 2 MPI_COMM_SELF */
#define CHEMPI_CONTEXT_ID_FIRST 3u
/* First of the upper range. */
#define CHEMPI_CONTEXT_ID_OPEN (CHEMPI_CONTEXT_OPEN / CHEMPI_CONTEXT_STEP)
#define CHEMPI_CONTEXT_ID_END (1u << 28)  /* context + kind fits 31 bits */
#define CHEMPI_CONTEXT_ID_HIGH (1u << 22) /* the sets stay below 1 MiB */
/* When so many rest no light handles are made until none is left: a program may
 * have some at any time. */
#define CHEMPI_CONTEXT_ID_RESTING_MAX 1024u

/* Take the lowest free id from `from` on, of the same range; 0: none, or out of
 * memory. */
uint32_t chempi_context_id_take(uint32_t from);
/* Take the lowest id that is at least `from` and above all that are taken in
 * its range; 0: also when it would be CHEMPI_CONTEXT_ID_HIGH or more above the
 * range's first. */
uint32_t chempi_context_id_take_above(uint32_t from);

/* Give a reserved context back. Thread-safe; no communication. */
void chempi_comm_give_context(uint32_t context);
/* The same of one that messages were sent in: as soon as no light handles are
 * left (light.h, H1). */
void chempi_comm_rest_context(uint32_t context);
/* Give all such back if that is now. */
void chempi_context_id_wake(void);

/* Forget all contexts but those of COMM_WORLD and COMM_SELF. */
void chempi_comm_reset_contexts(void);
void chempi_comm_free_contexts(void);

#define CHEMPI_COMM_WORLD_CONTEXT (1u * CHEMPI_CONTEXT_STEP)
#define CHEMPI_COMM_SELF_CONTEXT (2u * CHEMPI_CONTEXT_STEP)

#endif
