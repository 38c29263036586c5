/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cross-memory attach: copying straight from or to another process's memory
 * (process_vm_readv/writev), with the loop over partial transfers and limits
 * of runs. Whether it is allowed is found out with a real byte, per peer.
 */
#ifndef CHEMPI_LIBCHEMPI_SERVICES_CMA_H
#define CHEMPI_LIBCHEMPI_SERVICES_CMA_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "libchempi/services/layout/segment.h"

/* Read the byte at `remote` of process pid and compare with `expected`.
 * 0: works; -EPERM, -ESRCH, -ENOSYS ...: do not use it; -EBADMSG: pid names
 * another process (another PID namespace). */
int chempi_cma_probe(pid_t pid, const void *remote, unsigned char expected);

/* Copy len bytes from remote memory of pid. local: contiguous at buf, or
 * through iter when buf is NULL. 0 or -errno; -EFAULT when either side is not
 * mapped. Partial progress is reported in *done (bytes). */
int chempi_cma_read(pid_t pid, void *buf, struct chempi_segment *iter,
                    uint64_t remote_addr, uint64_t len, uint64_t *done);

/* The other direction: contiguous remote target. */
int chempi_cma_write(pid_t pid, const void *buf, struct chempi_segment *iter,
                     uint64_t remote_addr, uint64_t len, uint64_t *done);

/* One side of a copy: contiguous from buf on, or, with iter, its runs from its
 * position on. On the remote side both mean addresses of the other process. */
struct chempi_cma_side {
    char *buf;
    struct chempi_segment *iter;
};

/* Copy len bytes from the remote to the local side, or with is_write the other
 * way. Results as for chempi_cma_read(); iterators go on by *done. Short local
 * runs are gathered first; each remote one costs the kernel a look at the other
 * process's pages, so that remote runs should be of a page or more. */
int chempi_cma_copy(bool is_write, pid_t pid, struct chempi_cma_side local,
                    struct chempi_cma_side remote, uint64_t len,
                    uint64_t *done);

#endif
