/* SPDX-License-Identifier: BSD-3-Clause */
/* System calls that fail when a test says so. */
#ifndef CHEMPI_TESTS_UNIT_BASE_RIG_H
#define CHEMPI_TESTS_UNIT_BASE_RIG_H

#include <stddef.h>

enum rig_call {
    RIG_MALLOC = 1, /* malloc, calloc, realloc */
    RIG_MMAP = 1 << 1,
    RIG_MEMFD = 1 << 2,
    RIG_FALLOCATE = 1 << 3,
    RIG_READV = 1 << 4,  /* process_vm_readv */
    RIG_WRITEV = 1 << 5, /* process_vm_writev */
    RIG_OPEN = 1 << 6,
    RIG_SOCKET = 1 << 7,
    RIG_BIND = 1 << 8,
    RIG_LISTEN = 1 << 9,
    RIG_ACCEPT = 1 << 10,
    RIG_CONNECT = 1 << 11,
    RIG_SEND = 1 << 12,  /* send, sendmsg */
    RIG_RECV = 1 << 13,  /* recv, recvmsg */
    RIG_EPOLL = 1 << 14, /* but for what takes a descriptor out */
};

/* Let call number `nth` (from 1; 0: none) of these kinds together, a set of
 * RIG_, fail with errno `error` (0: as when there is no more memory, no more
 * descriptors); all later ones too if is_lasting. Others, also
 * those of an earlier rig_fail(), stay as they are. */
void rig_fail(unsigned which, unsigned nth, int error, int is_lasting);

/* Let all that copies, sends or receives move at most so many bytes at a time;
 * 0: no limit. */
void rig_limit(size_t max);

/* Calls of these kinds since rig_fail(). */
unsigned rig_calls(void);

/* Back to normal. */
void rig_reset(void);

#endif
