/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The root of one process that no launcher of ours has started: world 0 is this
 * process, and has no supervisor. It says on descriptor CHEMPI_ROOT_FD what a
 * rank says to its supervisor (msg.h: HELLO, INIT, FINAL, ROOT_REQUEST), and is
 * answered by ROOT_REPLY. See doc/dynamic.md, "A root of one's own".
 *
 *   V1  the process has ended when its pidfd says so, or when its link is
 *       closed, after all that it has said
 *   V2  one that ends between INIT and FINAL takes along the worlds that have
 *       been started for it (W3); else they go on
 *   V3  this launcher ends when the process has, and no world runs, and all
 *       output is written; then no descendant is left
 *   V4  while the process runs, signals that end programs are its own affair
 */
#ifndef CHEMPI_CHEMPID_SERVE_H
#define CHEMPI_CHEMPID_SERVE_H

/* Until V3. The exit status. */
int chempi_serve_process(void);

#endif
