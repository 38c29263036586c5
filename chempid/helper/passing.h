/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets of fixed size, perhaps with a descriptor, between a daemon and its
 * helper. */
#ifndef CHEMPI_CHEMPID_PASSING_H
#define CHEMPI_CHEMPID_PASSING_H

#include <stdbool.h>
#include <stddef.h>

/* Send one; passed_fd stays the caller's, -1: none. 0 or -errno; -EAGAIN, if it
 * shall not wait. */
int chempi_passing_send(int fd, const void *data, size_t len, int passed_fd,
                        bool waits);

/*
 * Take one of exactly len bytes, without waiting. 1: it is there, with
 * *passed_fd the caller's, or -1; 0: there is none; -ENOMEM: it cannot be had
 * for lack of the kernel's memory, and stays; -EPIPE: the end; -EBADMSG:
 * it is longer, shorter, or has something else than one descriptor.
 */
int chempi_passing_receive(int fd, void *data, size_t len, int *passed_fd);

#endif
