/* SPDX-License-Identifier: BSD-3-Clause */
/* The question where a rank waits, as WHERE and LOCATE (msg.h) ask it. */
#ifndef CHEMPI_COMMON_CONTROL_WAIT_DEPTH_H
#define CHEMPI_COMMON_CONTROL_WAIT_DEPTH_H

/* How much of where a rank waits is wanted; each is dearer to find than the
 * one before. */
enum chempi_wait_depth {
    CHEMPI_WAIT_CALL,  /* the MPI call */
    CHEMPI_WAIT_PLACE, /* and from which place of the program */
    CHEMPI_WAIT_STACK  /* and the program's calls that led there */
};

#endif
