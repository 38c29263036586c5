/* SPDX-License-Identifier: BSD-3-Clause */
/* The question where a rank waits, as WHERE and LOCATE (msg.h) ask it. */
#ifndef CHEMPI_COMMON_CONTROL_WHERE_H
#define CHEMPI_COMMON_CONTROL_WHERE_H

/* How much of where a rank waits is wanted; each is dearer to find than the
 * one before. */
enum chempi_where_depth {
    CHEMPI_WHERE_CALL,  /* the MPI call */
    CHEMPI_WHERE_PLACE, /* and from which place of the program */
    CHEMPI_WHERE_STACK  /* and the program's calls that led there */
};

#endif
