/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What others may have of a daemon: numbers, bytes and seconds. Kernel buffers
 * are apart. chempid(8) and doc/security.md say them, too.
 */
#ifndef CHEMPI_CHEMPID_LIMITS_H
#define CHEMPI_CHEMPID_LIMITS_H

/* ---- ends of processes (brood.h) ----------------------------------------- */

#define CHEMPI_END_S 2.0  /* for a supervisor whose socket is closed */
#define CHEMPI_REAP_S 2.0 /* for what has been killed */
#define CHEMPI_DROP_S 5.0 /* for a supervisor whose job is not wanted */

#endif
