/* SPDX-License-Identifier: BSD-3-Clause */
/* Exit statuses of a launcher's own (chempirun(1)). */
#ifndef CHEMPI_CHEMPID_EXIT_STATUS_H
#define CHEMPI_CHEMPID_EXIT_STATUS_H

#define CHEMPI_EXIT_FAILURE 1
#define CHEMPI_EXIT_USAGE 2
#define CHEMPI_EXIT_NODE 3 /* one that was asked for cannot be had */
#define CHEMPI_EXIT_TIMEOUT 124
#define CHEMPI_EXIT_NOT_EXECUTABLE 126
#define CHEMPI_EXIT_NOT_FOUND 127
#define CHEMPI_EXIT_SIGNAL 128 /* plus the signal's number */

#endif
