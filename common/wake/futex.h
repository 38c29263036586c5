/* SPDX-License-Identifier: BSD-3-Clause */
/* Sleeping on a word of memory, which several processes may share. */
#ifndef CHEMPI_COMMON_WAKE_FUTEX_H
#define CHEMPI_COMMON_WAKE_FUTEX_H

#include <stdatomic.h>
#include <stdint.h>

/* Sleep while the word has this value: until woken, until a signal, or for
 * timeout_ms (-1: no limit). May return without a reason. */
void chempi_futex_wait(_Atomic uint32_t *word, uint32_t value, int timeout_ms);

/* Wake one that sleeps on the word; its memory may be gone. */
void chempi_futex_wake(_Atomic uint32_t *word);

#endif
