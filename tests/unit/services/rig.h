/* SPDX-License-Identifier: BSD-3-Clause */
/* System calls that fail when a test says so. */
#ifndef CHEMPI_TESTS_UNIT_SERVICES_RIG_H
#define CHEMPI_TESTS_UNIT_SERVICES_RIG_H

enum rig_call {
    RIG_MALLOC, /* malloc, calloc, realloc */
    RIG_MMAP,
    RIG_MEMFD,
    RIG_FALLOCATE,
    RIG_READV,  /* process_vm_readv */
    RIG_WRITEV, /* process_vm_writev */
    RIG_COUNT
};

/* Let call number `nth` (from 1) of this kind fail with errno `error`; all
 * later ones too if is_lasting. Other kinds stay as they are. */
void rig_fail(enum rig_call call, unsigned nth, int error, int is_lasting);

/* Let process_vm_readv and writev move at most this many bytes at a time;
 * 0: no limit. */
void rig_limit_copies(unsigned long max);

/* Calls of this kind since the last rig_reset(). */
unsigned rig_calls(enum rig_call call);

/* Back to normal. */
void rig_reset(void);

#endif
