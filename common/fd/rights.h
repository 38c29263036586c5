/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Descriptors that come over Unix sockets (SCM_RIGHTS). Who reads or closes a
 * socket in which one waits closes that, too, and may have to wait: for the
 * peer of a connection that lingers (SO_LINGER), as long as its sender likes.
 * So nothing that others can write to takes any. Since 6.16 the kernel refuses
 * them; before, they are looked for, and left to a process that ends: which
 * does not linger.
 */
#ifndef CHEMPI_COMMON_FD_RIGHTS_H
#define CHEMPI_COMMON_FD_RIGHTS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Of a socket that listens: nor do those that are accepted from it. Senders
 * fail with EPERM. Older kernels know no such refusal. */
void chempi_rights_refuse(int fd);
/* Once it is known who the other side is. */
void chempi_rights_allow(int fd);
/* Does the kernel keep them away? Else the following are for it. */
bool chempi_rights_are_refused(int fd);

#define CHEMPI_RIGHTS_MAX 200u /* of one message; the kernel takes 253 */

/* send(2) without a signal, with `count` descriptors, which stay the caller's.
 */
ssize_t chempi_rights_send_fds(int fd, const void *data, size_t len,
                               const int *fds, size_t count, int flags);
/* recv(2), and at most `max` descriptors, which are closed on exec. EPROTO: the
 * packet was longer or had more, or something else with it; it is taken, and
 * what came with it is closed. */
ssize_t chempi_rights_recv_fds(int fd, void *data, size_t len, int *fds,
                               size_t max, size_t *count, int flags);

/* recv(2) without waiting, but for EPERM: descriptors wait there. Then nothing
 * is taken. */
ssize_t chempi_rights_recv(int fd, void *data, size_t len);
/* Close a connection, whatever may be in it. */
void chempi_rights_close(int fd);
/* The same of a socket that listens, and of who waits there. */
void chempi_rights_close_listener(int fd);

#endif
